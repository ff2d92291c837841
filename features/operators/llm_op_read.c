/* Reads tables of operators of language models (TSV, CSV), in our columns and in those of aiconfigurator. A bad line is one error
 * with file and line; reading goes on behind it. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/io/io.h"
#include "features/operators/llm_op.h"

enum { MAX_COLUMN = 64, MAX_NAME = 80 };
#define MAX_SIZE 1099511627776.0 /* 2^40 */
#define MAX_SECONDS 1e6
#define MAX_SKEW 10.0

/* Columns that are no parameters stand behind them. */
enum { OP = CD_LLM_OP_N_PARAM, DEVICE, STACK, KERNEL, DTYPE, KV, DISTRIBUTION, ELEMENTS, SECONDS, MILLISECONDS, N_COLUMN };
static const struct {
    int is;
    const char *name;
} columns[] = {
#define P(ID, column, other, third, standard, meaning) {CD_LLM_OP_P_##ID, column}, {CD_LLM_OP_P_##ID, other}, {CD_LLM_OP_P_##ID, third},
#include "features/operators/llm_op_kinds.def"
    {OP, "op"}, {OP, "op_name"}, {OP, "OPName"}, {DEVICE, "device"}, {STACK, "stack"}, {KERNEL, "kernel"}, {KERNEL, "kernel_source"},
    {DTYPE, "dtype"}, {DTYPE, "gemm_dtype"}, {DTYPE, "attn_dtype"}, {DTYPE, "mla_dtype"}, {DTYPE, "moe_dtype"}, {DTYPE, "bmm_dtype"},
    {DTYPE, "allreduce_dtype"}, {DTYPE, "nccl_dtype"}, {DTYPE, "quant_dtype"}, {KV, "kv_dtype"}, {KV, "kv_cache_dtype"},
    {DISTRIBUTION, "distribution"}, {ELEMENTS, "message_size"}, {SECONDS, "latency_s"}, {MILLISECONDS, "latency_ms"}, {MILLISECONDS, "latency"}};
enum { N_NAME = sizeof columns / sizeof *columns };

/* Names of operators beside our own, as aiconfigurator's tables and rows have them. */
static const struct {
    const char *name;
    cd_llm_op_kind kind;
} others[] = {{"context_attention", CD_LLM_OP_PREFILL}, {"generation_attention", CD_LLM_OP_DECODE}, {"context_mla", CD_LLM_OP_LATENT_PREFILL},
              {"mla_context", CD_LLM_OP_LATENT_PREFILL}, {"generation_mla", CD_LLM_OP_LATENT_DECODE}, {"mla_generation", CD_LLM_OP_LATENT_DECODE},
              {"custom_allreduce", CD_LLM_OP_ALL_REDUCE}, {"allreduce", CD_LLM_OP_ALL_REDUCE}, {"alltoall", CD_LLM_OP_ALL_TO_ALL},
              {"mla_gen_pre", CD_LLM_OP_GEMM}, {"mla_gen_post", CD_LLM_OP_GEMM}, {"scale_matrix", CD_LLM_OP_ELEMENTWISE}, {"bmm", CD_LLM_OP_GEMM},
              {"linear", CD_LLM_OP_GEMM}, {"layernorm", CD_LLM_OP_NORM}, {"rmsnorm", CD_LLM_OP_NORM}};
enum { N_OTHER = sizeof others / sizeof *others };

static const double standard[CD_LLM_OP_N_PARAM] = {
#define P(ID, column, other, third, standard, meaning) standard,
#include "features/operators/llm_op_kinds.def"
};

struct cd_llm_op_reader {
    cd_file_lines *lines;
    cd_dict *names;
    char *path;
    bool tabs, op_column;
    int of[MAX_COLUMN];       /* of the fields of a line; N_COLUMN: not needed */
    size_t n_field;
    char table[MAX_NAME], folder[MAX_NAME];
    const char *value[N_COLUMN]; /* of this line; NULL or "": not there */
};

/* ---- names ---- */
static bool kind_of(const char *s, cd_llm_op_kind *out) {
    for (int k = 0; k < CD_LLM_OP_N_KIND; k++)
        if (!strcasecmp(s, cd_llm_op_kind_name((cd_llm_op_kind)k))) return *out = (cd_llm_op_kind)k, true;
    for (size_t i = 0; i < N_OTHER; i++)
        if (!strcasecmp(s, others[i].name)) return *out = others[i].kind, true;
    return false;
}

static bool type_of(const char *s, uint8_t *out) {
    static const struct {
        const char *name, *other;
    } t[CD_LLM_OP_N_TYPE] = {
#define T(ID, name, other, weight, input, unit, meaning) {name, other},
#include "features/operators/llm_op_kinds.def"
    };
    for (uint8_t k = 0; k < CD_LLM_OP_N_TYPE; k++)
        if (!strcasecmp(s, t[k].name) || (t[k].other[0] && !strcasecmp(s, t[k].other))) return *out = k, true;
    return false;
}

/* "a/h100_sxm/gemm.tsv.xz" -> "h100_sxm", "gemm" */
static void name_file(cd_llm_op_reader *r, const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *from = slash;
    size_t n = strcspn(base, ".");
    if (n >= MAX_NAME) n = MAX_NAME - 1;
    memcpy(r->table, base, n);
    while (from && from > path && from[-1] != '/') from--;
    n = from ? (size_t)(slash - from) : 0;
    if (n < MAX_NAME && n) memcpy(r->folder, from, n);
}

/* ---- lines ---- */
static char *trim(char *s) {
    while (isspace((unsigned char)*s)) s++;
    size_t n = strlen(s);
    while (n && isspace((unsigned char)s[n - 1])) s[--n] = 0;
    return s;
}

static cdmpp_status split_tabs(char *line, char *out[MAX_COLUMN], size_t *n, cdmpp_err *err) {
    for (*n = 0; line; ++*n) {
        char *tab = strchr(line, '\t');
        if (*n == MAX_COLUMN) return CD_FAIL(err, ERANGE, "expected at most %d fields", MAX_COLUMN);
        if (tab) *tab = 0;
        out[*n] = trim(line);
        line = tab ? tab + 1 : NULL;
    }
    return CDMPP_OK;
}

static cdmpp_status split(const cd_llm_op_reader *r, char *line, size_t len, char *out[MAX_COLUMN], size_t *n, cdmpp_err *err) {
    cd_str f[MAX_COLUMN];
    if (r->tabs) return split_tabs(line, out, n, err);
    CD_TRY(cd_csv_fields_split(line, len, f, MAX_COLUMN, n, err));
    for (size_t i = 0; i < *n; i++) {
        char *from = line + (f[i].p - line);
        from[f[i].n] = 0;
        out[i] = trim(from);
    }
    return CDMPP_OK;
}

static cdmpp_status read_header(cd_llm_op_reader *r, char *line, size_t len, cdmpp_err *err) {
    char *f[MAX_COLUMN];
    const size_t mark = strncmp(line, "\xef\xbb\xbf", 3) ? 0 : 3; /* of the byte order */
    cd_llm_op_kind k;
    r->tabs = memchr(line, '\t', len) != NULL;
    CD_TRY(split(r, line + mark, len - mark, f, &r->n_field, err));
    for (size_t i = 0; i < r->n_field; i++) {
        r->of[i] = N_COLUMN;
        for (size_t c = 0; c < N_NAME; c++)
            if (f[i][0] && !strcasecmp(f[i], columns[c].name)) r->of[i] = columns[c].is;
        r->op_column |= r->of[i] == OP;
    }
    if (r->op_column || kind_of(r->table, &k)) return CDMPP_OK;
    return CD_FAIL(err, ESCHEMA, "expected a column op, or a file that is called by an operator; found '%s'", r->table);
}

cdmpp_status cd_llm_op_reader_open(const char *path, cd_dict *names, cd_llm_op_reader **out, cdmpp_err *err) {
    char *line = NULL;
    size_t len;
    uint32_t empty;
    cd_llm_op_reader *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "reader");
    r->names = names;
    r->path = cd_mem_text(path);
    name_file(r, path);
    cdmpp_status st = r->path ? CDMPP_OK : CD_FAIL(err, ENOMEM, "path");
    if (!st && !names->n) st = cd_dict_add(names, (cd_str){"", 0}, &empty, err);
    if (!st) st = cd_file_lines_open(path, 0, &r->lines, err);
    if (!st) st = cd_file_lines_next(r->lines, &line, &len, err);
    if (!st && !line) st = CD_FAIL(err, ESCHEMA, "expected names of columns, found an empty file");
    if (!st) st = read_header(r, line, len, err);
    if (st) {
        st = cd_err_at(err, st, path, 1);
        cd_llm_op_reader_close(r);
    } else {
        *out = r;
    }
    return st;
}

void cd_llm_op_reader_close(cd_llm_op_reader *r) {
    if (!r) return;
    cd_file_lines_close(r->lines);
    cd_mem_free(r->path);
    cd_mem_free(r);
}

long cd_llm_op_reader_line(const cd_llm_op_reader *r) { return cd_file_lines_number(r->lines); }

/* ---- one row ---- */
static bool given(const cd_llm_op_reader *r, int c) { return r->value[c] && r->value[c][0]; }

static cdmpp_status number(const cd_llm_op_reader *r, int c, const char *name, double *out, cdmpp_err *err) {
    char *end = NULL;
    *out = given(r, c) ? strtod(r->value[c], &end) : 0;
    if (!end || *end || !isfinite(*out))
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected a number, found '%.40s'", given(r, c) ? r->value[c] : ""), name);
    return CDMPP_OK;
}

static cdmpp_status size_of(const cd_llm_op_reader *r, cd_llm_op_param p, double *out, cdmpp_err *err) {
    const double low = standard[p] < 0 ? 1 : standard[p] < 1 ? 0 : 1;
    if (!given(r, (int)p) && standard[p] >= 0) return *out = standard[p], CDMPP_OK;
    CD_TRY(number(r, (int)p, cd_llm_op_param_name(p), out, err));
    if (*out >= low && *out <= MAX_SIZE && *out <= floor(*out)) return CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, ERANGE, "expected a whole number in %g..2^40, found %.40s", low, r->value[p]), cd_llm_op_param_name(p));
}

/* What the tables of aiconfigurator mean (README of the tables): a decode of isl + step tokens has isl + step - 1 of them in the cache; messages
 * are counted in elements; the two products around a latent decode are (tokens, 128) by (128, 512) and (tokens, 512) by (512, 128) for each head;
 * the rows of scale_matrix are m of k. */
static cdmpp_status renamed(const cd_llm_op_reader *r, const char *op, cd_llm_op_record *o, bool done[CD_LLM_OP_MAX_SIZE], cdmpp_err *err) {
    const bool before = !strcasecmp(op, "mla_gen_pre");
    double x;
    if (o->kind == CD_LLM_OP_GEMM && (before || !strcasecmp(op, "mla_gen_post"))) {
        CD_TRY(size_of(r, CD_LLM_OP_P_TOKENS, &o->size[0], err));
        CD_TRY(size_of(r, CD_LLM_OP_P_HEADS, &o->size[3], err));
        o->size[1] = before ? 512 : 128;
        o->size[2] = 640 - o->size[1];
        for (size_t i = 0; i < 4; i++) done[i] = true;
    } else if (!strcasecmp(op, "scale_matrix")) {
        CD_TRY(size_of(r, CD_LLM_OP_P_K, &o->size[1], err));
        done[1] = true;
    } else if ((o->kind == CD_LLM_OP_DECODE || o->kind == CD_LLM_OP_LATENT_DECODE) && given(r, CD_LLM_OP_P_ISL)) {
        CD_TRY(size_of(r, CD_LLM_OP_P_ISL, &x, err));
        CD_TRY(size_of(r, CD_LLM_OP_P_PAST, &o->size[0], err));
        o->size[0] += x - 1;
        done[0] = true;
    } else if (cd_llm_op_size_param((cd_llm_op_kind)o->kind, 0) == CD_LLM_OP_P_BYTES && !given(r, CD_LLM_OP_P_BYTES) && given(r, ELEMENTS)) {
        CD_TRY(number(r, ELEMENTS, "message_size", &x, err));
        o->size[0] = x * cd_llm_op_type_input_bytes((cd_llm_op_type)o->type);
        if (!(o->size[0] >= 1 && o->size[0] <= MAX_SIZE)) return cd_err_key(err, CD_FAIL(err, ERANGE, "expected 1..2^40 bytes, found %g", o->size[0]), "message_size");
        done[0] = true;
    }
    return CDMPP_OK;
}

/* Sizes that contradict each other. */
static cdmpp_status sensible(const cd_llm_op_record *r, cdmpp_err *err) {
    const double heads = cd_llm_op_get(r, CD_LLM_OP_P_HEADS), kv = cd_llm_op_get(r, CD_LLM_OP_P_KV_HEADS);
    const double experts = cd_llm_op_get(r, CD_LLM_OP_P_EXPERTS), gpus = cd_llm_op_get(r, CD_LLM_OP_P_GPUS);
    if (kv > heads) return cd_err_key(err, CD_FAIL(err, ERANGE, "expected at most %g, the query heads, found %g", heads, kv), "num_key_value_heads");
    if (cd_llm_op_get(r, CD_LLM_OP_P_TOPK) > experts && experts > 0)
        return cd_err_key(err, CD_FAIL(err, ERANGE, "expected at most %g, the experts, found %g", experts, cd_llm_op_get(r, CD_LLM_OP_P_TOPK)), "topk");
    if (cd_llm_op_get(r, CD_LLM_OP_P_EP) > experts && experts > 0)
        return cd_err_key(err, CD_FAIL(err, ERANGE, "expected at most %g, the experts, found %g", experts, cd_llm_op_get(r, CD_LLM_OP_P_EP)), "moe_ep_size");
    if (gpus > 0 && gpus < 2) return cd_err_key(err, CD_FAIL(err, ERANGE, "expected 2 GPUs or more, found %g", gpus), "num_gpus");
    return CDMPP_OK;
}

static cdmpp_status word(const cd_llm_op_reader *r, int c, uint16_t *out, cdmpp_err *err) {
    uint32_t k = 0;
    if (given(r, c)) CD_TRY(cd_dict_add(r->names, (cd_str){r->value[c], strlen(r->value[c])}, &k, err));
    if (k > UINT16_MAX) return CD_FAIL(err, ERANGE, "more than 65535 names of stacks and kernels");
    *out = (uint16_t)k;
    return CDMPP_OK;
}

static cdmpp_status types(const cd_llm_op_reader *r, cd_llm_op_record *o, cdmpp_err *err) {
    o->type = CD_LLM_OP_T_BF16;
    if (given(r, DTYPE) && !type_of(r->value[DTYPE], &o->type))
        return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "unknown type '%.40s' (docs/reference/llm-operators.md has the list)", r->value[DTYPE]), "dtype");
    o->kv = o->type;
    if (given(r, KV) && !type_of(r->value[KV], &o->kv))
        return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "unknown type '%.40s' of the cache", r->value[KV]), "kv_dtype");
    if (!given(r, DISTRIBUTION) || !strcasecmp(r->value[DISTRIBUTION], "balanced")) return CDMPP_OK;
    char *end = NULL;
    const char *d = r->value[DISTRIBUTION];
    o->skew = strncasecmp(d, "power_law_", 10) ? 0 : strtod(d + 10, &end);
    if (!end || *end || !(o->skew > 0 && o->skew <= MAX_SKEW))
        return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "expected balanced or power_law_A, found '%.40s'", d), "distribution");
    return CDMPP_OK;
}

static cdmpp_status latency(const cd_llm_op_reader *r, cd_llm_op_record *o, bool *no_time, cdmpp_err *err) {
    const bool s = given(r, SECONDS);
    const char *name = s ? "latency_s" : "latency_ms";
    if (!s && !given(r, MILLISECONDS)) return CDMPP_OK;
    CD_TRY(number(r, s ? SECONDS : MILLISECONDS, name, &o->latency_s, err));
    if (!s) o->latency_s *= 1e-3;
    if (o->latency_s > 0 && o->latency_s <= MAX_SECONDS) return CDMPP_OK;
    *no_time = o->latency_s <= 0;
    return cd_err_key(err, CD_FAIL(err, ERANGE, "expected a time above 0, found %.40s", r->value[s ? SECONDS : MILLISECONDS]), name);
}

static cdmpp_status row(const cd_llm_op_reader *r, cd_llm_op_record *o, bool *no_time, cdmpp_err *err) {
    const char *op = given(r, OP) ? r->value[OP] : r->table;
    bool done[CD_LLM_OP_MAX_SIZE] = {false};
    cd_llm_op_kind kind;
    memset(o, 0, sizeof *o);
    if (!kind_of(op, &kind)) return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "unknown operator '%.60s' (docs/reference/llm-operators.md has the list)", op), "op");
    o->kind = (uint8_t)kind;
    CD_TRY(types(r, o, err));
    if (kind != CD_LLM_OP_MOE) o->skew = 0;
    CD_TRY(renamed(r, op, o, done, err));
    for (size_t i = 0; i < cd_llm_op_n_size(kind); i++)
        if (!done[i]) CD_TRY(size_of(r, cd_llm_op_size_param(kind, i), &o->size[i], err));
    CD_TRY(sensible(o, err));
    CD_TRY(word(r, STACK, &o->stack, err));
    CD_TRY(word(r, KERNEL, &o->kernel, err));
    return latency(r, o, no_time, err);
}

static cdmpp_status line_to_row(cd_llm_op_reader *r, char *line, size_t len, cd_llm_op_record *out, bool *no_time, cdmpp_err *err) {
    char *f[MAX_COLUMN];
    size_t n;
    memset(r->value, 0, sizeof r->value);
    CD_TRY(split(r, line, len, f, &n, err));
    if (n != r->n_field) return CD_FAIL(err, EPARSE, "expected %zu fields, found %zu", r->n_field, n);
    for (size_t i = 0; i < n; i++)
        if (r->of[i] != N_COLUMN && (f[i][0] || !r->value[r->of[i]])) r->value[r->of[i]] = f[i];
    return row(r, out, no_time, err);
}

cdmpp_status cd_llm_op_reader_next(cd_llm_op_reader *r, cd_llm_op_record *out, const char **device, bool *more, bool *no_time, cdmpp_err *err) {
    char *line;
    size_t len;
    cdmpp_status st;
    *no_time = false;
    do st = cd_file_lines_next(r->lines, &line, &len, err);
    while (!st && line && line[strspn(line, " \t\r")] == 0);
    *more = st == CDMPP_ERANGE || (!st && line); /* a line too long is a bad line like others */
    if (st || !line) return st;
    st = line_to_row(r, line, len, out, no_time, err);
    *device = given(r, DEVICE) ? r->value[DEVICE] : r->folder;
    return cd_err_at(err, st, r->path, cd_file_lines_number(r->lines));
}
