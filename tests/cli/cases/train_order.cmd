# members for the order beside those for the seconds: one file of both, the same bytes for any -j and after a kill, seconds to the bit, a score of its own
. "$T/lib.sh"
with=
xz -dc "$LOGS"/zen5-avx512/*.xz | head -n 300 >some.json
cdmpp-extract -q --steps --tasks "$K" --out a.h5 some.json || exit
train() { $with cdmpp-train "$ROOT/configs/quickstart.yaml" --quiet --set data.files=a.h5 --set filter.min_per_task=3 --set train.rounds=20 --set train.max_depth=5 --set model.members=[program] "$@"; }
train -j1 --out s.cdmpp >/dev/null; echo "seconds: status $?"
train --set model.order=[rows,sums] -j1 --report a.html --out a.cdmpp >said.txt; echo "both: status $?"
grep '^order:' said.txt | sed 's/[01]\.[0-9]/N/g'
train --set model.order=[rows,sums] -j3 --out b.cdmpp >/dev/null; cmp a.cdmpp b.cdmpp && echo same model
for m in s a; do cdmpp-predict --cost-model $m.cdmpp --info --json | grep -o '"schema_version":.,\|"order":{"at":\|"objective":"[a-z_]*"' | uniq -c | sed 's/^ *//'; done
head -n 1 a.csv | tr , '\n' | tail -n 1
predict() { cdmpp-predict -q --cost-model "$@"; }
for m in s a; do
    predict $m.cdmpp --tasks "$K" "$HELD" | grep -c latency_s
    predict $m.cdmpp --tasks "$K" "$HELD" | grep latency_s >$m.txt
    head -n 40 "$HELD" | predict $m.cdmpp --tasks "$K" --stream 2>/dev/null >$m.stream
    grep -o '"score":[^,]*' $m.stream >$m.scores; sed 's/"score":[^,]*,//' $m.stream | grep latency_s >$m.others; wc -l <$m.scores
done
grep -c '"score"' s.txt; grep -o '"score":[^,]*' a.txt | head -n "$(wc -l <a.scores)" | cmp - a.scores && echo "lines say what orders, as streams do"
sed -i 's/"score":[^,]*,//' a.txt
cmp s.txt a.txt && cmp s.others a.others && echo same seconds
cmp -s s.scores a.scores || echo other scores
# a kill after the first member for the order
(with=exec; train --set model.order=[rows,sums] -j1 --checkpoint k --out c.cdmpp >/dev/null 2>&1) &
p=$!
while [ ! -e k/order/sums-0.member ] && kill -0 $p 2>/dev/null; do sleep 0.01; done
kill -9 $p 2>/dev/null
wait $p 2>/dev/null
rm -f c.cdmpp
train --set model.order=[rows,sums] -j1 --checkpoint k --out c.cdmpp >/dev/null; cmp a.cdmpp c.cdmpp && echo same model after a kill
# a network of steps orders what trees time
train --set model.order=[tlp] --set net.width=16 --set net.embed=8 --set net.decoder_width=8 --set net.heads=2 --set net.device=false --set fit.batch=16 --set fit.epochs=8 --out t.cdmpp >/dev/null; echo "steps: status $?"
predict t.cdmpp --tasks "$K" "$HELD" | grep -c latency_s
# what it cannot do
predict a.cdmpp --export onnx --out a.onnx; echo "status $?"
predict a.cdmpp --export xgboost --member 0 --out a.ubj; echo "status $?"
train --set model.order=[rowz] --out x.cdmpp 2>&1 | sed "s|$ROOT/||"
train --set model.order=[rows,rows] --out x.cdmpp 2>&1 | sed "s|$ROOT/||"
train --set model.order=[tlp] --set net.heads=5 --out x.cdmpp 2>&1 | sed "s|$ROOT/||"
