# --run that cannot run is no success: the estimate is printed, and the exit status is 3
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
exec 2>&1
cdmpp-extract -q --tasks "$K" --out a.h5 "$LOGS" || [ $? -eq 3 ] || exit
cdmpp-train "$ROOT/configs/quickstart.yaml" -q --set data.files=a.h5 --set 'data.devices=[]' --set train.rounds=10 --set model.members='[program]' --out m.cdmpp >/dev/null || exit
replay() { cdmpp-replay --network lstm --input-size 4 --cost-model m.cdmpp --device zen5-avx2 --trials 2 --run "$@"; }
shape() { sed -E 's/ [0-9.]+(e[-+]?[0-9]+)? (us|ms|s)/ T/g; s/ +/ /g; s/ [+-]?[0-9.]+ %/ P/g; s/ T [0-9.]+/ T R/; s/ [0-9.]+ [KM]iB/ M/; s/ T - - / T - - /'; }
replay --target 'llvm -mcpu=nonsense' >1.txt; echo "exit $?"; shape <1.txt
