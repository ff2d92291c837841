# optrace.awk -- operators of a traced network (torch.fx, as NeuSight labels them), forward pass.
#
#   awk -v device=t4 -v graph=NAME -v layers=24 -f scripts/optrace.awk TRACE.csv >>OPERATORS.csv
#
# In: columns op target input_shapes output_shape fw_latency (ms) dtype Name. Out: a table for cdmpp-predict
# --operators with further columns Weight, Graph, Class: a trace holds one of `layers` equal layers, whose
# operators count that often. What is no operator of op_kinds.def (views, embeddings, dropout) is left out.
BEGIN { OFS = "," }

# Fields of a CSV line into f[1..]; returns how many.
function split_csv(s, f,    n, c, i, quoted, v) {
    n = 0; v = ""; quoted = 0
    for (i = 1; i <= length(s); i++) {
        c = substr(s, i, 1)
        if (quoted) {
            if (c != "\"") v = v c
            else if (substr(s, i + 1, 1) == "\"") { v = v c; i++ }
            else quoted = 0
        } else if (c == "\"") quoted = 1
        else if (c == ",") { f[++n] = v; v = "" }
        else v = v c
    }
    f[++n] = v
    return n
}

# "(8, 512, 1024)" or "8, 512" into d[1..]; returns how many.
function shape(s, d,    n) { gsub(/[][() ]/, "", s); sub(/,$/, "", s); if (s == "") return 0; n = split(s, d, ","); return n }
function product(d, from, to,    p, i) { p = 1; for (i = from; i <= to; i++) p *= d[i]; return p }

function put(op, class, dims,    in_layer) {
    print op, f[col["fw_latency"]], device, dims, (inside ? layers : 1), graph, class
}
function rows(op, class) { put(op, class, product(o, 1, no - 1) ",,,," o[no]) }
function linear(x, nx) { put("linear", "linear", "1," product(x, 1, nx - 1) "," x[nx] "," o[no] ",") }

function elementwise(t,    two) {
    if (t == "truediv") t = "div"
    if (t == "sub") t = "add"
    two = n_in >= 2 && product(a, 1, na) == product(b, 1, nb)
    rows(t ~ /^(add|mul|pow|div)$/ && !two ? t "u" : t, "elementwise")
}

function node(    t) {
    t = tolower(f[col["target"]])
    if (t ~ /addmm/) { linear(b, nb); return }
    if (f[col["op"]] == "call_module") {
        if (t ~ /layer_?norm|\.ln_/) rows("ln", "layernorm")
        else if (t ~ /drop|embed|wte|wpe/) return
        else if (t ~ /act|relu|gelu|tanh/) rows(t ~ /gelu|interm/ ? "gelu" : t ~ /pooler|tanh/ ? "tanh" : "relu", "elementwise")
        else if (n_in == 1) linear(a, na)
        return
    }
    if (t ~ /matmul|bmm/) {
        if (na < 3 || nb < 3) linear(a, na)
        else put("bmm", "bmm", product(o, 1, no - 2) "," o[no - 1] "," a[na] "," o[no] ",")
    } else if (t ~ /softmax/) rows("softmax", "softmax")
    else if (match(t, /(add|mul|pow|truediv|div|sub|relu|gelu|tanh)($|[^a-z0-9_])/) && product(o, 1, no) > 1)
        elementwise(substr(t, RSTART, RLENGTH - (substr(t, RSTART + RLENGTH - 1, 1) ~ /[^a-z]/)))
}

FNR == 1 { n = split_csv($0, f); for (i = 1; i <= n; i++) col[f[i]] = i; next }
{
    split_csv($0, f)
    name = f[col["Name"]]
    if (name ~ /encoder_layer_0_attention_self_query$|^transformer_h_0_ln_1$|decoder_layers_0_self_attn_layer_norm$/) inside = layers > 0
    n_in = split(f[col["input_shapes"]], list, "],")
    na = shape(list[1], a); nb = n_in > 1 ? shape(list[2], b) : 0
    no = shape(f[col["output_shape"]], o)
    if (f[col["dtype"]] == "torch.float32" && no) node()
    if (name ~ /encoder_layer_0_output_layer_norm$/ || (inside && name == (graph ~ /^gpt/ ? "add_15" : "view_11"))) inside = 0
}
