#!/bin/sh
# Operators of language models on tables of four GPUs: rows, sites and GPUs that a training has not seen. Stage of run.sh; data: llm/aic.
#
# One model of all GPUs' train rows answers the rows and the sites, with the train rows beside it as what was measured. Four models, each of three GPUs,
# answer for the fourth from its description alone. scripts/results/llm_operators.py says how rows are divided.
set -eu
: "${W:?}" "${CDMPP_DATA:?}"
root=$(pwd) B=$(pwd)/build/release D=$CDMPP_DATA/llm/aic
tables="gemm context_attention generation_attention moe custom_allreduce nccl"
if [ ! -s "$W/split" ]; then
    python3 -B scripts/results/llm_operators.py split "$D" "$W"
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
ask() { # name, model, part, GPU, options...
    out=$W/$1.jsonl model=$2 part=$3 gpu=$4; shift 4
    [ ! -s "$out" ] || return 0
    for t in $tables; do
        [ "$t" != nccl ] && [ "$(wc -l <"$W/$part/$gpu/$t.tsv")" -gt 1 ] || continue # nccl is trained on; the bar is of the engines' own all-reduce
        "$B/cdmpp-predict" --operators --cost-model "$W/$model.cdmpp" --devices configs/devices.yaml --eval "$@" "$W/$part/$gpu/$t.tsv" 2>/dev/null || [ $? -eq 3 ]
    done >"$out.tmp"
    mv "$out.tmp" "$out"
}
gpus="a100_sxm h100_sxm l40s rtx_pro_6000_server"
train all 12000 train/a100_sxm train/h100_sxm train/l40s train/rtx_pro_6000_server
for g in $gpus; do
    ask "rows-$g" all rows "$g" --measured "$W/train/$g"
    ask "site-$g" all site "$g" --measured "$W/train/$g"
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
    ask "new-$g" "without-$g" new "$g"
done
{
    echo "| part | operator | n | MAPE % | median % | 90 % of rows % | in interval % | lower bound MAPE % | n between neighbours | MAPE there % | log-log line there % |"
    echo "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |"
    python3 -B scripts/results/llm_operators.py sum "rows" "$W"/rows-*.jsonl
    python3 -B scripts/results/llm_operators.py sum "sites" "$W"/site-*.jsonl
    for g in $gpus; do python3 -B scripts/results/llm_operators.py sum "new GPU: $g" "$W/new-$g.jsonl"; done
    python3 -B scripts/results/llm_operators.py sum "new GPUs: all four" "$W"/new-*.jsonl
} >"$W/all.md"
