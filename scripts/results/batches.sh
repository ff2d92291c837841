#!/bin/sh
# batches.sh -- static batches on eleven GPUs, of which four have measured tables (scripts/results/batches.py). Stage of run.sh; data: llm/aic, and a clone of zksainx/pipeweave,
# whose git directory $PIPEWEAVE names. PART=chosen: only the part that choices may be made by; no figures are written.
set -eu
: "${W:?}" "${CDMPP_DATA:?}"
[ -d "${PIPEWEAVE:-}" ] || { echo "results: batches: PIPEWEAVE names no git directory of zksainx/pipeweave" >&2; exit 1; }
D=$CDMPP_DATA/llm root=$(pwd)
B=$(cd "${B:-build/release}" && pwd)
export CDMPP_SERVING="$root/configs/serving.yaml"
mkdir -p "$W"
py="python3 -B scripts/results/batches.py"
. scripts/results/llm_model.sh
[ -s "$W/list.txt" ] || { $py list "$PIPEWEAVE" >"$W/list.tmp" && mv "$W/list.tmp" "$W/list.txt"; }
while read -r name part gpu tp n tokens; do
    [ ! -e "$W/$name.json" ] && [ "${PART:-$part}" = "$part" ] || continue
    $py load "$PIPEWEAVE" "$name" "$W/load.csv"
    $py config "$PIPEWEAVE" "$name" "$W/config.json"
    set --
    [ ! -d "$D/aic/$gpu" ] || set -- --measured "$D/aic/$gpu"
    # a GPU whose batch is refused has no answer, and the table counts fewer
    "$B/cdmpp-replay" --quiet --llm "$W/config.json" --cost-model "$W/llm.cdmpp" --devices configs/devices.yaml --gpu "$gpu" --tp "$tp" --stack sglang --load "$W/load.csv" \
        --concurrency "$n" --max-sequences "$n" --max-tokens "$tokens" --json "$@" >"$W/out.tmp" 2>"$W/$name.err" </dev/null || [ $? -eq 3 ] || : >"$W/out.tmp"
    mv "$W/out.tmp" "$W/$name.json"
done <"$W/list.txt"
if [ -n "${PART:-}" ]; then
    $py table "$PIPEWEAVE" "$W" "$PART"
    cat "$W/main.md" "$W/each.md"
    exit 0
fi
# shellcheck disable=SC2046 # figures, no blanks inside
python3 -B scripts/results/figures.py put batches table:main="$W/main.md" table:each="$W/each.md" $($py table "$PIPEWEAVE" "$W")
