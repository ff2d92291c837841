#!/bin/sh
# check_export.sh -- trains small models on the carried sample, exports them and compares the exports with
# cdmpp's own answers: ONNX in numpy, safetensors in PyTorch, trees in Python's XGBoost. Needs
# python3-onnx, python3-torch and python3-xgboost in $PYTHON, python3 or /usr/bin/python3. "--can": exit status 0 where
# they are. Last line: "exports: N passed, M failed".
set -eu
cd "$(dirname "$0")/.."
B=${B:-build/release} MOST=${MOST:-60} found=
for p in ${PYTHON:-python3 /usr/bin/python3}; do
    [ -n "$found" ] || ! "$p" -c 'import numpy, onnx, torch, xgboost' 2>/dev/null || found=$p
done
[ -n "$found" ] || { echo "check_export: no Python with numpy, onnx, torch and xgboost" >&2; exit 1; }
[ "${1:-}" != --can ] || exit 0
W=$(mktemp -d)
trap 'rm -rf "$W"' EXIT
K=examples/zen5/zen5.tasks.json.xz
for d in zen5-avx2 zen5-avx512; do xz -dc examples/zen5/measure_records/$d/records.json.xz | head -n 300 >"$W/$d.json"; done
"$B/cdmpp-extract" -q --tasks "$K" --out "$W/a.h5" "$W/zen5-avx2.json" "$W/zen5-avx512.json"
# name and settings; small nets, few epochs: what is compared is arithmetic, not quality
model() {
    name=$1; shift
    "$B/cdmpp-train" configs/quickstart.yaml -q -j1 --set data.files="$W/a.h5" --set data.devices='[]' --set train.rounds=40 --set fit.epochs=5 \
        --set fit.batch=16 --set net.ff=24 --set net.width=16 --set net.heads=4 --set net.head_width=16 --set net.embed=8 --set net.decoder_width=16 \
        --set net.side_width=8 "$@" --out "$W/$name.cdmpp" >/dev/null
    "$B/tests/reference/member_answers" "$W/$name.cdmpp" "$W/a.h5" "$MOST" >"$W/$name.jsonl"
    "$B/cdmpp-predict" --model "$W/$name.cdmpp" --info --json >"$W/$name.json"
    "$B/cdmpp-predict" --model "$W/$name.cdmpp" --export onnx --out "$W/$name.onnx"
    "$B/cdmpp-predict" --model "$W/$name.cdmpp" --export safetensors --out "$W/$name.st" 2>/dev/null || :
    for k in 0 1 2 3; do "$B/cdmpp-predict" --model "$W/$name.cdmpp" --export xgboost --member $k --out "$W/$name.$k.ubj" 2>/dev/null || :; done
}
model rows --set model.members='[rows]' --set model.folds=2
model program --set model.members='[program]'
model sums --set model.members='[sums]'
model rank --set model.members='[rows]' --set train.objective=rank
model rank_sums --set model.members='[sums]' --set train.objective=rank
model pack_sum --set model.members='[rows]' --set train.objective=pack_sum
model mlp --set model.members='[mlp]' --set model.folds=2
model sum --set model.members='[transformer]'
model attention --set model.members='[transformer]' --set model.folds=2 --set net.layers=2
model pool --set model.members='[transformer]' --set net.layers=1 --set net.head=pool --set net.pre_norm=false --set net.act=relu --set net.head_depth=1
model flatten --set model.members='[transformer]' --set net.layers=1 --set net.head=flatten --set net.slots=3 --set net.position=cdmpp --set net.program=true
model batchnorm --set model.members='[transformer]' --set net.norm=batch --set net.derived=false --set net.act=elu --set net.head_first=12 --set net.trips=false
model all --set model.members='[rows, program, transformer]' --set model.folds=2 --set fit.epochs=10
"$found" tests/reference/export_check.py "$W"
