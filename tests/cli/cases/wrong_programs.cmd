# programs that compute something else are no good records: a compiler that makes every program wrong, but not what they are compared with
. "$T/lib.sh"
cat >cc <<'X'
#!/bin/sh
case "$*" in
*'-x c -'*) awk '/void r[0-9a-f]/ { wrong = 0 } /void p[0-9a-f]/ { wrong = 1 } wrong { gsub(/cd_max_f/, "cd_min_f") } { print }' | gcc "$@" ;;
*) exec gcc "$@" ;;
esac
X
chmod +x cc
export XDG_CACHE_HOME=$PWD CC=$PWD/cc
cat >t.json <<X
{"schema": "cdmpp.tasks", "version": 1, "tasks": [{"workload_key": "[\"relu\", 64]", "ops": [
 {"name": "A", "shape": [64, 64], "dtype": "float32"},
 {"name": "B", "axis": [["i", 0, 64], ["j", 0, 64]], "body": "max(A[i, j] - 0.5, 0)"}]}]}
X
said() { sed 's/\(wrong result: B\).*/\1/; /something else\|tuning:\|device:\|unsteady\|others use/d; s/\(checking: 1 tasks\).*/\1/; s/^[0-9.]* s, .*/T/' "$@"; }
tune() { cdmpp-tune --tasks t.json --target llvm --isa native --threads 1 --budget-ms 5 --tuner random --trials 2 "$@" 2>err >text; echo "status $?"; said err; }
tune --out a.json --best best.json; sed 's/.*"r": //; s/, [0-9.]*, [0-9]*\]/, T]/' a.json; wc -c <best.json
tune --out b.json --best best.json --no-check; grep -c '"r": \[\[[0-9.e, -]*\], 0,' b.json; wc -c <best.json
records() { cdmpp-profile records --tasks t.json --isa native --threads 1 --budget-ms 5 "$@" 2>err | said; said err; }
records --out c.json b.json; grep -c '"r": \[\[1e+10\], 5,' c.json
records --out d.json --no-check b.json; grep -c '"r": \[\[1e+10\]' d.json
tune --out a.json --check --no-check
cdmpp-profile records --tasks t.json --out c.json --check --no-check b.json
