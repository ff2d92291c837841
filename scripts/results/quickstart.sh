#!/bin/sh
# quickstart.sh -- what `make quickstart` prints of its models, for README: stage quickstart (called by run.sh).
set -eu
e=examples/zen5
[ -f "$W/sample.h5" ] || "$B/cdmpp-extract" -q --tasks $e/zen5.tasks.json.xz --out "$W/sample.h5" $e/measure_records || [ $? -eq 3 ]
train() { "$B/cdmpp-train" configs/quickstart.yaml --quiet -j "$JOBS" --set data.files="$W/sample.h5" --set split.kind="$1" --out "$W/$1.cdmpp" | sed -n '/^test (/p' >"$W/$1.txt"; }
train record
train task
"$B/cdmpp-predict" --cost-model "$W/record.cdmpp" --tasks $e/zen5.tasks.json.xz --eval $e/held_out.json >"$W/held_out.jsonl" 2>"$W/held_out.err"
grep 'evaluation (' "$W/held_out.err" >"$W/held_out.txt"
head -n 13 $e/held_out.json | tail -n 1 | "$B/cdmpp-predict" -q --cost-model "$W/record.cdmpp" --tasks $e/zen5.tasks.json.xz --eval - 2>/dev/null >"$W/answer.txt"
mape() { sed -n 's/.*n=\([0-9]*\),.*MAPE \([0-9.]*\) %.*/\2,%,\1/p' "$W/$1.txt"; }
python3 -B scripts/results/figures.py put quickstart "figure:record=$(mape record)" "figure:task=$(mape task)" "figure:held_out=$(mape held_out)" \
    "text:record=$W/record.txt" "text:task=$W/task.txt" "text:held_out=$W/held_out.txt" "text:answer=$W/answer.txt"
