#!/bin/bash
# systemd.sh — croft as systemd runs it: the units as installed, a server under them, and what happens to
# its sandboxes when it is restarted, killed, stopped or asked for by a socket. Changes the machine it
# runs on, so: make vm-systemd, which boots one. Each check is a sentence; exits 1 if one does not hold.
set -uo pipefail
cd "$(dirname "$0")/../.."
. test/deploy/kit.sh
export CROFT_API_KEY=k-systemd-0123456789abcdef PATH=/usr/local/bin:$PATH
url=http://127.0.0.1:3000

ask() { curl -sS --fail-with-body -H "X-API-Key: $CROFT_API_KEY" "$@"; }
prop() { systemctl show -P "$1" croft.service; }
inside() { croft exec a -- sh -c "$1"; }
groups() { find /sys/fs/cgroup -path '*/croft/s[0-9]*' -name cgroup.procs 2>/dev/null; }
launcher() { pgrep -x -o -U 0 croft; } # it is older than its children

echo "== install"
check "make install puts program, page and units in place" make -s -o all install
check "systemd finds nothing odd in them" bash -c '! systemd-analyze verify croft.service croft.socket 2>&1 | grep croft'
systemd-analyze security --no-pager croft.service | tail -n 1
useradd --system --user-group --no-create-home --shell /usr/sbin/nologin croft
mkdir -p /etc/croft
echo "CROFT_API_KEY=$CROFT_API_KEY" >/etc/croft/environment && chmod 600 /etc/croft/environment
settings() { printf '[pool.default]\ntarget = %s\n' "$1" >/etc/croft/croft.toml; }
settings 1
systemctl daemon-reload

echo "== start"
check "systemctl start returns when the server answers" \
    bash -c 'systemctl start croft && curl -sSf -o /dev/null http://127.0.0.1:3000/health'
check "the server is not root" is "$(ps -o user= -p "$(prop MainPID)")" croft
check "croft.socket came along" systemctl -q is-active croft.socket
check "a request without the key is refused" \
    is "$(curl -s -o /dev/null -w '%{http_code}' $url/croft/v1/sandboxes)" 401
check "a sandbox with limits is started by curl" bash -c "$(declare -f ask); ask $url/croft/v1/sandboxes -H 'Content-Type: application/json' \
    -d '{\"image\":\"host\",\"session_id\":\"a\",\"memory\":\"256M\",\"pids\":100,\"cpus\":0.5,\"disk\":\"64M\"}'"
check "it comes up" until_true "croft ps | grep -w a | grep -w running"
check "it runs commands" is "$(inside 'echo $((6 * 7))')" 42
check "its disk is a file system of that size" inside '[ "$(df -m --output=size / | tail -n 1)" -lt 70 ]'
check "a file that is too large for it does not fit" inside '! head -c 90M /dev/zero >/workspace/big 2>/dev/null; rm -f /workspace/big'
check "its memory is limited" \
    bash -c 'cat $(find /sys/fs/cgroup -path "*/croft/s*" -name memory.max -o -path "*/croft/s*" -name memory.limit_in_bytes) | grep -qx 268435456'
check "more memory than that kills the command, not the sandbox" inside '! head -c 400M /dev/zero | tail -c 399M >/dev/null; true'
check "one with nothing asked for is started too" ask $url/start -d '{"image":"host","session_id":"b","command":null}' -o /dev/null
inside 'echo kept >/workspace/note; setsid -f sh -c "echo \$\$ >/workspace/pid; exec sleep 100000" >/dev/null 2>&1
    until [ -s /workspace/pid ]; do sleep 0.1; done'
lives() { is "$(inside 'cat /workspace/note; kill -0 $(cat /workspace/pid) && echo lives')" "$(printf 'kept\nlives')"; }
check "a process of it lives" lives

echo "== reload, daemon-reload"
settings 3
check "systemctl reload is taken" systemctl reload croft
check "and has the settings read anew" until_true "croft pool ls --json | grep -q '\"target\": *3'"
systemctl daemon-reload
systemctl set-property --runtime dbus.service CPUWeight=50 MemoryMax=1G
systemctl set-property --runtime dbus.service CPUWeight= MemoryMax=
systemctl daemon-reload
check "limits stand when systemd rearranges its groups" \
    bash -c 'cat $(find /sys/fs/cgroup -path "*/croft/s*" -name memory.max -o -path "*/croft/s*" -name memory.limit_in_bytes) | grep -qx 268435456'
check "and a start with limits works still" bash -c "$(declare -f ask); ask $url/croft/v1/sandboxes -H 'Content-Type: application/json' \
    -d '{\"image\":\"host\",\"session_id\":\"c\",\"memory\":\"128M\",\"pids\":50,\"cpus\":1}' && croft rm c"

echo "== restart"
was=$(prop MainPID)
check "systemctl restart works" systemctl restart croft
check "it is another server" bash -c "[ '$was' != '$(prop MainPID)' ]"
check "the sandbox lived on: the unit says at_exit = keep" lives
check "the journal says what was left running" bash -c 'journalctl -u croft --no-pager | grep -q "left running"'

echo "== kill -9 of the server"
was=$(prop MainPID)
kill -9 "$was"
check "systemd starts the next one" until_true "curl -sSf $url/health && [ \$(systemctl show -P MainPID croft) != $was ]"
check "the sandbox lived on" lives
check "restarts are counted" bash -c "[ '$(prop NRestarts)' -ge 1 ]"

echo "== kill -9 of the launcher"
was=$(prop MainPID)
kill -9 "$(launcher)"
check "server and launcher come back" until_true "curl -sSf $url/health && [ \$(systemctl show -P MainPID croft) != $was ]"
check "the sandbox lived on" lives

echo "== a server that hangs"
mkdir -p /run/systemd/system/croft.service.d
printf '[Service]\nWatchdogSec=8s\n' >/run/systemd/system/croft.service.d/watchdog.conf
systemctl daemon-reload && systemctl restart croft
was=$(prop MainPID)
kill -STOP "$was"
check "the watchdog replaces it" until_true "curl -m 5 -sSf $url/health && [ \$(systemctl show -P MainPID croft) != $was ]"
check "the sandbox lived on" lives
rm /run/systemd/system/croft.service.d/watchdog.conf && systemctl daemon-reload && systemctl restart croft

echo "== restart that halts"
echo CROFT_SERVER_AT_EXIT=halt >>/etc/croft/environment
check "a restart reads the environment file" systemctl restart croft # this end still keeps
check "a restart that halts works" systemctl restart croft
check "the sandbox is halted" until_true "croft ps --all 2>/dev/null | grep -w a | grep -wE 'paused|stopped|halted'"
check "it is resumed" croft resume a
check "its file is there" is "$(inside 'cat /workspace/note')" kept
sed -i /AT_EXIT/d /etc/croft/environment
systemctl restart croft # halts once more; the next ends keep
croft resume a b >/dev/null
inside 'setsid -f sh -c "echo \$\$ >/workspace/pid; exec sleep 100000" >/dev/null 2>&1; sleep 1'
check "a process of it lives" lives

echo "== stop, with sandboxes that are to be kept"
check "systemctl stop works" systemctl stop croft.service
check "and is not a failure" is "$(prop Result)" success
check "what is kept lives on without a server" bash -c '[ -n "$(pgrep -f ^croft-guest)" ]'

echo "== socket activation"
check "the socket still listens" systemctl -q is-active croft.socket
check "a request starts the server and is answered" ask $url/croft/v1/sandboxes -o /dev/null
check "the service runs" systemctl -q is-active croft.service
check "the sandbox lived on" lives

echo "== stop, with nothing to be kept"
settings 2
echo CROFT_SERVER_AT_EXIT=delete >>/etc/croft/environment
check "systemctl restart works" systemctl restart croft
check "and has the settings read anew" until_true "croft pool ls --json | grep -q '\"target\": *2'"
check "what was to be kept is removed when asked" croft rm a b
check "another is started" ask $url/start -d '{"image":"host","session_id":"d","command":null}' -o /dev/null
check "systemctl stop works" systemctl stop croft.socket croft.service
check "and is not a failure" is "$(prop Result)" success
check "no process is left" until_true "! pgrep -x croft && ! pgrep -f ^croft-guest"
check "no group of a sandbox is left" is "$(groups)" ""
check "no loop device is left" until_true '[ -z "$(losetup -n -O NAME)" ]'
check "no mount is left" is "$(grep -c croft /proc/self/mounts)" "$(grep -c '/croft ' /proc/self/mounts)"
check "the unit's group is gone" until_true '! [ -e /sys/fs/cgroup/system.slice/croft.service ]'

verdict
