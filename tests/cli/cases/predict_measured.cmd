# ten measured programs of a device that the model never saw correct its answers for the others; descriptors from records
. "$T/lib.sh"
slower() { # a log as of zen4, where all takes four times as long
    sed 's/-model=zen5-avx512/-model=zen4/' "$1" | awk '{ i = index($0, "\"r\": [["); rest = substr($0, i + 7); j = index(rest, "]"); n = split(substr(rest, 1, j - 1), v, ", "); s = ""
        for (k = 1; k <= n; k++) s = s (k > 1 ? ", " : "") 4 * v[k]; print substr($0, 1, i + 6) s substr(rest, j) }'
}
mkdir fast slow
cp "$HELD" fast/a.json; slower "$HELD" >slow/a.json
cdmpp-extract -q --tasks "$K" --out a.h5 fast slow || exit
train() {
    cdmpp-train "$ROOT/configs/own.yaml" --quiet --set data.files=a.h5 --set split.kind=device --set 'split.test_names=[zen4]' --set split.valid=0.2 \
        --set train.rounds=20 --set fit.epochs=2 --set fit.batch=16 --set net.ff=16 --set net.width=16 --set net.head_width=16 --set net.embed=8 --set net.decoder_width=16 --set net.side_width=8 "$@"
}
train --out m.cdmpp >/dev/null || exit
head -n 10 slow/a.json >ten.json; tail -n +11 slow/a.json >rest.json
ask() { cdmpp-predict -q --cost-model m.cdmpp --tasks "$K" --device zen4 --json --eval "$@" rest.json | sed 's/.*"median_ape":\([0-9.]*\).*/\1/'; }
ask >none; ask --measured ten.json >some; ask --measured ten.json -j3 | cmp - some && echo "the same for any -j"
awk '{ print (NR == 1 ? "above 50 %: " ($1 > 0.5) : "below: " ($1 < last - 0.1)); last = $1 }' none some
sed 's/-model=zen4/-model=other/' rest.json >other.json; sed 's/-model=zen4/-model=other/' ten.json >other10.json
cdmpp-predict -q --cost-model m.cdmpp --tasks "$K" --json --eval other.json; echo "status $?"
near() { cdmpp-predict -q --cost-model m.cdmpp --tasks "$K" --nearest --devices n.yaml --json --eval "$@" other.json | sed 's/.*"median_ape":\([0-9.]*\).*/\1/'; }
printf -- '- {name: zen5-avx512, kind: cpu, clock_mhz: 4100}\n- {name: other, kind: cpu, clock_mhz: 4000, l1_kb: 32, l2_kb: 1024, l3_kb: 16384, bandwidth_gb_s: 30}\n' >n.yaml
near >none; near --measured other10.json >some
awk '{ print (NR == 1 ? "nearest, above 50 %: " ($1 > 0.5) : "below: " ($1 < last - 0.1)); last = $1 }' none some
echo "--- the line of an answer"
head -n 1 rest.json | cdmpp-predict --cost-model m.cdmpp --tasks "$K" --device zen4 --measured ten.json - | sed 's/:[0-9.e-]*[0-9]/:N/g; s/"workload_key":"[^ ]* .*\]",/"workload_key":W,/'
echo "--- lines that cannot be used"
{ echo '{'; head -n 2 ten.json; head -n 1 ten.json | sed 's/"r": \[\[[^]]*\], 0,/"r": [[1e10], 2,/'; } >some.json
cdmpp-predict --cost-model m.cdmpp --tasks "$K" --device zen4 --measured some.json rest.json >out; echo "status $?"; wc -l <out
echo "--- figures of records that correct them"
cat ten.json rest.json >both.json
cdmpp-predict --cost-model m.cdmpp --tasks "$K" --device zen4 --measured ten.json --eval both.json 2>&1 >/dev/null | grep -o '[0-9]* of these .*are also.*'
cdmpp-predict -q --json --cost-model m.cdmpp --tasks "$K" --device zen4 --measured ten.json --eval both.json | grep -o '"of_measured":[0-9]*'
cdmpp-predict -q --json --cost-model m.cdmpp --tasks "$K" --device zen4 --measured ten.json --eval rest.json | grep -o '"of_measured":[0-9]*'
head -n 1 some.json >bad.json
cdmpp-predict -q --json --cost-model m.cdmpp --tasks "$K" --device zen4 --measured bad.json rest.json; echo "status $?"
cdmpp-predict -q --strict --json --cost-model m.cdmpp --tasks "$K" --device zen4 --measured some.json rest.json; echo "status $?"
cdmpp-predict --cost-model m.cdmpp --stream --measured ten.json; echo "status $?"
cdmpp-predict --cost-model m.cdmpp --tasks "$K" --measured ten.json --explain rest.json:1; echo "status $?"
echo "--- descriptors from what both have run"
cdmpp-profile --describe-device --from-records --tasks "$K" fast slow >devices.yaml; echo "status $?"
grep -E '^(#|- name|  (rank|clock|# rank))' devices.yaml
train --set device.file=devices.yaml --set device.features=descriptor --set 'model.members=[mlp]' --out d.cdmpp >/dev/null; echo "status $?"
cdmpp-predict --model d.cdmpp --info --json | grep -o '"vector":\[[^]]*\]' | awk -F, '{ print NF " numbers" }'
train --set device.features=both --set 'model.members=[mlp]' --out d.cdmpp 2>&1 | sed "s|$ROOT/||"
cdmpp-profile --describe-device --from-records --tasks "$K" fast; echo "status $?"
cdmpp-profile --describe-device --from-records --measure --tasks "$K" fast; echo "status $?"
cdmpp-profile --describe-device --from-records fast; echo "status $?"
