#!/bin/sh
# scale.sh -- times measured on one GPU scaled to another, by closed forms and by models: figures of the stage operators-scale (called by
# run.sh).
#
# Operators: NeuSight's test tables, all ordered pairs of GPUs, by the operator model of its train tables; TVM's operators over batches
# (op-curves) by closed forms; products of serving libraries (llm) by a model of half of the matrices. Programs: the records of K80, V100
# and MI50 whose program was measured on two of them, of a third of their tasks, by trees that never saw these tasks.
set -eu
root=$PWD D=$CDMPP_DATA
B=$(cd "$B" && pwd)
mkdir -p "$W/data" "$W/rows" "$W/records" "$W/curves" "$W/llm"
W=$(cd "$W" && pwd)
T="python3 -B $root/scripts/results/scale_table.py"
put() { python3 -B scripts/results/figures.py put "$@"; }

# ---- operators ----
[ -d "$W/data/neusight/dataset" ] || { mkdir -p "$W/data/neusight"; tar -xJf "$D/neusight/dataset.tar.xz" -C "$W/data/neusight" --strip-components=1; }
if [ ! -s "$W/all.txt" ]; then
    (cd "$W" && "$B/cdmpp-train" "$root/configs/operators-all.yaml" --quiet -j "$JOBS" --out all.cdmpp --set operators.seed="$SEED" \
        --set operators.check=none --set operators.max_rows=3000 --set operators.rounds=200 --set operators.calibration_rows=400 \
        --set device.file="$root/configs/devices.yaml") >"$W/all.tmp" || [ $? -eq 3 ]
    mv "$W/all.tmp" "$W/all.txt"
fi
# what the model was trained on, as device/class,...
known() {
    "$B/cdmpp-predict" --operators --cost-model "$1" --info --json |
        python3 -c 'import json, sys; print(",".join("%s/%s" % (d["name"], c) for d in json.load(sys.stdin)["model"]["devices"] for c in d["classes"]))'
}
# all ordered pairs of the tables of a folder, with the options of a model
pairs() {
    dir=$1; shift
    for a in "$dir"/[!t]*.csv "$dir"/t4.csv; do
        for b in "$dir"/[!t]*.csv "$dir"/t4.csv; do
            out="$dir/$(basename "$a" .csv).$(basename "$b" .csv).jsonl"
            [ -f "$a" ] && [ -f "$b" ] && [ "$a" != "$b" ] && [ ! -s "$out" ] || continue
            "$B/cdmpp-predict" --operators --from "$(device "$a")" --to "$(device "$b")" --devices configs/devices.yaml "$@" --eval "$a" "$b" >"$out.tmp" 2>/dev/null || [ $? -eq 3 ]
            mv "$out.tmp" "$out"
        done
    done
}
device() { sed -n 2p "$1" | cut -d, -f3; }
[ -s "$W/rows/Tesla-P4.csv" ] || $T neusight "$W/data/neusight" test "$W/rows"
pairs "$W/rows" --cost-model "$W/all.cdmpp"
$T rows "$(known "$W/all.cdmpp")" "$W"/rows/*.jsonl >"$W/rows.md"

# ---- operators of TVM, without a model: none is trained on them ----
[ -s "$W/curves/dell01.csv" ] || $T curves "$D/op-curves/op_curves.tsv.xz" "$W/curves"
pairs "$W/curves"
$T closed "$W"/curves/*.jsonl >"$W/curves.md"

# ---- bfloat16 products of two serving libraries ----
[ -s "$W/llm/l40s.csv" ] || $T llm "$D/llm/aic" "$W/llm"
cat >"$W/llm/llm.yaml" <<YAML
data: {kind: operators, files: [train-a100-sxm4-80gb.csv, train-h100.csv, train-l40s.csv]}
YAML
[ -s "$W/llm/llm.cdmpp" ] || (cd "$W/llm" && "$B/cdmpp-train" llm.yaml --quiet -j "$JOBS" --out llm.cdmpp --set operators.seed="$SEED" \
    --set operators.check=none --set operators.calibration_rows=400 --set device.file="$root/configs/devices.yaml" >llm.txt) || [ $? -eq 3 ]
pairs "$W/llm" --cost-model "$W/llm/llm.cdmpp"
$T rows "$(known "$W/llm/llm.cdmpp")" "$W"/llm/*.jsonl >"$W/llm.md"

# ---- programs ----
for s in k80 v100 mi50; do
    [ -d "$W/x/measure_records/$s" ] || { mkdir -p "$W/x"; tar -xJf "$D/gpu-ansor/$s.tar.xz" -C "$W/x"; }
    # 3: some records were rejected, as TVM rejects them
    [ -f "$W/$s.h5" ] || "$B/cdmpp-extract" -q -j "$JOBS" --tasks "$D/gpu-ansor/network_info" --out "$W/$s.h5" "$W/x/measure_records/$s" || [ $? -eq 3 ]
done
[ -s "$W/records/2.names" ] || $T records "$W/x/measure_records" "$W/records"
# as Habitat does, whose bandwidths are measured: what one operator reaches
$T probe "$W/x/measure_records" "$D/gpu-ansor/network_info" configs/devices.yaml >"$W/probe.yaml"
for fold in 0; do # 1 and 2 have the other tasks; each is one more training
    cat >"$W/fold.$fold.yaml" <<YAML
data:
  files: [k80.h5, mi50.h5, v100.h5]
split: {kind: task, valid: 0.15, seed: $SEED, test_names: $(cat "$W/records/$fold.names")}
filter: {max_per_task: 40}
model: {members: [sums]}
predict: {point: median}
train: {rounds: 150, eta: 0.1, max_depth: 8}
YAML
    [ -s "$W/fold.$fold.cdmpp" ] || (cd "$W" && "$B/cdmpp-train" "fold.$fold.yaml" --quiet -j "$JOBS" --out "fold.$fold.cdmpp" \
        --set device.file="$root/configs/devices.yaml" >"fold.$fold.txt")
    for f in "$W"/records/*."$fold".json; do
        pair=$(basename "$f" ".$fold.json") from=${pair#*.} both=${pair%.*}
        to=${both#"$from"-}; to=${to%-"$from"}
        out=${f%.json}.jsonl
        for devices in configs/devices.yaml "$W/probe.yaml"; do
            "$B/cdmpp-predict" --cost-model "$W/fold.$fold.cdmpp" --tasks "$D/gpu-ansor/network_info" --devices "$devices" --from "$from" --to "$to" \
                -j "$JOBS" "$f" >"$out" || [ $? -eq 3 ]
            out=$out.probe
        done
    done
done
$T pairs "$W/records" "$D/gpu-ansor/network_info" >"$W/pairs.md"

# a cell of the row that holds TEXT: file, text, number of the cell
cell() { awk -F '|' -v t="$2" -v k="$3" 'index($0, t) { v = $(k + 1) } END { gsub(/ /, "", v); print v }' "$1"; }
put operators-scale "table:rows=$W/rows.md" "table:pairs=$W/pairs.md" "table:curves=$W/curves.md" "table:llm=$W/llm.md" \
    "figure:closed-pairs=$(cell "$W/pairs.md" "| **mean**" 5),%,$(cell "$W/pairs.md" "| **mean**" 3)" \
    "figure:probed-pairs=$(cell "$W/pairs.md" "| **mean**" 7),%,$(cell "$W/pairs.md" "| **mean**" 3)" \
    "figure:model-pairs=$(cell "$W/pairs.md" "| **mean**" 9),%,$(cell "$W/pairs.md" "| **mean**" 3)" \
    "figure:closed-rows=$(cell "$W/rows.md" "| **all** | all" 4),%,$(cell "$W/rows.md" "| **all** | all" 3)" \
    "figure:model-rows=$(cell "$W/rows.md" "| **all** | all" 7),%,$(cell "$W/rows.md" "| **all** | all" 3)"
