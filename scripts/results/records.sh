#!/bin/sh
# records.sh -- TVM's measured networks from the fastest record of each task, no model: stage records (called by run.sh).
#
# What a sum of measured operators misses of a measured network is the least that a model of operators can miss.
set -eu
D=$CDMPP_DATA/tenset-cpu
mkdir -p "$W/records"
[ -d "$W/records/measure_records" ] || tar -xJf "$D/records.tar.xz" -C "$W/records"
COMMON="--tasks $D/network_info --records $W/records/measure_records/zen5-avx512 --device zen5-avx512" \
    python3 -B scripts/results/replay_table.py e2e "$D/e2e.json" "$W" "measured times of the records=--from-records" >"$W/tables.md"
awk -v w="$W" 'BEGIN { f = w "/main.md" } /^$/ { f = w "/means.md"; next } { print >f }' "$W/tables.md"
python3 -B scripts/results/figures.py put replay-records "table:main=$W/main.md" "table:means=$W/means.md"
