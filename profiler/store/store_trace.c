/* store_trace -- what profilers wrote (profiler/trace): launches of kernels and, of PyTorch's
 * traces, calls of operators.
 *
 * Launches of one kernel with one grid and block, and calls of one operator with one set of shapes,
 * become one row; shape of a kernel: [[grid],[block]]. An operator's time holds what it calls. */
#include <math.h>
#include <string.h>

#include "profiler/store/store_internal.h"
#include "profiler/trace/trace.h"

/* Gathers launches of a trace by what was launched. The table of slots holds positions, not
 * pointers: the array of groups moves when it grows. */

static void key_of(const cd_store_launch_group *like, cd_store_digest *d) {
    const cd_str text[] = {like->device, like->target, like->operator_name, like->shape,
                           like->dtype};
    cd_store_digest_init(d);
    for (size_t i = 0; i < 5; i++) cd_store_digest_text(d, text[i]);
    cd_store_digest_word(d, like->flags);
}

static uint32_t *slot_of(const cd_store_launches *g, const cd_store_digest *d) {
    size_t i = (size_t)d->h[0] & (g->n_slot - 1);
    while (g->slot[i] && memcmp(&g->group[g->slot[i] - 1].of, d, sizeof *d) != 0)
        i = (i + 1) & (g->n_slot - 1);
    return &g->slot[i];
}

static cdmpp_status grow_slots(cd_store_launches *g, cdmpp_err *err) {
    const size_t n = g->n_slot ? 2 * g->n_slot : 256;
    uint32_t *slot = cd_mem_zalloc(n, sizeof *slot);
    if (!slot) return CD_FAIL(err, ENOMEM, "groups of launches");
    cd_mem_free(g->slot);
    g->slot = slot;
    g->n_slot = n;
    for (size_t i = 0; i < g->n; i++) *slot_of(g, &g->group[i].of) = (uint32_t)i + 1;
    return CDMPP_OK;
}

static cdmpp_status enter(cd_store_launches *g, const cd_store_launch_group *like,
                          const cd_store_digest *d, cdmpp_err *err) {
    if (CD_GROW(g->group, g->n, g->cap)) return CD_FAIL(err, ENOMEM, "groups of launches");
    cd_store_launch_group *to = &g->group[g->n];
    *to = *like;
    to->of = *d;
    to->time_s = NULL;
    to->n = to->cap = 0;
    cd_str *const text[] = {&to->device, &to->target, &to->operator_name, &to->shape, &to->dtype};
    for (size_t i = 0; i < 5; i++)
        if (!(text[i]->p = cd_str_dup(&g->arena, *text[i])))
            return CD_FAIL(err, ENOMEM, "name of a launch");
    g->n++;
    return CDMPP_OK;
}

/* Add one launch; texts of `like` are copied when it is the first. Errors: ENOMEM. */
static cdmpp_status store_launches_add(cd_store_launches *g, const cd_store_launch_group *like,
                                       double time_s, cdmpp_err *err) {
    cd_store_digest d;
    key_of(like, &d);
    if (2 * (g->n + 1) > g->n_slot) CD_TRY(grow_slots(g, err));
    uint32_t *slot = slot_of(g, &d);
    if (!*slot) {
        CD_TRY(enter(g, like, &d, err));
        *slot = (uint32_t)g->n;
    }
    cd_store_launch_group *to = &g->group[*slot - 1];
    if (CD_GROW(to->time_s, to->n, to->cap)) return CD_FAIL(err, ENOMEM, "times of launches");
    to->time_s[to->n++] = time_s;
    return CDMPP_OK;
}

static void put_key(cd_buf *b, const cd_store_launch_group *g) {
    cd_buf_puts(b, "[");
    cd_buf_put_json_str(b, g->operator_name.p, g->operator_name.n);
    if (g->shape.n > 2) cd_buf_puts(b, ",");
    if (g->shape.n > 2) cd_buf_put(b, g->shape.p + 1, g->shape.n - 2);
    if (g->dtype.n) cd_buf_puts(b, ",");
    if (g->dtype.n) cd_buf_put_json_str(b, g->dtype.p, g->dtype.n);
    cd_buf_puts(b, "]");
}

static cdmpp_status take_launches(cd_store_reading *r, const cd_store_row *row, cdmpp_err *err) {
    cdmpp_err e = {0};
    const cdmpp_status st = cd_err_at(&e, cd_store_take(r, row, &e), r->path, row->line);
    return st ? cd_store_bad(r, st, &e, err) : CDMPP_OK;
}

/* What the summary does not say stands as if all runs were alike; the flag "summary" tells that. */
static void of_summary(const cd_store_launch_group *x, cd_store_latency *l) {
    l->n = (uint32_t)fmin(x->runs, UINT32_MAX);
    if (x->median_s > 0) l->median_s = x->median_s;
    l->min_s = fmin(l->min_s, l->median_s);
    l->flags |= CD_STORE_SUMMARY;
}

/* Every group as a row of the store.
 *
 * Each group is one row of statistics; a time of one launch is stored as it is. */
static cdmpp_status store_launches_save(cd_store_launches *g, cd_store_reading *r, cdmpp_err *err) {
    cd_buf key = {0};
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; i < g->n && !st; i++) {
        cd_store_launch_group *x = &g->group[i];
        cd_store_row row = {.device = x->device,
                            .target = x->target,
                            .target_tail = {"[]", 2},
                            .operator_name = x->operator_name,
                            .shape = x->shape,
                            .dtype = x->dtype,
                            .flop = -1,
                            .known = true,
                            .env = r->how->env,
                            .line = x->line,
                            .timestamp = x->timestamp};
        cd_buf_clear(&key);
        put_key(&key, x);
        if (key.oom) st = CD_FAIL(err, ENOMEM, "workload key");
        row.workload_key = (cd_str){key.p, key.n};
        cd_store_latency_of(x->time_s, x->n, &row.latency);
        if (x->runs > 0) of_summary(x, &row.latency);
        row.latency.flags |= x->flags | (x->n > 1 ? CD_STORE_SUMMARY : 0);
        if (!st) st = take_launches(r, &row, err);
    }
    cd_buf_free(&key);
    return st;
}

/* Zeroed is fine. */
static void store_launches_free(cd_store_launches *g) {
    for (size_t i = 0; i < g->n; i++) cd_mem_free(g->group[i].time_s);
    cd_mem_free(g->group);
    cd_mem_free(g->slot);
    cd_arena_free(&g->arena);
}

static cdmpp_status on_bad(void *ctx, cdmpp_status st, const cdmpp_err *e, cdmpp_err *err) {
    return cd_store_bad(ctx, st, e, err);
}

static cd_str text_of(const cd_trace *t, uint32_t number) {
    const char *s = cd_trace_text(t, number);
    return (cd_str){s, strlen(s)};
}

static cd_str target_of(const cd_trace *t) {
    static const char *const as_form[] = {"habana", "cutlass", "onnxruntime"};
    if (!strncmp(t->form, "trtexec", 7)) return (cd_str){"tensorrt", 8};
    for (size_t i = 0; i < 3; i++)
        if (!strcmp(t->form, as_form[i])) return (cd_str){as_form[i], strlen(as_form[i])};
    return !strcmp(t->form, "kineto") ? (cd_str){"pytorch", 7} : (cd_str){"cuda", 4};
}

static cdmpp_status add(cd_store_reading *r, cd_store_launches *g, const cd_trace *t,
                        const cd_trace_event *e, cdmpp_err *err) {
    /* its sizes tell it, not the name of its node */
    const bool plain = e->op && e->dtype && !strcmp(t->form, "onnxruntime");
    cd_store_launch_group like = {.device = text_of(t, e->device),
                                  .target = target_of(t),
                                  .operator_name = text_of(t, plain ? e->op : e->name),
                                  .shape = text_of(t, e->shape),
                                  .dtype = text_of(t, e->dtype),
                                  .line = e->line,
                                  .flags = e->kind == CD_TRACE_OP ? CD_STORE_INCLUSIVE : 0};
    if (e->sum != CD_TRACE_NONE && t->inferences > 0)
        like.runs = t->sum[e->sum].n * t->inferences, like.median_s = t->sum[e->sum].median_s;
    if (e->sum == CD_TRACE_NONE || t->inferences > 0)
        return store_launches_add(g, &like, e->time_s, err);
    cdmpp_err bad = {0};
    const cdmpp_status st = CD_FAIL(
        &bad, ESCHEMA, "a row of a summary is no measurement: import the trace of the launches");
    cd_err_add_place(&bad, r->path, e->line);
    return cd_store_bad(r, st, &bad, err);
}

static cdmpp_status take(cd_store_reading *r, const cd_trace *t, cdmpp_err *err) {
    cd_store_launches g = {0};
    cdmpp_status st = CDMPP_OK;
    r->tally->lines += t->lines;
    r->tally->empty += t->empty;
    for (size_t i = 0; i < t->n && !st; i++) st = add(r, &g, t, &t->event[i], err);
    if (!st) st = store_launches_save(&g, r, err);
    if (!st) st = cd_store_mark(r, (uint64_t)t->last_line, true, err);
    store_launches_free(&g);
    return st;
}

cdmpp_status cd_store_read_trace(cd_store_reading *r, cd_store_form form, cdmpp_err *err) {
    char device[256];
    const cd_trace_form as = form == CD_STORE_NSYS     ? CD_TRACE_NSYS
                             : form == CD_STORE_KINETO ? CD_TRACE_CHROME
                                                       : CD_TRACE_CSV;
    const unsigned skip =
        1u << CD_TRACE_COPY | 1u << CD_TRACE_SET | 1u << CD_TRACE_RANGE | 1u << CD_TRACE_CALL;
    cd_trace_reading how = {
        .form = as, .skip = skip, .bad = on_bad, .ctx = r, .stop = r->how->stop};
    cd_trace *t = NULL;
    if (r->device.n >= sizeof device)
        return CD_FAIL(err, ERANGE, "expected a name of a device of at most %zu letters",
                       sizeof device - 1);
    if (r->device.n) {
        memcpy(device, r->device.p, r->device.n);
        device[r->device.n] = 0;
        how.device = device;
    }
    CD_TRY(cd_trace_read(r->path, &how, &t, err));
    if (r->how->said) r->how->said(r->how->ctx, r->path, &t->said);
    const cdmpp_status st = take(r, t, err);
    cd_trace_free(t);
    return st;
}
