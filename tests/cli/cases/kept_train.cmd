# trainings by small trees: parts, counts, members, reports, checkpoints. What the trees answer is a library's: figures with a point are not kept
. "$T/lib.sh"
masked() { sed -E -e "/samples.s/d" -e "s|$ROOT/||g; s|$PWD/||g; s/_bytes\": [0-9]*/_bytes\": N/" -e 's/[0-9]+ bytes/N bytes/g; s/[0-9]+:[0-9]{2}\b/T/g; s/[0-9a-f]{32,64}/H/g; s/-?[0-9]+([.][0-9]+)?e[-+][0-9]+/N/g; s/-?[0-9]+[.][0-9]+/N/g' "$@"; }
{ xz -dc "$LOGS/zen5-avx2/records.json.xz" | head -n 160; xz -dc "$LOGS/zen5-avx512/records.json.xz" | head -n 120; cat "$HELD"; } >log.json
cdmpp-extract -q --json --tasks "$K" --out a.h5 log.json | masked
train() { cdmpp-train "$ROOT/configs/quickstart.yaml" -j1 --set data.files=a.h5 --set train.rounds=6 --set train.max_depth=3 --set 'model.members=[rows]' --set model.folds=1 --out m.cdmpp "$@" 2>&1 | masked; }
kept default train --report r.html
sed -E "s|[0-9.]+|N|g" r.html >r.2; kept_files r.2 # places in drawings are figures, too
for o in 'split.kind=record' 'split.kind=task split.seed=5' 'split.kind=network split.test_names=[resnet_18,dcgan]' 'split.kind=task filter.max_per_task=3 filter.min_per_task=2' \
    'split.kind=device split.test_names=zen5-avx2 data.devices=[]' 'split.kind=device split.test_names=zen5-avx2 data.devices=[] split.target_tasks=4 split.target_select=kmeans' \
    'split.mode=by_net:train-all,test-vgg_16-resnet_18_bs1 data.devices=[]' 'data.sample=sample50 split.mode=by_device:train-zen5-avx512 data.devices=[]' 'split.kind=task filter.low_percentile=10 filter.high_percentile=90 filter.leaf_counts=[3,4,5,6]' \
    'model.members=[rows,sums,program] model.folds=2' 'train.objective=rank split.kind=record' 'train.objective=pack_sum model.members=[rows]'; do
    # shellcheck disable=SC2046
    kept "$o" train --json $(for s in $o; do echo "--set $s"; done)
    cdmpp-predict --model m.cdmpp --info --json 2>&1 | masked >info; kept_files info
done
kept verbose train --verbose --report c.html
