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
cdmpp-predict --cost-model m.cdmpp --info --json >info; grep -o '"name":"zen5[^"]*"' info
echo "--- what quickstart.yaml says about it, and too few programs"
cdmpp-train "$ROOT/configs/quickstart.yaml" -q --set data.files=all.h5 --out m.cdmpp; echo "exit $?"
head -n 3 own.json >3.json; cdmpp-extract -q --tasks "$K" --out 3.h5 3.json
cdmpp-train "$ROOT/configs/own.yaml" -q --set data.files=3.h5 --set train.rounds=5 --out m.cdmpp; echo "exit $?"
for n in 4 8; do head -n $n own.json >$n.json; cdmpp-extract -q --tasks "$K" --out $n.h5 $n.json; done
few() { n=$1; shift; echo "--- $n programs $*"; cdmpp-train "$ROOT/configs/own.yaml" -q --set data.files=$n.h5 --set train.rounds=5 --out m.cdmpp "$@" >text; echo "exit $?"; grep -v 'MAPE\|within\|bytes' text | sed "s|$ROOT/||g"; }
few 4; for f in 5 3 1 2; do few 4 --set split.seed=6 --set model.folds=$f; done; few 8; few 60
echo "--- what the space of a search is for, and a folder that the advice makes"
cdmpp-train "$ROOT/configs/space.yaml" 2>&1 | sed "s|$ROOT/||g"
cp "$ROOT/configs/quickstart.yaml" q.yaml; cdmpp-train q.yaml --set 'data.files=[no.h5]' | grep mkdir
