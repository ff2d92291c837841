# a path of any length leaves room for what is wrong: its middle is left out, its beginning and the name of the file stay
. "$T/lib.sh"
exec 2>&1
a=$(printf 'a%.0s' $(seq 1 200)); d=folder/$a/$a/$a; mkdir -p "$d"
show() { "$@" 2>&1 | sed -e 's/aaaaa*/A/g'; }
echo '{"i": [' >"$d/broken.json"; printf 'data: {files: [%s/none.h5]}\nnet: {layers: x}\n' "$d" >"$d/train.yaml"
show cdmpp-train "$d/none.yaml"
show cdmpp-train "$d/train.yaml" --out m.cdmpp
show cdmpp-extract -q --tasks "$K" --strict --out d.h5 "$d/broken.json"
show cdmpp-extract -q --tasks "$d/none.json" --out d.h5 "$d/broken.json"
show cdmpp-replay --network resnet-18 --cost-model "$d/broken.json"
show cdmpp-partition --network "$d/broken.json" --plan "$d/none.plan"
show cdmpp-profile wrap -- "$d/no-program"
cp "$d/broken.json" "$d/log.json"; show cdmpp-extract -q --tasks "$K" --out "$d/log.json" "$d/log.json"
