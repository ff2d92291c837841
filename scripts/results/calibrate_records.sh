#!/bin/sh
# calibrate_records.sh -- intervals after a calibration by 20 and by 100 records: stage models-calibrate-records (scripts/results/calibrate_records.py). It goes on where it was stopped.
set -eu
python3 -B scripts/results/calibrate_records.py "$W" "$W/main.md" >"$W/figures.txt"
# shellcheck disable=SC2046 # a figure a line, no blanks
SEED='' python3 -B scripts/results/figures.py put models-calibrate-records "table:main=$W/main.md" $(cat "$W/figures.txt")
