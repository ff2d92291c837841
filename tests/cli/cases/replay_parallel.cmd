# an iteration on several devices: sums of gradients, and what is no plan
cat >train.json <<'EOT'
{"schema": "cdmpp.netgraph", "version": 1, "networks": [{"name": "iteration", "nodes": [
  {"name": "x", "kind": "given", "given_s": 0.002},
  {"name": "dx", "kind": "given", "phase": "backward", "given_s": 0.004, "after": ["x"]}]}]}
EOT
cdmpp-replay --graph train.json --replay-given --device v100 --issue-us 0 --parallel pipeline:1x3 --json | grep -o '"parallel":{.*'; echo "exit $?"
cdmpp-replay --graph train.json --replay-given --device v100 --parallel data:4; echo "exit $?"
cdmpp-replay --graph train.json --replay-given --device v100 --parallel ring:4; echo "exit $?"
