# trees for the order inside a task: the same bytes for any -j and after a kill; contradictions
. "$T/lib.sh"
with=
xz -dc "$LOGS"/zen5-avx512/*.xz | head -n 300 >some.json
cdmpp-extract -q --tasks "$K" --out a.h5 some.json || exit
train() { $with cdmpp-train "$ROOT/configs/quickstart.yaml" --quiet --set data.files=a.h5 --set filter.min_per_task=3 --set train.rounds=20 --set train.max_depth=5 --set model.members=[rows,sums] "$@"; }
for o in pack_sum rank; do
    train --set train.objective=$o -j1 --out a.cdmpp >/dev/null; echo "$o: status $?"
    train --set train.objective=$o -j3 --out b.cdmpp >/dev/null; cmp a.cdmpp b.cdmpp && echo same model
    cdmpp-predict --model a.cdmpp --info --json | grep -o '"schema_version":.,\|"objective":"[a-z_]*"'
    cdmpp-predict -q --model a.cdmpp --tasks "$K" "$HELD" | wc -l
    # one member is trained when the kill comes; the folder is of this objective alone
    (with=exec; train --set train.objective=$o -j1 --checkpoint k.$o --out c.cdmpp >/dev/null 2>&1) & # the kill is of it, not of a shell that waits for it
    p=$!
    while [ ! -e k.$o/sums-0.member ] && kill -0 $p 2>/dev/null; do sleep 0.01; done
    kill -9 $p 2>/dev/null
    wait $p 2>/dev/null
    rm -f c.cdmpp
    train --set train.objective=$o -j1 --checkpoint k.$o --out c.cdmpp >/dev/null; cmp a.cdmpp c.cdmpp && echo same model after a kill
done
train --checkpoint k.rank --out c.cdmpp 2>&1 >/dev/null | sed 's/digest [0-9a-f]*/digest D/; s/found [0-9a-f]*/found D/'
train -j2 --out d.cdmpp >/dev/null && cdmpp-predict --model d.cdmpp --info --json | grep -o '"schema_version":.,\|"objective":"[a-z_]*"'
# losses of the order: other trees, each the same for any -j, and the first is the default; beside seconds; where nobody learns by them
train --set train.objective=rank --set train.rank_loss=pairwise -j2 --out p.cdmpp >/dev/null && cdmpp-predict --model p.cdmpp --export xgboost --member 0 --out p.ubj && cdmpp-predict --model a.cdmpp --export xgboost --member 0 --out a.ubj && cmp p.ubj a.ubj && echo pairwise is the default
for l in lambdarank listnet; do
    train --set train.objective=rank --set train.rank_loss=$l -j1 --report $l.html --out $l.cdmpp >/dev/null; echo "$l: status $?"
    train --set train.objective=rank --set train.rank_loss=$l -j3 --out b.cdmpp >/dev/null; cmp $l.cdmpp b.cdmpp && echo same model
    cdmpp-predict --model $l.cdmpp --export xgboost --member 0 --out $l.ubj; cmp -s $l.ubj a.ubj || echo other trees
    cdmpp-predict -q --model $l.cdmpp --tasks "$K" "$HELD" | wc -l
    grep -o '"loss":"[^"]*"' $l.json
done
train --set model.order=[rows] --set train.rank_loss=listnet --out o.cdmpp >/dev/null && cdmpp-predict --cost-model o.cdmpp --info --json | grep -o '"schema_version":.,'
train --set train.rank_loss=listnet --out e.cdmpp 2>&1 | sed "s|$ROOT/||"
train --set model.order=[tlp] --set train.rank_loss=listnet --out e.cdmpp 2>&1 | sed "s|$ROOT/||"
# no trees; a loss of another objective; a word that there is not; tasks of one program
train --set train.objective=rank --set 'model.members=[mlp]' --out e.cdmpp 2>&1 | sed "s|$ROOT/||"
train --set train.objective=pack_sum --set train.loss=mape --out e.cdmpp 2>&1 | sed "s|$ROOT/||"
train --set train.objective=ranks --out e.cdmpp; echo "status $?"
train --set train.objective=rank --set filter.max_per_task=1 --set filter.min_per_task=0 --out e.cdmpp; echo "status $?"
