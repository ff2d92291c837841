# kill -9 in the middle: no half file; the next run gives what one run gives
. "$T/lib.sh"
set -- --tasks "$K" "$LOGS" "$LOGS" "$LOGS" # three times: long enough to be met alive
cdmpp-extract -q "$@" --out whole.h5
cdmpp-extract -q "$@" -j1 --out a.h5 &
p=$!
while [ ! -s a.h5.partial/journal ] && kill -0 $p 2>/dev/null; do sleep 0.02; done
kill -9 $p
wait $p 2>/dev/null
echo "status $?"
[ ! -e a.h5 ] && echo "no a.h5"
cdmpp-extract -q "$@" --out a.h5
echo "status $?"
cmp whole.h5 a.h5 && ls
