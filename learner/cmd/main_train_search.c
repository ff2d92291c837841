/* cdmpp-train --autotune and --trial: docs/reference/autotune.md. */
#include <stdio.h>
#include <string.h>

#include "learner/cmd/main_train.h"
#include "learner/train/train.h"
#include "learner/hpo/hpo.h"

static void print(cd_buf *b) {
    if (b->p) fputs(b->p, stdout);
    fflush(stdout);
    cd_buf_free(b);
}

/* ---- one trial of somebody else's search ---- */
static bool show_step(void *ctx, const cd_progress_event *t) {
    cd_train_progress_step(ctx, t);
    return cd_main_go_on();
}

cdmpp_status cd_main_try(const cd_config *c, cd_main_options *o, cdmpp_err *err) {
    cd_threads *pool = NULL;
    cd_train_progress progress;
    cd_metric valid;
    cd_buf b = {0};
    if (c->data_kind) return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected programs, a trial trains on nothing else"), "data.kind");
    cdmpp_status st = cd_threads_new(o->jobs, &pool, err);
    cd_train_progress_begin(&progress, o->log);
    if (!st) st = cd_learner_try(c, NULL, pool, show_step, &progress, &valid, err);
    cd_train_progress_end(&progress);
    if (!st && o->json) {
        cd_buf_puts(&b, "{\"schema\":\"cdmpp.trial\",\"command\":\"cdmpp-train\",\"validation\":");
        cd_metric_json(&b, &valid);
        cd_buf_puts(&b, "}\n");
    } else if (!st) {
        cd_metric_text(&b, cd_split_part_name(CD_SPLIT_PART_VALID), cd_split_name((cd_split_kind)c->split_kind), &valid);
    }
    print(&b);
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
    if (e->state == CD_HPO_FAILED) cd_buf_putf(&b, "failed: %s", e->reason);
    else cd_buf_putf(&b, "error %.5g", e->error);
    if (e->known) cd_buf_puts(&b, ", from the journal");
    else cd_buf_putf(&b, ", %.1f s", e->seconds);
    cd_log_put(o->log, CD_LOG_INFO, "trial %zu, budget %g: %s", e->trial, e->budget, b.p ? b.p : "");
    cd_buf_free(&b);
}

static bool silent_step(void *ctx, const cd_progress_event *t) {
    (void)ctx, (void)t;
    return cd_main_go_on();
}

static void print_found(const cd_hpo_run_state *s, const cd_main_options *o, const char *out) {
    const cd_hpo_result *f = &s->found;
    cd_buf b = {0};
    if (o->json) {
        cd_buf_putf(&b, "{\"schema\":\"cdmpp.search\",\"command\":\"cdmpp-train\",\"trials\":%zu,\"best\":%zu,\"valid_error\":%.17g,\"config_file\":", f->n_trial,
                    f->best, f->best_error);
        cd_buf_put_json_str(&b, out, strlen(out));
        cd_buf_putf(&b, ",\"params\":%s}\n", f->trial[f->best].params);
    } else {
        cd_hpo_result_table(&b, f, &s->space, 20);
        cd_buf_putf(&b, "trial %zu, %s %.5g on the validation part: %s\n", f->best,
                    cd_hpo_metric_name((cd_hpo_metric)s->space.tune.error), f->best_error, out);
    }
    print(&b);
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
    cd_command_json(&b, "cdmpp.space", o->name, &config);
    print(&b);
}

static cdmpp_status search(const cd_hpo_run *cmd, cd_main_options *o, cd_hpo_run_state *s, cdmpp_err *err) {
    cdmpp_status st = cd_hpo_run_read(cmd, !o->print, s, err);
    if (st && s->space.diag.n) cd_log_lines(o->log, CD_LOG_ERROR, s->space.diag.text.p);
    if (st && s->space.diag.n) return st;
    if (st) return cd_main_config_failed(&s->base, o, st, err);
    if (o->print) return print_space(s, o), CDMPP_OK;
    st = cd_hpo_run_search(cmd, s, err);
    if (s->found.torn)
        cd_log_put(o->log, CD_LOG_WARNING, "%s: the last line was cut short, %zu bytes: that training was repeated", s->journal,
                   s->found.torn);
    if (!st) print_found(s, o, cmd->out);
    o->out = NULL; /* the model goes where the configuration says */
    if (!st && o->report) s->best.output_report = o->report;
    if (!st) st = cd_main_fit(&s->best, o, err);
    if (st) cd_log_err(o->log, CD_LOG_ERROR, err);
    if (st == CDMPP_EINTERRUPTED) cd_log_put(o->log, CD_LOG_ERROR, "the same command goes on from %s", s->journal);
    return st;
}

cdmpp_status cd_main_search(const char *config, cd_main_options *o, cdmpp_err *err) {
    const cd_hpo_run cmd = {o->space, config, o->set.v, o->set.n, o->out ? o->out : "best.yaml", o->journal, o->jobs,
                            on_trial, silent_step, o};
    cd_hpo_run_state s;
    const cdmpp_status st = search(&cmd, o, &s, err);
    cd_hpo_run_free(&s);
    return st;
}
