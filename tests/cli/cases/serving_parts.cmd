# scripts/results/serving.py divides measured runs of served models into parts, and says what is not recorded of them. The rows are made up.
. "$T/lib.sh"
H=id,backend,backend_version,model_path,mode,isl,osl,gemm_quant_mode,concurrency,batch_size,tp_size,pp_size,attention_dp_size,moe_ep_size
H=$H,prefill_batch_size,prefill_num_workers,prefill_tp_size,prefill_pp_size,prefill_attention_dp_size,prefill_moe_ep_size
H=$H,decode_batch_size,decode_num_workers,decode_tp_size,decode_pp_size,decode_attention_dp_size,decode_moe_ep_size,complete,ttft_s,tpot_s
{
    echo "$H"
    echo "gpt64,vllm,0.18.0,openai/gpt-oss-120b,agg,1024,1024,nvfp4,64,64,4,1,1,1,,,,,,,,,,,,,1,1,1"
    echo "gpt512,vllm,0.11.2,openai/gpt-oss-120b,agg,8192,1024,nvfp4,512,512,8,1,1,1,,,,,,,,,,,,,1,1,1"
    echo "adp,trtllm,1.3.0rc1,openai/gpt-oss-120b,agg,4000,1000,fp8,192,48,4,1,,2,,,,,,,,,,,,,1,1,1"
    echo "qwen,vllm,0.12.0,Qwen/Qwen3-32B,agg,1024,128,,8,8,2,1,1,1,,,,,,,,,,,,,1,1,1"
    echo "nobody,vllm,0.12.0,Qwen/Qwen3-32B,agg,4000,1000,fp8,,24,1,1,,0,,,,,,,,,,,,,1,1,1"
    echo "dsr1,trtllm,0.8.1.post3,deepseek-ai/DeepSeek-V3,disagg,8192,1024,fp8,9,,,,,,1,1,1,1,16,16,3,3,16,1,1,16,1,1,1"
    echo "short,trtllm,0.8.1.post3,deepseek-ai/DeepSeek-R1,disagg,8192,1024,fp8,77,,,,,,,,16,1,1,16,,,16,1,1,16,0,1,1"
} >e2e.csv
python3 -B "$ROOT/scripts/results/serving.py" runs e2e.csv w
for p in gpt-oss-vllm limitless-4 limitless-64 gpt-oss-trtllm loadless-vllm deepseek-trtllm; do
    python3 - "w/$p.csv" <<'P'
import csv, sys
for r in csv.DictReader(open(sys.argv[1])):
    print(r["id"], {k: v[:6] for k, v in r.items() if v and k in ("stack", "tp", "dp", "ep", "isl", "osl", "spread", "concurrency", "requests", "max_sequences", "max_tokens", "graph_tokens", "kv_dtype", "decode_max_sequences")})
P
done
answer() { echo "{\"ttft_s\": $1, \"tpot_s\": $2, \"measured_ttft_s\": 2, \"measured_tpot_s\": 2, \"ttft_low_s\": 1, \"ttft_high_s\": 3, \"tpot_low_s\": 1, \"tpot_high_s\": 1.5}"; }
echo "{\"result\": {\"answers\": [$(answer 1 3), $(answer 2 2)]}}" >low.json
echo "{\"result\": {\"answers\": [$(answer 3 4), $(answer 2 2)]}}" >high.json
python3 -B "$ROOT/scripts/results/serving.py" sum some low.json high.json +9
python3 -B "$ROOT/scripts/results/serving.py" between some low.json high.json
