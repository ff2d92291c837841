. "$T/lib.sh"
{ sed -n 1p "$HELD"; echo '{"i": 5}'; sed -n 2p "$HELD"; } >a.json
plain cdmpp-extract -q --strict --tasks "$K" --out a.h5 a.json
st=$?; ls -d a.h5 2>/dev/null; exit $st
