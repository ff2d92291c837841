#!/bin/sh
# check_unit.sh TALLY PROGRAM SUITE -- one suite of unit tests, for scripts/check.sh, which runs several at a time.
#
# Appends "passed failed skipped seconds cpu-seconds room/suite" to TALLY. Prints a line for a suite that took ten seconds or more, and
# for one that fails its output too, in one piece.
. "$(dirname "$0")/tied.sh"
tally=$1 program=$2 suite=$3
name=${program#*/tests/} name=${name%/units}/$suite
log=$(mktemp) || exit 1
trap 'rm -f "$log" "$log.out"' EXIT
run() { $tied timeout "${LIMIT_S:-5400}" "$program" "$suite" >"$log" 2>&1 </dev/null; }
count() { sed -n "s/^\[  $1 *\] \([0-9]*\) test.*/\1/p" "$log" | awk '{ n += $1 } END { print n + 0 }'; }
t0=$(date +%s)
run
rc=$?
# GCC 12 takes a thread's block of a loaded library for another kind when it lies 16 bytes into a page, and follows
# what stands before it. The search for leaks ends then, whatever the program did: once more without these blocks.
if [ $rc -ne 0 ] && grep -q '^Tracer caught signal' "$log"; then
    export LSAN_OPTIONS=use_tls=0
    run
    rc=$?
fi
p=$(count PASSED) f=$(count FAILED) s=$(count SKIPPED) seconds=$(($(date +%s) - t0))
# A suite that dies counts as one failure more than it reported.
if [ $rc -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
# The second line of `times` is what the children took: 0m1.250000s user, then system.
times >"$log.out"
cpu=$(awk 'NR == 2 { for (k = 1; k <= 2; k++) { split($k, t, /[ms]/); c += 60 * t[1] + t[2] } printf "%.1f", c }' "$log.out")
echo "$p $f $s $seconds $cpu $name" >>"$tally"
if [ "$f" -gt 0 ]; then
    { echo "  FAIL $name: $p passed, $f failed, exit status $rc"; grep -v '^\[ *\(RUN\|OK\) ' "$log" | tail -n 60; } >"$log.out"
    cat "$log.out"
elif [ $seconds -ge 10 ]; then
    echo "  slow $name ($seconds s)"
fi
