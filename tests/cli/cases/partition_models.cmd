# a processor and a GPU, each with a model of its own: one plan; a GPU that is only described; models that know the same device
# Long: no sanitizer.
unset CDMPP_MODELS
exec 2>&1
M=$ROOT/tests/golden/model_v1.cdmpp
gpu='cuda -keys=cuda,gpu -max_num_threads=1024 -thread_warp_size=32 -model=v100'
# times of the GPU are made up
cdmpp-profile --list-tasks --network squeezenet-1.1 --input-size 64 --target "$gpu" --out-tasks g.tasks.json >/dev/null
cdmpp-profile draw --tasks g.tasks.json --trials 4 --seed 1 --out g.drawn.json >/dev/null 2>&1
awk '{ sub(/"r": \[\[[^]]*\], *[0-9]+,/, sprintf("\"r\": [[%.9g], 0,", 1e-5 * (1 + (NR * 7919 % 13) / 6))); print }' g.drawn.json >g.json
cdmpp-extract -q --tasks g.tasks.json --out g.h5 g.json || exit
cdmpp-train "$ROOT/configs/own.yaml" -q --set data.files=g.h5 --set train.rounds=10 --set model.members='[program]' --out g.cdmpp >/dev/null || exit
cat >cg.json <<'J'
{"cdmpp_machine": 1, "devices": [
 {"name": "cpu0", "kind": "cpu", "core": 0, "as": "zen5-avx2", "launch_s": 2e-7, "sync_s": 1e-6},
 {"name": "gpu0", "kind": "model", "as": "v100", "memory": 1, "launch_s": 5e-6, "sync_s": 1e-5}],
 "links": [
  {"from": "cpu0", "to": "gpu0", "how": "write", "n": 0, "noise": 0, "pieces": [[0, 1e-5, 1e-10]]},
  {"from": "gpu0", "to": "cpu0", "how": "read", "n": 0, "noise": 0, "pieces": [[0, 1e-5, 1e-10]]}]}
J
plan() { cdmpp-partition --network squeezenet-1.1 --input-size 64 --machine cg.json --trials 4 "$@" 2>err.txt >out.txt; st=$?; sed "s|$ROOT/||g; s/[0-9.]* times shorter/N times shorter/g; s/up to [0-9.]*x/up to Nx/g; /of the time on/s/[0-9][0-9]* %/N %/g" err.txt; head -n 1 out.txt | sed 's/rho .*/rho R/'; sed -n 's/^\(cpu0\|gpu0\) .* [mu]s .*x of .*/\1 has a time/p' out.txt; echo "exit $st"; }
plan --cost-model "$M" --cost-model g.cdmpp
grep -c '^split' out.txt # which operators depends on the made times and on what trees drew
echo "--- both know the first device: the first model answers, and it is said"
plan --cost-model "$M" --cost-model "$ROOT/tests/golden/model_v2.cdmpp" --cost-model g.cdmpp
echo "--- a GPU that is only described"
plan --cost-model "$M" --cost-model g.cdmpp --as gpu0=a100
again() { cdmpp-partition --network squeezenet-1.1 --input-size 64 --machine cg.json --plan s.json "$@"; }
says() { grep -o '"as":"[av]1*00","stand_in":[^}]*"spread":0\|"warnings":.*' | sed 's/"spread":0.*/"spread":0/; s/[0-9.]* times shorter/N times shorter/g; s/up to [0-9.]*x/up to Nx/g; /of the time on/s/[0-9][0-9]* %/N %/g'; }
cdmpp-partition -q --network squeezenet-1.1 --input-size 64 --machine cg.json --trials 4 --cost-model "$M" --cost-model g.cdmpp --as gpu0=a100 --save-plan s.json --json >made.json; says <made.json
echo "--- a plan that is read says it again; one of an earlier version does not know"
again -q --json | tee again.json | says
for k in stand_in spread unlike_share warnings; do a=$(grep -o "\"$k\":[^,}]*" made.json | tr '\n' ' '); [ "$a" ] && [ "$a" = "$(grep -o "\"$k\":[^,}]*" again.json | tr '\n' ' ')" ] && echo "same $k"; done
again 2>&1 >/dev/null | sed 's/[0-9.]* times shorter/N times shorter/g; s/up to [0-9.]*x/up to Nx/g; /of the time on/s/[0-9][0-9]* %/N %/g'
sed -i '/^ "sources": \[/,/],$/d' s.json; again 2>&1 >/dev/null
echo "--- nobody knows one of its kind: by the rooflines; a processor of this machine is of no other kind"
plan --cost-model "$M" --save-plan s.json
again 2>&1 >/dev/null | grep -c "ratio of both rooflines"; again -q --json | grep -o '"stand_in_by":"roofline"'
plan --cost-model g.cdmpp --as gpu0=v100 --as cpu0=zen4
echo "--- the machine that is shipped, an ONNX file"
cdmpp-partition -q --network "$ROOT/examples/resnet18.onnx" --machine "$ROOT/configs/machine-gpu.json" --cost-model "$M" --as cpu0=zen5-avx2 --trials 2 --save-plan p.json | head -n 1 | sed 's/rho .*/rho R/'
cdmpp-partition -q --network "$ROOT/examples/resnet18.onnx" --machine "$ROOT/configs/machine-gpu.json" --plan p.json >/dev/null; echo "exit $?"
echo "--- the machine of a plan is not named"
cdmpp-partition -q --network "$ROOT/examples/resnet18.onnx" --plan p.json; echo "exit $?"
cdmpp-partition -q --network "$ROOT/examples/resnet18.onnx" --plan p.json --devices cpu0,gpu0; echo "exit $?"
echo "--- a plan says what its devices are, so it needs no --as; the first one decides the layout"
sed 's/ "as": "v100",//' cg.json >unnamed.json; gpu() { cdmpp-partition -q --network squeezenet-1.1 --input-size 64 --machine unnamed.json --devices gpu0 "$@"; }
gpu --cost-model g.cdmpp --as v100 --trials 4 --save-plan s.json | head -n 1; gpu --plan s.json | head -n 1
