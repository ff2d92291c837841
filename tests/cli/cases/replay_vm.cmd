# a size that is known only at run time: tuned over a range, then called with sizes; times are the machine's
# Long: no sanitizer.
exec 2>&1
export XDG_CACHE_HOME="$PWD/cache"
cdmpp-tune --executor vm --network matmul --input-size 16 --dim batch=1..8:3 --tuner random --threads 1 --isa native --budget-ms 1 --trials 3 --per-round 1 --no-check --out vm.json >/dev/null 2>&1; echo "tuned: $?, $(wc -l <vm.json) records"
echo "--- what would be tuned"
cdmpp-tune --executor vm --network matmul --input-size 16 --dim batch=1..8:3 --threads 1 --dry-run | awk '{print $1, $2}' | head -n 6
echo "--- called"
cdmpp-replay --executor vm --network matmul --input-size 16 --batch 1..8:3 --records vm.json --at 1,2,8,9 >rows; echo "status $?"
sed 's/, [0-9.]* MiB in memory//' rows | awk '/^ *[0-9]/ {print $1, $2, $3; next} /^others/ {next} NR == 1'
cdmpp-replay --executor vm --network matmul --input-size 16 --batch 1..8:3 --records vm.json --at 2 --json | grep -o '"schema":"[a-z.]*"\|"programs":\[[0-9,]*\]\|"size":[0-9]*,"program":[0-9]*,"how":"[a-z]*"'
echo "--- what does not go"
cdmpp-replay --executor vm --network matmul --at 2; echo "status $?"
cdmpp-replay --executor vm --network matmul --batch 1..8; echo "status $?"
cdmpp-replay --executor vm --network matmul --batch 1..8 --at 2,x; echo "status $?"
cdmpp-replay --executor vm --network matmul --batch 1..8 --at 2 --cost-model m.cdmpp; echo "status $?"
cdmpp-replay --executor vm --batch 1..8 --at 2; echo "status $?"
cdmpp-replay --network matmul --at 2; echo "status $?"
cdmpp-tune --executor vm --network matmul --out o.json; echo "status $?"
cdmpp-tune --network matmul --dim batch=1..8 --out o.json; echo "status $?"
cdmpp-tune --executor vm --network matmul --dim seq=1..8 --out o.json; echo "status $?"
