/* The search of a command, from its files to the best configuration as a file. */
#include "learner/hpo/hpo.h"

#include <stdio.h>
#include <string.h>

#include "base/io/io.h"

static bool is_tune(const char *set) { return !strncmp(set, "tune.", 5); }

/* The assignments that go to the search file, or those that do not. */
static cdmpp_status settings(const cd_hpo_run *cmd, bool tune, cd_arena *a, const char ***set,
                             size_t *n, cdmpp_err *err) {
    *set = CD_NEWN(a, const char *, cmd->n_set + 1);
    *n = 0;
    if (!*set) return CD_FAIL(err, ENOMEM, "settings");
    for (size_t i = 0; i < cmd->n_set; i++)
        if (is_tune(cmd->set[i]) == tune) (*set)[(*n)++] = cmd->set[i];
    return CDMPP_OK;
}

static cdmpp_status read_space(const cd_hpo_run *cmd, cd_hpo_run_state *s, cdmpp_err *err) {
    const char **set;
    size_t n;
    CD_TRY(settings(cmd, true, &s->arena, &set, &n, err));
    return cd_hpo_space_load(&s->space, cmd->space, set, n, err);
}

static cdmpp_status read_base(const cd_hpo_run *cmd, bool data, cd_hpo_run_state *s,
                              cdmpp_err *err) {
    const char *path = cmd->config ? cmd->config : s->space.base;
    CD_TRY(cd_config_init(&s->base, err));
    const char **set;
    size_t n;
    CD_TRY(settings(cmd, false, &s->base.arena, &set, &n, err));
    cdmpp_status st = cd_config_read(&s->base, path, set, n, err);
    if (!st && s->base.data_kind)
        cd_diag_add(&s->base.diag, err, st = CDMPP_ESCHEMA, path, NULL, false, "data.kind",
                    "expected programs: a search varies what is trained on programs");
    if (!st && data) st = cd_config_check(&s->base, path[0] ? path : cmd->space, err);
    return st;
}

cdmpp_status cd_hpo_run_read(const cd_hpo_run *cmd, bool data, cd_hpo_run_state *s,
                             cdmpp_err *err) {
    *s = (cd_hpo_run_state){0};
    const int n =
        snprintf(s->journal, sizeof s->journal, "%s%s", cmd->journal ? cmd->journal : cmd->out,
                 cmd->journal ? "" : ".journal.jsonl");
    if (n < 0 || (size_t)n >= sizeof s->journal)
        return CD_FAIL(err, ERANGE, "name of the journal is too long");
    CD_TRY(read_space(cmd, s, err));
    return read_base(cmd, data, s, err);
}

/* s->best behind the lines of `b`, which is freed. */
static cdmpp_status write_config(const cd_hpo_run *cmd, const cd_hpo_run_state *s,
                                 CD_TAKE cd_buf *b, cdmpp_err *err) {
    cdmpp_status st;
    cd_config_print(b, &s->best);
    if (b->oom) st = CD_FAIL(err, ENOMEM, "configuration");
    else st = cd_file_write(cmd->out, b->p, b->n, err);
    cd_buf_free(b);
    return st;
}

static cdmpp_status write_best(const cd_hpo_run *cmd, const cd_hpo_run_state *s, cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_putf(&b, "# Trial %zu of %zu of a search over %s: %s of the validation part %.6g.\n",
                s->found.best, s->found.n_trial, s->space.path,
                cd_hpo_metric_name((cd_hpo_metric)s->space.tune.error), s->found.best_error);
    return write_config(cmd, s, &b, err);
}

cdmpp_status cd_hpo_run_config(const cd_hpo_run *cmd, cd_hpo_run_state *s, size_t trial,
                               cdmpp_err *err) {
    cd_buf b = {0};
    cd_hpo_trial *t;
    size_t n;
    CD_TRY(cd_hpo_space_sample(&s->space, &s->base, &s->arena, &t, &n, err));
    if (trial >= n)
        return CD_FAIL(err, ERANGE, "expected one of the trials 0 to %zu of this search, found %zu",
                       n - 1, trial);
    CD_TRY(cd_hpo_space_config(&s->space, &s->base, &t[trial], s->space.tune.max_budget, &s->best,
                               err));
    cd_buf_putf(&b, "# Trial %zu of %zu of a search over %s.\n", trial, n, s->space.path);
    return write_config(cmd, s, &b, err);
}

/* What the members of all trials together need of the data. */
static cdmpp_status needs(const cd_hpo_run_state *s, cd_member_plan *all, cdmpp_err *err) {
    cd_arena a = {0};
    cd_hpo_trial *trial;
    size_t n;
    bool must = false; /* a trial cannot be without facts */
    *all = (cd_member_plan){0};
    cdmpp_status st = cd_hpo_space_sample(&s->space, &s->base, &a, &trial, &n, err);
    for (size_t i = 0; !st && i < n; i++) {
        cd_config c;
        cd_member_plan plan;
        st = cd_hpo_space_config(&s->space, &s->base, &trial[i], s->space.tune.max_budget, &c, err);
        /* a trial that cannot be fails on its own */
        if (!st && cd_member_plan_of(&c, &plan, NULL) == CDMPP_OK) {
            all->leaves |= plan.leaves;
            all->steps |= plan.steps;
            all->trees |= plan.trees;
            all->facts |= plan.facts;
            must |= plan.facts && !plan.wish;
        }
        cd_config_free(&c);
    }
    all->wish = all->facts && !must;
    cd_arena_free(&a);
    return st;
}

cdmpp_status cd_hpo_run_search(const cd_hpo_run *cmd, cd_hpo_run_state *s, cdmpp_err *err) {
    cd_dataset *d = NULL;
    cd_member_plan plan;
    CD_TRY(needs(s, &plan, err));
    CD_TRY(cd_learner_load(&s->base, &plan, &d, err));
    const cd_hpo_objective t = {&s->space,  &s->base,  d,
                                s->journal, cmd->jobs, cd_learner_at_once(&s->base, &plan, d),
                                cmd->tell,  cmd->note, cmd->tick,
                                cmd->ctx};
    cdmpp_status st = cd_hpo_objective_run(&t, &s->found, err);
    cd_dataset_free(d);
    CD_TRY(st);
    CD_TRY(cd_hpo_space_config(&s->space, &s->base, &s->found.trial[s->found.best],
                               s->space.tune.max_budget, &s->best, err));
    return write_best(cmd, s, err);
}

void cd_hpo_run_free(cd_hpo_run_state *s) {
    cd_config_free(&s->best);
    cd_hpo_result_free(&s->found);
    cd_config_free(&s->base);
    cd_hpo_space_free(&s->space);
    cd_arena_free(&s->arena);
}

void cd_hpo_run_text(cd_buf *b, const cd_hpo_run_state *s, const char *out) {
    const cd_hpo_result *f = &s->found;
    cd_hpo_result_table(b, f, &s->space, 20);
    cd_buf_putf(b, "trial %zu, %s %.5g on the validation part: %s\n", f->best,
                cd_hpo_metric_name((cd_hpo_metric)s->space.tune.error), f->best_error, out);
}

void cd_hpo_run_json(cd_buf *b, const cd_hpo_run_state *s, const char *out) {
    const cd_hpo_result *f = &s->found;
    cd_buf_putf(b,
                "{\"schema\":\"cdmpp.search\",\"command\":\"cdmpp-train\",\"trials\":%zu,\"best\":%"
                "zu,\"valid_error\":%.17g,\"config_file\":",
                f->n_trial, f->best, f->best_error);
    cd_buf_put_json_str(b, out, strlen(out));
    cd_buf_putf(b, ",\"params\":%s}\n", f->trial[f->best].params);
}
