# numbers of a description that are possible and most often in another unit: each command that reads the file says them; impossible ones are errors
. "$T/lib.sh"
exec 2>&1
M=$ROOT/tests/golden/model_v2.cdmpp
device() { printf -- '- {name: zen5-avx512, kind: cpu, clock_mhz: %s, bandwidth_gb_s: %s, l2_kb: %s}\n- {name: zen5-avx2, kind: cpu, clock_mhz: 4100, cores: 1, lanes: 16, bandwidth_gb_s: 38, l1_kb: 48, l2_kb: 1024, l3_kb: 32768}\n' "$@" >d.yaml; }
xz -dcf "$(find "$LOGS" -type f | sort | head -n 1)" | head -n 60 >log.json
cdmpp-extract -q --tasks "$K" --out d.h5 log.json
device 2.7 320 1048576
cdmpp-replay -q --network matmul --cost-model "$M" --devices d.yaml --device zen5-avx512 >/dev/null; echo "exit $?"
cdmpp-replay --network matmul --cost-model "$M" --devices d.yaml --device zen5-avx512 --json | grep -o 'd.yaml:1: [^"]*'
cdmpp-predict --cost-model "$M" --tasks "$K" --devices d.yaml --device zen5-avx512 --json log.json 2>&1 >/dev/null | grep d.yaml
cdmpp-partition --network matmul --cost-model "$M" --device-file d.yaml --devices cpu0 --as cpu0=zen5-avx512 2>&1 >/dev/null | grep d.yaml
echo "--- a training, by trees that read facts and by networks that read vectors: once"
cdmpp-train "$ROOT/configs/quickstart.yaml" --set data.files=d.h5 --set 'data.devices=[]' --set device.file=d.yaml --set train.rounds=2 --set model.members='[program]' --set train.facts=auto --out m.cdmpp 2>&1 >/dev/null | grep d.yaml:
echo "--- errors"
device 0 nan -5
cdmpp-replay --network matmul --cost-model "$M" --devices d.yaml --device zen5-avx512; echo "exit $?"
