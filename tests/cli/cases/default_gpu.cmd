# no model is named and the device is a GPU: the installed model of GPUs answers, and says so; a model of the other kind never does
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_DEFAULT_MODEL CDMPP_MODELS
exec 2>&1
net="--network squeezenet-1.1 --input-size 64 --trials 8"
says() { sed -E "s|[^ ]*/models/||g; s/[0-9.]+ times shorter/F times shorter/; s/up to [0-9.]+x/up to Fx/; s/runs programs of ([a-z]+) \(.*\): /runs programs of \1 (WHY): /"; }
echo "--- a GPU that it knows, with and without what a network adds; one that it does not know"
for d in h200 h100 a100; do cdmpp-replay $net --device $d 2>&1 >$d.txt | says; grep -c "^squeezenet-1.1 *$d" $d.txt; done
echo "--- its programs are CUDA's, of images in NCHW"
cdmpp-replay $net -q --device h200 --save-schedules s.json >/dev/null; grep -c '"cuda [^"]*-model=h200"' s.json | sed 's/[1-9][0-9]*/some/'; grep -c '"llvm' s.json
grep -o '\[1, 3, 6[0-9], 6[0-9]\]' s.json | sort -u
echo "--- each kind by its own; a processor is answered as ever, and nobody looks into the other file"
cdmpp-replay $net --device zen4,h100 2>&1 >/dev/null | says | grep 'cost model'
cdmpp-replay $net --device zen4 2>&1 >/dev/null | says | grep -c 'GPU'
echo "--- a target of a GPU, and none is here"
OCL_ICD_VENDORS=/nowhere cdmpp-replay -q $net --target opencl 2>&1 | says
echo "--- \$CDMPP_DEFAULT_MODEL switches it off"
CDMPP_DEFAULT_MODEL= cdmpp-replay -q $net --device h100; echo "exit $?"
CDMPP_DEFAULT_MODEL=$ROOT/tests/golden/model_v3.cdmpp cdmpp-replay $net --device h100 2>&1 >/dev/null | grep -c 'gpu.cdmpp'
echo "--- records"
tasks=$ROOT/examples/h200/h200.tasks.json.xz
xz -dc "$ROOT/examples/h200/measure_records/h200/programs.json.xz" | head -n 2 >two.json
sed 's/ -model=h200//' two.json >none.json; sed 's/-model=h200/-model=a100/' two.json >a100.json; mkdir logs; cp two.json logs
shape() { says | sed -E 's/"(latency_s|low_s|high_s|rel_std)":[^,}]*/"\1":N/g; s/"workload_key":"[^}]*\]",/KEY,/; s/[0-9.]+ %/N %/g'; }
predict() { cdmpp-predict --tasks "$tasks" "$@" 2>&1 | shape; }
predict two.json
predict --eval logs | grep -o 'the model was trained on the tasks of . of these 2 records'
predict logs | grep -c '"latency_s"'
predict none.json | tail -n 1
predict --device h100 none.json | grep -c '"latency_s"'
predict a100.json | tail -n 1
predict --nearest a100.json | grep -c '"out_of_range":true'
sed 's/"cuda/"cuda -arch=sm_86/' none.json >sm86.json
predict --nearest sm86.json | tail -n 1
predict --nearest --device a10 sm86.json | grep -c '"out_of_range":true'
predict --explain two.json | grep -c "columns"
cat two.json | predict --device h200 - | grep -c '"latency_s"'
echo "--- a processor's word for records of a GPU, and a pipe that nobody named the device of"
predict --device zen4 two.json | tail -n 1
cat two.json | predict - | tail -n 1
echo "--- plans: a GPU of the machine file is named with --as; and calibrating starts from it"
plan() { cdmpp-partition --network squeezenet-1.1 --input-size 64 --trials 2 --machine "$ROOT/configs/offload/machine.json" --devices cpu0,gpu --as granite-rapids --as gpu=$1 2>&1 >/dev/null | says; }
plan h100 | grep 'cost model'
plan a100 | grep 'cost model\|stands in' | sed 's/up to [0-9.]*x/up to Fx/'
cdmpp-tune calibrate -q --target opencl --gpu nobody:9 $net 2>&1 | sed 's/error: .* \[/error: no such device [/'
echo "--- logs of a GPU that is not here: the first record chooses the model; another one of processors is refused"
xz -dc "$ROOT/examples/h200/measure_records/h200/programs.json.xz" | awk 'NR % 60 == 0' | sed 's/-model=h200/-model=a100/' >logs.json
cdmpp-tune calibrate -q --tasks "$tasks" --records logs.json --out a100.cdmpp --force | sed -n '1,2p'
cdmpp-predict --cost-model a100.cdmpp --tasks "$tasks" -q logs.json | grep -c '"latency_s"'
(echo '{1}'; cat logs.json) >late.json
cdmpp-tune calibrate -q --tasks "$tasks" --records late.json --out late.cdmpp --force | sed -n '1,2p'
cdmpp-tune calibrate -q --tasks "$tasks" --records logs.json --out x.cdmpp --cost-model "$ROOT/models/cpu.cdmpp" 2>&1 | says
