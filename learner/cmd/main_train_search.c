/* cdmpp-train --autotune and --trial (docs/reference/autotune.md): calls learner/hpo, prints each
 * result as it comes. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "learner/cmd/main_train.h"
#include "learner/hpo/hpo.h"

static void print(cd_buf *b) {
    if (b->p) fputs(b->p, stdout);
    fflush(stdout);
    cd_buf_free(b);
}

/* ---- one trial of somebody else's search ---- */
cdmpp_status cd_main_try(const cd_config *c, cd_main_options *o, cdmpp_err *err) {
    cd_threads *pool = NULL;
    cd_train_progress progress;
    cd_metric valid;
    cd_buf b = {0}, notes = {0};
    if (c->data_kind)
        return cd_err_key(
            err, CD_FAIL(err, ESCHEMA, "expected programs, a trial trains on nothing else"),
            "data.kind");
    cdmpp_status st = cd_threads_new(o->jobs, &pool, err);
    cd_train_progress_begin(&progress, o->log);
    if (!st) st = cd_learner_try(c, NULL, pool, cd_main_tick, &progress, &notes, &valid, err);
    cd_train_progress_end(&progress);
    if (!st && o->json) {
        cd_buf_puts(&b, "{\"schema\":\"cdmpp.trial\",\"command\":\"cdmpp-train\",\"notes\":");
        cd_train_print_notes(&b, notes.p);
        cd_buf_puts(&b, ",\"validation\":");
        cd_metric_json(&b, &valid);
        cd_buf_puts(&b, "}\n");
    } else if (!st) {
        if (notes.p) cd_buf_puts(&b, notes.p);
        cd_metric_text(&b, cd_split_part_name(CD_SPLIT_PART_VALID),
                       cd_split_name((cd_split_kind)c->split_kind), &valid);
    }
    print(&b);
    cd_buf_free(&notes);
    cd_threads_free(pool);
    return st;
}

/* ---- our own search ---- */
static void on_trial(void *ctx, const cd_hpo_event *e) {
    cd_main_options *o = ctx;
    cd_buf b = {0};
    if (o->json) {
        cd_hpo_event_json(&b, e);
        print(&b);
    }
    if (e->state == CD_HPO_RUNNING) return;
    cd_hpo_event_text(&b, e);
    if (!b.oom) cd_log_put(o->log, CD_LOG_INFO, "%s", b.p);
    cd_buf_free(&b);
}

/* Standard output is JSON with --json and results without. */
static void on_note(void *ctx, const char *lines) {
    cd_main_options *o = ctx;
    cd_buf b = {0};
    cd_log_lines(o->log, CD_LOG_INFO, lines);
    if (!o->json) return;
    cd_buf_puts(&b, "{\"notes\":");
    cd_train_print_notes(&b, lines);
    cd_buf_puts(&b, "}\n");
    print(&b);
}

static bool silent_step(void *ctx, const cd_progress_event *t) {
    (void)ctx;
    return cd_main_tick(NULL, t);
}

/* The search's keys, then those of the base; as JSON both in one object. */
static void print_space(const cd_hpo_run_state *s, const cd_main_options *o) {
    cd_buf b = {0}, text = {0}, config = {0};
    if (!o->json) {
        cd_hpo_space_print(&b, &s->space);
        cd_config_print(&b, &s->base);
        print(&b);
        return;
    }
    cd_hpo_space_print(&text, &s->space);
    cd_buf_puts(&config, "{\"search\":");
    cd_command_quote(&config, &text);
    cd_buf_puts(&config, ",\"base\":");
    cd_config_json(&config, &s->base);
    cd_buf_puts(&config, "}");
    cd_command_json(&b, "cdmpp.space", o->name, o->log, &config);
    print(&b);
}

static cdmpp_status search(const cd_hpo_run *cmd, cd_main_options *o, cd_hpo_run_state *s,
                           cdmpp_err *err) {
    cdmpp_status st = cd_hpo_run_read(cmd, !o->print && o->config_of < 0, s, err);
    if (st && s->space.diag.n) {
        cd_log_lines(o->log, CD_LOG_ERROR, s->space.diag.text.p);
        return cd_command_reported(st, err);
    }
    if (st) return cd_main_config_failed(&s->base, o, st, err);
    if (o->print) return print_space(s, o), CDMPP_OK;
    if (o->config_of >= 0) return cd_hpo_run_config(cmd, s, (size_t)o->config_of, err);
    st = cd_hpo_run_search(cmd, s, err);
    if (s->found.torn)
        cd_log_put(o->log, CD_LOG_WARNING,
                   "%s: the last line was cut short, %zu bytes: that training was repeated",
                   s->journal, s->found.torn);
    if (!st) {
        cd_buf b = {0};
        (o->json ? cd_hpo_run_json : cd_hpo_run_text)(&b, s, cmd->out);
        print(&b);
    }
    o->out = NULL; /* the model goes where the configuration says */
    if (!st && o->report) s->best.output_report = o->report;
    if (!st) st = cd_main_fit(&s->best, o, err);
    /* nothing is left to go on with, and nobody asked for the file */
    if (!st && !cmd->journal) (void)unlink(s->journal);
    if (st != CDMPP_EINTERRUPTED) return st;
    cd_log_err(o->log, CD_LOG_ERROR, err);
    cd_log_put(o->log, CD_LOG_ERROR, "the same command goes on from %s", s->journal);
    return cd_command_reported(st, err);
}

cdmpp_status cd_main_search(const char *config, cd_main_options *o, cdmpp_err *err) {
    const cd_hpo_run cmd = {o->space,   config,  o->set.v, o->set.n, o->out ? o->out : "best.yaml",
                            o->journal, o->jobs, on_trial, on_note,  silent_step,
                            o};
    cd_hpo_run_state s;
    const cdmpp_status st = search(&cmd, o, &s, err);
    cd_hpo_run_free(&s);
    return st;
}
