# a search: the same for any -j, goes on after a kill, its winner is what it says
. "$T/lib.sh"
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD" || exit
cat >space.yaml <<'S'
tune: {trials: 9, budget: train.rounds, min_budget: 2, max_budget: 18}
space:
  train.eta: {log_real: [0.05, 0.5]}
  train.max_depth: {int: [2, 8]}
  train.loss: {choice: [squared, mape]}
  train.colsample: {real: [0.2, 0.9], when: {train.loss: mape}}
S
tune() { cdmpp-train --autotune space.yaml --quiet --set data.files=a.h5 --set split.kind=record "$@"; }
tune -j1 --out a.yaml --journal a.jsonl >a.txt; echo "status $?"
sed -n '1p; s/^trial [0-9]*, MAPE .*: /trial N, MAPE ... /p; s/:.*//; /split/p; /model/p' a.txt | sed 's/, [0-9]* bytes//'
# the winner, trained with its file, has the validation error that the search saw
cdmpp-train a.yaml --quiet --json >final.json
want=$(sed -n '1s/.* \([0-9.]*\)\.$/\1/p' a.yaml)
sed 's/.*"validation":{"n":[0-9]*,"groups":[0-9]*,"mape":\([0-9.]*\),.*/\1/' final.json |
    awk -v w="$want" '{ if (sprintf("%.6g", $1) + 0 == w + 0) print "same error"; else print $1, w }'
# as lines of JSON, two at a time
tune -j2 --json --out b.yaml >b.jsonl; cmp a.yaml b.yaml && echo same winner
# no file stays that nobody asked for, also after a run that went on from it; the journal that was asked for does
ls b.yaml*
head -n 3 a.jsonl >b.yaml.journal.jsonl
tune -j1 --out b.yaml >/dev/null; cmp a.yaml b.yaml && ls b.yaml* a.jsonl
# the journal of another search is not ours to remove
echo '{"schema":"other"}' >b.yaml.journal.jsonl
tune -j1 --out b.yaml >/dev/null 2>&1; echo "status $?"; rm b.yaml.journal.jsonl
count() { grep -c "\"state\":\"$1\"" b.jsonl; }
n=$(wc -l <a.jsonl)
[ "$(count running)" = $((n - 1)) ] && [ "$(count done)" = $((n - 1)) ] && [ "$(count failed)" = 0 ] && echo "one line each"
tail -n 1 b.jsonl | cut -c 1-60
# killed after each line of the journal: in the end the same lines, each once
k=1
while [ $k -lt "$n" ]; do
    head -n $k a.jsonl >c.jsonl
    printf '{"trial":' >>c.jsonl # cut in the middle
    tune -j1 --journal c.jsonl --out c.yaml 2>err >/dev/null || echo failed
    grep -q 'cut short, 9 bytes' err || cat err
    cmp a.yaml c.yaml && [ "$(wc -l <c.jsonl)" = "$n" ] || echo "differs after $k"
    k=$((k + 3))
done
# the configuration of any trial: of the winner the same file but for its first line; nothing is trained, the data need not be there
w=$(sed -n '1s/# Trial \([0-9]*\) .*/\1/p' a.yaml)
mv a.h5 away.h5
tune --config-of "$w" --out d.yaml; echo "status $?"
sed 1d a.yaml >a.rest; sed 1d d.yaml | cmp - a.rest && sed -n "1s/Trial $w /Trial N /p" d.yaml
tune --config-of 9 --out d.yaml; echo "status $?"
cdmpp-train --config-of 1 a.yaml; echo "status $?"
mv away.h5 a.h5
# another space is another search
tune --set tune.seed=2 --journal c.jsonl --out c.yaml; echo "status $?"
