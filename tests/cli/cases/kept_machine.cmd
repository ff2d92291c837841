# laws, links, games, queries: every figure of the tables, pages and files of cdmpp-partition's commands, from inputs whose values all differ
. "$T/lib.sh"
exec 2>&1
P=cdmpp-partition
told() { "$@" 2>&1 | rounded; }
awk 'BEGIN { print "size,seconds,curve"; for (n = 1; n <= 100; n++) { e = 1 + ((n * 7919) % 13 - 6) / 600
    printf "%d,%.9g,flat\n%d,%.9g,hinge\n", n, 3e-6 * e, n, (2e-6 + (n > 40 ? 5e-8 * (n - 40) : 0)) * e
    printf "%d,%.9g,slopes\n", n, (2e-6 + 1e-8 * n + (n > 30 ? 7e-8 * (n - 30) : 0)) * e
    printf "%d,%.9g,line\n%d,%.9g,stairs\n", n, (1e-6 + 2e-7 * n) * e, n, (1e-6 + 4e-6 * int((n + 15) / 16)) * e
    if (n % 10 == 3) printf "%d,%.9g,few\n", n, 1e-6 * n * n * n } }' >c.csv
told $P curve c.csv --at 20,77,200 --svg c.svg
told $P curve c.csv --at 20,200 --json --level 0.5
told $P curve c.csv --tolerance 0.5 --limit 3
rounded c.svg | cksum
awk 'BEGIN { print "threads,batch,junk,seconds"; for (t = 1; t <= 16; t++) for (b = 8; b <= 64; b += 8)
    printf "%d,%d,%d,%.9g\n", t, b, (t * 31 + b * 17) % 11, 1e-3 * int((12 + t - 1) / t) * (1 + (b > 32 ? (b - 32) / 64 : 0)) }' >s.csv
told $P correlate --target seconds s.csv
told $P correlate --target seconds --axes batch,threads,junk --strong 0.5 --json s.csv
echo "--- links"
told $P link show "$ROOT/configs/offload/machine.json" --svg m.svg; rounded m.svg | cksum
told $P link show --json "$ROOT/configs/offload/machine.json"
told $P link show "$ROOT/configs/machine-gpu.json"
printf '%s\n' bytes,seconds 602112,1.9e-5 1204224,8.2e-5 2408448,2.18e-4 4816896,4.47e-4 9633792,1.386e-3 19267584,3.757e-3 38535168,7.672e-3 77070336,1.57e-2 154140672,3.1655e-2 >eop.csv
told $P link fit eop.csv --from cpu0 --to ocl0 --how write --out l.json; rounded l.json
told $P link fit eop.csv --json
echo "--- games"
printf 'operator,cpu,gpu,npu,transfer:gpu,transfer:npu\nconv1,4e-3,1e-3,7e-4,2e-4,3e-4\ndense,3e-3,2e-3,2.5e-3,1e-4,2e-4\nnms,5e-4,,,,\nsoftmax,1e-3,8e-4,9e-4,3e-4,1.5e-4\nlrn,2e-3,6e-4,,1e-4,\n' >o.csv
told $P equilibrium o.csv
told $P equilibrium --json o.csv
printf 'operator,cpu,gpu\na,2,4\nb,5,5\nc,3,6\nd,7,1\n' | told $P equilibrium -
printf 'operator,threads,seconds,bytes\na,1,8e-3,60e6\na,2,4.2e-3,60e6\na,3,3.0e-3,60e6\nb,1,9e-3,10e6\nb,2,5.5e-3,10e6\nb,3,4.0e-3,10e6\nb,4,3.9e-3,10e6\nc,1,2.3e-3,35e6\nc,2,1.7e-3,35e6\n' >t.csv
printf '{"cdmpp_machine": 1, "devices": [{"name": "cpu0", "kind": "cpu", "launch_s": 0, "sync_s": 0}], "contention": {"peak_bytes_per_s": 1e10, "beside": 1.1, "turn": 2}}' >m.json
for n in 2 3 4 6; do told $P together --threads $n t.csv; told $P together --threads $n --contention m.json t.csv; done
told $P together --threads 5 --contention m.json --json t.csv
printf 'operator,tasks,seconds,after\na,7,1.1e-5,\nb,6,1.3e-5,\nc,4,2.3e-5,a b\nd,9,0.7e-5,a\ne,3,1.9e-5,d\nf,11,0.5e-5,c e\n' >p.csv
for n in 1 3 4 8; do told $P pack --units $n p.csv; done
told $P pack --units 5 --json p.csv
echo "--- queries"
printf 'query,seconds,low_s,high_s,deadline_s,bytes,weight\nresnet,0.010,0.009,0.0115,0.05,1e8,2\nbert,0.020,0.018,0.024,0.12,2e7,1\ngpt,0.031,0.024,0.037,0.2,5e7,3\n' >q.csv
for o in '--places 2' '--places 1 --load 0.5 --seed 3' '--places 3 --draw run --risk 0.01' '--places 2 --contention m.json --load 1.3'; do
    # shellcheck disable=SC2086
    told $P qos --runs 40 --queries 150 $o q.csv
done
told $P qos --runs 20 --queries 100 --places 2 --json q.csv
