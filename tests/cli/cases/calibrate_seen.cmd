# what a calibration has measured counts as seen: programs of 24 threads are not told as unlike any more, those of other numbers are
. "$T/lib.sh"
exec 2>&1
log() { xz -dcf "$LOGS/zen5-avx2/records.json.xz" | head -n "$2" | sed "s/ -model=[^ \"]*/ -model=board/; s/\(\"llvm[^\"]*\", \[\)[0-9]*,/\1$1,/"; }
cdmpp-extract -q --tasks "$K" --out a.h5 "$LOGS/zen5-avx2"
cdmpp-train "$ROOT/configs/quickstart.yaml" -q --set data.files=a.h5 --set 'data.devices=[]' --set train.rounds=10 --set model.members='[program]' --out m.cdmpp >/dev/null
log 24 200 >board.json; log 24 2 >ask.json; log 7 2 >other.json
cdmpp-tune calibrate -q --cost-model m.cdmpp --device zen5-avx2 --tasks "$K" --records board.json --out board.cdmpp --force >/dev/null; echo "exit $?"
reasons() { cdmpp-predict -q --tasks "$K" "$@" | grep -o '"reason":.*threads [0-9]*' | sed 's/.*threads/threads/' | sort | uniq -c | sed 's/^ *//'; }
echo "--- before"; reasons --cost-model m.cdmpp --device zen5-avx2 ask.json
echo "--- after"; reasons --cost-model board.cdmpp ask.json; reasons --cost-model board.cdmpp other.json
echo "--- of the device that stands for it"; reasons --cost-model board.cdmpp --device zen5-avx2 ask.json
cdmpp-predict --cost-model board.cdmpp --info --json 2>/dev/null | grep -o '"marks":"[^"]*threads[^"]*"'
