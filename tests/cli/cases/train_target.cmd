# a device of which 10 tasks are measured; the test part is that of 0 tasks; CDMPP's words
. "$T/lib.sh"
sed 's/-model=zen5-avx512/-model=old-cpu/; s/"r": \[\[[^]]*\]/"r": [[0.001, 0.002, 0.003]/' "$HELD" >old.json
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD" old.json || exit
try() {
    cdmpp-train "$ROOT/configs/quickstart.yaml" --set data.files=a.h5 --set 'data.devices=[]' --set train.rounds=5 "$@" >out.txt 2>/dev/null
    echo "status $?"
    sed -n '/^target/p; s/^\([a-z]* (.*)\):.*/\1/p; /^[0-9]/p; /^left out/p' out.txt
}
held() { try --set split.kind=device --set split.test_names=zen5-avx512 --set split.target_tasks="$1" --set split.target_select="$2" -j "$3"; }
held 0 kmeans 1
held 10 kmeans 1
mv model.cdmpp one.cdmpp
held 10 kmeans 2
cmp one.cdmpp model.cdmpp && echo same model
held 10 random 1
try --set split.kind=interleaved
try --set split.mode=by_net:train-all,test-vgg_16-resnet_18_bs1
try --set split.mode=by_device:train-old-cpu --set data.sample=old-cpu:sample40+network-lstm_,zen5-avx512:random20
