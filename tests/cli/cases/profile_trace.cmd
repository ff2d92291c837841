# traces of profilers: forms by content, repeats, operators, ranges, maps; the network and the table go on into other commands
P="cdmpp-profile trace"
cp "$ROOT"/examples/traces/* .
for f in nvprof nvprof_summary nsys_trace ncu cutlass; do cp $f.csv no-name; $P no-name; echo "status $?"; done
$P habana.json --map habana-graph.json; echo "status $?"
gzip -n kineto2.json
$P kineto1.json kineto2.json.gz kineto3.json --save-graph g.json --labels l.csv; echo "status $?"
cat g.json l.csv
$P kineto1.json kineto2.json.gz kineto3.json --json --quiet | grep -o '"reason":"[^"]*"\|"utilisation":0.[0-9]\{3\}\|"kept":[0-9]*'
cdmpp-replay --graph g.json --replay-given --csv | cut -d, -f1-3
$P cutlass.csv --quiet --device v100 --labels c.csv >/dev/null; cat c.csv
cdmpp-predict --operators --from t4 --to v100-pcie l.csv | grep -o '"operator":"[a-z]*"\|"form":"[a-z]*"'
$P cutlass.csv --quiet --labels d.csv >/dev/null; $P ncu.csv --labels e.csv 2>&1 >/dev/null
printf 'kernel,operator\ngemm*,MatMul\nrelu*,Relu\n' >map.csv
$P nsys_trace.csv --map map.csv | tail -n 3
$P nsys_trace.csv --network resnet-18; echo "status $?"
(echo 'Start (ns),Duration (ns),Device,Strm,Name'; seq 23 | awk '{print $1 * 1000 ",500,T4,7,k" $1}') >resnet.csv
$P resnet.csv --network resnet-18 --save-graph r.json | tail -n 3; grep -c '"op": "Conv' r.json
cdmpp-replay --graph r.json --replay-given --csv | cut -d, -f1-3
$P habana.json --range 'nothing*' 2>&1 | tail -n 1
$P; echo "status $?"
$P -; echo "status $?"
$P --strict nvprof.csv; echo "status $?"
printf 'a,b\n1,2\n' | tee x.csv >y; $P x.csv; echo "status $?"
head -c 200 kineto2.json.gz >cut.gz; $P cut.gz; echo "status $?"
