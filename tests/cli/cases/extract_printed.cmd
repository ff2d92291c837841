# definitions that TVM printed beside their keys: read, or refused with what is open; and what they rest on
. "$T/lib.sh"
cp "$T/printed.out" run.out
cdmpp-extract --tasks run.out --write-tasks >strict.json || exit
echo "--- strict"
grep -c workload_key strict.json
cdmpp-extract -q --json --tasks run.out --out strict.h5 "$T/printed.json" >/dev/null
echo "status $?"
cut -f 2-4 strict.h5.skipped.tsv
echo "--- assumed"
cdmpp-extract --tasks run.out --assume symmetric-padding --assume float32 --write-tasks >all.tasks.json || exit
sed -n 's/.*"name": "wide".*"axis": \([^"]*"a", 0, [0-9]*\).*/\1/p' all.tasks.json
cdmpp-extract -q --json --tasks run.out --assume symmetric-padding --assume float32 --out a.h5 "$T/printed.json" >/dev/null
echo "status $?"
cdmpp-extract -q --json --tasks all.tasks.json --out b.h5 "$T/printed.json" >/dev/null
echo "status $?"
cdmpp-extract --tasks run.out --assume padding --write-tasks
echo "status $?"
