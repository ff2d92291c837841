# spaces, templates and tuners on recorded times: what there is to choose from, and which candidates a seed leads to
. "$T/lib.sh"
exec 2>&1
for n in conv2d matmul depthwise-conv2d softmax layer-norm; do
    cdmpp-profile --list-tasks --network $n --target "$CPU" --out-tasks $n.json >/dev/null
    cdmpp-profile --list-tasks --network $n --target cuda --out-tasks $n.gpu.json >/dev/null
    kept "$n space" cdmpp-tune --space-dump --tasks $n.json --target "$CPU" --threads 3
    kept "$n space of a GPU" cdmpp-tune --space-dump --tasks $n.gpu.json --target cuda --threads 3
    kept "$n templates" cdmpp-tune --templates --tasks $n.json --target "$CPU" --threads 1 --machine zen5-avx512 --trials-per-task 6 --out $n.made
    kept_files $n.made
    kept "$n to tune" cdmpp-tune --dry-run --tasks $n.json --target "$CPU" --threads 5 --json
done
kept tuners cdmpp-tune --list-tuners --json
echo "--- on records"
xz -dc "$LOGS/zen5-avx512/records.json.xz" | head -n 120 >log.json
tune() { cdmpp-tune --replay --tasks "$K" "$@" -q | sed 's/"search_s":[-+0-9.e]*/"search_s":T/g; s/[0-9.]* *$/T/'; }
tune --compare random,gridsearch,ga --at 1,5,10 --seeds 2 --trials 12 --per-round 4 --min 8 --json log.json
tune --compare random,gridsearch,ga --at 1,5,10 --seeds 2 --seed 9 --trials 12 --per-round 3 --min 8 --curves c.csv --opbench eop log.json
cut -d , -f 1-9 c.csv | cksum
find eop -type f | sort | while read -r f; do cut -d , -f 1-6 "$f" | cksum; done | sort | cksum
