/* The summary of a run over files of records, for people and for programs. */
#include "predictor/serve/serve.h"

void cd_stream_print_log(const cd_stream_stats *n, const cd_metric *m, cd_log *log) {
    cd_buf b = {0}, why = {0};
    if (m && m->n) cd_metric_text(&b, "evaluation", "all records", m);
    if (b.p) cd_log_put(log, CD_LOG_INFO, "%.*s", (int)b.n - 1, b.p);
    cd_buf_free(&b);
    if (m && m->n && n->unmeasured)
        cd_log_put(log, CD_LOG_INFO,
                   "%zu scored records whose measurement failed are not in these figures",
                   n->unmeasured);
    if (m && m->n && n->known)
        cd_log_put(log, CD_LOG_WARNING,
                   "the model was trained on the tasks of %zu of these %zu records: the figures do "
                   "not say how good it is on tasks that it has not seen",
                   n->known, (size_t)m->n);
    if (m && m->n && n->own)
        cd_log_put(log, CD_LOG_WARNING,
                   "%zu of these %zu records are also in --measured: the answers knew their times, "
                   "and the figures are too good by them",
                   n->own, (size_t)m->n);
    if (!n->bad) return;
    for (int k = 1; k < CDMPP_STATUS_COUNT; k++)
        if (n->reason[k])
            cd_buf_putf(&why, "%s%zu %s", why.n ? ", " : "", n->reason[k],
                        cdmpp_status_name((cdmpp_status)k));
    cd_log_put(log, CD_LOG_WARNING, "%zu of %zu lines could not be scored: %s", n->bad, n->lines,
               why.p ? why.p : "");
    cd_buf_free(&why);
}

void cd_stream_print_reasons(cd_buf *b, const size_t reason[CDMPP_STATUS_COUNT]) {
    cd_json_writer w = {.out = b};
    cd_json_write_open(&w, '{');
    for (int k = 1; k < CDMPP_STATUS_COUNT; k++)
        if (reason[k])
            cd_json_write_member_int(&w, cdmpp_status_name((cdmpp_status)k), (int64_t)reason[k]);
    cd_json_write_close(&w, '}');
}

void cd_stream_print_json(cd_buf *b, const cd_stream_stats *n, const cd_metric *m) {
    cd_buf_putf(b,
                "{\"schema\":\"cdmpp.evaluation\",\"command\":\"cdmpp-predict\",\"lines\":%zu,"
                "\"scored\":%zu,\"unmeasured\":%zu,\"out_of_range\":%zu,\"with_interval\":%zu,"
                "\"inside_interval\":%zu,\"of_trained_tasks\":%zu,\"of_measured\":%zu,",
                n->lines, n->scored, n->unmeasured, n->out_of_range, n->ranged, n->inside, n->known,
                n->own);
    cd_buf_putf(b, "\"bad\":%zu,\"reasons\":", n->bad);
    cd_stream_print_reasons(b, n->reason);
    cd_buf_puts(b, ",\"evaluation\":");
    if (m) cd_metric_json(b, m);
    else cd_buf_puts(b, "null");
    cd_buf_puts(b, "}\n");
}
