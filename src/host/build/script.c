// SPDX-License-Identifier: Apache-2.0
/* script.c — what runs inside the sandboxes of a build. Neither is trusted with anything: both only
 * say words on their output, which the server reads as a stranger's. */
#include "host/build/inner.h"

/* Says the base images of a Dockerfile: not its own stages, not scratch; ARGs before the first FROM
 * are filled in. */
const char build_scan_script[] =
    "exec 3>&1 >/tmp/log 2>&1\n"
    "fail() { printf 'CROFT-ERR %s\\n' \"$1\" >&3; tail -c 8000 /tmp/log >&3; exit 0; }\n"
    "mkdir /tmp/ctx || fail 'no room'\n"
    "tar -xzf /in/context.tar.gz -C /tmp/ctx --no-same-owner || fail 'the context is not a "
    "tar.gz'\n"
    "[ -f /tmp/ctx/Dockerfile ] || fail 'the context has no Dockerfile at its top'\n"
    "awk '{ sub(/\\r$/, \"\") }\n"
    "  toupper($1) == \"ARG\" && !seen { n = index($2, \"=\"); if (n) {\n"
    "    v = substr($2, n + 1); gsub(/\"/, \"\", v); arg[substr($2, 1, n - 1)] = v } }\n"
    "  toupper($1) == \"FROM\" { seen = 1; i = 2; while ($i ~ /^--/) i++; name = $i\n"
    "    for (a in arg) { gsub(\"[$][{]\" a \"[}]\", arg[a], name); gsub(\"[$]\" a, arg[a], name) "
    "}\n"
    "    if (!(tolower(name) in stage) && name != \"scratch\" && !(name in told)) {\n"
    "      print \"CROFT-FROM \" name; told[name] = 1 }\n"
    "    if (toupper($(i + 1)) == \"AS\") stage[tolower($(i + 2))] = 1 }' \\\n"
    "  /tmp/ctx/Dockerfile >&3 || fail 'the Dockerfile cannot be read'\n"
    "printf 'CROFT-END\\n' >&3\n";

/* A user namespace below the sandbox's own, with all of its ids: there buildah is root, may mount,
 * and needs no help from set-uid programs. */
const char build_script[] =
    "exec 3>&1 >/tmp/log 2>&1\n"
    "fail() { printf 'CROFT-ERR %s\\n' \"$1\" >&3; tail -c 16000 /tmp/log >&3; exit 0; }\n"
    "command -v buildah >/dev/null || fail 'buildah is not installed: apt-get install buildah'\n"
    "mkdir -p /tmp/ctx /tmp/home /tmp/run /tmp/t /etc/containers || fail 'no room'\n"
    "tar -xzf /in/context.tar.gz -C /tmp/ctx --no-same-owner || fail 'the context is not a "
    "tar.gz'\n"
    "echo '{\"default\":[{\"type\":\"insecureAcceptAnything\"}]}' >/etc/containers/policy.json\n"
    "cat >/tmp/inner <<'INNER'\n"
    "set -e\n"
    "export HOME=/tmp/home XDG_RUNTIME_DIR=/tmp/run TMPDIR=/tmp/t BUILDAH_ISOLATION=chroot\n"
    "export _CONTAINERS_USERNS_CONFIGURED=1 "
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin\n"
    "b() { buildah --root /tmp/root --runroot /tmp/runroot --storage-driver vfs \"$@\"; }\n"
    "i=0\n"
    "for name in $BASES; do\n"
    "  c=$(b from scratch); m=$(b mount \"$c\")\n"
    "  cp -a /base/$i/. \"$m/\"\n"
    "  mapfile -d '' -t args </in/base$i\n"
    "  [ ${#args[@]} = 0 ] || b config \"${args[@]}\" \"$c\"\n"
    "  b umount \"$c\" >/dev/null; b commit -q \"$c\" \"$name\" >/dev/null; b rm \"$c\" "
    ">/dev/null\n"
    "  i=$((i + 1))\n"
    "done\n"
    "b bud --pull-never --network none --layers=false -t croft-result /tmp/ctx\n"
    "b push -q croft-result docker-archive:/tmp/out.tar:croft-result:latest\n"
    "INNER\n"
    "mkfifo /tmp/up /tmp/go\n"
    "unshare -Um bash -c 'echo >/tmp/up; read -r _ </tmp/go; exec bash /tmp/inner' &\n"
    "pid=$!\n"
    "read -r _ </tmp/up\n"
    "read -r _ _ ids </proc/self/uid_map\n"
    "echo 0 0 \"$ids\" >/proc/$pid/uid_map && echo 0 0 \"$ids\" >/proc/$pid/gid_map ||\n"
    "  fail 'no user namespace'\n"
    "echo >/tmp/go\n"
    "wait $pid || fail 'the build failed'\n"
    "printf 'CROFT-OK %s\\n' \"$(stat -c %s /tmp/out.tar)\" >&3\n"
    "cat /tmp/out.tar >&3\n";
