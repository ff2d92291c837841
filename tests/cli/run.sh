# run.sh [CASE...] -- the commands as their users see them.
#
# Each case NAME.cmd runs in sh, in a folder of its own, with the commands in
# PATH, $T = tests/cli/data and $ROOT; its standard output, exit status and
# standard error must equal NAME.expect. CDMPP_UPDATE=1 rewrites the expectations.
set -u
cd "$(dirname "$0")" || exit 1
ROOT=$(cd ../.. && pwd) T=$(pwd)/data
B=${B:-build/release}
case $B in /*) ;; *) B=$ROOT/$B ;; esac
PATH=$B:$PATH
# Cases name their cost model; those about the default one name it themselves.
export ROOT T B PATH LC_ALL=C CDMPP_DEFAULT_MODEL=
work=$(mktemp -d) pass=0 fail=0
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- cases/*.cmd
for c; do
    c=cases/$(basename "$c" .cmd)
    # a sanitizer's library cannot be linked like the installed one, and makes a training ten times longer
    case $c:${MODE:-release} in *:release) ;; cases/install:* | cases/accuracy:* | cases/operators_api:*) continue ;; esac
    mkdir -p "$work/d"
    got=$(cd "$work/d" && { sh "$ROOT/tests/cli/$c.cmd" 2>../err; echo "exit $?"; sed 's/^/stderr: /' ../err; })
    rm -rf "$work/d"
    [ -z "${CDMPP_UPDATE:-}" ] || printf '%s\n' "$got" >"$c.expect"
    if [ "$got" = "$(cat "$c.expect")" ]; then
        pass=$((pass + 1))
    else
        fail=$((fail + 1))
        echo "FAIL $c"
        printf '%s\n' "$got" | diff "$c.expect" -
    fi
done
echo "cli: $pass passed, $fail failed"
[ $fail -eq 0 ] && [ $pass -gt 0 ]
