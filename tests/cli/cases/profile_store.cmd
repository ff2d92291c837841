# a store: import twice, ask, export what came in
xz -dc "$ROOT/examples/zen5/measure_records/zen5-avx2/records.json.xz" | head -n 300 >log.json
echo '{"i": "nothing"}' >bad.json
P="cdmpp-profile store"
$P import --store s.db --quiet --device zen5 log.json bad.json; echo "status $?"
$P import --store s.db --quiet --device zen5 log.json; echo "status $?"
$P stats --store s.db | head -n 2
$P export --store s.db | cmp - log.json && echo same
$P export --store s.db --as csv | sed -n 1p
$P export --store s.db --as json --out x.jsonl && wc -l <x.jsonl
K=$($P list --store s.db --limit 1 --json | sed 's/.*"workload_key":"\([^}]*\)","dtype.*/\1/; s/\\"/"/g')
$P best --store s.db --workload "$K" --device zen5 --limit 2 --json | grep -o '"rank"\|"median_s"' | wc -l
$P near --store s.db --workload "$K" --limit 2 | head -n 1
$P near --store s.db --operator none --shape '[[1]]'; echo "status $?"
$P best --store s.db --operator none; echo "status $?"
$P export --store s.db --device zen6; echo "status $?"
$P list --store s.db --device zen5 --dtype float16; echo "status $?"
$P sell --store s.db; echo "status $?"
$P best --store none.db --operator x; echo "status $?"
$P import --store log.json log.json; echo "status $?"
# a file that is not there leaves no store behind, nor does it change one
$P import --store new.db log.json nosuch.json; echo "status $?"; ls new.db 2>/dev/null || echo "no store"
# which factors of which operators were measured on what
T='cdmpp-profile store tables --store s.db'
$T | sed '/^\* /d; s/dag:[0-9a-f]*/dag:H/; s/^| \(zen5\) |.*/| \1 |/' | head -n 12
$T | grep -c '^\* '
$T --json | grep -o '"tile":[0-9]*' | sort | uniq -c
$T --out t.html && grep -c '<tr>' t.html
