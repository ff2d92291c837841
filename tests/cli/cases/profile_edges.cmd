# a graph network over a file of edges: operators, a run with checked values, an estimate; what is refused
exec 2>&1
export XDG_CACHE_HOME="$PWD/cache"
unset CDMPP_MODELS
printf '# four people\nann bob\nbob eve 0.5\neve,ann\nann dan\n' >edges.txt
cdmpp-profile --list-ops --network gcn@edges.txt
cdmpp-profile --ops --network gcn@edges.txt --trials 1 --threads 1 --budget-ms 1 --passes 5 2>/dev/null | awk 'NR == 1 {print $1} /^ +[0-9]+ / {print $1, $NF}'
cdmpp-replay --network gcn@edges.txt --cost-model "$ROOT/tests/golden/model_v1.cdmpp" --cache '' --device zen5 --trials 1 --batch 2 -q | grep -v '^Latency' | awk '{print $1, $3}'
printf 'ann bob\nann\n' >bad.txt
cdmpp-profile --list-ops --network gcn@bad.txt; echo "status $?"
cdmpp-profile --list-ops --network gcn@nowhere.txt; echo "status $?"
cdmpp-profile --list-ops --network gcn@edges.txt --input-size 4; echo "status $?"
cdmpp-profile --list-ops --network lstm@edges.txt; echo "status $?"
