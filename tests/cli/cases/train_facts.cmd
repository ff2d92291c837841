# facts of loop nests as columns and as a prior: the same bytes for any -j, after a stop, from record and data set; what they cannot do
. "$T/lib.sh"
xz -dc "$LOGS/zen5-avx512/records.json.xz" | head -n 150 >some.json
cdmpp-extract -q --tasks "$K" --out a.h5 some.json || exit
train() {
    cdmpp-train "$ROOT/configs/quickstart.yaml" --quiet --set data.files=a.h5 --set split.kind=record --set train.rounds=12 --set filter.facts=true "$@"
}
for facts in columns prior; do
    train --set train.facts=$facts -j1 --out $facts.cdmpp >/dev/null; train --set train.facts=$facts -j3 --out 3.cdmpp >/dev/null
    cmp $facts.cdmpp 3.cdmpp && echo "$facts: same model"
    cdmpp-predict --cost-model $facts.cdmpp --info --json | grep -o '"facts":"[a-z]*","\(prior\|rounds\)"' | sort | uniq -c
    cdmpp-predict --quiet --cost-model $facts.cdmpp --tasks "$K" "$HELD" >$facts.jsonl; echo "status $?"
    grep -c latency_s $facts.jsonl
done
cmp -s columns.jsonl prior.jsonl || echo they differ
# members that are there already are read, of the same facts alone
train --set train.facts=prior --checkpoint kept --out 1.cdmpp >/dev/null; train --set train.facts=prior --checkpoint kept --out 2.cdmpp >/dev/null
cmp 1.cdmpp 2.cdmpp && cmp 1.cdmpp prior.cdmpp && echo went on
train --set train.facts=columns --checkpoint kept --out 2.cdmpp 2>err.txt; echo "status $?"; sed 's/digest .*//' err.txt
# networks: net.facts, and only where train.facts is not none
net() { train --set model.members=[mlp] --set fit.epochs=2 --set net.facts=true "$@"; }
net --set train.facts=columns -j1 --out net.cdmpp >/dev/null; net --set train.facts=prior -j3 --out 3.cdmpp >/dev/null; net --set train.facts=none --out none.cdmpp >/dev/null; echo "status $?"
for m in net 3 none; do cdmpp-predict --quiet --cost-model $m.cdmpp --tasks "$K" "$HELD" | grep latency_s >$m.jsonl; done
cmp net.jsonl 3.jsonl && echo "networks have no prior"
cmp -s net.jsonl none.jsonl || echo "facts are read"
for m in net none; do cdmpp-predict --cost-model $m.cdmpp --info --json | grep -o '"schema_version":.,'; done # programs of before networks read facts would leave them out
cdmpp-predict --quiet --cost-model net.cdmpp --export onnx --out m.onnx; echo "status $?"
net --set train.facts=columns --set model.tuner=true --out x.cdmpp >/dev/null; cdmpp-predict --cost-model x.cdmpp --info --json | grep -o '"tuner":{' # which is of rows alone
# a fine-tuning reads the facts that its start reads; groups that are left out are not there again in an answer
train --set model.members=[mlp] --set train.facts=columns --finetune net.cdmpp --out x.cdmpp 2>&1
net --set train.facts=columns --finetune none.cdmpp --out x.cdmpp 2>&1
net --set train.facts=columns --finetune net.cdmpp --out x.cdmpp >/dev/null && cdmpp-predict --quiet --cost-model x.cdmpp --tasks "$K" "$HELD" | grep -c latency_s
net --set train.facts=columns --set train.facts_without=[traffic] --set fit.scale=none --out x.cdmpp 2>&1
net --set train.facts=columns --set train.facts_without=[traffic] --finetune net.cdmpp --out x.cdmpp 2>&1
net --set train.facts=columns --set train.facts_without=[traffic] --out x.cdmpp --report x.html >/dev/null; cdmpp-predict --quiet --cost-model x.cdmpp --tasks "$K" some.json >x.jsonl
python3 - x.csv x.jsonl <<'PY'
import csv, json, sys
answer = {r["line"]: r["latency_s"] for r in map(json.loads, open(sys.argv[2])) if not r.get("out_of_range", True)} # not those that the peaks of the device lift
far = [abs(answer[int(r["line"])] / float(r["predicted_s"]) - 1) for r in csv.DictReader(open(sys.argv[1])) if int(r["line"]) in answer]
print(len(far) > 50 and max(far) < 1e-4 and "the report says what the model answers")
PY
# what is said where something is missing or does not fit
train --set train.facts=prior --set model.members=[sums] --out x.cdmpp >/dev/null; echo "status $?" # which reads none
cdmpp-predict --cost-model x.cdmpp --info --json | grep -c '"facts":"prior"'
train --set train.facts=prior --set train.objective=rank --out x.cdmpp 2>err; echo "status $?"; sed "s|$ROOT/||" err >&2
predict() { cdmpp-predict --quiet --cost-model prior.cdmpp "$@"; echo "status $?"; }
predict --export onnx --out m.onnx
predict --tasks "$K" --explain "$HELD:1" >explained.txt; tail -n 1 explained.txt
echo '{"id":1,"rows":[[0]]}' | cdmpp-predict --cost-model prior.cdmpp --tasks "$K" --stream 2>/dev/null | grep -o '"takes_rows":[a-z]*\|"error":"[^"]*"\|"code":"[A-Z]*"'
echo "--- auto: prior where it can be, the same model as with prior; else none and one warning, the same model as with none"
facts_of() { cdmpp-predict --cost-model "$1" --info --json | grep -o '\\n  facts: [a-z]*' | grep -v 'true\|false'; cdmpp-predict --cost-model "$1" --info --json | grep -c '"facts":"prior"'; }
loud() { cdmpp-train "${from:-$ROOT/configs/quickstart.yaml}" --set data.files=a.h5 --set train.rounds=12 "$@" 2>err >text; echo "status $?"; grep 'train.facts:' err text | sed "s|$ROOT/||"; }
some="--set filter.facts=true"
loud $some --set train.facts=auto -j1 --out auto.cdmpp; cmp auto.cdmpp prior.cdmpp && facts_of auto.cdmpp
printf -- '- {name: other, kind: cpu}\n' >other.yaml; printf -- '- {name: zen5-avx512, kind: cpu, clock_mhz: 4100}\n' >poor.yaml
mkdir alone configs; cp "$ROOT/configs/quickstart.yaml" alone; cp other.yaml configs/devices.yaml # in the place of ours, which stands behind a file that is named
from=alone/quickstart.yaml
for d in other poor; do
    loud $some --set train.facts=auto --set device.file=$d.yaml -j1 --out x.cdmpp --report x.html; facts_of x.cdmpp
    grep -o '^  facts: [a-z]*' x.html | grep -v false | sort -u
    loud $some --set train.facts=none --set device.file=$d.yaml -j1 --out y.cdmpp; cmp x.cdmpp y.cdmpp && echo "as none"
done
loud $some --set train.facts=auto --set device.file=other.yaml --quiet --out x.cdmpp # no warnings then: the result says it
rm -r configs; from=
loud $some --set train.facts=auto --set train.objective=rank --out x.cdmpp
loud $some --set train.facts=auto --set model.members=[sums] --out x.cdmpp; facts_of x.cdmpp || :
echo "--- a search loads the facts that its trials read"
printf 'tune: {base: b.yaml, trials: 1, budget: train.rounds, min_budget: 2, max_budget: 2}\nspace: {train.max_depth: {int: [3, 5]}}\n' >space.yaml
for facts in prior auto; do
    printf 'data: {files: a.h5}\nsplit: {kind: record}\nfilter: {facts: true}\ndevice: {file: %s}\ntrain: {facts: %s}\n' "$ROOT/configs/devices.yaml" $facts >b.yaml
    cdmpp-train --autotune space.yaml --quiet --set output.model=s.cdmpp --out best.yaml >/dev/null 2>&1; echo "status $?"
    cdmpp-predict --cost-model s.cdmpp --info --json | grep -c '"facts":"prior"'; rm -f s.cdmpp best.yaml*
done
