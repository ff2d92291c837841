#!/bin/sh
# results.sh -- write docs/results.md: XGBoost on every data set x split.
#
#   CDMPP_DATA=../shared/data scripts/results.sh [SET...]    (default: cpu v100 k80 mi50)
#
# Unpacks and extracts each set once into build/results, trains there, and puts
# the figures of validation and test, each with its n, into one table. SEED=2
# draws other parts; JOBS and OUT as the names say.
set -eu
cd "$(dirname "$0")/.."
D=${CDMPP_DATA:?set CDMPP_DATA to the folder with tenset-cpu and gpu-ansor}
B=${B:-build/release}; W=${W:-build/results}; JOBS=${JOBS:-$(nproc)}; SEED=${SEED:-1}; OUT=${OUT:-docs/results.md}
mkdir -p "$W" "$(dirname "$OUT")"
[ $# -gt 0 ] || set -- cpu v100 k80 mi50

# archive and tasks of a set
place() {
    case $1 in
    cpu) echo "$D/tenset-cpu/records.tar.xz $D/tenset-cpu/network_info" ;;
    v100 | k80 | mi50) echo "$D/gpu-ansor/$1.tar.xz $D/gpu-ansor/network_info" ;;
    *) echo "results: unknown set $1" >&2; exit 2 ;;
    esac
}

extract() {
    [ -f "$W/$1.h5" ] && return
    read -r tar tasks <<EOF
$(place "$1")
EOF
    mkdir -p "$W/x_$1"
    tar -xJf "$tar" -C "$W/x_$1"
    # 3: some records were rejected, as TVM rejects them; they are listed beside the file
    "$B/cdmpp-extract" -q -j "$JOBS" --tasks "$tasks" --out "$W/$1.h5" "$W/x_$1/measure_records" || [ $? -eq 3 ]
    rm -rf "$W/x_$1"
}

# number KEY of the figures in $json, times FACTOR with DIGITS digits; - where null
get() {
    printf '%s' "$json" | tr ',{}' '\n\n\n' | awk -F: -v k="\"$1\"" -v f="$2" -v d="$3" \
        '$1 == k { if ($2 == "null") print "-"; else printf "%.*f\n", d, f * $2; exit }'
}

row() { # set, label of the split, part, file with the training's JSON
    json=$(grep -o "\"$3\":{\"n\":[^}]*}" "$4" | sed 's/^"[a-z]*"://')
    echo "| $1 | $2 | $3 | $(get n 1 0) | $(get mape 100 1) | $(get median_ape 100 1) | $(get rmse_s 1000 2) | $(get rmse_log 1 3) |" \
        "$(get within_5 100 1) / $(get within_10 100 1) / $(get within_20 100 1) | $(get spearman 1 3) | $(get pairwise 100 1) |" \
        "$(get top1 1 3) / $(get top5 1 3) |"
}

train() { # set, label, further options
    set_=$1; label=$2; shift 2
    f="$W/$set_.$(echo "$label" | tr -c 'a-z0-9_\n' -)"
    "$B/cdmpp-train" configs/results.yaml --quiet --json -j "$JOBS" --out "$f.cdmpp" --set data.files="$W/$set_.h5" \
        --set split.seed="$SEED" "$@" >"$f.json"
    echo "results: $set_, $label done" >&2
    for p in train validation test; do row "$set_" "$label" $p "$f.json"; done >>"$W/table"
}

: >"$W/table"
for s in "$@"; do
    extract "$s"
    train "$s" record --set split.kind=record
    case $s in
    cpu)
        train "$s" task --set split.kind=task
        train "$s" network --set split.kind=network ;;
    *)  # hundreds of records a task: leaves of fewer would know tasks by heart (learner/README.md)
        leaf=train.min_child_weight=300
        train "$s" task --set split.kind=task --set $leaf
        # four networks only: name the one held out
        for n in resnet_50 bert_large; do
            train "$s" "network $n" --set split.kind=network --set split.test_names="$n" --set $leaf
        done ;;
    esac
done

{
    cat <<EOF
# XGBoost on the reference data sets

Written by \`make results\` (scripts/results.sh, seed $SEED) with $("$B/cdmpp-train" --version),
XGBoost $(grep -ho '"xgboost":"[^"]*"' "$W"/*.json | head -1 | cut -d'"' -f4), configuration \`configs/results.yaml\`. Sets: cpu = zen5-avx512 and zen5-avx2
(\`tenset-cpu\`), v100, k80, mi50 (\`gpu-ansor\`), all records, extracted by \`cdmpp-extract\`; failed
measurements and rejected programs are left out. The same row again:

    cdmpp-train configs/results.yaml --set data.files=SET.h5 --set split.kind=KIND --out SET.cdmpp

(GPU sets by task and network: also \`--set train.min_child_weight=300\`; network: \`--set split.test_names=NAME\`.)

Split: *record* holds out schedules of known tasks, *task* whole tasks, *network* all tasks of a network
(cpu: three networks drawn by the seed; GPUs: the one named), also where another network has them.
Within a training, rounds and the mix of the two forms of trees are decided on the validation part and the
test part is read once, for these figures. The input forms, the loss and the leaf size were chosen before, on
validation parts of other draws of the same sets (learner/README.md); those draws trained and validated on programs
that are in the test parts here, so the figures are somewhat optimistic as an estimate for new data. MAPE, median and shares in %, RMSE in ms, RMSE(log) natural; Spearman,
pairwise (%) and top-1 / top-5 are per task and device (learner/metric.h). "-": no task has enough programs.

One draw of each split; held-out tasks differ much between draws. The cpu set has 912 programs on both targets, so
its record split can put a program in one part and its twin in another. On the GPUs bert_large has matmul and
reduction layers only and the other three networks have neither: that split asks for operators never seen.

| set | split | part | n | MAPE | median | RMSE ms | RMSE(log) | within 5 / 10 / 20 % | Spearman | pairwise | top-1 / top-5 |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | --- |
EOF
    cat "$W/table"
} >"$OUT.tmp"
mv "$OUT.tmp" "$OUT"
echo "results: $OUT" >&2
