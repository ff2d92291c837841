# what networks cost over their operators: fitted from measured ones, kept in a file, used by later runs
. "$T/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
exec 2>&1
# networks of four to nine tasks of the records each, in a chain
awk 'match($0, /\[\["(\\.|[^"\\])*"/) { key[n++] = substr($0, RSTART + 2, RLENGTH - 2) }
END { printf "{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": [";
    for (k = 0; k < 6; k++) {
        printf "%s\n{\"name\": \"n%d\", \"device\": \"zen4\", \"measured_s\": @%d@, \"nodes\": [", k ? "," : "", k, k
        for (i = 0; i < 4 + k; i++) printf "%s{\"name\": \"a%d\", \"kind\": \"task\", \"key\": %s}", i ? ", " : "", i, key[(7 * k + i) % n]
        printf "]}" }
    print "]}" }' "$HELD" >g.json
sed 's/zen5-avx512/zen4/' "$HELD" >r.json
replay() { cdmpp-replay --tasks "$K" --records r.json --from-records --device zen4 "$@"; }
sed 's/@[0-9]*@/1/' g.json >alone.json
CDMPP_NETWORK_COSTS= replay --graph alone.json -q --csv | tr -d '\r' | cut -d, -f4 | sed 1d >alone.txt
awk 'NR == FNR { s[n++] = $1; next } { for (k = 0; k < n; k++) gsub("@" k "@", 1.25 * s[k]) } 1' alone.txt g.json >m.json
echo "--- without a fit: said once, and the interval is wider"
replay --graph m.json --csv | tr -d '\r' | awk -F, 'NR > 1 { printf "%s %.3f %s\n", $1, $13 / $4, $6 == "" ? "-" : sprintf("%.2f", $6 / $4) }'
echo "--- the fit"
replay --graph m.json --fit-network-cost fit.yaml | sed -n '/against/p'; sed -E 's/([0-9]\.[0-9]{3})[0-9]+/\1/' fit.yaml
echo "--- used: 1.25 times the operators; measured times have no interval"
CDMPP_NETWORK_COSTS=fit.yaml replay --graph m.json --measured --csv | tr -d '\r' | awk -F, 'NR > 1 { printf "%s %.3f %s\n", $1, $13 / $4, $6 == "" ? "-" : sprintf("%.2f", $6 / $4) }'
echo "--- a law of weights, and a graph that does not say which bytes they are"
printf -- '- devices: [zen4]\n  refill_bytes_per_s: 1e10\n  networks: 8\n  spread: 0.05\n' >refill.yaml
weights() { CDMPP_NETWORK_COSTS=refill.yaml replay --graph "$@" 2>&1 >/dev/null | grep -c weight_bytes; }
weights m.json; sed 's/"kind": "task"/"weight_bytes": 0, &/' m.json >said.json; weights said.json
echo "--- again: its entry is replaced"
replay --graph m.json --fit-network-cost fit.yaml -q >/dev/null; grep -c devices fit.yaml
echo "--- refused"
replay --graph alone.json --fit-network-cost alone.json; echo "exit $?"
cdmpp-replay --graph m.json --replay-given --fit-network-cost f.yaml; echo "exit $?"
{ sed -n 1,4p m.json | sed '4s/},$/}/'; echo ']}'; } >few.json; replay --graph few.json --fit-network-cost f.yaml; echo "exit $?"
sed 's/"zen4"/"k80"/' m.json >other.json; replay --graph other.json --fit-network-cost f.yaml -q; echo "exit $?"
printf -- '- devices: [zen4]\n  lift: many\n' >bad.yaml; CDMPP_NETWORK_COSTS=bad.yaml replay --graph m.json; echo "exit $?"
CDMPP_NETWORK_COSTS=nowhere.yaml replay --graph m.json; echo "exit $?"
ls f.yaml
