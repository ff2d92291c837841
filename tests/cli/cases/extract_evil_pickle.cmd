# a pickle that calls os.system
. "$T/lib.sh"
head -n 1 "$HELD" >a.json
plain cdmpp-extract --tasks "$ROOT/tests/fuzz/seeds/pickle/system.pkl" --out a.h5 a.json
