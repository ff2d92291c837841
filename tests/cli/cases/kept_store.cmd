# a store: what is asked of it, column by column
. "$T/lib.sh"
exec 2>&1
{ xz -dc "$LOGS/zen5-avx2/records.json.xz" | head -n 200; xz -dc "$LOGS/zen5-avx512/records.json.xz" | head -n 150; } >log.json
cp "$HELD" held.json
cat >c.tsv <<'X'
set	host	operator	device_id	varied	shape	points_n:ms
a	here	nn.dense	0	((2, 2), (0, 0))	((-1, 8), (8, 8))	1:0.001 2:0.002 4:0.004 8:0.008 16:0.016
a	here	add	0	((2, 2), (0, 0))	((-1, 8), (-1, 8))	1:0.002 2:0.002 4:0.002 8:0.004 16:0.008 32:0.016
X
touch -d @1700000000 log.json held.json c.tsv # the time of a record is its file's
P="cdmpp-profile store"
told() { "$@" 2>&1 | sed -e "s|$PWD/||g; s|$ROOT/||g; s/ in [0-9.]* s (.*//" | rounded; }
told $P import --store s.db --tasks "$K" log.json
told $P import --store s.db --device board --json held.json
told $P import --store s.db --form curves c.tsv
told $P stats --store s.db
told $P stats --store s.db --json
told $P list --store s.db --limit 25
told $P list --store s.db --limit 3 --json
told $P list --store s.db --device board --limit 4
told $P list --store s.db --dtype float32 --layout nhwc --limit 3
k=$($P list --store s.db --limit 1 --json | sed 's/.*"workload_key":"\([^}]*\)","dtype.*/\1/; s/\\"/"/g')
told $P best --store s.db --workload "$k" --limit 3 --steps
told $P best --store s.db --workload "$k" --limit 2 --json
told $P near --store s.db --workload "$k" --limit 4 --each 2
told $P near --store s.db --workload "$k" --limit 2 --json
told $P export --store s.db --as csv --limit 3
told $P export --store s.db --as json --limit 2
told $P export --store s.db --as csv | cksum
$P export --store s.db --out r.json; cksum <r.json
told $P tables --store s.db
told $P tables --store s.db --json
told $P tables --store s.db --out t.html; rounded t.html | cksum
