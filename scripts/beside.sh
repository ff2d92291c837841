#!/bin/sh
# beside.sh FOLDER -- the records of examples/zen4, examples/turin and examples/zen5 that configs/granite.yaml trains on beside its own, a folder for each device.
#
# Those whose tasks are in examples/granite/beside.keys.xz.
set -eu
to=${1:?beside.sh FOLDER}
case $to in /*) ;; *) to=$PWD/$to ;; esac
cd "$(dirname "$0")/.."
mkdir -p "$to"
xz -dc examples/granite/beside.keys.xz >"$to.keys"
beside() { # records of a task in the list, of a folder of one device
    mkdir -p "$to/$2"
    for f in "examples/$1/measure_records/$2"/*; do xz -dcf "$f"; done | awk -v keys="$to.keys" '
        BEGIN { while ((getline k < keys) > 0) { gsub(/\\/, "&&", k); gsub(/"/, "\\\"", k); want[k] = 1 } }
        match($0, /\[\["(\\.|[^"\\])*"/) && substr($0, RSTART + 3, RLENGTH - 4) in want' >"$to/$2/records.json"
}
beside zen4 zen4
beside turin zen5-cdmpp
beside zen5 zen5-avx512
