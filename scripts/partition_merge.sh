#!/bin/sh
# Stages with convolutions merged against the best stages without, on one and on two cores: networks and the blocks in which something is merged, run in turns.
#   scripts/partition_merge.sh [OUT.txt] [OPTION of cdmpp-partition...]      $B: build folder, build/release; $NETWORKS, $BUDGET (40 s each)
# On a quiet machine; about 10 minutes. Both plans have schedules of the same kind: drawn ones, or those of files that OPTION names.
set -e
cd "$(dirname "$0")/.."
out=${1:-partition_merge.txt}
[ $# -eq 0 ] || shift
b=${B:-build/release}
make "$b/cdmpp-partition" >/dev/null
{
    echo "# load before: $(cut -d' ' -f1-3 /proc/loadavg)"
    for network in ${NETWORKS:-squeezenet-1.0 squeezenet-1.1 inception-v3}; do
        for devices in cpu0 cpu0,cpu1; do
            how=both
            [ "$devices" = cpu0 ] && how=merge
            echo "== $network on $devices, --stages=$how"
            "$b/cdmpp-partition" -q --network "$network" --devices "$devices" --no-split --ignore-load --stages=$how --run --budget "${BUDGET:-40}" "$@" |
                grep -E '^stages on|run here: (stages|merged)|^with |^nothing is merged|  block [0-9]+ merged '
        done
    done
    echo "# load after: $(cut -d' ' -f1-3 /proc/loadavg)"
} | tee "$out"
