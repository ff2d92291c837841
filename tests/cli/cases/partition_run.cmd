# a plan run here: two threads on two processors, times and values; a device that fails, one that slows down
unset CDMPP_MODELS
exec 2>&1
[ "$(nproc)" -ge 2 ] || { sed '$d' "$ROOT/tests/cli/cases/partition_run.expect"; exit; }
export XDG_CACHE_HOME=$PWD/cache
net() { cdmpp-partition --model gcn --input-size 256 --devices cpu0,cpu1 --target llvm --cost-model "$ROOT/tests/golden/model_v1.cdmpp" --as zen5-avx2 --trials 2 --least-us 0 -q "$@"; }
# values: equal, or off by the rounding of sums
values() { grep '^run here' 1.txt | sed -E 's/.*values: (equal|[0-9.]+e-0[6-9] of the largest off).*/values agree/'; }
net --run --budget 0.2 --compare --json >1.json; echo "exit $?"
grep -c '"measured_gain":[0-9]' 1.json
grep -o '"baselines":.*' 1.json | sed 's/}],.*//' | tr '{' '\n' | grep -c '"measured_s":[0-9]'
net --run --budget 0.2 >1.txt; echo "exit $?"; values
net --run --budget 0.2 --inject break:cpu1 --dims M,N,i1,H >1.txt; echo "exit $?"; values; grep -o '1 failures, planned again 1 times' 1.txt
net --run --budget 0.2 --inject break:cpu7; echo "exit $?"
