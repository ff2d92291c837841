# the whole way: train on 86 records, score them, twice the same bytes
. "$T/lib.sh"
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD" || exit
train() { cdmpp-train "$ROOT/configs/quickstart.yaml" --set data.files=a.h5 --set train.rounds=20 "$@"; }
train -j1 --out a.cdmpp 2>/dev/null | sed -n 's/:.*//p' | grep split
train -j2 --quiet --out b.cdmpp | sed 's/:.*//; s/within.*/within .../; s/, [0-9]* bytes//' && cmp a.cdmpp b.cdmpp && echo same model
cdmpp-predict --quiet --model a.cdmpp --tasks "$K" "$HELD" >p1.jsonl; echo "status $?"
cdmpp-predict --quiet -j2 --model b.cdmpp --tasks "$K" - <"$HELD" | sed "s|\"file\":\"-\"|\"file\":\"$HELD\"|" | cmp - p1.jsonl && echo same predictions
wc -l <p1.jsonl
head -n 1 p1.jsonl | sed "s|$ROOT/||; s/\"\(latency_s\|low_s\|high_s\|rel_std\)\":[0-9.e-]*/\"\1\":L/g"
# figures alone, as one object
cdmpp-predict --model a.cdmpp --tasks "$K" --eval --json -q "$HELD" | sed 's/"evaluation":{"n":\([0-9]*\),.*/"evaluation":{"n":\1 .../; s/"\(out_of_range\|inside_interval\)":[0-9]*/"\1":N/g'
