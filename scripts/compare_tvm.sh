#!/bin/sh
# compare_tvm.sh [SET...] -- our features and sketches against TVM v0.9's, on the reference sets of
# $CDMPP_DATA (docs/reference/data.md): cpu, gpu, bench. The bars: 99.9 % of programs have equal features, none is
# missing; every record is a schedule of our space. bench has no records of its own: they come out of a clone of their
# repository, whose git directory ANSOR_BENCH names; without it the set is left out. Its records are features only:
# many of their schedules were found for other shapes.
set -eu
cd "$(dirname "$0")/.."
D=${CDMPP_DATA:?set CDMPP_DATA to the folder with tenset-cpu and gpu-ansor}
B=${B:-build/release} W=build/reference
[ $# -gt 0 ] || set -- cpu gpu
unset MAKEFLAGS MFLAGS
make --no-print-directory -s -j"$(nproc)" B="$B" all "$B/tests/reference/compare_tvm" "$B/tests/reference/sketch_records" >&2
bad=0
for set_; do
    case $set_ in
    cpu) from=$D/tenset-cpu archives=records ;;
    gpu) from=$D/gpu-ansor archives='v100 k80 mi50' ;;
    bench)
        from=$D/tvm-ansor-bench
        if [ ! -d "$from" ] || [ ! -d "${ANSOR_BENCH:-}" ]; then echo "bench: left out, ANSOR_BENCH names no clone of its records or $from is no folder"; continue; fi
        mkdir -p "$W/bench"
        xz -dc "$from/tasks.pkl.xz" >"$W/bench/tasks.pkl"
        python3 -B "$from/sample.py" "$ANSOR_BENCH" "$W/bench"
        "$B/cdmpp-extract" -q --restart --tasks "$W/bench/tasks.pkl" --out "$W/bench.h5" "$W/bench/sample" || [ $? -eq 3 ]
        rm -rf "${W:?}/bench"
        "$B/tests/reference/compare_tvm" "$W/bench.h5" "$from/tvm_features.h5" || bad=1
        continue ;;
    *) echo "compare_tvm: unknown set $set_" >&2; exit 2 ;;
    esac
    mkdir -p "$W/$set_"
    for a in $archives; do tar -xJf "$from/$a.tar.xz" -C "$W/$set_"; done
    "$B/cdmpp-extract" -q --restart --tasks "$from/network_info" --out "$W/$set_.h5" "$W/$set_/measure_records" || [ $? -eq 3 ]
    echo "$set_:"
    "$B/tests/reference/sketch_records" "$from/network_info" "$W/$set_/measure_records" || bad=1
    rm -rf "${W:?}/$set_"
    "$B/tests/reference/compare_tvm" "$W/$set_.h5" "$from/tvm_features.h5" || bad=1
done
exit $bad
