# -j1 and -j4: the same bytes
. "$T/lib.sh"
cdmpp-extract -q -j1 --tasks "$K" --out a.h5 "$HELD" && cdmpp-extract -q -j4 --tasks "$K" --out b.h5 "$HELD" && cmp a.h5 b.h5 && echo same
