#!/bin/sh
# fp8.sh -- FP8 products of four GPUs, of which two are trained on (scripts/results/fp8.py). Stage of run.sh; data: llm/pipeweave, and a clone of zksainx/pipeweave, whose git directory
# $PIPEWEAVE names. PART=chosen: only the part that choices may be made by; no figures are written.
set -eu
: "${W:?}" "${CDMPP_DATA:?}"
[ -d "${PIPEWEAVE:-}" ] || { echo "results: fp8: PIPEWEAVE names no git directory of zksainx/pipeweave" >&2; exit 1; }
B=$(cd "${B:-build/release}" && pwd)
mkdir -p "$W"
W=$(cd "$W" && pwd)
py="python3 -B scripts/results/fp8.py"
[ -s "$W/train.tsv" ] || $py rows "$CDMPP_DATA/llm/pipeweave/gemm_fp8_train.tsv.xz" "$PIPEWEAVE" "$W" "${PART:-test}"
if [ ! -s "$W/fp8.cdmpp" ]; then
    printf 'data:\n  kind: llm_operators\n  files: [%s/train.tsv]\n' "$W" >"$W/fp8.yaml"
    "$B/cdmpp-train" "$W/fp8.yaml" --quiet -j "${JOBS:-2}" --out "$W/fp8.tmp" --set operators.max_rows=0 --set operators.rounds=300 --set operators.seed="${SEED:-1}" \
        --set device.file=configs/devices.yaml >"$W/fp8.txt" || [ $? -eq 3 ]
    mv "$W/fp8.tmp" "$W/fp8.cdmpp"
fi
set --
for g in h20 h800 h100 h200; do
    [ -s "$W/$g.jsonl" ] || { "$B/cdmpp-predict" --operators --cost-model "$W/fp8.cdmpp" --devices configs/devices.yaml --measured "$W/train.tsv" --eval "$W/ask/$g.tsv" 2>/dev/null >"$W/$g.tmp" &&
        mv "$W/$g.tmp" "$W/$g.jsonl"; }
    set -- "$@" "$g=$W/$g.jsonl"
done
$py table "$@" >"$W/all.md" 2>"$W/words"
if [ -n "${PART:-}" ]; then
    cat "$W/all.md" "$W/words"
    exit 0
fi
# shellcheck disable=SC2046 # figures, no blanks inside
python3 -B scripts/results/figures.py put fp8 table:main="$W/all.md" $(cat "$W/words")
