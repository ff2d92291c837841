# a device of one kind and a target of the other, a target that no back end has, a GPU that is not here: each is told, and what to do
M=$ROOT/tests/golden/model_v3.cdmpp
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS CDMPP_DEFAULT_MODEL
export OCL_ICD_VENDORS=/nowhere
exec 2>&1
net="--network matmul --input-size 32 --trials 2"
echo "--- estimates"
cdmpp-replay -q $net --cost-model "$M" --device zen5-avx2 --target cuda; echo "exit $?"
cdmpp-replay -q $net --cost-model "$M" --device zen5-avx2 --target zen5-avx2=opencl; echo "exit $?"
cdmpp-replay -q $net --cost-model "$M" --device zen5-avx2 --target 'llvm -mcpu=core-avx2' >/dev/null; echo "exit $?"
cdmpp-replay -q $net --cost-model "$M" --device zen5-avx2 --target vulkan; echo "exit $?"
cdmpp-partition $net --cost-model "$M" --as zen5-avx2 --devices cpu0,cpu1 --target vulkan; echo "exit $?"
cdmpp-replay -q $net --cost-model "$M" --device zen5-avx2 --target lvm; echo "exit $?"
echo "--- searches measure here"
tune() { cdmpp-tune -q --network matmul --input-size 32 --out t.json "$@"; echo "exit $?"; }
tune --device h200
tune --device h200 --target cuda
tune --device zen4 --target cuda
tune --target vulkan
ls t.json 2>/dev/null
echo "--- what --trials cannot help"
cdmpp-profile --list-tasks --network matmul --input-size 32 --out-tasks m.tasks.json >/dev/null
cdmpp-profile draw -q --tasks m.tasks.json --trials 1 --seed 1 --target 'llvm -model=zen5-avx2' --out drawn.json >/dev/null
missing() { cdmpp-replay -q --network lstm --input-size 4 --cost-model "$M" --device zen5-avx2 --records drawn.json --allow-missing "$@"; }
missing --from-records
missing
