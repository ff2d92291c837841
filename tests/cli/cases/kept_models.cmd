# what models that are kept answer: headers, predictions, figures, explanations, requests, networks on devices. Figures to three digits
. "$T/lib.sh"
unset CDMPP_MODELS
export XDG_CACHE_HOME=$PWD/cache
G=$ROOT/tests/golden
told() { name=$1; shift; "$@" >told.txt 2>told.err; echo "status $?" >>told.txt; cat told.err >>told.txt; sed -e "s|$ROOT/||g" -e 's|"/[^" ]*/configs/devices|"configs/devices|g' told.txt | rounded >told.2; kept "$name" cat told.2; }
for v in 1 2 3; do
    P="cdmpp-predict -q --model $G/model_v$v.cdmpp"
    told "$v: header" $P --info --json
    told "$v: eval" $P --tasks "$K" --device zen5-avx512 --eval "$HELD"
    told "$v: eval, JSON" $P --tasks "$K" --device zen5-avx512 --eval --json "$HELD"
    told "$v: nearest" $P --tasks "$K" --device epyc-7452 --nearest "$HELD"
    for l in 1 41 86; do
        [ $v != 2 ] || continue # the networks' parts of a time are differences, exact to the last digits only
        told "$v: explain $l" $P --tasks "$K" --explain "$HELD:$l"
        told "$v: explain $l, JSON" $P --json --tasks "$K" --explain "$HELD:$l"
    done
    { head -n 30 "$HELD"; echo '{"cmd":"stats"}'; } >requests
    # shellcheck disable=SC2016
    told "$v: stream" sh -c '$0 "$@" <requests' $P --tasks "$K" --device zen5-avx512 --stream --json --batch 8
    for form in onnx safetensors xgboost; do $P --export $form --out e.$form >/dev/null 2>&1; echo "$form: $?"; done
    told "$v: networks" cdmpp-replay --network squeezenet-1.1 --network bert-tiny --input-size 32 --cost-model "$G/model_v$v.cdmpp" --device zen5-avx2,zen5-avx512 --batch 1,4 --trials 6 --cache ''
    told "$v: operators" cdmpp-replay --network mobilenet-v3-small --input-size 32 --cost-model "$G/model_v$v.cdmpp" --device zen5-avx2 --ops --json --trials 3 --cache '' --html p.html --trace t.json
    rounded p.html >p.2; rounded t.json >t.2; kept_files p.2 t.2
done
told range cdmpp-replay --network squeezenet-1.1 --input-size 32 --cost-model "$G/model_v3.cdmpp" --device zen5-avx512 --batch 1..64 --trials 2 --cache '' --json
told training cdmpp-replay --network gcn --training --cost-model "$G/model_v3.cdmpp" --device zen5-avx512 --trials 2 --cache '' --ops
for p in data:4 pipeline:2x4 pipeline-1f1b:2x3; do told "training $p" cdmpp-replay --network bert-tiny --input-size 16 --training --cost-model "$G/model_v1.cdmpp" --device zen5-avx512 --trials 1 --cache '' --parallel $p --link-gbs 50 --link-us 3 --json; done
echo "--- library operators"
D="$ROOT/configs/devices.yaml"
printf 'op,device,B,H\nadd,t4,100,1000\nadd,h100,100,1000\nrelu,a100,4096,1024\nadd,epyc-7452,100,1000\nfft,t4,1,1\nadd,l4,7,33\n' >q.csv
told operators cdmpp-predict -q --operators --model "$G/operators_v1.cdmpp" --devices "$D" q.csv
told header cdmpp-predict --operators --model "$G/operators_v1.cdmpp" --info --json
cat >t4.csv <<'C'
op,Device,latency_ms,launch_ms,Grid x,Grid y,Grid z,Block x,Block y,Block z,B,M,N,K,H
add,Tesla T4,0.5,0.02,8192,1,1,128,1,1,4096,,,,1024
add,Tesla T4,0.03,,13,1,1,128,1,1,13,,,,512
bmm,t4,8,,,,,,,,1,2048,2048,2048,
C
for to in v100-pcie a100 l4 k80 h100; do told "to $to" cdmpp-predict --operators --from t4 --to $to --devices "$D" t4.csv; done
