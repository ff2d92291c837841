. "$T/lib.sh"
plain cdmpp-extract --tasks "$K" --out a.h5 nosuch.json
st=$?; ls; exit $st
