# kill -9 in the middle: no half file; the next run gives what one run gives
. "$T/lib.sh"
cdmpp-extract -q --tasks "$K" --out whole.h5 "$LOGS"
cdmpp-extract -q -j1 --tasks "$K" --out a.h5 "$LOGS" &
p=$!
while [ ! -s a.h5.partial/state ] && kill -0 $p 2>/dev/null; do sleep 0.02; done
kill -9 $p
wait $p 2>/dev/null
echo "status $?"
[ ! -e a.h5 ] && echo "no a.h5"
cdmpp-extract -q --tasks "$K" --out a.h5 "$LOGS"
echo "status $?"
cmp whole.h5 a.h5 && ls
