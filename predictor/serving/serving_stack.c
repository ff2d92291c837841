/* configs/serving.yaml: what is known of a serving library beside its operators. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/io/io.h"
#include "predictor/serving/serving.h"

enum { MOST = 256 };
#define AT(member) offsetof(cd_serving_stack, member)
static const cd_conf_key key[] = {
    {"stack", CD_CONF_TEXT, AT(name), "\"\"", "", "name of the library, without its version"},
    {"tables", CD_CONF_TEXT, AT(tables), "\"\"", "",
     "library whose tables stand for it; empty: its own"},
    {"since", CD_CONF_TEXT, AT(since), "\"\"", "",
     "the first version that the entry is of; empty: any"},
    {"overlap", CD_CONF_BOOL, AT(overlap), "false", "",
     "the host prepares a step while the GPU computes: the longer of both counts"},
    {"prompts", CD_CONF_ENUM, AT(prompts), "chunked", CD_SERVING_PROMPTS,
     "what a step takes of prompts: whole ones, also a part, or steps of their own"},
    {"cache", CD_CONF_ENUM, AT(cache), "grown", CD_SERVING_CACHES,
     "cache of a sequence: reserved to its end, or grown"},
    {"mxfp4_inputs_fp8", CD_CONF_BOOL, AT(mxfp4_inputs_fp8), "false", "",
     "experts in MXFP4 take inputs in fp8 on GPUs with units for fp4"},
    {"fp8_attention", CD_CONF_BOOL, AT(fp8_attention), "false", "",
     "with fp8 products attention and its cache are in fp8, too"},
    {"tokens", CD_CONF_INT, AT(tokens), "8192", "1..1e9", "tokens of a step at most"},
    {"sequences", CD_CONF_INT, AT(sequences), "1024", "1..1e9", "sequences of a step at most"},
    {"ahead", CD_CONF_INT, AT(ahead), "0", "0..100",
     "steps that are put together before a request that has just come may be in one"},
    {"memory_share", CD_CONF_REAL, AT(memory_share), "0.9", "(0..1",
     "part of the GPU's memory that the engine fills"},
    {"share_of", CD_CONF_ENUM, AT(share_of), "all", CD_SERVING_SHARES,
     "of the whole memory, of what the others leave the cache, or of the whole for weights and the "
     "cache alone"},
    {"reserve_gb", CD_CONF_REAL, AT(reserve_gb), "4", "0..1e6",
     "GB of context, graphs and buffers of collectives"},
    {"step_s", CD_CONF_REAL, AT(step_s), "0", "0..10", "seconds of the host in each step"},
    {"sequence_s", CD_CONF_REAL, AT(sequence_s), "0", "0..10", "for each sequence of a step"},
    {"graph_tokens", CD_CONF_INT, AT(graph_tokens), "0", "0..1e9",
     "a step with prompts of no more tokens is handed out as a graph"},
    {"layer_s", CD_CONF_REAL, AT(layer_s), "0", "0..1",
     "in which the host hands out a layer of a step with prompts; the GPU waits where it is "
     "faster"},
    {"lift", CD_CONF_REAL, AT(lift), "1", "0.5..3",
     "times that a step with prompts takes over its operators alone"},
    {"lift_power", CD_CONF_REAL, AT(lift_power), "0", "0..1",
     "share of the peak that power allows the GPU that lift is of; where power allows more lift is "
     "less, where all it is 1; 0: the same everywhere"},
    {"request_s", CD_CONF_REAL, AT(request_s), "0", "0..100", "from the request to the queue"},
    {"between_s", CD_CONF_REAL, AT(between_s), "3e-6", "0..1",
     "of a small kernel that is in no table, beside its bytes"},
    {"spread_tpot", CD_CONF_REAL, AT(spread_tpot), "0", "0..10",
     "standard deviation of ln(measured TPOT / predicted)"},
    {"spread_ttft", CD_CONF_REAL, AT(spread_ttft), "0", "0..10", "the same of TTFT"},
    {"fitted", CD_CONF_TEXT, AT(fitted), "\"\"", "",
     "model_type, num_hidden_layers and hidden_size of the model that constants were fitted on, "
     "the GPU, the type of products; words left out at the end, or all: any; none: of no run"},
    {"spread_tpot_other", CD_CONF_REAL, AT(spread_tpot_other), "0", "0..10",
     "spread_tpot of other models, GPUs and types; 0: not known"},
    {"spread_ttft_other", CD_CONF_REAL, AT(spread_ttft_other), "0", "0..10", "the same of TTFT"},
    {"source", CD_CONF_TEXT, AT(source), "\"\"", "", "where these numbers come from"},
};

static cdmpp_status read_entry(const char *path, const cd_yaml *map, cd_diag *diag,
                               cd_serving_stacks *s, cdmpp_err *err) {
    const cd_conf c = {key, sizeof key / sizeof *key, &s->v[s->n], &s->arena, diag};
    char found[96];
    if (map->kind != CD_YAML_MAP) {
        cd_diag_add(diag, err, CDMPP_ESCHEMA, path, map, false, "",
                    "expected the keys of a stack, found %s",
                    cd_yaml_found(map, found, sizeof found));
        return CDMPP_OK;
    }
    CD_TRY(cd_conf_defaults(&c, err));
    const cdmpp_status st = cd_conf_map(&c, path, map, err);
    if (st == CDMPP_ENOMEM) return st;
    if (!st && !s->v[s->n].name[0])
        cd_diag_add(diag, err, CDMPP_ESCHEMA, path, map, false, "stack",
                    "expected the name of the library, found nothing");
    s->n++;
    return CDMPP_OK;
}

cdmpp_status cd_serving_stacks_read(const char *path, const char *text, size_t n, cd_diag *diag,
                                    cd_serving_stacks *out, cdmpp_err *err) {
    const cd_yaml *root = NULL;
    const size_t before = diag->n;
    cdmpp_err first = {0};
    char found[96];
    *out = (cd_serving_stacks){0};
    cdmpp_status st = cd_yaml_parse(&out->arena, path, text, n, &root, diag, &first);
    if (!st && (!root || root->kind != CD_YAML_SEQ || root->n > MOST)) {
        if (root)
            cd_diag_add(diag, &first, CDMPP_ESCHEMA, path, root, false, "",
                        "expected a list of at most %d stacks, found %s", MOST,
                        cd_yaml_found(root, found, sizeof found));
        else
            st = cd_err_at(&first,
                           CD_FAIL(&first, ESCHEMA, "expected a list of stacks, found nothing"),
                           path, 0);
    } else if (!st) {
        out->v = CD_NEWN(&out->arena, cd_serving_stack, (size_t)root->n + 1);
        st = out->v ? CDMPP_OK : CD_FAIL(&first, ENOMEM, "%u stacks", root->n);
        for (const cd_yaml *v = root->child; !st && v; v = v->next)
            st = read_entry(path, v, diag, out, &first);
    }
    if (!st && diag->n > before) st = first.code ? first.code : CDMPP_ESCHEMA;
    if (st) cd_err_from(err, &first);
    if (st) cd_serving_stacks_free(out);
    return st;
}

static const char *usual(cd_arena *a) {
    static const char here[] = "configs/" CD_SERVING_FILE;
    const char *named = getenv("CDMPP_SERVING");
    if (named && *named) return named;
    return !access(here, R_OK) ? here : cd_data_path_find(a, here);
}

cdmpp_status cd_serving_stacks_load(const char *path, cd_diag *diag, cd_serving_stacks *out,
                                    cdmpp_err *err) {
    cd_arena a = {0};
    char *text = NULL;
    size_t n;
    if (!path) path = usual(&a);
    cdmpp_status st = CDMPP_OK;
    if (path) st = cd_file_read(path, CD_YAML_MAX_BYTES + 1, &text, &n, err);
    else
        st = CD_FAIL(err, EIO,
                     "there is no configs/" CD_SERVING_FILE " here, and none is installed");
    if (!st) st = cd_serving_stacks_read(path, text, n, diag, out, err);
    cd_mem_free(text);
    cd_arena_free(&a);
    return st;
}

void cd_serving_stacks_free(cd_serving_stacks *s) {
    cd_arena_free(&s->arena);
    *s = (cd_serving_stacks){0};
}

/* "0.14" before "0.18.0": numbers between dots; what is behind them ("rc3") does not count. */
static int by_version(const char *a, const char *b) {
    while (*a || *b) {
        char *ea, *eb;
        const unsigned long x = strtoul(a, &ea, 10), y = strtoul(b, &eb, 10);
        if (x != y) return x < y ? -1 : 1;
        if (ea == a && eb == b) return 0;
        a = ea + (*ea == '.'), b = eb + (*eb == '.');
    }
    return 0;
}

/* Behind the name of the library; NULL: there is none. "v0.20.0" is "0.20.0". */
static const char *version_of(const char *stack) {
    const char *v = strchr(stack, '-');
    if (!v) return NULL;
    return v + 1 + (v[1] == 'v' && isdigit((unsigned char)v[2]));
}

static const cd_serving_stack *entry_of(const cd_serving_stacks *s, const char *stack) {
    const size_t n = strcspn(stack, "-");
    const char *version = version_of(stack);
    const cd_serving_stack *best = NULL;
    for (size_t i = 0; i < s->n; i++) {
        const cd_serving_stack *k = &s->v[i];
        if (strlen(k->name) != n || strncmp(k->name, stack, n) != 0 ||
            (version && by_version(k->since, version) > 0))
            continue;
        if (!best || by_version(k->since, best->since) > 0) best = k;
    }
    return best;
}

cdmpp_status cd_serving_stack_find(const cd_serving_stacks *s, const char *stack,
                                   const cd_serving_stack **out, cdmpp_err *err) {
    const char *version = version_of(stack);
    cd_buf b = {0};
    if (version && !isdigit((unsigned char)version[0])) /* it would be taken for older than all */
        return cd_err_key(
            err,
            CD_FAIL(err, ESCHEMA,
                    "expected a version of numbers, as vllm-0.24.0, or none; found '%.60s'", stack),
            "stack");
    if ((*out = entry_of(s, stack))) return CDMPP_OK;
    for (size_t i = 0; i < s->n; i++)
        cd_buf_putf(&b, "%s%s%s%s", i ? ", " : "", s->v[i].name, s->v[i].since[0] ? " since " : "",
                    s->v[i].since);
    const cdmpp_status st =
        b.oom ? CD_FAIL(err, ENOMEM, "names")
              : CD_FAIL(err, ESCHEMA, "expected %s, each also with its version; found '%.60s'",
                        b.p ? b.p : "", stack);
    cd_buf_free(&b);
    return cd_err_key(err, st, "stack");
}

cdmpp_status cd_serving_stack_name(cd_arena *a, const char *stack, const char **out,
                                   cdmpp_err *err) {
    const char *version = version_of(stack);
    char *copy = cd_arena_text(a, stack);
    if (!copy) return CD_FAIL(err, ENOMEM, "name of a stack");
    if (version) memmove(copy + strcspn(stack, "-") + 1, version, strlen(version) + 1);
    *out = copy;
    return CDMPP_OK;
}

/* Configurations, and what was measured of them, from a CSV table. */

typedef enum { WHOLE, NUMBER, TEXT, TYPE, PROMPTS } form;
#define AT_RUNS(member) offsetof(cd_serving_config, member)
static const struct {
    const char *name;
    form form;
    size_t at;
    double lo, hi;
} column[] = {{"id", TEXT, AT_RUNS(id), 0, 0},
              {"gpu", TEXT, AT_RUNS(gpu), 0, 0},
              {"stack", TEXT, AT_RUNS(stack), 0, 0},
              {"kernels", TEXT, AT_RUNS(kernels), 0, 0},
              {"tp", WHOLE, AT_RUNS(worker.tp), 1, 1024},
              {"pp", WHOLE, AT_RUNS(worker.pp), 1, 1024},
              {"dp", WHOLE, AT_RUNS(worker.dp), 1, 1024},
              {"ep", WHOLE, AT_RUNS(worker.ep), 1, 1024},
              {"engines", WHOLE, AT_RUNS(worker.count), 1, 1e6},
              {"workers", WHOLE, AT_RUNS(worker.count), 1, 1e6},
              /* as --json has it */ {"max_sequences", WHOLE, AT_RUNS(worker.batch), 1, 1e6},
              {"decode_tp", WHOLE, AT_RUNS(decode.tp), 1, 1024},
              {"decode_pp", WHOLE, AT_RUNS(decode.pp), 1, 1024},
              {"decode_dp", WHOLE, AT_RUNS(decode.dp), 1, 1024},
              {"decode_ep", WHOLE, AT_RUNS(decode.ep), 1, 1024},
              {"decode_workers", WHOLE, AT_RUNS(decode.count), 0, 1e6},
              {"decode_max_sequences", WHOLE, AT_RUNS(decode.batch), 1, 1e6},
              {"isl", WHOLE, AT_RUNS(isl), 1, 1e7},
              {"osl", WHOLE, AT_RUNS(osl), 1, 1e7},
              {"spread", NUMBER, AT_RUNS(spread), 0, 1},
              {"concurrency", WHOLE, AT_RUNS(concurrency), 1, 1e5},
              {"rate", NUMBER, AT_RUNS(rate), 1e-6, 1e6},
              {"requests", WHOLE, AT_RUNS(requests), 1, 1e6},
              {"dtype", TYPE, AT_RUNS(linear), 0, 0},
              {"experts_dtype", TYPE, AT_RUNS(expert), 0, 0},
              {"kv_dtype", TYPE, AT_RUNS(kv), 0, 0},
              {"prompts", PROMPTS, AT_RUNS(prompts), 0, 0},
              {"max_tokens", WHOLE, AT_RUNS(tokens), 1, 1e9},
              {"graph_tokens", WHOLE, AT_RUNS(graph_tokens), 1, 1e9},
              {"node_gpus", WHOLE, AT_RUNS(node), 1, 1024},
              {"node_gbs", NUMBER, AT_RUNS(node_gb_s), 1e-3, 1e5},
              {"memory_share", NUMBER, AT_RUNS(memory_share), 0.01, 1},
              {"ttft_s", NUMBER, AT_RUNS(ttft_s), 0, 1e9},
              {"tpot_s", NUMBER, AT_RUNS(tpot_s), 0, 1e9}};
enum { N_COLUMN = sizeof column / sizeof *column };

int cd_serving_type(const char *name) {
    for (int k = 0; k < CD_LLM_OP_N_TYPE; k++)
        if (!strcasecmp(name, cd_llm_op_type_name((cd_llm_op_type)k))) return k;
    return -1;
}

static bool same_name(const char *a, const char *b) {
    for (; *a && *b; a++, b++)
        if ((*a == '-' ? '_' : *a) != *b) return false;
    return !*a && !*b;
}

static size_t find(const char *name) {
    size_t k = 0;
    while (k < N_COLUMN && !same_name(name, column[k].name)) k++;
    return k;
}

static cdmpp_status cell(cd_csv_table *t, size_t row, size_t col, size_t k, cd_serving_config *c,
                         cdmpp_err *err) {
    const char *text = t->cell[row][col];
    char *to = (char *)c + column[k].at;
    double v;
    int w = 0;
    if (!text[0]) return CDMPP_OK;
    switch (column[k].form) {
    case TEXT:
        if (column[k].at == AT_RUNS(stack))
            CD_TRY(cd_serving_stack_name(&t->arena, text, &text, err));
        memcpy(to, &text, sizeof text);
        return CDMPP_OK;
    case WHOLE:
    case NUMBER:
        if (cd_csv_table_number(t, row, col, &v, NULL))
            return CD_FAIL(err, EPARSE, "expected a number, found '%.60s'", text);
        if (!(v >= column[k].lo && v <= column[k].hi))
            return CD_FAIL(err, ERANGE, "expected %g to %g, found %g", column[k].lo, column[k].hi,
                           v);
        if (column[k].form == WHOLE && floor(v) < v)
            return CD_FAIL(err, ERANGE, "expected a whole number, found %g", v);
        memcpy(to, &v, sizeof v);
        return CDMPP_OK;
    case TYPE: w = cd_serving_type(text); break;
    case PROMPTS: w = cd_enum_names_find(CD_SERVING_PROMPTS, (cd_str){text, strlen(text)}); break;
    }
    if (column[k].at == AT_RUNS(kv) && w >= 0 && !cd_serving_kv_type(w))
        return CD_FAIL(err, ESCHEMA, "expected " CD_SERVING_KV_TYPES ", found '%.40s'", text);
    if (w < 0)
        return CD_FAIL(err, ESCHEMA,
                       column[k].form == TYPE ? "expected a number type, found '%.40s'"
                                              : "expected " CD_SERVING_PROMPTS ", found '%.40s'",
                       text);
    memcpy(to, &w, sizeof w);
    return CDMPP_OK;
}

/* The load that a row names is in place of the usual one. */
static cdmpp_status load_of(cd_serving_config *c, const cd_serving_config *usual, cdmpp_err *err) {
    if (c->rate > 0 && c->concurrency > 0)
        return cd_err_key(err, CD_FAIL(err, ERANGE, "rate and concurrency are two loads"), "rate");
    if (!(c->rate > 0) && !(c->concurrency > 0))
        c->rate = usual->rate, c->concurrency = usual->concurrency;
    return CDMPP_OK;
}

/* All names that no column has, in one message. */
static cdmpp_status unknown(const cd_csv_table *t, cdmpp_err *err) {
    size_t n = 0;
    const char *first = NULL;
    cd_buf b = {0};
    for (size_t k = 0; k < t->n_col; k++) {
        if (find(t->name[k]) < N_COLUMN) continue;
        if (first) cd_buf_putf(&b, "%s%.40s", n > 1 ? ", " : "; so are ", t->name[k]);
        else first = t->name[k];
        n++;
    }
    if (n)
        (void)cd_err_key(err, CD_FAIL(err, ESCHEMA, "unknown column%.180s", b.p ? b.p : ""), first);
    cd_buf_free(&b);
    return n ? CDMPP_ESCHEMA : CDMPP_OK;
}

static cdmpp_status columns(const cd_csv_table *t, const char *path, cdmpp_err *err) {
    CD_TRY(cd_err_at(err, unknown(t, err), path, 1));
    for (size_t k = 0; k < t->n_col; k++)
        for (size_t i = 0; i < k; i++)
            if (column[find(t->name[k])].at == column[find(t->name[i])].at)
                return cd_err_at(err,
                                 cd_err_key(err,
                                            CD_FAIL(err, ESCHEMA,
                                                    "the column '%.40s' says the same", t->name[i]),
                                            t->name[k]),
                                 path, 1);
    return CDMPP_OK;
}

static cdmpp_status row(cd_csv_table *t, size_t i, const cd_serving_config *usual,
                        cd_serving_config *c, cdmpp_err *err) {
    *c = *usual;
    c->rate = c->concurrency = 0;
    for (size_t k = 0; k < t->n_col; k++)
        CD_TRY(cd_err_key(err, cell(t, i, k, find(t->name[k]), c, err), t->name[k]));
    for (size_t k = 0; k < t->n_col && !(c->decode.count > 0); k++)
        if (!strncmp(t->name[k], "decode", 6) && t->cell[i][k][0] &&
            column[find(t->name[k])].at != AT_RUNS(decode.count))
            return cd_err_key(
                err,
                CD_FAIL(err, ERANGE,
                        "expected decode_workers, too: without them no engine decodes alone"),
                t->name[k]);
    return load_of(c, usual, err);
}

static cdmpp_status rows(const char *path, const cd_serving_config *usual, cd_serving_bad *bad,
                         cd_serving_runs *out, cdmpp_err *err) {
    CD_TRY(cd_csv_table_read_good(&out->t, path, bad ? cd_serving_bad_add : NULL, bad, &out->n_bad,
                                  err));
    out->v = CD_NEWN(&out->t.arena, cd_serving_config, out->t.n_row + 1);
    out->line = CD_NEWN(&out->t.arena, long, out->t.n_row + 1);
    if (!out->v || !out->line) return CD_FAIL(err, ENOMEM, "%zu runs", out->t.n_row);
    CD_TRY(columns(&out->t, path, err));
    for (size_t i = 0; i < out->t.n_row; i++) {
        cdmpp_err why = {0};
        const cdmpp_status st =
            cd_err_at(&why, row(&out->t, i, usual, &out->v[out->n], &why), path, out->t.line[i]);
        if (st && (!bad || !cd_op_line_is_bad(st))) {
            cd_err_from(err, &why);
            return st;
        }
        if (st) cd_serving_bad_add(bad, &why), out->n_bad++;
        else out->line[out->n++] = out->t.line[i];
    }
    return out->n
               ? CDMPP_OK
               : cd_err_at(err, CD_FAIL(err, ENODATA, "none of %zu rows can be used", out->t.n_row),
                           path, 0);
}

cdmpp_status cd_serving_runs_read(const char *path, const cd_serving_config *usual,
                                  cd_op_bad_line *bad, void *ctx, cd_serving_runs *out,
                                  cdmpp_err *err) {
    cd_serving_bad left = {0};
    *out = (cd_serving_runs){0};
    const cdmpp_status st = rows(path, usual, bad ? &left : NULL, out, err);
    if (bad) cd_serving_bad_tell(&left, path, bad, ctx);
    return st;
}

void cd_serving_runs_free(cd_serving_runs *r) {
    cd_csv_table_free(&r->t);
    *r = (cd_serving_runs){0};
}
