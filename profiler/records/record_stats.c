/* Statistics of a run beside its records: a JSON line for each program, and the counts at the end
 * as JSON or as text. */
#include "profiler/records/records.h"

#include <string.h>

void cd_record_stats_begin(cd_record_stats *s, double now_s) {
    memset(s, 0, sizeof *s);
    s->begin_s = now_s;
    cd_host_time_read("", &s->begin);
}

const char *cd_record_stats_error(int error_no) {
    static const char *const text[] = {"",
                                       "no program",
                                       "compile error",
                                       "device compile error",
                                       "error while running",
                                       "wrong result",
                                       "compiling took too long",
                                       "running took too long",
                                       "unknown"};
    return text[error_no >= 0 && error_no <= CD_ERROR_NO_MAX ? error_no : CD_ERROR_NO_MAX];
}

void cd_record_stats_add(cd_record_stats *s, const cd_measure_result *m) {
    s->build_s += m->build_s;
    s->run_s += m->run_s;
    s->error_no[m->error_no >= 0 && m->error_no <= CD_ERROR_NO_MAX ? m->error_no
                                                                   : CD_ERROR_NO_MAX]++;
    if (m->error_no) {
        s->failed++;
        return;
    }
    s->measured++;
    s->noisy += (m->flags & CD_MEASURE_NOISY) != 0;
    s->wide += (m->flags & CD_MEASURE_WIDE) != 0;
    s->cached += (m->flags & CD_MEASURE_CACHED) != 0;
}

/* ---- lines ---- */
static void put_real(cd_buf *b, const char *name, double v) {
    cd_buf_putf(b, ",\"%s\":", name);
    cd_buf_put_json_real(b, v);
}

static void put_text(cd_buf *b, const char *name, const char *v, size_t n) {
    cd_buf_putf(b, ",\"%s\":", name);
    cd_buf_put_json_str(b, v, n);
}

void cd_record_stats_head(cd_buf *b, const cd_host_info *h, const char *warnings,
                          const cd_timing_policy *p, int threads, const char *core) {
    cd_buf_puts(b, "{\"schema\":\"cdmpp.profile_stats\",\"host\":");
    cd_host_info_json(b, h);
    put_text(b, "warnings", warnings, strlen(warnings));
    if (core) put_text(b, "core_type", core, strlen(core));
    cd_buf_putf(
        b,
        ",\"threads\":%d,\"policy\":{\"cold\":%s,\"cool\":%s,\"min_repeat\":%u,\"max_repeat\":%u",
        threads, p->cold ? "true" : "false", p->cool ? "true" : "false", p->min_repeat,
        p->max_repeat);
    put_real(b, "budget_s", p->budget_s);
    put_real(b, "warmup_s", p->warmup_s);
    put_real(b, "min_repeat_s", p->min_repeat_s);
    put_real(b, "ci", p->ci);
    cd_buf_puts(b, "}}\n");
}

/* Counters that were not available are left out. */
static void put_figures(cd_buf *b, const cd_measure_result *m) {
    const cd_timing *t = &m->time;
    cd_buf_putf(b, ",\"n\":%u,\"kept\":%u,\"number\":%u,\"disturbed\":%u,\"attempts\":%u", t->n,
                t->n_kept, t->number, t->disturbed, m->attempts);
    put_real(b, "min_s", t->min_s);
    put_real(b, "median_s", t->median_s);
    put_real(b, "mean_s", t->mean_s);
    put_real(b, "std_s", t->std_s);
    put_real(b, "cv", t->cv);
    put_real(b, "ci", t->ci);
    put_real(b, "quiet_before", m->quiet_before);
    put_real(b, "quiet_after", m->quiet_after);
    if (m->cycles >= 0) put_real(b, "cycles", m->cycles);
    if (m->instructions >= 0) put_real(b, "instructions", m->instructions);
    if (m->cache_misses >= 0) put_real(b, "cache_misses", m->cache_misses);
    if (m->flags & CD_MEASURE_CHECKED) put_real(b, "max_error", m->max_error);
}

/* A failed program has its error in place of figures. */
void cd_record_stats_line(cd_buf *b, const cd_record_program *j, long record,
                          const cd_measure_result *m, const char *host) {
    cd_buf_puts(b, "{\"file\":");
    cd_buf_put_json_str(b, j->path, strlen(j->path));
    cd_buf_putf(b, ",\"line\":%ld,\"record\":%ld", j->number, record);
    put_text(b, "workload_key", j->record.workload_key.p, j->record.workload_key.n);
    put_text(b, "target", j->target, strlen(j->target));
    cd_buf_putf(b, ",\"id\":\"%016llx%016llx\",\"at\":%lld", (unsigned long long)j->id.a,
                (unsigned long long)j->id.b, (long long)m->at);
    if (host) put_text(b, "host", host, strlen(host));
    if (j->flop >= 0) put_real(b, "flop", j->flop);
    put_real(b, "build_s", m->build_s);
    put_real(b, "run_s", m->run_s);
    cd_buf_putf(b, ",\"error_no\":%d", m->error_no);
    if (m->error_no) put_text(b, "error", m->err.msg, strlen(m->err.msg));
    else put_figures(b, m);
    cd_buf_putf(b, ",\"flags\":[%s", m->flags & CD_MEASURE_NOISY ? "\"noisy\"," : "");
    cd_buf_putf(b, "%s%s%s", m->flags & CD_MEASURE_WIDE ? "\"wide\"," : "",
                m->flags & CD_MEASURE_CACHED ? "\"cached\"," : "",
                m->flags & CD_MEASURE_CHECKED ? "\"checked\"," : "");
    if (b->n && b->p[b->n - 1] == ',') b->n--;
    cd_buf_puts(b, "]}\n");
}

/* ---- sums ---- */
/* Share of all processors' time that the machine's host took; negative: unknown. */
static double steal_of(const cd_record_stats *s) {
    cd_host_time now;
    cd_host_time_read("", &now);
    if (now.steal < 0 || s->begin.steal < 0 || now.total <= s->begin.total) return -1;
    return (double)(now.steal - s->begin.steal) / (double)(now.total - s->begin.total);
}

static double rate(const cd_record_stats *s, double now_s) {
    return now_s > s->begin_s ? (double)(s->measured + s->failed) / (now_s - s->begin_s) : 0;
}

/* Error numbers and reasons that did not occur are left out. */
void cd_record_stats_json(cd_buf *b, const cd_record_stats *s, double now_s) {
    const double steal = steal_of(s);
    cd_buf_putf(b,
                "{\"records\":%zu,\"measured\":%zu,\"failed\":%zu,\"known\":%zu,\"bad\":%zu,"
                "\"noisy\":%zu,\"wide\":%zu,\"cached\":%zu,\"errors\":{",
                s->lines, s->measured, s->failed, s->known, s->bad, s->noisy, s->wide, s->cached);
    for (int k = 1, any = 0; k <= CD_ERROR_NO_MAX; k++)
        if (s->error_no[k]) cd_buf_putf(b, "%s\"%d\":%zu", any++ ? "," : "", k, s->error_no[k]);
    cd_buf_puts(b, "},\"reasons\":{");
    for (int k = 1, any = 0; k < CDMPP_STATUS_COUNT; k++)
        if (s->reason[k])
            cd_buf_putf(b, "%s\"%s\":%zu", any++ ? "," : "", cdmpp_status_name((cdmpp_status)k),
                        s->reason[k]);
    cd_buf_puts(b, "}");
    put_real(b, "seconds", now_s - s->begin_s);
    put_real(b, "programs_per_s", rate(s, now_s));
    put_real(b, "build_s", s->build_s);
    put_real(b, "run_s", s->run_s);
    if (steal >= 0) put_real(b, "steal", steal);
    cd_buf_puts(b, "}");
}

void cd_record_stats_text(cd_buf *b, const cd_record_stats *s, double now_s) {
    cd_buf_putf(b,
                "%zu records: %zu measured, %zu failed, %zu measured before, %zu cannot be used\n",
                s->lines, s->measured, s->failed, s->known, s->bad);
    for (int k = 1; k <= CD_ERROR_NO_MAX; k++)
        if (s->error_no[k]) cd_buf_putf(b, "%10zu  %s\n", s->error_no[k], cd_record_stats_error(k));
    if (s->noisy) cd_buf_putf(b, "%10zu  measured while something else ran\n", s->noisy);
    if (s->measured + s->failed)
        cd_buf_putf(b, "%.1f s, %.3g programs/s\n", now_s - s->begin_s, rate(s, now_s));
}
