#!/bin/sh
# check_corpora.sh -- every fuzz target over its seeds; the last line is "corpora: N passed, M failed".
cd "$(dirname "$0")/.." || exit 1
B=${B:-build/release} passed=0 failed=0
for seeds in tests/fuzz/seeds/*/; do
    target=$(basename "$seeds")
    out=$("$B/fuzz/replay" "$target" "tests/fuzz/seeds/$target" 2>&1)
    rc=$?
    p=$(printf '%s\n' "$out" | sed -n 's/.*: \([0-9]*\) passed, [0-9]* failed.*/\1/p' | tail -n 1)
    f=$(printf '%s\n' "$out" | sed -n 's/.*: [0-9]* passed, \([0-9]*\) failed.*/\1/p' | tail -n 1)
    p=${p:-0} f=${f:-0}
    if [ $rc -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    if [ "$f" -gt 0 ]; then printf 'FAIL %s\n%s\n' "$target" "$out" | tail -n 40; fi
    passed=$((passed + p)) failed=$((failed + f))
done
for target in tests/fuzz/fuzz_*.c; do
    target=$(basename "$target" .c)
    [ -d "tests/fuzz/seeds/${target#fuzz_}" ] || { echo "FAIL ${target#fuzz_}: no seeds"; failed=$((failed + 1)); }
done
echo "corpora: $passed passed, $failed failed"
[ $failed -eq 0 ]
