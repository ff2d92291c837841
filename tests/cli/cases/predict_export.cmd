# a model in other forms; what a form cannot hold
m=$ROOT/tests/golden/model_v2.cdmpp
predict() { cdmpp-predict --model "$m" "$@"; echo "status $?"; }
predict --export safetensors --out all.safetensors
head -c 20000 all.safetensors | tail -c +9 | grep -ao '"format":"pt"\|"0.projection.weight":{"dtype":"F32","shape":[^]]*]'
predict --export safetensors --member 2 --out one.safetensors
predict --export=onnx --out m.onnx
grep -aob cdmpp m.onnx | head -n 1
predict --export xgboost --member 4 --out 4.ubj
head -c 12 4.ubj | grep -ac '{L'
ls
predict --export xgboost --out x
predict --export xgboost --member 0 --out x
predict --export onnx
predict --export pickle --out x
predict --member 3 a.json
predict --export onnx --out no/such/folder/x
