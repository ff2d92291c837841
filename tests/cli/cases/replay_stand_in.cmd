# a device that no model knows: a described one is answered for by its nearest, marked and with a wider interval
# Long: no sanitizer.
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
exec 2>&1
small_model || exit
cdmpp-train "$ROOT/configs/quickstart.yaml" -q --set data.files=a.h5 --set 'data.devices=[zen5-avx2]' --set train.rounds=10 --set model.members='[program]' --out one.cdmpp >/dev/null || exit
replay() { cdmpp-replay --network mobilenet-v2 --input-size 32 --trials 8 "$@"; }
shape() { sed -E 's/ [0-9.]+(e[-+]?[0-9]+)? (us|ms|s)/ T/g; s/ +/ /g; s/ T [0-9.]+/ T R/; s/ [0-9.]+ MiB/ M/; s/[0-9.]+ times shorter/F times shorter/g'; }
# how much wider than the one that stands for it, in logarithms
width() { replay "$@" -q --json | grep -o '"low_s":[^,]*\|"high_s":[^,]*' | sed 's/.*://' | awk 'NR == 1 { l = $1 } NR == 2 { print log($1 / l) }'; }
replay --cost-model m.cdmpp --device zen4 >1.txt; echo "exit $?"
shape <1.txt
replay --cost-model m.cdmpp --device zen4 | cmp - 1.txt && echo "the cache gives the same"
replay --cost-model m.cdmpp --device zen4 -q --json | grep -o '"stand_in":[^,]*\|"unlike_share":[^,]*'
a=$(replay --cost-model m.cdmpp --device zen4 -q --json | grep -o '"device_spread":[^,]*' | sed 's/.*://')
awk "BEGIN { print ($a >= 0.2 ? \"at least the least spread\" : \"too sure: $a\") }" # learner/model/model.h
echo "--- a model of one device; of two models the one with the nearest"
replay --cost-model one.cdmpp --device epyc-7452 | shape
replay --cost-model one.cdmpp --cost-model m.cdmpp --device granite-rapids -q --json | grep -o '"stand_in":[^,]*'
echo "--- an own device, in a file that has nothing else"
printf -- '- name: mine\n  kind: cpu\n  cores: 8\n  clock_mhz: 3000\n  simd_bits: 256\n' >own.yaml
replay --cost-model m.cdmpp --devices own.yaml --device mine | shape
echo "--- of another kind: scaled by the rooflines"
replay --cost-model m.cdmpp --device v100 | shape
replay --cost-model m.cdmpp --device v100 -q --json | grep -o '"stand_in_by":[^,]*\|"unlike_share":[^,]*'
echo "--- the description of hl-100 has no peak by which to scale"
replay --cost-model m.cdmpp --device hl-100; echo "exit $?"
echo "--- scaled times"
latency() { replay -q --json "$@" | grep -o '"latency_s":[^,]*' | head -1 | sed 's/.*://'; }
a=$(latency --cost-model one.cdmpp --device zen5-avx2); b=$(latency --cost-model one.cdmpp --device v100 --issue-us 0)
# 15667 GFLOP/s and 900 GB/s for a core of 131 GFLOP/s and 64 GB/s: 119 and 14 times faster. The core's time has what a network costs there, too.
awk "BEGIN { r = $a / $b; print (r > 12 && r < 140) ? \"between the ratios of the peaks\" : \"outside: $a $b\" }"
a=$(width --cost-model one.cdmpp --device v100)
awk "BEGIN { print ($a > 1.9 * log(10) ? \"ten times either way\" : \"narrower: $a\") }"
echo "--- what is said on standard error is in the JSON form too, also where -q says nothing"
replay --cost-model m.cdmpp --device zen4 -q --json 2>&1 | grep -o '"warnings":\["zen4 is not in the model: '
echo "--- nobody names the device, and the model knows none that is this machine: guessed, marked and wider"
printf -- '- {name: zen5-avx2, kind: cpu, cores: 8, clock_mhz: 3000, simd_bits: 64}\n- {name: zen5-avx512, kind: cpu, cores: 8, clock_mhz: 3000, simd_bits: 64}\n' >two.yaml
# ours would know this machine: here is no such file but this one
alone() { mkdir -p configs; cp two.yaml configs/devices.yaml; "$@"; rm -r configs; }
guess() { CDMPP_DEFAULT_MODEL=$PWD/m.cdmpp alone replay --devices two.yaml -q --json "$@"; }
guess | tee guess.json | grep -o '"stand_in":"zen5-avx[0-9]*","guessed":true\|"unlike_share":[^,]*\|this CPU (' | sed 's/zen5-avx[0-9]*/D/'
d=$(grep -o '"device":"[^"]*"' guess.json | cut -d '"' -f 4)
guess --device "$d" | grep -c '"guessed"\|"stand_in"'
a=$(alone width --cost-model m.cdmpp --devices two.yaml --device "$d"); b=$(grep -o '"low_s":[^,]*\|"high_s":[^,]*' guess.json | sed 's/.*://' | awk 'NR == 1 { l = $1 } NR == 2 { print log($1 / l) }')
awk "BEGIN { print ($b >= $a) ? \"not narrower\" : \"narrower: $a $b\" }"
CDMPP_DEFAULT_MODEL=$PWD/m.cdmpp alone cdmpp-partition --network mobilenet-v2 --input-size 32 --trials 2 --devices cpu0,cpu1 --device-file two.yaml -q --json | grep -o '"stand_in":"zen5-avx[0-9]*","guessed":true' | sed 's/zen5-avx[0-9]*/D/'
echo "--- the only device of a model, for a processor of which nobody says that it is that; a device of another kind"
part() { alone cdmpp-partition --network squeezenet-1.1 --input-size 64 --devices cpu0,cpu1 --device-file two.yaml "$@"; }
here() { grep 'this machine\|this CPU\|the machine that' | sed 's/zen5-avx[0-9]*/D/; s/; for that alone.*//; s/(.*)/(HOST)/'; }
part --cost-model one.cdmpp --trials 2 --save-plan only.json 2>&1 >/dev/null | here
part --plan only.json 2>&1 >/dev/null | here
part --cost-model one.cdmpp --as zen5-avx2 --trials 2 2>&1 >/dev/null | here
cdmpp-partition -q --network squeezenet-1.1 --cost-model one.cdmpp --as ocl0=a10 --trials 2; echo "exit $?"
echo "--- refused: of nobody"
replay --cost-model m.cdmpp --device nobody; echo "exit $?"
replay --cost-model m.cdmpp --device nobody --nearest; echo "exit $?"
replay --cost-model one.cdmpp --device nobody --nearest | shape
echo "--- the default model is named once, also where the device is named"
usual() { CDMPP_DEFAULT_MODEL=$PWD/m.cdmpp "$@" 2>&1 >/dev/null | sed "s|$PWD/||" | grep 'cost model:'; }
usual replay --device zen5-avx2,zen4
usual cdmpp-partition --network squeezenet-1.1 --input-size 64 --as zen5-avx2 --trials 2
usual replay --devices two.yaml | grep -c 'the default one' || :
echo "--- a plan says it again"
usual cdmpp-partition --network squeezenet-1.1 --input-size 64 --as zen5-avx2 --trials 2 --save-plan usual.json >/dev/null
usual cdmpp-partition --network squeezenet-1.1 --input-size 64 --plan usual.json
usual part --trials 2 --save-plan usual.json | here
usual part --plan usual.json | here
