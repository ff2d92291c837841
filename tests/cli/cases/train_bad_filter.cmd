# limits that leave nothing, numbers of leaves that are none, a device that was misspelt
. "$T/lib.sh"
cp "$ROOT/configs/quickstart.yaml" c.yaml
cdmpp-train c.yaml --set data.files=x.h5 --set 'filter.leaf_counts=[5, five, 0]' \
    --set filter.low_percentile=90 --set filter.high_percentile=10 --set filter.min_flop=2e9 --set filter.max_flop=1e9 \
    --set filter.min_per_task=20 --set filter.max_per_task=10
echo "status $?"
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD" || exit
cdmpp-train c.yaml --quiet --set data.files=a.h5 --set 'data.devices=[zen5-avx521]'; echo "status $?"
cdmpp-train c.yaml --quiet --set data.files=a.h5 --set filter.leaf_counts=63
