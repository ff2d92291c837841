# A language model by its config.json on GPUs: what divides and fits is answered, what does not is refused with the field or the numbers.
. "$T/lib.sh"
export CDMPP_SERVING="$PWD/serving.yaml"
S=$ROOT/examples/serving
cat >serving.yaml <<YAML
- {stack: vllm, tokens: 2048, sequences: 64, memory_share: 0.9, reserve_gb: 3, between_s: 2e-6, step_s: 1e-4, spread_tpot: 0.1, spread_ttft: 0.2}
YAML
cdmpp-train "$S/operators.yaml" --quiet --set data.files="[$S/operators.csv]" --set operators.rounds=5 --set device.file="$ROOT/configs/devices.yaml" --out ops.cdmpp >/dev/null
ask() { cdmpp-replay --markdown --llm "${MODEL:-$S/config.json}" --cost-model ops.cdmpp --devices "$ROOT/configs/devices.yaml" --measured "$S/operators.csv" --isl 256 --osl 16 "$@"; }
ask --gpu h100 --tp 2 --concurrency 1,4 >out.txt
echo "exit $?"
# names, sizes and who answers are kept; times follow from trees
sed 's/[0-9.]* [mun]*s\b/T/g; s/| [0-9.e+]* | [0-9.e+]* | [0-9.]* |$/| N | N | N |/; s/| T | [0-9.]* |/| T | N |/' out.txt
ask --gpu h100 --tp 2,3 --json >out.json
echo "exit $?"
grep -o '"refused":"[^"]*"' out.json
grep -o '"schema":"[a-z_.]*"\|"weights_bytes":[0-9.]*\|"cache_bytes_token":[0-9.]*\|"how":"[a-z]*"' out.json | sort | uniq -c | sed 's/^ *//'
ask --gpu h100 --sweep --tp 1,3 --pp 1,2 --concurrency 1,8 --ttft 1000 --picture a.svg | grep configurations
grep -c '<svg' a.svg
printf 'device,price_per_hour\nH100,3.6\n' >prices.csv # 1000 seconds for each unit of money: price x tokens/s/GPU is 1e3
ask --gpu h100 --sweep --tp 1 --concurrency 8 --prices prices.csv --json | tr ',{}' '\n' | awk -F : '/tokens_s_gpu/ { t = $2 } /price_million/ { printf "%.4f\n", $2 * t }' 
printf 'id,gpu,tp,concurrency,ttft_s,tpot_s\na,h100,2,4,1,1\nb,h100,5,4,1,1\n' >runs.csv
ask --runs runs.csv | sed -n 's/^\(| T[TP][A-Z]* | [0-9]*\) .*/\1/p; /tp: expected/p'
for bad in '--gpu h100 --tp 3' '--gpu h9000' '--gpu h100 --dtype nvfp4' '--gpu h100 --memory-share 0.03' '--gpu h100 --ep 2' '--gpu h100 --stack other' '--gpu h100 --tp 1.5' \
    '--gpu h100 --dtype fp7' '--gpu h100 --rate 1 --concurrency 2' '--gpu h100 --ttft 3' '' '--gpu h100 extra'; do
    # shellcheck disable=SC2086 # options
    ask $bad
    echo "exit $?"
done
sed 's/"num_attention_heads": 16,//' "$S/config.json" >bad.json
MODEL=bad.json ask --gpu h100
sed 's/llama/mamba/' "$S/config.json" >bad.json
MODEL=bad.json ask --gpu h100
cdmpp-replay --llm "$S/config.json" --gpu h100
echo "--- without --markdown: aligned columns, whose numbers end below their titles"
cdmpp-replay --llm "$S/config.json" --cost-model ops.cdmpp --devices "$ROOT/configs/devices.yaml" --measured "$S/operators.csv" --gpu h100 --tp 2,5 --concurrency 16 2>/dev/null |
    awk '/^GPU/ { at = index($0, "TTFT") + 3; print $1, $2, $3; next } /^h100/ { print $1, $2, substr($0, at, 1) == "s" ? "below" : $7 " " $8 } /[|]/ { print "a bar" }'
