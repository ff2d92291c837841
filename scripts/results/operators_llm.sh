#!/bin/sh
# operators_llm.sh -- intervals on tables of other people: bfloat16 products of TensorRT-LLM and vLLM on four GPUs (called by run.sh).
#
# TensorRT-LLM's products on three GPUs train, of half of the weight matrices (by a checksum of n and k). The other half, measured by vLLM
# on the same GPUs, and all products of a fourth GPU are predicted. So the tests have other sizes, another library, another device.
set -eu
D=$CDMPP_DATA/llm/aic root=$PWD
B=$(cd "$B" && pwd)
mkdir -p "$W"
W=$(cd "$W" && pwd)

# GPU, its name in devices.yaml, the stack; rows of bfloat16 as our table. Half of the matrices is for training.
table() {
    xzcat "$D/$1/gemm.tsv.xz" | awk -F '\t' -v device="$2" -v stack="$3" -v half="$4" '
        BEGIN { print "OPName,Device,dtype,M,N,K,latency_ms" }
        NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        $c["gemm_dtype"] == "bfloat16" && index($c["stack"], stack) == 1 && (half == "all" || (int(($c["n"] * 7919 + $c["k"] * 104729) / 1000) % 2 == 0) == (half == "train")) {
            printf "linear,%s,bfloat16,%s,%s,%s,%.9g\n", device, $c["m"], $c["k"], $c["n"], 1000 * $c["latency_s"]
        }'
}
for g in a100_sxm:a100-sxm4-80gb h100_sxm:h100 l40s:l40s; do
    table "${g%:*}" "${g#*:}" trtllm train >"$W/train-${g%:*}.csv"
    table "${g%:*}" "${g#*:}" vllm test >"$W/vllm-${g%:*}.csv"
done
table rtx_pro_6000_server rtx-pro-6000-server trtllm all >"$W/rtx-trtllm.csv"
table rtx_pro_6000_server rtx-pro-6000-server vllm all >"$W/rtx-vllm.csv"
cat >"$W/llm.yaml" <<YAML
data:
  kind: operators
  files: [train-a100_sxm.csv, train-h100_sxm.csv, train-l40s.csv]
YAML
if [ ! -s "$W/llm.txt" ]; then
    (cd "$W" && "$B/cdmpp-train" llm.yaml --quiet -j "$JOBS" --out llm.cdmpp --set operators.seed="$SEED" \
        --set device.file="$root/configs/devices.yaml") >"$W/llm.tmp" || [ $? -eq 3 ]
    mv "$W/llm.tmp" "$W/llm.txt"
fi
ask() { # name, tables: the table of errors
    name=$1; shift
    "$B/cdmpp-predict" --operators --model "$W/llm.cdmpp" --devices configs/devices.yaml --eval "$@" >"$W/$name.jsonl" 2>"$W/$name.txt" || [ $? -eq 3 ]
    awk '/^[|]/' "$W/$name.txt" >"$W/$name.md"
}
ask vllm "$W"/vllm-*.csv
ask rtx "$W"/rtx-*.csv
# share inside of a table's last row ("all")
inside() { awk -F '|' '/\*\*all\*\*/ { v = $(NF - 1); n = $5 } END { gsub(/ /, "", v); gsub(/ /, "", n); printf "%s,%%,%s\n", v, n }' "$1"; }
put() { python3 -B scripts/results/figures.py put "$@"; }
TEST_SETS=llm-products put operators-llm "table:vllm=$W/vllm.md" "table:rtx=$W/rtx.md" \
    "figure:seen=$(inside "$W/vllm.md")" "figure:unseen=$(inside "$W/rtx.md")"
