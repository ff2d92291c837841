# run.sh [CASE...] -- the commands as their users see them.
#
# Each case NAME.cmd runs in sh, in a folder of its own, with the commands in
# PATH, $T = tests/cli/data and $ROOT; its standard output, exit status and
# standard error must equal NAME.expect. CDMPP_UPDATE=1 rewrites the expectations.
#
# CPU=NAME simulates the processor of cpus/NAME.cpuinfo (avx2, avx512, sse42); what this one lacks is not simulated. CPU=NAME,NAME,...: a case runs under the first
# one, and under each of the others where it asked for the processor; "here" is no simulation.
set -u
cd "$(dirname "$0")" || exit 1
ROOT=$(cd ../.. && pwd) T=$(pwd)/data
B=${B:-build/release}
case $B in /*) ;; *) B=$ROOT/$B ;; esac
PATH=$B:$PATH
# Cases name their cost model; those about the default one name it themselves.
export ROOT T B PATH LC_ALL=C CDMPP_DEFAULT_MODEL= CDMPP_TEST_NOISE=0,0 # what a busy machine makes of a measurement is tested with made figures
cpus=$(echo "${CPU:-here}" | tr ',' ' ')
for p in $cpus; do
    [ "$p" = here ] || [ -s "cpus/$p.cpuinfo" ] || { echo "CPU=$p: expected here or one of $(ls cpus | sed 's/\.cpuinfo$//' | tr '\n' ' ')"; exit 1; }
done
work=$(mktemp -d) pass=0 fail=0 asked=0
trap 'rm -rf "$work"' EXIT

# one CASE PROCESSOR
one() {
    if [ "$2" = here ]; then unset CDMPP_TEST_CPU; else export CDMPP_TEST_CPU="$PWD/cpus/$2.cpuinfo"; fi
    export CDMPP_TEST_CPU_TRACE="$work/asked"
    mkdir -p "$work/d"
    got=$(cd "$work/d" && { sh "$ROOT/tests/cli/$1.cmd" 2>../err; echo "exit $?"; sed 's/^/stderr: /' ../err; })
    rm -rf "$work/d"
    [ -z "${CDMPP_UPDATE:-}" ] || printf '%s\n' "$got" >"$1.expect"
    if [ "$got" = "$(cat "$1.expect")" ]; then
        pass=$((pass + 1))
    else
        fail=$((fail + 1))
        if [ "$2" = here ]; then echo "FAIL $1"; else echo "FAIL $1 (CPU=$2)"; fi
        printf '%s\n' "$got" | diff "$1.expect" -
    fi
}

[ $# -gt 0 ] || set -- cases/*.cmd
for c; do
    c=cases/$(basename "$c" .cmd)
    # a sanitizer's library cannot be linked like the installed one, and makes a training ten times longer
    case $c:${MODE:-release} in *:release) ;; cases/install:* | cases/accuracy:* | cases/operators_api:*) continue ;; esac
    rm -f "$work/asked"
    for p in $cpus; do
        [ "$p" = "${cpus%% *}" ] || [ -e "$work/asked" ] || continue
        one "$c" "$p"
    done
    [ ! -e "$work/asked" ] || { asked=$((asked + 1)) && [ -z "${ASKED:-}" ] || echo "$c" >>"$ASKED"; }
done
echo "cli: $pass passed, $fail failed${CPU:+; of the cases $asked asked which processor this is}"
[ $fail -eq 0 ] && [ $pass -gt 0 ]
