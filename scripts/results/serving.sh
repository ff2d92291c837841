#!/bin/sh
# Served language models on H100: a model of operators is trained on one GPU's tables, and runs that no constant was fitted on are answered. Stage of
# run.sh; data: llm/aic, llm/e2e.
#
# The constants of configs/serving.yaml were fitted by
#   serving.py fit STACK W/fit-STACK.csv configs/serving.yaml build/release/cdmpp-replay --llm W/qwen3-32b.json --cost-model W/h100.cdmpp --measured .../h100_sxm
# on the halves fit-*, which are reported too, and the spreads of other models by serving.py spread STACK W ..., from the same halves.
set -eu
: "${W:?}" "${CDMPP_DATA:?}"
B=$(pwd)/build/release D=$CDMPP_DATA/llm root=$(pwd)
export CDMPP_SERVING="$root/configs/serving.yaml"
python3 -B scripts/results/serving.py runs "$D/e2e/llm_e2e_h100.csv" "$W" >"$W/parts.txt"
if [ ! -s "$W/h100.cdmpp" ]; then
    printf 'data: {kind: llm_operators, files: [%s/aic/h100_sxm]}\n' "$D" >"$W/h100.yaml"
    "$B/cdmpp-train" "$W/h100.yaml" --quiet -j "${JOBS:-2}" --out "$W/h100.tmp" --set operators.max_rows=4000 --set operators.rounds=200 \
        --set operators.seed="${SEED:-1}" --set device.file="$root/configs/devices.yaml" >"$W/h100.txt" || [ $? -eq 3 ]
    mv "$W/h100.tmp" "$W/h100.cdmpp"
fi
answer() { # part, model
    [ -s "$W/$1.csv" ] || return 0
    [ -s "$W/$1.json.out" ] || "$B/cdmpp-replay" --quiet --llm "$W/$2.json" --runs "$W/$1.csv" --cost-model "$W/h100.cdmpp" --devices configs/devices.yaml \
        --measured "$D/aic/h100_sxm" --json >"$W/out.tmp" || [ $? -eq 3 ]
    [ -s "$W/$1.json.out" ] || mv "$W/out.tmp" "$W/$1.json.out"
    python3 -B scripts/results/serving.py sum "$3" "$W/$1.json.out"
}
{
    echo "| runs | what | n | MAPE % | median % | 90 % of runs % | median of predicted / measured | in interval % | refused |"
    echo "| --- | --- | --: | --: | --: | --: | --: | --: | --: |"
    for s in trtllm vllm sglang; do
        answer "fit-$s" qwen3-32b "Qwen3-32B, $s: fitted on"
        answer "rest-$s" qwen3-32b "Qwen3-32B, $s: not fitted on"
    done
    for s in trtllm vllm sglang; do answer "loadless-$s" qwen3-32b "Qwen3-32B, $s: requests in flight not recorded, as many as the batch of the plan"; done
    answer gpt-oss-vllm gpt-oss "gpt-oss-120b, vllm"
    answer gpt-oss-trtllm gpt-oss "gpt-oss-120b, trtllm"
    answer deepseek-trtllm deepseek "DeepSeek-V3, trtllm, disaggregated"
    set --
    for p in gpt-oss-vllm gpt-oss-trtllm deepseek-trtllm; do [ ! -s "$W/$p.json.out" ] || set -- "$@" "$W/$p.json.out"; done
    python3 -B scripts/results/serving.py sum "all models that nothing was fitted on" "$@" "+$(tail -n +2 "$W/limitless-4.csv" | grep -c .)"
    for n in 4 16 64; do answer "limitless-$n" gpt-oss "gpt-oss-120b, vllm: limit of sequences not recorded, answered with $n"; done
    python3 -B scripts/results/serving.py sum "all of these together, the latter with 16" "$@" "$W/limitless-16.json.out"
} >"$W/all.md"
{
    echo "| runs | what | n | measured between the answers with 4 and with 64 |"
    echo "| --- | --- | --: | --: |"
    python3 -B scripts/results/serving.py between "gpt-oss-120b, vllm: limit of sequences not recorded" "$W/limitless-4.json.out" "$W/limitless-64.json.out"
} >"$W/between.md"
cell() { awk -F '|' -v w="$1" -v c="$2" '/all models/ && index($3, w) { v = $c; n = $4 } END { gsub(/ /, "", v); gsub(/ /, "", n); printf "%s,%%,%s\n", v, n }' "$W/all.md"; }
python3 -B scripts/results/figures.py put serving table:main="$W/all.md" table:between="$W/between.md" "figure:tpot-mean=$(cell TPOT 5)" "figure:tpot-p90=$(cell TPOT 7)" \
    "figure:tpot-inside=$(cell TPOT 9)" "figure:ttft-mean=$(cell TTFT 5)" "figure:ttft-inside=$(cell TTFT 9)"
