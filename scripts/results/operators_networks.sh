#!/bin/sh
# operators_networks.sh -- whole networks on GPUs: end-to-end times of NeuSight's labels, predicted by cdmpp-replay: tables $W/net.*.md.
#
# Called by operators.sh.
# W holds label/ and summary/ (label_e2e.tar.xz) and the models all.cdmpp, mi100.cdmpp, mi210.cdmpp (each knows products of that GPU).
# Published errors: summary/nvidia_inf.csv, amd_inf.csv. Only networks that have both a label and a published error count.
set -eu
T=$(mktemp -d); trap 'rm -rf "$T"' EXIT

# model, label folder, form of the names: lines "folder mode network latency_s measured_s"
replay() {
    model=$1; folder=$2; mode=$3; set --
    for f in "$W/label/$folder"/*-"$mode"-*.csv; do
        case $f in *-fusion.csv | */switch*) continue ;; esac
        [ -f "${f%.csv}.json" ] && set -- "$@" --graph "$f"
    done
    [ $# -gt 0 ] || return 0
    "$B/cdmpp-replay" "$@" --cost-model "$W/$model.cdmpp" --devices configs/devices.yaml --device "$(echo "$folder" | tr _ ' ')" --json |
        sed -n 's/^[{]*"\([^"]*\)":.*"latency_s":\([0-9.e+-]*\),"low_s.*"measured_s":\([0-9.e+-]*\).*/\1 \2 \3/p' | sed "s/^/$folder $mode /"
}

for k in inf train; do
    tr -d '\r' <"$W/summary/nvidia_$k.csv" >"$T/nvidia_$k"
    tr -d '\r%' <"$W/summary/amd_$k.csv" >"$T/amd_$k"
done
for d in NVIDIA_H100_80GB_HBM3 NVIDIA_L4 NVIDIA_A100-PCIE-40GB Tesla_V100-PCIE-32GB Tesla_P100-PCIE-16GB Tesla_T4 Tesla_P4; do replay all $d inf; done >"$T/inf"
for d in AMD_Instinct_MI100 AMD_Instinct_MI210 AMD_Instinct_MI250; do replay all $d inf; done | sed 's/^\([^ ]*\)/\1:never/' >>"$T/inf"
replay mi210 AMD_Instinct_MI100 inf >>"$T/inf"
for d in AMD_Instinct_MI210 AMD_Instinct_MI250; do replay mi100 $d inf; done >>"$T/inf"
for d in NVIDIA_H100_80GB_HBM3 NVIDIA_L4 NVIDIA_A100_80GB_PCIe Tesla_V100-PCIE-32GB; do replay all $d train; done >"$T/train"
replay mi210 AMD_Instinct_MI100 train >>"$T/train"
for d in AMD_Instinct_MI210 AMD_Instinct_MI250; do replay mi100 $d train; done >>"$T/train"

# published[GPU, network, batch] of the files nvidia and amd, and of each line of ours the fields that name it.
cat >"$T/published.awk" <<'AWK'
function abs(x) { return x < 0 ? -x : x }
function read_published(file, row,    n, f, i, gpu, batch, name) {
    while ((getline line <file) > 0) {
        n = split(line, f, ",")
        if (n == 1 && f[1] != "") gpu = f[1]
        if (f[1] ~ /^Batch/) for (i = 2; i <= n; i++) batch[i] = f[i]
        if (row == "" ? f[1] ~ /^MI/ : f[1] == row)
            for (i = 2; i <= n; i++) {
                name = net[int((i - 2) / 2)]
                if (f[i] != "") published[(row == "" ? "AMD_Instinct_" f[1] : gpu), name, batch[i]] = f[i]
            }
    }
}
BEGIN {
    split("gpt2_large gpt3_xl opt_13 gpt3_27 switchxl4", net, " "); net[0] = "bert_large"
    read_published(nvidia, "NeuSight"); read_published(amd, "")
}
AWK

# Means by GPU; the factor of a network is the geometric mean of measured over predicted of the GPU's other networks, all batches of its own left out.
awk -v nvidia="$T/nvidia_inf" -v amd="$T/amd_inf" -v detail="$T/detail" "$(cat "$T/published.awk")"'
{
    split($3, f, "-"); gpu = $1; sub(/:.*/, "", gpu)
    if (!((gpu, f[1], f[4]) in published)) next
    if (!($1 in n)) order[++gpus] = $1
    k = ++n[$1]; name[$1, k] = f[1]; batch[$1, k] = f[4]; pred[$1, k] = $4; real[$1, k] = $5; theirs[$1, k] = published[gpu, f[1], f[4]]
}
END {
    for (g = 1; g <= gpus; g++) {
        d = order[g]; ours = left = pub = worst = 0
        for (k = 1; k <= n[d]; k++) {
            s = m = 0
            for (j = 1; j <= n[d]; j++) if (name[d, j] != name[d, k]) { s += log(real[d, j] / pred[d, j]); m++ }
            e = pred[d, k] / real[d, k] - 1; l = pred[d, k] * exp(m ? s / m : 0) / real[d, k] - 1
            ours += abs(e); left += abs(l); pub += theirs[d, k]; if (abs(e) > abs(worst)) worst = e
            if (d !~ /:/) printf "| %s | %s | %s | %.1f | %.1f | %+.1f | %+.1f | %.1f |\n", d, name[d, k], batch[d, k], 1e3 * real[d, k], 1e3 * pred[d, k], 100 * e, 100 * l, theirs[d, k] >detail
        }
        label = d; sub(/:never/, ", no products of AMD", label); gsub(/_/, " ", label)
        printf "| %s | %d | %.1f | %+.1f | %.1f | %.1f |\n", label, n[d], 100 * ours / n[d], 100 * worst, 100 * left / n[d], pub / n[d]
        if (d ~ /H100|_L4|A100|V100|_T4/) { five++; a += 100 * ours / n[d]; b += 100 * left / n[d]; c += pub / n[d] }
    }
    printf "| **mean of H100, L4, A100, V100, T4** | %d | %.1f | | %.1f | %.1f |\n", five, a / five, b / five, c / five
}' "$T/inf" >"$T/table"

{
    echo '| GPU | n | ours | worst | with a factor of other networks | NeuSight |'
    echo '| --- | --: | --: | --: | --: | --: |'
    cat "$T/table"
} >"$W/net.means.md"
{
    echo '| GPU | network | batch | measured | predicted | error | with factor | NeuSight, absolute |'
    echo '| --- | --- | --: | --: | --: | --: | --: | --: |'
    cat "$T/detail"
} >"$W/net.main.md"
{
    echo '| GPU | n | mean error | bias | NeuSight |'
    echo '| --- | --: | --: | --: | --: |'
    awk -v nvidia="$T/nvidia_train" -v amd="$T/amd_train" "$(cat "$T/published.awk")"'
    { split($3, f, "-"); if (!(($1, f[1], f[4]) in published)) next
      e = $4 / $5 - 1; if (!($1 in n)) o[++k] = $1; n[$1]++; s[$1] += e; a[$1] += abs(e); p[$1] += published[$1, f[1], f[4]] }
    END { for (i = 1; i <= k; i++) { d = o[i]; l = d; gsub(/_/, " ", l); printf "| %s | %d | %.1f | %+.1f | %.1f |\n", l, n[d], 100 * a[d] / n[d], 100 * s[d] / n[d], p[d] / n[d] } }' "$T/train"
} >"$W/net.train.md"
{
    echo '| GPUs | batch | parallel | measured | predicted | error | NeuSight, absolute |'
    echo '| --- | --: | --- | --: | --: | --: | --: |'
    # device, GB/s of its NVLink, batch, plan, and the column of summary/distributed.csv; those whose traces are in the data
    for c in "a100-sxm4 300 4 data:4 4" "a100-sxm4 300 4 tensor:4 5" "a100-sxm4 300 4 pipeline:4x1 6" \
    "h100 450 4 data:4 7" "h100 450 4 tensor:4 8" "h100 450 4 pipeline:4x1 9" "h100 450 16 data:4 7"; do
    # shellcheck disable=SC2086 # columns
    set -- $c
    # the measured milliseconds, and NeuSight's error from the line below
    c="$1 $2 $3 $4 $(tr -d '\r' <"$W/summary/distributed.csv" | awk -F, -v batch="$3" -v col="$5" '
        $1 != "" { net = $1 } net == "GPT2-Large" && $2 == batch { measured = $col; getline; gsub(/.*\(|%\).*/, "", $col); print measured, $col }')"
    b=$3; [ "$4" = data:4 ] && b=$((b / 4))
    "$B/cdmpp-replay" --graph "$W/label/NVIDIA_H100_80GB_HBM3/gpt2_large-train-1024-$b.csv" --cost-model "$W/all.cdmpp" --devices configs/devices.yaml \
        --device "$1" --parallel "$4" --link-gbs "$2" --link-us 5 --json |
        sed -n 's/.*"parallel":{"plan":"[^"]*","latency_s":\([0-9.e+-]*\).*/\1/p' |
        awk -v c="$c" '{ split(c, f, " "); printf "| %s | %s | %s | %s | %.1f | %+.1f | %s |\n", f[1], f[3], f[4], f[5], 1e3 * $1, 100 * (1e3 * $1 / f[5] - 1), f[6] }'
done
} >"$W/net.parallel.md"
