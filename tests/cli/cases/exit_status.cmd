# every exit status of the table that a command can be brought to
. "$T/lib.sh"
M=$ROOT/tests/golden/model_v1.cdmpp
try() { want=$1; shift; "$@" >out 2>err; got=$?; [ $got -eq "$want" ] && echo "$want ${1#cdmpp-}" || { echo "$*: $got, expected $want"; cat err; }; }
head -n 2 "$HELD" >a.json
{ cat a.json; echo '{'; } >bad.json
try 0 cdmpp-predict --model "$M" --tasks "$K" a.json
try 0 cdmpp-extract --tasks "$K" --out a.h5 a.json
try 0 cdmpp-train --doc-config
try 1 cdmpp-predict --model nosuch --tasks "$K" a.json
try 1 cdmpp-extract --tasks "$K" --out nosuch/a.h5 a.json
try 1 cdmpp-train nosuch.yaml
try 2 cdmpp-predict --frobnicate
try 2 cdmpp-extract --jobs many
try 2 cdmpp-train
try 3 cdmpp-predict --model "$M" --tasks "$K" bad.json
try 3 cdmpp-extract --tasks "$K" --out b.h5 bad.json
try 4 cdmpp-predict --model "$M" --tasks "$K" --strict bad.json
try 4 cdmpp-extract --tasks "$K" --out b.h5 --strict bad.json
try 4 cdmpp-train "$ROOT/configs/v100.yaml"
try 5 cdmpp-predict --model "$M" --tasks "$K" --device h100 a.json
# 6: an XGBoost that fails; models are read without it, trees are grown by it
cdmpp-extract -q --tasks "$K" --out c.h5 "$LOGS"
cat >fail.c <<'C'
int XGBoosterCreate(const void *const d[], unsigned long n, void **out) { (void)d, (void)n, (void)out; return -1; }
C
cc -shared -fPIC fail.c -o fail.so
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
try 6 env LD_PRELOAD=$PWD/fail.so cdmpp-train "$ROOT/configs/quickstart.yaml" -q --set data.files=c.h5 --set train.rounds=1 --out m.cdmpp
# 130: by a signal, met while it scores or while it waits for standard input; lines are whole
mkfifo pipe
rm -f out
cdmpp-predict -q --model "$M" --tasks "$K" "$LOGS" - <pipe >out 2>err &
p=$!
exec 3>pipe
while [ ! -s out ] && kill -0 $p; do sleep 0.05; done
kill -TERM $p; wait $p; st=$?; exec 3>&-
if [ $st -eq 130 ] && grep -c . out >/dev/null && ! grep -v '^{.*}$' out; then echo 130 predict; else echo "$st, expected 130"; cat err; fi
sed 's/[0-9][0-9]* lines/N lines/' err
