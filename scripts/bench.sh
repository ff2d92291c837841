#!/bin/sh
# bench.sh [SET...] -- speed and memory on sample, predict, cpu, gpu (default: sample, train, xgb,
# predict, and the others where CDMPP_DATA has them). Compare figures of one machine in one run only.
# train: a training step of the published network, in turn with PyTorch where there is
# python3-torch; the ratio is of CPU seconds, one thread each, and of wall-clock seconds.
# xgb: XGBoost through our code and through its Python package on the same matrices, of the cpu
# set or, without it, of the sample; where there is python3-xgboost.
# BARS=1: then compares with the bars of scripts/results/bars.py; status 1 where one is missed.
set -eu
cd "$(dirname "$0")/.."
if [ -n "${BARS:-}" ]; then # the same without, then what it printed against the bars
    mkdir -p build/bench
    { BARS='' sh scripts/bench.sh "$@" 2>&1 || echo "bench: failed"; } | tee build/bench/printed.txt
    exec python3 -B scripts/bench_bars.py build/bench/printed.txt
fi
B=${B:-build/release} D=${CDMPP_DATA:-} W=build/bench
unset MAKEFLAGS MFLAGS
if [ $# -eq 0 ]; then
    set -- sample train xgb predict
    [ ! -d "$D/tenset-cpu" ] || set -- "$@" cpu
    [ ! -d "$D/gpu-ansor" ] || set -- "$@" gpu
fi
make --no-print-directory -s -j"$(nproc)" B="$B" all "$B/tests/bench/bench_features" "$B/tests/bench/bench_train" "$B/tests/bench/bench_boost" \
    "$B/tests/bench/bench_predict" "$B/tests/bench/bench_observe" "$B/tests/bench/bench_stream" "$B/tests/bench/bench_profiles" >&2
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
    cmp "$W/j1.h5" "$W/j2.h5" || { echo "bench: -j1 and -j2 write different data sets" >&2; exit 1; }
    echo "               same bytes for -j1 and -j2: $(wc -c <"$W/j1.h5")"
    rm -rf "$W"/j?.h5*
}

# Value of KEY= in a line.
value() { printf '%s' "$2" | sed -n "s/.*$1=\([0-9.]*\).*/\1/p" | head -n 1; }

train() { # both for one and two threads, one after the other, three times; the least counts
    py=/usr/bin/python3
    "$py" -c 'import torch' 2>/dev/null || py=
    for j in 1 2; do
        for round in 1 2 3; do
            ours=$("$B/tests/bench/bench_train" 2 $j)
            echo "$round $(value step_s "$ours") $(value cpu_s "$ours") ours"
            [ -n "$py" ] || continue
            torch=$(OPENBLAS_NUM_THREADS=$j "$py" scripts/bench_torch.py 2 $j)
            echo "$round $(value step_s "$torch") $(value cpu_s "$torch") torch"
        done | awk -v j=$j '
            { if (!($4 in wall) || $2 < wall[$4]) wall[$4] = $2; if (!($4 in cpu) || $3 < cpu[$4]) cpu[$4] = $3 }
            END { for (w in wall) printf "  %-5s %d thread%s %7.3f s a step, %6.3f CPU s, %5.0f samples/s\n", w, j,
                      (j > 1 ? "s" : " "), wall[w], cpu[w], 600 / wall[w]
                  if ("torch" in wall) printf "        ratio %.2f (CPU %.2f)\n", wall["torch"] / wall["ours"], cpu["torch"] / cpu["ours"] }'
    done
    for n in small mlp lstm; do "$B/tests/bench/bench_train" 30 1 $n; done
}

# Logs to FILE, bad lines left out.
gather() { "$B/cdmpp-extract" -q --tasks "$1" --out "$3" "$2" 2>/dev/null || [ $? -eq 3 ]; }

trees() {
    if ! /usr/bin/python3 -c 'import xgboost' 2>/dev/null; then echo "  no python3-xgboost"; return; fi
    d=$W/xgb-sample.h5 tasks=examples/zen5/zen5.tasks.json.xz logs=examples/zen5/measure_records/zen5-avx512
    if [ -d "$D/tenset-cpu" ]; then
        d=$W/xgb-cpu.h5 tasks=$D/tenset-cpu/network_info/all_tasks.pkl logs=$W/cpu
        unpack "$logs" "$D/tenset-cpu/records.tar.xz"
    fi
    [ -e "$d" ] || gather "$tasks" "$logs" "$d"
    /usr/bin/python3 scripts/bench_xgb.py "$d" "$B/tests/bench/bench_boost" "$W/xgb" 100
    rm -rf "$W/xgb"
}

unpack() { # folder, archives
    to=$1
    shift
    [ ! -d "$to" ] || return 0
    mkdir -p "$to"
    for a; do tar -xJf "$a" -C "$to"; done
}

predict() { # models of the sample: trees, a network that reads rows, one that reads loop nests
    e=examples/zen5 log=examples/zen5/measure_records/zen5-avx512/records.json.xz
    "$B/cdmpp-extract" -q --restart --tasks $e/zen5.tasks.json.xz --out "$W/sample.h5" $e/measure_records/zen5-avx512 2>/dev/null || [ $? -eq 3 ]
    for k in "[rows,program]" "[mlp]" "[transformer]"; do
        name=$(echo "$k" | tr -dc 'a-z')
        "$B/cdmpp-train" -q --set data.files="$W/sample.h5" --set split.kind=task --set data.devices=[] --set model.members="$k" \
            --set train.rounds=200 --set fit.epochs=6 --out "$W/$name.cdmpp" configs/quickstart.yaml >/dev/null
    done
    "$B/tests/bench/bench_predict" $e/zen5.tasks.json.xz $log "$W/rowsprogram.cdmpp" "$W/mlp.cdmpp" "$W/transformer.cdmpp"
    set_="data.files=$W/sample.h5 split.kind=task data.devices=[] model.members=[rows,program] model.folds=2 train.rounds=200 fit.epochs=20"
    "$B/cdmpp-train" -q $(for o in $set_; do echo "--set $o"; done) --set model.tuner=true --out "$W/tuner.cdmpp" configs/quickstart.yaml >/dev/null
    "$B/tests/bench/bench_stream" $e/zen5.tasks.json.xz $log "$W/tuner.cdmpp"
    "$B/tests/bench/bench_profiles" "$W/tuner.cdmpp" configs/quickstart.yaml $set_
    py=/usr/bin/python3
    if "$py" -c 'import numpy' 2>/dev/null; then
        CDMPP_LIBRARY=$B/libcdmpp.so "$py" tests/python/bench_tvm.py "$W/rowsprogram.cdmpp" "$W/mlp.cdmpp" "$W/transformer.cdmpp"
    fi
    "$B/tests/bench/bench_observe" configs/quickstart.yaml 5 data.files="$W/sample.h5" data.devices=[] split.kind=task split.test=0.4 train.rounds=200
}

for s; do
    if [ "$s" = xgb ]; then
        echo "xgb: $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'), $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
        trees
        continue
    fi
    if [ "$s" = predict ]; then
        echo "predict: $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'), $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
        predict
        continue
    fi
    if [ "$s" = train ]; then
        echo "train: $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'), $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
        train
        continue
    fi
    case $s in
    sample) tasks=examples/zen5/zen5.tasks.json.xz logs=examples/zen5/measure_records ;;
    cpu) tasks=$D/tenset-cpu/network_info/all_tasks.pkl archives=$D/tenset-cpu/records.tar.xz logs=$W/cpu ;;
    gpu) tasks=$D/gpu-ansor/network_info/all_tasks.pkl logs=$W/gpu
        archives="$D/gpu-ansor/v100.tar.xz $D/gpu-ansor/k80.tar.xz $D/gpu-ansor/mi50.tar.xz" ;;
    *) echo "bench: unknown set $s" >&2; exit 2 ;;
    esac
    [ "$s" = sample ] || unpack "$logs" $archives
    echo "$s: $(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'), $(nproc) cores, $(du -shL "$logs" | cut -f1) of logs"
    "$bench" "$tasks" "$logs"
    extract "$tasks" "$logs"
done
