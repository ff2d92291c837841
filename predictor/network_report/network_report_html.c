/* The page: data, style and scripts in one file that needs nothing from outside.
 *
 * Properties of operators are lists, one for each property, and times are whole nanoseconds: both
 * keep the page small. Only the first cases have a timeline, MAX_SLICES operators in all: a browser
 * cannot show hundreds of megabytes. */
#include <string.h>

#include "predictor/network_report/network_report_internal.h"
#include "predictor/network_report/web/page.html.h"
#include "predictor/network_report/web/page_operators.js.h"
#include "predictor/network_report/web/page_table.js.h"

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
