# a page, its numbers and its programs; -v tells every round
. "$T/lib.sh"
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD" || exit
train() { cdmpp-train "$ROOT/configs/quickstart.yaml" --set data.files=a.h5 --set train.rounds=20 --set "data.devices=[zen5-avx512]" --out m.cdmpp "$@"; }
train -j1 --report a.html 2>/dev/null | tail -n 1
train -v -j2 --set output.report=b.html 2>log >/dev/null
grep -c 'rows: round [0-9]*/20, loss [0-9.e-]* train, [0-9.e-]* validation; ' log
tail -n 1 log | sed 's/ in .*//'
ls ./*.html ./*.json ./*.csv
wc -l <a.csv
cmp a.csv b.csv && echo same programs
head -n 1 a.csv
for id in plot-scatter-test plot-cdf plot-decade plot-task plot-curves table-parts; do grep -c "id=\"$id\"" a.html; done
grep -o '<title>cdmpp[^<]*' a.html
grep -o 'cdmpp-train [^ ]*/configs/quickstart.yaml .*' a.html | sed "s|$ROOT/||g"
rm m.cdmpp; train -q --report nosuch/a.html >/dev/null # told before the training
st=$?; ls m.cdmpp 2>/dev/null; echo "exit $st"
# what lies beside the page and is no report stays
cp "$HELD" c.json; train -q --report c.html; echo "exit $?"; cmp c.json "$HELD" && echo kept
train -q --report a.html >/dev/null; echo "exit $?"
