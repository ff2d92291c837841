# operators measured on one GPU, for another: closed forms, a model, what is known of both; bad input
. "$T/lib.sh"
D="--devices $ROOT/configs/devices.yaml"
cat >t4.csv <<'C'
op,Device,latency_ms,launch_ms,Grid x,Grid y,Grid z,Block x,Block y,Block z,B,M,N,K,H
add,Tesla T4,0.5,0.02,8192,1,1,128,1,1,4096,,,,1024
add,Tesla T4,0.03,,13,1,1,128,1,1,13,,,,512
bmm,t4,8,,,,,,,,1,2048,2048,2048,
C
cat >v100.csv <<'C'
op,Device,latency_ms,B,M,N,K,H
add,v100-pcie,0.2,4096,,,,1024
fly,v100-pcie,0.2,4096,,,,1024
C
cdmpp-predict --operators --from t4 --to v100-pcie $D t4.csv v100.csv; echo "status $?"
cdmpp-predict --operators --from t4 --to v100-pcie $D --eval --json t4.csv v100.csv; echo "status $?"
# with a model: it knows both GPUs
awk 'BEGIN { print "OPName,Latency,Device,B,H"; for (b = 1; b <= 64; b++) for (h = 1; h <= 4; h++) {
    n = b * 64 * h * 256
    printf "add,%.6g,t4,%d,%d\n", 0.02 + n * 12 / 256e6, b * 64, h * 256
    printf "add,%.6g,v100-pcie,%d,%d\n", 0.02 + n * 12 / 720e6, b * 64, h * 256 } }' >ops.csv
printf 'data: {kind: operators, files: ops.csv}\noperators: {rounds: 20, check: none}\n' >c.yaml
cdmpp-train c.yaml --quiet -j1 --out m.cdmpp --set device.file="$ROOT/configs/devices.yaml" >/dev/null
cdmpp-predict --operators --from t4 --to v100-pcie $D --cost-model m.cdmpp --eval t4.csv v100.csv 2>/dev/null |
    sed 's/\("[a-z_]*_s"\|"[a-z_]*error"\):-*[0-9][0-9.e-]*/\1:S/g'
# what does not go
cdmpp-predict --operators --from t4 $D t4.csv; echo "status $?"
cdmpp-predict --operators --from t4 --to v101 $D t4.csv; echo "status $?"
cdmpp-predict --operators --from t4 --to epyc-7452 $D --strict t4.csv; echo "status $?"
cdmpp-predict --operators --from l4 --to t4 $D t4.csv; echo "status $?"
cdmpp-predict --from t4 --to l4 --eval --tasks "$K" "$HELD"; echo "status $?"
cdmpp-predict --operators --from rtx9999 --to t4 $D t4.csv; echo "status $?"
# times that the GPU cannot have taken, tensors that it cannot hold
printf 'op,Device,latency_ms,B,M,N,K,H\nbmm,t4,2.2,1,2048,2048,2048,\nbmm,t4,1,1,2048,2048,2048,\nadd,t4,100,1000000,,,,9000\nadd,v100,100,1000000,,,,9000\n' >fast.csv
cdmpp-predict --operators --from t4 --to v100-pcie $D fast.csv; echo "status $?"
cdmpp-predict --operators $D --model m.cdmpp fast.csv 2>/dev/null | sed 's/\("[a-z_]*_s"\|"[a-z_]*error"\):-*[0-9][0-9.e-]*/\1:S/g'
