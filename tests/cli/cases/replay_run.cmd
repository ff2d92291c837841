# --run that cannot run is no success: the estimate is printed, and the exit status is 3
# Long: no sanitizer.
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
exec 2>&1
small_model || exit
replay() { cdmpp-replay --network lstm --input-size 4 --cost-model m.cdmpp --device zen5-avx2 --trials 2 --run "$@"; }
shape() { sed -E 's/ [0-9.]+(e[-+]?[0-9]+)? (us|ms|s)/ T/g; s/ +/ /g; s/ [+-]?[0-9.]+ %/ P/g; s/ T [0-9.]+/ T R/; s/ [0-9.]+ [KM]iB/ M/; s/ T - - / T - - /'; }
replay --target 'llvm -mcpu=nonsense' >1.txt 2>2.txt; st=$?
grep -v 'others use the processors' 2.txt; echo "exit $st"; shape <1.txt # whether they do is another question
echo "--- a batch that is not 1, or one of several, is named where programs are unlike"
for b in 1 1,3 3; do cdmpp-replay --network lstm --input-size 4 --cost-model m.cdmpp --device zen5-avx2 --trials 2 --batch $b 2>&1 >/dev/null | sed -n 's/.*warning: \(.*\): [0-9]* % of the time is of programs unlike.*/\1/p'; done
echo "--- somebody else at work on the processor of the run: said before it"
last=$(taskset -cp $$ | sed 's/.*[-, ]//')
hog=$(sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $!)
taskset -cp "$last" "$hog" >/dev/null
replay --target llvm --json >1.json 2>&1
kill "$hog"
grep -o 'warning: lstm: others use the processors of the run: .*' 1.json | sed 's/[0-9][0-9]* %/N %/'
grep -o '"run_left":0' 1.json
