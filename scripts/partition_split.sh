#!/bin/sh
# The split that predictions choose against the best of all measured, on core 0 and a native PoCL part on core 1: share of operators within 5 %.
#   scripts/partition_split.sh MODEL.cdmpp BOOK.json [OUT.ndjson] [BENCH OPTION...]      $B: build folder, build/release
# On a quiet machine; about 20 minutes. What stands in OUT is not run again: a run that was stopped goes on with the same command.
# The operators are 33 of six networks, by kind and work (--list shows them); BOOK has the schedules of whole operators, what it lacks is drawn.
set -e
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '2,5s/^# //p' "$0"; exit 2; }
model=$1 book=$2 out=${3:-partition_split.ndjson}
shift 2
[ $# -eq 0 ] || shift
b=${B:-build/release}
make "$b/tests/bench/bench_shard_plan" >/dev/null
echo "load before: $(cut -d' ' -f1-3 /proc/loadavg)"
"$b/tests/bench/bench_shard_plan" --target "${TARGET:-llvm -mcpu=sapphirerapids -model=granite-rapids -num-cores=1}" --device "${DEVICE:-granite-rapids}" \
    --devices configs/devices.yaml --model "$model" --book "$book" "$@" "$out" resnet-18 squeezenet-1.1 mobilenet-v2 inception-v3 bert-tiny vgg-16
echo "load after: $(cut -d' ' -f1-3 /proc/loadavg)"
