#!/bin/sh
# bench.sh [SET...] -- speed and memory on sample, cpu, gpu (default: sample, and the
# others where CDMPP_DATA has them). Compare figures of one machine in one run only.
set -eu
cd "$(dirname "$0")/.."
B=${B:-build/release} D=${CDMPP_DATA:-} W=build/bench
unset MAKEFLAGS MFLAGS
if [ $# -eq 0 ]; then
    set -- sample
    [ ! -d "$D/tenset-cpu" ] || set -- "$@" cpu
    [ ! -d "$D/gpu-ansor" ] || set -- "$@" gpu
fi
make --no-print-directory -s -j"$(nproc)" B="$B" all "$B/tests/bench/bench_features" >&2
bench=$B/tests/bench/bench_features
mkdir -p "$W"

# number KEY of the JSON summary in $json
get() { printf '%s' "$json" | sed -n "s/.*\"$1\": \([0-9.]*\).*/\1/p"; }

# The whole command, logs on disk to data set on disk.
extract() { # tasks, logs
    for j in 1 2; do
        json=$("$B/cdmpp-extract" -q --json --restart -j $j --tasks "$1" --out "$W/j$j.h5" "$2") || [ $? -eq 3 ]
        printf '  extract -j%s  %7.2f s      %s records, peak RSS %s MB\n' $j "$(get seconds)" "$(get records)" \
            "$(($(get peak_rss_bytes) / 1000000))"
    done
    cmp "$W/j1.h5" "$W/j2.h5" && echo "               same bytes for -j1 and -j2: $(wc -c <"$W/j1.h5")"
    rm -rf "$W"/j?.h5*
}

for s; do
    case $s in
    sample) tasks=examples/zen5/zen5.tasks.json.xz logs=examples/zen5/measure_records ;;
    cpu) tasks=$D/tenset-cpu/network_info/all_tasks.pkl archives=$D/tenset-cpu/records.tar.xz logs=$W/cpu ;;
    gpu) tasks=$D/gpu-ansor/network_info/all_tasks.pkl logs=$W/gpu
        archives="$D/gpu-ansor/v100.tar.xz $D/gpu-ansor/k80.tar.xz $D/gpu-ansor/mi50.tar.xz" ;;
    *) echo "bench: unknown set $s" >&2; exit 2 ;;
    esac
    if [ "$s" != sample ] && [ ! -d "$logs" ]; then
        mkdir -p "$logs"
        for a in $archives; do tar -xJf "$a" -C "$logs"; done
    fi
    echo "$s: $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'), $(nproc) cores, $(du -shL "$logs" | cut -f1) of logs"
    "$bench" "$tasks" "$logs"
    extract "$tasks" "$logs"
done
