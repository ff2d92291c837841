#!/bin/sh
# check.sh [STAGE...] -- build and run tests; default: layers format docs figures symbols unit corpora cli guide python.
# fast: layers, format, and the units of the rooms that differ from FAST_REV (HEAD~1).
#
# Runs everything even when something fails; the last line is the sum. MODE, B
# and JOBS as in the makefile. TALLY: append the counts to that file instead of
# printing the sum (check-long adds up several runs). UNITS: only these suites (room/test_file, or room).
# Further stages: quick (examples/zen5 trained with three seeds, compared with docs/results/figures/quick.json), tvm (the reference sets of CDMPP_DATA), onnx (shapes and operations against python3-onnx), grads (gradients against PyTorch's), report and replay_html (pages in a browser), export (other forms of a model, in Python),
# mpi (several ranks on this machine, where Open MPI is).
set -u
cd "$(dirname "$0")/.."
. scripts/tied.sh
. scripts/compile_once.sh
MODE=${MODE:-release} B=${B:-build/${MODE:-release}} JOBS=${JOBS:-$(nproc)} LIMIT_S=${LIMIT_S:-5400} # of a step: for what hangs; a loaded machine is slow
export MODE B LC_ALL=C OMP_WAIT_POLICY=passive # threads that spin take the processor from those that they wait for
unset MAKEFLAGS MFLAGS # of the make that calls; settings come through the environment
compile_once
pass=0 fail=0 skip=0
log=$B/check.log
mkdir -p "$B"
[ $# -gt 0 ] || set -- layers format docs figures symbols unit corpora cli guide python

add() { pass=$((pass + $1)); fail=$((fail + $2)); skip=$((skip + $3)); }

# name, passed, failed, skipped, seconds
line() {
    printf '  %-4s %-24s %3d passed' "$([ "$3" -eq 0 ] && echo ok || echo FAIL)" "$1" "$2"
    [ "$3" -eq 0 ] || printf ', %d failed' "$3"
    [ "$4" -eq 0 ] || printf ', %d skipped' "$4"
    [ "$5" -lt 2 ] || printf '  (%d s)' "$5"
    echo
}

# One step that passes or fails as a whole.
step() {
    name=$1; shift
    if "$@" >"$log" 2>&1; then line "$name" 1 0 0 0; add 1 0 0; return 0; fi
    line "$name" 0 1 0 0; add 0 1 0
    grep -v '^  \(CC\|AR\|LD\|TEST\|FUZZ\) ' "$log" | tail -n 60
    return 1
}

# Suites of unit tests, JOBS at a time. UNITS: only these, as room/suite, or as room for all of a room.
units() {
    list=$B/units.list tally=$B/units.tally t0=$(date +%s)
    for room in $(names TROOM); do
        room=${room#tests/}
        [ -z "${UNITS:-}" ] || case " $UNITS " in *" $room "* | *" $room/test_"*) ;; *) continue ;; esac
        for suite in $("$B/tests/$room/units" --list); do
            [ -z "${UNITS:-}" ] || case " $UNITS " in *" $room "* | *" $room/$suite "*) ;; *) continue ;; esac
            echo "$B/tests/$room/units $suite"
        done
    done >"$list"
    : >"$tally"
    # A name that is not there must not pass by running nothing.
    for u in ${UNITS:-}; do
        grep -qE "/tests/(${u%/*}/units ${u##*/}|$u/units .*)\$" "$list" || { line "$u: no such suite" 0 1 0 0; add 0 1 0; }
    done
    $tied xargs -P "$JOBS" -n 2 $tied scripts/check_unit.sh "$tally" <"$list"
    # A suite that was not counted did not run.
    set -- $(awk -v want="$(wc -l <"$list")" '{ p += $1; f += $2; s += $3 } END { print p + 0, f + (want - NR), s + 0, NR }' "$tally")
    line "units ($4 suites)" "$1" "$2" "$3" $(($(date +%s) - t0))
    add "$1" "$2" "$3"
}

# "NAME: N passed, M failed" as the last line.
told() {
    name=$1; shift
    t0=$(date +%s)
    $tied timeout "$LIMIT_S" "$@" >"$log" 2>&1 </dev/null
    rc=$?
    p=$(sed -n 's/.*: \([0-9]*\) passed, [0-9]* failed.*/\1/p' "$log" | tail -n 1)
    f=$(sed -n 's/.*: [0-9]* passed, \([0-9]*\) failed.*/\1/p' "$log" | tail -n 1)
    p=${p:-0} f=${f:-0}
    if [ $rc -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    line "$name" "$p" "$f" 0 $(($(date +%s) - t0))
    add "$p" "$f" 0
    [ "$f" -eq 0 ] || tail -n 60 "$log"
}

# A Python that has numpy; nothing where there is none.
python() { for p in ${PYTHON:-} /usr/bin/python3 python3; do if "$p" -c 'import numpy' 2>/dev/null; then echo "$p"; break; fi; done; }

# Layout of C sources; left out where there is no clang-format 14.
format() {
    t0=$(date +%s)
    scripts/check_format.sh >"$log" 2>&1
    case $? in
    77) echo "  skip format: no clang-format 14"; add 0 0 1 ;;
    *) set -- $(sed -n 's/^format: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log")
        line format "${1:-0}" "${2:-1}" 0 $(($(date +%s) - t0))
        add "${1:-0}" "${2:-1}" 0
        [ "${2:-1}" -eq 0 ] || head -n 60 "$log" ;;
    esac
}

mk() { $tied make --no-print-directory -j"$JOBS" MODE="$MODE" B="$B" "$@"; }
names() { make --no-print-directory -s MODE="$MODE" B="$B" print-"$1"; }

for stage; do
    case $stage in
    layers) step layers $tied scripts/layers.sh ;;
    format) format ;;
    fast) # while one works: what changed since FAST_REV, with what is not committed
        rooms=$({ git diff --name-only "${FAST_REV:-HEAD~1}"; git ls-files -o --exclude-standard; } | sed -n 's|^tests/||; s|/[^/]*\.[ch]$||p' | sort -u)
        UNITS=$(for r in $rooms; do case " $(names TROOM) " in *" tests/$r "*) echo "$r" ;; esac; done)
        step layers $tied scripts/layers.sh
        format
        if [ -n "$UNITS" ]; then
            programs=$(for r in $UNITS; do echo "$B/tests/$r/units"; done)
            # shellcheck disable=SC2086
            step "build $MODE" mk $programs && UNITS=$(echo $UNITS) && units
        fi ;;
    symbols) step "build $MODE" mk all && step symbols scripts/symbols.sh "$B" && step names scripts/names.sh "$B" ;;
    unit)
        programs=$(names TEST)
        if [ -n "${UNITS:-}" ]; then
            programs=$(for u in $UNITS; do echo "$B/tests/${u%/test_*}/units"; done | sort -u)
        fi
        # shellcheck disable=SC2086
        step "build $MODE tests" mk $programs && units
        ;;
    tvm) for s in cpu gpu bench; do step "$s set" scripts/compare_tvm.sh $s && tail -n 1 "$log"; done ;;
    corpora) step "build $MODE fuzz" mk replayers &&
        told "fuzz corpora" sh scripts/check_corpora.sh ;;
    report) # a browser is no package that building needs
        if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then
            step "build $MODE" mk all "$B/tests/learner/report/units" && told report sh scripts/check_report.sh
        else
            echo "  skip report: no Chromium to open pages in"
            add 0 0 1
        fi ;;
    replay_html)
        if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then
            step "build $MODE" mk all && told "replay pages" sh scripts/check_replay_html.sh
        else
            echo "  skip replay pages: no Chromium to open pages in"
            add 0 0 1
        fi ;;
    mpi)
        step "build $MODE" mk all
        if [ -x "$B/cdmpp-mpi" ] && command -v mpirun >/dev/null; then
            told mpi sh scripts/check_mpi.sh
        else
            echo "  skip mpi: no Open MPI here (libopenmpi-dev, openmpi-bin)"
            add 0 0 1
        fi ;;
    onnx)
        if scripts/check_onnx.sh --can 2>/dev/null; then
            step "build $MODE" mk all && told onnx sh scripts/check_onnx.sh
        else
            echo "  skip onnx: no Python with numpy and onnx (python3-onnx)"
            add 0 0 1
        fi ;;
    grads)
        if scripts/check_grads.sh --can 2>/dev/null; then
            step "build $MODE" mk "$B/tests/reference/grad_values" && told grads sh scripts/check_grads.sh
        else
            echo "  skip grads: no Python with numpy, onnx and torch (python3-onnx, python3-torch)"
            add 0 0 1
        fi ;;
    export)
        if scripts/check_export.sh --can 2>/dev/null; then
            step "build $MODE" mk all "$B/tests/reference/member_answers" && told export scripts/check_export.sh
        else
            echo "  skip export: no Python with numpy, onnx, torch and xgboost (python3-onnx, python3-torch, python3-xgboost)"
            add 0 0 1
        fi ;;
    cli) # the simulated processors in release only
        step "build $MODE" mk all &&
            told cli env CPU="${CPU:-$([ "$MODE" = release ] && echo here,avx512,avx2,sse42 || echo here)}" sh tests/cli/run.sh ;;
    docs) told docs sh scripts/check_docs.sh ;;
    figures) # Python 3 and nothing else
        if command -v python3 >/dev/null; then
            told figures python3 -B scripts/check_figures.py && told "figures: planted" python3 -B scripts/check_figures.py --self-test
            told limits python3 -B scripts/check_limits.py && told "limits: planted" python3 -B scripts/check_limits.py --self-test
        else
            echo "  skip figures: no Python 3 here"
            add 0 0 1
        fi ;;
    quick)
        if command -v python3 >/dev/null; then
            step "build $MODE" mk all && told quick python3 -B scripts/results/quick.py compare "$B/quick"
        else
            echo "  skip quick: no Python 3 here"
            add 0 0 1
        fi ;;
    guide) # trainings and measurements, which a sanitizer makes ten times longer
        if [ "$MODE" = release ]; then step "build $MODE" mk all && told guide sh scripts/check_guide.sh && told samples python3 -B scripts/check_samples.py
        else echo "  skip guide: not a release build"; add 0 0 1; fi ;;
    python) # no package that building needs, and a sanitizer's library does not load into a Python without it
        PYTHON=$(python)
        if [ "$MODE" = release ] && [ -n "$PYTHON" ]; then
            export PYTHON
            step "build $MODE" mk all && told python sh tests/python/run.sh
        else
            echo "  skip python: no Python 3 with numpy here (python3-numpy), or not a release build"
            add 0 0 1
        fi ;;
    *) echo "check: unknown stage $stage" >&2; exit 2 ;;
    esac
done
if [ -n "${TALLY:-}" ]; then
    echo "$pass $fail $skip" >>"$TALLY"
else
    [ $skip -eq 0 ] || echo "$skip skipped: they need python3-numpy, CDMPP_DATA, Chromium or MODE=san (make check-long)"
    echo "$pass passed, $fail failed"
fi
[ $fail -eq 0 ]
