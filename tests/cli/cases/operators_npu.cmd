# configs/hl-100.yaml on a made-up table: the numbers that nobody publishes have to be given first; then the device is as any other
mkdir -p data/hl-100
awk 'BEGIN { print "op,Device,latency_ms,B,M,N,K"
    for (m = 16; m <= 1024; m *= 2) for (n = 16; n <= 1024; n *= 2) for (k = 64; k <= 512; k *= 2) printf "bmm,hl-100,%g,4,%d,%d,%d\n", 0.05 + m * n * k / 1e8, m, n, k }' >data/hl-100/bmm.csv
train() { cdmpp-train "$ROOT/configs/hl-100.yaml" --set operators.rounds=50 --quiet --out m.cdmpp "$@" >out; echo "status $?"; }
train
sed -n '/^- name: hl-100/,/^$/p' "$ROOT/configs/devices.yaml" | sed 's/fp32_gflops: null/fp32_gflops: 2000/; s/l1_kb: null/l1_kb: 80/' >data/hl-100.devices.yaml
train --set device.file=data/hl-100.devices.yaml
printf 'op,Device,B,M,N,K\nbmm,hl-100,4,256,256,256\n' | cdmpp-predict --operators --cost-model m.cdmpp --devices data/hl-100.devices.yaml - 2>err | grep -o '"device":"hl-100","seen":true'
cat err
