# ONNX files: what was guessed stands with the answer, also where warnings are not wanted; a weight that is read often is there once; time steps are no items
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
exec 2>&1
D=$ROOT/tests/profiler/data
cdmpp-extract -q --tasks "$K" --out a.h5 "$LOGS" || [ $? -eq 3 ] || exit
cdmpp-train "$ROOT/configs/quickstart.yaml" -q --set data.files=a.h5 --set 'data.devices=[]' --set train.rounds=10 --set model.members='[program]' --out m.cdmpp >/dev/null || exit
replay() { cdmpp-replay --network "$@" --cost-model m.cdmpp --device zen5 --trials 4 --cache ''; }
told() { sed -E 's/ [0-9.]+(e[-+]?[0-9]+)? (us|ms|s)/ T/g; s/ +/ /g'; }
replay "$D/attention_flat.onnx" -q | grep -c 'taken for weights: w; for data: q, k, v'
replay "$D/attention_flat.onnx" 2>&1 >/dev/null | grep -c 'warning: .*taken for weights: w'
replay "$D/attention_flat.onnx" --input q --input k --input v -q | grep -c 'taken for'
replay "$D/attention_flat.onnx" -q --json | grep -c '"warnings":\[".*taken for weights: w'
echo "--- 64 x 64 in two forms and a GRU's: 33.4 KiB of weights, not six times as much"
replay "$D/shared_weights.onnx" -q --json | grep -o '"weight_bytes":[0-9]*'
echo "--- 20 steps of 3 items"
replay "$D/time_first.onnx" -q | told | awk '{ print $3 }'
replay "$D/time_first.onnx" -q --batch 5 | told | awk '{ print $3 }'
