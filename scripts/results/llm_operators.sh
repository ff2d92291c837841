#!/bin/sh
# Operators of language models on tables of four GPUs: rows, sites and a version that a training has not seen; fp8 products of two more GPUs (called by run.sh).
# PART=gpus (scripts/results/llm_gpus.sh): GPUs that a training has not seen.
#
# One model of all GPUs' train rows answers the rows and the sites, with the train rows beside it as what was measured. A model without the A100's vLLM
# answers for it. Of PART gpus four models, each of three GPUs, answer for the fourth from its description alone, and once more with 20 and with 50 rows of
# each of its tables measured. scripts/results/llm_operators.py says how rows are divided; scripts/results/llm_compare.py is what other methods say of the same rows.
set -eu
: "${W:?}" "${CDMPP_DATA:?}"
root=$(pwd) D=$CDMPP_DATA/llm
B=$(cd "${B:-build/release}" && pwd)
mkdir -p "$W"
W=$(cd "$W" && pwd)
py="python3 -B scripts/results/llm_operators.py"
tables="gemm context_attention generation_attention moe custom_allreduce nccl"
gpus="a100_sxm h100_sxm l40s rtx_pro_6000_server"
if [ ! -s "$W/split" ]; then
    $py split "$D/aic" "$W" "$([ "${PART:-rows}" = gpus ] && echo 1 || echo 2)"
    $py fp8 "$D/pipeweave/gemm_fp8_train.tsv.xz" "$W"
    echo done >"$W/split"
fi
train() { # name, rows of a kind and device, tables and folders...
    name=$1 rows=$2; shift 2
    [ ! -s "$W/$name.txt" ] || return 0
    { printf 'data:\n  kind: llm_operators\n  files: ['; for f; do printf '%s/%s, ' "$W" "$f"; done | sed 's/, $//'; printf ']\n'; } >"$W/$name.yaml"
    "$B/cdmpp-train" "$W/$name.yaml" --quiet -j "${JOBS:-2}" --out "$W/$name.cdmpp" --set operators.max_rows="$rows" --set operators.rounds=300 \
        --set operators.seed="${SEED:-1}" --set device.file="$root/configs/devices.yaml" >"$W/$name.tmp" || [ $? -eq 3 ]
    mv "$W/$name.tmp" "$W/$name.txt"
}
ask() { # name, model, folder of a part, options...
    out=$W/$1.jsonl model=$2 part=$3; shift 3
    [ ! -s "$out" ] || return 0
    for t in $tables; do
        # nccl is trained on; the bar is of the engines' own all-reduce
        [ "$t" != nccl ] && [ -s "$W/$part/$t.tsv" ] && [ "$(wc -l <"$W/$part/$t.tsv")" -gt 1 ] || continue
        "$B/cdmpp-predict" --operators --cost-model "$W/$model.cdmpp" --devices configs/devices.yaml --eval "$@" "$W/$part/$t.tsv" 2>/dev/null || [ $? -eq 3 ]
    done >"$out.tmp"
    mv "$out.tmp" "$out"
}
gpus_not_seen() {
    for g in $gpus; do
        # of the large tables the tenth that is `rows` suffices: at most 2,000 rows of a kind and GPU are drawn
        others=
        for o in $gpus; do
            [ "$o" = "$g" ] || for t in $tables; do
                case $t in custom_allreduce | nccl) part=train ;; *) part=rows ;; esac
                others="$others $part/$o/$t.tsv"
            done
        done
        # shellcheck disable=SC2086 # words
        train "without-$g" 2000 $others
        ask "new-$g" "without-$g" "new/$g"
        for k in 20 50; do ask "few$k-$g" "without-$g" "new/$g" --measured "$W/few$k/$g"; done
    done
}
rows_not_seen() {
    train all "${MAX_ROWS:-120000}" train/a100_sxm train/h100_sxm train/l40s train/rtx_pro_6000_server
    for g in $gpus; do
        ask "rows-$g" all "rows/$g" --measured "$W/train/$g"
        ask "site-$g" all "site/$g" --measured "$W/train/$g"
    done
    train fp8 0 fp8train
    ask fp8 fp8 fp8rows --measured "$W/fp8train"
    train version 2000 other/a100_sxm train/h100_sxm train/l40s train/rtx_pro_6000_server
    ask version version version/a100_sxm
}
errors() {
    echo "| part | operator | n | MAPE % | median % | 90 % of rows % | in interval % | lower bound MAPE % | n between neighbours | MAPE there % | log-log line there % |"
    echo "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |"
    if [ "${PART:-rows}" = gpus ]; then
        for g in $gpus; do $py sum "$g" "$W/new-$g.jsonl"; done
        $py sum "all four" "$W"/new-*.jsonl
        for k in 20 50; do $py sum "all four, $k rows of a table measured" "$W/few$k"-*.jsonl; done
    else
        $py sum "rows" "$W"/rows-*.jsonl
        $py sum "sites" "$W"/site-*.jsonl
        $py sum "version" "$W"/version.jsonl
        $py sum "fp8 of H20 and H800" "$W"/fp8.jsonl
    fi
}
decades() { # name, answers...
    echo "| part | operator | measured | n | MAPE % | median % | 90 % of rows % | lower bound MAPE % | log-log line MAPE % |"
    echo "| --- | --- | --- | --: | --: | --: | --: | --: | --: |"
    $py decades "$@"
}
# numpy and xgboost are Debian's; another python3 may stand before it
for p in python3 /usr/bin/python3; do "$p" -c 'import numpy, xgboost' 2>/dev/null && break; done
others() { [ -s "$W/others-$1.md" ] || { "$p" -B scripts/results/llm_compare.py "$1" "$D" "$W" >"$W/others.tmp" && mv "$W/others.tmp" "$W/others-$1.md"; }; }
if [ "${PART:-rows}" = gpus ]; then
    stage=llm-gpus
    gpus_not_seen
    others gpus
    decades "new GPUs" "$W"/new-*.jsonl >"$W/decades.md"
else
    stage=llm-operators
    rows_not_seen
    others operators
    decades "rows" "$W"/rows-*.jsonl >"$W/decades.md"
fi
errors >"$W/all.md"
python3 -B scripts/results/figures.py put "$stage" "table:main=$W/all.md" "table:decades=$W/decades.md" "table:others=$W/others-${stage#llm-}.md"
