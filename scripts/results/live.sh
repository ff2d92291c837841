#!/bin/sh
# live.sh -- estimates of ten networks beside what they take on this machine, schedules fixed beforehand: stages live and live_zen5.
#
#   ONNX=../shared/data/onnx scripts/results/run.sh live        on a Granite Rapids
#   ONNX=../shared/data/onnx scripts/results/run.sh live_zen5   on a Zen 5
#
# Trains on the carried records, lets the model choose the schedules, then runs: half an hour, on a machine with
# nothing else to do and like the one of the records. SEED draws another split. MACHINE: whose records, granite (with configs/granite.yaml) or
# turin (with the recipe of the default model). Of the records beside them only those count whose tasks are of none of the ten networks.
set -eu
ONNX=${ONNX:?set ONNX to the folder with torch/googlenet.onnx and so on}
MACHINE=${MACHINE:-granite}
case $MACHINE in
granite) stage=live device=granite-rapids config=granite target="llvm -mcpu=sapphirerapids -model=granite-rapids -num-cores=1" ;;
turin) stage=live-zen5 device=zen5-cdmpp config=default target="llvm -mcpu=znver4 -model=zen5-cdmpp -num-cores=1" ;;
*) echo "live: MACHINE: expected granite or turin, found $MACHINE" >&2; exit 2 ;;
esac
make "$B/tests/bench/bench_network_run" >/dev/null
extract() { # OUT OPTION...; exit status 3: some records were rejected, as TVM rejects them
    [ -f "$W/$1.h5" ] || { out=$1; shift; "$B/cdmpp-extract" -q -j "$JOBS" --out "$W/$out.h5" "$@" || [ $? -eq 3 ]; }
}
T="--tasks examples/zen4/zen4.tasks.json.xz --tasks examples/zen5/zen5.tasks.json.xz"
[ -d "$W/beside" ] || scripts/beside.sh "$W/beside"
extract granite --tasks examples/granite/granite.tasks.json.xz examples/granite/measure_records
files="$W/granite.h5, $W/beside.h5"
if [ "$MACHINE" = turin ]; then
    mkdir -p "$W/turin/zen5-cdmpp"
    xz -dc examples/turin/measure_records/zen5-cdmpp/granite.json.xz >"$W/turin/zen5-cdmpp/granite.json"
    extract turin --tasks examples/turin/turin.tasks.json.xz "$W/turin"
    files="$files, $W/turin.h5"
fi
# shellcheck disable=SC2086 # options
extract beside $T "$W/beside"
[ -f "$W/$MACHINE.cdmpp" ] || "$B/cdmpp-train" "configs/$config.yaml" -q -j "$JOBS" --set data.files="[$files]" --set split.seed="$SEED" --out "$W/$MACHINE.cdmpp"
nets=
for n in squeezenet-1.1 mobilenet-v2 "$ONNX/torch/lstm.onnx" "$ONNX/light/light_shufflenet.onnx" "$ONNX/torch/efficientnet_b0.onnx" \
    "$ONNX/torch/googlenet.onnx" resnet-18 resnet-50 "$ONNX/torch/densenet121.onnx" bert-base; do nets="$nets $n:1 $n:4"; done
# shellcheck disable=SC2086 # a list
"$B/tests/bench/bench_network_run" --target "$target" --model "$W/$MACHINE.cdmpp" \
    --device $device --devices configs/devices.yaml --book "$W/book.json" --pick 160 "$W/live.ndjson" $nets
python3 -B scripts/results/live_table.py "$W/live.ndjson" >"$W/live.md"
python3 -B scripts/results/figures.py put $stage "table:main=$W/live.md"
