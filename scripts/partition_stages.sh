#!/bin/sh
# Stages of network blocks on cores 0 and 1: the plan found by prediction against the one found by running every stage, both measured in turns.
#   scripts/partition_stages.sh MODEL.cdmpp BOOK.json [OUT.txt] [BENCH OPTION...]      $B: build folder, build/release
# On a quiet machine; about 15 minutes. Contention is fitted from pairs of the first network's tasks, measured here (pairs.csv beside OUT; kept).
set -e
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '2,4s/^# //p' "$0"; exit 2; }
model=$1 book=$2 out=${3:-partition_stages.txt}
shift 2
[ $# -eq 0 ] || shift
b=${B:-build/release}
target=${TARGET:-llvm -mcpu=sapphirerapids -model=granite-rapids -num-cores=1}
networks=${NETWORKS:-inception-v3 inception-v1 squeezenet-1.1 densenet-121}
pairs=${PAIRS:-$(dirname "$out")/pairs.csv}
make "$b/cdmpp-profile" "$b/tests/bench/bench_stage_plan" >/dev/null
if [ ! -s "$pairs" ]; then
    tasks=$(mktemp)
    "$b/cdmpp-profile" --list-tasks --network "${networks%% *}" --target "$target" --out-tasks "$tasks" >/dev/null
    grep -oE '[0-9a-f]{32}' "$tasks" | sort -u >"$tasks.keys"
    grep -F -f "$tasks.keys" "$book" >"$tasks.log" # corun knows no others
    "$b/cdmpp-profile" corun --tasks "$tasks" --limit "${LIMIT:-6}" --out "$pairs" "$tasks.log" || [ -s "$pairs" ]
    rm -f "$tasks" "$tasks.keys" "$tasks.log"
fi
{
    echo "# load before: $(cut -d' ' -f1-3 /proc/loadavg)"
    # shellcheck disable=SC2086
    "$b/tests/bench/bench_stage_plan" --target "$target" --device "${DEVICE:-granite-rapids}" --devices configs/devices.yaml --model "$model" --book "$book" \
        --contention "$pairs" "$@" $networks
    echo "# load after: $(cut -d' ' -f1-3 /proc/loadavg)"
} | tee "$out"
