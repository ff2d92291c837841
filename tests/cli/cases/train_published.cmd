# the published network in tiny sizes: it trains on one device and, with cmd, for another one; --set base= takes another device's data
. "$T/lib.sh"
sed 's/-model=zen5-avx512/-model=zen5-avx2/; s/"r": \[\[[^]]*\]/"r": [[0.001, 0.002, 0.003]/' "$HELD" >old.json
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD" old.json || exit
train() {
    cdmpp-train "$ROOT/configs/published.yaml" --quiet --set data.files=a.h5 --set 'filter.leaf_counts=[]' --set filter.max_std_ratio=0 \
        --set net.layers=2 --set net.width=16 --set net.ff=32 --set net.head_first=16 --set net.head_width=16 --set net.embed=8 --set net.side_width=8 \
        --set net.decoder_width=16 --set fit.batch=16 --set fit.target_batch=16 --set fit.steps=12 --set fit.eval_every=4 "$@" >out; st=$?
    sed -n 's/^\(test (.*)\):.*/\1/p' out; echo "status $st"
}
train --out a.cdmpp
train --set base=cross-device-epyc-7452.yaml --set 'split.test_names=[zen5-avx2]' --set 'filter.leaf_counts=[]' --set fit.loss=1000mse+1mape+1cmd --out b.cdmpp
cdmpp-predict --model b.cdmpp --info --json | grep -o '1000mse+1mape+1cmd'
# its sizes and its training are those of the publication
cdmpp-train "$ROOT/configs/published.yaml" --print-config | grep -A200 '^net:' | grep -B200 '^operators:'
