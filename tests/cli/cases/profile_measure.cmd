# programs compiled and measured: records, statistics, a second run that has nothing left to do
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD CC=gcc
head -3 "$HELD" >r.json
run() { cdmpp-profile records --tasks "$K" --isa native --threads 1 --budget-ms 20 --check "$@" 2>err | sed 's/^[0-9.]* s, .*/T/; /something else/d'; grep -v unsteady err; }
run --out o.json --stats s.jsonl r.json
run --out o.json r.json
wc -l <o.json; sed 's/.*"r": //; s/[0-9.e-]*[0-9]/N/g; s/N\(, N\)*/N/' o.json
cut -d'"' -f1-9 o.json >a; cut -d'"' -f1-9 r.json >b; cmp a b # the same tasks and targets
cdmpp-profile records --dry-run --tasks "$K" o.json
sed 's/"seconds":.*/X/; s/.*"result"://; s/"noisy":[0-9]*,"wide":[0-9]*/N/' <<X
$(cdmpp-profile records --tasks "$K" --isa native --threads 1 --budget-ms 20 --json -q --out o.json --rounds 2 r.json)
X
wc -l <o.json
wc -l <s.jsonl; grep -c '"median_s".*"checked"' s.jsonl
ls cdmpp | sed 's/work.*/work/'
# half a line, as a kill leaves it: cut off, measured again
head -c 900 o.json | head -1 >p.json; printf '{"i": [["half' >>p.json
run --out p.json r.json
wc -l <p.json
# for another machine: no record says that it was measured here
for t in hexagon 'llvm -mcpu=quantum9'; do cdmpp-profile records --tasks "$K" --target "$t" --out n.json --limit 1 --json -q r.json | grep -o '"bad":1.*"reasons":{[^}]*}'; done; wc -c <n.json
