# other hosts: one dies at every start, one lies, one works; what it measured goes on and into a store
. "$T/lib.sh"
XDG_CACHE_HOME=$PWD/cache
export XDG_CACHE_HOME
xz -dc "$LOGS/zen5-avx2/records.json.xz" | head -n 3 >log.json
echo '{"i": "nothing"}' >>log.json
R="cdmpp-profile records --tasks $K --budget-ms 5 --isa native --out out.json"
way='case $1 in dies) exit 1 ;; lies) echo "{\"hello\":\"cdmpp-worker\",\"protocol\":1}"; while read -r x; do echo 1; done; exit ;; esac
shift 2; exec cdmpp-profile --worker "$@"'
$R --host dies --host lies --host works --transport "$way" log.json 2>err.txt; echo "status $?"
grep -c 'dies: ended\|lies: sent a line that is no message' err.txt | sed 's/[1-9][0-9]*/some/'
grep -c '"r": \[\[[0-9.e, -]*\], 0,' out.json
for l in 1 2 3; do sed -n "${l}s/\], \"r\".*//p" out.json | cmp - "$(sed -n "${l}s/\], \"r\".*//p" log.json >want; echo want)" || echo "line $l"; done
$R --host works --transport "$way" log.json 2>/dev/null
$R --host dies --transport "$way" --json --target llvm log.json 2>/dev/null | grep -o '"measured":0.*"known":0'; echo "status $?"
$R --host '-oProxyCommand=x' --target llvm log.json
echo '{"lease":1,"record":"{}"}' | cdmpp-profile --worker | sed 's/"version":.*/.../; s/"message":.*/.../'
cdmpp-profile records --tasks "$K" --budget-ms 5 --isa native --out o.json --store s.db --quiet log.json >/dev/null 2>&1
cdmpp-profile store export --store s.db | cmp - o.json && echo "the same in the store"
$R --host works --transport "$way" --rounds 2 --stats s.jsonl --store r.db --quiet log.json 2>/dev/null
grep -c '"host":"works".*"error_no":0,"n":[1-9].*"quiet_before":1' s.jsonl
cdmpp-profile store stats --store r.db | head -n 1
echo "--- a product's weights are packed: the host knows their shape"
cdmpp-profile --list-tasks --network matmul --input-size 16 --out-tasks mm.tasks.json >/dev/null
cdmpp-profile draw --quiet --tasks mm.tasks.json --trials 1 --out drawn.json
cdmpp-profile records --quiet --tasks mm.tasks.json --host works --transport "$way" --budget-ms 5 --out packed.json drawn.json; echo "status $?"
