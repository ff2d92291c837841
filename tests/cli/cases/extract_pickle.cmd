# tasks from TVM's pickle
. "$T/lib.sh"
plain cdmpp-extract --json -q --tasks "$ROOT/tests/fuzz/seeds/pickle/gru_p4.pkl" --out a.h5 "$T/gru.json"
