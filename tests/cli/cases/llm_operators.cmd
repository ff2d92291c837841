# Operators of language models: a hand-made table trains a model, and answers with it; what is wrong with a table is told and counted.
. "$T/lib.sh"
awk -f "$T/llm_rows.awk" >all.csv
grep -v ',64,2048,2048,' all.csv >table.csv
cat >>table.csv <<CSV
gemm,h100,vllm-1,1,512,512,,,0
gemm,h100,vllm-1,1,512,512,,,-1e-6
gemm,h100,vllm-1,4,512,512,,,1e-5
gemm,h100,vllm-1,4,512,half,,,1e-5
gemm,h9000,vllm-1,4,512,512,,,1e-5
gemm,a100-sxm4-80gb,vllm-1,4,512,512,,,
CSV
cat >llm.yaml <<YAML
data: {kind: llm_operators, files: [table.csv]}
operators: {rounds: 60, eta: 0.2, max_depth: 5}
YAML
cdmpp-train llm.yaml --quiet --out llm.cdmpp --set device.file="$ROOT/configs/devices.yaml" 2>&1 | sed 's/, [0-9]* bytes/, N bytes/'
cat >ask.csv <<CSV
op,device,stack,dtype,m,n,k,num_gpus,message_bytes,latency_s
gemm,l40s,vllm-1,,16,512,512,,,
gemm,l40s,vllm-1,,64,2048,2048,,,
gemm,h200,vllm-1,,64,2048,2048,,,
gemm,l40s,sglang-3,fp8,64,2048,2048,,,
gemm,a100-sxm4-80gb,vllm-1,fp8,64,2048,2048,,,
all_reduce,l40s,vllm-1,,,,,1,1000,
all_reduce,l40s,vllm-1,,,,,8,6000,
gemm,l40s,vllm-1,fp7,64,2048,2048,,,
gem,l40s,vllm-1,,64,2048,2048,,,
CSV
ask() { cdmpp-predict --operators --cost-model llm.cdmpp --devices "$ROOT/configs/devices.yaml" --measured all.csv "$@"; }
ask ask.csv >out.jsonl
echo "exit $?"
# shares and names are kept; times follow from trees
sed 's/"\(latency_s\|low_s\|high_s\|estimate_s\|bound_s\)":[0-9][0-9.e+-]*/"\1":T/g' out.jsonl
# the answer is the measured time; between neighbours it is near the line
awk -F '"latency_s":' 'NR == 1 { split($2, v, ","); print v[1] }' out.jsonl
grep ',64,2048,2048,' all.csv | { head -n 1 all.csv; cat; } >held.csv
cdmpp-predict --operators --cost-model llm.cdmpp --devices "$ROOT/configs/devices.yaml" --measured table.csv --eval held.csv 2>eval.txt >held.jsonl
echo "exit $?"
awk -F '|' '/product/ { print $3, $4, $5, ($6 < 10 ? "small error" : "error " $6) }' eval.txt
# rows of a GPU that was not trained on correct its other answers, and their number is told
printf 'op,device,stack,m,n,k,latency_s\ngemm,h200,vllm-1,64,2048,2048,1e-5\ngemm,h200,vllm-1,64,4096,4096,2e-5\ngemm,h200,vllm-1,128,1024,2048,1e-5\n' >few.csv
printf 'op,device,stack,m,n,k\ngemm,h200,vllm-1,96,512,512\ngemm,h100,vllm-1,96,512,512\n' >new.csv
cdmpp-predict --operators --cost-model llm.cdmpp --devices "$ROOT/configs/devices.yaml" --measured few.csv new.csv | grep -o '"device":"[^"]*"\|"measured_rows":[0-9]*'
cdmpp-predict --operators --cost-model llm.cdmpp --info --json | grep -c '"kind":"llm-operators"'
cdmpp-predict --operators --cost-model llm.cdmpp --from h100 --to l40s ask.csv
cdmpp-predict --operators --cost-model llm.cdmpp --strict --devices "$ROOT/configs/devices.yaml" ask.csv >/dev/null
# rows that are asked and given are told
ask --eval held.csv 2>&1 >/dev/null | grep -v '^cdmpp-predict: .*|'
ask --eval --json held.csv 2>/dev/null | grep -o '"in_measured":[0-9]*'
# a misspelt column, of questions and of measured rows
printf 'op\tdevice\tdtpye\tm\tn\tk\ngemm\th100\tfp8\t8\t512\t512\n' >odd.tsv
ask odd.tsv | grep -o '"new":[^,]*'
cdmpp-predict --operators --cost-model llm.cdmpp --devices "$ROOT/configs/devices.yaml" --device h100 --measured odd.tsv ask.csv >/dev/null
# of many bad lines some are told, and how many others there are
{ head -n 1 all.csv; for i in 1 2 3 4 5 6 7 8 9 10 11; do echo "gemm,h100,vllm-1,$i,512,half,,,1e-5"; done; sed -n 's/h100/h9000/p' all.csv; } >bad.csv
echo '{"op":"gemm","device":"h100","m":8,"n":512,"k":512}' | cdmpp-predict --stream --operators --cost-model llm.cdmpp --devices "$ROOT/configs/devices.yaml" --measured bad.csv | grep -c predicted
S=$ROOT/examples/serving
llm() { cdmpp-replay --llm "$S/config.json" --devices "$ROOT/configs/devices.yaml" --gpu h100 --isl 64 --osl 4 "$@"; }
llm --cost-model llm.cdmpp --measured bad.csv >/dev/null
echo "exit $?"
# a model that is cut short is damaged, whoever reads it; another file is no model, another model of another kind
head -c 9000 llm.cdmpp >cut.cdmpp
for m in cut.cdmpp all.csv "$ROOT/tests/golden/model_v1.cdmpp"; do
    llm --cost-model "$m" 2>&1 | sed "s,$ROOT/,,; s/expected [0-9]* + [0-9]* + [0-9]*/expected A + B + C/"
    cdmpp-predict --operators --cost-model "$m" ask.csv 2>&1 | sed "s,$ROOT/,,; s/expected [0-9]* + [0-9]* + [0-9]*/expected A + B + C/"
done
# the header, without --operators too
cdmpp-predict --operators --cost-model llm.cdmpp --info --json >a.txt; cdmpp-predict --cost-model llm.cdmpp --info --json | cmp - a.txt && echo same; cdmpp-predict --cost-model llm.cdmpp --info --json --json | cmp - a.txt && echo same
grep -o '"devices":\[{[^{}]*{[^{}]*},"numbers":{"clock_mhz":[0-9]*' a.txt; grep -o '"stacks":[^]]*]' a.txt
cdmpp-predict --cost-model cut.cdmpp --info --json 2>&1 | grep -o 'cut short.*'
# of several times of a row the median counts; a file that is given twice is read once
printf 'op,device,stack,m,n,k,latency_s\n' >again.csv
for s in 1e-5 1.1e-5 1e-4 1.2e-5 1.05e-5; do echo "gemm,l40s,vllm-1,7,512,512,$s" >>again.csv; done
for s in 2e-5 8e-5; do echo "gemm,l40s,vllm-1,9,512,512,$s"; done >>again.csv
sed 's/,[^,]*$//' again.csv | sort -u -r >which.csv
cdmpp-predict --operators --cost-model llm.cdmpp --devices "$ROOT/configs/devices.yaml" --measured again.csv --measured ./again.csv which.csv | grep -o '"latency_s":.*"level":[^,]*'
