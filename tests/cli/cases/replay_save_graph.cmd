# networks written as graphs: of a file, put in order; of the zoo; twice the same
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
exec 2>&1
cat >net.json <<'X'
{"version": 1, "schema": "cdmpp.netgraph", "networks": [{"nodes": [
 {"after": ["b"], "name": "c", "kind": "given", "given_s": 1e-3},
 {"name": "b", "kind": "free", "after": ["a"]},
 {"name": "a", "kind": "given", "given_s": 2e-3, "repeat": 2}], "name": "turned", "note": "notes are not kept"}]}
X
cdmpp-replay --graph net.json --replay-given --save-graph out.json; echo "exit $?"
cat out.json
cdmpp-replay --graph out.json --replay-given --save-graph again.json >two.txt; cmp out.json again.json && echo same
cdmpp-replay --graph out.json --replay-given --save-graph /dev/full; echo "exit $?"
cdmpp-replay --graph net.json --replay-given --save-graph out.dot >/dev/null; cat out.dot
echo "--- of the zoo, two batches"
cdmpp-replay --network squeezenet-1.1 --device v100 --batch 1,2 --replay-given --save-graph zoo.json; echo "exit $?"
grep -c '"kind": "task"' zoo.json; grep -o '^ {"name": "[^"]*", "batch": [0-9]*' zoo.json
cdmpp-replay --graph zoo.json --device v100 --replay-given --save-graph again.json >two.txt 2>&1; cmp zoo.json again.json && echo same
