# --json: one object with schema and command, whatever the work
. "$T/lib.sh"
one() { "$@" --json -q >out; st=$?; echo "$st $(wc -l <out) $(cut -d , -f 1,2 <out | sed 's/: /:/g')"; grep -v '}$' out; }
one cdmpp-extract --tasks "$K" --out a.h5 "$HELD"
one cdmpp-extract --merge b.h5 a.h5
one cdmpp-extract --list-columns
one cdmpp-extract --tasks "$K" --print "$HELD:3"
cat >c.yaml <<'Y'
data: {files: a.h5}
train: {rounds: 3}
Y
printf 'tune: {trials: 2}\nspace: {train.eta: {real: [0.1, 0.3]}}\n' >s.yaml
set -- cdmpp-train c.yaml -j1 --set device.file="$ROOT/configs/devices.yaml"
one "$@" --out a.cdmpp
one "$@" --trial
one "$@" --print-config
one "$@" --print-config --autotune s.yaml
one cdmpp-train --doc-config
one cdmpp-predict --model a.cdmpp --tasks "$K" "$HELD"
one cdmpp-predict --model a.cdmpp --tasks "$K" "$HELD" --eval
one cdmpp-predict --model a.cdmpp --info
for c in extract train predict; do one cdmpp-$c --version; done
# operators: a figure for each class and device
awk 'BEGIN { print "OPName,Latency,Device,B,H"; for (b = 1; b <= 64; b++) for (h = 1; h <= 4; h++)
    printf "add,%.6g,Tesla T4,%d,%d\n", 0.02 + b * 64 * h * 256 * 12 / 256e6, b * 64, h * 256 }' >ops.csv
printf 'data: {kind: operators, files: ops.csv}\noperators: {rounds: 20, check: none}\n' >o.yaml
one cdmpp-train o.yaml -j1 --out o.cdmpp --set device.file="$ROOT/configs/devices.yaml"
one cdmpp-predict --operators --model o.cdmpp --devices "$ROOT/configs/devices.yaml" ops.csv
one cdmpp-predict --operators --model o.cdmpp --devices "$ROOT/configs/devices.yaml" --eval ops.csv
s="mape\|mae_log\|median\|bias\|within20\|inside"; sed "s/\"\($s\)\":[-0-9.e]*/\"\1\":N/g" out
# messages as objects, errors of a configuration too
cdmpp-train c.yaml --log-format json --set train.rounds=ten --set train.eat=1
cdmpp-predict --log-format=json --model a.cdmpp --tasks nosuch "$HELD"
