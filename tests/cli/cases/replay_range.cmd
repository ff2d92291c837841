# a range of sizes: five estimates, a law for those between, one schedule for all
# Long: no sanitizer.
. "$T/lib.sh"
unset CDMPP_MODELS
exec 2>&1
small_model || exit
replay() { cdmpp-replay --cost-model m.cdmpp --cache '' --device zen5 -q "$@"; }
squeeze() { replay --network squeezenet-1.1 --trials 4 "$@"; }
# which sizes, in which order, and which of them were estimated; times are the compiler's as much as ours
points() { grep -o '"size":[0-9]*,"latency_s":[^}]*"estimated":[a-z]*' | sed 's/,.*,/ /' | tr -d '"' | tr '\n' ';'; echo; }
squeeze --batch 1..64 >1.txt; echo "exit $?"
awk '/batch 1\.\.64/ { on = 1 } on' 1.txt | sed -E 's/: (constant|affine|hinge|slopes|table|stairs|irregular).*/: LAW/; s/ +[0-9.]+(e[-+]?[0-9]+)? (us|ms|s)/ T/g; s/[0-9.]+ %/N %/g; s/ at [0-9]+/ at N/'
echo "--- the estimates of the range are those of its sizes"
squeeze --batch 1,3,8,23,64 >2.txt; head -n 7 1.txt | cmp - 2.txt && echo same
squeeze --batch 2..5 --json | points
squeeze --batch 1..100:3 --json | points
squeeze --batch 2..5 --json | grep -o '"one_schedule":{"why_not":[a-z"]*,"sizes":\[{"size":2,"loss":'
squeeze --batch 2..5 --json | grep -o '"loss":[^,]*,"apart_share":[^}]*' | awk -F'[:,]' '{ if ($2 < 0 || $2 > 5 || $4 < 0 || $4 > 1) bad = 1 } END { print NR " losses" (bad ? ", wrong" : "") }'
echo "--- between sizes a time lies between those of the sizes, and so does its interval"
squeeze --batch 1..64 --json | grep -o '"points":\[[^]]*' | tr '{' '\n' | awk -F'[:,]' '/size/ { if ($4 < s || $6 > $4 || $8 < $4) bad = 1; s = $4; n++ } END { print n " sizes" (bad ? ", wrong" : "") }'
echo "--- a dimension of a file"
cp "$ROOT/tests/profiler/data/whole.onnx" .
whole() { replay --network whole.onnx --trials 4 --allow-missing "$@"; }
whole --dim height=16 --dim batch=1..9:3 --json | grep -o '"network":"[^"]*"\|"over":"[a-z]*"'
echo "--- sizes that the file does not allow"
whole --dim height=16..64:3 --dim batch=2 | sed -E 's/ +[0-9.]+(e[-+]?[0-9]+)? (us|ms|s)/ T/g; s/T .*/T/'
echo "--- what is no range"
for r in 5..1 1..2 1..64:2 1..64:65 0..9 1..64,128 1.. ..4 1..2000000; do squeeze --batch $r; echo "exit $?"; done
squeeze --batch 1..8 --dim n=1..8; echo "exit $?"
squeeze --dim n=1..8 --dim m=1..8; echo "exit $?"
squeeze --batch 1,2 --dim n=1..8; echo "exit $?"
