/* A measurement becomes rows. Its digest covers everything that was measured and what came out, so
 * that reading a file again adds nothing. */
#include <math.h>
#include <string.h>

#include "profiler/store/store_internal.h"

#define NOISY_CV 0.03

void cd_store_latency_of(double *x, size_t n, cd_store_latency *out) {
    double sum = 0, square = 0;
    *out = (cd_store_latency){.n = (uint32_t)n};
    if (!n) return;
    cd_sort_doubles(x, n);
    for (size_t i = 0; i < n; i++) sum += x[i];
    out->mean_s = sum / (double)n;
    for (size_t i = 0; i < n; i++) square += (x[i] - out->mean_s) * (x[i] - out->mean_s);
    out->min_s = x[0];
    out->median_s = cd_sort_median(x, n);
    out->std_s = n > 1 ? sqrt(square / (double)(n - 1)) : 0;
    out->cv = out->mean_s > 0 ? out->std_s / out->mean_s : 0;
    if (n >= 3 && out->cv > NOISY_CV) out->flags |= CD_STORE_NOISY;
}

static void digest_env(const cd_store_env *e, cd_store_digest *d) {
    const cd_str text[] = {e->host, e->cpu, e->os, e->compiler, e->governor, e->tool, e->extra};
    cd_store_digest_init(d);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) cd_store_digest_text(d, text[i]);
}

/* All that was measured and what came out; not where it was read. */
static void digest_row(const cd_store_row *r, const cd_store_digest *steps,
                       const cd_store_digest *env, cd_store_digest *d) {
    const cd_str text[] = {r->device, r->target, r->target_tail, r->workload_key, r->version};
    const double real[] = {r->latency.min_s, r->latency.median_s, r->latency.mean_s,
                           r->latency.std_s, r->total_s};
    cd_store_digest_init(d);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) cd_store_digest_text(d, text[i]);
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) cd_store_digest_real(d, real[i]);
    for (uint32_t i = 0; i < r->n_cost; i++) cd_store_digest_real(d, r->cost_s[i]);
    cd_store_digest_word(d, r->latency.n);
    cd_store_digest_word(d, r->latency.flags);
    cd_store_digest_word(d, (uint64_t)r->error_no);
    cd_store_digest_word(d, (uint64_t)r->timestamp);
    for (int i = 0; i < 2; i++) {
        if (r->has_steps) cd_store_digest_word(d, steps->h[i]);
        if (r->env) cd_store_digest_word(d, env->h[i]);
    }
}

static cdmpp_status check(const cd_store_row *r, cdmpp_err *err) {
    const cd_str text[] = {r->device, r->target, r->operator_name, r->workload_key,
                           r->shape,  r->dtype,  r->layout,        r->version};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        /* anything else would make JSON answers unreadable */
        if (!cd_str_is_utf8(text[i])) return CD_FAIL(err, ESCHEMA, "expected names in UTF-8");
    const double t[] = {r->latency.min_s, r->latency.median_s, r->latency.mean_s};
    for (size_t i = 0; i < 3 && !r->error_no; i++)
        if (!(t[i] > 0 && t[i] < 1e10))
            return CD_FAIL(err, ERANGE, "expected a time above 0, found %g s", t[i]);
    if (!isfinite(r->total_s)) return CD_FAIL(err, ERANGE, "total time is %g", r->total_s);
    return CDMPP_OK;
}

static void bind_times(sqlite3_stmt *q, const cd_store_row *r) {
    const double t[] = {r->latency.min_s, r->latency.median_s, r->latency.mean_s, r->latency.std_s,
                        r->latency.cv};
    for (int i = 0; i < 5; i++)
        if (r->error_no) sqlite3_bind_null(q, 10 + i);
        else sqlite3_bind_double(q, 10 + i, t[i]);
    if (r->n_cost > 1)
        sqlite3_bind_blob64(q, 17, r->cost_s, r->n_cost * sizeof *r->cost_s, SQLITE_STATIC);
    else sqlite3_bind_null(q, 17);
}

typedef struct ids {
    int64_t device, target, workload, schedule, env;
} ids;

static cdmpp_status find_ids(cd_store *s, const cd_store_row *r, const cd_store_digest *steps,
                             const cd_store_digest *env, ids *id, cdmpp_err *err) {
    *id = (ids){0};
    CD_TRY(cd_store_id_text(s, CD_SQL_DEVICE_ADD, r->device, &id->device, err));
    CD_TRY(cd_store_id_target(s, r->target, r->target_tail, &id->target, err));
    CD_TRY(cd_store_id_workload(s, r, &id->workload, err));
    if (r->has_steps) CD_TRY(cd_store_id_schedule(s, r->steps, steps, &id->schedule, err));
    if (r->env) CD_TRY(cd_store_id_env(s, r->env, env, &id->env, err));
    return CDMPP_OK;
}

static void bind_id(sqlite3_stmt *q, int i, int64_t id) {
    if (id) sqlite3_bind_int64(q, i, id);
    else sqlite3_bind_null(q, i);
}

/* Parameters in the order of the statement ADD. */
static cdmpp_status insert(cd_store *s, const cd_store_row *r, cdmpp_err *err) {
    cd_store_digest steps = {{0}}, env = {{0}}, all;
    sqlite3_stmt *q;
    ids id;
    cd_store_digest_init(&steps);
    if (r->has_steps) cd_store_digest_text(&steps, r->steps);
    if (r->env) digest_env(r->env, &env);
    CD_TRY(find_ids(s, r, &steps, &env, &id, err));
    digest_row(r, &steps, &env, &all);
    CD_TRY(cd_store_stmt(s, CD_SQL_ADD, &q, err));
    sqlite3_bind_blob(q, 1, all.h, sizeof all.h, SQLITE_STATIC);
    bind_id(q, 2, id.device);
    bind_id(q, 3, id.target);
    bind_id(q, 4, id.workload);
    bind_id(q, 5, id.schedule);
    bind_id(q, 6, id.env);
    bind_id(q, 7, s->source);
    sqlite3_bind_int64(q, 8, r->line);
    sqlite3_bind_int64(q, 9, r->error_no);
    bind_times(q, r);
    sqlite3_bind_int64(q, 15, r->latency.n);
    sqlite3_bind_int64(q, 16, r->latency.flags);
    sqlite3_bind_double(q, 18, r->total_s);
    sqlite3_bind_int64(q, 19, r->timestamp);
    cd_store_bind(q, 20, r->version);
    return cd_store_done(s, q, err);
}

cdmpp_status cd_store_add(cd_store *s, const cd_store_row *row, bool *fresh, cdmpp_err *err) {
    CD_TRY(check(row, err));
    CD_TRY(cd_store_begin(s, err));
    const cdmpp_status st = insert(s, row, err);
    if (st) {
        cd_store_undo(s);
        return st;
    }
    if (fresh) *fresh = sqlite3_changes(s->db) > 0;
    return cd_store_step(s, err);
}

/* ---- records ---- */

/* "v100" of a target with "-model=v100"; empty when there is none, or "unknown". */
static cd_str model_of(cd_str target) {
    static const char mark[] = "-model=";
    const size_t n = sizeof mark - 1;
    for (size_t i = 0; i + n < target.n; i++) {
        if (memcmp(target.p + i, mark, n) != 0) continue;
        size_t end = i + n;
        while (end < target.n && target.p[end] != ' ') end++;
        const cd_str m = {target.p + i + n, end - i - n};
        return cd_str_is(m, "unknown") ? (cd_str){"", 0} : m;
    }
    return (cd_str){"", 0};
}

/* What a record has behind its target: "[[8 numbers], host, layout, [names]]". */
static void put_tail(cd_buf *b, const cd_record *r) {
    const cd_hardware *h = &r->hardware;
    const int64_t x[] = {h->num_cores,
                         h->vector_unit_bytes,
                         h->cache_line_bytes,
                         h->max_shared_memory_per_block,
                         h->max_local_memory_per_block,
                         h->max_threads_per_block,
                         h->max_vthread_extent,
                         h->warp_size};
    cd_buf_puts(b, "[");
    for (int i = 0; i < 8 && r->has_hardware; i++) {
        cd_buf_puts(b, i ? "," : "[");
        cd_buf_put_int(b, x[i]);
    }
    if (r->has_hardware) cd_buf_puts(b, "]");
    if (r->has_host) {
        cd_buf_puts(b, ",");
        cd_buf_put_json_str(b, r->target_host.p, r->target_host.n);
    }
    if (r->has_layout) {
        cd_buf_puts(b, ",");
        cd_buf_put_int(b, r->layout_rewrite);
    }
    for (uint32_t i = 0; i < r->n_input; i++) {
        cd_buf_puts(b, i ? "," : ",[");
        cd_buf_put_json_str(b, r->input[i].p, r->input[i].n);
    }
    if (r->has_inputs) cd_buf_puts(b, r->n_input ? "]" : ",[]");
    cd_buf_puts(b, "]");
}

/* Tail and steps into s->text; NUL-free slices of it into the row. */
static cdmpp_status texts_of(cd_store *s, const cd_record *r, cd_store_row *row, cdmpp_err *err) {
    cd_buf_clear(&s->text);
    put_tail(&s->text, r);
    const size_t n = s->text.n;
    CD_TRY(cd_record_write_steps(&s->text, r, err));
    if (s->text.oom) return CD_FAIL(err, ENOMEM, "texts of a record");
    row->target_tail = (cd_str){s->text.p, n};
    row->steps = (cd_str){s->text.p + n, s->text.n - n};
    row->has_steps = true;
    return CDMPP_OK;
}

static cdmpp_status latency_of(cd_arena *a, const cd_record *r, const cd_store_latency *known,
                               cd_store_row *row, cdmpp_err *err) {
    double *x = cd_arena_alloc(a, r->n_cost, sizeof *x);
    if (!x) return CD_FAIL(err, ENOMEM, "costs");
    memcpy(x, r->cost_s, r->n_cost * sizeof *x);
    if (r->error_no) row->latency.n = r->n_cost;
    else if (known) row->latency = *known;
    else cd_store_latency_of(x, r->n_cost, &row->latency);
    row->n_cost = r->n_cost;
    row->cost_s = r->cost_s;
    row->error_no = r->error_no;
    return CDMPP_OK;
}

/* Operator and types are worked out only for workloads whose id is not remembered: that takes
 * longer than the insertion. */
cdmpp_status cd_store_add_record(cd_store *s, const cd_record *r, const cd_task *task,
                                 cd_str device, const cd_store_env *env,
                                 const cd_store_latency *latency, long line, bool *fresh,
                                 cdmpp_err *err) {
    const bool known = task && task->dag;
    cd_store_row row = {.device = device.n ? device : model_of(r->target),
                        .target = r->target,
                        .workload_key = r->workload_key,
                        .total_s = r->total_s,
                        .timestamp = r->timestamp,
                        .version = r->version,
                        .env = env,
                        .line = line,
                        .flop = -1,
                        .known = known};
    cd_arena_reset(&s->scratch);
    if (!cd_store_has_workload(s, r->workload_key, known)) {
        CD_TRY(cd_store_describe_key(&s->scratch, r->workload_key, &row, err));
        if (known) CD_TRY(cd_store_describe_task(&s->scratch, task, &row, err));
    }
    CD_TRY(texts_of(s, r, &row, err));
    CD_TRY(latency_of(&s->scratch, r, latency, &row, err));
    return cd_store_add(s, &row, fresh, err);
}
