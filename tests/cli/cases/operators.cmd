# library operators: train on tables, predict, evaluate; bad lines; data that are missing
. "$T/lib.sh"
awk 'BEGIN { print "OPName,Latency,Device,B,H"; for (b = 1; b <= 64; b++) for (h = 1; h <= 4; h++) {
    n = b * 64 * h * 256
    printf "add,%.6g,Tesla T4,%d,%d\n", 0.02 + n * 12 / 256e6, b * 64, h * 256
    printf "relu,%.6g,\"NVIDIA A100-PCIE-40GB\",%d,%d\n", 0.02 + n * 8 / 1244e6, b * 64, h * 256 } }' >ops.csv
sed '2s/add,[0-9.]*/add,fast/; 5s/A100-PCIE/A1000/' ops.csv >bad.csv
cat >c.yaml <<'Y'
data: {kind: operators, files: ops.csv}
operators: {rounds: 20, check: large}
Y
plain cdmpp-train c.yaml --quiet -j1 --out a.cdmpp --set device.file="$ROOT/configs/devices.yaml" | sed 's/, [0-9]* bytes//; s/| [0-9.]* | [0-9.]* | [0-9.]* | [-+0-9.]* | [0-9.]* | - |$/| ... |/; s/| [0-9.]* |$/| ... |/'
cdmpp-train c.yaml --quiet -j2 --out b.cdmpp --set device.file="$ROOT/configs/devices.yaml" >/dev/null; cmp a.cdmpp b.cdmpp && echo the same for -j2
cdmpp-predict --operators --model a.cdmpp --devices "$ROOT/configs/devices.yaml" --info --json | cut -c 1-88
printf 'op,device,B,H\nadd,t4,100,1000\nadd,h100,100,1000\nadd,epyc-7452,100,1000\nfft,t4,1,1\n' >q.csv
cdmpp-predict --operators --model a.cdmpp --devices "$ROOT/configs/devices.yaml" q.csv >q.jsonl; echo "status $?"
sed 's/"\(latency\|low\|high\)_s":[0-9][0-9.e-]*/"\1_s":S/g' q.jsonl
# a folder of tables is read as its tables are
mkdir tables tables/more empty; cp q.csv tables/a.csv; gzip -c q.csv >tables/more/b.csv.gz; echo no >tables/c.txt
cdmpp-predict --operators --model a.cdmpp --devices "$ROOT/configs/devices.yaml" tables >f.jsonl; echo "status $?"; sed 's|tables/a.csv|q.csv|' f.jsonl | head -n 4 | cmp - q.jsonl; grep -c 'more/b.csv.gz' f.jsonl
cdmpp-predict --operators --model a.cdmpp --devices "$ROOT/configs/devices.yaml" empty; echo "status $?"
# bad lines are left out, each is told; status 3
cdmpp-train c.yaml -j1 --out a.cdmpp --set data.files=bad.csv --set operators.check=none --set device.file="$ROOT/configs/devices.yaml" 2>&1 |
    sed '/samples/d; s/, [0-9]* bytes//; s/| [0-9.]* |$/| ... |/'
cdmpp-train c.yaml -q -j1 --out a.cdmpp --set data.files=bad.csv --set operators.check=none --set device.file="$ROOT/configs/devices.yaml" >/dev/null
echo "status $?"
# configurations whose data are not here say where they are from; status 4
cdmpp-train "$ROOT/configs/operators-all.yaml" 2>&1 | sed "s|$ROOT/||" | tail -n 3
cdmpp-train "$ROOT/configs/t4-operators.yaml" >/dev/null 2>&1; echo "status $?"
# models of another kind
cdmpp-predict --model a.cdmpp --tasks "$K" "$HELD"; echo "status $?"
cdmpp-predict --operators --model "$ROOT/tests/golden/model_v1.cdmpp" q.csv 2>&1 | sed "s|$ROOT/||"
for ask in "replay" "replay --device t4" "partition"; do cdmpp-$ask --network resnet-18 --cost-model a.cdmpp; echo "status $?"; done
echo '{"schema": "cdmpp.netgraph", "version": 1, "networks": [{"name": "n", "nodes": [{"name": "a", "kind": "library", "question": {"op": "add", "b": 1, "m": 30, "n": 7, "k": 1}}]}]}' >net.json
cdmpp-replay --graph net.json --cost-model "$ROOT/tests/golden/model_v3.cdmpp" --device t4 2>&1 | grep -o 'no model of.*'
cdmpp-replay --graph net.json --network resnet-18 --cost-model a.cdmpp --device t4 2>&1 | grep -o 'no model of.*'
echo "--- what a configuration leaves out is counted with its key, also where nothing is left"
lean() { cdmpp-train c.yaml -j1 --out a.cdmpp --set operators.check=none --set operators.calibration_rows=0 --set device.file="$ROOT/configs/devices.yaml" "$@"; }
lean --set 'operators.exclude=[t4/add, t4/bmm]' --set operators.max_rows=200 2>/dev/null | grep rows
lean --set 'operators.exclude=[t4/add, t4/bmm]' --set "data.devices=[t4, a100]" --json 2>/dev/null | grep -o '"notes.*'
lean --set 'operators.exclude=[t4/elementwise, a100/relu]'; echo "status $?"
lean --set 'operators.exclude=[t4/ad]'; echo "status $?"
