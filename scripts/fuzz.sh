#!/bin/sh
# fuzz.sh TARGET... -- every target for FUZZ_S seconds under libFuzzer, ASan and
# UBSan (clang). Called by `make fuzz`, which sets SRC, INC, LIBS.
#
# The seeds in tests/fuzz/seeds/<target> are read only; what the engine finds
# grows in build/fuzz/corpus/<target>, inputs that fail land in build/fuzz/fail.
set -eu
cd "$(dirname "$0")/.."
: "${FUZZ_S:=60}" "${CLANG:=clang}"
FLAGS="-std=c11 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer \
       -ffp-contract=off -D_GNU_SOURCE -I. $INC"
obj=build/fuzz/obj
headers=$(find . -name '*.[h]' -o -name '*.def' | grep -v '^./build')
mkdir -p build/fuzz/fail
for src in $SRC; do
    o=$obj/${src%.c}.o
    mkdir -p "$(dirname "$o")"
    if [ ! -e "$o" ] || [ -n "$(find "$src" $headers -newer "$o")" ]; then
        # shellcheck disable=SC2086
        $CLANG $FLAGS -fsanitize=fuzzer-no-link -c "$src" -o "$o"
    fi
done
objs=$(for src in $SRC; do echo "$obj/${src%.c}.o"; done)
bad=0
for t in "$@"; do
    seeds=tests/fuzz/seeds/$t corpus=build/fuzz/corpus/$t
    mkdir -p "$corpus"
    # shellcheck disable=SC2086
    $CLANG $FLAGS -fsanitize=fuzzer "tests/fuzz/fuzz_$t.c" $objs -o "build/fuzz/$t" $LIBS
    echo "fuzz $t: $FUZZ_S s"
    nice -n 10 "build/fuzz/$t" -max_total_time="$FUZZ_S" -timeout=20 -rss_limit_mb=2048 \
        -max_len=60000 -artifact_prefix="build/fuzz/fail/$t-" -print_final_stats=1 "$corpus" "$seeds" >"build/fuzz/$t.log" 2>&1 ||
        { bad=1; echo "fuzz $t: FAILED, see build/fuzz/fail and build/fuzz/$t.log"; }
    grep -h "number_of_executed_units\|ERROR\|SUMMARY" "build/fuzz/$t.log" || true
done
exit $bad
