# a search on a board: it says what it is, a connection that is lost is said, the same command goes on; then a real worker
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD CC=gcc
cat >t.json <<X
{"schema": "cdmpp.tasks", "version": 1, "tasks": [{"workload_key": "[\"matmul_relu\", 32]", "ops": [
 {"name": "A", "shape": [32, 32], "dtype": "float32"}, {"name": "B", "shape": [32, 32], "dtype": "float32"},
 {"name": "C", "axis": [["i", 0, 32], ["j", 0, 32]], "reduce_axis": [["k", 0, 32]], "reduce": "sum", "body": "A[i, k]*B[k, j]"},
 {"name": "D", "axis": [["i", 0, 32], ["j", 0, 32]], "body": "max(C[i, j], 0)"}]}]}
X
# what says that it is a board and makes its times up; with a file `weak` it goes after three answers and does not come back before `gone` does
cat >board.sh <<'X'
[ -e gone ] && exit 1
echo "$@" >>words
echo '{"hello":"cdmpp-worker","protocol":1,"version":"x","device":"Board 9","model":"board-9","isa":"aarch64","cpus":3}'
while read -r l; do
    case $l in *lease*) ;; *) continue ;; esac
    n=${l#*:} n=${n%%,*}
    if [ -e weak ] && [ "$n" -gt 3 ]; then touch gone; exit 1; fi
    echo "{\"lease\":$n,\"error_no\":0,\"costs\":[0.0$((n + 1))],\"total_s\":1,\"timestamp\":1700000000}"
done
X
tune() { cdmpp-tune --tasks t.json --target llvm --tuner random --trials 6 --per-round 6 --budget-ms 5 "$@"; }
board() { tune --host pi@board --transport 'sh ./board.sh "$@"' "$@"; }
touch weak
board --out a.json >text 2>err; echo "status $?"
grep -v tuning: err; wc -l <a.json
echo "--- the same command"
rm weak gone
board --out a.json --best best.json --json 2>err | grep -o '"host":"[^"]*","device":"[^"]*"\|"trials":[0-9]*,"before":[0-9]*\|"untuned_s":[0-9.]*,"tuned_s":[0-9.]*'; grep before err
wc -l <a.json; sed 's/"r":.*//' a.json best.json | sort | uniq -d | wc -l
cut -c 1-86 a.json | sort | uniq -c
echo "--- every worker was told the same, and no instructions of this machine"
sort words | uniq
board --out b.json --isa aarch64 --threads 2 --no-check -q >text; cut -c 1-86 b.json | sort | uniq -c; tail -n 1 words
echo "--- its code is for its instructions"
cdmpp-tune --tasks t.json --target llvm --tune=false --emit c --emit-dir c --host pi@board --transport 'sh ./board.sh "$@"' -q >text; echo "status $?"
grep -o 'cd_f32x[0-9]*u \*' c/task0.c | sort -u
echo "--- a board that is none"
tune --host x --transport 'echo no route >&2; exit 255' --out d.json; echo "status $?"
tune --host x --transport 'echo "{\"hello\":\"cdmpp-worker\",\"protocol\":1}"' --out d.json; echo "status $?"
tune --host x --transport 'echo "{\"hello\":\"cdmpp-worker\",\"protocol\":7}"' --out d.json; echo "status $?"
echo "--- what does not go together"
tune --port 7 --out f.json; echo "status $?"
tune --host x --jobs 2 --out f.json; echo "status $?"
cdmpp-tune --tasks t.json --host x --tuner bolt --out f.json; echo "status $?"
cdmpp-tune --tasks t.json --host x --tuner cdmpp --out f.json; echo "status $?"
cdmpp-tune --tasks t.json --host x --space-dump; echo "status $?"
ls f.json 2>&1
echo "--- a worker of this machine: the same programs as without it"
tune --host here --transport 'shift 2; exec cdmpp-profile --worker "$@"' --threads 1 --out here.json --emit c --emit-dir e -q >text; echo "status $?"
tune --threads 1 --out local.json -q >text
sed 's/"r":.*//' here.json >1; sed 's/"r":.*//' local.json | cmp - 1 && echo "the same log"
grep -c '"r": \[\[[0-9.e, -]*\], 0,' here.json; ls e
