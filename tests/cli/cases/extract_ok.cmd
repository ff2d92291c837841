# five records of one log
. "$T/lib.sh"
head -n 5 "$HELD" >a.json
plain cdmpp-extract --json --tasks "$K" --out a.h5 a.json
st=$?; ls; exit $st
