# pickle -> text -> text
. "$T/lib.sh"
cdmpp-extract --write-tasks --tasks "$ROOT/tests/fuzz/seeds/pickle/gru_p4.pkl" >a.tasks.json || exit
cdmpp-extract --write-tasks --tasks a.tasks.json | cmp - a.tasks.json || exit
cdmpp-extract -q --json --tasks a.tasks.json --out a.h5 "$T/gru.json" >/dev/null || exit
cdmpp-extract -q --json --tasks "$ROOT/tests/fuzz/seeds/pickle/gru_p4.pkl" --out b.h5 "$T/gru.json" >/dev/null || exit
head -n 4 a.tasks.json | cut -c 1-100
echo '{"schema": "cdmpp.tasks", "version": 1, "tasks": []}' >none.tasks.json
cdmpp-extract -q --write-tasks --tasks none.tasks.json; echo "exit $?"
sed -n 8,19p "$T/printed.out" >refused.out
cdmpp-extract --write-tasks --tasks refused.out 2>&1 >/dev/null | tail -n 1
cdmpp-extract -q --write-tasks --tasks refused.out >/dev/null; echo "exit $?"
cdmpp-profile draw -q --tasks refused.out --trials 1 --out drawn.json; echo "exit $?"
cdmpp-profile draw -q --tasks none.tasks.json --trials 1 --out drawn.json; echo "exit $?"
