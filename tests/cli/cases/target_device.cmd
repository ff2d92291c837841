# -model= of a target names the device, as --device does; another one than --device names is refused
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS CDMPP_DEFAULT_MODEL
exec 2>&1
M=$ROOT/tests/golden/model_v3.cdmpp
net="--network matmul --input-size 32 --trials 2"
device() { cdmpp-replay -q $net --cost-model "$M" --json "$@" | grep -o '"device":"[^"]*"\|"stand_in":"[^"]*"\|"guessed":true' | tr '\n' ' '; echo; }
device --target 'llvm -model=zen5-avx2'
device --target 'llvm -model=epyc-zen5-avx2'
device --target 'llvm -model=zen4'
device --target 'llvm -model=epyc-zen5-avx2' --device zen5-avx2
device --target 'llvm -model=zen5-avx2' --target 'zen5-avx512=llvm -model=zen5-avx512' --device zen5-avx2,zen5-avx512
refused() { cdmpp-replay -q $net --cost-model "$M" "$@"; echo "exit $?"; }
refused --target 'llvm -model=zen4' --device zen5-avx2
refused --target 'llvm -model=zen5-avx2' --device zen5-avx2,zen5-avx512
refused --target 'zen5-avx2=llvm -model=zen4' --device zen5-avx2
refused --target 'llvm -model=nobody'
refused --target 'llvm -model=unknown' --device zen5-avx2 >/dev/null
