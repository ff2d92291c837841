# Machines and links: shown, fitted. The pairs are the eleven copies of EOP's test_copy_op.py (eop-opbench.md 1.7): fitted within 10 %.
P="cdmpp-partition link"
cat >m.json <<'X'
{"cdmpp_machine": 1,
 "devices": [
  {"name": "cpu0", "kind": "cpu", "core": 0, "target": "llvm -mcpu=core-avx2", "as": "xeon", "launch_s": 2e-7, "sync_s": 1e-6},
  {"name": "ocl0", "kind": "native", "opencl": "pocl:0/2.1", "core": 1, "times": 30, "memory": 1, "launch_s": 4e-6, "sync_s": 2e-6},
  {"name": "t4", "kind": "model", "as": "t4", "scale": 1.5, "memory": 2, "launch_s": 5e-6, "sync_s": 1e-5}],
 "links": [
  {"from": "cpu0", "to": "cpu0", "how": "copy", "n": 30, "noise": 0.04, "pieces": [[0, 1e-8, 2e-11]]},
  {"from": "cpu0", "to": "ocl0", "how": "write", "n": 30, "noise": 0.04, "pieces": [[0, 4e-6, 2e-11], [1048576, 2.497152e-5, 1e-10]]},
  {"from": "ocl0", "to": "cpu0", "how": "read", "n": 30, "noise": 0.04, "pieces": [[0, 5e-6, 1e-10]]}],
 "contention": {"peak_bytes_per_s": 1.2e10, "beside": 1.02, "turn": 2.01, "pairs": 21, "error": 0.05}}
X
cat >eop.csv <<'X'
# bytes of float32 (B, 3, 224, 224), B 1 .. 1024
bytes,seconds
602112,1.9e-5
1204224,8.2e-5
2408448,2.18e-4
4816896,4.47e-4
9633792,1.386e-3
19267584,3.757e-3
38535168,7.672e-3
77070336,1.57e-2
154140672,3.1655e-2
308281344,6.2228e-2
616562688,1.26593e-1
X
$P show m.json --svg m.svg
grep -o '<path class="m c[0-9]"' m.svg | sort | uniq -c
grep -c '</svg>' m.svg
$P show --json m.json | grep -o '"schema":"[^"]*"\|"name":"[^"]*"\|"pieces":\[{[^]]*\]'
echo "--- fit"
$P fit eop.csv --from cpu0 --to ocl0 --how write --out l.json
$P show l.json | head -2
$P fit eop.csv --json | grep -o '"worst_error":0.0[0-9]'
echo "--- from standard input"
$P fit - <eop.csv | tail -1
