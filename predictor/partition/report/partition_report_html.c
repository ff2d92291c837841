/* Timelines of plans: each is replayed as predicted, and becomes a case of a page or a trace. */
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/partition/report/report_internal.h"
#include "predictor/partition/report/web/drawing.js.h"
#include "predictor/partition/report/web/page.html.h"
#include "predictor/partition/report/web/tables.js.h"
#include "predictor/replay/replay.h"

typedef struct { /* a plan, replayed */
    const cd_shard_plan *plan;
    cd_arena arena;
    cd_replay_net net;
    cd_replay replay;
} timeline;

static cdmpp_status replay(const cd_partition *p, const cd_shard_plan *plan, timeline *d,
                           cdmpp_err *err) {
    d->plan = plan;
    CD_TRY(cd_shard_plan_replay(plan, &p->net, &p->machine, &d->arena, &d->net, err));
    return cd_replay_run(&d->net, &d->replay, err);
}

static void timeline_free(timeline *d) {
    cd_replay_free(&d->replay);
    cd_arena_free(&d->arena);
}

/* ---- trace ---- */
cdmpp_status cd_partition_report_trace(const cd_partition *p, const char *path, cdmpp_err *err) {
    timeline d = {0};
    cd_buf b = {0};
    cdmpp_status st = replay(p, p->plan, &d, err);
    if (!st) st = cd_replay_trace(&b, &d.net, &d.replay, err);
    if (!st && b.oom) st = CD_FAIL(err, ENOMEM, "a trace");
    if (!st) st = cd_file_write(path, b.p, b.n, err);
    cd_buf_free(&b);
    timeline_free(&d);
    return st;
}

/* ---- page: slices of a plan ---- */
/* The operator that a slice belongs to: the one with the longest name that the slice begins with,
 * because shards are called "conv1 H 0..28". UINT32_MAX: none, a copy. */
static uint32_t op_of(const cd_shard_plan *plan, const char *slice) {
    size_t best = 0;
    uint32_t of = UINT32_MAX;
    for (uint32_t k = 0; k < plan->n_op; k++) {
        const char *name = plan->op[k].name;
        const size_t n = name ? strlen(name) : 0;
        if (n < best || strncmp(slice, name, n) ||
            (slice[n] && slice[n] != ' ' && slice[n] != '.' && slice[n] != ':' && slice[n] != '['))
            continue;
        best = n;
        of = k;
    }
    return of;
}

/* A column of the slices: one value each. */
typedef void item_put(const timeline *d, uint32_t k, cd_buf *b);
static void item_name(const timeline *d, uint32_t k, cd_buf *b) {
    cd_timeline_page_text(b, d->net.op[k].name);
}
static void item_start(const timeline *d, uint32_t k, cd_buf *b) {
    cd_timeline_page_ns(b, d->replay.op[k].start_s);
}
static void item_end(const timeline *d, uint32_t k, cd_buf *b) {
    cd_timeline_page_ns(b, d->replay.op[k].end_s);
}
static void item_lane(const timeline *d, uint32_t k, cd_buf *b) {
    cd_buf_put_int(b, d->net.op[k].device);
}
static void item_worker(const timeline *d, uint32_t k, cd_buf *b) {
    cd_buf_put_int(b, d->replay.op[k].worker);
}
static void item_of(const timeline *d, uint32_t k, cd_buf *b) {
    const uint32_t of = op_of(d->plan, d->net.op[k].name ? d->net.op[k].name : "");
    cd_buf_put_int(b, of == UINT32_MAX ? -1 : (int64_t)of);
}
static void item_critical(const timeline *d, uint32_t k, cd_buf *b) {
    bool on = false;
    for (uint32_t i = 0; i < d->replay.n_path; i++) on |= d->replay.path[i] == k;
    cd_buf_put_int(b, on);
}
static void item_after(const timeline *d, uint32_t k, cd_buf *b) {
    const cd_replay_op *o = &d->net.op[k];
    cd_buf_puts(b, "[");
    for (uint32_t i = 0; i < o->n_after; i++)
        cd_buf_putf(b, "%s%u", i ? "," : "", d->net.after[o->first + i]);
    cd_buf_puts(b, "]");
}

/* Columns rather than objects: a page has thousands of slices, and names of members would be most
 * of its bytes. */
static void put_slices(const timeline *d, cd_buf *b) {
    static const struct {
        const char *key;
        item_put *put;
    } list[] = {{"name", item_name},         {"start", item_start},   {"end", item_end},
                {"lane", item_lane},         {"worker", item_worker}, {"of", item_of},
                {"critical", item_critical}, {"after", item_after}};
    cd_timeline_page_queues(b, &d->net, &d->replay);
    cd_buf_puts(b, ",\"ops\":{");
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        cd_buf_putf(b, "%s\"%s\":[", i ? "," : "", list[i].key);
        for (uint32_t k = 0; k < d->net.n_op; k++) {
            if (k) cd_buf_puts(b, ",");
            list[i].put(d, k, b);
        }
        cd_buf_puts(b, "]");
    }
    cd_buf_puts(b, "}");
}

/* A plan that is impossible (infinite) has no timeline. */
static cdmpp_status put_case(const cd_partition *p, const char *name, const cd_shard_plan *plan,
                             double predicted, double measured, cd_buf *b, cdmpp_err *err) {
    timeline d = {0};
    cdmpp_status st = plan && isfinite(predicted) ? replay(p, plan, &d, err) : CDMPP_OK;
    cd_buf_puts(b, "{\"name\":");
    cd_timeline_page_text(b, name);
    cd_timeline_page_real(b, "predicted", predicted);
    cd_timeline_page_real(b, "measured", measured);
    if (!st && d.net.n_op) put_slices(&d, b);
    cd_buf_puts(b, "}");
    timeline_free(&d);
    return st;
}

static cdmpp_status put_cases(const cd_partition *p, cd_buf *b, cdmpp_err *err) {
    const cd_shard_plan *n = p->plan;
    cd_buf_puts(b, "{\"cases\":[");
    CD_TRY(put_case(p, "the plan", n, n->predicted_s, n->measured_s, b, err));
    for (uint32_t k = 0; k < n->n_base; k++) {
        cd_buf_puts(b, ",\n");
        CD_TRY(put_case(p, n->base[k].name, p->base ? p->base[k] : NULL, n->base[k].predicted_s,
                        n->base[k].measured_s, b, err));
    }
    cd_buf_puts(b, "]");
    return CDMPP_OK;
}

/* ---- page: operators of the plan ---- */
static void put_op(const cd_partition *p, uint32_t k, cd_buf *b) {
    const cd_shard_plan_op *o = &p->plan->op[k];
    cd_buf where = {0};
    cd_partition_report_shares(p, o, &where);
    cd_buf_puts(b, "{\"name\":");
    cd_timeline_page_text(b, o->name);
    cd_buf_puts(b, ",\"type\":");
    cd_timeline_page_text(b, o->type);
    cd_buf_puts(b, ",\"where\":");
    cd_timeline_page_text(b, where.p);
    cd_buf_puts(b, ",\"why\":");
    cd_timeline_page_text(b, o->why);
    cd_buf_putf(b, ",\"parts\":%u", o->n_part);
    cd_timeline_page_real(b, "seconds", o->seconds);
    cd_timeline_page_real(b, "exchange", o->exchange_s);
    cd_timeline_page_real(b, "ceiling", o->ceiling);
    if (p->run.done && p->run.now.step && !cd_partition_ran_another(p))
        cd_timeline_page_real(b, "measured", p->run.now.step[k].seconds);
    cd_buf_puts(b, ",\"alone\":[");
    for (uint32_t d = 0; d < p->plan->n_device; d++) {
        cd_buf_puts(b, d ? "," : "");
        cd_buf_put_json_real(b, o->alone_s[d]);
    }
    cd_buf_puts(b, "]}");
    b->oom |= where.oom;
    cd_buf_free(&where);
}

/* The page's data: cases with their slices, the plan's operators, and the numbers of the
 * headline. */
static cdmpp_status put_data(const cd_partition *p, cd_buf *b, cdmpp_err *err) {
    const cd_shard_plan *n = p->plan;
    CD_TRY(put_cases(p, b, err));
    cd_buf_puts(b, ",\"network\":");
    cd_timeline_page_text(b, n->network);
    cd_buf_putf(b, ",\"batch\":%lld,\"split\":%s,\"verdict\":", (long long)n->batch,
                n->split ? "true" : "false");
    cd_timeline_page_text(b, n->verdict);
    cd_timeline_page_real(b, "alone", cd_partition_alone_s(p, false));
    cd_timeline_page_real(b, "alone_here", cd_partition_alone_s(p, true));
    cd_timeline_page_real(b, "ceiling", n->ceiling);
    cd_timeline_page_real(b, "rho", n->rho);
    cd_timeline_page_real(b, "error", p->run.done ? p->run.max_error : (double)NAN);
    cd_buf_puts(b, ",\"devices\":[");
    for (uint32_t d = 0; d < n->n_device; d++) {
        cd_buf_puts(b, d ? "," : "");
        cd_timeline_page_text(b, n->device[d]);
    }
    cd_buf_puts(b, "],\"operators\":[");
    for (uint32_t k = 0; k < n->n_op; k++) {
        cd_buf_puts(b, k ? ",\n" : "");
        put_op(p, k, b);
    }
    cd_buf_puts(b, "],\"foot\":");
    cd_buf foot = {0};
    cd_buf_putf(&foot, "cdmpp-partition %s%s", cdmpp_version(),
                p->o->machine ? "" : "; the machine was not measured");
    cd_timeline_page_text(b, foot.p);
    cd_buf_free(&foot);
    cd_buf_puts(b, "}");
    return CDMPP_OK;
}

cdmpp_status cd_partition_report_html(const cd_partition *p, const char *path, cdmpp_err *err) {
    static const char *const body[] = {page_html, NULL};
    static const char *const script[] = {tables_js, NULL};
    static const char *const drawing[] = {drawing_js, NULL};
    cd_buf data = {0};
    const cd_timeline_page_parts parts = {.title = "cdmpp-partition",
                                          .body = body,
                                          .script = script,
                                          .drawing = drawing,
                                          .data = &data};
    cdmpp_status st = put_data(p, &data, err);
    if (!st) st = cd_timeline_page_write(path, &parts, err);
    cd_buf_free(&data);
    return st;
}
