# pickle -> text -> text
. "$T/lib.sh"
cdmpp-extract --write-tasks --tasks "$ROOT/tests/fuzz/seeds/pickle/gru_p4.pkl" >a.tasks.json || exit
cdmpp-extract --write-tasks --tasks a.tasks.json | cmp - a.tasks.json || exit
cdmpp-extract -q --json --tasks a.tasks.json --out a.h5 "$T/gru.json" >/dev/null || exit
cdmpp-extract -q --json --tasks "$ROOT/tests/fuzz/seeds/pickle/gru_p4.pkl" --out b.h5 "$T/gru.json" >/dev/null || exit
head -n 4 a.tasks.json | cut -c 1-100
