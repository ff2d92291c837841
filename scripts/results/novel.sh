#!/bin/sh
# What no training row has: a GPU, library, kernel, type or operator of language models is held out of everything, one value after another, and its rows are asked
# (called by run.sh). scripts/results/novel.py says how rows are drawn. The intervals come from the same experiments inside of each training, which never saw the value.
# DRAWS: other rows of the same tables, one set of experiments each; ONLY: what is held out, as "dtype library".
set -eu
: "${W:?}" "${CDMPP_DATA:?}"
root=$(pwd) D=$CDMPP_DATA/llm/aic
B=$(cd "${B:-build/release}" && pwd)
mkdir -p "$W"
W=$(cd "$W" && pwd)
py="python3 -B scripts/results/novel.py"
for draw in ${DRAWS:-2}; do
    O=$W/$draw
    [ -s "$O/values" ] || $py split "$D" "$O" "$draw" "${CAP:-60}"
    n=0
    while IFS='	' read -r what value; do
        n=$((n + 1))
        case " ${ONLY:-GPU library kernel dtype operator} " in *" $what "*) ;; *) continue ;; esac
        E=$O/$n
        [ ! -s "$E/done" ] || continue
        mkdir -p "$E"
        printf '%s\t%s\n' "$what" "$value" >"$E/what"
        $py hold "$O" "$what" "$value" "$E"
        if [ -d "$E/ask" ]; then
            printf 'data:\n  kind: llm_operators\n  files: [%s/train]\n' "$E" >"$E/model.yaml"
            "$B/cdmpp-train" "$E/model.yaml" --quiet -j "${JOBS:-2}" --out "$E/model.cdmpp" --set operators.rounds="${ROUNDS:-60}" --set operators.max_depth=6 \
                --set operators.eta=0.15 --set operators.calibration_rows="${ROWS:-360}" --set device.file="$root/configs/devices.yaml" >"$E/train.txt" || [ $? -eq 3 ]
            find "$E/ask" -name '*.tsv' | sort | while read -r t; do
                "$B/cdmpp-predict" --operators --cost-model "$E/model.cdmpp" --devices configs/devices.yaml --eval "$t" 2>/dev/null </dev/null || [ $? -eq 3 ]
            done >"$E/answers"
        fi
        rm -rf "$E/train" "$E/ask"
        echo done >"$E/done"
    done <"$O/values"
    $py sum "$O" >"$O/figures"
done
set -- ${DRAWS:-2}
# shellcheck disable=SC2046 # a figure a line, no blanks
python3 -B scripts/results/figures.py put llm-novel "table:main=$W/$1/table.md" $(cat "$W/$1/figures")
