# graph files that are wrong in part or as a whole
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
exec 2>&1
replay() { echo "--- $1"; shift; cdmpp-replay --replay-given "$@"; echo "exit $?"; }
cat >mixed.json <<'X'
{"schema": "cdmpp.netgraph", "version": 1, "networks": [
 {"name": "good", "nodes": [{"name": "a", "kind": "given", "given_s": 1e-3}]},
 {"name": "ring", "nodes": [
  {"name": "a", "kind": "free", "after": ["b"]},
  {"name": "b", "kind": "free", "after": ["a"]}]},
 {"name": "typo", "nodes": [
  {"name": "a", "kind": "given", "given_s": 1e-3, "repaet": 4}]},
 {"name": "more", "nodes": [{"name": "a", "kind": "given", "given_s": 2e-3, "repeat": 2}]},
 {"name": "empty", "nodes": []}]}
X
replay "two of five networks are wrong" --graph mixed.json
replay "the same as JSON" --graph mixed.json --json | sed 's/,"low_s".*/, .../'
head -c 300 mixed.json >cut.json
replay "cut off" --graph cut.json
xz -k mixed.json; head -c 200 mixed.json.xz >cut.json.xz
replay "packed, and cut off" --graph cut.json.xz
printf '' >none.json; replay "empty" --graph none.json
echo '{"nodes": 3}' >other.json; replay "something else" --graph other.json
echo 'op,latency' >table.csv; replay "a table" --graph table.csv
{ printf '{"schema": "cdmpp.netgraph", "version": 1, "networks": [{"name": "deep", "nodes": '
  head -c 100000 /dev/zero | tr '\0' '['; } >deep.json
replay "deep" --graph deep.json
replay "a folder" --graph .
cat >exec.json <<'X'
{"nodes": [{"op": "null", "name": "x", "inputs": []},
 {"op": "tvm_op", "name": "f", "attrs": {"func_name": "fused_dense", "num_outputs": "1"}, "inputs": [[0, 0, 0]]}],
 "attrs": {"shape": ["list_shape", [[1, 8], [1, 8]]], "dltype": ["list_str", ["float32", "float32"]]}, "node_row_ptr": [0, 1, 2]}
X
replay "an executor's graph without keys" --graph exec.json --device v100
replay "and without what is missing" --graph exec.json --device v100 --allow-missing
cat >strange.json <<'X'
{"schema": "cdmpp.netgraph", "version": 1, "networks": [{"name": "strange", "device": "v100", "nodes": [
 {"name": "a", "kind": "given", "given_s": 1e-3, "flop": 3e6},
 {"name": "odd", "kind": "library", "question": {"op": "flash_attention", "heads": 12}, "flop": 1e6, "after": ["a"]},
 {"name": "none", "kind": "given", "given_s": 0, "flop": 0, "read_bytes": 0, "write_bytes": 0, "after": ["odd"]}]}]}
X
replay "an operator that nobody knows" --graph strange.json
replay "and without it, its share told" --graph strange.json --allow-missing
