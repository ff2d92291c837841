#!/bin/sh
# operators_llm.sh -- intervals on tables of other people: bfloat16 products of TensorRT-LLM and vLLM on four GPUs, TVM's operators on six (called by run.sh).
#
# TensorRT-LLM's products on three GPUs train, of half of the weight matrices (by a checksum of n and k). The other half, measured by vLLM
# on the same GPUs, and all products of a fourth GPU are predicted. So the tests have other sizes, another library, another device. The same model
# is asked for batched products, a class that it was not trained on. TVM's elementwise operators on three hosts train a model that is asked for other hosts.
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
# bfloat16 products before and after a latent decode: heads times (tokens, 128) by (128, 512), or (tokens, 512) by (512, 128)
for g in a100_sxm:a100-sxm4-80gb h100_sxm:h100 l40s:l40s rtx_pro_6000_server:rtx-pro-6000-server; do
    xzcat "$D/${g%:*}/mla_bmm.tsv.xz" | awk -F '\t' -v device="${g#*:}" '
        BEGIN { print "OPName,Device,dtype,B,M,N,K,latency_ms" }
        NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        $c["bmm_dtype"] == "bfloat16" {
            n = $c["op_name"] == "mla_gen_pre" ? 128 : 512
            printf "bmm,%s,bfloat16,%s,%s,%d,%d,%.9g\n", device, $c["num_heads"], $c["num_tokens"], n, 640 - n, 1000 * $c["latency_s"]
        }'
done | awk 'NR == 1 || !/^OPName/' >"$W/batched.csv"
python3 -B scripts/results/scale_table.py batches "$CDMPP_DATA/op-curves/op_curves.tsv.xz" "$W"
cat >"$W/curves.yaml" <<YAML
data:
  kind: operators
  files: [train.csv]
YAML
train() { # name
    [ ! -s "$W/$1.txt" ] || return 0
    (cd "$W" && "$B/cdmpp-train" "$1.yaml" --quiet -j "$JOBS" --out "$1.cdmpp" --set operators.seed="$SEED" \
        --set device.file="$root/configs/devices.yaml") >"$W/$1.tmp" || [ $? -eq 3 ]
    mv "$W/$1.tmp" "$W/$1.txt"
}
train llm
train curves
ask() { # model, name, tables: the table of errors
    model=$1; name=$2; shift 2
    "$B/cdmpp-predict" --operators --model "$W/$model.cdmpp" --devices configs/devices.yaml --eval "$@" >"$W/$name.jsonl" 2>"$W/$name.txt" || [ $? -eq 3 ]
    awk '/^[|]/' "$W/$name.txt" >"$W/$name.md"
}
ask llm vllm "$W"/vllm-*.csv
ask llm rtx "$W"/rtx-*.csv
ask llm batched "$W/batched.csv"
ask curves tvm "$W/test.csv"
# share inside of a table's last row of the kind (2: **trained on** or **unseen**)
inside() { awk -F '|' -v of="${2:-}" '/\*\*all\*\*/ && index($0, of) { v = $(NF - 1); n = $5 } END { gsub(/ /, "", v); gsub(/ /, "", n); printf "%s,%%,%s\n", v, n }' "$1"; }
put() { python3 -B scripts/results/figures.py put "$@"; }
TEST_SETS=llm-products put operators-llm "table:vllm=$W/vllm.md" "table:rtx=$W/rtx.md" \
    "figure:seen=$(inside "$W/vllm.md")" "figure:unseen=$(inside "$W/rtx.md")"
TEST_SETS="llm-batched curve-devices" put operators-other "table:batched=$W/batched.md" "table:tvm=$W/tvm.md" \
    "figure:batched=$(inside "$W/batched.md" '**unseen**')" "figure:tvm-unseen=$(inside "$W/tvm.md" '**unseen**')" \
    "figure:tvm-seen=$(inside "$W/tvm.md" '**trained on**')"
