# Who takes which device; how many threads each has.
P=cdmpp-partition
try() { "$@"; echo "exit $?"; }
cat >ops.csv <<'X'
operator,cpu,gpu,transfer:gpu
conv1,4e-3,1e-3,2e-4
dense,3e-3,2e-3,1e-4
nms,5e-4,,
softmax,1e-3,8e-4,3e-4
X
cat >ops.json <<'X'
{"devices": ["left", "right"], "operators": [{"name": "a", "seconds": [3, 3]}, {"name": "b", "seconds": [3, 3]}, {"name": "c", "seconds": [2, 2]},
 {"name": "d", "seconds": [2, 2]}, {"name": "e", "seconds": [2, null], "transfer": [0, 1]}]}
X
$P equilibrium ops.csv
$P equilibrium ops.json
$P equilibrium --json ops.csv
echo "--- every move alone is for the worse, but all together could be for the better"
printf 'operator,cpu,gpu\na,2,4\nb,5,5\nc,3,6\n' >anarchy.csv
$P equilibrium anarchy.csv
$P equilibrium --effort 1 ops.json | tail -2
echo "--- bad"
try $P equilibrium
try $P equilibrium nowhere
printf 'op,cpu\na,1\n' >o.csv; try $P equilibrium o.csv
printf 'operator\na\n' >o.csv; try $P equilibrium o.csv
printf 'operator,cpu\na,x\n' >o.csv; try $P equilibrium o.csv
printf 'operator,cpu\na,nan\n' >o.csv; try $P equilibrium o.csv
printf 'operator,cpu,gpu\na,-1,1\n' >o.csv; try $P equilibrium o.csv
printf 'operator,cpu,gpu\na,,\n' >o.csv; try $P equilibrium o.csv
printf 'operator,cpu,transfer:gpu\na,1,1\n' >o.csv; try $P equilibrium o.csv
echo '{"devices": ["a", "a"], "operators": [{"name": "x", "seconds": [1, 1]}]}' >o.json; try $P equilibrium o.json
echo '{"devices": ["a"], "operators": [{"name": "x", "seconds": [1, 1]}]}' >o.json; try $P equilibrium o.json
echo '{"devices": ["a"]}' >o.json; try $P equilibrium o.json
echo "--- together"
cat >t.csv <<'X'
operator,threads,seconds,bytes
a,1,8e-3,60e6
a,2,4.2e-3,60e6
a,3,3.0e-3,60e6
b,1,9e-3,10e6
b,2,5.5e-3,10e6
b,3,4.0e-3,10e6
b,4,3.9e-3,10e6
X
$P together t.csv
$P together --threads 2 --json t.csv
$P together --threads 1 t.csv | tail -1
cat >m.json <<'X'
{"cdmpp_machine": 1, "devices": [{"name": "cpu0", "kind": "cpu", "launch_s": 0, "sync_s": 0}],
 "contention": {"peak_bytes_per_s": 1e10, "beside": 1.1, "turn": 2}}
X
$P together --contention m.json t.csv
echo "--- refused"
sed 's/"beside": 1.1/"beside": 1.4/' m.json >h.json; $P together --contention h.json t.csv | tail -1
$P together --contention h.json t.csv --json | grep -o '"accepted":[a-z]*'
printf 'factor,value,median_s,error_no\nbase,base,8,0\nthreads,1,8e-3,0\nthreads,2,4.2e-3,0\n' >conv.csv
printf 'factor,value,median_s,error_no\nbase,base,8,0\nthreads,1,9e-3,0\nthreads,2,5.5e-3,0\n' >dense.csv; $P together conv.csv dense.csv
echo "--- bad"
try $P together
try $P together --threads 0 t.csv
try $P together --contention nowhere.json t.csv
sed 's/"contention".*/"links": []}/' m.json >n.json; try $P together --contention n.json t.csv
printf 'operator,threads,seconds\na,2,1\n' >u.csv; try $P together u.csv
try $P together --contention m.json u.csv
printf 'operator,threads,seconds\na,1.5,1\n' >u.csv; try $P together u.csv
printf 'operator,threads,seconds\na,1,0\n' >u.csv; try $P together u.csv
printf 'operator,threads,seconds\na,1,nan\n' >u.csv; try $P together u.csv
printf 'operator,seconds\na,1\n' >u.csv; try $P together u.csv
echo "--- pack"
printf 'operator,tasks,seconds,after\na,6,1e-5,\nb,6,1e-5,\nc,4,2e-5,a b\n' >p.csv
$P pack --units 4 p.csv
$P pack --units 4 --json p.csv
try $P pack p.csv
printf 'operator,tasks,seconds,after\na,1,1,a\n' >q.csv; try $P pack --units 1 q.csv
printf 'operator,tasks,seconds,after\na,1,1,z\n' >q.csv; try $P pack --units 1 q.csv
printf 'operator,tasks,seconds\na,1,1\na,1,1\n' >q.csv; try $P pack --units 1 q.csv
printf 'operator,tasks,seconds\na,0,1\n' >q.csv; try $P pack --units 1 q.csv
