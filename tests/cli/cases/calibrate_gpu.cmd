# a model corrected for a GPU, measured through OpenCL where there is a device: killed, continued, found by itself beside that of the processor; what goes wrong
# Long: no sanitizer, one processor.
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_DEFAULT_MODEL
exec 2>&1
net="--network squeezenet-1.1 --input-size 32"
# A base model of made times: a program's is a matter of its line.
cdmpp-profile --list-tasks $net --target cuda --out-tasks gpu.tasks.json >/dev/null
cdmpp-profile draw --tasks gpu.tasks.json --trials 4 --seed 1 --target 'cuda -model=v100' --out drawn.json 2>/dev/null
awk '{ sub(/"r": \[\[[^]]*\], [0-9]*/, sprintf("\"r\": [[%g], 0", 1e-5 * (1 + NR % 17))); print }' drawn.json >made.json
cdmpp-extract -q --tasks gpu.tasks.json --out g.h5 made.json
cdmpp-train "$ROOT/configs/own.yaml" -q --set data.files=g.h5 --set train.rounds=10 --set model.members='[program]' --set model.folds=1 --set train.facts=prior --out g.cdmpp >/dev/null || exit
cal() { cdmpp-tune calibrate "$@"; }
echo "--- what goes wrong"
OCL_ICD_VENDORS=/nowhere cal -q --target opencl $net --cost-model g.cdmpp 2>&1 | sed 's/error: .* \[/error: no OpenCL [/'
cal -q --target cuda --gpu x $net --cost-model g.cdmpp; echo "exit $?"
cal -q --target cuda --out x.cdmpp $net --cost-model "$ROOT/tests/golden/model_v3.cdmpp" 2>&1 | sed "s|$ROOT/||"
cal -q --target cuda --out x.cdmpp $net --cost-model g.cdmpp --device 0
cal -q --target rocm $net --cost-model g.cdmpp; echo "exit $?"
cal -q --target cuda --threads 2 $net; echo "exit $?"
cal -q --target cuda --run-networks vgg-11 $net; echo "exit $?"
cal -q --gpu 1 $net; echo "exit $?"
ls "$XDG_DATA_HOME" 2>/dev/null
echo "--- nobody has calibrated"
none() { OCL_ICD_VENDORS=/nowhere cdmpp-replay -q $net --target opencl >told.txt 2>&1; echo "exit $?"; } # with the installed model of GPUs it is the GPU that is missing
none; grep -c "there is no cost model for this machine's GPU\|no GPU of this machine runs programs of opencl" told.txt
models=$XDG_DATA_HOME/cdmpp/models; mkdir -p "$models"; echo '{}' >"$models/opencl-a.cdmpp"
none; grep -o 'opencl-a.cdmpp is damaged, or no model that calibrate wrote, and is not used' told.txt
rm "$models/opencl-a.cdmpp"
echo "--- on an OpenCL device, where there is one"
args="-q --target opencl --seconds 3600 --trials 22 --budget-ms 1 --timeout 100 --build-timeout 100 $net --cost-model g.cdmpp --run-networks none --force"
told() { grep -o '"\(device\|measured_now\|repeated_now\|programs\|measured\|unusable\|out\|records\)":[^,}]*' | tr '\n' ' ' | name; echo; }
name() { sed "s|[^\" ]*/user/cdmpp/models/||g; s/opencl-[a-z0-9-]*/opencl-NAME/g"; }
key() { sed 's/, "r": .*//' "$1" | sort; }
measured() {
    # the default model of GPUs is for GPUs: nothing is measured where the device is a processor
    if cdmpp-profile --describe-device opencl: | grep -q 'kind: cpu'; then
        cal -q --target opencl $net 2>&1 | grep -c 'is a processor and no GPU: the default model of GPUs does not answer for it'; ls "$models"
    else echo 1; fi
    cal $args --json | told
    here=$(ls "$models"/opencl-*.cdmpp) log=${here%.cdmpp}.records.json
    mv "$log" whole.json; mv "$here" whole.cdmpp
    cdmpp-tune calibrate $args >/dev/null & pid=$!
    while [ ! -s "$log" ] && kill -0 $pid; do sleep 0.1; done
    kill -9 $pid; wait $pid 2>/dev/null
    ls "$here" 2>/dev/null
    cal $args >/dev/null; echo "exit $?"
    key "$log" >a; key whole.json >b; cmp a b && echo "the same programs"
    cal $args --json | told
    cdmpp-predict --cost-model "$here" --info --json | grep -o '"backend":"[^"]*"'
    cdmpp-replay $net --target opencl 2>&1 >out.txt | grep -c "cost model: .*/opencl-[a-z0-9-]*.cdmpp, corrected by 22 programs measured on this machine's GPU ("; grep -c squeezenet out.txt
    cdmpp-replay $net --trials 2 --device v100 2>&1 >/dev/null | grep -c "opencl-[a-z0-9-]*.cdmpp corrects times of .* alone, this machine's GPU: v100 is another one, and its times are not corrected"
    cdmpp-replay $net --target cuda 2>&1 | grep -c 'opencl-[a-z0-9-]*.cdmpp is of opencl, not of cuda, and is not used'
    cdmpp-replay $net --trials 2 2>/dev/null --cost-model "$here" --device v100 >/dev/null; echo "exit $?"
    cdmpp-tune $net --task '#0' --target opencl --trials 1 --budget-ms 1 --no-check --out t.json 2>&1 >/dev/null | grep -c "cost model: .*/opencl-[a-z0-9-]*.cdmpp, corrected by 22 programs measured on this machine's GPU (.*); device: .*, recognised as this machine's GPU"
    cal $args --cost-model "$here" 2>&1 | name; echo "exit $?"
}
if cdmpp-profile --describe-device opencl: >/dev/null 2>&1; then measured; else cat "$T/calibrate_gpu.txt"; fi
