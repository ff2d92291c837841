# run.sh -- the Python side: makes a small model of the carried sample, then runs test_*.py. Called by check.sh, which has
# found a Python with numpy in $PYTHON. CDMPP_TVM=FOLDER, a checkout of TVM with python/ and build/: the plug-in also runs inside it.
set -eu
cd "$(dirname "$0")/../.."
B=${B:-build/release} K=examples/zen5/zen5.tasks.json.xz HELD=examples/zen5/held_out.json
case $B in /*) ;; *) B=$PWD/$B ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$B/cdmpp-extract" -q --tasks $K --out "$work/a.h5" $HELD
cat >"$work/own.yaml" <<EOF
data: {files: $work/a.h5}
split: {kind: record}
model: {members: [rows, mlp]}
train: {rounds: 20}
fit: {epochs: 3}
predict: {point: median}
EOF
"$B/cdmpp-train" "$work/own.yaml" -q -j1 --out "$work/a.cdmpp" >"$work/log"
"$B/cdmpp-train" "$work/own.yaml" -q -j1 --set model.members=[transformer] --set net.tokens=leaves --out "$work/leaves.cdmpp" >"$work/log"
# the plug-in orders candidates by the model's own median, so this is compared without a floor (docs/reference/model.md)
echo '- {name: another, kind: cpu}' >"$work/none.yaml"
"$B/cdmpp-predict" -q --devices "$work/none.yaml" --model "$work/a.cdmpp" --tasks $K $HELD >"$work/predict.jsonl"
awk -f tests/cli/data/llm_rows.awk >"$work/llm.csv"
printf 'data: {kind: llm_operators, files: [%s/llm.csv]}\noperators: {rounds: 20, eta: 0.3, max_depth: 4}\ndevice: {file: configs/devices.yaml}\n' "$work" >"$work/llm.yaml"
"$B/cdmpp-train" "$work/llm.yaml" -q --out "$work/llm.cdmpp" >"$work/log"
unset CDMPP_MODELS
export CDMPP_DEFAULT_MODEL=
export B WORK="$work" CDMPP_LIBRARY="$B/libcdmpp.so" CDMPP_REPLAY="$B/cdmpp-replay" TASKS=$K HELD PYTHONPATH=scripts/python:tests/python PYTHONDONTWRITEBYTECODE=1
"$PYTHON" tests/python/test_hostile_names.py
"$PYTHON" tests/python/test_latency.py
"$PYTHON" tests/python/test_network.py
"$PYTHON" tests/python/test_operators.py
"$PYTHON" tests/python/test_serving.py
"$PYTHON" tests/python/test_stubs.py
"$PYTHON" tests/python/test_notebook.py
"$PYTHON" tests/python/test_torch_ops.py
"$PYTHON" tests/python/test_cdmpp_partition.py
"$PYTHON" tests/python/test_cdmpp_tvm.py
if [ -n "${CDMPP_TVM:-}" ]; then
    PYTHONPATH=$PYTHONPATH:$CDMPP_TVM/python:${CDMPP_TVM_PYTHON:-} TVM_LIBRARY_PATH=$CDMPP_TVM/build "$PYTHON" tests/python/test_real_tvm.py
else
    echo "  skip real TVM: CDMPP_TVM names none" >&2
fi
