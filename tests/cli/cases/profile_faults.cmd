# compilers that are not there, crash and fill the disk; ^C and kill -9; two runs
. "$T/lib.sh"
head -2 "$HELD" >r.json
quiet() { "$@" 2>&1 | grep -v unsteady | sed 's/^[0-9.]* s, .*/T/; /something else/d; s/work[.][^:]*/work/g; s|/tmp/||'; }
run() { quiet cdmpp-profile records --tasks "$K" --isa native --threads 1 --budget-ms 5 --cache "" "$@" r.json; }
fake() { printf '#!/bin/sh\n[ "$1" = --version ] && { echo fake; exit; }\n%s\n' "$1" >fakecc; chmod +x fakecc; }
CC=/nosuch/cc run --out a.json; wc -c <a.json
fake 'kill -9 $$'; CC=./fakecc run --out b.json; sed 's/.*"r": //; s/, [0-9.]*, [0-9]*\]/, T]/' b.json
fake 'sleep 100'; CC=./fakecc run --build-timeout 1 --limit 1 --out c.json
fake 'echo "ld: No space left on device"; exit 1'; CC=./fakecc run --out d.json; wc -c <d.json
CC=gcc run --out /dev/full | sed 's/: [^:]*:[0-9]*: /: /'
# ^C while the compiler hangs: compilers are gone, the output is whole, the exit status says so
fake 'echo $$ >pid; exec sleep 100'
CC=./fakecc cdmpp-profile records -q --tasks "$K" --isa native --threads 1 --cache "" --out e.json r.json 2>err & k=$!
while [ ! -s pid ]; do sleep 0.05; done
# a second run with the same output, meanwhile
CC=gcc run --out e.json
kill -INT $k; wait $k; echo "status $?"; sed 's/of [12] programs/of N programs/' err >&2 # as many as there are processors
sleep 0.1; kill -0 "$(cat pid)" 2>/dev/null && echo "the compiler still runs"
wc -c <e.json
# kill -9 in the middle, then again
export CC=gcc
cdmpp-profile records -q --tasks "$K" --isa native --threads 1 --budget-ms 200 --cache "" --rounds 50 --out f.json r.json >/dev/null & k=$!
while [ "$(cat f.json 2>/dev/null | wc -l)" -lt 3 ]; do sleep 0.05; done
kill -9 $k; wait $k 2>/dev/null; echo "status $?"
sleep 0.3; pgrep -P 1 -f 'out f.json' >/dev/null && echo "a process is left"
n=$(wc -l <f.json)
cdmpp-profile records -q --tasks "$K" --isa native --threads 1 --budget-ms 5 --cache "" --json --rounds $((n / 2 + 1)) --out f.json r.json | grep -o '"failed":[0-9]*'
[ "$(wc -l <f.json)" -eq $((2 * (n / 2 + 1))) ] || echo "$n lines, then $(wc -l <f.json)"
