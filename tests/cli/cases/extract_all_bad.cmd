# every line is skipped: an error that says why, and no empty data set
. "$T/lib.sh"
head -n 3 "$HELD" | sed 's/"\[\\"[0-9a-f]*/"[\\"0123/' >a.json
plain cdmpp-extract --tasks "$K" --out a.h5 a.json; echo "exit $?"
ls
echo "--- what was there stays"
head -n 2 "$HELD" >b.json
cdmpp-extract -q --tasks "$K" --out a.h5 b.json; cksum <a.h5 >before
cdmpp-extract -q --tasks "$K" --out a.h5 a.json 2>/dev/null; echo "exit $?"
cksum <a.h5 | cmp - before && ls
echo "--- a shard may be empty"
for k in 1 2; do cdmpp-extract -q --tasks "$K" --shard $k/2 --out s$k.h5 a.json 2>/dev/null; echo "exit $?"; done
ls s?.h5
echo "--- nothing in it"
: >empty.json; cdmpp-extract --tasks "$K" --out e.h5 empty.json; echo "exit $?"
ls e.h5
