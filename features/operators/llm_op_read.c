/* Reads tables of operators line by line (TSV, CSV) into rows of named values. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "features/operators/operators_internal.h"

/* One operator as named values, texts or numbers. */

int cd_op_columns_find(const cd_op_columns *c, const char *name) {
    for (size_t i = 0; i < c->n && name[0]; i++)
        if (!strcasecmp(name, c->name[i].name)) return c->name[i].is;
    return -1;
}

static const char *name_of(const cd_op_row *r, int column) {
    size_t i = 0;
    while (r->columns->name[i].is != column) i++;
    return r->columns->name[i].name;
}

/* No value is there. */
static void op_row_clear(cd_op_row *r, const cd_op_columns *c) {
    r->columns = c;
    for (int i = 0; i < c->n_column; i++) r->value[i] = (cd_op_value){NULL, NAN};
}

bool cd_op_row_given(const cd_op_row *r, int column) {
    const cd_op_value *v = &r->value[column];
    return v->text ? v->text[0] != 0 : !isnan(v->number);
}

const char *cd_op_row_said(const cd_op_row *r, int column, char room[48]) {
    const cd_op_value *v = &r->value[column];
    if (v->text) snprintf(room, 48, "%.40s", v->text);
    else if (isnan(v->number)) room[0] = 0;
    else snprintf(room, 48, "%.12g", v->number);
    return room;
}

cdmpp_status cd_op_row_text(const cd_op_row *r, int column, const char **out, cdmpp_err *err) {
    const cd_op_value *v = &r->value[column];
    *out = v->text ? v->text : "";
    if (v->text || isnan(v->number)) return CDMPP_OK;
    return cd_err_key(err,
                      CD_FAIL(err, ESCHEMA, "expected a text, found the number %.12g", v->number),
                      name_of(r, column));
}

cdmpp_status cd_op_row_number(const cd_op_row *r, int column, double *out, cdmpp_err *err) {
    const cd_op_value *v = &r->value[column];
    char *end = NULL, said[48];
    *out = v->text ? strtod(v->text, &end) : v->number;
    if (cd_op_row_given(r, column) && (!end || !*end) && isfinite(*out)) return CDMPP_OK;
    return cd_err_key(
        err,
        CD_FAIL(err, ESCHEMA, "expected a number, found '%s'", cd_op_row_said(r, column, said)),
        name_of(r, column));
}

cdmpp_status cd_op_row_whole(const cd_op_row *r, int column, double low, int bits, double *out,
                             cdmpp_err *err) {
    char said[48];
    CD_TRY(cd_op_row_number(r, column, out, err));
    if (*out >= low && *out <= ldexp(1, bits) && *out <= floor(*out)) return CDMPP_OK;
    return cd_err_key(err,
                      CD_FAIL(err, ERANGE, "expected a whole number in %g..2^%d, found %s", low,
                              bits, cd_op_row_said(r, column, said)),
                      name_of(r, column));
}

/* letters of a name that can be misspelt: of shorter ones all are near each other */
enum { LEAST_ODD = 4 };

static char *trim(char *s) {
    while (isspace((unsigned char)*s)) s++;
    size_t n = strlen(s);
    while (n && isspace((unsigned char)s[n - 1])) s[--n] = 0;
    return s;
}

static cdmpp_status split_tabs(char *line, char *out[CD_OP_MAX_FIELD], size_t *n, cdmpp_err *err) {
    for (*n = 0; line; ++*n) {
        char *tab = strchr(line, '\t');
        if (*n == CD_OP_MAX_FIELD)
            return CD_FAIL(err, ERANGE, "expected at most %d fields", CD_OP_MAX_FIELD);
        if (tab) *tab = 0;
        out[*n] = trim(line);
        line = tab ? tab + 1 : NULL;
    }
    return CDMPP_OK;
}

/* The fields of a line without blanks around them, each ended by a NUL. */
static cdmpp_status split(const cd_op_lines *l, char *line, size_t len, char *out[CD_OP_MAX_FIELD],
                          size_t *n, cdmpp_err *err) {
    cd_str f[CD_OP_MAX_FIELD];
    if (l->tabs) return split_tabs(line, out, n, err);
    CD_TRY(cd_csv_fields_split(line, len, f, CD_OP_MAX_FIELD, n, err));
    for (size_t i = 0; i < *n; i++) {
        char *from = line + (f[i].p - line);
        from[f[i].n] = 0;
        out[i] = trim(from);
    }
    return CDMPP_OK;
}

/* A column of another name is nobody's; one whose name is very near a name that the table does not
 * have is most likely misspelt. Tables of other programs have many names that are alike (num_sites,
 * num_heads): no more than three letters may differ. */
static void find_odd(cd_op_lines *l, const cd_op_columns *c, char *const *name) {
    const char *all[CD_OP_MAX_FIELD];
    size_t n = 0;
    for (size_t i = 0; i < c->n && n < CD_OP_MAX_FIELD; i++)
        if (!l->has[c->name[i].is]) all[n++] = c->name[i].name;
    for (size_t i = 0; i < l->n_field && l->n_odd < CD_OP_MAX_ODD; i++) {
        const size_t letters = strlen(name[i]);
        const char *near = l->of[i] < c->n_column || letters < LEAST_ODD
                               ? NULL
                               : cd_did_you_mean_nearest(name[i], all, n);
        /* notes, bytes: the first letter is seldom mistaken */
        if (!near || tolower((unsigned char)*near) != tolower((unsigned char)*name[i])) continue;
        if (cd_did_you_mean_distance(name[i], near) >
            1u + (letters > LEAST_ODD) + (letters > 2 * LEAST_ODD))
            continue;
        snprintf(l->odd[l->n_odd].name, sizeof l->odd->name, "%s", name[i]);
        l->odd[l->n_odd++].near = near;
    }
}

static cdmpp_status read_header(cd_op_lines *l, const cd_op_columns *c, char *line, size_t len,
                                cdmpp_err *err) {
    char *f[CD_OP_MAX_FIELD];
    const size_t mark = strncmp(line, "\xef\xbb\xbf", 3) ? 0 : 3; /* of the byte order */
    l->tabs = memchr(line, '\t', len) != NULL;
    CD_TRY(split(l, line + mark, len - mark, f, &l->n_field, err));
    for (size_t i = 0; i < l->n_field; i++) {
        const int is = cd_op_columns_find(c, f[i]);
        l->of[i] = is < 0 ? c->n_column : is;
        if (is >= 0) l->has[is] = true;
        for (size_t k = 0; k < i; k++)
            if (is >= 0 && !strcasecmp(f[k], f[i]))
                return CD_FAIL(err, ESCHEMA, "column %s is there twice", f[i]);
    }
    find_odd(l, c, f);
    return CDMPP_OK;
}

static bool is_h5(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (!strcasecmp(dot, ".h5") || !strcasecmp(dot, ".hdf5"));
}

static cdmpp_status open_lines(cd_op_lines *l, const char *path, const cd_op_columns *c,
                               cdmpp_err *err) {
    char *line = NULL;
    size_t len;
    op_row_clear(&l->row, c);
    if (!(l->path = cd_mem_text(path)))
        return cd_err_at(err, CD_FAIL(err, ENOMEM, "path"), path, 1);
    if (is_h5(path)) return cd_err_at(err, cd_op_h5_open(path, c, l->has, &l->h5, err), path, 0);
    cdmpp_status st = cd_file_lines_open(path, 0, &l->lines, err);
    if (!st) st = cd_file_lines_next(l->lines, &line, &len, err);
    if (!st && !line) st = CD_FAIL(err, ESCHEMA, "expected names of columns, found an empty file");
    if (!st) st = read_header(l, c, line, len, err);
    return cd_err_at(err, st, path, 1);
}

static void close_lines(cd_op_lines *l) {
    cd_file_lines_close(l->lines);
    cd_op_h5_close(l->h5);
    cd_mem_free(l->path);
}

static long number(const cd_op_lines *l) {
    return l->h5 ? cd_op_h5_row(l->h5) : cd_file_lines_number(l->lines);
}
cdmpp_status cd_op_lines_at(const cd_op_lines *l, cdmpp_status st, cdmpp_err *err) {
    return cd_err_at(err, st, l->path, number(l));
}

cdmpp_status cd_op_lines_next(cd_op_lines *l, bool *more, cdmpp_err *err) {
    const cd_op_columns *c = l->row.columns;
    char *line, *f[CD_OP_MAX_FIELD];
    size_t len, n;
    cdmpp_status st;
    op_row_clear(&l->row, c);
    if (l->h5) return cd_op_h5_next(l->h5, &l->row, more, err);
    do st = cd_file_lines_next(l->lines, &line, &len, err);
    while (!st && line && line[strspn(line, " \t\r")] == 0);
    *more = st == CDMPP_ERANGE || (!st && line); /* a line too long is a bad line like others */
    if (st || !line) return st;
    CD_TRY(split(l, line, len, f, &n, err));
    /* of two columns of one meaning the one that says something counts */
    for (size_t i = 0; i < n && i < l->n_field; i++)
        if (l->of[i] < c->n_column && (f[i][0] || !cd_op_row_given(&l->row, l->of[i])))
            l->row.value[l->of[i]].text = f[i];
    return n == l->n_field ? CDMPP_OK
                           : CD_FAIL(err, EPARSE, "expected %zu fields, found %zu", l->n_field, n);
}

/* ---- the reader ---- */
/* "a/h100_sxm/gemm.tsv.xz" -> "h100_sxm", "gemm" */
static void name_file(cd_op_reader *r, const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *from = slash;
    size_t n = strcspn(base, ".");
    if (n >= CD_OP_MAX_NAME) n = CD_OP_MAX_NAME - 1;
    memcpy(r->table, base, n);
    while (from && from > path && from[-1] != '/') from--;
    n = from ? (size_t)(slash - from) : 0;
    if (n < CD_OP_MAX_NAME && n) memcpy(r->folder, from, n);
}

cdmpp_status cd_op_reader_new(const char *path, const cd_op_columns *c, cd_dict *names,
                              cd_op_reader **out, cdmpp_err *err) {
    cd_op_reader *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "reader");
    r->names = names;
    name_file(r, path);
    const cdmpp_status st = open_lines(&r->in, path, c, err);
    if (st) cd_op_reader_close(r);
    else *out = r;
    return st;
}

long cd_op_reader_line(const cd_op_reader *r) { return number(&r->in); }

bool cd_op_reader_odd(const cd_op_reader *r, size_t i, cdmpp_err *why) {
    if (i >= r->in.n_odd) return false;
    *why = (cdmpp_err){0};
    /* a column of times in a further unit is renamed too easily */
    const char *near = r->in.odd[i].near;
    const char *unit =
        !strcmp(near, "latency_s") || !strcmp(near, "latency_ms")
            ? " Times are read from 'latency_s' (seconds) or 'latency_ms' (milliseconds)"
            : "";
    (void)cd_err_at(why,
                    CD_FAIL(why, ESCHEMA, "column '%s' is not read: did you mean '%s'?%s",
                            r->in.odd[i].name, near, unit),
                    r->in.path, 1);
    return true;
}

void cd_op_reader_close(cd_op_reader *r) {
    if (!r) return;
    close_lines(&r->in);
    cd_mem_free(r);
}

/* Reads tables of operators of language models (TSV, CSV), in our columns and in those of
 * aiconfigurator. A bad line is one error with file and line; reading goes on behind it. */

enum { SIZE_BITS = 40 };
#define MAX_SIZE    1099511627776.0 /* 2^40 */
#define MAX_SECONDS 1e6
#define MAX_SKEW    10.0

/* Columns that are no parameters stand behind them. */
enum {
    OP = CD_LLM_OP_N_PARAM,
    DEVICE,
    STACK,
    KERNEL,
    DTYPE,
    KV,
    DISTRIBUTION,
    ELEMENTS,
    SECONDS,
    MILLISECONDS,
    N_COLUMN
};
static const cd_op_column column_names[] = {
#define P(ID, column, other, third, standard, meaning)                                             \
    {CD_LLM_OP_P_##ID, column}, {CD_LLM_OP_P_##ID, other}, {CD_LLM_OP_P_##ID, third},
#include "features/operators/llm_op_kinds.def"
    {OP, "op"},
    {OP, "op_name"},
    {OP, "OPName"},
    {DEVICE, "device"},
    {STACK, "stack"},
    {KERNEL, "kernel"},
    {KERNEL, "kernel_source"},
    {DTYPE, "dtype"},
    {DTYPE, "gemm_dtype"},
    {DTYPE, "attn_dtype"},
    {DTYPE, "mla_dtype"},
    {DTYPE, "moe_dtype"},
    {DTYPE, "bmm_dtype"},
    {DTYPE, "allreduce_dtype"},
    {DTYPE, "nccl_dtype"},
    {DTYPE, "quant_dtype"},
    {KV, "kv_dtype"},
    {KV, "kv_cache_dtype"},
    {DISTRIBUTION, "distribution"},
    {ELEMENTS, "message_size"},
    {SECONDS, "latency_s"},
    {MILLISECONDS, "latency_ms"},
    {MILLISECONDS, "latency"}};
static const cd_op_columns columns = {column_names, sizeof column_names / sizeof *column_names,
                                      N_COLUMN};

/* Names of operators beside our own, as aiconfigurator's tables and rows have them. */
static const struct {
    const char *name;
    cd_llm_op_kind kind;
} others[] = {{"context_attention", CD_LLM_OP_PREFILL},
              {"generation_attention", CD_LLM_OP_DECODE},
              {"context_mla", CD_LLM_OP_LATENT_PREFILL},
              {"mla_context", CD_LLM_OP_LATENT_PREFILL},
              {"generation_mla", CD_LLM_OP_LATENT_DECODE},
              {"mla_generation", CD_LLM_OP_LATENT_DECODE},
              {"custom_allreduce", CD_LLM_OP_ALL_REDUCE},
              {"allreduce", CD_LLM_OP_ALL_REDUCE},
              {"alltoall", CD_LLM_OP_ALL_TO_ALL},
              {"mla_gen_pre", CD_LLM_OP_GEMM},
              {"mla_gen_post", CD_LLM_OP_GEMM},
              {"scale_matrix", CD_LLM_OP_ELEMENTWISE},
              {"bmm", CD_LLM_OP_GEMM},
              {"linear", CD_LLM_OP_GEMM},
              {"layernorm", CD_LLM_OP_NORM},
              {"rmsnorm", CD_LLM_OP_NORM}};
enum { N_OTHER = sizeof others / sizeof *others };

static const double standard[CD_LLM_OP_N_PARAM] = {
#define P(ID, column, other, third, standard, meaning) standard,
#include "features/operators/llm_op_kinds.def"
};

/* ---- names ---- */
static bool kind_of(const char *s, cd_llm_op_kind *out) {
    for (int k = 0; k < CD_LLM_OP_N_KIND; k++)
        if (!strcasecmp(s, cd_llm_op_kind_name((cd_llm_op_kind)k)))
            return *out = (cd_llm_op_kind)k, true;
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
        if (!strcasecmp(s, t[k].name) || (t[k].other[0] && !strcasecmp(s, t[k].other)))
            return *out = k, true;
    return false;
}

cdmpp_status cd_llm_op_reader_open(const char *path, cd_dict *names, cd_op_reader **out,
                                   cdmpp_err *err) {
    uint32_t empty;
    cd_llm_op_kind k;
    cd_op_reader *r = NULL;
    if (!names->n)
        CD_TRY(cd_err_at(err, cd_dict_add(names, (cd_str){"", 0}, &empty, err), path, 1));
    CD_TRY(cd_op_reader_new(path, &columns, names, &r, err));
    *out = r;
    if (r->in.has[OP] || kind_of(r->table, &k)) return CDMPP_OK;
    const cdmpp_status st = CD_FAIL(
        err, ESCHEMA, "expected a column op, or a file that is called by an operator; found '%s'",
        r->table);
    cd_op_reader_close(r);
    *out = NULL;
    return cd_err_at(err, st, path, 1);
}

/* ---- one row ---- */
static bool given(const cd_op_row *r, int c) { return cd_op_row_given(r, c); }

static cdmpp_status size_of(const cd_op_row *r, cd_llm_op_param p, double *out, cdmpp_err *err) {
    const double low = standard[p] < 0 ? 1 : standard[p] < 1 ? 0 : 1;
    if (!given(r, (int)p) && standard[p] >= 0) return *out = standard[p], CDMPP_OK;
    return cd_op_row_whole(r, (int)p, low, SIZE_BITS, out, err);
}

/* What the tables of aiconfigurator mean (README of the tables): a decode of isl + step tokens has
 * isl + step - 1 of them in the cache; messages are counted in elements; the two products around a
 * latent decode are (tokens, 128) by (128, 512) and (tokens, 512) by (512, 128) for each head; the
 * rows of scale_matrix are m of k. */
static cdmpp_status renamed(const cd_op_row *r, const char *op, cd_llm_op_record *o,
                            bool done[CD_LLM_OP_MAX_SIZE], cdmpp_err *err) {
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
    } else if ((o->kind == CD_LLM_OP_DECODE || o->kind == CD_LLM_OP_LATENT_DECODE) &&
               given(r, CD_LLM_OP_P_ISL)) {
        CD_TRY(size_of(r, CD_LLM_OP_P_ISL, &x, err));
        CD_TRY(size_of(r, CD_LLM_OP_P_PAST, &o->size[0], err));
        o->size[0] += x - 1;
        done[0] = true;
    } else if (cd_llm_op_size_param((cd_llm_op_kind)o->kind, 0) == CD_LLM_OP_P_BYTES &&
               !given(r, CD_LLM_OP_P_BYTES) && given(r, ELEMENTS)) {
        CD_TRY(cd_op_row_number(r, ELEMENTS, &x, err));
        o->size[0] = x * cd_llm_op_type_input_bytes((cd_llm_op_type)o->type);
        if (!(o->size[0] >= 1 && o->size[0] <= MAX_SIZE))
            return cd_err_key(err,
                              CD_FAIL(err, ERANGE, "expected 1..2^40 bytes, found %g", o->size[0]),
                              "message_size");
        done[0] = true;
    }
    return CDMPP_OK;
}

/* Sizes that contradict each other. */
static cdmpp_status sensible(const cd_llm_op_record *r, cdmpp_err *err) {
    const double heads = cd_llm_op_get(r, CD_LLM_OP_P_HEADS),
                 kv = cd_llm_op_get(r, CD_LLM_OP_P_KV_HEADS);
    const double experts = cd_llm_op_get(r, CD_LLM_OP_P_EXPERTS),
                 gpus = cd_llm_op_get(r, CD_LLM_OP_P_GPUS);
    if (kv > heads)
        return cd_err_key(
            err, CD_FAIL(err, ERANGE, "expected at most %g, the query heads, found %g", heads, kv),
            "num_key_value_heads");
    if (cd_llm_op_get(r, CD_LLM_OP_P_TOPK) > experts)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE, "expected at most %g, the experts, found %g",
                                  experts, cd_llm_op_get(r, CD_LLM_OP_P_TOPK)),
                          "topk");
    if (cd_llm_op_get(r, CD_LLM_OP_P_EP) > experts)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE, "expected at most %g, the experts, found %g",
                                  experts, cd_llm_op_get(r, CD_LLM_OP_P_EP)),
                          "moe_ep_size");
    if (gpus > 0 && gpus < 2)
        return cd_err_key(err, CD_FAIL(err, ERANGE, "expected 2 GPUs or more, found %g", gpus),
                          "num_gpus");
    return CDMPP_OK;
}

/* Where names of stacks and kernels stand: a table adds them, a question finds them. */
typedef struct {
    cd_dict *grow;
    const cd_dict *closed; /* grow NULL */
} names_of;

static uint32_t number_of_name(const cd_dict *d, const char *text) {
    char other[CD_OP_MAX_NAME + 2];
    uint32_t k = 0;
    if (cd_dict_find(d, (cd_str){text, strlen(text)}, &k)) return k;
    const int n = snprintf(other, sizeof other, "%.*s-?", (int)strcspn(text, "-"), text);
    if (n < (int)sizeof other && cd_dict_find(d, (cd_str){other, (size_t)n}, &k)) return k;
    (void)cd_dict_find(d, (cd_str){"?", 1}, &k);
    return k;
}

static cdmpp_status word(const cd_op_row *r, int c, const names_of *names, uint16_t *out,
                         cdmpp_err *err) {
    const char *text;
    uint32_t k = 0;
    CD_TRY(cd_op_row_text(r, c, &text, err));
    if (text[0] && names->grow)
        CD_TRY(cd_dict_add(names->grow, (cd_str){text, strlen(text)}, &k, err));
    else if (text[0]) k = number_of_name(names->closed, text);
    if (k > UINT16_MAX) return CD_FAIL(err, ERANGE, "more than 65535 names of stacks and kernels");
    *out = (uint16_t)k;
    return CDMPP_OK;
}

static cdmpp_status types(const cd_op_row *r, cd_llm_op_record *o, cdmpp_err *err) {
    const char *type, *kv, *d;
    char *end = NULL;
    CD_TRY(cd_op_row_text(r, DTYPE, &type, err));
    CD_TRY(cd_op_row_text(r, KV, &kv, err));
    CD_TRY(cd_op_row_text(r, DISTRIBUTION, &d, err));
    o->type = CD_LLM_OP_T_BF16;
    if (type[0] && !type_of(type, &o->type))
        return cd_err_key(
            err,
            CD_FAIL(err, EUNSUPPORTED,
                    "unknown type '%.40s' (docs/reference/llm-operators.md has the list)", type),
            "dtype");
    o->kv = o->type;
    if (kv[0] && !type_of(kv, &o->kv))
        return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "unknown type '%.40s' of the cache", kv),
                          "kv_dtype");
    if (!d[0] || !strcasecmp(d, "balanced")) return CDMPP_OK;
    o->skew = strncasecmp(d, "power_law_", 10) ? 0 : strtod(d + 10, &end);
    if (!end || *end || !(o->skew > 0 && o->skew <= MAX_SKEW))
        return cd_err_key(
            err, CD_FAIL(err, EUNSUPPORTED, "expected balanced or power_law_A, found '%.40s'", d),
            "distribution");
    return CDMPP_OK;
}

static cdmpp_status latency(const cd_op_row *r, cd_llm_op_record *o, bool *no_time,
                            cdmpp_err *err) {
    const int c = given(r, SECONDS) ? SECONDS : MILLISECONDS;
    char said[48];
    if (!given(r, c)) return CDMPP_OK;
    CD_TRY(cd_op_row_number(r, c, &o->latency_s, err));
    if (c == MILLISECONDS) o->latency_s *= 1e-3;
    if (o->latency_s > 0 && o->latency_s <= MAX_SECONDS) return CDMPP_OK;
    *no_time = o->latency_s <= 0;
    return cd_err_key(
        err, CD_FAIL(err, ERANGE, "expected a time above 0, found %s", cd_op_row_said(r, c, said)),
        c == SECONDS ? "latency_s" : "latency_ms");
}

/* `table`: the operator of a row that names none. */
static cdmpp_status row(const cd_op_row *r, const char *table, const names_of *names,
                        cd_llm_op_record *o, bool *no_time, cdmpp_err *err) {
    bool done[CD_LLM_OP_MAX_SIZE] = {false};
    const char *op;
    cd_llm_op_kind kind;
    memset(o, 0, sizeof *o);
    CD_TRY(cd_op_row_text(r, OP, &op, err));
    if (!op[0]) op = table;
    if (!kind_of(op, &kind))
        return cd_err_key(
            err,
            CD_FAIL(err, EUNSUPPORTED,
                    "unknown operator '%.60s' (docs/reference/llm-operators.md has the list)", op),
            "op");
    o->kind = (uint8_t)kind;
    CD_TRY(types(r, o, err));
    if (kind != CD_LLM_OP_MOE) o->skew = 0;
    CD_TRY(renamed(r, op, o, done, err));
    for (size_t i = 0; i < cd_llm_op_n_size(kind); i++)
        if (!done[i]) CD_TRY(size_of(r, cd_llm_op_size_param(kind, i), &o->size[i], err));
    CD_TRY(sensible(o, err));
    CD_TRY(word(r, STACK, names, &o->stack, err));
    CD_TRY(word(r, KERNEL, names, &o->kernel, err));
    return latency(r, o, no_time, err);
}

cdmpp_status cd_llm_op_reader_next(cd_op_reader *r, cd_llm_op_record *out, const char **device,
                                   bool *more, bool *no_time, cdmpp_err *err) {
    *no_time = false;
    cdmpp_status st = cd_op_lines_next(&r->in, more, err);
    if (!*more) return st;
    if (!st) st = row(&r->in.row, r->table, &(names_of){.grow = r->names}, out, no_time, err);
    if (!st) st = cd_op_row_text(&r->in.row, DEVICE, device, err);
    if (!st && !(*device)[0]) *device = r->folder;
    return cd_op_lines_at(&r->in, st, err);
}

/* ---- named values ---- */
cdmpp_status cd_llm_op_names_close(cd_dict *names, cdmpp_err *err) {
    const size_t n = names->n;
    uint32_t k;
    CD_TRY(cd_dict_add(names, (cd_str){"", 0}, &k, err)); /* number 0, where it is the first */
    for (size_t i = 0; i < n; i++) {
        char other[CD_OP_MAX_NAME + 2];
        const int m = snprintf(other, sizeof other, "%.*s-?", (int)strcspn(names->text[i], "-"),
                               names->text[i]);
        if (names->text[i][0] && m < (int)sizeof other)
            CD_TRY(cd_dict_add(names, (cd_str){other, (size_t)m}, &k, err));
        if (names->text[i][0] && m < (int)sizeof other)
            CD_TRY(cd_dict_add(names, (cd_str){other, (size_t)m - 2}, &k, err));
    }
    return cd_dict_add(names, (cd_str){"?", 1}, &k, err);
}

static cdmpp_status unknown_name(const char *name, cdmpp_err *err) {
    const char *all[sizeof column_names / sizeof *column_names], *near = NULL;
    for (size_t i = 0; i < columns.n; i++) all[i] = column_names[i].name;
    (void)cd_did_you_mean_several(name, all, columns.n, &near, 1);
    return CD_FAIL(err, ESCHEMA, "unknown member '%.40s'%s%s%s", name,
                   near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

cdmpp_status cd_llm_op_from_named(const cd_op_named *v, size_t n, const cd_dict *closed,
                                  cd_llm_op_record *out, const char **device, cdmpp_err *err) {
    cd_op_row r;
    bool no_time = false;
    op_row_clear(&r, &columns);
    for (size_t i = 0; i < n; i++) {
        const int c = cd_op_columns_find(&columns, v[i].name);
        if (c < 0) return unknown_name(v[i].name, err);
        const bool none = !v[i].text && isnan(v[i].number);
        if (none) continue; /* as if it were not there */
        if (c == SECONDS || c == MILLISECONDS)
            return cd_err_key(err, CD_FAIL(err, ESCHEMA, "a question has no time"), v[i].name);
        if (r.value[c].text || !isnan(r.value[c].number))
            return cd_err_key(err, CD_FAIL(err, ESCHEMA, "it comes twice"), v[i].name);
        r.value[c] = (cd_op_value){v[i].text, v[i].number};
    }
    if (!given(&r, OP))
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected the name of an operator"), "op");
    CD_TRY(row(&r, "", &(names_of){.closed = closed}, out, &no_time, err));
    return cd_op_row_text(&r, DEVICE, device, err);
}
