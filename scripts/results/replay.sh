#!/bin/sh
# replay.sh -- predicted networks beside measured ones: figures of the stages replay-e2e, -roller and -alone (called by run.sh).
#
# Unpacks tenset-cpu and gpu-ansor into $W, trains seven models there (an hour on one busy core; kept, so a run that was stopped goes on),
# replays TVM's measured networks and those of Roller.
set -eu
D=$CDMPP_DATA root=$PWD
B=$(cd "$B" && pwd)
mkdir -p "$W/zen5" "$W/v100"
W=$(cd "$W" && pwd)
[ -d "$W/zen5/measure_records" ] || tar -xJf "$D/tenset-cpu/records.tar.xz" -C "$W/zen5"
[ -d "$W/v100/measure_records" ] || tar -xJf "$D/gpu-ansor/v100.tar.xz" -C "$W/v100"
ZT=$D/tenset-cpu/network_info; ZR=$W/zen5/measure_records; VT=$D/gpu-ansor/network_info; VR=$W/v100/measure_records/v100

extract() { # data set, tasks, records
    [ -f "$W/$1.h5" ] || { h5=$1; shift; "$B/cdmpp-extract" --quiet -j "$JOBS" --out "$W/$h5.h5" --tasks "$@" || [ $? -eq 3 ]; }
}
train() { # model, configuration, data set, options
    name=$1; config=$2; data=$3; shift 3
    [ -f "$W/$name.cdmpp" ] || "$B/cdmpp-train" "configs/$config" --quiet -j "$JOBS" --out "$W/$name.cdmpp" --set data.files="$W/$data.h5" \
        --set device.file="$root/configs/devices.yaml" --set split.seed="$SEED" --set model.tuner=false --set model.folds=3 "$@" >"$W/$name.txt"
    echo "replay: $name done" >&2
}
replay() { # answers, options
    out=$1; shift
    "$B/cdmpp-replay" --quiet --json --measured "$@" >"$W/$out.json" || [ $? -eq 3 ]
}
# 0.64 us between two programs: a network of the same machine that is not asked about (docs/results/replay-accuracy.md).
roller() {
    out=$1; shift
    replay "$out" --graph "$W/roller/roller.json" --tasks "$W/roller/roller.tasks.json" --records "$W/roller/roller.log" --device v100 \
        --trials 4096 --cache "$W/books" --gap-us 0.64 --allow-missing --cost-model "$W/v100.cdmpp" "$@"
}
# Roller's networks as graphs of tasks, with the set's schedules: roller.json, roller.tasks.json, roller.log.
roller_graphs() {
    mkdir -p "$W/roller"
    scripts/roller_onnx.py "$W/roller"
    "$B/cdmpp-extract" --tasks "$VT" --write-tasks >"$W/roller/set.json"
    for n in resnet_50 nasnet_large lstm; do
        "$B/cdmpp-profile" --list-tasks --model-source onnx --network "$W/roller/$n.onnx" --target cuda --out-tasks "$W/roller/$n.tasks.json" >/dev/null
        "$B/cdmpp-replay" --quiet --json --network "$W/roller/$n.onnx" --device v100 --cost-model "$W/v100.cdmpp" --trials 1 --cache '' \
            --allow-missing --save-graph "$W/roller/$n.graph.json" >/dev/null
    done
    scripts/roller_networks.py "$W/roller/set.json" "$VR" "$W/roller"
}

# Programs alone, of tasks whose best measured record is known: by schedules of others, by candidates of models that never saw them.
task_alone() { scripts/own_candidates.py "$1" "$W/roller/set.json" "$VR" "$VT/tasks.json" "$2" >"$W/one.graph.json"; }
one() { out=$1; model=$2; shift 2; replay "one.$out" --graph "$W/one.graph.json" --tasks "$VT" --device v100 --issue-us 0 --allow-missing --cost-model "$model" "$@"; }

# Our own records of other processors, without the tasks of e2e.json's networks, and of ours of the same name at any size.
beside() {
    mkdir -p "$W/beside/$1"
    xz -dc examples/granite/e2e.keys.xz >"$W/e2e.keys"
    for f in "examples/$2/measure_records/$1"/*; do xz -dcf "$f"; done | awk -v keys="$W/e2e.keys" '
        BEGIN { while ((getline k < keys) > 0) { gsub(/\\/, "&&", k); gsub(/"/, "\\\"", k); known[k] = 1 } }
        match($0, /\[\["(\\.|[^"\\])*"/) && !(substr($0, RSTART + 3, RLENGTH - 4) in known)' >"$W/beside/$1/records.json"
}

extract zen5 "$ZT" "$ZR/zen5-avx512" "$ZR/zen5-avx2"
beside granite-rapids granite
beside zen4 zen4
extract beside examples/granite/granite.tasks.json.xz --tasks examples/zen4/zen4.tasks.json.xz "$W/beside"
extract v100 "$VT" "$VR"
NETS='[resnet_18, squeezenet_v1.1, mobilenet_v3, mnasnet_1.0, shufflenet_v2, dcgan, lstm, dqn, mlp]'
train record zen5.yaml zen5 --set split.kind=record
train network zen5.yaml zen5 --set split.kind=network --set split.test_names="$NETS" --set model.fold_by=network
train cross zen5.yaml zen5 --set split.kind=network --set split.test_names="$NETS" --set model.fold_by=network \
    --set data.files="[$W/zen5.h5, $W/beside.h5]"
# The sample is drawn by another seed than the split: by the same the split finds nothing but small numbers left.
train v100 v100.yaml v100 --set split.kind=record --set data.seed=5 --set filter.max_per_task=100 --set model.members='[rows, program]' \
    --set train.rounds=300

mkdir -p "$W/e2e"
COMMON="--tasks $ZT --records $ZR/zen5-avx512 --device zen5-avx512" python3 -B scripts/results/replay_table.py e2e "$D/tenset-cpu/e2e.json" "$W/e2e" \
    "measured times of the records=--from-records" "predicted, split by record=--cost-model $W/record.cdmpp" \
    "predicted, none of these networks in training=--cost-model $W/network.cdmpp" "the same, other processors beside=--cost-model $W/cross.cdmpp" >"$W/e2e.md"
awk -v w="$W" 'BEGIN { f = w "/e2e.main.md" } /^$/ { f = w "/e2e.means.md"; next } { print >f }' "$W/e2e.md"
roller_graphs
roller rrecords --from-records
roller rmodel
task_alone donors "$W/roller/donors.log"
one donors "$W/v100.cdmpp" --records "$W/roller/donors.log"
for s in 1 2 3; do
    train unseen$s v100.yaml v100 --set split.kind=task --set split.seed=$s --set data.seed=5 --set filter.max_per_task=100 \
        --set model.members='[rows, program]' --set train.rounds=300
    "$B/cdmpp-predict" --model "$W/unseen$s.cdmpp" --info --json >"$W/unseen$s.info"
    task_alone unseen "$W/unseen$s.info"
    one unseen "$W/unseen$s.cdmpp" --trials 4096 --cache "$W/books"
    mv "$W/one.unseen.json" "$W/one.unseen$s.json"
done

put() { python3 -B scripts/results/figures.py put "$@"; }
python3 -B scripts/results/replay_table.py roller "measured times of the records=$W/rrecords.json" "predicted=$W/rmodel.json" >"$W/roller.md"
scripts/own_candidates.py table "steps of another task=$W/one.donors.json" "unseen, candidates=$W/one.unseen1.json,$W/one.unseen2.json,$W/one.unseen3.json" >"$W/alone.md"
TEST_SETS=e2e-networks put replay-e2e "table:main=$W/e2e.main.md" "table:means=$W/e2e.means.md"
TEST_SETS=roller-networks put replay-roller "table:main=$W/roller.md"
TEST_SETS='' put replay-alone "table:main=$W/alone.md"
