#!/bin/sh
# quickstart.sh -- from a fresh checkout to a prediction: build, extract the carried
# sample, train, test, predict records held out of the sample, write a report.
#
# The default cost model lands in $B/models, everything else in $B and build/quickstart. Called by `make quickstart`, which
# has installed what was missing.
set -eu
cd "$(dirname "$0")/.."
. scripts/tied.sh
B=${B:-build/release} W=build/quickstart S=examples/zen5
tasks=$S/zen5.tasks.json.xz held=$S/held_out.json line=13 # a convolution; any line will do
unset MAKEFLAGS MFLAGS
t0=$(date +%s)
mkdir -p "$W"

say() { printf '\n== %s\n' "$*"; }
run() { echo "\$ $*"; $tied "$@"; }

say "1. build"
$tied make --no-print-directory -j"$(nproc)" B="$B" all >"$W/build.log" 2>&1 || { tail -n 40 "$W/build.log"; exit 1; }
echo "$B/cdmpp-extract, cdmpp-train, cdmpp-predict; $(($(date +%s) - t0)) s"

say "2. measure logs to features (17 networks on an AMD EPYC, see $S/README.md)"
# 3: some records were rejected, as TVM rejects them; they are listed beside the file
run "$B/cdmpp-extract" -q --restart --tasks "$tasks" --out "$W/sample.h5" "$S/measure_records" || [ $? -eq 3 ]
if [ -f "$W/sample.h5.skipped.tsv" ]; then
    echo "$(wc -l <"$W/sample.h5.skipped.tsv") records give no features: $W/sample.h5.skipped.tsv"
fi

say "3. train: schedules never seen of tasks that are known"
run "$B/cdmpp-train" configs/quickstart.yaml --quiet --out "$W/record.cdmpp" --report "$W/report.html" | tee "$W/record.txt"

say "4. train again: tasks never seen"
run "$B/cdmpp-train" configs/quickstart.yaml --quiet --set split.kind=task --out "$W/task.cdmpp" --report "$W/report_task.html" | tee "$W/task.txt"

say "5. predict $(wc -l <$held) records that are in neither"
echo "\$ $B/cdmpp-predict --cost-model $W/record.cdmpp --tasks $tasks --eval $held"
"$B/cdmpp-predict" --cost-model "$W/record.cdmpp" --tasks "$tasks" --eval "$held" >"$W/held_out.jsonl"
sed -n "${line}p" "$W/held_out.jsonl"

say "6. the program of that record"
echo "\$ $B/cdmpp-extract --tasks $tasks --print $held:$line"
"$B/cdmpp-extract" --tasks "$tasks" --print "$held:$line" >"$W/nest.txt"
cut -c 1-140 "$W/nest.txt"

say "7. the default cost model, and a network of which only the shapes are known"
run make --no-print-directory -s B="$B" model
run "$B/cdmpp-replay" --network examples/resnet18.onnx

say "done in $(($(date +%s) - t0)) s; reports: $W/report.html (schedules), $W/report_task.html (tasks)"
