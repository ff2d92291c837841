# one trial for a search of somebody else: the training's validation figures, no file
. "$T/lib.sh"
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD" || exit
t() { cdmpp-train "$ROOT/configs/quickstart.yaml" --quiet --set data.files=a.h5 --set train.rounds=5 --set train.eta=0.3 "$@"; }
t --out m.cdmpp --json | sed 's/.*"validation":\({"n":[^}]*"mape"[^}]*}\).*/\1/' >want
rm m.cdmpp
t --trial --json >got; echo "status $?"
sed 's/.*"validation":\({"n":[^}]*"mape"[^}]*}\).*/\1/' got | cmp - want && sed 's/"n":.*/.../' got
t --trial | sed 's/:.*//'
ls
