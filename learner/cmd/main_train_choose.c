/* cdmpp-train --choose and --choose-tasks: what to measure on a new device
 * (learner/train/train.h). */
#include "base/io/io.h"
#include "learner/cmd/main_train.h"

/* What is chosen goes to the file, and is told on standard output; without a file it goes there
 * itself. */
static cdmpp_status put(const cd_config *c, const cd_dataset *d, const cd_choice *ch,
                        cd_main_options *o, cdmpp_err *err) {
    cd_buf lines = {0}, told = {0}, out = {0};
    cdmpp_status st = o->out || !o->json ? cd_choose_put(c, d, ch, &lines, err) : CDMPP_OK;
    if (!st && o->out) st = cd_file_write(o->out, lines.p ? lines.p : "", lines.n, err);
    (o->json ? cd_choose_json : cd_choose_text)(&told, d, ch);
    if (!st && told.oom) st = CD_FAIL(err, ENOMEM, "%zu programs", ch->n);
    if (st) cd_buf_free(&told);
    else if (o->json) cd_command_json(&out, "cdmpp.choice", o->name, o->log, &told);
    else if (!o->out) cd_log_lines(o->log, CD_LOG_INFO, told.p);
    if (!st && !o->json) cd_buf_puts(&out, o->out ? told.p : lines.p ? lines.p : "");
    cd_buf_free(&told);
    cd_buf_free(&lines);
    if (!st) return cd_command_print(&out, err);
    cd_buf_free(&out);
    return st;
}

static cdmpp_status with_data(const cd_config *c, cd_main_options *o, cd_threads *pool,
                              cdmpp_err *err) {
    const cd_member_plan rows = {0}; /* features alone are read */
    const bool tasks = o->choose_tasks > 0;
    const cd_choice_options how = {(size_t)(tasks ? o->choose_tasks : o->choose), tasks, o->budget,
                                   pool};
    cd_dataset *d = NULL;
    cd_choice ch = {0};
    cdmpp_status st = cd_learner_load(c, &rows, &d, err);
    if (!st) st = cd_choose(c, d, &how, &ch, err);
    if (!st && !ch.n)
        st = CD_FAIL(err, ERANGE, "no program costs less than the budget of %d s", o->budget);
    if (!st && ch.n < how.k)
        cd_log_put(
            o->log, CD_LOG_WARNING, "%zu of %zu: %s", ch.n, how.k,
            o->budget ? "the budget is spent, or all others have the features of one that is chosen"
                      : "there are no more");
    if (!st) st = put(c, d, &ch, o, err);
    cd_choose_free(&ch);
    cd_dataset_free(d);
    return st;
}

cdmpp_status cd_main_choose(const cd_config *c, cd_main_options *o, cdmpp_err *err) {
    cd_threads *pool = NULL;
    if (c->data_kind)
        return cd_err_key(
            err, CD_FAIL(err, ESCHEMA, "expected programs: of operators nothing is chosen"),
            "data.kind");
    cdmpp_status st = cd_threads_new(o->jobs, &pool, err);
    if (!st) st = with_data(c, o, pool, err);
    cd_threads_free(pool);
    return st;
}
