# networks on devices that a model knows: schedules, cache, books, prices, page
# Long: no sanitizer.
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
exec 2>&1
small_model || exit
replay() { cdmpp-replay --model squeezenet-1.1 --model m.cdmpp --trials 16 "$@"; }
# latencies are the compiler's and the libraries' as much as ours: only their shape is told
shape() { sed -E 's/ [0-9.]+(e[-+]?[0-9]+)? (us|ms|s)/ T/g; s/ +/ /g; s/ T [0-9.]+/ T R/; s/ [0-9.]+ MiB/ M/'; }
replay --device zen5,zen5-avx2 --batch 1,2 >1.txt; echo "exit $?"
shape <1.txt
find cache -name '*.json' | wc -l
echo "--- the cache gives the same; so does a book, and without a cache nothing is written"
replay --device zen5,zen5-avx2 --batch 1,2 | cmp - 1.txt && echo same
replay --device zen5 --save-schedules b.json --cache '' >2.txt; wc -l <b.json | tr -d ' '
as="s/the schedules given/schedules that cdmpp chose/" # of the first line
cdmpp-replay --network squeezenet-1.1 --cost-model m.cdmpp --device zen5 --schedules b.json --cache no | sed "$as" | cmp - 2.txt && echo same
ls -d no
for f in $(find cache -name '*.json' | head -n 2); do echo broken >"$f"; done
replay --device zen5,zen5-avx2 --batch 1,2 -q | cmp - 1.txt && echo same
CDMPP_MODELS=$PWD cdmpp-replay --network squeezenet-1.1 --device zen5 --schedules b.json | sed "$as" | cmp - 2.txt && echo found
echo "--- JSON, prices, deadline"
replay --device zen5 --json | sed -E 's/:[0-9][0-9.e+-]*/:N/g'
printf 'device,price_per_hour,currency\nzen5-avx512,0.72,EUR\n# none of the other\n' >p.csv
replay --device zen5,zen5-avx2 --batch 1,2 --prices p.csv --deadline-ms 100000 --csv | tr -d '\r' | awk -F, '{ print $1, $2, $3, $17, ($16 > 0) }'
replay --device zen5 --prices p.csv --deadline-ms 0.000001 | tail -n 1
echo 'zen5,cheap' >p.csv; replay --device zen5 --prices p.csv; echo "exit $?"
echo "--- a page of its own"
replay --device zen5,zen5-avx2 --batch 1,2 --html p.html >/dev/null; echo "exit $?"
grep -c 'https\?://\|src=\|@import\|url(' p.html; tail -n 1 p.html
echo "--- refused"
replay --device nobody 2>&1 | sed 's/known are .*/known are .../'
replay 2>&1; echo "exit $?"
cdmpp-replay --network resnet-19 --cost-model m.cdmpp --device zen5; echo "exit $?"
cdmpp-replay --network squeezenet-1.1 --cost-model m.cdmpp --device zen5 --records "$HELD" 2>&1 | sed 's/tasks are.*logs for.*: \[.*/tasks .../; s/the [0-9]* records in .* is of/the N records in LOG is of/'
cdmpp-replay --network resnet-18 --cost-model m.cdmpp --device zen5 --schedules b.json 2>&1 | sed 's/: \["[^"]*".*/: .../; s/the [0-9]* records in .* is of/the N records in LOG is of/'
cdmpp-replay --network "$ROOT/tests/profiler/data/opaque.onnx" --cost-model m.cdmpp --device zen5 --trials 4; echo "exit $?"
cdmpp-replay --network "$ROOT/tests/profiler/data/opaque.onnx" --cost-model m.cdmpp --device zen5 --trials 4 --allow-missing | shape; echo "exit $?"
for f in opaque known_behind; do
    cdmpp-replay --network "$ROOT/tests/profiler/data/$f.onnx" --cost-model m.cdmpp --device zen5 --trials 4 --allow-missing 2>&1 >/dev/null | grep 'without'
done
cdmpp-replay --network "$ROOT/tests/profiler/data/known_behind.onnx" --cost-model m.cdmpp --device zen5 --trials 4 2>&1; echo "exit $?"
cdmpp-replay --network "$ROOT/tests/profiler/data/no_gradient.onnx" --training --cost-model m.cdmpp --device zen5 --trials 4; echo "exit $?"
echo "--- measured times alone: no model is needed, and the device is this machine; logs that bring nothing new are no wrong logs"
sed 's/ -model=zen5-avx512//; s/"r": [[][[][^]]*[]], [0-9]*/"r": [[0.001], 0/' b.json >times.json
own=$(CDMPP_DEFAULT_MODEL='' cdmpp-replay --network squeezenet-1.1 --from-records --schedules times.json 2>&1 >own.txt | sed -n 's/.*warning: device: \(.*\), this machine.*/\1/p')
[ -n "$own" ] && grep -c "^squeezenet-1.1 *$own" own.txt
cdmpp-replay --network squeezenet-1.1 --cost-model m.cdmpp --from-records --schedules times.json 2>/dev/null | cmp - own.txt && echo same
cdmpp-replay --network squeezenet-1.1 --cost-model m.cdmpp --device zen5 --schedules times.json --records times.json 2>&1 | grep -c 'none of the' || :
