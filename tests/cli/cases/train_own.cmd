# configs/own.yaml takes any data set from some tens of programs on; errors say what to change
. "$T/lib.sh"
exec 2>&1
sed 's/ -model=[^ "]*/ -model=my-machine/' "$HELD" >own.json
cdmpp-extract -q --tasks "$K" --out all.h5 own.json; cdmpp-extract -q --tasks "$K" --out half.h5 "$HELD"
for n in 30 60; do head -n $n own.json >$n.json; cdmpp-extract -q --tasks "$K" --out $n.h5 $n.json; done
for d in 30 60 all half; do
    for k in record task; do
        cdmpp-train "$ROOT/configs/own.yaml" -q --set data.files=$d.h5 --set split.kind=$k --set train.rounds=5 --out m.cdmpp >text; echo "$d $k exit $?"
    done
done
cdmpp-predict --cost-model m.cdmpp --info >info; grep -o '"name":"zen5[^"]*"' info
echo "--- what quickstart.yaml says about it, and too few programs"
cdmpp-train "$ROOT/configs/quickstart.yaml" -q --set data.files=all.h5 --out m.cdmpp; echo "exit $?"
head -n 3 own.json >3.json; cdmpp-extract -q --tasks "$K" --out 3.h5 3.json
cdmpp-train "$ROOT/configs/own.yaml" -q --set data.files=3.h5 --set train.rounds=5 --out m.cdmpp; echo "exit $?"
