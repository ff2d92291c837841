# --llm --sweep: what is named, with intervals; the nearest miss where nothing meets the targets; threads; one that is stopped prints what it has.
. "$T/lib.sh"
export CDMPP_SERVING="$PWD/serving.yaml"
S=$ROOT/examples/serving
cat >serving.yaml <<YAML
- {stack: vllm, tokens: 2048, sequences: 64, memory_share: 0.9, reserve_gb: 3, between_s: 2e-6, step_s: 1e-4, spread_tpot: 0.1, spread_ttft: 0.2}
YAML
cdmpp-train "$S/operators.yaml" --quiet --set data.files="[$S/operators.csv]" --set operators.rounds=5 --set device.file="$ROOT/configs/devices.yaml" --out ops.cdmpp >/dev/null
cp "$S/config.json" "$S/operators.csv" "$ROOT/configs/devices.yaml" .
ask="cdmpp-replay --markdown --llm config.json --cost-model ops.cdmpp --devices devices.yaml --measured operators.csv --isl 256 --osl 16" # no function: a signal is for the command
# names, sizes and what is over are kept; times follow from trees
untimed() {
    sed 's/[0-9.]* [mun]*s\b/T/g; s/([0-9.e+]* \(%\|times as long\))/(N \1)/; s/ [0-9.e+]* | [0-9.e+]* to [0-9.e+]* |/ N | N to N |/; s/| T | T | [0-9.e+]* | [0-9.e+]* |/| T | T | N | N |/; s/| [0-9.e+]* |$/| P |/'
}
printf 'device,price_per_hour\nH100,3.6\nH200,1\n' >prices.csv
$ask --gpu h100 --sweep --tp 1,2 --concurrency 1,8 --ttft 1000 --prices prices.csv | untimed
echo "met: $?"
printf 'device,price_per_hour\nH100,3.6\nh100_sxm,1\n' >twice.csv
$ask --gpu h100 --sweep --tp 1 --concurrency 1 --prices twice.csv
echo "two prices: $?"
printf 'device,price_per_hour\nH100_SXM,3.6\n' >alias.csv
$ask --gpu h100 --sweep --tp 1 --concurrency 1 --prices alias.csv | grep -c '^| cheapest | h100'
$ask --gpu b200 --sweep --tp 1 --concurrency 1 2>&1 >/dev/null | sed 's/^.*warning/warning/'
$ask --gpu h100 --sweep --tp 1,2 --concurrency 1,8 --ttft 0.1 --tpot 0.001 | untimed
echo "missed: $?"
$ask --gpu h100 --sweep --tp 1,2 --concurrency 1,8 --ttft 0.1 --json >missed.json
grep -o '"most_tokens_s_gpu":null,"cheapest":null\|"nearest_miss":{"gpu":"h100","new":null,"gpus":[12]\|"missed":{"ttft":{"target_s":[0-9.]*\|"complete":[a-z]*\|"done":[0-9]*' missed.json
# which GPUs the training had, in rows, in JSON and in the picture
$ask --gpu h100,h200,b200,mi300x --sweep --tp 1 --concurrency 1 --json --picture gpus.svg 2>/dev/null >gpus.json
sed 's/.*"configurations"//' gpus.json | grep -o '"gpu":"[^"]*","new":[^,]*\(,"twin":"[^"]*"\)*\(,"own_rows":[a-z]*\)*'
grep -o '>[^<]*GPU not trained on<' gpus.svg
for g in h200 b200 mi300x; do $ask --gpu $g --sweep --tp 1 --concurrency 1 2>/dev/null | sed -n 's/^\(| most[^|]*|[^|]*|\|| [a-z0-9]* ([^|]*|\|[0-9]* of them are not ranked\).*/\1/p'; done
$ask --gpu h200 --tp 2 --json 2>/dev/null >one.json
grep -o '"gpu":"[^"]*","new":[^,]*,"twin":"[^"]*"' one.json
grep -o '"name":"qkv".*' one.json | sed 's/}.*//; s/.*"how"/"how"/'
for j in 1 2 3; do $ask -j$j --gpu h100,h200 --sweep --tp 1,2,3 --concurrency 1,2,3,8 --ttft 30 --prices prices.csv --json >$j.json 2>/dev/null; done
cmp 1.json 2.json && cmp 1.json 3.json && echo "threads: same"
$ask -j2 --gpu h100 --tp 1
echo "no --sweep: $?"
# long enough to be met alive; a slow machine gets more time until something is answered
many=$(seq -s, 1 4000)
for wait in 0.3 1 3 10 30; do
    $ask --gpu h100 --sweep --tp 1,2 --concurrency "$many" --osl 64 --picture a.svg >out.txt 2>err.txt &
    p=$!
    sleep $wait
    kill -TERM $p
    wait $p
    st=$?
    [ ! -s out.txt ] || break
done
echo "stopped: $st"
sed -n 's/after [0-9]* of/after N of/; 1p' out.txt
grep -c '^| most tokens/s/GPU' out.txt
sed 's/after [0-9]* of/after N of/' err.txt
ls a.svg* 2>/dev/null || echo "no picture"
