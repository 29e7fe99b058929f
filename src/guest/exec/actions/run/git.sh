# SPDX-License-Identifier: Apache-2.0
# What the git panel asks: sh -c THIS sh DIR        changes, as records that end in NUL
#                          sh -c THIS sh DIR FILE   the size of the old text, the old text, the new
export GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0 LC_ALL=C

# The tree that changes are counted from. Nothing is asked of the remote: it may not answer.
ref() {
	b=$(git rev-parse --abbrev-ref HEAD) || return
	o=refs/remotes/origin
	git config remote.origin.url >/dev/null || o=
	d=$(git symbolic-ref -q $o/HEAD || git for-each-ref --format='%(refname)' $o/main $o/master)
	d=${d%%
*}
	set -- "$o/$b" "$(git merge-base HEAD "$d")" "$d" 4b825dc642cb6eb9a060e54bf8d69288fbee4904
	[ "$o" ] || set -- HEAD
	for r; do
		git rev-parse -q --verify "$r^{tree}" && return
	done
}

# $1: where the repository is, "" or "sub/"; then what is told elsewhere
changes() (
	cd "./$1" && r=$(ref) && [ "$r" ] || return
	printf 'R%s\0' "$1"
	shift
	git diff --no-ext-diff --no-renames --name-status -z "$r" -- :/ "$@" && printf '?\0' &&
		git ls-files -z --others --exclude-standard -- "$@" && printf '.\0'
)

cd "$1" || exit 1
if [ $# = 1 ]; then
	shift
	for g in */.git; do
		[ ! -e "$g" ] || changes "${g%.git}"
		[ ! -e "$g" ] || set -- "$@" ":(exclude,literal)${g%/.git}"
	done
	changes '' "$@"
	exit 0
fi
case $2 in
/*) f=$2 ;;
*) f=$PWD/$2 ;;
esac
f=$(readlink -f -- "$f" || echo "$f")
top=${f%/*}
until [ -e "$top/.git" ]; do
	[ "$top" ] || exit 1
	top=${top%/*}
done
cd "$top/" && r=$(ref)
x=$r:${f#"$top/"}
n=0
[ "$(git cat-file -t "$x")" != blob ] || n=$(git cat-file -s "$x")
echo "$n"
[ "$n" = 0 ] || git cat-file blob "$x"
[ ! -f "$f" ] || head -c 1048577 -- "$f"
