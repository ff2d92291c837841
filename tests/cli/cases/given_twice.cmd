# a file that is given twice, by whatever name, is said and read once; keys of a configuration that do nothing are said once
. "$T/lib.sh"
exec 2>&1
mkdir logs
xz -dcf "$(find "$LOGS" -type f | sort | head -n 1)" | head -n 60 >logs/a.json
xz -dcf "$(find "$LOGS" -type f | sort | head -n 1)" | head -n 90 | tail -n 30 >logs/b.json
ln -s a.json logs/link.json; cp logs/a.json copy.json
extract() { cdmpp-extract --tasks "$K" --out "$@" 2>&1 | grep -o 'warning: .*\|^[^:]*: [0-9]* programs' ; }
programs() { cdmpp-extract --merge m.h5 "$1" --json | grep -o '"programs": [0-9]*'; }
extract once.h5 logs/a.json logs/b.json; programs once.h5
extract twice.h5 logs/a.json logs logs/b.json; programs twice.h5
extract copy.h5 logs/a.json copy.json; programs copy.h5
echo "--- data sets"
ln once.h5 again.h5
cdmpp-extract --merge n.h5 once.h5 again.h5 once.h5 -q --json | grep -o '"programs": [0-9]*\|"warnings":.*'
train() { cdmpp-train "$ROOT/configs/quickstart.yaml" --set 'data.devices=[]' --set train.rounds=2 --set model.members='[program]' --out m.cdmpp "$@" 2>&1; }
train --set 'data.files=[once.h5, again.h5, once.h5]' | grep 'warning\|records\|^test'
train --set data.files=once.h5 | grep 'warning\|^test'
echo "--- keys"
train --set data.files=once.h5 --set net.width=8 --set fit.rate=0.1 --set operators.seed=2 --set data.seed=5 | grep warning
echo "--- logs of a calibration"
cdmpp-tune calibrate --records logs/a.json --records logs/link.json --tasks "$K" --cost-model "$ROOT/tests/golden/model_v2.cdmpp" --out c.cdmpp 2>&1 | grep -- --records
