# files in which one value is wrong: what each command says of it. Every value becomes -1, then a word
. "$T/lib.sh"
unset CDMPP_MODELS
# The file $1 with its value number $2 as $3: what stands behind ": ", "[" or ", " of JSON and YAML, and the fields of a CSV.
wrong() {
    awk -v k="$2" -v v="$3" -v csv="$4" '
    BEGIN { value = csv ? "(^|,)[^,]*" : "(:|,|[[]) *(-?[0-9][0-9.e+-]*|\"[^\"]*\"|[a-z_]+)"; before = csv ? "^,?" : "^(:|,|[[]) *" }
    {
        out = ""
        while (match($0, value)) {
            field = substr($0, RSTART, RLENGTH)
            rest = substr($0, RSTART + RLENGTH)
            out = out substr($0, 1, RSTART - 1)
            match(field, before)
            if (rest !~ /^ *:/ && ++n == k) field = substr(field, 1, RLENGTH) v
            out = out field
            $0 = rest
            if (rest == "") break
        }
        print out $0 } END { exit n < k }' "$1"
}
# each NAME CSV FILE COMMAND...: the command with "bad" for each wrong file; how many were refused, and a digest of all that was said.
each() {
    name=$1 csv=$2 file=$3
    shift 3
    : >said
    k=0
    while k=$((k + 1)); wrong "$file" $k -1 "$csv" >bad; do
        for v in -1 '"x"'; do
            [ $v = -1 ] || wrong "$file" $k "$v" "$csv" >bad
            "$@" >out 2>err
            echo "$k $v: $? $(head -n 2 err)" >>said
        done
    done
    echo "$name: $((k - 1)) values, $(grep -vc ': 0 ' said) refused, $(sed -e "s|$ROOT/||g" said | rounded | cksum | cut -d ' ' -f 1)"
    sed -n 's/^[0-9]* .*: [0-9]* cdmpp-[a-z]*: error: //p' said | head -n 3
}
cat >graph.json <<'X'
{"schema": "cdmpp.netgraph", "version": 1, "networks": [
 {"name": "net", "batch": 3, "device": "v100", "measured_s": 0.0171, "nodes": [
  {"name": "in", "kind": "free", "write_bytes": 1100000},
  {"name": "a", "op": "Conv", "kind": "given", "given_s": 1.1e-3, "write_bytes": 2200000, "read_bytes": 1500000, "weight_bytes": 410000, "flop": 7.3e9, "after": ["in"], "repeat": 2},
  {"name": "b", "kind": "library", "question": {"op": "linear", "dtype": "float32", "b": 1, "m": 64, "n": 32, "k": 16}, "given_s": 4e-5, "phase": "backward", "after": ["a"]}]}]}
X
each graph '' graph.json cdmpp-replay --graph bad --replay-given
cat >machine.json <<'X'
{"cdmpp_machine": 1, "devices": [
  {"name": "cpu0", "kind": "cpu", "core": 0, "target": "llvm -mcpu=core-avx2", "as": "xeon", "launch_s": 2e-7, "sync_s": 1e-6},
  {"name": "t4", "kind": "model", "as": "t4", "scale": 1.5, "memory": 2, "mem_gb": 16, "launch_s": 5e-6, "sync_s": 1e-5}],
 "links": [
  {"from": "cpu0", "to": "t4", "how": "write", "n": 30, "noise": 0.04, "pieces": [[0, 4e-6, 2e-11], [1048576, 2.497152e-5, 1e-10]]}],
 "contention": {"peak_bytes_per_s": 1.2e10, "beside": 1.02, "turn": 2.01, "pairs": 21, "error": 0.05}}
X
each machine '' machine.json cdmpp-partition link show bad
cp "$ROOT/tests/golden/model_v1.cdmpp" model.cdmpp # the plan names the model: without the path of this clone
cdmpp-partition -q --network matmul-matmul-add --cost-model model.cdmpp --as zen5-avx2 --trials 1 --min-us 0 --margin 0 --save-plan plan.json >/dev/null
each plan '' plan.json cdmpp-partition -q --network matmul-matmul-add --plan bad
cat >space.yaml <<'X'
tune: {trials: 9, budget: train.rounds, min_budget: 2, max_budget: 18}
space:
  train.eta: {log_real: [0.05, 0.5]}
  train.max_depth: {int: [2, 8]}
  train.loss: {choice: [squared, mape]}
X
each space '' space.yaml cdmpp-train --autotune bad --set data.files=x.h5 --print-config
cat >config.yaml <<'X'
data: {files: a.h5, devices: [v100, t4]}
split: {kind: task, valid: 0.1, test: 0.2, seed: 3}
filter: {min_per_task: 3, max_std_ratio: 0.5}
model: {members: [rows, mlp], folds: 2}
train: {rounds: 20, eta: 0.1, max_depth: 5, loss: squared}
X
each config '' config.yaml cdmpp-train bad --print-config
echo '{"schema":"cdmpp.fusion_rules/1","backend":"cpu","rules":[{"first":"Conv","second":"Relu","fused":true},{"first":"Relu","second":"*","fused":false}]}' >rules.json
each fusion '' rules.json cdmpp-profile --list-tasks --network conv2d --fusion-rules bad
echo "--- tables"
printf 'query,seconds,low_s,high_s,deadline_s,bytes,weight\nresnet,0.010,0.009,0.0115,0.05,1e8,2\nbert,0.020,0.018,0.024,0.12,2e7,1\n' >q.csv
each queries 1 q.csv cdmpp-partition qos --runs 1 --queries 5 bad
printf 'operator,cpu,gpu,transfer:gpu\nconv1,4e-3,1e-3,2e-4\nnms,5e-4,,\n' >o.csv
each games 1 o.csv cdmpp-partition equilibrium bad
printf 'operator,threads,seconds,bytes\na,1,8e-3,60e6\na,2,4.2e-3,60e6\nb,1,9e-3,10e6\n' >t.csv
each together 1 t.csv cdmpp-partition together --threads 2 bad
printf 'operator,tasks,seconds,after\na,7,1.1e-5,\nb,6,1.3e-5,a\n' >p.csv
each pack 1 p.csv cdmpp-partition pack --units 2 bad
printf 'bytes,seconds\n602112,1.9e-5\n1204224,8.2e-5\n2408448,2.18e-4\n4816896,4.47e-4\n' >l.csv
each link 1 l.csv cdmpp-partition link fit bad
printf 'device,price_per_hour,currency\nv100,3.06,USD\n' >prices.csv
each prices 1 prices.csv cdmpp-replay --graph graph.json --replay-given --allow-missing --prices bad
printf 'op,Device,latency_ms,B,M,N,K,H\nadd,t4,0.5,4096,,,,1024\nbmm,t4,8,1,2048,2048,2048,\n' >ops.csv
each operators 1 ops.csv cdmpp-predict --operators --from t4 --to v100-pcie --devices "$ROOT/configs/devices.yaml" bad
