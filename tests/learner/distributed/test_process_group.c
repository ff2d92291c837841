/* Ranks that are threads: laws of dealing, bytes that arrive, one model for any number. */
#include "learner/distributed/distributed.h"
#include "check.h"
#include "made_set.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "learner/train/train.h"

enum { MOST = 4 };

/* ---- a process group of threads ---- */
typedef struct {
    pthread_barrier_t barrier;
    size_t n, n_row[MOST];
    float *v[MOST], *sum;
    const cd_buf *own[MOST];
    cdmpp_status st[MOST];
    cdmpp_err err[MOST];
} room;

typedef struct {
    room *room;
    size_t rank;
    const char *folder;
    const cd_config *c;
    cd_log *log; /* of rank 0 */
    int stop_at; /* ticks of this rank; 0: never */
    int ticks;
    cd_learner_result l;
    cdmpp_status st;
    cdmpp_err err;
} seat;

static cdmpp_status all_add(void *ctx, float *v, size_t n_row, size_t n, cdmpp_err *err) {
    const seat *me = ctx;
    room *m = me->room;
    (void)err;
    m->v[me->rank] = v;
    m->n_row[me->rank] = n_row;
    pthread_barrier_wait(&m->barrier);
    if (me->rank == 0) {
        m->sum = calloc(n, sizeof *m->sum);
        for (size_t i = 0; i < n; i++) {
            m->sum[i] = m->v[0][i];
            for (size_t r = 0; r < m->n; r++)
                for (size_t k = r == 0; k < m->n_row[r]; k++) m->sum[i] += m->v[r][k * n + i];
        }
    }
    pthread_barrier_wait(&m->barrier);
    memcpy(v, m->sum, n * sizeof *v);
    pthread_barrier_wait(&m->barrier);
    if (me->rank == 0) free(m->sum);
    return CDMPP_OK;
}

static cdmpp_status to_first(void *ctx, const cd_buf *own, cd_buf *all, cdmpp_err *err) {
    const seat *me = ctx;
    room *m = me->room;
    (void)err;
    m->own[me->rank] = own;
    pthread_barrier_wait(&m->barrier);
    for (size_t r = 0; all && r < m->n; r++)
        if (m->own[r]->n) cd_buf_put(&all[r], m->own[r]->p, m->own[r]->n);
    pthread_barrier_wait(&m->barrier);
    return CDMPP_OK;
}

static cdmpp_status first_failure(void *ctx, cdmpp_status st, cdmpp_err *err) {
    const seat *me = ctx;
    room *m = me->room;
    m->st[me->rank] = st;
    if (st) m->err[me->rank] = *err;
    pthread_barrier_wait(&m->barrier);
    size_t r = 0;
    while (r < m->n && !m->st[r]) r++;
    if (r < m->n) *err = m->err[r], st = m->st[r];
    pthread_barrier_wait(&m->barrier);
    return st;
}

static bool on_tick(void *ctx, const cd_progress_event *t) {
    seat *me = ctx;
    (void)t;
    return !me->stop_at || ++me->ticks < me->stop_at;
}

static cd_process_group group_of(seat *me) {
    return (cd_process_group){me->rank, me->room->n, true, 0, me, all_add, to_first, first_failure};
}

static void *work(void *arg) {
    seat *me = arg;
    const cd_process_group ranks = group_of(me);
    const cd_learner_options how = {
        .tick = on_tick, .ctx = me, .folder = me->folder, .ranks = &ranks, .log = me->log};
    me->st = cd_learner_run(me->c, NULL, &how, &me->l, &me->err);
    return NULL;
}

static void run_threads(size_t n, void *(*fn)(void *), seat *s) {
    static room m;
    pthread_t t[MOST];
    m = (room){.n = n};
    pthread_barrier_init(&m.barrier, NULL, (unsigned)n);
    for (size_t r = 0; r < n; r++) {
        s[r].room = &m;
        s[r].rank = r;
        assert_int_equal(pthread_create(&t[r], NULL, fn, &s[r]), 0);
    }
    for (size_t r = 0; r < n; r++) pthread_join(t[r], NULL);
    pthread_barrier_destroy(&m.barrier);
}

static void run_crew_and_log(size_t n, const cd_config *c, const char *folder, int stop_at,
                             cd_log *log, seat *s) {
    for (size_t r = 0; r < n; r++)
        s[r] = (seat){
            .c = c, .folder = folder, .stop_at = r + 1 == n ? stop_at : 0, .log = r ? NULL : log};
    run_threads(n, work, s);
}

static void run_crew(size_t n, const cd_config *c, const char *folder, int stop_at, seat *s) {
    run_crew_and_log(n, c, folder, stop_at, NULL, s);
}

/* ---- dealing ---- */
TEST(dealing) {
    cd_member m[CD_N_MEMBER_KIND * 20];
    size_t owner[CD_N_MEMBER_KIND * 20], load[32];
    for (size_t n = 1; n <= CD_N_MEMBER_KIND * 20; n += 7)
        for (size_t ranks = 1; ranks <= 32; ranks++) {
            size_t nets = 0, all = 0;
            for (size_t i = 0; i < n; i++)
                m[i] = (cd_member){.kind = (cd_member_kind)(i % CD_N_MEMBER_KIND)};
            for (size_t i = 0; i < n; i++) nets += cd_member_is_net(m[i].kind);
            memset(load, 0, sizeof load);
            cd_process_group_deal(m, n, ranks, 16, false, owner);
            for (size_t i = 0; i < n; i++) {
                if (owner[i] == CD_PROCESS_GROUP_ALL) all++;
                else assert_true(owner[i] < ranks), load[owner[i]]++;
                if (owner[i] == CD_PROCESS_GROUP_ALL) assert_true(cd_member_is_net(m[i].kind));
            }
            assert_int_equal(all, nets && nets < ranks && ranks <= 16 ? nets : 0);
            /* nobody idle */
            for (size_t r = 0; !all && r < ranks; r++) assert_true(load[r] > 0 || ranks > n);
            cd_process_group_deal(m, n, ranks, 1, false, owner); /* without slices: all dealt */
            for (size_t i = 0; i < n; i++) assert_true(owner[i] < ranks);
            /* the trees by all, unless nobody else is there */
            cd_process_group_deal(m, n, ranks, 1, true, owner);
            for (size_t i = 0; i < n; i++)
                assert_true((owner[i] == CD_PROCESS_GROUP_ALL) ==
                            (ranks > 1 && !cd_member_is_net(m[i].kind)));
        }
}

/* ---- exchange ---- */
static const uint32_t odd_bits[] = {0x80000000u, 0, 0x7fc00001u, 0xffc12345u, 0x7f800000u,
                                    0xff800000u, 1, 0x80000001u, 0x3f800001u, 0xffffffffu};
enum { N_ODD = sizeof odd_bits / sizeof *odd_bits };

/* Each rank knows its share of the bits, the others' are noise before. */
static void *share_bits(void *arg) {
    seat *me = arg;
    uint32_t v[N_ODD];
    float x[N_ODD];
    size_t beg, end;
    const cd_process_group ranks = group_of(me);
    cd_distributed_trees_own(&ranks, N_ODD, &beg, &end);
    for (size_t i = 0; i < N_ODD; i++)
        v[i] = i >= beg && i < end ? odd_bits[i] : 0x40490fdbu + (uint32_t)(i + me->rank);
    memcpy(x, v, sizeof x);
    me->st = cd_distributed_trees_share_bits(&ranks, x, N_ODD, beg, end, &me->err);
    memcpy(v, x, sizeof v);
    me->ticks = memcmp(v, odd_bits, sizeof v) == 0;
    return NULL;
}

TEST(bits_arrive) {
    for (size_t n = 1; n <= MOST; n++) {
        seat me[MOST] = {0};
        run_threads(n, share_bits, me);
        for (size_t r = 0; r < n; r++) assert_true(me[r].st == CDMPP_OK && me[r].ticks);
    }
}

/* The place that a rank hears of is that of the first on its machine; an error of one is
 * everybody's. */
static void *meet(void *arg) {
    seat *me = arg;
    cd_process_group ranks = group_of(me);
    ranks.first = me->rank & ~(size_t)1; /* machines of two */
    const cd_dataset_share share = cd_distributed_data_share(&ranks);
    cd_spool_place place = {(1 << 22) - (int)me->rank, 1000 * (int)me->rank + 3};
    const cdmpp_status st = me->stop_at ? CD_FAIL(&me->err, EIO, "rank %zu", me->rank) : CDMPP_OK;
    me->st = share.meet(share.ctx, st, &place, &me->err);
    me->ticks = share.first == (me->rank % 2 == 0) &&
                place.process == (1 << 22) - (int)ranks.first &&
                place.file == 1000 * (int)ranks.first + 3;
    return NULL;
}

TEST(ranks_meet) {
    for (size_t n = 1; n <= MOST; n++) {
        seat me[MOST] = {0};
        run_threads(n, meet, me);
        for (size_t r = 0; r < n; r++) assert_true(me[r].st == CDMPP_OK && me[r].ticks);
        me[n - 1].stop_at = 1;
        run_threads(n, meet, me);
        for (size_t r = 0; r < n; r++)
            assert_true(me[r].st == CDMPP_EIO && me[r].err.msg[5] == (char)('0' + n - 1));
    }
}

/* ---- training ---- */
static char dir[] = "/tmp/cdmpp-ranks-XXXXXX", h5[64];

static void config(cd_config *c, const char *const *set) {
    cdmpp_err err = {0};
    char files[96];
    assert_ok(cd_config_init(c, &err));
    snprintf(files, sizeof files, "data.files=%s", h5);
    assert_ok(cd_config_set(c, files, &err));
    for (; *set; set++) assert_ok(cd_config_set(c, *set, &err));
}

static const char *const dealt[] = {"model.members=[rows, mlp, program]",
                                    "model.folds=2",
                                    "net.device=false",
                                    "train.rounds=4",
                                    "fit.epochs=2",
                                    NULL};
static const char *const shared[] = {"model.members=[mlp, program]",
                                     "net.device=false",
                                     "train.rounds=4",
                                     "fit.epochs=4",
                                     "fit.slices=4",
                                     "net.dropout_mlp=0.1",
                                     NULL};
static const char *const trees[] = {"model.members=[rows, mlp]",
                                    "train.together=true",
                                    "train.objective=rank",
                                    "net.device=false",
                                    "train.rounds=8",
                                    "train.max_bin=16",
                                    "fit.epochs=2",
                                    NULL};
static const char *const disk[] = {
    "model.members=[rows, mlp]", "train.together=true", "train.memory=1",
    "net.device=false",          "train.rounds=8",      "train.max_bin=16",
    "train.subsample=0.8",       "fit.epochs=2",        NULL};
static const char *const *const way[] = {dealt, shared, trees, disk};
enum { N_WAY = sizeof way / sizeof *way };

static void assert_same_file(const cd_learner_result *a, const cd_learner_result *b) {
    assert_int_equal(a->file.n, b->file.n);
    assert_memory_equal(a->file.p, b->file.p, a->file.n);
}

TEST(one_model_for_any_ranks) {
    for (int k = 0; k < N_WAY; k++) {
        cdmpp_err err = {0};
        cd_config c;
        cd_learner_result one;
        config(&c, way[k]);
        assert_ok(cd_learner_run(&c, NULL, &(cd_learner_options){0}, &one, &err));
        for (size_t n = 2; n <= MOST; n++) {
            seat me[MOST];
            run_crew(n, &c, NULL, 0, me);
            for (size_t r = 0; r < n; r++) {
                assert_ok(me[r].st);
                if (r) assert_null(me[r].l.model);
            }
            assert_same_file(&one, &me[0].l);
            cd_learner_result_free(&me[0].l);
        }
        cd_learner_result_free(&one);
        cd_config_free(&c);
    }
}

/* Each rank has its part of the rows, the first alone the data, and the data go where they go
 * without ranks. */
TEST(data_are_divided) {
    for (int k = 0; k < N_WAY; k++) {
        cd_config c;
        seat me[MOST];
        cd_log log;
        char *text = NULL;
        size_t n_text, rows[MOST] = {0}, all = 0;
        unsigned long long had, whole;
        FILE *out = open_memstream(&text, &n_text);
        assert_non_null(out);
        cd_log_init(&log, "test", out);
        log.level = CD_LOG_DEBUG;
        config(&c, way[k]);
        run_crew_and_log(3, &c, NULL, 0, &log, me);
        fclose(out);
        for (int r = 0; r < 3; r++) {
            char begin[32], place[8];
            assert_int_equal(me[r].st, CDMPP_OK);
            snprintf(begin, sizeof begin, "rank %d: ", r);
            const char *line = strstr(text, begin);
            assert_non_null(line);
            assert_int_equal(
                sscanf(line + 8,
                       "%zu matrix rows of trees, %llu of %llu bytes of the data set read to %7s",
                       &rows[r], &had, &whole, place),
                4);
            assert_true(whole > 0 && had == (r ? 0 : whole));
            assert_string_equal(place, way[k] == disk ? "disk" : "memory");
            all += rows[r];
        }
        for (int r = 0; r < 3; r++) /* grown together */
            if (k >= 2) assert_true(rows[r] > 0 && 3 * rows[r] < all + all / 4);
        free(text);
        cd_learner_result_free(&me[0].l);
        cd_config_free(&c);
    }
}

static void clear(const char *folder) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

/* One rank is stopped: all tell so; three others go on where two were, to the same bytes. */
static void stopped_and_on(void **s) {
    (void)s;
    for (int k = 0; k < N_WAY; k++) {
        cdmpp_err err = {0};
        cd_config c;
        cd_learner_result one;
        seat me[MOST];
        char folder[80];
        snprintf(folder, sizeof folder, "%s/k%d", dir, k);
        config(&c, way[k]);
        assert_ok(cd_learner_run(&c, NULL, &(cd_learner_options){0}, &one, &err));
        run_crew(2, &c, folder, 5, me);
        for (size_t r = 0; r < 2; r++) {
            assert_status(me[r].st, CDMPP_EINTERRUPTED);
            assert_null(me[r].l.model);
        }
        run_crew(3, &c, folder, 0, me);
        for (size_t r = 0; r < 3; r++) assert_ok(me[r].st);
        assert_same_file(&one, &me[0].l);
        cd_learner_result_free(&me[0].l);
        cd_learner_result_free(&one);
        cd_config_free(&c);
        clear(folder);
    }
}

TEST(missing_data) {
    cd_config c;
    seat me[MOST];
    cdmpp_err err = {0};
    config(&c, dealt);
    assert_ok(cd_config_set(&c, "data.files=nosuch.h5", &err));
    run_crew(2, &c, NULL, 0, me);
    for (size_t r = 0; r < 2; r++) assert_true(me[r].st != CDMPP_OK);
    cd_config_free(&c);
}

static int begin(void **s) {
    (void)s;
    if (!mkdtemp(dir)) return 1;
    snprintf(h5, sizeof h5, "%s/d.h5", dir);
    made_set_write(h5);
    return 0;
}

static int end(void **s) {
    (void)s;
    (void)unlink(h5);
    return rmdir(dir);
}

TESTS(begin, end, dealing, bits_arrive, ranks_meet, one_model_for_any_ranks, data_are_divided,
      stopped_and_on, missing_data)
