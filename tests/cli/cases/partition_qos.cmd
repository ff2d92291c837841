# queries with deadlines: the example of the reference, a replay's estimates, contention, and what is refused
exec 2>&1
printf 'query,seconds,low_s,high_s,deadline_s,bytes,weight\nresnet,0.010,0.009,0.0115,0.05,1e8,2\nbert,0.020,0.018,0.024,0.12,2e7,1\n' >q.csv
cdmpp-partition qos --places 2 --runs 100 q.csv | cut -c1-63
cdmpp-partition qos --places 2 --runs 100 --draw run q.csv | awk '$1 == "bound" { print $1, $4, $5 }'
echo "--- exact times are never late where they are admitted"
printf 'query,seconds\na,1\nb,2\n' >e.csv
cdmpp-partition qos --deadline 5 --load 2 --runs 10 e.csv | awk '/runs of/ || $1 == "upper" || $1 == "bound" { print $0 }' | sed 's/\(upper\|bound\).* % *\(0\) *\(0\) .*/\1 \2 late in \3 runs/'
echo "--- beside each other"
printf '{"cdmpp_machine": 1, "devices": [{"name": "cpu0", "kind": "cpu", "launch_s": 0, "sync_s": 0}], "contention": {"peak_bytes_per_s": 1e10, "beside": 1.1, "turn": 2}}' >m.json
printf 'first,second,sharing,first_solo_s,second_solo_s,first_slowdown,second_slowdown,first_bytes,second_bytes,error_no\nresnet,bert,disjoint,1,1,1.3,1.2,0,0,0\nresnet,resnet,disjoint,1,1,1.1,1.1,0,0,0\nbert,bert,disjoint,1,1,1.2,1.2,0,0,0\n' >p.csv
for how in '' '--contention m.json' '--pairs p.csv'; do
    cdmpp-partition qos --json --places 2 --runs 50 --queries 200 $how q.csv | grep -o '"policy":"bound","arrived":10000,"admitted":[0-9]*,"late":0,"late_runs":0' | sed 's/.*admitted":\([0-9]\)\([0-9]\).*/admitted: \1\2 hundred, none late/'
done
echo "--- of a replay"
X() { printf '{"network":"%s","device":"%s","batch":1,"latency_s":%s,"low_s":%s,"high_s":%s,"level":0.8}' "$@"; }
printf '{"schema":"cdmpp.replay","command":"cdmpp-replay","result":{"estimates":[%s,%s,%s]}}' "$(X a v100 1e-3 9e-4 2e-3)" "$(X b v100 2e-3 1e-3 3e-3)" "$(X a k80 1e-2 9e-3 2e-2)" >r.json
cdmpp-partition qos --deadline 0.01 --device v100 --runs 5 r.json | head -n 5
cdmpp-partition qos --deadline 0.01 --device v100 --runs 5 --json r.json | grep -o '"level":0.8[0-9]*,"risk":[0-9.e-]*,"exact":false,"queries":\[{"name":"a/1","weight":1,"seconds":0.001,"low_s":0.000[0-9]*,"high_s":0.002,"deadline_s":0.01}' | sed "s,:[0-9][0-9.e-]*,:N,g"
echo "--- arrivals of a file: three at once, exact times, one place"
printf 'at_s,query\n0,a\n0,a\n0,a\n100,b\n' >a.csv
cdmpp-partition qos --deadline 2.5 --arrivals a.csv --runs 3 e.csv
cdmpp-partition qos --deadline 2.5 --arrivals a.csv --runs 3 --json e.csv | grep -o '"load":[a-z0-9.]*,"runs":3,"queries_per_run":4'
echo "--- refused"
bad() { cdmpp-partition qos "$@"; echo "status $?"; }
bad --deadline 0.01 r.json
bad --deadline 0.01 --device t4 r.json
bad r.json --device v100
bad
bad --contention m.json --pairs p.csv q.csv
bad --contention m.json --deadline 1 e.csv
bad --load 1 --arrivals a.csv q.csv
bad --deadline 1 --arrivals e.csv e.csv
printf 'at_s,query\n1,a\n0,a\n' >late.csv; bad --deadline 1 --arrivals late.csv e.csv
printf 'at_s,query\n1,c\n' >who.csv; bad --deadline 1 --arrivals who.csv e.csv
bad --load 0 q.csv
bad --level 1 q.csv
bad --places 65 q.csv
sed 's/^bert/gpt/' q.csv >g.csv; bad --pairs p.csv g.csv
printf '{"cdmpp_machine": 1, "devices": []}' >n.json; bad --contention n.json q.csv
