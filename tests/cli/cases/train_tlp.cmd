# a network of schedule steps: data sets with and without steps, the same bytes for any -j, predictions, what it cannot do
# Long: no sanitizer.
. "$T/lib.sh"
xz -dc "$LOGS/zen5-avx512/records.json.xz" | head -n 120 >some.json
cdmpp-extract -q --steps --tasks "$K" --out a.h5 some.json || exit
cdmpp-extract -q --tasks "$K" --out b.h5 some.json || exit
train() {
    cdmpp-train "$ROOT/configs/baseline-tlp.yaml" --quiet --set split.kind=record --set net.width=16 --set net.embed=8 --set net.decoder_width=8 \
        --set fit.batch=16 --set fit.epochs=8 "$@"
}
train --set data.files=a.h5 -j1 --out 1.cdmpp >/dev/null; train --set data.files=a.h5 -j3 --out 3.cdmpp >/dev/null; cmp 1.cdmpp 3.cdmpp && echo same model
cdmpp-predict --cost-model 1.cdmpp --info --json | grep -o '"kind":"tlp"'
train --set data.files=a.h5 --set fit.loss=1rank --set fit.figure=loss --out order.cdmpp >/dev/null; echo "order: status $?"
train --set data.files=a.h5 --set 'model.members=[tlp, rows]' --set train.rounds=3 --out both.cdmpp >/dev/null; echo "both: status $?"
# what is said where something is missing or does not fit
train --set data.files=a.h5 --set fit.loss=1rank --out x.cdmpp; echo "status $?"
train --set data.files=b.h5 --out x.cdmpp; echo "status $?"
cdmpp-extract -q --merge ab.h5 a.h5 b.h5; echo "status $?"
predict() { cdmpp-predict --quiet --cost-model "$@"; echo "status $?"; }
for m in 1 order both; do predict $m.cdmpp --tasks "$K" "$HELD" | grep -c latency_s; done
# another limit of unrolling, another answer
head -n 2 "$HELD" | tail -n 1 >one.json
sed 's/auto_unroll_max_step$16/auto_unroll_max_step$512/' one.json >two.json
cmp -s one.json two.json || echo other steps
for k in one two; do predict 1.cdmpp --tasks "$K" $k.json | grep -o '"latency_s":[^,]*' >$k.txt; done
cmp -s one.txt two.txt || echo other seconds
predict 1.cdmpp --export onnx --out m.onnx
predict 1.cdmpp --export safetensors --out m.safetensors
predict 1.cdmpp --tasks "$K" --explain "$HELD:1"
echo '{"id":1,"rows":[[0]]}' | cdmpp-predict --cost-model 1.cdmpp --tasks "$K" --stream 2>/dev/null | grep -o '"takes_rows":[a-z]*\|"error":"[^"]*"\|"code":"[A-Z]*"'
