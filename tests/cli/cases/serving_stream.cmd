# Steps of a language model on a pipe: operators with counts, what is refused, and what --stream goes without.
. "$T/lib.sh"
export CDMPP_SERVING="$PWD/serving.yaml"
S=$ROOT/examples/serving
cat >serving.yaml <<YAML
- {stack: vllm, tokens: 2048, sequences: 64, memory_share: 0.9, reserve_gb: 3, between_s: 2e-6, step_s: 1e-4, spread_tpot: 0.1, spread_ttft: 0.2}
YAML
cdmpp-train "$S/operators.yaml" --quiet --set data.files="[$S/operators.csv]" --set operators.rounds=5 --set device.file="$ROOT/configs/devices.yaml" --out ops.cdmpp >/dev/null
ask() { cdmpp-replay --llm "${MODEL:-$S/config.json}" --cost-model ops.cdmpp --devices "$ROOT/configs/devices.yaml" --measured "$S/operators.csv" --gpu h100 "$@"; }
ask --tp 2 --stream >out.jsonl <<'J'
{"cmd":"hello"}
{"id":"p","prefill":[[256,0],[256,0],[384,512]],"decode":[100,300]}
{"id":3,"decode":[264]}
{"decode":[264],"dtype":"fp8"}
{"prefill":[[256]]}
J
echo "status $?"
sed 's/"\(total_s\|host_s\|sigma\|share\)":-*[0-9][0-9.e+-]*/"\1":T/g; s/{"name"/\n&/g' out.jsonl
# the table of a configuration has the same numbers
ask --tp 2 --isl 256 --osl 16 --json | sed 's/.*"decode_step":{//; s/}\],*}.*//' | tr '{' '\n' >table.txt
sed -n '3s/^{"id":3,//p' out.jsonl | sed 's/}\]}$//' | tr '{' '\n' | cmp - table.txt && echo same
# who waits for each answer gets it
mkfifo to from; ask --stream <to >from & exec 3>to 4<from; echo '{"decode":[1]}' >&3; read -r line <&4; echo "$line" | cut -c 1-20; exec 3>&-; wait $!; echo "status $?"
for bad in '--tp 3' '--tp 1,2' '--sweep' '--runs x.csv' '--load x.csv' '--concurrency 2' '--rate 1' '--decode-workers 1' '--engines 2' '--prompts whole'; do
    # shellcheck disable=SC2086 # options
    ask --stream $bad </dev/null
    echo "status $?"
done
