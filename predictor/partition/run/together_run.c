/* Programs of records measured with several numbers of threads, shared out, and run in all ways in
 * turns. */
#include "base/text/text.h"
#include "predictor/partition/run/together_run.h"

#include <math.h>

#include "profiler/host/host.h"

const char *cd_together_name(cd_together_how how) {
    static const char *const name[CD_TOGETHER_WAYS] = {"one after the other", "together, tuned",
                                                       "together, equal shares"};
    return name[how];
}

/* ---- the table ---- */

static cdmpp_status fill_op(cd_together *t, size_t k, cdmpp_err *err) {
    const cd_record_together *p = t->programs;
    cd_cotune_table *m = &t->table;
    const cd_str key = p->best[k].key;
    m->name[k] = cd_str_dup(&m->arena, key);
    m->seconds[k] = cd_arena_alloc(&m->arena, m->threads + 1, sizeof(double));
    if (!m->name[k] || !m->seconds[k]) return CD_FAIL(err, ENOMEM, "operator");
    m->seconds[k][0] = HUGE_VAL;
    for (uint32_t n = 1; n <= m->threads; n++) {
        const int at = cd_record_together_find(p, k, (int)n);
        if (at < 0)
            return CD_FAIL(err, ENODATA, "%.*s: no time with one thread", cd_str_shown(key, 120),
                           key.p);
        m->seconds[k][n] = p->item[k][at].out.time.median_s;
    }
    m->bytes[k] = (double)cd_corun_bytes(&p->job[k][0].code);
    return CDMPP_OK;
}

static cdmpp_status fill_table(const cd_together_options *o, cd_together *t, cdmpp_err *err) {
    t->table.threads = (uint32_t)t->programs->threads;
    for (size_t k = 0; k < t->programs->n; k++, t->table.n_op++) CD_TRY(fill_op(t, k, err));
    return o->machine ? cd_machine_contention(o->machine, &t->table.contention, err) : CDMPP_OK;
}

void cd_together_csv(const cd_together *t, cd_buf *b) {
    const cd_record_together *p = t->programs;
    cd_buf_puts(b, "operator,threads,seconds,bytes\n");
    for (size_t k = 0; k < p->n; k++)
        for (int c = 0; c < p->n_count; c++) {
            if (p->item[k][c].out.error_no) continue;
            cd_csv_fields_put(b, p->best[k].key.p, p->best[k].key.n);
            cd_buf_putf(b, ",%d,%.9g,%.12g\n", p->count[c], p->item[k][c].out.time.median_s,
                        t->table.bytes[k]);
        }
}

/* ---- the ways ---- */

typedef struct {
    uint32_t threads[CD_TOGETHER_WAYS][CD_CORUN_GROUP];
} shares;

static shares share_out(cd_together *t) {
    const cd_cotune_table *m = &t->table;
    const uint32_t n = m->n_op;
    shares s;
    bool differ = false;
    for (uint32_t k = 0; k < n; k++) {
        s.threads[CD_TOGETHER_ONE_BY_ONE][k] = m->threads;
        s.threads[CD_TOGETHER_TUNED][k] = n <= m->threads ? t->tuned.threads[k] : 0;
        s.threads[CD_TOGETHER_EQUAL][k] = m->threads / n + (k < m->threads % n);
        differ = differ || s.threads[CD_TOGETHER_TUNED][k] != s.threads[CD_TOGETHER_EQUAL][k];
    }
    t->way[CD_TOGETHER_ONE_BY_ONE] =
        (cd_together_way){.there = true, .predicted_s = t->tuned.sequential_s};
    t->way[CD_TOGETHER_TUNED] =
        (cd_together_way){.there = n <= m->threads, .predicted_s = t->tuned.together_s};
    t->way[CD_TOGETHER_EQUAL] =
        (cd_together_way){.there = n <= m->threads && differ, .predicted_s = t->tuned.equal_s};
    return s;
}

static cdmpp_status failed(const cd_together *t, const cd_corun_ways *w, cd_together_how how,
                           cdmpp_err *err) {
    const cd_str key = t->programs->best[w->at].key;
    return CD_FAIL(err, ENODATA, "%.*s, %s: error %d: %.200s", cd_str_shown(key, 120), key.p,
                   cd_together_name(how), w->error_no, w->err.msg);
}

static cdmpp_status run_ways(const cd_together_options *o, cd_together *t, const shares *s,
                             cdmpp_err *err) {
    cd_corun_way way[CD_TOGETHER_WAYS];
    cd_together_how how[CD_TOGETHER_WAYS];
    cd_corun_ways out;
    cd_host_load_mark mark;
    int core[CD_HOST_LOAD_CORES];
    unsigned n = 0;
    for (int k = 0; k < CD_TOGETHER_WAYS; k++)
        if (t->way[k].there && cd_record_together_way(t->programs, s->threads[k],
                                                      k != CD_TOGETHER_ONE_BY_ONE, &way[n]))
            how[n++] = (cd_together_how)k;
    cd_host_load_begin(&mark, core,
                       t->table.threads <= CD_HOST_LOAD_CORES
                           ? cd_affinity_last_cores(t->table.threads, core)
                           : 0);
    CD_TRY(cd_corun_ways_run(way, n, &o->policy, &out, err));
    t->others = cd_host_load_since(&mark);
    if (out.error_no) return failed(t, &out, how[out.way], err);
    for (unsigned k = 0; k < n; k++) {
        cd_together_way *w = &t->way[how[k]];
        w->pass_s = out.pass_s[k], w->low_s = out.low_s[k], w->high_s = out.high_s[k],
        w->best_s = out.best_s[k];
        if (w->pass_s < t->way[t->kept].pass_s) t->kept = how[k];
    }
    t->ran = true;
    return CDMPP_OK;
}

cdmpp_status cd_together_make(const cd_together_options *o, cd_together *t, cdmpp_err *err) {
    *t = (cd_together){.others = (double)NAN};
    CD_TRY(cd_record_together_measure(&o->measure, &t->programs, err));
    CD_TRY(fill_table(o, t, err));
    CD_TRY(cd_cotune_search(t->table.n_op, t->table.threads, cd_cotune_table_time, &t->table,
                            &t->tuned, err));
    const shares s = share_out(t);
    return o->run ? run_ways(o, t, &s, err) : CDMPP_OK;
}

void cd_together_free(cd_together *t) {
    cd_record_together_free(t->programs);
    cd_cotune_free(&t->tuned);
    cd_arena_free(&t->table.arena);
    *t = (cd_together){0};
}
