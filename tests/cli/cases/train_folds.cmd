# folds of whole networks: which programs stay out of fold, and what is refused
# Long: no sanitizer.
. "$T/lib.sh"
cdmpp-extract -q --tasks "$K" --out a.h5 "$LOGS" || [ $? -eq 3 ] || exit
train() { cdmpp-train "$ROOT/configs/quickstart.yaml" --set data.files=a.h5 --set train.rounds=3 --set split.kind=network --set 'split.test_names=[resnet_18]' --out m.cdmpp "$@"; }
folds() { train --set model.folds="$1" --set model.fold_by="$2" 2>/dev/null | sed -n 's/^validation (\(.*\)): MAPE.*/\1/p'; }
echo "task: $(folds 3 task)"
echo "network: $(folds 3 network)"
train -q --set model.folds=20 --set model.fold_by=network; echo "status $?"
train -q --set model.fold_by=network; echo "status $?"
train -q --set split.kind=record --set 'split.test_names=[]' --set model.folds=3 --set model.fold_by=network; echo "status $?"
