# a plan run here: two threads on two processors, times and values; a device that fails, one that slows down
# Long: no sanitizer, one processor.
unset CDMPP_MODELS
exec 2>&1
[ "$(nproc)" -ge 2 ] || { sed '$d' "$ROOT/tests/cli/cases/partition_run.expect"; exit; }
export XDG_CACHE_HOME=$PWD/cache
net() { cdmpp-partition --model gcn --input-size 256 --devices cpu0,cpu1 --target llvm --cost-model "$ROOT/tests/golden/model_v1.cdmpp" --as zen5-avx2 --trials 2 --least-us 0 -q "$@"; }
idle() { net --ignore-load "$@"; } # the plan does not depend on what else runs here
# values: equal, or off by the rounding of sums
values() { grep '^run here' 1.txt | sed -E 's/.*values: (equal|[0-9.]+e-0[6-9] of the largest off).*/values agree/'; }
idle --run --budget 0.2 --compare --json >1.json; echo "exit $?"
grep -c '"measured_gain":[0-9]' 1.json
grep -o '"baselines":.*' 1.json | sed 's/}],.*//' | tr '{' '\n' | grep -v '"name":"as predicted"' | grep -c '"measured_s":[0-9]' # the former plan, where a baseline measured best
idle --run --budget 0.2 >1.txt; echo "exit $?"; values
idle --run --budget 0.2 --inject break:cpu1 --dims M,N,i1,H >1.txt; echo "exit $?"; values; grep -o '1 failures, planned again 1 times' 1.txt
grep -o '^run here with --inject break:cpu1, by another plan than this' 1.txt; grep '^  op ' 1.txt
net --run --budget 0.2 --inject break:cpu7; echo "exit $?"
echo "--- what measured best is the plan; nothing else measured is below it by more than it is known to"
grep -o '"baselines":.*' 1.json | sed 's/}],.*//' | tr '{' '\n' | grep '^"name"' | sed -E 's/.*"measured_s":([-0-9.e]*|null),.*/\1/' |
    awk -v p="$(grep -o '"measured_s":[-0-9.e]*' 1.json | head -n 1 | cut -d : -f 2)" '$1 != "null" && $1 < 0.98 * p { print "better than the plan:", $1, p }'
echo "--- one device: the plan is the only candidate, and the row of the device has its time"
cdmpp-partition --model gcn --input-size 256 --devices cpu0 --target llvm --cost-model "$ROOT/tests/golden/model_v1.cdmpp" --as zen5-avx2 --trials 2 -q --ignore-load --run --budget 0.2 --json >2.json; echo "exit $?"
grep -o '"name":"cpu0","predicted_s":[0-9.e-]*,"measured_s":[0-9.e-]*,"predicted_gain":1,"measured_gain":1' 2.json | sed 's/_s":[0-9][0-9.e-]*/_s":T/g'
grep -o '"measured_gain":1,"ceiling"' 2.json
echo "--- somebody else at work on the first processor: said, before and behind"
hog=$(sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $!)
taskset -cp 0 "$hog" >/dev/null
cdmpp-partition --model gcn --input-size 256 --devices cpu0,cpu1 --target llvm --cost-model "$ROOT/tests/golden/model_v1.cdmpp" --as zen5-avx2 --trials 2 --run --budget 0.5 >1.txt 2>2.txt; echo "exit $?"
kill "$hog"
grep -o 'others use the processor of cpu0: .*' 2.txt | sed 's/[0-9][0-9]* %/N %/'
grep -o 'the measurement was disturbed: .*' 1.txt | sed 's/[0-9][0-9]* %/N %/'
