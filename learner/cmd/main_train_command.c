/* cdmpp-train and cdmpp-mpi train: reads the configuration, calls learner/train, prints what comes
 * back. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text/text.h"
#include "base/io/io.h"
#include "learner/cmd/main_train.h"
#include "learner/hpo/hpo.h"

bool cd_main_tick(void *progress, const cd_progress_event *t) {
    if (progress) cd_train_progress_step(progress, t);
    return !*cd_signals_stop();
}

cdmpp_status cd_main_config_failed(const cd_config *c, cd_main_options *o, cdmpp_status st,
                                   cdmpp_err *err) {
    if (c->diag.n) cd_log_lines(o->log, CD_LOG_ERROR, c->diag.text.p);
    else cd_log_err(o->log, CD_LOG_ERROR, err);
    if (c->diag.n > 1)
        cd_log_put(o->log, CD_LOG_ERROR, "%zu errors in the configuration", c->diag.n);
    return cd_command_reported(st, err);
}

static cdmpp_status read_config(const char *path, cd_main_options *o, cd_config *c,
                                cdmpp_err *err) {
    cdmpp_status st = cd_config_read(c, path, o->set.v, o->set.n, err);
    if (o->report) c->output_report = o->report;
    if (!st && !o->print) st = cd_config_check(c, path, err);
    for (const char *p = !st && c->notes.n ? c->notes.p : ""; *p;
         p += strcspn(p, "\n"), p += *p == '\n')
        cd_log_put(o->log, CD_LOG_WARNING, "%.*s", (int)strcspn(p, "\n"), p);
    return st;
}

/* What was written is what a predictor will read: report from the file's bytes. */
static cdmpp_status reload(cd_learner_result *l, cdmpp_err *err) {
    cd_model *m;
    CD_TRY(cd_model_from_bytes(l->file.p, l->file.n, &m, err));
    cd_model_free(l->model);
    l->model = m;
    return CDMPP_OK;
}

/* A folder that is missing is reported now, not after hours of training. */
static cdmpp_status can_write(const char *path, cdmpp_err *err) {
    struct stat s;
    char *temp;
    /* a device: see when it is written */
    if (!path[0] || (stat(path, &s) == 0 && !S_ISREG(s.st_mode))) return CDMPP_OK;
    CD_TRY(cd_file_temp(path, &temp, err));
    cd_file_discard(temp);
    return CDMPP_OK;
}

cdmpp_status cd_main_out_apart(const cd_config *c, const char *path, cdmpp_err *err) {
    for (size_t k = 0; k < c->data_files.n; k++)
        if (path[0] && cd_file_same(c->data_files.v[k], path))
            return CD_FAIL(err, EUSAGE, "the model would overwrite its data set, %s", path);
    return CDMPP_OK;
}

static cdmpp_status write_out(const cd_config *c, const cd_main_options *o, cd_learner_result *l,
                              const char *path, cdmpp_err *err) {
    CD_TRY(reload(l, err));
    CD_TRY(cd_file_write(path, l->file.p, l->file.n, err));
    CD_TRY(cd_train_artifacts_write(l->keep, c->output_report, o->command ? o->command : "", err));
    cd_buf b = {0};
    if (o->json) cd_train_print_json(&b, l, path);
    else cd_train_print_text(&b, l, path, c->output_report, c->predict_level, o->quiet);
    return cd_command_print(&b, err);
}

cdmpp_status cd_main_fit(const cd_config *c, cd_main_options *o, cdmpp_err *err) {
    const char *path = o->out ? o->out : c->output_model;
    cd_threads *pool = NULL;
    cd_learner_result l = {0};
    cd_model *start = NULL;
    cd_train_progress progress;
    CD_TRY(cd_main_out_apart(c, path, err));
    CD_TRY(can_write(path, err));
    CD_TRY(can_write(c->output_report, err));
    CD_TRY(cd_train_artifacts_check(c->output_report, err));
    cdmpp_status st = cd_threads_new(o->jobs, &pool, err);
    cd_train_progress_begin(&progress, o->log);
    if (!st && o->finetune) st = cd_model_load(o->finetune, &start, err);
    const cd_learner_options how = {.pool = pool,
                                    .tick = cd_main_tick,
                                    .ctx = &progress,
                                    .start = start,
                                    .folder = o->folder,
                                    .log = o->log,
                                    .ranks = o->ranks};
    if (!st) st = cd_learner_run(c, NULL, &how, &l, err);
    cd_model_free(start);
    cd_train_progress_end(&progress);
    if (!st && l.model) st = write_out(c, o, &l, path, err);
    cd_learner_result_free(&l);
    cd_threads_free(pool);
    return st;
}

/* --doc-config and --print-config; `c` as far as it could be read. */
static cdmpp_status print_config(const cd_config *c, const cd_main_options *o, cdmpp_err *err) {
    cd_buf b = {0}, out = {0};
    size_t n;
    const cd_conf_key *key = o->space ? cd_hpo_space_keys(&n) : cd_config_keys(&n);
    if (o->doc) (o->json ? cd_conf_doc_json : cd_conf_doc)(&b, key, n);
    else (o->json ? cd_config_json : cd_config_print)(&b, c);
    if (!o->json) return cd_command_print(&b, err);
    cd_command_json(&out, o->doc ? "cdmpp.config_keys" : "cdmpp.config", o->name, o->log, &b);
    return cd_command_print(&out, err);
}

static cdmpp_status with_config(const char *path, cd_main_options *o, cdmpp_err *err) {
    cd_config c;
    cdmpp_status st = cd_config_init(&c, err);
    if (!st && !o->doc) st = read_config(path, o, &c, err);
    if (st) st = cd_main_config_failed(&c, o, st, err);
    else if (o->doc || o->print) st = print_config(&c, o, err);
    else if (o->trial) st = cd_main_try(&c, o, err);
    else if (o->choose || o->choose_tasks) st = cd_main_choose(&c, o, err);
    else st = c.data_kind ? cd_main_operators(&c, path, o, err) : cd_main_fit(&c, o, err);
    cd_config_free(&c);
    return st;
}

/* The words of the call as a shell would read them back. */
static char *shell_line(const char *name, int argc, char **argv) {
    cd_buf b = {0};
    cd_buf_puts(&b, name);
    for (int i = 1; i < argc; i++) {
        cd_buf_puts(&b, " ");
        cd_escape_shell(&b, cd_str_of(argv[i]));
    }
    if (b.oom) cd_buf_free(&b);
    return b.p;
}

/* The configuration that is here, else the installed one of that name. */
static cdmpp_status find_config(cd_arena *a, cd_main_options *o, const char **path,
                                cdmpp_err *err) {
    const char *asked = *path;
    if (!asked) return CDMPP_OK;
    *path = cd_data_path_or(a, "configs", asked);
    if (!*path) return CD_FAIL(err, ENOMEM, "path");
    if (*path != asked) cd_log_put(o->log, CD_LOG_INFO, "reads %s", *path);
    return CDMPP_OK;
}

/* No signal kills: a training ends at the next step and keeps its checkpoint. */
static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    cd_main_options *o = to;
    const char *path = r->said.operand.n ? r->said.operand.v[0] : NULL;
    o->log = &r->log;
    o->json = r->said.json;
    o->quiet = r->said.quiet;
    o->name = r->command->name;
    o->command = shell_line(o->name, r->argc, r->argv);
    cd_command_verbose(r, o->verbose);
    cd_signals_kill_at(0);
    signal(SIGPIPE, SIG_DFL);
    cdmpp_status st = find_config(&r->said.arena, o, &path, err);
    if (!st) st = find_config(&r->said.arena, o, &o->space, err);
    if (!st) st = o->space && !o->doc ? cd_main_search(path, o, err) : with_config(path, o, err);
    cd_mem_free(o->command);
    r->exit_code = o->skipped ? 3 : 0;
    return st;
}

int cd_main_train(int argc, char **argv, const cd_command *command, const cd_process_group *ranks) {
    cd_main_options o = {.config_of = -1, .ranks = ranks};
    return cd_command_main(command, argc, argv, &o, run);
}
