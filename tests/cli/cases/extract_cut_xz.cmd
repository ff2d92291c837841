# an archive cut short: what it held up to there is not taken for the whole
. "$T/lib.sh"
head -n 40 "$HELD" | xz >a.json.xz
head -c 1500 a.json.xz >b.json.xz
plain cdmpp-extract -q --tasks "$K" --out b.h5 b.json.xz
st=$?; cat b.h5.skipped.tsv; exit $st
