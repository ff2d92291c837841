# a target that names cores changes no answer, as its warning says: vectors that it does not name are those of the device
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
xz -dc "$LOGS/zen5-avx512/records.json.xz" | head -n 150 | sed 's/ -model=[^ "]*/ -model=fast/' >some.json
printf -- '- {name: fast, kind: cpu, clock_mhz: 4100, cores: 8, cores_used: 1, lanes: 32, simd_bits: 512, bandwidth_gb_s: 60, l1_kb: 48, l2_kb: 1024, l3_kb: 32768, warp: 1}\n' >d.yaml
cdmpp-extract -q --tasks "$K" --out a.h5 some.json || exit
cdmpp-train "$ROOT/configs/own.yaml" -q --set data.files=a.h5 --set device.file=d.yaml --set filter.facts=true --set train.rounds=12 --out m.cdmpp >/dev/null || exit
cdmpp-predict --cost-model m.cdmpp --info --json | grep -o '"facts":"prior"' | sort -u
time_of() { cdmpp-replay --network squeezenet-1.1 --input-size 64 --cost-model m.cdmpp --devices d.yaml --device fast --trials 2 --json "$@" 2>err | grep -o '"latency_s":[0-9.e-]*' | head -n 1; }
usual=$(time_of); grep -c '"latency_s"' <<X
$usual
X
for t in '' ' -num-cores=1' ' -num-cores=7' ' -num-cores=7 -mcpu=skylake-avx512' ' -mcpu=core-avx2'; do
    [ "$(time_of --target "llvm -model=fast$t")" = "$usual" ] && echo "$t: the same" || echo "$t: another"
    grep num-cores err || :
done
