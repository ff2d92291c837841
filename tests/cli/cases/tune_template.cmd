# templates: printed for a described processor, as records, measured, refused with a reason, left to another tuner
# Long: no sanitizer.
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD CC=gcc
cat >t.json <<X
{"schema": "cdmpp.tasks", "version": 1, "tasks": [{"workload_key": "[\"matmul_relu\", 32]", "ops": [
 {"name": "A", "shape": [32, 32], "dtype": "float32"}, {"name": "B", "shape": [32, 32], "dtype": "float32"},
 {"name": "C", "axis": [["i", 0, 32], ["j", 0, 32]], "reduce_axis": [["k", 0, 32]], "reduce": "sum", "body": "A[i, k]*B[k, j]"},
 {"name": "D", "axis": [["i", 0, 32], ["j", 0, 32]], "body": "max(C[i, j], 0)"}]},
 {"workload_key": "[\"relu\", 64]", "ops": [{"name": "A", "shape": [64], "dtype": "float32"},
 {"name": "D", "axis": [["i", 0, 64]], "body": "max(A[i], 0)"}]}]}
X
show() { cdmpp-tune --templates --tasks t.json --target llvm --threads 1 "$@"; }
show --machine zen5-avx512 --trials-per-task 3; echo "status $?"
show --machine zen5-avx512 --task '#0' --json --trials-per-task 1 | sed 's/"cost":[0-9.]*/"cost":N/'; echo
show --machine zen5-avx512 --task '#0' --out made.json >text; echo "status $?"; wc -l <made.json; sed 's/"r":.*//' made.json | sort | uniq -d
cdmpp-profile records --dry-run --tasks t.json made.json; echo "status $?"
show --machine v100 --task '#0'; echo "status $?"
show --machine nothing --task '#0'; echo "status $?"
# here: ten of the task that has templates, none of the other one
tune() { cdmpp-tune --tasks t.json --target llvm --isa native --threads 1 --budget-ms 2 "$@"; }
tune --tuner bolt --machine zen5-avx512 --out a.json 2>&1 >text | grep -v 'tuning:\|checking:\|device:\|worse after tuning\|unsteady\|others use'; wc -l <a.json; grep -o "bolt: 10 trials.*" text
tune --tuner bolt --task '#0' --machine zen5-avx512 --trials-per-task 12 --out a.json -q >text; wc -l <a.json; grep -o "bolt: 2 trials.*" text # goes on with the next two
tune --tuner template --machine zen5-avx512 --fallback random --trials-per-task 2 --out b.json 2>&1 >text | grep -v 'tuning:\|checking:\|device:\|worse after tuning\|unsteady\|others use'; wc -l <b.json
# contradictions
tune --tuner random --fallback ga --out c.json; echo "status $?"
tune --tuner random --machine zen5-avx512 --out c.json; echo "status $?"
tune --tuner template --fallback bolt --out c.json; echo "status $?"
tune --tuner template --fallback cdmpp --out c.json; echo "status $?"
cdmpp-tune --replay --compare random,template --tasks t.json a.json; echo "status $?"
