#!/bin/sh
# quickstart.sh -- from a fresh checkout to first answers: build, the latency of a network and of a language model by
# the models that come with the program, then a training on the carried sample. Called by `make quickstart`, which has
# installed what was missing. Everything lands in $B and build/quickstart.
set -eu
cd "$(dirname "$0")/.."
. scripts/tied.sh
. scripts/progress.sh
B=${B:-build/release} W=build/quickstart S=examples/zen5
tasks=$S/zen5.tasks.json.xz held=$S/held_out.json
unset MAKEFLAGS MFLAGS
t0=$(date +%s)
mkdir -p "$W"
trap progress_end EXIT

say() { printf '\n== %s\n' "$*"; }
run() { echo "\$ $*"; $tied "$@"; }

say "1. build"
all=$(find base features dataset profiler learner predictor -name '*.c' | wc -l)
compiled() { grep -c '^  CC ' "$W/build.log"; }
: >"$W/build.log"
progress_begin "build: files" compiled "$all"
$tied make --no-print-directory -j"$(nproc)" B="$B" all >"$W/build.log" 2>&1 || { progress_end; tail -n 40 "$W/build.log"; exit 1; }
progress_end
echo "$B/cdmpp-*, $(($(date +%s) - t0)) s"

say "2. a network: how long it takes on this machine"
run "$B/cdmpp-replay" --network examples/resnet18.onnx

say "3. a language model: how long a GPU takes that need not be here"
run "$B/cdmpp-replay" --llm examples/serving/llama-3.1-8b.json --gpu h100 --concurrency 1,16 >"$W/llm.txt"
sed '/^memory of/,$d' "$W/llm.txt"
echo "first answers after $(($(date +%s) - t0)) s"

say "4. a model of your own: train on measured programs of an AMD EPYC ($S/README.md), test on programs that it never saw"
# 3: some records were rejected, as TVM rejects them; they are listed beside the file
run "$B/cdmpp-extract" --restart --tasks "$tasks" --out "$W/sample.h5" "$S/measure_records" || [ $? -eq 3 ]
run "$B/cdmpp-train" configs/quickstart.yaml --out "$W/record.cdmpp" --report "$W/report.html"
echo "\$ $B/cdmpp-predict --cost-model $W/record.cdmpp --tasks $tasks --eval $held"
$tied "$B/cdmpp-predict" --cost-model "$W/record.cdmpp" --tasks "$tasks" --eval "$held" >"$W/held_out.jsonl"

say "done in $(($(date +%s) - t0)) s"
cat <<END
cdmpp is built, and has estimated a network and a language model with the models that it carries.
It has also trained a model on measured programs; how far off that one is on others: $W/report.html
Each answer has a 90 % interval: in nine of ten cases the measured time is in it.

What now:
  your network          $B/cdmpp-replay --network YOUR.onnx
  your machine          $B/cdmpp-tune calibrate            (5 minutes: measures programs here and corrects the model by them)
  your language model   $B/cdmpp-replay --llm YOUR/config.json --gpu h100
  your logs             $B/cdmpp-extract --help            (docs/guide/logs-to-model.md)
END
