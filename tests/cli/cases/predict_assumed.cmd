# a model of one device answers for a log that does not say whose it is, and says that; one that says it is as before
. "$T/lib.sh"
exec 2>&1
mkdir -p old-laptop zen5-avx2
xz -dcf "$LOGS/zen5-avx2/records.json.xz" | head -n 60 | sed 's/ -model=[^ "]*//' >zen5-avx2/log.json
head -n 6 zen5-avx2/log.json >old-laptop/log.json; head -n 2 zen5-avx2/log.json | sed 's/"llvm/"llvm -model=zen5-avx2/' >old-laptop/named.json
cdmpp-extract -q --tasks "$K" --out d.h5 zen5-avx2/log.json
cdmpp-train "$ROOT/configs/quickstart.yaml" -q --set data.files=d.h5 --set 'data.devices=[]' --set train.rounds=3 --set model.members='[program]' --out m.cdmpp >/dev/null
ask() { cdmpp-predict --cost-model m.cdmpp --tasks "$K" "$@" >out 2>err; echo "exit $?"; grep -o '"assumed_device":.*' out | sort | uniq -c | sed 's/^ *//'; grep 'only device' err; }
ask old-laptop/log.json
ask --eval old-laptop/log.json
ask old-laptop/named.json old-laptop/log.json
ask - <old-laptop/log.json
echo "--- said by the folder, by the target, by the user"
ask zen5-avx2/log.json
ask old-laptop/named.json
ask --device zen5-avx2 old-laptop/log.json
