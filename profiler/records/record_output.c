/* Writes measured programs. The record comes first: what follows names its line, and a run that is
 * killed in between repeats only the statistics. Local and remote measuring share this file, so
 * that their outputs cannot differ. */
#include "profiler/records/records.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct cd_record_output {
    const cd_record_output_options *o;
    cd_record_log *log;
    FILE *stats; /* NULL: none, or not begun */
};

cdmpp_status cd_record_output_open(const cd_record_output_options *o, cd_record_output **out,
                                   cdmpp_err *err) {
    cd_record_output *w = cd_mem_zalloc(1, sizeof *w);
    if (!w) return CD_FAIL(err, ENOMEM, "output");
    w->o = o;
    const cdmpp_status st = cd_record_log_open(o->path, o->retry, &w->log, err);
    if (st) cd_mem_free(w);
    else *out = w;
    return st;
}

cdmpp_status cd_record_output_begin(cd_record_output *w, const cd_buf *head, cdmpp_err *err) {
    if (!w->o->stats) return CDMPP_OK;
    w->stats = fopen(w->o->stats, "a");
    if (!w->stats)
        return cd_err_at(err, CD_FAIL(err, EIO, "cannot open: %s", strerror(errno)), w->o->stats,
                         0);
    /* the check of the next line sees what went wrong */
    if (!head->oom) (void)fwrite(head->p, 1, head->n, w->stats);
    return CDMPP_OK;
}

cdmpp_status cd_record_output_claim(cd_record_output *w, cd_record_id id, unsigned limit,
                                    bool *mine, cdmpp_err *err) {
    return cd_record_log_claim(w->log, id, limit, mine, err);
}

cdmpp_status cd_record_output_put(cd_record_output *w, cd_record_measured *m, cdmpp_err *err) {
    cd_buf b = {0};
    CD_TRY(cd_record_log_add(w->log, m->record, &m->line, err));
    if (w->o->more) CD_TRY(w->o->more(w->o->ctx, m, err));
    if (!w->stats) return CDMPP_OK;
    cd_record_stats_line(&b, m->job, m->line, m->result, m->host);
    const bool good = !b.oom && fwrite(b.p, 1, b.n, w->stats) == b.n && fflush(w->stats) == 0;
    cd_buf_free(&b);
    return good ? CDMPP_OK
                : cd_err_at(err, CD_FAIL(err, EIO, "cannot write: %s", strerror(errno)),
                            w->o->stats, 0);
}

cdmpp_status cd_record_output_close(cd_record_output *w, cdmpp_err *err) {
    if (!w) return CDMPP_OK;
    cdmpp_status st = cd_record_log_close(w->log, err);
    if (w->stats && fclose(w->stats) != 0 && !st)
        st = cd_err_at(err, CD_FAIL(err, EIO, "cannot write: %s", strerror(errno)), w->o->stats, 0);
    cd_mem_free(w);
    return st;
}
