#!/bin/sh
# partition_gain.sh -- networks split over core 0 and an OpenCL device on core 1: predicted and measured gain, and what a slow device changes.
#
#   MODEL=granite.cdmpp scripts/partition_gain.sh [NETWORK[:BATCH]...]
#
# The model should not have seen the networks. That of scripts/results/live.sh has not seen its ten; of others (bert-tiny, inception-v3, vgg-11) it knows tasks.
# Schedules are chosen by it beforehand. Each network
# runs twice: with the devices as they are, and with the second one made 30 times slower, where nothing may be split and nothing
# lost. A quarter of an hour, on a machine with nothing else to do. Prints a table; JSON of every run goes to $W.
set -eu
cd "$(dirname "$0")/.."
B=${B:-build/release}; W=${W:-build/gain}; AS=${AS:-granite-rapids}; BUDGET=${BUDGET:-4}
MODEL=${MODEL:?set MODEL to a cost model of this machine}
[ $# -gt 0 ] || set -- resnet-18 resnet-50 squeezenet-1.1 mobilenet-v2 inception-v3 vgg-16 bert-base gpt-2 lstm dcgan
mkdir -p "$W"
failed=0
[ -f "$W/machine.json" ] || "$B/cdmpp-partition" link measure --devices cpu0,ocl0 --contention --out "$W/machine.json" >&2

field() { sed -n 's/.*"'"$2"'": *\([-0-9.e+]*\|null\|true\|false\).*/\1/p' "$1" | head -n 1; }
run() { # network, batch, file, options
    net=$1 batch=$2 out=$3
    shift 3
    [ -s "$out" ] || "$B/cdmpp-partition" --model "$net" --batch "$batch" --machine "$W/machine.json" --as "$AS" --cost-model "$MODEL" \
        --schedules "$W/$net.$batch.book" --run --budget "$BUDGET" --json "$@" >"$out.new" 2>"$out.log" && mv "$out.new" "$out" 2>/dev/null || [ -s "$out" ]
}

echo "| network | batch | rho | ceiling | predicted gain | measured gain | measured/predicted | error of values | ocl0 30 times slower: predicted | measured |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
for n; do
    net=${n%:*} batch=${n##*:}
    [ "$batch" != "$n" ] || batch=1
    [ -f "$W/$net.$batch.book" ] || "$B/cdmpp-replay" --network "$net" --batch "$batch" --device "$AS" --cost-model "$MODEL" --trials 512 \
        --save-schedules "$W/$net.$batch.book" >/dev/null 2>&1
    run "$net" "$batch" "$W/$net.$batch.json" || { echo "| $net | $batch | failed: $(tail -n 1 "$W/$net.$batch.json.log") |"; failed=1; continue; }
    run "$net" "$batch" "$W/$net.$batch.slow.json" --times ocl0=30 || { echo "| $net | $batch | failed: $(tail -n 1 "$W/$net.$batch.slow.json.log") |"; failed=1; continue; }
    f=$W/$net.$batch.json s=$W/$net.$batch.slow.json
    echo "$net $batch $(field "$f" rho) $(field "$f" ceiling) $(field "$f" predicted_gain) $(field "$f" measured_gain) $(field "$f" max_error) $(field "$s" predicted_gain) $(field "$s" measured_gain)" |
        awk '{ printf "| %s | %s | %.2f | %.2f | %.2f | %.2f | %.0f %% | %.0e | %.3f | %.3f |\n", $1, $2, $3, $4, $5, $6, 100 * $6 / $5, $7, $8, $9 }'
done
[ $failed -eq 0 ]
