# Config.json files of several families, as they are: what is taken for something else is told, types that a checkpoint leaves out count, parts that nobody answers are refused.
. "$T/lib.sh"
export CDMPP_SERVING="$PWD/serving.yaml"
S=$ROOT/examples/serving
cat >serving.yaml <<YAML
- {stack: vllm, tokens: 2048, sequences: 64, memory_share: 0.9, reserve_gb: 8, between_s: 2e-6, step_s: 1e-4, spread_tpot: 0.1, spread_ttft: 0.2}
YAML
cdmpp-train "$S/operators.yaml" --quiet --set data.files="[$S/operators.csv]" --set operators.rounds=5 --set device.file="$ROOT/configs/devices.yaml" --out ops.cdmpp >/dev/null
ask() { cdmpp-replay --markdown --llm "$@" --cost-model ops.cdmpp --devices "$ROOT/configs/devices.yaml" --isl 256 --osl 16; }
show() { grep -o "\"\($1\)\":[^,}]*"; }
SIZES='"num_hidden_layers": 8, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "intermediate_size": 1024, "vocab_size": 1024'
# windows of 5 of 6 layers, embeddings that are the vocabulary's weights, fields with defaults
echo '{"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "num_hidden_layers": 8, "hidden_size": 2560, "intermediate_size": 1024, "sliding_window": 64}, "torch_dtype": "bfloat16", "vision_config": {}}' >gemma.json
ask gemma.json --gpu h100 --json >gemma.out
echo "gemma: $?"
show 'parameters\|cache_bytes_token\|weights_bytes' <gemma.out
grep -o '"runs":[0-9]*' gemma.out | sort | uniq -c | sed 's/^ *//'
# no gate, float32
echo "{\"model_type\": \"starcoder2\", $SIZES, \"sliding_window\": null, \"torch_dtype\": \"float32\"}" >star.json
ask star.json --gpu h100 >star.out
echo "starcoder: $?"
sed -n 's/^| \(up\|down\|gate_up\) .*| \(m .*\) |$/\1: \2/p' star.out
# attention is left out of a quantisation, so it stays in 16 bits
echo "{\"model_type\": \"llama\", $SIZES, \"torch_dtype\": \"bfloat16\", \"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"a\": {\"targets\": [\"Linear\"], \"weights\": {\"num_bits\": 8, \"type\": \"float\"}, \"input_activations\": {\"num_bits\": 8, \"type\": \"float\"}}}, \"ignore\": [\"lm_head\", \"re:.*self_attn.*\"]}}" >part.json
ask part.json --gpu h100 --json >part.out
echo "left out: $?"
show 'attention_dtype\|dtype\|weights_bytes' <part.out | sort | uniq -c | sed 's/^ *//'
# a smaller card has less put aside
for gpu in a10 h100; do ask part.json --gpu $gpu --dtype bfloat16 --json | show 'reserve_bytes'; done
# parts that would be missing
for part in '"num_experts": 8' '"cross_attention_layers": [3]' '"index_topk": 2048' '"layer_types": ["linear_attention", "full_attention", "full_attention", "full_attention", "full_attention", "full_attention", "full_attention", "full_attention"]'; do
    echo "{\"model_type\": \"llama\", $SIZES, $part, \"torch_dtype\": \"bfloat16\"}" >bad.json
    ask bad.json --gpu h100
    echo "missing part: $?"
done
