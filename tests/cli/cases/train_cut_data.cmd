# a data set cut short
. "$T/lib.sh"
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD"
head -c 20000 a.h5 >b.h5
plain cdmpp-train "$ROOT/configs/quickstart.yaml" --set data.files=b.h5 --out m.cdmpp
st=$?; ls; exit $st
