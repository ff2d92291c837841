# graphs of files whose times are given: queues, what-ifs, devices, traces, gaps
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
exec 2>&1
cat >fork.json <<'X'
{"schema": "cdmpp.netgraph", "version": 1, "networks": [
 {"name": "fork", "batch": 4, "device": "v100", "measured_s": 0.005, "measured_median_s": 0.0048, "nodes": [
  {"name": "x", "kind": "free", "write_bytes": 1000000},
  {"name": "a", "op": "Conv", "kind": "given", "given_s": 1e-3, "write_bytes": 2000000, "read_bytes": 1500000, "after": ["x"]},
  {"name": "b", "op": "Conv", "kind": "given", "given_s": 2e-3, "write_bytes": 2000000, "read_bytes": 2000000, "after": ["a"]},
  {"name": "c", "op": "Pool, wide", "kind": "given", "given_s": 5e-4, "write_bytes": 1000000, "read_bytes": 2000000, "after": ["a"], "repeat": 2},
  {"name": "d", "op": "Add", "kind": "given", "given_s": 1e-4, "write_bytes": 1000000, "read_bytes": 3000000, "after": ["b", "c"]}]},
 {"name": "gap", "nodes": [
  {"name": "a", "op": "Conv", "kind": "given", "given_s": 1e-3},
  {"name": "odd", "op": "Strange", "kind": "unknown", "why": "no definition of Strange", "after": ["a"]}]}]}
X
replay() { cdmpp-replay --graph fork.json --replay-given --issue-us 0 "$@"; echo "exit $?"; }
replay
replay --allow-missing --measured
replay --allow-missing --json --workers 2 --what-if op=Conv,scale=0.5 | sed 's/\(0\.00[0-9]\{5\}\)[0-9]*/\1/g'
replay --allow-missing --csv --policy critical --gap-us 10 --issue-us 5 | tr -d '\r'
replay --allow-missing --csv --ops | tr -d '\r'
replay --allow-missing --ops | sed -n '/^fork$/,$p'
echo "--- more than the device has"
sed 's/"write_bytes": 2000000/"write_bytes": 20000000000/; s/"device": "v100", "measured_s": 0.005, "measured_median_s": 0.0048, //' fork.json >large.json
cdmpp-replay --graph large.json --replay-given --allow-missing --device v100,k80; echo "exit $?"
rm large.json
echo "--- traces, a file each; nothing is left of one that failed"
replay --allow-missing --trace t.json >/dev/null; ls t.*; grep -c '"ph":"X"' t.fork.v100.4.json
sed '/"name": "gap"/,$d; s/}\]},$/}]}]}/' fork.json >one.json
cdmpp-replay --graph one.json --replay-given --trace /dev/full 2>&1; echo "exit $?"
replay --allow-missing --html /dev/full
replay --allow-missing --trace no/where/t.json >/dev/null
rm one.json; ls
echo "--- two devices and the link between them"
sed 's/"name": "c", /"name": "c", "device": "k80", /; s/"name": "b", /"name": "b", "device": "v100", /' fork.json >two.json
cdmpp-replay --graph two.json --replay-given --issue-us 0 --link-gbs 1 --link-us 100 --trace two.out.json --allow-missing >two.txt; echo "exit $?"
sed -n 1,3p two.txt; grep -c '"cat":"copy"' two.out.fork.*.json
echo "--- refused"
for bad in 's/"after": \["x"\]/"after": ["d"]/' 's/"after": \["a"\]}/"after": ["nobody"]}/' 's/"given_s": 2e-3/"given_s": -1/' 's/"given_s": 2e-3/"given_s": "2"/'; do
    sed "$bad" fork.json >bad.json
    cdmpp-replay --graph bad.json --replay-given 2>&1; echo "exit $?"
done
replay --what-if op=Conf,scale=2 --allow-missing
replay --what-if op=Conv
cdmpp-replay --graph fork.json; echo "exit $?"
cdmpp-replay --graph nowhere.json --replay-given; echo "exit $?"
