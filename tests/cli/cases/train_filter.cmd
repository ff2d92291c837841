# what was dropped and why; every program is counted once
. "$T/lib.sh"
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD" || exit
cdmpp-train "$ROOT/configs/quickstart.yaml" --set data.files=a.h5 --set train.rounds=5 --set 'filter.leaf_counts=[3, 4]' \
    --set filter.low_percentile=10 --set filter.high_percentile=90 --set filter.min_flop=1e4 --set filter.max_per_task=1 2>/dev/null |
    sed -n '/^left out/{p;d}; s/:.*//p'
