#!/bin/sh
# throughput.sh -- tokens a second of language models served by TensorRT-LLM, of its own document (scripts/results/throughput.py). Stage of run.sh; data: llm/aic, and the file
# perf-overview.md of the developer guide of NVIDIA/TensorRT-LLM, which $TRTLLM_TABLES names. PART=chosen: only the part that choices may be made by; no figures are written.
set -eu
: "${W:?}" "${CDMPP_DATA:?}"
[ -f "${TRTLLM_TABLES:-}" ] || { echo "results: throughput: TRTLLM_TABLES names no perf-overview.md of NVIDIA/TensorRT-LLM" >&2; exit 1; }
D=$CDMPP_DATA/llm root=$(pwd)
B=$(cd "${B:-build/release}" && pwd)
export CDMPP_SERVING="$root/configs/serving.yaml"
py="python3 -B scripts/results/throughput.py"
mkdir -p "$W"
. scripts/results/llm_model.sh
answer() { # part: errors on standard output, as words of figures.py put
    at=$W/$1 of=$1
    mkdir -p "$at"
    $py runs "$TRTLLM_TABLES" "$of" "$at" >"$at/list.txt"
    while read -r model gpu; do
        [ ! -s "$at/$model-$gpu.out" ] || continue
        set --
        case $gpu in # H200 is answered from its twin's rows; Blackwell's data centre GPUs from their descriptions alone
        h100 | h200) set -- --measured "$D/aic/h100_sxm" ;;
        rtx-pro-6000-server) set -- --measured "$D/aic/rtx_pro_6000_server" ;;
        esac
        "$B/cdmpp-replay" --quiet --llm "$at/$model.json" --cost-model "$W/llm.cdmpp" --devices configs/devices.yaml --runs "$at/$model-$gpu.csv" --json "$@" \
            >"$W/out.tmp" 2>"$at/$model-$gpu.err" </dev/null || [ $? -eq 3 ]
        mv "$W/out.tmp" "$at/$model-$gpu.out"
    done <"$at/list.txt"
    $py table "$TRTLLM_TABLES" "$at" "$of" 2>"$at/each.txt"
}
chosen=$(answer chosen)
if [ -n "${PART:-}" ]; then
    cat "$W/chosen/all.md" "$W/chosen/each.txt"
    exit 0
fi
words=$(answer test)
# shellcheck disable=SC2086 # figures, no blanks inside
python3 -B scripts/results/figures.py put throughput table:main="$W/test/all.md" table:chosen="$W/chosen/all.md" $words "$(echo "$chosen" | sed 's/ .*//; s/mean/chosen/')"
