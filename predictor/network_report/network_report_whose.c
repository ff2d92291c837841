/* Whose latency a table has: who compiled the programs, with which schedules, on how much of the
 * device. An estimate of cdmpp is of programs that cdmpp chose; who compares it with another
 * runtime's time has to know that. */
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "predictor/network_report/network_report.h"
#include "predictor/network_report/network_report_internal.h"
#include "predictor/network_report/web/page.html.h"
#include "predictor/network_report/web/page_operators.js.h"
#include "predictor/network_report/web/page_table.js.h"
#include "profiler/describe/describe.h"

typedef struct {
    bool tasks, own, other, records, library, given; /* own, other: compiled by cdmpp, or by whoever
                                                        compiled the records of the training */
    char where[3][48];                               /* (n_where) "one core", "a GPU" */
    size_t n_where;
} sources;

static void add_where(sources *p, const char *text) {
    for (size_t i = 0; i < p->n_where; i++)
        if (!strcmp(p->where[i], text)) return;
    if (p->n_where < sizeof p->where / sizeof *p->where)
        (void)snprintf(p->where[p->n_where++], sizeof *p->where, "%s", text);
}

static void add_device(const cd_network_estimate *e, const cd_network_estimate_device *d,
                       sources *p) {
    const cd_device *about = cd_model_set_device(&e->models, d->scaled ? d->stands : d->name);
    const char *name = d->stands ? d->stands : d->name,
               *path = cd_model_set_path(&e->models, d->model);
    char cores[CD_MODEL_SET_CORES], all[48];
    const bool by_us = cd_describe_is_own(name) || cd_model_set_stands(&e->models, name) ||
                       (path && path == e->models.gpu_default);
    p->own |= by_us;
    p->other |= !by_us;
    if (d->gpu) {
        add_where(p, "one GPU");
        return;
    }
    if (!about) return;
    const char *some = cd_model_set_cores(about, cores);
    (void)snprintf(all, sizeof all, "all %.0f cores", about->cores);
    if (some || about->cores >= 1) add_where(p, some ? some : all);
}

static void add_case(const cd_network_estimate *e, const cd_network_estimate_case *c, sources *p) {
    const cd_network_graph *g = c->source->graph;
    for (uint32_t k = 0; k < g->n_node; k++) {
        const cd_cost_source from = cd_network_estimate_case_cost(c, k)->source;
        p->tasks |= from == CD_COST_MODEL;
        p->records |= from == CD_COST_RECORD;
        p->library |= from == CD_COST_LIBRARY;
        p->given |= from == CD_COST_GIVEN;
    }
    for (uint32_t k = 0; k < c->n_place; k++)
        if (c->cost[k]->n_model || c->place[k]->model) add_device(e, c->place[k], p);
}

static void put_part(cd_buf *b, bool is, const char *text, bool *any) {
    if (!is) return;
    cd_buf_putf(b, "%s%s", *any ? ", " : "Latency of ", text);
    *any = true;
}

void cd_network_report_whose(const cd_network_estimate *e, cd_buf *b) {
    sources p = {0};
    char programs[160];
    bool any = false;
    for (size_t k = 0; k < e->n_item; k++)
        if (!e->item[k].st) add_case(e, &e->item[k], &p);
    const bool logs = e->o->records.n || e->o->store.n || e->o->schedules.n;
    (void)snprintf(programs, sizeof programs, "programs compiled by %s with %s",
                   p.other ? "TVM or cdmpp" : "cdmpp",
                   !logs          ? "schedules that cdmpp chose"
                   : e->o->trials ? "the schedules given, else those that cdmpp chose"
                                  : "the schedules given");
    put_part(b, p.tasks, programs, &any);
    put_part(b, p.records, "programs as their records measured them", &any);
    put_part(b, p.library, "operators of libraries", &any);
    put_part(b, p.given, "operators by the times in the file", &any);
    for (size_t i = 0; any && i < p.n_where; i++)
        cd_buf_putf(b, "%s%s", i ? " or " : ", on ", p.where[i]);
    if (any)
        cd_buf_puts(b, p.library || p.given ? "." : "; not of ONNX Runtime, PyTorch or TensorRT.");
}

const char *cd_network_report_device(const cd_network_estimate_device *d,
                                     char out[CD_NETWORK_REPORT_DEVICE]) {
    if (d->guessed)
        (void)snprintf(out, CD_NETWORK_REPORT_DEVICE, "this %s (as %.120s)", d->gpu ? "GPU" : "CPU",
                       d->stands ? d->stands : d->name);
    else if (d->stands && strcmp(d->stands, d->name) != 0)
        (void)snprintf(out, CD_NETWORK_REPORT_DEVICE, "%.72s (as %.72s)", d->name, d->stands);
    else (void)snprintf(out, CD_NETWORK_REPORT_DEVICE, "%s", d->name);
    return out;
}

/* The page: data, style and scripts in one file that needs nothing from outside.
 *
 * Properties of operators are lists, one for each property, and times are whole nanoseconds: both
 * keep the page small. Only the first cases have a timeline, MAX_SLICES operators in all: a browser
 * cannot show hundreds of megabytes. */

enum { MAX_SLICES = 200000 };

/* ---- numbers of texts: types and schedules, which repeat, are written once ---- */
typedef struct {
    const char **text; /* (n) as they were first seen */
    uint32_t *slot;    /* (cap) 1 + place in text; 0: empty */
    uint32_t n, cap;
} texts;

static bool texts_new(texts *t, uint32_t most) {
    t->n = 0;
    for (t->cap = 16; t->cap < 2 * most; t->cap *= 2) {
    }
    t->text = cd_mem_alloc((most + 1u) * sizeof(const char *));
    t->slot = cd_mem_zalloc(t->cap, sizeof *t->slot);
    return t->text && t->slot;
}

static void texts_free(texts *t) {
    cd_mem_free(t->text);
    cd_mem_free(t->slot);
}

static uint32_t number_of(texts *t, const char *s) {
    uint32_t h = 2166136261u;
    for (const char *c = s; *c; c++) h = (h ^ (unsigned char)*c) * 16777619u;
    for (h &= t->cap - 1; t->slot[h]; h = (h + 1) & (t->cap - 1))
        if (!strcmp(t->text[t->slot[h] - 1], s)) return t->slot[h] - 1;
    t->text[t->n++] = s;
    t->slot[h] = t->n;
    return t->n - 1;
}

static void put_texts(const texts *t, const char *key, cd_buf *b) {
    cd_buf_putf(b, ",\"%s\":[", key);
    for (uint32_t k = 0; k < t->n; k++) {
        if (k) cd_buf_puts(b, ",");
        cd_timeline_page_text(b, t->text[k]);
    }
    cd_buf_puts(b, "]");
}

/* ---- operators, a list for each property ---- */
typedef void item_put(const cd_network_estimate_case *c, uint32_t op, void *ctx, cd_buf *b);
static const cd_node_cost_entry *cost_of(const cd_network_estimate_case *c, uint32_t op) {
    return cd_network_estimate_case_cost(c, c->net->of[op]);
}
static double runs_of(const cd_network_estimate_case *c, uint32_t op) {
    return (double)cd_network_estimate_node(c, op)->repeat;
}
static void item_name(const cd_network_estimate_case *c, uint32_t op, void *ctx, cd_buf *b) {
    (void)ctx, cd_timeline_page_text(b, cd_network_estimate_node(c, op)->name);
}
static void item_start(const cd_network_estimate_case *c, uint32_t op, void *ctx, cd_buf *b) {
    (void)ctx, cd_timeline_page_ns(b, c->replay.op[op].start_s);
}
static void item_end(const cd_network_estimate_case *c, uint32_t op, void *ctx, cd_buf *b) {
    (void)ctx, cd_timeline_page_ns(b, c->replay.op[op].end_s);
}
static void item_low(const cd_network_estimate_case *c, uint32_t op, void *ctx, cd_buf *b) {
    (void)ctx, cd_timeline_page_ns(b, cost_of(c, op)->low_s * runs_of(c, op));
}
static void item_high(const cd_network_estimate_case *c, uint32_t op, void *ctx, cd_buf *b) {
    (void)ctx, cd_timeline_page_ns(b, cost_of(c, op)->high_s * runs_of(c, op));
}
static void item_lane(const cd_network_estimate_case *c, uint32_t op, void *ctx, cd_buf *b) {
    (void)ctx, cd_buf_put_int(b, c->net->net.op[op].device);
}
static void item_worker(const cd_network_estimate_case *c, uint32_t op, void *ctx, cd_buf *b) {
    (void)ctx, cd_buf_put_int(b, c->replay.op[op].worker);
}
static void item_source(const cd_network_estimate_case *c, uint32_t op, void *ctx, cd_buf *b) {
    (void)ctx, cd_buf_put_int(b, (int64_t)cost_of(c, op)->source);
}
static void item_type(const cd_network_estimate_case *c, uint32_t op, void *ctx, cd_buf *b) {
    const char *t = cd_network_estimate_node(c, op)->op;
    cd_buf_put_int(b, number_of(ctx, t && t[0] ? t : "operator"));
}
static void item_schedule(const cd_network_estimate_case *c, uint32_t op, void *ctx, cd_buf *b) {
    const char *s = cost_of(c, op)->schedule;
    cd_buf_put_int(b, s ? (int64_t)number_of(ctx, s) : -1);
}
static void item_unlike(const cd_network_estimate_case *c, uint32_t op, void *ctx, cd_buf *b) {
    const char *s = cost_of(c, op)->unlike;
    cd_buf_put_int(b, s ? (int64_t)number_of(ctx, s) : -1);
}
static void item_critical(const cd_network_estimate_case *c, uint32_t op, void *ctx, cd_buf *b) {
    (void)c, cd_buf_put_int(b, ((const bool *)ctx)[op]);
}
static void item_after(const cd_network_estimate_case *c, uint32_t op, void *ctx, cd_buf *b) {
    const cd_replay_op *o = &c->net->net.op[op];
    (void)ctx;
    cd_buf_puts(b, "[");
    for (uint32_t k = 0; k < o->n_after; k++)
        cd_buf_putf(b, "%s%u", k ? "," : "", c->net->net.after[o->first + k]);
    cd_buf_puts(b, "]");
}

static void put_list(const cd_network_estimate_case *c, const char *key, item_put *put, void *ctx,
                     cd_buf *b) {
    cd_buf_putf(b, "\"%s\":[", key);
    for (uint32_t k = 0; k < c->net->net.n_op; k++) {
        if (k) cd_buf_puts(b, ",");
        put(c, k, ctx, b);
    }
    cd_buf_puts(b, "]");
}

/* The order of the lists matters: `type`, `schedule` and `unlike` number their texts as they write
 * them. */
static void put_lists(const cd_network_estimate_case *c, texts *type, texts *schedule,
                      texts *unlike, bool *critical, cd_buf *b) {
    const struct {
        const char *key;
        item_put *put;
        void *ctx;
    } list[] = {{"name", item_name, NULL},       {"start", item_start, NULL},
                {"end", item_end, NULL},         {"low", item_low, NULL},
                {"high", item_high, NULL},       {"lane", item_lane, NULL},
                {"worker", item_worker, NULL},   {"source", item_source, NULL},
                {"type", item_type, type},       {"schedule", item_schedule, schedule},
                {"unlike", item_unlike, unlike}, {"critical", item_critical, critical},
                {"after", item_after, NULL}};
    cd_buf_puts(b, ",\"ops\":{");
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        if (k) cd_buf_puts(b, ",");
        put_list(c, list[k].key, list[k].put, list[k].ctx, b);
    }
    cd_buf_puts(b, "}");
}

/* The texts that the lists refer to by number come behind the lists. */
static void put_ops(const cd_network_estimate_case *c, cd_buf *b) {
    const uint32_t n = c->net->net.n_op;
    texts type = {0}, schedule = {0}, unlike = {0};
    bool *critical = cd_network_estimate_critical(c);
    const bool ok =
        texts_new(&type, n) && texts_new(&schedule, n) && texts_new(&unlike, n) && critical;
    b->oom |= !ok;
    if (ok) {
        cd_timeline_page_queues(b, &c->net->net, &c->replay);
        put_lists(c, &type, &schedule, &unlike, critical, b);
        put_texts(&type, "types", b);
        put_texts(&schedule, "schedules", b);
        put_texts(&unlike, "reasons", b);
    }
    texts_free(&type);
    texts_free(&schedule);
    texts_free(&unlike);
    cd_mem_free(critical);
}

/* ---- estimates ---- */
static void put_sizes(const cd_network_estimate_case *c, cd_buf *b) {
    const cd_network_estimate_use *u = &c->use[c->fullest];
    if (cd_network_estimate_fits(c) == CD_NETWORK_FITS_NO) cd_buf_puts(b, ",\"small\":true");
    if (u->peak >= 0) cd_buf_putf(b, ",\"peak\":%lld", (long long)u->peak);
    if (u->weights >= 0) cd_buf_putf(b, ",\"weights\":%lld", (long long)u->weights);
    if (u->memory > 0) cd_buf_putf(b, ",\"memory\":%lld", (long long)u->memory);
}

/* Keys of the page's script (web/page_table.js): short, because there is one object a case. */
static void put_result(const cd_network_report *p, const cd_network_estimate_case *c, cd_buf *b) {
    cd_timeline_page_real(b, "latency", c->replay.makespan_s);
    cd_timeline_page_real(b, "low", c->interval.low_s);
    cd_timeline_page_real(b, "high", c->interval.high_s);
    cd_timeline_page_real(b, "chain", c->replay.chain_s);
    cd_timeline_page_real(b, "sum", c->replay.sum_s);
    cd_timeline_page_real(b, "items", cd_network_estimate_throughput(c));
    cd_timeline_page_real(b, "missing", c->missing_share);
    cd_buf_putf(b, ",\"missing_of\":\"%s\"",
                c->missing_of_work ? "the operations" : "the operators");
    cd_timeline_page_real(b, "unlike", c->ops_s > 0 ? c->unlike_s / c->ops_s : 0);
    cd_timeline_page_real(b, "measured", c->measured_s);
    cd_timeline_page_real(b, "run", c->run_s);
    cd_timeline_page_real(b, "before", c->before_s);
    cd_timeline_page_real(b, "price", cd_network_report_price(p, c));
    cd_timeline_page_real(b, "hour", cd_network_report_hour(p, c).per_hour);
    put_sizes(c, b);
    char why[CD_NETWORK_ESTIMATE_WHY];
    cd_network_estimate_unlike(c, why);
    cd_buf_puts(b, ",\"why\":");
    cd_timeline_page_text(b, why);
    cd_buf_puts(b, ",\"currency\":");
    cd_timeline_page_text(b, cd_network_report_hour(p, c).currency);
    cd_buf_putf(b, ",\"best\":%s",
                cd_network_report_cheapest(p, c->source->name) == c ? "true" : "false");
}

/* *left: operators that may still be drawn. */
static void put_case(const cd_network_report *p, const cd_network_estimate_case *c, size_t *left,
                     cd_buf *b) {
    cd_buf_puts(b, "{\"network\":");
    cd_timeline_page_text(b, c->source->name);
    cd_buf_puts(b, ",\"device\":");
    cd_timeline_page_text(b, c->device->label);
    cd_buf_putf(b, ",\"batch\":%lld", (long long)c->source->batch);
    if (c->st) {
        cd_buf_puts(b, ",\"error\":");
        cd_timeline_page_text(b, c->err.msg);
    } else {
        put_result(p, c, b);
        if (c->net->net.n_op <= *left) {
            *left -= c->net->net.n_op;
            put_ops(c, b);
        }
    }
    cd_buf_puts(b, "}");
}

/* The page's footer names the models that were used, not all that were given. */
static void put_data(const cd_network_report *p, cd_buf *b) {
    const cd_network_estimate_options *o = p->e->o;
    size_t left = MAX_SLICES;
    cd_buf_puts(b, "{\"cases\":[");
    for (size_t k = 0; k < p->e->n_item; k++) {
        if (k) cd_buf_puts(b, ",\n");
        put_case(p, &p->e->item[k], &left, b);
    }
    cd_buf_puts(b, "],\"sources\":[");
    for (int k = 0; cd_enum_names_at(CD_COST_SOURCES, k).n; k++) {
        const cd_str w = cd_enum_names_at(CD_COST_SOURCES, k);
        cd_buf_putf(b, "%s\"%.*s\"", k ? "," : "", (int)w.n, w.p);
    }
    cd_buf_puts(b, "],\"what_if\":[");
    for (size_t k = 0; k < o->what_if.n; k++) {
        if (k) cd_buf_puts(b, ",");
        cd_timeline_page_text(b, o->what_if.v[k]);
    }
    cd_buf_puts(b, "]");
    cd_timeline_page_real(b, "level", o->level);
    cd_timeline_page_real(b, "deadline", p->deadline_s);
    cd_buf foot = {0};
    cd_buf_putf(&foot, "cdmpp-replay %s", cdmpp_version());
    for (size_t k = 0, any = 0; k < p->e->models.n; k++) {
        const char *slash = strrchr(p->e->models.v[k].path, '/');
        if (p->e->models.v[k].tasks || p->e->models.v[k].ops)
            cd_buf_putf(&foot, "%s%s",
                        any++ ? ", " : "; models: ", slash ? slash + 1 : p->e->models.v[k].path);
    }
    cd_buf_puts(&foot, ". ");
    cd_network_report_whose(p->e, &foot);
    cd_buf_put(&foot, "", 1);
    cd_buf_puts(b, ",\"foot\":");
    cd_timeline_page_text(b, foot.p);
    b->oom |= foot.oom;
    cd_buf_free(&foot);
    cd_buf_puts(b, "}");
}

cdmpp_status cd_network_report_html(const cd_network_report *p, const char *path, cdmpp_err *err) {
    cd_buf data = {0};
    put_data(p, &data);
    const cd_timeline_page_parts parts = {.title = "cdmpp-replay",
                                          .body = (const char *const[]){page_html, NULL},
                                          .script = (const char *const[]){page_table_js, NULL},
                                          .drawing = (const char *const[]){page_operators_js, NULL},
                                          .data = &data};
    const cdmpp_status st = cd_timeline_page_write(path, &parts, err);
    cd_buf_free(&data);
    return st;
}

/* Traces of the simulated queues, a file for each case. */

/* "t.json" of the second of several: "t.resnet-50.v100.4.json"; letters that are special in paths
 * become "_". */
static void path_of(const char *path, const cd_network_estimate_case *c, unsigned number,
                    cd_buf *b) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    const size_t n = dot ? (size_t)(dot - path) : strlen(path);
    cd_buf_put(b, path, n);
    cd_buf_puts(b, ".");
    cd_escape_file_name(b, (cd_str){c->source->name, strnlen(c->source->name, 80)});
    cd_buf_puts(b, ".");
    cd_escape_file_name(b, cd_str_of(c->device->label));
    if (c->source->batch) cd_buf_putf(b, ".%lld", (long long)c->source->batch);
    if (number > 1) cd_buf_putf(b, ".%u", number);
    cd_buf_puts(b, dot ? dot : "");
}

/* A path that no other case has: names may differ only in letters that became "_". */
static cdmpp_status own_path(const char *base, const cd_network_estimate_case *c, cd_dict *paths,
                             cd_buf *path, cdmpp_err *err) {
    for (unsigned k = 1;; k++) {
        const size_t before = paths->n;
        uint32_t id;
        cd_buf_clear(path);
        path_of(base, c, k, path);
        if (path->oom) return CD_FAIL(err, ENOMEM, "a path");
        CD_TRY(cd_dict_add(paths, (cd_str){path->p, path->n}, &id, err));
        if (paths->n > before) return CDMPP_OK;
    }
}

static cdmpp_status write_trace(const char *base, const cd_network_estimate_case *c, bool alone,
                                cd_dict *paths, cdmpp_err *err) {
    cd_buf path = {0}, b = {0};
    cdmpp_status st = alone ? CDMPP_OK : own_path(base, c, paths, &path, err);
    if (!st) st = cd_replay_trace(&b, &c->net->net, &c->replay, err);
    if (!st) st = cd_file_write(alone ? base : path.p, b.p, b.n, err);
    cd_buf_free(&path);
    cd_buf_free(&b);
    return st;
}

cdmpp_status cd_network_report_trace(const cd_network_report *p, const char *path, cdmpp_err *err) {
    cd_dict paths = {0};
    cdmpp_status st = CDMPP_OK;
    for (size_t k = 0; !st && k < p->e->n_item; k++)
        if (!p->e->item[k].st)
            st = write_trace(path, &p->e->item[k], p->e->n_item == 1, &paths, err);
    cd_dict_free(&paths);
    return st;
}
