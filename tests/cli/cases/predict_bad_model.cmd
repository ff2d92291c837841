# cut short, changed, no model at all
. "$T/lib.sh"
head -n 1 "$HELD" >a.json
m=$ROOT/tests/golden/model_v1.cdmpp
head -c 2000 "$m" >cut.cdmpp
sed 's/xgboost/xgbOOst/' "$m" >changed.cdmpp
for f in cut.cdmpp changed.cdmpp a.json nosuch.cdmpp; do
    cdmpp-predict --model $f --tasks "$K" a.json
    echo "status $?"
done
