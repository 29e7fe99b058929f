#!/bin/bash
# user.sh — croft for an ordinary user of a stock Debian 12: without groups of his own, and with those that
# his systemd gives him. Changes the machine it runs on, so: make vm-systemd, which boots one.
set -uo pipefail
cd "$(dirname "$0")/../.."
. test/deploy/kit.sh
who=someone
uid=$(id -u $who)
tree=$(eval echo ~$who)/croft
cp -a . "$tree" && chown -R $who: "$tree" && chmod 755 "$tree"/..
systemctl start "user@$uid.service"
as() { runuser -u $who -- env -C "$tree" HOME="$(dirname "$tree")" XDG_RUNTIME_DIR="/run/user/$uid" "$@"; }
given() { as systemd-run --user --scope --quiet -p Delegate=yes "$@"; }
layer() { # WORD yes|NO COMMAND…: what doctor says of a layer
    local word=$1 says=$2
    shift 2
    matches "$("$@" build/croft doctor 2>&1)" "^ *$says +$word "
}

echo "== without groups"
check "croft run runs a command" is "$(as build/croft run -- sh -c 'echo $((6 * 7))' 2>/dev/null)" 42
check "nothing of it stays but the copy" is "$(as build/croft run -- sh -c 'echo x >note; ls note' 2>/dev/null; as ls note 2>/dev/null)" note
check "he is root inside" is "$(as build/croft run -- id -u 2>/dev/null)" 0
for layer in files processes network syscalls landlock users; do
    check "doctor finds the layer $layer" layer $layer yes as
done
check "doctor finds no limit on memory" layer memory NO as
check "a limit on memory is refused, with the reason" bash -c "$(declare -f as); who=$who tree=$tree uid=$uid; ! as build/croft run --memory 64M -- true"

echo "== with groups of his systemd's"
for layer in memory pids pause; do
    check "doctor finds the layer $layer" layer $layer yes given
done
check "a limit on memory holds" is "$(given build/croft run --memory 64M -- sh -c 'head -c 200M /dev/zero | tail -c 199M | wc -c' 2>/dev/null | tail -n 1)" 0
check "a limit on processes holds" matches "$(given build/croft run --pids 20 -- sh -c 'for i in $(seq 40); do sleep 5 & done; echo end' 2>&1)" 'annot fork|esource'
check "no group is left" is "$(find "/sys/fs/cgroup/user.slice/user-$uid.slice" -path '*croft*' -type d 2>/dev/null)" ""

echo "== the contract"
check "holds without groups" as env CROFT_TEST_SLOW=10 build/test-croft --jobs 4 --summary /tmp/sum contract/native_user
check "its main rows hold with groups" given env CROFT_TEST_SLOW=10 build/test-croft --jobs 4 --summary /tmp/sum native_user_runs native_user_l
as cat /tmp/sum
verdict
