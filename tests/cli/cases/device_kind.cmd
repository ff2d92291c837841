# an own file of descriptions: a device of the model of another kind, one of which nothing is known, the same device twice
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
exec 2>&1
M=$ROOT/tests/golden/model_v3.cdmpp
net="--network matmul --input-size 32 --trials 2"
printf -- '- {name: zen5-avx2, aliases: [again], kind: gpu, cores: 8, clock_mhz: 3000}\n- {name: bare, kind: cpu}\n- {name: bare-gpu, kind: gpu}\n- {name: zen5-avx512, kind: cpu, cores: 8, clock_mhz: 3000}\n' >own.yaml
replay() { cdmpp-replay -q $net --cost-model "$M" --devices own.yaml "$@"; echo "exit $?"; }
replay --device zen5-avx2
replay --device again
cdmpp-partition -q $net --cost-model "$M" --device-file own.yaml --as zen5-avx2 --devices cpu0,cpu1; echo "exit $?"
replay --device zen5-avx512 >/dev/null
replay --device bare
replay --device bare-gpu
echo "--- twice"
twice() { cdmpp-replay $net --cost-model "$M" --device "$1" 2>&1 >/dev/null | grep already; }
twice zen5-avx2,epyc-zen5-avx2
twice epyc-zen5-avx2,zen5-avx2
twice zen5-avx2,zen5-avx2
