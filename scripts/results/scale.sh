#!/bin/sh
# scale.sh -- times measured on one GPU scaled to another, by closed forms and by models: figures of the stage operators-scale (called by
# run.sh).
#
# Operators: NeuSight's test tables, all ordered pairs of GPUs, by the operator model of its train tables. Programs: the records of K80, V100
# and MI50 whose program was measured on two of them, by trees that never saw their tasks (three trainings, a third of the tasks each).
set -eu
root=$PWD D=$CDMPP_DATA
B=$(cd "$B" && pwd)
mkdir -p "$W/data" "$W/rows" "$W/records"
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
known=$("$B/cdmpp-predict" --operators --cost-model "$W/all.cdmpp" --info |
    python3 -c 'import json, sys; print(",".join("%s/%s" % (d["name"], c) for d in json.load(sys.stdin)["model"]["devices"] for c in d["classes"]))')
$T neusight "$W/data/neusight" test "$W/rows"
cd "$W/rows"
name() { sed -n 2p "$1" | cut -d, -f3; }
for a in *.csv; do
    for b in *.csv; do
        [ "$a" != "$b" ] && [ ! -s "${a%.csv}.${b%.csv}.jsonl" ] || continue
        "$B/cdmpp-predict" --operators --from "$(name "$a")" --to "$(name "$b")" --devices "$root/configs/devices.yaml" --cost-model "$W/all.cdmpp" \
            --eval "$a" "$b" >tmp 2>/dev/null || [ $? -eq 3 ]
        mv tmp "${a%.csv}.${b%.csv}.jsonl"
    done
done
cd "$root"
$T rows "$known" "$W"/rows/*.jsonl >"$W/rows.md"

# ---- programs ----
for s in k80 v100 mi50; do
    [ -d "$W/x/measure_records/$s" ] || { mkdir -p "$W/x"; tar -xJf "$D/gpu-ansor/$s.tar.xz" -C "$W/x"; }
    # 3: some records were rejected, as TVM rejects them
    [ -f "$W/$s.h5" ] || "$B/cdmpp-extract" -q -j "$JOBS" --tasks "$D/gpu-ansor/network_info" --out "$W/$s.h5" "$W/x/measure_records/$s" || [ $? -eq 3 ]
done
[ -s "$W/records/2.names" ] || $T records "$W/x/measure_records" "$W/records"
for fold in 0 1 2; do
    cat >"$W/fold.$fold.yaml" <<YAML
data:
  files: [k80.h5, mi50.h5, v100.h5]
split: {kind: task, valid: 0.15, seed: $SEED, test_names: $(cat "$W/records/$fold.names")}
filter: {max_per_task: 100}
model: {members: [sums]}
predict: {point: median}
train: {rounds: 400, eta: 0.1, max_depth: 8}
YAML
    [ -s "$W/fold.$fold.cdmpp" ] || (cd "$W" && "$B/cdmpp-train" "fold.$fold.yaml" --quiet -j "$JOBS" --out "fold.$fold.cdmpp" \
        --set device.file="$root/configs/devices.yaml" >"fold.$fold.txt")
    for f in "$W"/records/*."$fold".json; do
        pair=$(basename "$f" ".$fold.json") from=${pair#*.} both=${pair%.*}
        to=${both#"$from"-}; to=${to%-"$from"}
        "$B/cdmpp-predict" --cost-model "$W/fold.$fold.cdmpp" --tasks "$D/gpu-ansor/network_info" --devices configs/devices.yaml --from "$from" --to "$to" \
            -j "$JOBS" "$f" >"${f%.json}.jsonl" || [ $? -eq 3 ]
    done
done
$T pairs "$W/records" >"$W/pairs.md"

# a cell of the row that holds TEXT: file, text, number of the cell
cell() { awk -F '|' -v t="$2" -v k="$3" 'index($0, t) { v = $(k + 1) } END { gsub(/ /, "", v); print v }' "$1"; }
put operators-scale "table:rows=$W/rows.md" "table:pairs=$W/pairs.md" \
    "figure:closed-pairs=$(cell "$W/pairs.md" "| **mean**" 5),%,$(cell "$W/pairs.md" "| **mean**" 3)" \
    "figure:model-pairs=$(cell "$W/pairs.md" "| **mean**" 7),%,$(cell "$W/pairs.md" "| **mean**" 3)" \
    "figure:closed-rows=$(cell "$W/rows.md" "| **all** | all" 4),%,$(cell "$W/rows.md" "| **all** | all" 3)" \
    "figure:model-rows=$(cell "$W/rows.md" "| **all** | all" 6),%,$(cell "$W/rows.md" "| **all** | all" 3)"
