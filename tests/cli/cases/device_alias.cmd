# another name of a device in the descriptions is the device, for every command
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
exec 2>&1
M=$ROOT/tests/golden/model_v3.cdmpp
net="--network matmul --input-size 32"
cdmpp-profile --list-tasks $net --out-tasks m.tasks.json >/dev/null
cdmpp-profile draw -q --tasks m.tasks.json --trials 2 --seed 1 --target 'llvm -model=zen5-avx2' --out one.json >/dev/null
sed 's/zen5-avx2/epyc-zen5-avx2/' one.json >other.json
p() { cdmpp-predict -q --cost-model "$M" --tasks m.tasks.json "$@"; }
same() { [ -s "$1" ] && sed 's/one\.json/F/; s/other\.json/F/' "$1" >a && sed 's/one\.json/F/; s/other\.json/F/' want >b && cmp a b && echo "$2: the same"; }
p one.json >want
p other.json >got; same got "in records"
p --nearest other.json >got; same got "in records, with --nearest"
p --device epyc-zen5-avx2 one.json >got; same got --device
p --device 'EPYC Zen5 (AVX2)' one.json >got; same got "--device, by letters and digits"
head -n 1 one.json | p --stream --device epyc-zen5-avx2 | cut -c 1-9
p --explain one.json:1 --device epyc-zen5-avx2 >got; p --explain one.json:1 >want; cmp got want && echo "--explain: the same"
p --device nobody one.json; echo "exit $?"
cdmpp-replay -q $net --trials 2 --cost-model "$M" --device epyc-zen5-avx2 | grep -o zen5-avx2
cdmpp-partition -q $net --trials 2 --cost-model "$M" --as epyc-zen5-avx2 --devices cpu0,cpu1 >/dev/null; echo "exit $?"
cdmpp-tune -q $net --trials 1 --budget-ms 1 --no-check --cost-model "$M" --device epyc-zen5-avx2 --out t.json >/dev/null; echo "exit $?"
