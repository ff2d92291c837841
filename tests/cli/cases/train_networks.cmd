# trees and networks in two folds: the same bytes for any -j; predict; go on from a model
. "$T/lib.sh"
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD" || exit
train() {
    cdmpp-train "$ROOT/configs/quickstart.yaml" --quiet --set data.files=a.h5 --set split.kind=task --set train.rounds=5 --set fit.epochs=3 \
        --set fit.batch=16 --set net.ff=16 --set net.width=16 --set net.head_width=16 --set net.embed=8 --set net.decoder_width=16 --set net.side_width=8 "$@"
}
all="model.members=[rows, mlp, transformer, lstm]"
train --set "$all" --set model.tuner=true --set model.folds=2 -j1 --out a.cdmpp >/dev/null; echo "status $?"
train --set "$all" --set model.tuner=true --set model.folds=2 -j3 --out b.cdmpp >/dev/null; cmp a.cdmpp b.cdmpp && echo same model
cdmpp-predict --model a.cdmpp --info --json | grep -o '"kind":"[a-z]*","fold":-*[0-9]*'
cdmpp-predict --quiet --model a.cdmpp --tasks "$K" "$HELD" >1.jsonl; echo "status $?"
cdmpp-predict --quiet -j3 --model b.cdmpp --tasks "$K" "$HELD" | cmp - 1.jsonl && echo same predictions
cdmpp-predict --quiet --model a.cdmpp --profile tuner --tasks "$K" "$HELD" >2.jsonl; echo "status $?"; wc -l <2.jsonl; cmp -s 1.jsonl 2.jsonl || echo other seconds
cdmpp-predict --quiet --model a.cdmpp --profile fast --tasks "$K" "$HELD"; echo "status $?"
train --set 'model.members=[transformer]' --set net.layers=1 --set net.heads=2 --set net.ff=16 --set net.position=cdmpp --out t.cdmpp >/dev/null; echo "status $?"
train --set 'model.members=[transformer]' --finetune t.cdmpp --set fit.rate=1e-4 --out u.cdmpp >/dev/null; echo "status $?"
cdmpp-predict --quiet --model u.cdmpp --tasks "$K" "$HELD" | wc -l
cdmpp-predict --quiet --model u.cdmpp --profile tuner --tasks "$K" "$HELD"; echo "status $?"
train --set 'model.members=[lstm]' --finetune a.cdmpp --set fit.freeze=true --out w.cdmpp >/dev/null; echo "status $?"
# the network that is wanted is not in that model; a kind that there is not; a device nobody described
train --set 'model.members=[mlp]' --finetune t.cdmpp --out v.cdmpp; echo "status $?"
train --set 'model.members=[rows, forest]' --out v.cdmpp 2>&1 | sed "s|$ROOT/||"
sed 's/-model=zen5-avx512/-model=abacus-9/' "$HELD" >old.json
cdmpp-extract -q --tasks "$K" --out old.h5 old.json
train --set data.files=old.h5 --set 'data.devices=[]' --set 'model.members=[transformer]' --out v.cdmpp 2>&1 | sed "s|$ROOT/||"
train --set data.files=old.h5 --set 'data.devices=[]' --set 'model.members=[transformer]' --set net.device=false --out v.cdmpp >/dev/null; echo "status $?"
