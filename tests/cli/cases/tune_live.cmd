# a task tuned on this machine: resumed, compared, kept, emitted
# Long: no sanitizer.
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD CC=gcc
cat >t.json <<X
{"schema": "cdmpp.tasks", "version": 1, "tasks": [{"workload_key": "[\"matmul_relu\", 32]", "ops": [
 {"name": "A", "shape": [32, 32], "dtype": "float32"}, {"name": "B", "shape": [32, 32], "dtype": "float32"},
 {"name": "C", "axis": [["i", 0, 32], ["j", 0, 32]], "reduce_axis": [["k", 0, 32]], "reduce": "sum", "body": "A[i, k]*B[k, j]"},
 {"name": "D", "axis": [["i", 0, 32], ["j", 0, 32]], "body": "max(C[i, j], 0)"}]}]}
X
tune() { cdmpp-tune --tasks t.json --target llvm --isa native --threads 1 --budget-ms 5 "$@"; }
tune --dry-run
tune --tuner random --trials 4 --per-round 3 --out a.json -q --json | sed 's/"\([a-z_]*_s\|outside_measuring\|max_error\|gflops\|peak_share\)":[^,}]*/"\1":N/g; s/"verdict":"[a-z]*"/V/; s/"others use[^"]*"//'
head -c $(($(wc -c <a.json) - 30)) a.json >b.json # as a kill leaves it: half of the last line is cut off
mv b.json a.json
tune --tuner random --trials 6 --per-round 3 --out a.json --best best.json --curves c.csv --stats s.jsonl -q >text; grep -o "random: 3 trials in 1 rounds, the trials are used up" text
wc -l <a.json; sed 's/"r":.*//' a.json | sort | uniq -d; cut -d, -f1-4 c.csv | head -1; wc -l <c.csv
cdmpp-extract --tasks t.json --out a.h5 a.json -q && echo extracted; cdmpp-profile records --dry-run --tasks t.json best.json
tune --tuner random --trials 1 --warm a.json --out w.json 2>&1 >text | grep warm
tune --tune=false --emit c --emit-dir e -q | awk 'NR == 2 {print $1, $2, $3, $4, $6, $(NF - 1)}'
(cd e && gcc -O1 -march=native -Wno-psabi -fopenmp task0.c -o t -lm && ./t 5 | sed 's/^[0-9.e-]* s/T s/')
tune --compare random,ga --at 2,4 --trials 4 --out cmp.json --curves cmp.curve -q | sed 's/[0-9.]*[0-9]e-[0-9]*/N/g; s/0\.[0-9]*/N/g'
ls cmp*; wc -l <cmp.ga.json
# every candidate failing: what they need does not compile
tune --tuner random --trials 4 --per-round 2 --out f.json --cflags -Dfloat=nothing 2>&1 >text | sed 's/: .*nothing.*/: X/; /tuning:/d; /device:/d; /others use/d; s/\(checking: 1 tasks\).*/\1/'; grep -c '"r": \[\[1e+10\], 2' f.json
tune --tuner random --trials 4 --out f.json --cflags -Dfloat=nothing -q >text; echo "status $?"
# somebody else at work on the processor that measures: said once
hog=$(sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $!)
taskset -cp "$(taskset -cp $$ | sed 's/.*[-, ]//')" "$hog" >/dev/null
tune --tuner random --trials 2 --out h.json 2>&1 >text | grep -o 'others use the processors that measure: .*' | sed 's/[0-9][0-9]* %/N %/'
kill "$hog"
# a model of several devices, none of which the target names: this machine's answers
tune --tuner cdmpp --cost-model "$ROOT/tests/golden/model_v2.cdmpp" --trials 2 --out m.json 2>err.txt >text; echo "status $?"; wc -l <m.json; grep -c 'device: zen5-avx.*this machine' err.txt
# what there is to choose from; a task without a definition costs only itself
cdmpp-tune --space-dump --tasks t.json --target llvm --threads 1 | grep -c '"kind": "tile"'
cdmpp-tune --space-dump --tasks t.json --target cuda | grep -o '"schema":"[a-z._]*"\|"target":"cuda"\|"naive": [a-z]*'
cdmpp-tune --list-tuners --json | grep -o '"name":"[a-z_-]*"' | tr '\n' ' '; echo
