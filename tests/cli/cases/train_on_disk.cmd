# data that are kept on disk: a trial, a search and a brief training say what is drawn of them
. "$T/lib.sh"
cdmpp-extract -q --tasks "$K" --out a.h5 "$LOGS/zen5-avx2" || exit
printf 'tune: {trials: 3, budget: train.rounds, min_budget: 2, max_budget: 4}\nspace: {train.eta: {log_real: [0.05, 0.5]}}\n' >space.yaml
t() { cdmpp-train "$@" --set data.files=a.h5 --set data.devices=[zen5-avx2] --set train.rounds=4 --set 'model.members=[rows]'; }
said() { sed 's/kept in [^"]*/kept in FOLDER/; s/:.*MAPE.*/: .../; s/, [0-9]* bytes//' | grep -v '^    within'; }
notes() { sed -n 's/.*\("notes":\[[^]]*\]\).*/\1/p' | said; }
t "$ROOT/configs/quickstart.yaml" --trial -q --set train.memory=1 | said
t "$ROOT/configs/quickstart.yaml" --trial -q --set train.memory=1 --json | notes
t "$ROOT/configs/quickstart.yaml" -q --set train.memory=1 --out m.cdmpp | said
t "$ROOT/configs/quickstart.yaml" -q --set train.memory=1 --out m.cdmpp --json | notes
t "$ROOT/configs/quickstart.yaml" -q --out m.cdmpp --json | notes
# one training at a time, and the outcome is that of one worker
t --autotune space.yaml "$ROOT/configs/quickstart.yaml" -j2 --set train.memory=1 --out a.yaml --json 2>/dev/null | notes
t --autotune space.yaml "$ROOT/configs/quickstart.yaml" -j1 -q --set train.memory=1 --out b.yaml >/dev/null
sed 1d a.yaml >a; sed 1d b.yaml | cmp - a && echo same winner
# in memory: as many at a time as have room
t --autotune space.yaml "$ROOT/configs/quickstart.yaml" -j4 --set train.memory=12 --out a.yaml 2>&1 | grep at.a.time
t "$ROOT/configs/quickstart.yaml" -q --set train.memory=1 --set train.folder=/no/folder --out m.cdmpp
