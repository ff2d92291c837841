# run.sh [CASE...] -- the commands as their users see them.
#
# Each case NAME.cmd runs in sh, in a folder of its own, with the commands in
# PATH, $T = tests/cli/data and $ROOT; its standard output, exit status and
# standard error must equal NAME.expect. CDMPP_UPDATE=1 rewrites the expectations.
# JOBS cases run at the same time.
#
# CPU=NAME simulates the processor of cpus/NAME.cpuinfo (avx2, avx512, sse42); what this one lacks is not simulated.
# CPU=NAME,NAME,...: a case runs under the first one, and under each of the others where it asked for the processor; one
# that takes long under one of the others, or none, as its second line says. "here" is no simulation, and stands for the one with its vectors.
# ASKED: a file that gets the names of the cases that asked.
set -u
cd "$(dirname "$0")" || exit 1
ROOT=$(cd ../.. && pwd) T=$(pwd)/data
. "$ROOT/scripts/tied.sh"
cpus=$(echo "${CPU:-here}" | tr ',' ' ')

# The second line of a case that compiles, measures or trains for long says what is left out: "# Long: no sanitizer, one processor."
leaves_out() { sed -n 2p "$1" | grep -q "^# Long:.*$2"; }

# one CASE PROCESSOR: a line "passed failed cpu-seconds case processor" for the sum
one() {
    times >"$own/times" # the second line of `times`: what the commands of this shell took so far
    if [ "$2" = here ]; then unset CDMPP_TEST_CPU; else export CDMPP_TEST_CPU="$PWD/cpus/$2.cpuinfo"; fi
    export CDMPP_TEST_CPU_TRACE="$own/asked" XDG_DATA_HOME="$own/d/user"
    mkdir -p "$own/d"
    got=$(cd "$own/d" && { $tied sh "$ROOT/tests/cli/$1.cmd" 2>../err; echo "exit $?"; sed 's/^/stderr: /' ../err; })
    rm -rf "$own/d"
    [ -z "${CDMPP_UPDATE:-}" ] || printf '%s\n' "$got" >"$1.expect"
    if [ "$got" = "$(cat "$1.expect")" ]; then
        verdict="1 0"
    else
        verdict="0 1"
        { if [ "$2" = here ]; then echo "FAIL $1"; else echo "FAIL $1 (CPU=$2)"; fi
            printf '%s\n' "$got" | diff "$1.expect" -; } >"$own/failed"
        cat "$own/failed" # in one piece
    fi
    times >>"$own/times"
    awk -v verdict="$verdict" -v name="$1 $2" '
        NR % 2 == 0 { s = 0; for (k = 1; k <= 2; k++) { split($k, t, /[ms]/); s += 60 * t[1] + t[2] } seconds = s - before; before = s }
        END { printf "%s %.1f %s\n", verdict, seconds, name }' "$own/times" >>"$CASES_TALLY"
}

if [ "${1:-}" = --one ]; then # of those that run at the same time
    c=cases/$(basename "$2" .cmd)
    own=$(mktemp -d) || exit 1
    trap 'rm -rf "$own"' EXIT
    file=$2 first=${cpus%% *}
    others=${cpus#"$first"}
    if leaves_out "$file" ""; then # one that takes long: one of the others, by its name, so that each of them has its share
        # shellcheck disable=SC2086
        set -- $others
        [ $# -lt 2 ] || { shift $(($(echo "$c" | cksum | cut -d ' ' -f 1) % $#)); others=$1; }
    fi
    one "$c" "$first"
    for p in $others; do
        [ -e "$own/asked" ] && ! leaves_out "$file" "one processor" || break
        one "$c" "$p"
    done
    [ ! -e "$own/asked" ] || echo "$c" >>"$CASES_ASKED"
    exit 0
fi

B=${B:-build/release}
case $B in /*) ;; *) B=$ROOT/$B ;; esac
for p in $cpus; do
    [ "$p" = here ] || [ -s "cpus/$p.cpuinfo" ] || { echo "CPU=$p: expected here or one of $(ls cpus | sed 's/\.cpuinfo$//' | tr '\n' ' ')"; exit 1; }
done
# The vectors that this processor has are tested with it; a simulation of them would only measure again.
vectors() {
    if grep -q -m 1 avx512f "$1"; then echo avx512
    elif grep -q -m 1 avx2 "$1"; then echo avx2
    else echo sse42; fi
}
case " $cpus " in *" here "*[a-z]*) cpus=$(echo "$cpus" | tr ' ' '\n' | grep -vx "$(vectors /proc/cpuinfo)" | tr '\n' ' ') cpus=${cpus% } CPU=$(echo "$cpus" | tr ' ' ',') ;; esac
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/made"
PATH=$B:$PATH CASES_TALLY=$work/tally CASES_ASKED=$work/asked MADE=$work/made
: >"$CASES_TALLY"
: >"$CASES_ASKED"
# Cases name their cost model; those about the default one name it themselves.
# One arithmetic for networks and products, whatever the processor: figures are compared to three digits.
if [ "$(uname -m)" = x86_64 ] && grep -q -m 1 avx2 /proc/cpuinfo; then export OPENBLAS_CORETYPE=Haswell; fi
export ROOT T B PATH CASES_TALLY CASES_ASKED MADE LC_ALL=C CDMPP_DEFAULT_MODEL= CDMPP_TEST_NOISE=0,0 # what a busy machine makes of a measurement is tested with made figures
# Many commands measure this machine's memory first, and few cases look at the figure: arrays that the caches hold, in place of
# 1.5 GB. The case `noise` and the unit tests of profiler/describe measure as users do.
export CDMPP_TEST_TRIAD_MB=4
[ $# -gt 0 ] || set -- cases/*.cmd
for c; do
    # a sanitizer's library cannot be linked like the installed one, and makes a training ten times longer
    case $(basename "$c" .cmd):${MODE:-release} in *:release) ;; install:* | install_api:* | accuracy:* | operators_api:*) continue ;; *) ! leaves_out "$c" "no sanitizer" || continue ;; esac
    # those that take long begin first, so that no processor waits at the end
    if grep -q "^# Long:" "$c"; then echo "$c"; else echo "$c" >>"$work/short"; fi
done >"$work/list"
[ ! -e "$work/short" ] || cat "$work/short" >>"$work/list"
$tied xargs -P "${JOBS:-$(nproc)}" -n 1 $tied sh run.sh --one <"$work/list"
cp "$CASES_TALLY" "$B/cases.tally"
[ -z "${ASKED:-}" ] || cp "$CASES_ASKED" "$ASKED"
awk -v least="$(wc -l <"$work/list")" -v asked="${CPU:+; of the cases $(wc -l <"$CASES_ASKED") asked which processor this is}" '
    { p += $1; f += $2 }
    END {
        if (NR < least) f += least - NR # a case that was not counted did not run
        printf "cli: %d passed, %d failed%s\n", p, f, asked
        exit f > 0 || p == 0 }' "$CASES_TALLY"
