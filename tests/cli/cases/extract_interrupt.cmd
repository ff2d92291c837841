# ^C: exit status 130, and the same command goes on from there
. "$T/lib.sh"
set -- --tasks "$K" "$LOGS" "$LOGS" "$LOGS" # three times: long enough to be met alive
cdmpp-extract -q "$@" --out whole.h5
cdmpp-extract -q "$@" -j1 --out a.h5 2>err.txt &
p=$!
while [ ! -s a.h5.partial/journal ] && kill -0 $p 2>/dev/null; do sleep 0.02; done
kill -TERM $p
wait $p
echo "status $?"
sed 's/after [0-9]* records/after N records/' err.txt; rm err.txt
cdmpp-extract -q "$@" --out a.h5
echo "status $?"
cmp whole.h5 a.h5 && ls
