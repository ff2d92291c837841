# networks of which nothing can be estimated: the same words from replay and partition; a network where a graph is expected
unset CDMPP_MODELS
exec 2>&1
M=$ROOT/tests/golden/model_v1.cdmpp
both() { cdmpp-replay -q --network "$1" --cost-model "$M" --device zen5-avx2; echo "exit $?"; cdmpp-partition -q --network "$1" --cost-model "$M" --as zen5-avx2; echo "exit $?"; }
# no operator at all; one that nobody defines
printf '\010\010:-\022\001gZ\023\012\001x\022\016\012\014\010\001\022\010\012\002\010\010\012\002\010@b\023\012\001x\022\016\012\014\010\001\022\010\012\002\010\010\012\002\010@B\004\012\000\020\015' >empty.onnx
printf '\010\010:X\012\024\012\001a\012\001b\022\001y\032\001q"\006CumSum\022\001gZ\023\012\001a\022\016\012\014\010\003\022\010\012\002\010\010\012\002\010\010Z\023\012\001b\022\016\012\014\010\003\022\010\012\002\010\010\012\002\010\010b\023\012\001y\022\016\012\014\010\006\022\010\012\002\010\010\012\002\010\010B\004\012\000\020\015' >cumsum.onnx
both empty.onnx
both cumsum.onnx
cdmpp-partition pack --units 2 -q --network empty.onnx --cost-model "$M" --as zen5-avx2; echo "exit $?"
cdmpp-replay -q --graph cumsum.onnx --cost-model "$M" --device zen5-avx2; echo "exit $?"
# what nobody defines stays on the first device, outside of the times
cdmpp-partition -q --network "$ROOT/tests/profiler/data/opaque.onnx" --cost-model "$M" --as zen5-avx2 --devices cpu0,cpu1; echo "exit $?"
cdmpp-partition --network "$ROOT/tests/profiler/data/opaque.onnx" --cost-model "$M" --as zen5-avx2 --devices cpu0,cpu1 --allow-missing >plan.txt 2>err.txt; echo "exit $?"
grep 'no definition' err.txt; grep '^do not split' plan.txt
exit 0
