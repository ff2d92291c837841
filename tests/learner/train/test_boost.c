/* Objectives that know only the order in a task, from a data set to a model file and back. */
#include "learner/train/train_internal.h"
#include "check.h"
#include "made_set.h"
#include "predict_rows.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/io/io.h"
#include "learner/train/train.h"
#include "learner/model/model.h"
#include "learner/train/training_set.h"

static char dir[] = "/tmp/cdmpp-boost-XXXXXX", h5[64];
static const char *const objective[] = {"train.objective=pack_sum", "train.objective=rank"};
static const char *const form[] = {"model.members=[rows]", "model.members=[program]",
                                   "model.members=[sums]"};

static int setup(void **s) {
    (void)s;
    if (!mkdtemp(dir)) return 1;
    snprintf(h5, sizeof h5, "data.files=%s/d.h5", dir);
    made_set_write(strchr(h5, '=') + 1);
    return 0;
}

static int teardown(void **s) {
    (void)s;
    unlink(strchr(h5, '=') + 1);
    return rmdir(dir);
}

static void configure(cd_config *c, const char *a, const char *b) {
    cdmpp_err err = {0};
    const char *const set[] = {
        h5, "train.rounds=16", "train.eta=0.4", "train.max_depth=5", "predict.point=median", a, b};
    assert_ok(cd_config_init(c, &err));
    for (size_t k = 0; k < sizeof set / sizeof *set; k++) assert_ok(cd_config_set(c, set[k], &err));
    assert_ok(cd_config_check(c, "test", &err));
}

static void learn(cd_learner_result *l, int jobs, const char *a, const char *b) {
    cdmpp_err err = {0};
    cd_config c;
    cd_threads *pool = NULL;
    configure(&c, a, b);
    assert_ok(cd_threads_new(jobs, &pool, &err));
    assert_ok(cd_learner_run(&c, NULL, &(cd_learner_options){.pool = pool}, l, &err));
    cd_threads_free(pool);
    cd_config_free(&c);
}

/* New tasks are put in order; the file says what it holds. */
static void ranks_new_tasks(void **s) {
    (void)s;
    for (int o = 0; o < 2; o++)
        for (int f = 0; f < 3; f++) {
            cd_learner_result l;
            learn(&l, 1, objective[o], form[f]);
            const cd_metric *m = &l.metrics[CD_SPLIT_PART_TEST];
            /* a sum of scores does not know by how many rows to divide: nothing in these rows
             * tells */
            if (!(m->spearman > 0.75) && (o || f))
                fail_msg("%s %s: Spearman %g", objective[o], form[f], m->spearman);
            assert_int_equal(l.file.p[8], 3);
            cd_learner_result_free(&l);
        }
}

/* The same bytes for any number of threads; through the file, the same answers. */
static void file_predicts_the_same(void **s) {
    (void)s;
    static float row[4 * CD_N_COL];
    const int64_t ptr[] = {0, 4};
    const uint32_t device = 0;
    for (int o = 0; o < 2; o++) {
        cdmpp_err err = {0};
        cd_learner_result l, other;
        cd_model *m = NULL;
        cd_model_scratch *sc = NULL;
        double y = 0, z = 0;
        learn(&l, 1, objective[o], "model.members=[rows, program, sums]");
        learn(&other, 3, objective[o], "model.members=[rows, program, sums]");
        assert_int_equal(l.file.n, other.file.n);
        assert_memory_equal(l.file.p, other.file.p, l.file.n);
        cd_learner_result_free(&other);
        assert_ok(cd_model_from_bytes(l.file.p, l.file.n, &m, &err));
        assert_ok(cd_model_scratch_new(&sc, &err));
        make_rows(3 * N_LINE, row, 4);
        assert_ok(predict_rows(l.model, sc, row, ptr, &device, 1, &y, &err));
        assert_ok(predict_rows(m, sc, row, ptr, &device, 1, &z, &err));
        assert_true(y == z);
        for (size_t k = 0; k < 3; k++) {
            assert_true(m->member[k].objective == l.model->member[k].objective &&
                        m->member[k].scale == l.model->member[k].scale);
            assert_true(m->member[k].scale > 0 && m->member[k].slope > 0);
        }
        cd_model_scratch_free(sc);
        cd_model_free(m);
        cd_learner_result_free(&l);
    }
}

static void damaged_members_are_refused(void **s) {
    (void)s;
    static const char *const text[] = {"{\"kind\":\"rows\",\"fold\":0,\"slope\":1,\"bias\":-9,"
                                       "\"objective\":\"order\",\"scale\":1,\"shift\":0}",
                                       "{\"kind\":\"rows\",\"fold\":0,\"slope\":1,\"bias\":-9,"
                                       "\"objective\":\"rank\",\"scale\":0,\"shift\":0}",
                                       "{\"kind\":\"rows\",\"fold\":0,\"slope\":1,\"bias\":-9,"
                                       "\"objective\":\"rank\",\"shift\":0}"};
    static const cdmpp_status want[] = {CDMPP_ESCHEMA, CDMPP_ERANGE, CDMPP_ESCHEMA};
    for (int k = 0; k < 3; k++) {
        cdmpp_err err = {0};
        cd_arena a = {0};
        const cd_json *v;
        cd_member m = {0};
        assert_ok(cd_json_parse(&a, text[k], strlen(text[k]), &v, &err));
        assert_status(cd_member_load(&m, v, "", 0, &err), want[k]);
        cd_member_free(&m);
        cd_arena_free(&a);
    }
}

/* train.together where nobody else is: only the bins without the values, and own draws of rows. */
static void together_alone_is_the_same(void **s) {
    (void)s;
    static const char *const kind[] = {"train.objective=log_latency", "train.objective=pack_sum",
                                       "train.objective=rank"};
    for (int o = 0; o < 3; o++) {
        cdmpp_err err = {0};
        cd_learner_result l[2];
        for (int k = 0; k < 2; k++) {
            cd_config c;
            configure(&c, kind[o], "model.members=[rows, program, sums]");
            assert_ok(cd_config_set(&c, "train.subsample=1", &err));
            assert_ok(cd_config_set(&c, k ? "train.together=true" : "train.together=false", &err));
            assert_ok(cd_learner_run(&c, NULL, &(cd_learner_options){0}, &l[k], &err));
            cd_config_free(&c);
        }
        for (size_t i = 0; i < 3; i++) {
            cd_buf a = {0}, b = {0};
            const cd_member *m = &l[0].model->member[i], *w = &l[1].model->member[i];
            assert_ok(cd_xgb_save(m->gbt, &a, &err));
            assert_ok(cd_xgb_save(w->gbt, &b, &err));
            assert_int_equal(a.n, b.n);
            assert_memory_equal(a.p, b.p, a.n);
            assert_true(m->scale == w->scale && m->shift == w->shift && m->slope == w->slope &&
                        m->bias == w->bias);
            cd_buf_free(&a);
            cd_buf_free(&b);
        }
        for (int k = 0; k < 2; k++) cd_learner_result_free(&l[k]);
    }
}

/* ---- one member, its programs in another order ---- */
static void list(const cd_training_set *t, cd_split_part p, size_t by, uint32_t *program,
                 double *log_s, uint32_t *group, cd_boost_set *out) {
    const size_t n = t->split->n_program[p];
    for (size_t i = 0; i < n; i++) {
        program[i] = t->program[p][i * by % n];
        log_s[i] = t->log_s[program[i]];
        group[i] = t->group[program[i]];
    }
    *out = (cd_boost_set){n, program, log_s, group};
}

static void train(const cd_training_set *t, size_t by, double *log_s) {
    static uint32_t program[2][N], group[2][N];
    static double y[2][N];
    cdmpp_err err = {0};
    cd_boost_set part[2];
    cd_member m = {.kind = CD_MEMBER_ROWS};
    cd_member_scratch *sc;
    const cd_boost_run run = {.name = "rows", .nthread = 1};
    for (int k = 0; k < 2; k++)
        list(t, k ? CD_SPLIT_PART_VALID : CD_SPLIT_PART_TRAIN, by, program[k], y[k], group[k],
             &part[k]);
    assert_ok(cd_boost(&t->view, &part[0], &part[1], t->c, &run, &m, &err));
    assert_ok(cd_member_scratch_new(&sc, &err));
    assert_ok(cd_member_predict(&m, sc, &t->view, t->program[CD_SPLIT_PART_TEST],
                                t->split->n_program[CD_SPLIT_PART_TEST], NULL, 0, log_s, &err));
    cd_member_scratch_free(sc);
    cd_member_free(&m);
}

static void order_is_nothing(void **s) {
    (void)s;
    static double a[N], b[N];
    for (int o = 0; o < 2; o++) {
        cdmpp_err err = {0};
        cd_config c;
        cd_training_set t;
        /* rows are drawn by number; with 32 bins XGBoost's sketch depends on order, too */
        configure(&c, objective[o], "train.subsample=1");
        assert_ok(cd_config_set(&c, "train.rounds=10", &err));
        assert_ok(cd_training_set_make(&t, &c, NULL, NULL, &err));
        train(&t, 1, a);
        train(&t, 7, b); /* neither part's size is a multiple */
        assert_true(t.split->n_program[0] % 7 && t.split->n_program[1] % 7);
        for (size_t i = 0; i < t.split->n_program[CD_SPLIT_PART_TEST]; i++)
            assert_close(a[i], b[i], 1e-9, 0);
        cd_training_set_free(&t);
        cd_config_free(&c);
    }
}

/* With train.fast the fastest program of each task of the training is answered better than without
 * it, the slower half worse. */
static void fast_programs_count(void **s) {
    (void)s;
    static double a[2][N];
    double off[2][2] = {{0}};
    for (int fast = 0; fast < 2; fast++) {
        static uint32_t program[2][N], group[2][N];
        static double y[2][N];
        cdmpp_err err = {0};
        cd_config c;
        cd_training_set t;
        cd_boost_set part[2];
        cd_member m = {.kind = CD_MEMBER_ROWS};
        cd_member_scratch *sc;
        const cd_boost_run run = {.name = "rows", .nthread = 1};
        configure(&c, "train.objective=log_latency", fast ? "train.fast=4" : "train.fast=0");
        assert_ok(cd_config_set(&c, "train.rounds=10", &err));
        assert_ok(cd_training_set_make(&t, &c, NULL, NULL, &err));
        for (int k = 0; k < 2; k++)
            list(&t, k ? CD_SPLIT_PART_VALID : CD_SPLIT_PART_TRAIN, 1, program[k], y[k], group[k],
                 &part[k]);
        assert_ok(cd_boost(&t.view, &part[0], &part[1], t.c, &run, &m, &err));
        assert_ok(cd_member_scratch_new(&sc, &err));
        assert_ok(
            cd_member_predict(&m, sc, &t.view, program[0], part[0].n, NULL, 0, a[fast], &err));
        for (size_t i = 0; i < part[0].n; i++) {
            double least = INFINITY;
            for (size_t k = 0; k < part[0].n; k++)
                if (group[0][k] == group[0][i]) least = fmin(least, y[0][k]);
            off[fast][y[0][i] > least] += fabs(a[fast][i] - y[0][i]);
        }
        cd_member_scratch_free(sc);
        cd_member_free(&m);
        cd_training_set_free(&t);
        cd_config_free(&c);
    }
    assert_true(off[1][0] < 0.9 * off[0][0]);
    assert_true(off[1][1] > off[0][1]);
}

/* ---- early stopping of lambdarank ---- */
typedef struct {
    double least;
    uint64_t at, last;
} seen;

static bool see(void *ctx, const cd_progress_event *t) {
    seen *s = ctx;
    if (t->valid < s->least) s->least = t->valid, s->at = t->step;
    s->last = t->step;
    return true;
}

/* By v; of equal ones the slower is first (or last), of those alike the one that comes first. */
static bool before(const double *v, int slower, const double *log_s, size_t j, size_t k) {
    const double d = v[j] - v[k], slow = slower * (log_s[j] - log_s[k]);
    if (d < 0 || d > 0) return d < 0;
    return slow < 0 || slow > 0 ? slow < 0 : j < k;
}

/* 1 - NDCG of the part under the member's answers, each task by its programs. */
static double missed(const cd_boost_set *part, const double *answer, const double *fastest) {
    double all = 0;
    for (size_t i = 0; i < part->n; i++) {
        double got = 0, best = 0;
        for (size_t k = 0; k < part->n; k++) {
            size_t place = 0, first = 0;
            if (part->group[k] != part->group[i]) continue;
            for (size_t j = 0; j < part->n; j++)
                if (part->group[j] == part->group[k])
                    place += before(answer, -1, part->log_s, j, k),
                        first += before(part->log_s, 1, part->log_s, j, k);
            const double gain = exp2(exp(fastest[part->group[k]] - part->log_s[k])) - 1;
            got += gain / log2(2 + (double)place), best += gain / log2(2 + (double)first);
        }
        all += 1 - got / best;
    }
    return all / (double)part->n;
}

/* The trees that are kept are those of the round whose order of the validation part is best, which
 * the loss of lambdarank does not tell. */
static void lambdarank_stops_by_ndcg(void **s) {
    (void)s;
    static uint32_t program[2][N], group[2][N];
    static double y[2][N], answer[N], fastest[N];
    cdmpp_err err = {0};
    cd_config c;
    cd_training_set t;
    cd_boost_set part[2];
    cd_member m = {.kind = CD_MEMBER_ROWS};
    cd_member_scratch *sc;
    seen got = {.least = INFINITY};
    const cd_boost_run run = {.name = "rows", .nthread = 1, .tick = see, .ctx = &got};
    configure(&c, "train.objective=rank", "train.rank_loss=lambdarank");
    assert_ok(cd_config_set(&c, "train.rounds=40", &err));
    assert_ok(cd_config_set(&c, "train.early_stop=8", &err));
    assert_ok(cd_training_set_make(&t, &c, NULL, NULL, &err));
    for (int k = 0; k < 2; k++)
        list(&t, k ? CD_SPLIT_PART_VALID : CD_SPLIT_PART_TRAIN, 1, program[k], y[k], group[k],
             &part[k]);
    assert_ok(cd_boost(&t.view, &part[0], &part[1], t.c, &run, &m, &err));
    assert_ok(cd_member_scratch_new(&sc, &err));
    assert_ok(cd_member_predict(&m, sc, &t.view, program[1], part[1].n, NULL, 0, answer, &err));
    for (size_t i = 0; i < N; i++) fastest[i] = INFINITY;
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < part[k].n; i++)
            fastest[group[k][i]] = fmin(fastest[group[k][i]], y[k][i]);
    assert_close(missed(&part[1], answer, fastest), got.least, 1e-6, 1e-12);
    assert_true(got.last == 40 || got.last == got.at + 8);
    cd_member_scratch_free(sc);
    cd_member_free(&m);
    cd_training_set_free(&t);
    cd_config_free(&c);
}

/* Nothing to compare: one program a task. */
static void pairs_are_needed(void **s) {
    (void)s;
    cdmpp_err err = {0};
    cd_config c;
    cd_learner_result l;
    for (int o = 0; o < 2; o++) {
        configure(&c, objective[o], "filter.max_per_task=1");
        assert_status(cd_learner_run(&c, NULL, &(cd_learner_options){0}, &l, &err), CDMPP_ERANGE);
        assert_string_equal(err.key, "train.objective");
        cd_learner_result_free(&l);
        cd_config_free(&c);
    }
}

TESTS(setup, teardown, ranks_new_tasks, file_predicts_the_same, damaged_members_are_refused,
      order_is_nothing, fast_programs_count, pairs_are_needed, lambdarank_stops_by_ndcg,
      together_alone_is_the_same)
