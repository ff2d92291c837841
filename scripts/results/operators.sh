#!/bin/sh
# operators.sh -- operator models on NeuSight's tables and networks: figures of the stages operators-* (called by run.sh).
#
# Unpacks CDMPP_DATA/neusight into $W, trains configs/operators-all.yaml and t4-operators.yaml, predicts the test tables row by
# row, and the operators of whole networks, whose totals by class are what NeuSight publishes; end-to-end times by operators_networks.sh.
# About ten minutes on two busy cores. A model that is in $W already is not trained again.
set -eu
D=$CDMPP_DATA/neusight root=$PWD
B=$(cd "$B" && pwd)
mkdir -p "$W/data"
[ -d "$W/data/neusight/dataset" ] || { mkdir -p "$W/data/neusight"; tar -xJf "$D/dataset.tar.xz" -C "$W/data/neusight" --strip-components=1; }
[ -d "$W/label" ] || tar -xJf "$D/label_e2e.tar.xz" -C "$W"
W=$(cd "$W" && pwd)
T=$W/data/neusight

train() { # name, configuration, options: figures in name.txt
    name=$1; config=$2; shift 2
    [ ! -s "$W/$name.txt" ] || return 0
    (cd "$W" && "$B/cdmpp-train" "$root/configs/$config" --quiet -j "$JOBS" --out "$name.cdmpp" --set operators.seed="$SEED" \
        --set device.file="$root/configs/devices.yaml" "$@") >"$W/$name.tmp" || [ $? -eq 3 ]
    mv "$W/$name.tmp" "$W/$name.txt"
    echo "operators: $name done" >&2
}
predict() { # model, tables: JSON on standard output, the table of errors in eval.txt
    model=$1; shift
    "$B/cdmpp-predict" --operators --model "$W/$model.cdmpp" --devices configs/devices.yaml --eval "$@" 2>"$W/eval.txt" || [ $? -eq 3 ]
}
table() { awk '/^[|] rows/ { exit } /^[|]/' "$1"; }
coverage() { awk '/^[|] rows/ { on = 1 } on && /^[|]/' "$1"; }

train all operators-all.yaml
train t4 t4-operators.yaml
train device operators-all.yaml --set operators.check=device --set operators.max_rows=1000 --set operators.rounds=200 --set operators.calibration_rows=0

# Products of one AMD GPU, from its test tables, for the networks of the others: the train tables of AMD's products are not in the data.
for g in 100 210; do
    for k in bmm linear; do cp "$T/dataset_amd/test/collect/$k/p2.4.1/AMD Instinct MI$g.csv" "$W/mi$g-$k.csv"; done
    sed "s|^    - data/neusight/dataset_amd/train/collect|    - mi$g-bmm.csv\n    - mi$g-linear.csv\n&|" configs/operators-all.yaml >"$W/mi$g.yaml"
    train "mi$g" "$(realpath --relative-to=configs "$W/mi$g.yaml")" --set operators.check=none
done

# ---- whole networks: the same graphs as NeuSight's table of errors by operator ----
echo 'OPName,Latency,Device,B,M,N,K,H,Weight,Graph,Class' >"$W/graphs.csv"
for f in "$W"/label/*/*-*-*-*.csv; do
    graph=$(basename "$f" .csv); device=$(basename "$(dirname "$f")")
    case $device:$graph in AMD*:* | *:*-*-*-*-*) continue ;; esac
    # a graph that NeuSight has no prediction for is not in its table
    awk -F, -v d="$device" -v g="$graph" 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        $c["device"] == d && $c["model_name"] "-" $c["mode"] "-" $c["seqlen"] "-" $c["batch"] == g && $c["option"] == "" &&
        $c["neusight_all_e2e_latency"] != "" { found = 1 } END { exit !found }' "$W/summary/summary.csv" || continue
    layers=$(sed -n 's/.*"num_layer": *\([0-9]*\).*/\1/p' "${f%.csv}.json")
    awk -v device="$device" -v graph="$device/$graph" -v layers="${layers:-0}" -f scripts/optrace.awk "$f"
done >>"$W/graphs.csv"
predict all "$W/graphs.csv" >"$W/graphs.jsonl"

# class, in or out, n, ours, NeuSight's forward error of the same graphs
awk -F, -v dir="$W" -v jsonl="$W/graphs.jsonl" -v summary="$W/summary/summary.csv" '
function out(key) { return key ~ /H100_80GB|NVIDIA_L4|A100_80GB|gpt3_27|opt_13|gpt3_xl/ }
FNR == 1 { next }
{
    getline line <jsonl
    if (!match(line, /"latency_s":[0-9.e+-]+/)) { print "no prediction: " line >"/dev/stderr"; exit 1 }
    key = $10; class = $11
    pred[key, class] += $9 * 1000 * substr(line, RSTART + 12, RLENGTH - 12)
    real[key, class] += $9 * $2
    graphs[key] = 1
}
END {
    split("bmm linear elementwise softmax layernorm", classes, " ")
    split("BMM Linear VEC VECsoftmax VECln", theirs, " ")
    split("26.0 20.0 14.0 19.3 20.1 13.8 13.9 19.3 13.9 56.7", published, " ")
    while ((getline line <summary) > 0) {
        n = split(line, f, ",")
        if (!header++) { for (i = 1; i <= n; i++) c[f[i]] = i; continue }
        key = f[c["device"]] "/" f[c["model_name"]] "-" f[c["mode"]] "-" f[c["seqlen"]] "-" f[c["batch"]]
        if (f[c["option"]] != "" || !(key in graphs)) continue
        for (k = 1; k <= 5; k++) if ((e = f[c["neusight_" theirs[k] "_fw_err"]]) != "") { theirs_sum[out(key), k] += e; theirs_n[out(key), k]++ }
    }
    for (o = 0; o < 2; o++)
        for (k = 1; k <= 5; k++) {
            n = sum = worst = 0
            for (key in graphs)
                if (out(key) == o && real[key, classes[k]] > 0) {
                    e = pred[key, classes[k]] / real[key, classes[k]] - 1
                    sum += e < 0 ? -e : e
                    n++
                }
            if (o && classes[k] == "bmm") printf "%.2f,%%,%d\n", 100 * sum / n, n >(dir "/bmm-out") # the bar is that near
            printf "| %s | %s | %d | %.1f | %.1f | %.1f |\n", classes[k], o ? "out" : "in", n, 100 * sum / n, theirs_sum[o, k] / theirs_n[o, k], published[5 * o + k]
        }
}' "$W/graphs.csv" >"$W/graphs.txt"

put() { python3 -B scripts/results/figures.py put "$@"; }
find "$T/dataset/train/collect/bmm" "$T/dataset/train/collect/linear" -name '*.csv' | sort | tr '\n' '\0' |
    xargs -0 awk -f scripts/operator_tables.awk configs/devices.yaml >"$W/contradictions.md"
B=$B W=$W CDMPP_DATA=$CDMPP_DATA sh scripts/results/operators_networks.sh 2>"$W/networks.err"
predict all "$T"/dataset/test/bmm.csv "$T"/dataset/test/linear.csv "$T"/dataset/test/elem.csv "$T"/dataset/test/softmax.csv "$T"/dataset/test/ln.csv >/dev/null
table "$W/eval.txt" >"$W/nvidia.md"
predict all "$T"/dataset_amd/test/collect/*/*/*.csv >/dev/null
table "$W/eval.txt" >"$W/amd.md"
for k in bmm linear elem softmax ln; do awk 'NR == 1 || /,Tesla T4,/' "$T/dataset/test/$k.csv" >"$W/t4_$k.csv"; done
predict t4 "$W"/t4_*.csv >/dev/null
table "$W/eval.txt" >"$W/t4.md"
table "$W/all.txt" >"$W/large.md"
table "$W/device.txt" >"$W/device.md"
coverage "$W/all.txt" >"$W/coverage.md"
{ echo '| class | distribution | n | ours | NeuSight, same networks | published |'; echo '| --- | --- | --: | --: | --: | --: |'; cat "$W/graphs.txt"; } >"$W/graphs.md"

TEST_SETS=neusight-inference put operators-graphs "table:main=$W/graphs.md" "figure:bmm-out=$(cat "$W/bmm-out")"
TEST_SETS='' put operators-contradictions "table:main=$W/contradictions.md"
TEST_SETS=neusight-inference put operators-networks "table:means=$W/net.means.md" "table:main=$W/net.main.md"
TEST_SETS=neusight-training put operators-training "table:main=$W/net.train.md"
TEST_SETS=neusight-parallel put operators-parallel "table:main=$W/net.parallel.md"
TEST_SETS=neusight-rows put operators-rows "table:nvidia=$W/nvidia.md" "table:amd=$W/amd.md" "table:t4=$W/t4.md"
TEST_SETS='' put operators-held-out "table:large=$W/large.md" "table:device=$W/device.md"
TEST_SETS='' put operators-intervals "table:main=$W/coverage.md"
