#!/bin/sh
# calibrate_networks.sh -- whole networks on this machine before and after a calibration of five minutes: stage calibrate_networks. It needs a machine with
# nothing else to do, half an hour, and OTHERS without the records of its processor, or its figures are of another question.
set -eu
python3 -B scripts/results/calibrate_networks.py "$W" "$W/main.md" >"$W/figures.txt"
# shellcheck disable=SC2046 # a figure a line, no blanks
SEED='' python3 -B scripts/results/figures.py put calibrate-networks "table:main=$W/main.md" $(cat "$W/figures.txt")
