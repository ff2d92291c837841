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
    cdmpp-predict --cost-model $facts.cdmpp --info | grep -o '"facts":"[a-z]*","\(prior\|rounds\)"' | sort | uniq -c
    cdmpp-predict --quiet --cost-model $facts.cdmpp --tasks "$K" "$HELD" >$facts.jsonl; echo "status $?"
    grep -c latency_s $facts.jsonl
done
cmp -s columns.jsonl prior.jsonl || echo they differ
# members that are there already are read, of the same facts alone
train --set train.facts=prior --checkpoint kept --out 1.cdmpp >/dev/null; train --set train.facts=prior --checkpoint kept --out 2.cdmpp >/dev/null
cmp 1.cdmpp 2.cdmpp && cmp 1.cdmpp prior.cdmpp && echo went on
train --set train.facts=columns --checkpoint kept --out 2.cdmpp 2>err.txt; echo "status $?"; sed 's/digest .*//' err.txt
# what is said where something is missing or does not fit
train --set train.facts=prior --set model.members=[sums] --out x.cdmpp >/dev/null; echo "status $?" # which reads none
cdmpp-predict --cost-model x.cdmpp --info | grep -c '"facts":"prior"'
train --set train.facts=prior --set train.objective=rank --out x.cdmpp 2>err; echo "status $?"; sed "s|$ROOT/||" err >&2
predict() { cdmpp-predict --quiet --cost-model prior.cdmpp "$@"; echo "status $?"; }
predict --export onnx --out m.onnx
predict --tasks "$K" --explain "$HELD:1" >explained.txt; tail -n 1 explained.txt
echo '{"id":1,"rows":[[0]]}' | cdmpp-predict --cost-model prior.cdmpp --tasks "$K" --stream 2>/dev/null | grep -o '"takes_rows":[a-z]*\|"error":"[^"]*"\|"code":"[A-Z]*"'
