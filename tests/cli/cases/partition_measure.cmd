# This machine, in form: numbers are nobody's business here. One processor, since drivers of other devices leak under sanitizers.
cpu=cpu$(sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/self/status)
cdmpp-partition link measure --devices $cpu --as here --max-mb 1 --repeats 1 --out m.json >text; echo "status $?"
sed 's/cpu[0-9][0-9]*/cpuN/g' text | awk 'NR < 3 || /^link/ { print $1, $2, $3, $4 }'
sed 's/cpu[0-9]*/cpuN/g; s/[0-9.]*e-[0-9]*/T/g; s/"core": [0-9]*/"core": C/; s/"wake_s": [^}]*/"wake_s": W/' m.json | sed -n '1,4p' | sed 's/"n": .*//'
cdmpp-partition link show m.json >again; cmp text again && echo "shown alike"
cdmpp-partition link show --json m.json | grep -o '"launch_s":[0-9]' | wc -l
cat >corun.csv <<'X'
first,second,sharing,threads,first_solo_s,second_solo_s,first_corun_s,second_corun_s,first_slowdown,second_slowdown,spread,first_flop,second_flop,first_bytes,second_bytes,error_no
"a","b",disjoint,1,0.001,0.001,0.00102,0.00102,1.02,1.02,0,1,1,100,100,0
"a","b",shared,1,0.001,0.001,0.002,0.002,2,2,0,1,1,100,100,0
X
cdmpp-partition link measure --devices $cpu --corun corun.csv --max-mb 1 --repeats 1 | tail -1
