# a batch has one name and another in all commands that take one
M=$ROOT/tests/golden/model_v3.cdmpp
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
same() { "$@" --batch 2 >one.txt 2>&1; a=$?; "$@" --batch-size 2 >two.txt 2>&1; b=$?; "$@" >none.txt 2>&1; echo "$1: exit $a $b"; cmp one.txt two.txt; cmp -s one.txt none.txt && echo "the batch counts for nothing"; }
same cdmpp-profile --list-ops --network matmul
same cdmpp-replay --network matmul --cost-model "$M" --device zen5-avx2 --trials 2
same cdmpp-tune --network matmul --space-dump
same cdmpp-partition --network matmul --cost-model "$M" --as zen5-avx2 --devices cpu0,cpu1 --trials 2
same cdmpp-partition pack --network matmul --cost-model "$M" --as zen5-avx2 --units 2 --trials 2
for c in profile replay tune partition; do cdmpp-$c --help=all | grep -c -e '--batch-size'; done
exit 0
