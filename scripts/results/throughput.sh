#!/bin/sh
# throughput.sh -- tokens a second of language models served by TensorRT-LLM, of its own document (scripts/results/throughput.py). Stage of run.sh; data: llm/aic, and the file
# docs/source/developer-guide/perf-overview.md of NVIDIA/TensorRT-LLM, which $TRTLLM_TABLES names. PART=chosen: only the part that choices may be made by; no figures are written.
set -eu
: "${W:?}" "${CDMPP_DATA:?}"
[ -f "${TRTLLM_TABLES:-}" ] || { echo "results: throughput: TRTLLM_TABLES names no perf-overview.md of NVIDIA/TensorRT-LLM" >&2; exit 1; }
D=$CDMPP_DATA/llm root=$(pwd) part=${PART:-test}
B=$(cd "${B:-build/release}" && pwd)
export CDMPP_SERVING="$root/configs/serving.yaml"
py="python3 -B scripts/results/throughput.py"
mkdir -p "$W/$part"
if [ ! -s "$W/llm.cdmpp" ]; then
    "$B/cdmpp-train" configs/llm-operators.yaml --quiet -j "${JOBS:-2}" --out "$W/llm.tmp" --set data.files="[$D/aic]" --set operators.max_rows="${MAX_ROWS:-12000}" \
        --set operators.seed="${SEED:-1}" --set device.file="$root/configs/devices.yaml" >"$W/llm.txt" || [ $? -eq 3 ]
    mv "$W/llm.tmp" "$W/llm.cdmpp"
fi
$py runs "$TRTLLM_TABLES" "$part" "$W/$part" >"$W/$part/list.txt"
while read -r model gpu; do
    [ ! -s "$W/$part/$model-$gpu.out" ] || continue
    set --
    case $gpu in # H200 is answered from its twin's rows; Blackwell's data centre GPUs from their descriptions alone
    h100 | h200) set -- --measured "$D/aic/h100_sxm" ;;
    rtx-pro-6000-server) set -- --measured "$D/aic/rtx_pro_6000_server" ;;
    esac
    "$B/cdmpp-replay" --quiet --llm "$W/$part/$model.json" --cost-model "$W/llm.cdmpp" --devices configs/devices.yaml --runs "$W/$part/$model-$gpu.csv" --json "$@" \
        >"$W/out.tmp" 2>"$W/$part/$model-$gpu.err" </dev/null || [ $? -eq 3 ]
    mv "$W/out.tmp" "$W/$part/$model-$gpu.out"
done <"$W/$part/list.txt"
words=$($py table "$TRTLLM_TABLES" "$W/$part" "$part" 2>"$W/$part/each.txt")
if [ -n "${PART:-}" ]; then
    cat "$W/$part/all.md" "$W/$part/each.txt"
    exit 0
fi
# shellcheck disable=SC2086 # figures, no blanks inside
python3 -B scripts/results/figures.py put throughput table:main="$W/$part/all.md" $words
