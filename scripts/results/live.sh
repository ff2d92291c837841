#!/bin/sh
# live.sh -- estimates of ten networks beside what they take on this machine, schedules fixed beforehand: stage live.
#
#   ONNX=../shared/data/onnx scripts/results/run.sh live
#
# Trains configs/granite.yaml on the carried records, lets the model choose the schedules, then runs: half an hour, on a machine with
# nothing else to do and like the one of the records. SEED draws another split.
set -eu
ONNX=${ONNX:?set ONNX to the folder with torch/googlenet.onnx and so on}
E=examples/granite
make "$B/tests/bench/bench_network_run" >/dev/null
[ -f "$W/granite.h5" ] || "$B/cdmpp-extract" -q -j "$JOBS" --tasks $E/granite.tasks.json.xz --out "$W/granite.h5" $E/measure_records || [ $? -eq 3 ]
[ -d "$W/beside" ] || scripts/beside.sh "$W/beside"
[ -f "$W/beside.h5" ] || "$B/cdmpp-extract" -q -j "$JOBS" --tasks examples/zen4/zen4.tasks.json.xz --tasks examples/zen5/zen5.tasks.json.xz \
    --out "$W/beside.h5" "$W/beside" || [ $? -eq 3 ]
[ -f "$W/granite.cdmpp" ] || "$B/cdmpp-train" configs/granite.yaml -q -j "$JOBS" --set data.files="[$W/granite.h5, $W/beside.h5]" \
    --set split.seed="$SEED" --out "$W/granite.cdmpp"
nets=
for n in squeezenet-1.1 mobilenet-v2 "$ONNX/torch/lstm.onnx" "$ONNX/light/light_shufflenet.onnx" "$ONNX/torch/efficientnet_b0.onnx" \
    "$ONNX/torch/googlenet.onnx" resnet-18 resnet-50 "$ONNX/torch/densenet121.onnx" bert-base; do nets="$nets $n:1 $n:4"; done
# shellcheck disable=SC2086 # a list
"$B/tests/bench/bench_network_run" --target "llvm -mcpu=sapphirerapids -model=granite-rapids -num-cores=1" --model "$W/granite.cdmpp" \
    --device granite-rapids --devices configs/devices.yaml --book "$W/book.json" --pick 160 "$W/live.ndjson" $nets
python3 -B scripts/results/live_table.py "$W/live.ndjson" >"$W/live.md"
python3 -B scripts/results/figures.py put live "table:main=$W/live.md"
