/* store_opbench -- what EOP, OpBench and AutoTVM left: CSV tables of times, and AutoTVM's logs.
 *
 *   EOP      op_name,op_time,op_proportion                            nanoseconds of all operators
 *     of a type in one network
 *   EOP      a_name,forward_fw_inputsize,forward_fw_mean_time,..      nanoseconds of one operator
 *   OpBench  task_name,trial,costs,..                                 seconds of one trial of a
 *     task
 *   AutoTVM  {"input": [target, task, args, kwargs], "config": {..}, "result": [[s, ..], error,
 *            total_s, timestamp], ..}
 *
 *   (1) tables tell no shapes: a workload is named by the operator, the file and its folder
 *       (["nn.conv2d","t4/resnet-18"]);
 *   (2) an AutoTVM line keeps its text in the environment (extra.autotvm), since its configuration
 *       is no list of steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "profiler/store/store_internal.h"

enum { MAX_FIELD = 64, MAX_COST = 256 };
#define FAILED_S 1e9 /* TVM writes 1e10 for a failed trial */

typedef struct table {
    cd_store_reading *r;
    bool header;                     /* it was read */
    size_t name, time, deviation, n; /* columns; deviation: n where there is none */
    double units;                    /* in a second; divided by, so that decimal times stay short */
    uint32_t flags;
    cd_buf key, extra;
} table;

typedef cdmpp_status take_line(table *t, char *line, size_t len, long number, cdmpp_err *err);

/* ---- tables ---- */
static bool is(cd_str s, const char *name) {
    while (s.n && (*s.p == ' ' || *s.p == '\t')) s.p++, s.n--;
    return s.n >= strlen(name) && !memcmp(s.p, name, strlen(name)) &&
           (s.n == strlen(name) || s.p[strlen(name)] == ' ' || s.p[strlen(name)] == '(' ||
            s.p[strlen(name)] == '\r');
}

static size_t column(const cd_str *f, size_t n, const char *name) {
    size_t at = 0;
    while (at < n && !is(f[at], name)) at++;
    return at;
}

static cdmpp_status read_header(table *t, const cd_str *f, size_t n, cdmpp_err *err) {
    static const struct {
        const char *name, *time, *deviation;
        double units;
        uint32_t flags;
    } form[] = {
        {"op_name", "op_time", "", 1e9, CD_STORE_SUMMARY},
        {"a_name", "forward_fw_mean_time", "forward_fw_stdvar_time", 1e9, 0},
        {"task_name", "costs", "", 1, 0},
    };
    for (size_t i = 0; i < sizeof form / sizeof *form; i++) {
        t->name = column(f, n, form[i].name);
        t->time = column(f, n, form[i].time);
        t->deviation = *form[i].deviation ? column(f, n, form[i].deviation) : n;
        t->n = n;
        t->units = form[i].units;
        t->flags = form[i].flags;
        if (t->name < n && t->time < n) return CDMPP_OK;
    }
    return CD_FAIL(err, ESCHEMA,
                   "expected the columns op_name and op_time, a_name and forward_fw_mean_time, or "
                   "task_name and costs");
}

static cdmpp_status number_of(cd_str s, const char *column_name, double *out, cdmpp_err *err) {
    char text[64], *end;
    snprintf(text, sizeof text, "%.*s", (int)(s.n < sizeof text ? s.n : sizeof text - 1), s.p);
    *out = strtod(text, &end);
    end += strspn(end, " \t\r");
    return end == text || *end
               ? CD_FAIL(err, ESCHEMA, "%s: expected a number, found '%.30s'", column_name, text)
               : CDMPP_OK;
}

/* "t4/resnet-18" of ".../t4/resnet-18.csv". */
static cd_str place_of(const char *path) {
    const char *file = strrchr(path, '/'), *begin = file ? file : path;
    while (begin > path && begin[-1] != '/') begin--;
    return (cd_str){begin, (size_t)((file ? file + 1 : path) - begin) +
                               strcspn(file ? file + 1 : path, ".")};
}

/* The row's names: of a workload key as OpBench's files of cdmpp-tune have it, by the key; else by
 * operator and place. */
static cdmpp_status name_row(table *t, cd_str name, cd_store_row *row, cdmpp_err *err) {
    cd_buf *b = &t->key;
    if (name.n && *name.p == '[') {
        row->workload_key = name;
        return cd_store_describe_key(&t->r->arena, name, row, err);
    }
    const cd_str place = place_of(t->r->path);
    cd_buf_clear(b);
    cd_buf_puts(b, "[");
    cd_buf_put_json_str(b, name.p, name.n);
    cd_buf_puts(b, ",");
    cd_buf_put_json_str(b, place.p, place.n);
    cd_buf_puts(b, "]");
    if (b->oom) return CD_FAIL(err, ENOMEM, "workload key");
    row->workload_key = (cd_str){b->p, b->n};
    row->operator_name = name;
    row->shape = (cd_str){"[]", 2};
    return CDMPP_OK;
}

static cdmpp_status take_row(table *t, char *line, size_t len, long number, cdmpp_err *err) {
    cd_str f[MAX_FIELD];
    size_t n;
    double time, deviation = 0;
    CD_TRY(cd_csv_fields_split(line, len, f, MAX_FIELD, &n, err));
    if (!t->header) {
        t->header = true;
        return read_header(t, f, n, err);
    }
    if (n < t->n) return CD_FAIL(err, ESCHEMA, "expected %zu fields, found %zu", t->n, n);
    CD_TRY(number_of(f[t->time], "time", &time, err));
    if (t->deviation < t->n) CD_TRY(number_of(f[t->deviation], "deviation", &deviation, err));
    if (!f[t->name].n) return CD_FAIL(err, ESCHEMA, "expected the name of an operator, found none");
    time /= t->units;
    cd_store_row row = {.device = t->r->device,
                        .target = {"tvm", 3},
                        .target_tail = {"[]", 2},
                        .flop = -1,
                        .env = t->r->how->env,
                        .line = number,
                        .error_no = time >= FAILED_S ? 8 : 0};
    CD_TRY(name_row(t, f[t->name], &row, err));
    cd_store_latency_of(&time, row.error_no ? 0 : 1, &row.latency);
    row.latency.std_s = deviation / t->units;
    row.latency.cv = row.latency.mean_s > 0 ? row.latency.std_s / row.latency.mean_s : 0;
    row.latency.flags |= t->flags;
    return cd_store_take(t->r, &row, err);
}

/* ---- AutoTVM's logs ---- */
static void put_json(cd_buf *b, const cd_json *v) {
    switch (v->kind) {
    case CD_JSON_NULL: cd_buf_puts(b, "null"); return;
    case CD_JSON_BOOL: cd_buf_puts(b, v->u.i ? "true" : "false"); return;
    case CD_JSON_INT: cd_buf_put_int(b, v->u.i); return;
    case CD_JSON_REAL: cd_buf_put_json_real(b, v->u.f); return;
    case CD_JSON_STR: cd_buf_put_json_str(b, v->u.s.p, v->u.s.n); return;
    case CD_JSON_ARR:
    case CD_JSON_OBJ: break;
    }
    cd_buf_puts(b, v->kind == CD_JSON_ARR ? "[" : "{");
    for (const cd_json *c = v->u.child; c; c = c->next) {
        if (c != v->u.child) cd_buf_puts(b, ",");
        if (v->kind == CD_JSON_OBJ) cd_buf_put_json_str(b, c->key.p, c->key.n), cd_buf_puts(b, ":");
        put_json(b, c);
    }
    cd_buf_puts(b, v->kind == CD_JSON_ARR ? "]" : "}");
}

/* "[[1,64],[64,64]]" of the arguments ["TENSOR", [1, 64], "float32"], and the type of the first. */
static void put_shape(cd_buf *b, const cd_json *args, cd_str *dtype) {
    const size_t begin = b->n;
    for (const cd_json *a = args->u.child; a; a = a->next) {
        const cd_json *tag = a->kind == CD_JSON_ARR ? a->u.child : NULL;
        if (!tag || tag->kind != CD_JSON_STR || !cd_str_eq(tag->u.s, (cd_str){"TENSOR", 6}) ||
            !tag->next || tag->next->kind != CD_JSON_ARR)
            continue;
        cd_buf_puts(b, b->n > begin ? "," : "[");
        put_json(b, tag->next);
        if (!dtype->n && tag->next->next && tag->next->next->kind == CD_JSON_STR)
            *dtype = tag->next->next->u.s;
    }
    cd_buf_puts(b, b->n > begin ? "]" : "[]");
}

static const cd_json *item(const cd_json *list, int at, cd_json_kind kind) {
    const cd_json *v = list && list->kind == CD_JSON_ARR ? list->u.child : NULL;
    while (v && at--) v = v->next;
    return v && v->kind == kind ? v : NULL;
}

static double real_of(const cd_json *v) {
    return !v ? 0 : v->kind == CD_JSON_INT ? (double)v->u.i : v->kind == CD_JSON_REAL ? v->u.f : 0;
}

/* Texts of key and shape lie one behind the other in t->key. */
static cdmpp_status name_task(table *t, const cd_json *task, const cd_json *args, cd_store_row *row,
                              cdmpp_err *err) {
    cd_buf_clear(&t->key);
    cd_buf_puts(&t->key, "[");
    put_json(&t->key, task);
    cd_buf_puts(&t->key, ",");
    put_json(&t->key, args);
    cd_buf_puts(&t->key, "]");
    const size_t n = t->key.n;
    put_shape(&t->key, args, &row->dtype);
    if (t->key.oom) return CD_FAIL(err, ENOMEM, "workload key");
    row->workload_key = (cd_str){t->key.p, n};
    row->shape = (cd_str){t->key.p + n, t->key.n - n};
    row->operator_name = task->u.s;
    row->known = true;
    return CDMPP_OK;
}

static cdmpp_status take_costs(const cd_json *result, double *cost, cd_store_row *row,
                               cdmpp_err *err) {
    const cd_json *costs = item(result, 0, CD_JSON_ARR), *error = item(result, 1, CD_JSON_INT);
    if (!costs || !error)
        return CD_FAIL(err, ESCHEMA, "expected \"result\": [[seconds, ...], error number, ...]");
    row->error_no = error->u.i;
    for (const cd_json *c = costs->u.child; c && !row->error_no && row->n_cost < MAX_COST;
         c = c->next)
        cost[row->n_cost++] = real_of(c);
    if (!row->error_no && !row->n_cost)
        return CD_FAIL(err, ESCHEMA, "expected seconds, found none");
    double sorted[MAX_COST];
    memcpy(sorted, cost, row->n_cost * sizeof *cost);
    cd_store_latency_of(sorted, row->n_cost, &row->latency);
    row->cost_s = cost;
    row->total_s = real_of(result->u.child->next->next);
    const double at = result->u.child->next->next ? real_of(result->u.child->next->next->next) : 0;
    row->timestamp = at > 0 && at < 1e12 ? (int64_t)at : 0;
    return CDMPP_OK;
}

static cdmpp_status take_tuned(table *t, char *line, size_t len, long number, cdmpp_err *err) {
    double cost[MAX_COST];
    const cd_json *v, *input, *result;
    cd_store_env env = t->r->how->env ? *t->r->how->env : (cd_store_env){0};
    CD_TRY(cd_json_parse(&t->r->arena, line, len, &v, err));
    CD_TRY(cd_json_need(v, "input", &input, err));
    CD_TRY(cd_json_need(v, "result", &result, err));
    const cd_json *target = item(input, 0, CD_JSON_STR), *task = item(input, 1, CD_JSON_STR),
                  *args = item(input, 2, CD_JSON_ARR);
    if (!target || !task || !args)
        return CD_FAIL(err, ESCHEMA, "expected \"input\": [target, task, arguments, ...]");
    cd_buf_clear(&t->extra);
    cd_buf_puts(&t->extra, "{\"autotvm\":");
    put_json(&t->extra, v);
    cd_buf_puts(&t->extra, "}");
    if (t->extra.oom) return CD_FAIL(err, ENOMEM, "line");
    env.extra = (cd_str){t->extra.p, t->extra.n};
    char *kind = cd_str_dup(&t->r->arena, target->u.s);
    if (!kind) return CD_FAIL(err, ENOMEM, "target");
    cd_store_row row = {.device = t->r->device.n ? t->r->device : cd_target_option(kind, "-model"),
                        .target = target->u.s,
                        .target_tail = {"[]", 2},
                        .flop = -1,
                        .env = &env,
                        .line = number};
    CD_TRY(name_task(t, task, args, &row, err));
    CD_TRY(take_costs(result, cost, &row, err));
    return cd_store_take(t->r, &row, err);
}

/* ---- lines ---- */
/* A file that breaks off keeps what was read before it; a table without its header is none. */
static cdmpp_status each_line(table *t, cd_file_lines *l, take_line *take, cdmpp_err *err) {
    cd_store_reading *r = t->r;
    for (uint64_t n = 0;;) {
        char *line;
        size_t len;
        cdmpp_err e = {0};
        cdmpp_status st = cd_file_lines_next(l, &line, &len, &e);
        const bool broken = st && st != CDMPP_ERANGE, head = !t->header && take == take_row;
        if (!st && !line) return cd_store_mark(r, n, true, err);
        n++;
        cd_arena_reset(&r->arena);
        if (!st && len && (head || n > r->first)) {
            r->tally->lines += !head;
            st = cd_err_at(&e, take(t, line, len, (long)n, &e), r->path, (long)n);
        }
        if (st && head && err) *err = e;
        if (st && head) return st;
        if (st) CD_TRY(cd_store_bad(r, st, &e, err));
        if (broken) return cd_store_mark(r, n, true, err);
        if (n > r->first) CD_TRY(cd_store_mark(r, n, false, err));
    }
}

static cdmpp_status read_lines(cd_store_reading *r, take_line *take, cdmpp_err *err) {
    table t = {.r = r};
    cd_file_lines *l = NULL;
    CD_TRY(cd_file_lines_open(r->path, 0, &l, err));
    const cdmpp_status st = each_line(&t, l, take, err);
    cd_file_lines_close(l);
    cd_buf_free(&t.key);
    cd_buf_free(&t.extra);
    return st;
}

cdmpp_status cd_store_read_opbench(cd_store_reading *r, cdmpp_err *err) {
    return read_lines(r, take_row, err);
}
cdmpp_status cd_store_read_autotvm(cd_store_reading *r, cdmpp_err *err) {
    return read_lines(r, take_tuned, err);
}
