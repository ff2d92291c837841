# a key twice: of another program's file the last one counts, and that is said; our own files are refused, with line and key; numbers as Python writes them
. "$T/lib.sh"
awk -f "$T/llm_rows.awk" >all.csv
printf 'data: {kind: llm_operators, files: [all.csv]}\noperators: {rounds: 20, eta: 0.2, max_depth: 3}\n' >llm.yaml
cdmpp-train llm.yaml --quiet --out llm.cdmpp --set device.file="$ROOT/configs/devices.yaml" >/dev/null 2>&1
R="cdmpp-replay --llm c.json --cost-model llm.cdmpp --devices $ROOT/configs/devices.yaml --gpu h100 --isl 64 --osl 2"
rest='"hidden_size":1024,"num_attention_heads":16,"num_key_value_heads":4,"head_dim":64,"intermediate_size":4096,"vocab_size":32000,"torch_dtype":"bfloat16","tie_word_embeddings":true'
params() { $R >/dev/null 2>err.txt; grep 'twice' err.txt; }
printf '{"model_type":"llama","num_hidden_layers":16,"num_hidden_layers":32,%s}' "$rest" >c.json; params
printf '{"model_type":"llama",\n"num_hidden_layers":32,"rope_scaling":{"factor":1,\n"factor":2},"time_step_limit":[0.0,Infinity],%s}' "$rest" >c.json; params
printf '{"model_type":"llama","num_hidden_layers":NaN,%s}' "$rest" >c.json; $R; echo "status $?"
# ours
printf '{"schema":"cdmpp.tasks","version":1,\n"tasks":[],\n"tasks":[]}' >t.json
cdmpp-profile draw --tasks t.json --trials 1; echo "status $?"
printf '{"schema":"cdmpp.netgraph","version":1,"networks":[{"name":"a",\n"nodes":[],"nodes":[]}]}' >g.json
cdmpp-replay --graph g.json --device zen4 -q; echo "status $?"
printf '{"schema":"cdmpp.netgraph","version":1,\n"networks":[],"version":1}' >g.json
cdmpp-replay --graph g.json --device zen4 -q; echo "status $?"
printf '{"schema":"cdmpp.machine","schema":"cdmpp.machine"}' >m.json
cdmpp-partition --machine m.json --network mlp --no-split; echo "status $?"
printf -- '- name: a\n  kind: cpu\n  cores: 2\n  cores: 4\n' >d.yaml
cdmpp-replay --list-devices --devices d.yaml >/dev/null; echo "status $?"
