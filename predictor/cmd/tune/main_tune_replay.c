/* Mode --replay of cdmpp-tune: what tuners would have found in what was measured. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io/io.h"
#include "learner/config/config.h"
#include "learner/model/model.h"
#include "predictor/cmd/tune/main_tune.h"
#include "predictor/tune/compare/compare.h"

enum { TRIALS = 300, BATCH = 10, SEEDS = 5, LEAST = 32, PATH = 512 };

typedef struct {
    cd_main_tune *o;
    cd_main_tune_plan plan;
    size_t at[CD_MAIN_TUNE_POINTS];
    cd_task_registry *tasks;
    cd_model *model;
    cd_heldout *held;           /* NULL: nobody asked */
    cd_tune_replay_logs logs;
    cd_tune_replay_spec spec;
    cd_tune_replay *replay;
    size_t n_all, n_seen, n_small, n_undefined; /* tasks of the logs; left out, and why */
} state;

/* ---- options ---- */
static cdmpp_status read_plan(const cd_main_tune *o, cd_main_tune_plan *p, cdmpp_err *err) {
    CD_TRY(cd_main_tune_plan_of(o, p, err));
    if (o->compare) return CDMPP_OK;
    CD_TRY(cd_main_tune_tuner(o, o->model ? "cdmpp" : "random", &p->tuner[0], err));
    p->n_tuner = 1;
    const cd_tune_tuner *t = p->tuner[0];
    return t->ranker && t->ranker->needs_model && !o->model ? CD_FAIL(err, EUSAGE, "--tuner %s needs --model", t->name) : CDMPP_OK;
}

static bool any_ranker(const cd_main_tune_plan *p) {
    for (size_t k = 0; k < p->n_tuner; k++)
        if (p->tuner[k]->ranker) return true;
    return false;
}

cdmpp_status cd_main_tune_replay_check(const cd_main_tune *o, cdmpp_err *err) {
    cd_main_tune_plan p;
    double x;
    if (!o->operand.n) return CD_FAIL(err, EUSAGE, "--replay reads logs; none is named");
    if (o->compare && o->tuner >= 0) return CD_FAIL(err, EUSAGE, "--compare and --tuner do not go together");
    if (o->out || o->best || o->emit >= 0 || o->warm.n || o->stats) return CD_FAIL(err, EUSAGE, "--replay measures nothing: --out, --best, --emit, --warm and --stats do not go with it");
    if (o->model_name || o->task.n || o->network || o->target) return CD_FAIL(err, EUSAGE, "--replay takes the tasks of its logs: --model-name, --task, --network and --target do not go with it");
    if (o->epsilon) CD_TRY(cd_main_tune_real("epsilon", o->epsilon, 0, 1, &x, err));
    if (!o->model && (o->device || o->nearest || o->frozen || o->data.n)) return CD_FAIL(err, EUSAGE, "--device, --nearest, --frozen and --data are about --model");
    CD_TRY(read_plan(o, &p, err));
    return any_ranker(&p) && !o->tasks.n ? CD_FAIL(err, EUSAGE, "--tasks is missing: %s reads programs", p.tuner[0]->ranker ? p.tuner[0]->name : "a tuner") : CDMPP_OK;
}

static cd_tune_replay_spec spec_of(const state *s, cd_threads *pool) {
    const cd_main_tune *o = s->o;
    double epsilon = -1;
    if (o->epsilon) (void)cd_main_tune_real("epsilon", o->epsilon, 0, 1, &epsilon, NULL);
    return (cd_tune_replay_spec){.tuner = s->plan.tuner, .n_tuner = s->plan.n_tuner, .n_seed = o->seeds ? (size_t)o->seeds : SEEDS, .seed = (uint64_t)o->seed,
                            .batch = o->per_round ? (size_t)o->per_round : BATCH, .trials = o->trials ? (size_t)o->trials : TRIALS,
                            .ranker = {.model = s->model, .device = o->device, .nearest = o->nearest, .frozen = o->frozen},
                            .population = (uint32_t)o->population, .generations = (uint32_t)o->generations, .epsilon = epsilon, .pool = pool};
}

/* ---- which tasks ---- */
static bool keep(const cd_tune_replay_log *l, const void *arg) {
    state *s = (state *)(uintptr_t)arg;
    const size_t least = s->o->min ? (size_t)s->o->min : LEAST;
    const bool undefined = any_ranker(&s->plan) && !l->of.task, small = l->n < least, seen = s->held && cd_heldout_seen(s->held, l->key);
    s->n_seen += seen;
    s->n_small += !seen && small;
    s->n_undefined += !seen && !small && undefined;
    return !seen && !small && !undefined;
}

static void say_logs(const state *s) {
    const cd_tune_replay_logs *l = &s->logs;
    if (l->bad) {
        cd_log_put(s->o->log, CD_LOG_WARNING, "%zu of %zu lines are no records; the first:", l->bad, l->lines);
        cd_log_err(s->o->log, CD_LOG_WARNING, &l->first);
    }
    if (l->unmeasured) cd_log_put(s->o->log, CD_LOG_WARNING, "%zu records have no result and are left out", l->unmeasured);
    if (s->n_undefined) cd_log_put(s->o->log, CD_LOG_WARNING, "%zu tasks that --tasks does not define are left out", s->n_undefined);
    if (s->model && !s->held) cd_log_put(s->o->log, CD_LOG_WARNING, "--held-out=false: the model may have been trained on these tasks");
}

static cdmpp_status none_left(const state *s, cdmpp_err *err) {
    return CD_FAIL(err, ENODATA, "no task is left of %zu: %zu were seen by the model in training, %zu have too few programs, %zu no definition", s->n_all,
                   s->n_seen, s->n_small, s->n_undefined);
}

static cdmpp_status read_all(state *s, cdmpp_err *err) {
    const cd_main_tune *o = s->o;
    if (o->model) CD_TRY(cd_model_load(o->model, &s->model, err));
    if (o->model && o->held_out) {
        const cdmpp_status st = cd_heldout_new(cd_model_header(s->model), o->data.v, o->data.n, &s->held, err);
        if (st) cd_log_put(o->log, CD_LOG_INFO, "to leave out what the model was trained on, its data set is needed (--data); --held-out=false goes on without");
        CD_TRY(st);
    }
    CD_TRY(cd_task_registry_new(&s->tasks, err));
    for (size_t i = 0; i < o->tasks.n; i++) CD_TRY(cd_task_registry_load(s->tasks, o->tasks.v[i], err));
    CD_TRY(cd_tune_replay_logs_read(s->tasks, o->operand.v, o->operand.n, &s->logs, err));
    s->n_all = s->logs.n;
    cd_tune_replay_logs_keep(&s->logs, keep, s);
    s->o->bad += s->logs.bad;
    say_logs(s);
    return s->logs.n ? CDMPP_OK : none_left(s, err);
}

/* ---- what came out ---- */
static cdmpp_status put_file(const char *path, cd_buf *b, cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    if (b->oom) st = CD_FAIL(err, ENOMEM, "text of %zu bytes", b->n);
    else st = cd_file_write(path, b->p, b->n, err);
    cd_buf_free(b);
    return st;
}

static cdmpp_status make_folder(const char *path, cdmpp_err *err) {
    return mkdir(path, 0777) && errno != EEXIST ? cd_err_at(err, CD_FAIL(err, EIO, "cannot make the folder: %s", strerror(errno)), path, 0) : CDMPP_OK;
}

/* FOLDER/partial_res.csv, FOLDER/op_costs/replay_<tuner>_<device>/<task's number>.csv */
static cdmpp_status put_opbench(const cd_tune_replay_shown *w, const char *folder, cdmpp_err *err) {
    char path[PATH];
    cd_buf b = {0};
    CD_TRY(make_folder(folder, err));
    snprintf(path, sizeof path, "%s/partial_res.csv", folder);
    cd_tune_replay_partial(&b, w);
    CD_TRY(put_file(path, &b, err));
    snprintf(path, sizeof path, "%s/op_costs", folder);
    CD_TRY(make_folder(path, err));
    for (size_t i = 0; i < w->l->n; i++)
        for (size_t t = 0; t < w->spec->n_tuner; t++) {
            const int n = snprintf(path, sizeof path, "%s/op_costs/replay_%s_%s", folder, w->spec->tuner[t]->name, w->l->log[i].device);
            if (n < 0 || (size_t)n + 24 > sizeof path) return CD_FAIL(err, ERANGE, "path of %d bytes", n);
            CD_TRY(make_folder(path, err));
            snprintf(path + n, sizeof path - (size_t)n, "/%zu.csv", i);
            cd_tune_replay_op_costs(&b, w, i, t);
            CD_TRY(put_file(path, &b, err));
        }
    return CDMPP_OK;
}

static void put_json(cd_buf *b, const state *s, const cd_tune_replay_shown *w, const cd_tune_replay_row *row) {
    cd_buf list = {0};
    cd_buf_putf(&list, "{\"tasks\":%zu,\"left_out\":{\"seen\":%zu,\"few\":%zu,\"undefined\":%zu},\"split\":", s->logs.n, s->n_seen, s->n_small, s->n_undefined);
    if (s->held) cd_buf_put_json_str(&list, cd_heldout_split(s->held), strlen(cd_heldout_split(s->held)));
    else cd_buf_puts(&list, "null");
    cd_buf_putf(&list, ",\"seeds\":%zu,\"batch\":%zu,\"trials\":%zu,\"rows\":", s->spec.n_seed, s->spec.batch, s->spec.trials);
    cd_tune_replay_json(&list, w, row);
    cd_buf_puts(&list, "}");
    cd_command_json(b, "cdmpp.tune_replay", "cdmpp-tune", &list);
}

static void put_text(cd_buf *b, const state *s, const cd_tune_replay_shown *w, const cd_tune_replay_row *row) {
    cd_buf_putf(b, "%zu of %zu tasks", s->logs.n, s->n_all);
    if (s->held) cd_buf_putf(b, "; left out: %zu that the model has seen (split %s)", s->n_seen, cd_heldout_split(s->held));
    cd_buf_putf(b, "%s %zu with fewer programs than %d\n", s->held ? "," : "; left out:", s->n_small, s->o->min ? s->o->min : LEAST);
    cd_tune_replay_text(b, w, row);
}

static cdmpp_status tell(const state *s, cdmpp_err *err) {
    const cd_main_tune *o = s->o;
    const cd_tune_replay_shown w = {&s->logs, s->replay, &s->spec, s->at, s->plan.n_at};
    cd_tune_replay_row *row = NULL;
    cd_buf b = {0};
    CD_TRY(cd_tune_replay_table(&s->logs, s->replay, s->at, s->plan.n_at, &row, err));
    if (o->json) put_json(&b, s, &w, row);
    else put_text(&b, s, &w, row);
    cd_mem_free(row);
    CD_TRY(cd_command_print(&b, err));
    if (o->curves) {
        cd_tune_replay_csv(&b, &w);
        CD_TRY(put_file(o->curves, &b, err));
    }
    if (o->svg) {
        const cdmpp_status st = cd_tune_replay_svg(&b, &w, err);
        if (st) cd_buf_free(&b);
        CD_TRY(st);
        CD_TRY(put_file(o->svg, &b, err));
    }
    return o->opbench ? put_opbench(&w, o->opbench, err) : CDMPP_OK;
}

cdmpp_status cd_main_tune_replay(cd_main_tune *o, cdmpp_err *err) {
    state s = {.o = o};
    cd_threads *pool = NULL;
    cdmpp_status st = read_plan(o, &s.plan, err);
    for (size_t k = 0; k < s.plan.n_at; k++) s.at[k] = (size_t)s.plan.at[k];
    if (!st) st = read_all(&s, err);
    if (!st) st = cd_threads_new(o->jobs, &pool, err);
    if (!st) {
        s.spec = spec_of(&s, pool);
        st = cd_tune_replay_play(&s.logs, &s.spec, &s.replay, err);
    }
    if (!st) st = tell(&s, err);
    cd_tune_replay_free(s.replay);
    cd_tune_replay_logs_free(&s.logs);
    cd_threads_free(pool);
    cd_task_registry_free(s.tasks);
    cd_heldout_free(s.held);
    cd_model_free(s.model);
    return st;
}
