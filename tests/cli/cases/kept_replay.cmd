# replays of graphs whose times are given, every column, page and trace: all values differ, so that one that is swapped or scaled shows
. "$T/lib.sh"
unset CDMPP_MODELS
exec 2>&1
# a chain with two branches, a loop's repeats, weights, two devices
cat >g.json <<'X'
{"schema": "cdmpp.netgraph", "version": 1, "networks": [
 {"name": "net", "batch": 3, "measured_s": 0.0171, "measured_median_s": 0.0169, "nodes": [
  {"name": "in", "kind": "free", "write_bytes": 1100000},
  {"name": "a", "op": "Conv", "kind": "given", "given_s": 1.1e-3, "write_bytes": 2200000, "read_bytes": 1500000, "weight_bytes": 410000, "flop": 7.3e9, "after": ["in"]},
  {"name": "b", "op": "Conv", "kind": "given", "given_s": 2.3e-3, "write_bytes": 2900000, "read_bytes": 2000000, "weight_bytes": 530000, "flop": 9.1e9, "after": ["a"]},
  {"name": "c", "op": "Pool", "kind": "given", "given_s": 5.7e-4, "write_bytes": 1300000, "read_bytes": 2100000, "after": ["a"], "repeat": 2},
  {"name": "d", "op": "MatMul", "kind": "given", "given_s": 3.9e-3, "write_bytes": 1700000, "read_bytes": 3300000, "weight_bytes": 870000, "flop": 2.1e9, "after": ["b"]},
  {"name": "e", "op": "Softmax", "kind": "given", "given_s": 8.3e-4, "write_bytes": 190000, "read_bytes": 230000, "after": ["c"]},
  {"name": "f", "op": "Add", "kind": "given", "given_s": 1.3e-4, "write_bytes": 1900000, "read_bytes": 3100000, "after": ["d", "e"]}]}]}
X
sed 's/"name": "c", /"name": "c", "device": "k80", /; s/"name": "e", /"name": "e", "device": "k80", /; s/"batch": 3, /"batch": 3, "device": "v100", /' g.json >two.json
r() { cdmpp-replay -q --replay-given "$@"; echo "exit $?"; }
echo "--- tables"
r --graph g.json --device v100 --ops --measured
r --graph g.json --device v100 --ops --issue-us 0 --gap-us 7 --workers 2
for p in stream order critical; do r --graph g.json --device v100 --policy $p --workers 2 --csv; done
r --graph two.json --allow-missing --link-gbs 0.7 --link-us 130 --ops
r --graph two.json --allow-missing --link-gbs 0.7 --link-us 130 --ops --json
r --graph g.json --device v100,k80,t4 --csv --level 0.5 --shared 0.9
echo "--- other times"
r --graph g.json --device v100 --what-if op=Conv,scale=0.5 --what-if op=d,seconds=1.7e-3
r --graph g.json --device v100 --what-if op=Con*,scale=3 --json
echo "--- prices and energy"
printf 'device,price_per_hour,currency\nv100,3.06,USD\nt4,0.53,USD\nk80,0.9,USD\n' >p.csv
r --graph g.json --device v100,t4,k80 --prices p.csv --energy --deadline-ms 1000
r --graph g.json --device v100,t4,k80 --prices p.csv --energy --deadline-ms 5 --csv
r --graph g.json --device v100,t4,k80 --prices p.csv --energy --json
r --graph g.json --device v100,t4,k80 --energy --power v100=100 --power t4=30 --deadline-ms 1000
r --graph g.json --device v100,t4,k80 --energy --power a100=100
r --graph g.json --device v100,t4,k80 --power v100=100
echo "--- several devices, an iteration of training"
cat >t.json <<'X'
{"schema": "cdmpp.netgraph", "version": 1, "networks": [{"name": "iteration", "nodes": [
  {"name": "x", "kind": "given", "given_s": 0.0021, "weight_bytes": 4100000, "read_bytes": 5300000, "write_bytes": 1700000},
  {"name": "y", "kind": "given", "given_s": 0.0013, "weight_bytes": 2900000, "read_bytes": 1900000, "write_bytes": 700000, "after": ["x"]},
  {"name": "dy", "kind": "given", "phase": "backward", "given_s": 0.0027, "write_bytes": 900000, "after": ["y"]},
  {"name": "dx", "kind": "given", "phase": "backward", "given_s": 0.0043, "write_bytes": 1100000, "after": ["dy"]}]}]}
X
for p in pipeline:2x3 pipeline:1x3 pipeline:2x5 pipeline-1f1b:2x4; do r --graph t.json --device v100 --parallel $p --link-gbs 3 --link-us 17 --json; r --graph t.json --device v100 --parallel $p --link-gbs 3 --link-us 17; done
echo "--- files"
r --graph two.json --allow-missing --link-gbs 0.7 --link-us 130 --trace trace.json --html p.html --save-graph s.json --workers 2 >text
kept_files trace.json p.html
cat s.json
