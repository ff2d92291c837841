# an option of another mode is refused, with status 2 and the modes that take it
no() { timeout 20 cdmpp-profile "$@" 2>err </dev/null >/dev/null; echo "$? $*: $(grep -v "^Try" err | sed "s/^cdmpp-profile: //")"; }
no records --tasks t --out o --factor tile r.json
no records --tasks t --out o --plot p.svg r.json
no records --tasks t --out o --passes 3 r.json
no records --tasks t --out o --form ansor r.json
no records --tasks t --out o --form table --workload w r.json
no sweep --tasks t --stats s.jsonl r.json
no sweep --tasks t --cold r.json
no sweep --tasks t --host pi@board r.json
no draw --tasks t --threads 2
no draw --tasks t --budget-ms 2
no corun --tasks t --store s.db r.json
no corun --tasks t --jobs 2 r.json
no corun --tasks t --no-pin r.json
no curves --network matmul --sizes batch=1,2 --cover 50
no kernels predict --network matmul --alpha 1 s.jsonl
no fusion detect --network matmul
no store list --store s.db --isa avx2
no store list --store s.db --map m.csv
no --list-networks --network matmul
no --list-ops --network matmul --fusion-rules f.json
no --list-ops --network matmul --list-tasks
no --list-tasks --network matmul --sizes batch=1,2
no --ops --network matmul --planted p.json
no --describe-device --threads 2
no --worker --host pi@board
no wrap --trials 2 -- true
no trace --errors t.json
echo "--- a value that is the default is given, too"
no records --tasks t --dry-run --as records r.json
no trace --backend cpu t.json
echo "--- its own are taken: what ends these is what comes next"
no records --tasks t --out o --stats s.jsonl r.json
no trace --strict --limit 3 no.json
no --list-tasks --network no --layout nchw
no store list --store no.db --limit 3 --json --log-format text
echo "--- within a mode"
no records --tasks t --out o --port 7 r.json
no records --tasks t --host b --dry-run r.json
no records --tasks t --host b --out o --cache c r.json
no corun --tasks t --seed 7 r.json
ls
