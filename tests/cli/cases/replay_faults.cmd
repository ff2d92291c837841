# what used to pass in silence: names twice, sums that are no number, memory of several devices, runs that wait for the host
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
exec 2>&1
graph() { printf '{"schema": "cdmpp.netgraph", "version": 1, "networks": [{"name": "%s", %s"nodes": [%s]}]}\n' "$1" "$2" "$3"; }
replay() { echo "--- $1"; shift; cdmpp-replay --replay-given "$@"; echo "exit $?"; }
short() { sed 's/,"low_s".*/, .../'; }
graph n '' '{"name": "a", "kind": "given", "given_s": 1e-3}' >one.json
graph n '"batch": 2, ' '{"name": "a", "kind": "given", "given_s": 5e-3}' >two.json
replay "two networks of one name: both are told" --graph one.json --graph two.json --json | short
printf '{"schema": "cdmpp.netgraph", "version": 1, "networks": [{"name": "n", "nodes": [{"name": "a", "kind": "given", "given_s": 1e-3}]}, {"name": "n", "nodes": []}]}' >same.json
replay "in one file: the second is refused, the first stays" --graph same.json --json | short
graph n '' '{"name": "a", "kind": "given", "given_s": 1e308}, {"name": "b", "kind": "given", "given_s": 1e308, "after": ["a"]}' >long.json
replay "a sum that is no number" --graph long.json
graph n '' '{"name": "a", "kind": "given", "given_s": 1, "write_bytes": 9223372036854775807}, {"name": "b", "kind": "given", "given_s": 1, "after": ["a"], "write_bytes": 9223372036854775807}' >bytes.json
replay "more bytes than can be counted" --graph bytes.json
echo "--- a thousand short runs wait for the host, as a thousand operators do"
graph n '' '{"name": "a", "kind": "given", "given_s": 1e-6, "repeat": 1000}' >runs.json
cdmpp-replay --replay-given --graph runs.json --device v100 --csv | cut -d, -f1-7 | tr -d '\r'
cat >tvm.json <<'X'
{"nodes": [{"op": "null", "name": "data", "inputs": []}, {"op": "null", "name": "p0", "inputs": []}, {"op": "null", "name": "p1", "inputs": []},
 {"op": "tvm_op", "name": "f", "attrs": {"func_name": "fused_f", "num_outputs": "1", "hash": "ab"}, "inputs": [[0, 0, 0], [1, 0, 0]]},
 {"op": "tvm_op", "name": "reshape_nop", "attrs": {"func_name": "__nop", "num_outputs": "1"}, "inputs": [[3, 0, 0]]},
 {"op": "tvm_op", "name": "g", "attrs": {"func_name": "fused_g", "num_outputs": "2"}, "inputs": [[4, 0, 0], [2, 0, 0], [1, 0, 0]]}],
 "arg_nodes": [0, 1, 2], "heads": [[5, 0, 0], [5, 1, 0]], "node_row_ptr": [0, 1, 2, 3, 4, 5, 7],
 "attrs": {"storage_id": ["list_int", [0, 1, 2, 3, 3, 4, 5]], "dltype": ["list_str", ["float32", "float32", "float32", "float32", "float32", "float32", "float32"]],
  "shape": ["list_shape", [[1, 1000, 1000], [1000, 1000], [1000, 1000], [1, 1000, 1000], [1000, 1000], [1, 1000000], [1, 1000000]]]}}
X
cdmpp-replay --graph tvm.json --replay-given --device v100 --save-graph tvm.own.json >none.txt 2>&1
sed 's/"kind": "unknown"/"kind": "given", "given_s": 1e-3/; s/"why": "[^"]*([^)]*)"//; s/, "why": "no task[^}]*does not name it"//' tvm.own.json >tvm.timed.json
echo "--- of an executor's graph: 12 MB of weights and input, results of 4 and 8 MB"
cdmpp-replay --graph tvm.timed.json --replay-given --device v100 --json | grep -o '"peak_bytes.*"fits":[a-z]*'
sed 's/"heads": \[\[5, 0, 0\]/"heads": [[6, 0, 0]/' tvm.json >bad.json
replay "an output of no node" --graph bad.json
sed 's/\[5, 1, 0\]\]/[5, 2, 0]]/' tvm.json >bad.json
replay "an output that its node does not have" --graph bad.json
sed 's/"arg_nodes": \[0/"arg_nodes": [9/' tvm.json >bad.json
replay "an input that is no node" --graph bad.json
graph n '' '{"name": "w", "kind": "free", "write_bytes": 100},
 {"name": "a", "kind": "given", "given_s": 1e-3, "device": "v100", "write_bytes": 120, "read_bytes": 100, "after": ["w"]},
 {"name": "b", "kind": "given", "given_s": 1e-3, "device": "k80", "write_bytes": 20000000000, "read_bytes": 7120, "after": ["a"]},
 {"name": "gap", "kind": "unknown", "why": "nobody knows it", "device": "k80", "flop": 3, "after": ["b"]},
 {"name": "never", "kind": "unknown", "why": "nobody knows it", "device": "k80", "repeat": 0, "after": ["b"]}' >placed.json
replay "two devices: the second has too little memory, the gap is told" --graph placed.json --device v100 --allow-missing --json | sed 's/.*"peak_bytes"/"peak_bytes"/'
replay "and in a table" --graph placed.json --device v100 --allow-missing
sed 's/"write_bytes": 120, //' placed.json >unsized.json
replay "a copy of which nobody knows the bytes" --graph unsized.json --device v100 --allow-missing --csv | cut -d, -f1-5 | tr -d '\r'
graph n '' '{"name": "a", "kind": "given", "given_s": 1e-3, "device": "v100"}, {"name": "b", "kind": "given", "given_s": 1e-3, "device": "k80", "after": ["a"]}' >refused.json
replay "refused" --graph refused.json --device v100
graph 'größe
next' '' '{"name": "a\u001b[31m\u0007", "op": "卷积卷积卷积卷积卷积卷积卷积卷积卷积卷积卷积卷积卷积卷积", "kind": "given", "given_s": 1e-3}' | tr '\n' '~' | sed 's/größe~next/größe\\nnext/' | tr '~' '\n' >odd.json
replay "names that steer a terminal" --graph odd.json --ops
echo "--- a device and a batch twice; files that would be lost"
replay twice --graph one.json --device v100,v100 --csv | cut -d, -f1-5 | tr -d '\r'
replay "one file for two" --graph one.json --trace x.json --html x.json
replay "over its graph" --graph one.json --trace one.json
replay "a graph over itself is no loss" --graph one.json --save-graph one.json
echo "--- prices"
price() { printf '%b' "$1" >p.csv; cdmpp-replay --graph two.json --replay-given --device v100,k80 --prices p.csv | sed 's/^network.*//'; }
price 'v100,3,USD\nk80,1,EUR\n'
price 'v100,3\nk80,1\nV100,4\n'
price 'v100,3,euros and cents\n'
price 'v100,3,€\nk80,1,€\n'
echo "--- what only an unknown operator reads is in the network; a batch size said twice"
cdmpp-replay --network "$ROOT/tests/profiler/data/unknown_behind.onnx" --device v100 --replay-given --save-graph u.json >none.txt 2>&1
grep -o '"op": "[A-Za-z_]*", "kind": "[a-z]*"' u.json
cdmpp-replay --network "$ROOT/tests/profiler/data/whole.onnx" --dim height=16 --dim batch=5 --batch 7 --device v100 --replay-given 2>&1 | sed 's|error: .*/|error: |'
echo "--- energy by data sheets"
cdmpp-replay --graph two.json --replay-given --device v100,k80 --energy --deadline-ms 6 -q
