# a key that two files define differently: the first definition stays, and that is said with the place of the other
cp "$ROOT/tests/fuzz/seeds/taskfile/matmul.tasks.json" a.tasks.json
sed 's/max(C\[i, j\], 0)/min(C[i, j], 0)/' a.tasks.json >b.tasks.json
cdmpp-extract --tasks a.tasks.json --tasks b.tasks.json --write-tasks | grep -o 'm[axin]*(C.*)'
cdmpp-extract --tasks b.tasks.json --tasks b.tasks.json --write-tasks | grep -o 'm[axin]*(C.*)'
