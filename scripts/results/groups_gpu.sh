#!/bin/sh
# groups_gpu.sh -- V100 by task and by group of tasks, a small model: stage groups_gpu (called by run.sh).
set -eu
D=$CDMPP_DATA/gpu-ansor
[ -f "$W/logs.txt" ] || tar -tJf "$D/v100.tar.xz" >"$W/logs.txt"
if [ ! -f "$W/v100.h5" ]; then
    mkdir -p "$W/x"
    tar -xJf "$D/v100.tar.xz" -C "$W/x"
    "$B/cdmpp-extract" -q -j "$JOBS" --tasks "$D/network_info" --out "$W/v100.h5" "$W/x/measure_records" || [ $? -eq 3 ]
    rm -rf "$W/x"
fi
python3 -B scripts/results/groups_gpu.py "$W" >"$W/figures.txt"
# shellcheck disable=SC2046 # a figure a line, no blanks
SEED='' python3 -B scripts/results/figures.py put quick-groups-gpu $(cat "$W/figures.txt")
