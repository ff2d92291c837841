/* What goes to workers and what comes back, for records and for searches: their command line, the
 * setup, a record as a line, and a result out of an answer. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/remote/remote_internal.h"

/* The options as words of the worker's command line, in the arena. */
static cdmpp_status words_of(cd_arena *a, const cd_remote_way *way,
                             const char *word[CD_REMOTE_WORDS], size_t *n, cdmpp_err *err) {
    const cd_measure_options *m = way->measure;
    const struct {
        const char *name;
        double value;
    } number[] = {{"budget-ms", m->timing.budget_s * 1e3},
                  {"timeout", m->run_limit_s},
                  {"build-timeout", m->build_limit_s},
                  {"memory-mb", (double)(m->memory_bytes >> 20)},
                  {"threads", way->threads}};
    const char *const text[][2] = {
        {"isa", m->isa}, {"device", m->device}, {"cflags", m->flags}, {"core-type", way->core}};
    char w[128];
    *n = 0;
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        snprintf(w, sizeof w, "--%s=%ld", number[i].name, lround(number[i].value));
        if (number[i].value > 0) word[(*n)++] = cd_str_dup(a, (cd_str){w, strlen(w)});
    }
    if (m->timing.cold) word[(*n)++] = "--cold";
    if (m->timing.cool) word[(*n)++] = "--cool";
    if (!m->pin) word[(*n)++] = "--no-pin";
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        const int len = snprintf(w, sizeof w, "--%s=%s", text[i][0], text[i][1] ? text[i][1] : "");
        if (len >= (int)sizeof w)
            return CD_FAIL(err, EUSAGE, "--%s is too long for another host: %.60s...", text[i][0],
                           text[i][1]);
        if (text[i][1]) word[(*n)++] = cd_str_dup(a, (cd_str){w, strlen(w)});
    }
    for (size_t i = 0; i < *n; i++)
        if (!word[i]) return CD_FAIL(err, ENOMEM, "options");
    return CDMPP_OK;
}

cdmpp_status cd_remote_way_hosts(cd_arena *a, const cd_remote_way *w, cd_remote_host **out,
                                 cdmpp_err *err) {
    const char *word[CD_REMOTE_WORDS];
    size_t n_word;
    cd_remote_host *host = cd_arena_zalloc(a, w->n_host + 1, sizeof *host);
    if (!host) return CD_FAIL(err, ENOMEM, "hosts");
    CD_TRY(words_of(a, w, word, &n_word, err));
    for (size_t i = 0; i < w->n_host; i++)
        CD_TRY(cd_remote_reach(a, w->host[i], w->port, w->transport, word, n_word, &host[i], err));
    *out = host;
    return CDMPP_OK;
}

cdmpp_status cd_remote_setup_put(cd_buf *b, const cd_task_registry *tasks, bool check,
                                 cdmpp_err *err) {
    cd_buf text = {0};
    cdmpp_status st = cd_task_registry_write(&text, tasks, err);
    cd_buf_puts(b, "{\"tasks\":");
    if (!st) cd_buf_put_json_str(b, text.p, text.n);
    cd_buf_putf(b, ",\"check\":%s}", check ? "true" : "false");
    cd_buf_free(&text);
    if (!st && b->oom) st = CD_FAIL(err, ENOMEM, "tasks");
    return st;
}

cdmpp_status cd_remote_line(cd_arena *a, const cd_record *r, cd_str *out, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_record_write(&b, r, err);
    *out = (cd_str){NULL, b.n ? b.n - 1 : 0};
    if (!st && !(out->p = cd_str_dup(a, (cd_str){b.p, out->n})))
        st = CD_FAIL(err, ENOMEM, "record");
    cd_buf_free(&b);
    return st;
}

/* What a host found out, as if it had been measured here. A worker without statistics gives those
 * of its costs. */
void cd_remote_result(const cd_remote_times *t, cd_measure_result *m) {
    const cd_remote_stats *s = &t->stats;
    *m = (cd_measure_result){.error_no = (int)t->error_no,
                             .at = t->timestamp,
                             .cycles = -1,
                             .instructions = -1,
                             .cache_misses = -1};
    if (t->error_no) {
        m->status = CD_FAIL(&m->err, EBACKEND, "%s",
                            t->message[0] ? t->message : cd_record_stats_error(m->error_no));
        return;
    }
    if (!t->has_stats) {
        m->time.n = t->n_cost < CD_TIMING_MAX ? t->n_cost : CD_TIMING_MAX;
        memcpy(m->time.sample_s, t->cost_s, m->time.n * sizeof *t->cost_s);
        cd_timing_figures(&m->time, NULL);
        return;
    }
    m->flags = (uint32_t)s->flags;
    m->attempts = (unsigned)s->attempts;
    m->build_s = s->build_s;
    m->run_s = s->run_s;
    m->quiet_before = s->quiet_before;
    m->quiet_after = s->quiet_after;
    m->max_error = s->max_error;
    m->cycles = s->cycles;
    m->instructions = s->instructions;
    m->cache_misses = s->cache_misses;
    m->time = (cd_timing){.n = (unsigned)s->n,
                          .n_kept = (unsigned)s->kept,
                          .number = (unsigned)s->number,
                          .disturbed = (unsigned)s->disturbed,
                          .min_s = s->min_s,
                          .median_s = s->median_s,
                          .mean_s = s->mean_s,
                          .std_s = s->std_s,
                          .cv = s->cv,
                          .ci = s->ci};
}
