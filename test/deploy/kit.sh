# kit.sh — for the scripts beside it: sentences that hold or do not.
failed=0 passed=0

check() { # SENTENCE COMMAND…
    local says=$1 out
    shift
    if out=$("$@" 2>&1); then
        passed=$((passed + 1)) && echo "ok    $says"
    else
        failed=$((failed + 1)) && echo "FAIL  $says" && echo "      $*: $out"
        journalctl -q -o cat -n 8 -u croft.service | sed 's/^/      | /'
    fi
}
# The deadline is for what hangs: an emulated processor takes its time.
until_true() { timeout 300 bash -c 'until eval "$1" >/dev/null 2>&1; do sleep 0.2; done' - "$1"; }
is() { [ "$1" = "$2" ] || { echo "it is '$1', not '$2'" && false; }; }
matches() { grep -qE "$2" <<<"$1" || { echo "no /$2/ in: $1" && false; }; }
verdict() { echo "$passed passed, $failed failed" && [ "$failed" = 0 ]; }
