/* The end of an extraction in numbers, as lines for people and as one JSON object; shared by
 * cdmpp-extract and cdmpp-mpi extract. */
#include "base/text/text.h"
#include "dataset/extract/extract.h"

#include <string.h>
#include <sys/resource.h>

static const char *meaning(int i) {
    static const char *const text[] = {
#define CD_X(name, code, t) t,
        CDMPP_STATUS_MAP(CD_X)
#undef CD_X
    };
    return text[i];
}

static double rate(const cd_extract_stats *s, double seconds) {
    return seconds > 0 ? (double)(s->records - s->resumed) / seconds : 0;
}

static void put_skipped(cd_log *log, const char *out, const cd_extract_stats *s) {
    cd_buf why = {0};
    if (!s->skipped) return;
    for (int i = 0; i < CDMPP_STATUS_COUNT; i++)
        if (s->reason[i])
            cd_buf_putf(&why, "%s%llu %s (%s)", why.n ? ", " : "", (unsigned long long)s->reason[i],
                        cdmpp_status_name((cdmpp_status)i), meaning(i));
    cd_log_put(
        log, CD_LOG_WARNING, "%llu of %llu lines without features, listed in %s.skipped.tsv: %s",
        (unsigned long long)s->skipped, (unsigned long long)s->records, out, why.p ? why.p : "");
    cd_buf_free(&why);
}

static void report_text(cd_log *log, const char *out, const cd_extract_stats *s) {
    cd_log_put(log, CD_LOG_INFO,
               "%s: %llu programs, %llu of them without a measured time; %llu rows of features, "
               "one for each buffer that a program writes",
               out, (unsigned long long)s->programs, (unsigned long long)s->failed,
               (unsigned long long)s->rows);
    put_skipped(log, out, s);
}

static void put_count(cd_buf *b, const char *name, uint64_t v) {
    cd_buf_putf(b, ", \"%s\": %llu", name, (unsigned long long)v);
}

/* peak_rss_bytes is of the whole process. */
static void report_json(cd_buf *b, const cd_log *log, const char *out, const cd_extract_stats *s,
                        double seconds) {
    struct rusage u;
    const char *sep = "";
    getrusage(RUSAGE_SELF, &u);
    cd_buf_puts(
        b,
        "{\"schema\": \"cdmpp.extract/1\", \"command\": \"cdmpp-extract\", \"result\": {\"out\": ");
    cd_buf_put_json_str(b, out, strlen(out));
    put_count(b, "records", s->records);
    put_count(b, "programs", s->programs);
    put_count(b, "rows", s->rows);
    put_count(b, "not_measured", s->failed);
    put_count(b, "resumed", s->resumed);
    put_count(b, "skipped", s->skipped);
    cd_buf_puts(b, ", \"skipped_by_reason\": {");
    for (int i = 0; i < CDMPP_STATUS_COUNT; i++)
        if (s->reason[i]) {
            cd_buf_putf(b, "%s\"%s\": %llu", sep, cdmpp_status_name((cdmpp_status)i),
                        (unsigned long long)s->reason[i]);
            sep = ", ";
        }
    cd_buf_putf(
        b,
        "}, \"seconds\": %.3f, \"records_per_s\": %.1f, \"peak_rss_bytes\": %lld}, \"warnings\": ",
        seconds, rate(s, seconds), (long long)u.ru_maxrss * 1024);
    cd_log_put_kept(log, b);
    cd_buf_puts(b, "}\n");
}

cdmpp_status cd_extract_report_end(cd_command_run *r, const char *out, const cd_extract_stats *s,
                                   double seconds, cdmpp_err *err) {
    cd_buf b = {0};
    report_text(&r->log, out, s);
    if (r->said.json) report_json(&b, &r->log, out, s, seconds);
    r->exit_code = s->skipped ? 3 : 0;
    return cd_command_print(&b, err);
}

/* The shell line that extracts the same contents: those options of x that change them. */
static void put_word(cd_buf *b, const char *option, const char *text) {
    cd_buf_puts(b, option);
    if (strchr(text, '\'')) cd_escape_shell(b, cd_str_of(text));
    /* quoted also where it needs none: these lines are compared with those of earlier versions */
    else cd_buf_putf(b, "'%s'", text);
}

static void put_command(cd_buf *b, const cd_extract *x) {
    cd_buf_puts(b, "cdmpp-extract");
    for (size_t i = 0; i < x->n_task_file; i++) put_word(b, " --tasks ", x->task_file[i]);
    if (x->steps) cd_buf_puts(b, " --steps");
    if (x->ids) cd_buf_puts(b, " --ids");
    if (x->device) put_word(b, " --device ", x->device);
    if (x->n_shard) cd_buf_putf(b, " --shard %u/%u", x->shard, x->n_shard);
    for (size_t i = 0; i < x->n_input; i++) put_word(b, " ", x->input[i]);
}

static void on_progress(void *bar, const cd_extract_stats *s) {
    cd_progress *p = bar;
    /* How many records are left is not known; the bytes read so far give an estimate. */
    if (s->bytes)
        p->total = (uint64_t)((double)s->records * (double)s->bytes_total / (double)s->bytes);
    cd_progress_step(p, s->records);
}

cdmpp_status cd_extract_report_run(cd_extract *x, cd_extract_report_fn *extract, const void *ctx,
                                   cd_log *log, cd_extract_stats *s, cdmpp_err *err) {
    cd_progress bar;
    cd_buf command = {0};
    cdmpp_status st;
    cd_progress_begin(&bar, log, "extract", "records", 0);
    put_command(&command, x);
    x->command_line = command.p;
    x->progress = on_progress;
    x->progress_ctx = &bar;
    x->log = log;
    if (command.oom) st = CD_FAIL(err, ENOMEM, "command line");
    else st = extract(x, ctx, s, err);
    if (ctx ? !st && bar.done : !st || bar.done) cd_progress_end(&bar);
    if (st == CDMPP_ENODATA) put_skipped(log, x->out, s); /* they are why */
    cd_buf_free(&command);
    return st;
}
