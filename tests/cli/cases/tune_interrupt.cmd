# stopped or killed, a run goes on with the same command: no trial twice, none lost
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD CC=gcc
cat >t.json <<X
{"schema": "cdmpp.tasks", "version": 1, "tasks": [{"workload_key": "[\"matmul_relu\", 32]", "ops": [
 {"name": "A", "shape": [32, 32], "dtype": "float32"}, {"name": "B", "shape": [32, 32], "dtype": "float32"},
 {"name": "C", "axis": [["i", 0, 32], ["j", 0, 32]], "reduce_axis": [["k", 0, 32]], "reduce": "sum", "body": "A[i, k]*B[k, j]"},
 {"name": "D", "axis": [["i", 0, 32], ["j", 0, 32]], "body": "max(C[i, j], 0)"}]}]}
X
tune="cdmpp-tune --tasks t.json --target llvm --isa native --threads 1 --tuner random --per-round 4 --out a.json -q"
lines() { cat a.json 2>/dev/null | wc -l; }
wait_for() { for k in $(seq 300); do [ $(lines) -ge $1 ] && return; sleep 0.02; done; }
$tune --trials 1000 --budget-ms 40 >/dev/null 2>err & wait_for 3; kill -INT $!; wait $!; echo "status $?"
tail -c 1 a.json | od -An -c | tr -d ' '
n=$(lines); $tune --trials 1000 --budget-ms 40 >/dev/null 2>&1 & wait_for $((n + 3)); kill -9 $!; wait $! 2>/dev/null; echo "status $?"
n=$(lines); $tune --trials $((n + 4)) --budget-ms 5 >/dev/null; echo "status $?"
echo $(($(lines) - n)); sed 's/"r":.*//' a.json | sort | uniq -d | wc -l
$tune --trials 1000 --budget-ms 40 >/dev/null 2>&1 & wait_for $((n + 5)); $tune --trials 1001; echo "status $?"; kill -9 $!; wait $! 2>/dev/null; true
