# a key that two files define differently: the first definition stays, and that is said with the place of the other
cp "$ROOT/tests/fuzz/seeds/taskfile/matmul.tasks.json" a.tasks.json
sed 's/max(C\[i, j\], 0)/min(C[i, j], 0)/' a.tasks.json >b.tasks.json
cdmpp-extract --tasks a.tasks.json --tasks b.tasks.json --write-tasks | grep -o 'm[axin]*(C.*)'
cdmpp-extract --tasks b.tasks.json --tasks b.tasks.json --write-tasks | grep -o 'm[axin]*(C.*)'
# of two paddings behind one key each record decides by the extents that its steps note; what notes none is skipped
pool() { echo "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [{\"workload_key\": \"pool\", \"ops\": [{\"name\": \"x\", \"shape\": [8], \"dtype\": \"float32\"}, {\"name\": \"pad\", \"axis\": [[\"i\", 0, $1]], \"body\": \"if_then_else(i >= 1 && i < 9, x[i - 1], 0)\"}, {\"name\": \"y\", \"axis\": [[\"o\", 0, 4]], \"reduce_axis\": [[\"r\", 0, 3]], \"reduce\": \"max\", \"body\": \"pad[o*2 + r]\"}]}]}"; }
pool 9 >nine.tasks.json; pool 10 >ten.tasks.json
record() { echo "{\"i\": [[\"pool\", \"llvm -model=zen5\", [1, 64, 64, 0, 0, 0, 0, 0], \"\", 0, []], [[], [$1]]], \"r\": [[1e-6], 0, 0.1, 1], \"v\": \"v0.6\"}"; }
{ record '["SP", 1, 0, 9, [2], 1]'; record '["SP", 1, 0, 10, [2], 1]'; record '["CI", 1]'; record '["SP", 2, 0, 4, [2], 1]'; } >pool.json
cdmpp-extract -q --tasks nine.tasks.json --tasks ten.tasks.json --out pool.h5 pool.json; echo "status $?"
cat pool.h5.skipped.tsv
cdmpp-extract -q --tasks ten.tasks.json --out pool.h5 pool.json; echo "status $?"
