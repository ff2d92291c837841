# times of one device under another's name: refused; where nobody says the device, that is said
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
exec 2>&1
replay() { echo "--- $1"; shift; cdmpp-replay --replay-given "$@"; echo "exit $?"; }
one='"nodes": [{"name": "a", "op": "Conv", "kind": "given", "given_s": 1e-3, "flop": 3}, {"name": "b", "op": "Add", "kind": "unknown", "why": "no definition", "given_s": 1e-3, "after": ["a"], "flop": 1}]'
echo '{"schema": "cdmpp.netgraph", "version": 1, "networks": [{"name": "n", "device": "h100", "measured_s": 0.002, '"$one"'}]}' >h100.json
replay "its own device, by another name" --graph h100.json --device "NVIDIA H100" --issue-us 0 --measured
replay "another device" --graph h100.json --device hl-100 --measured
replay "another device, what is missing left out" --graph h100.json --device hl-100 --allow-missing
replay "the second device has no total" --graph h100.json --device h100,v100 --csv | tr -d '\r' | cut -d, -f1-5,11
replay "a what-if gives a time" --graph h100.json --device v100 --what-if 'op=*,seconds=2e-3' --allow-missing --json | grep -o '"latency_s":[^,]*\|"error":[^,]*\|exit .*'
mkdir -p Tesla_V100-PCIE-32GB plain
sed 's/"device": "h100", //' h100.json | tee plain/n.json >Tesla_V100-PCIE-32GB/n.json
replay "the folder is a device's name" --graph Tesla_V100-PCIE-32GB/n.json --csv | tr -d '\r' | cut -d, -f1-5
replay "and not this one's" --graph Tesla_V100-PCIE-32GB/n.json --device k80
replay "nobody says which" --graph plain/n.json --device k80 --csv | tr -d '\r' | cut -d, -f1-5
replay "nobody is asked" --graph plain/n.json --csv | tr -d '\r' | cut -d, -f1-5
echo '{"m": {"device": "zen5", "e2e_mean_s": 2e-3, "nodes": [{"id": 0, "name": "f", "op": "tvm_op", "func": "fused_f", "inputs": [], "time_s": 1e-3}]}}' >m.json
replay "TVM's measured form" --graph m.json --device zen5-avx512 --csv | tr -d '\r' | cut -d, -f1-5,13
replay "of another" --graph m.json --device v100
sed 's/"zen5"/7/' m.json >bad.json
replay "a device that is no name" --graph bad.json
