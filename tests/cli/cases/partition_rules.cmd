# rules: what they match, the plan under them, sources that compile; rules that contradict
. "$T/lib.sh"
unset CDMPP_MODELS
exec 2>&1
M=$ROOT/tests/golden/model_v1.cdmpp
cp "$ROOT/configs/offload/machine.json" "$ROOT"/configs/offload/*.rules .
part() { cdmpp-partition -q --machine machine.json "$@"; }
plan() { part --model squeezenet-1.1 --input-size 64 --cost-model "$M" --as zen5-avx2 --trials 2 "$@"; }
# latencies are the compiler's as much as ours: only their shape is told
shape() { sed -E 's/ +[0-9.]+ (us|ms)\b/ T/g; s/ (more|less)/ ML/g; s/ +/ /g'; }
echo "--- what they match"
part --model squeezenet-1.1 --devices cpu0,npu --rules npu.rules --list-patterns | sed -n '1,12p;/^cpu0/,$p'
part --model yolov3-tiny --devices cpu0,npu --rules npu.rules --list-patterns | grep '^pattern' | sed -n 1p
part --model bert-tiny --devices cpu0,gpu --rules gpu.rules --list-patterns | sed -n '/^cpu0/,$p'
echo "--- by cost and as TVM does"
plan --devices cpu0,npu --rules npu.rules | sed -n '/^region/,/^minimum cut\|, exact$/p' | sed '$d' | shape
plan --devices cpu0,npu --rules npu.rules --json >1.json
awk -v h="$(grep -o '"host": {"sum_s": [0-9.e-]*' 1.json | grep -o '[0-9.e-]*$')" -v g="$(grep -o '"greedy": {"sum_s": [0-9.e-]*' 1.json | grep -o '[0-9.e-]*$')" \
    -v p="$(grep -o '"plan": {"sum_s": [0-9.e-]*' 1.json | grep -o '[0-9.e-]*$')" 'BEGIN { print (p > 0 && p <= h && p <= g) ? "never worse" : p " " h " " g }'
echo "--- sources"
plan --devices cpu0,npu --rules npu.rules --emit out >/dev/null; echo "exit $?"; ls out
grep -c '"offset"' out/network.json
(cd out && MAKEFLAGS= make -s CFLAGS=-O0 OPENMP= && ./network 1 --int8 | sed -E 's/^[0-9.e-]+ s/T s/; s/sum [0-9]{4}\.[0-9]+/sum of four digits/'); echo "exit $?"
plan --devices cpu0,npu --no-split --emit out2 >/dev/null; echo "exit $?"; ls out2 | head -n 4
# into a folder that has another emission: what is no longer goes, what is not ours stays
echo mine >out/region9.c; plan --devices cpu0 --no-split --emit out >/dev/null; echo "exit $?"; ls out | grep -v '\.o$\|^network$'
echo "--- the machine as it is shipped: all of its devices"
plan | head -n 1 | sed "s/rho .*/rho R/"
echo "--- refused"
no() { "$@" 2>&1; echo "exit $?"; }
no part --model squeezenet-1.1 --list-patterns
no part --model squeezenet-1.1 --devices cpu0,npu --rules nosuch.rules --list-patterns
no part --model squeezenet-1.1 --devices npu,cpu0 --rules npu.rules --list-patterns
printf 'host cpu\nsupport npu relu\nrefuse npu relu\n' >x.rules; no part --model squeezenet-1.1 --devices cpu0,npu --rules x.rules --list-patterns
printf 'host cpu\nsupport npu conv2d\nplace Conv_2 npu\n' >x.rules; no part --model squeezenet-1.1 --devices cpu0,npu --rules x.rules --list-patterns
printf 'host cpu\nsupport npu conv2d bias_add relu\nplace Conv_2 npu\nplace Relu_3 cpu\n' >x.rules; no part --model squeezenet-1.1 --devices cpu0,npu --rules x.rules --list-patterns
printf 'host cpu\nformat npu dtype=int9\n' >x.rules; no part --model squeezenet-1.1 --devices cpu0,npu --rules x.rules --list-patterns
no plan --devices cpu0,npu --rules npu.rules --emit /proc/nowhere | tail -n 2
mkdir a; long=$(printf 'a/../%.0s' $(seq 180))out3; no plan --devices cpu0,npu --rules npu.rules --emit "$long" | tail -n 2; [ -e main.c ] && echo "files beside the folder"; :
