/* A member through a file: the same bytes, the curve again; strangers are refused. */
#include "learner/train/train_internal.h"
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io/io.h"
#include "forge.h"

enum { N = 20 };
static char dir[] = "/tmp/cdmpp-keep-XXXXXX";

/* The parts of a training that the digest reads, without a data set. */
typedef struct {
    cd_config c;
    cd_dataset d;
    cd_split split;
    uint8_t fold[N];
    double log_s[N];
    uint32_t group[N], device[N];
    cd_training_set t;
} made;

static void make(made *m) {
    cdmpp_err err = {0};
    *m = (made){.d = {.n = N}};
    assert_ok(cd_config_init(&m->c, &err));
    memset(m->d.content_digest, 'a', 64);
    memset(m->split.digest, 'b', 64);
    for (int i = 0; i < N; i++) m->log_s[i] = -i;
    m->t = (cd_training_set){.c = &m->c,
                             .d = &m->d,
                             .split = &m->split,
                             .fold = m->fold,
                             .log_s = m->log_s,
                             .group = m->group,
                             .device = m->device,
                             .n_fold = 1};
}

static cd_member make_net(void) {
    cdmpp_err err = {0};
    cd_net_config s = cd_net_config_small(CD_NET_MLP);
    const double y[3] = {1e-3, 2e-3, 5e-3};
    cd_member e = {.kind = CD_MEMBER_MLP, .fold = 0};
    const cd_batch_spec b = cd_net_batch_spec(&s, NULL, 0);
    assert_ok(cd_net_new(&s, 7, &e.net, &err));
    assert_ok(cd_scalers_init(&e.scalers, &b, &err));
    e.label = cd_mem_zalloc(1, sizeof *e.label);
    assert_non_null(e.label);
    assert_ok(cd_transform_fit(CD_TRANSFORM_LOG, y, 3, e.label, &err));
    return e;
}

typedef struct {
    int n, ends;
    double last;
    char of[64];
} heard;

static bool hear(void *ctx, const cd_progress_event *t) {
    heard *h = ctx;
    h->n++;
    h->ends += t->end;
    h->last = t->valid;
    snprintf(h->of, sizeof h->of, "%s: %s of %d, %d samples", t->member, t->unit, (int)t->n_step,
             (int)t->n_sample);
    return true;
}

static void tell(cd_member_checkpoint_log *told) {
    for (uint64_t k = 1; k <= 5; k++) {
        const bool evaluated = k % 2 == 1;
        const cd_progress_event t = {"mlp",
                                     "step",
                                     k,
                                     5,
                                     8,
                                     evaluated ? 1.0 / (double)k : (double)NAN,
                                     evaluated ? 0.5 : (double)NAN,
                                     k == 5,
                                     0};
        assert_true(cd_member_checkpoint_tick(told, &t));
    }
}

static void assert_same_member(const cd_member *a, const cd_member *b) {
    cdmpp_err err = {0};
    cd_buf x = {0}, y = {0};
    assert_ok(cd_member_save(a, &x, &x, &err));
    assert_ok(cd_member_save(b, &y, &y, &err));
    assert_int_equal(x.n, y.n);
    assert_memory_equal(x.p, y.p, x.n);
    cd_buf_free(&x);
    cd_buf_free(&y);
}

static void there_and_back(void **s) {
    (void)s;
    made m;
    cdmpp_err err = {0};
    cd_member_checkpoint k;
    bool found;
    heard h = {0}, again = {0};
    cd_member_checkpoint_log told = {.tick = hear, .ctx = &h};
    cd_member_checkpoint_log retold = {.tick = hear, .ctx = &again};
    cd_member e = make_net();
    cd_member got = {.kind = CD_MEMBER_MLP, .fold = 0};
    cd_member other = {.kind = CD_MEMBER_MLP, .fold = 1};
    make(&m);
    assert_ok(cd_member_checkpoint_open(&k, dir, &m.t, NULL, &err));
    assert_ok(cd_member_checkpoint_read(&k, "mlp", &retold, &got, &found, &err));
    assert_false(found);
    tell(&told);
    assert_ok(cd_member_checkpoint_write(&k, &e, &told, &err));
    assert_ok(cd_member_checkpoint_read(&k, "mlp", &retold, &got, &found, &err));
    assert_true(found);
    assert_same_member(&e, &got);
    assert_int_equal(h.n, 5);
    assert_int_equal(again.n, 3); /* what was evaluated */
    assert_int_equal(again.ends, 1);
    assert_close(again.last, 0.5, 0, 0);
    assert_string_equal(again.of, "mlp: step of 5, 8 samples");
    assert_string_equal(again.of, h.of);
    assert_string_equal(told.curve.p, retold.curve.p);
    assert_ok(cd_member_checkpoint_read(&k, "mlp 2/2", &retold, &other, &found, &err));
    assert_false(found);
    cd_member_free(&e);
    cd_member_free(&got);
    cd_buf_free(&told.curve);
    cd_buf_free(&retold.curve);
    cd_member_checkpoint_free(&k);
    cd_config_free(&m.c);
}

/* Made by hand, with a right checksum. */
static made forged_of;
static cd_member_checkpoint forged_at;

static bool use_forged(const char *p, size_t n) {
    cdmpp_err err = {0};
    heard h = {0};
    cd_member_checkpoint_log told = {.tick = hear, .ctx = &h};
    cd_member got = {.kind = CD_MEMBER_MLP, .fold = 0};
    const cdmpp_status st = cd_member_checkpoint_decode(&forged_at, p, n, "mlp", &told, &got, &err);
    cd_member_free(&got);
    cd_buf_free(&told.curve);
    if (st && (st == CDMPP_ENOMEM || !err.msg[0])) fail_msg("refused with %s", err.msg);
    return !st;
}

static void forged(void **s) {
    (void)s;
    cdmpp_err err = {0};
    heard h = {0};
    cd_buf b = {0};
    cd_member_checkpoint_log told = {.tick = hear, .ctx = &h};
    cd_member e = make_net();
    make(&forged_of);
    assert_ok(cd_member_checkpoint_open(&forged_at, dir, &forged_of.t, NULL, &err));
    tell(&told);
    assert_ok(cd_member_checkpoint_encode(&forged_at, &e, &told, &b, &err));
    forge_all(FORGE_CONTAINER, b.p, b.n, 60, use_forged);
    cd_buf_free(&b);
    cd_member_free(&e);
    cd_buf_free(&told.curve);
    cd_member_checkpoint_free(&forged_at);
    cd_config_free(&forged_of.c);
}

/* Each thing that a member depends on, changed: refused. What it does not depend on: taken. */
static void strangers(void **s) {
    (void)s;
    for (int change = 0; change < 11; change++) {
        made m;
        cdmpp_err err = {0};
        cd_member_checkpoint k;
        bool found;
        cd_member_checkpoint_log told = {0};
        cd_member got = {.kind = CD_MEMBER_MLP, .fold = 0};
        make(&m);
        switch (change) {
        case 0: m.c.fit_rate = 0.5; break;
        case 1: m.d.content_digest[3] = 'x'; break;
        case 2: m.split.digest[63] = 'x'; break;
        case 3: m.fold[N - 1] = 1; break;
        case 4: m.log_s[0] = 1; break;
        case 5: m.group[2] = 1; break;
        case 6: m.c.train_objective = CD_OBJECTIVE_RANK; break;
        case 7: m.c.train_rank_loss = CD_RANK_LOSS_LISTNET; break;
        case 8: m.c.output_model = "elsewhere"; break;
        case 9: m.c.predict_level = 0.5; break;
        default: break;
        }
        assert_ok(cd_member_checkpoint_open(&k, dir, &m.t, NULL, &err));
        const cdmpp_status st = cd_member_checkpoint_read(&k, "mlp", &told, &got, &found, &err);
        assert_int_equal(st, change < 8 ? CDMPP_EMODEL : CDMPP_OK);
        assert_int_equal(found, change >= 8);
        cd_member_free(&got);
        cd_buf_free(&told.curve);
        cd_member_checkpoint_free(&k);
        cd_config_free(&m.c);
    }
}

/* Cut or changed at 60 places: refused, nothing leaks. */
static void damage(void **s) {
    (void)s;
    made m;
    cdmpp_err err = {0};
    cd_member_checkpoint k;
    cd_buf b = {0};
    cd_member_checkpoint_log told = {0};
    cd_member e = make_net();
    make(&m);
    tell(&told);
    assert_ok(cd_member_checkpoint_open(&k, NULL, &m.t, NULL, &err));
    assert_ok(cd_member_checkpoint_encode(&k, &e, &told, &b, &err));
    const size_t step = b.n / 60 + 1;
    for (size_t i = 0; i < b.n; i += step) {
        cd_member got = {.kind = CD_MEMBER_MLP, .fold = 0};
        assert_status(cd_member_checkpoint_decode(&k, b.p, i, "mlp", &told, &got, &err),
                      CDMPP_EPARSE);
        b.p[i] ^= 1;
        assert_true(cd_member_checkpoint_decode(&k, b.p, b.n, "mlp", &told, &got, &err) !=
                    CDMPP_OK);
        b.p[i] ^= 1;
        cd_member_free(&got);
    }
    cd_buf_free(&b);
    cd_buf_free(&told.curve);
    cd_member_free(&e);
    cd_member_checkpoint_free(&k);
    cd_config_free(&m.c);
}

static int begin(void **s) {
    (void)s;
    return mkdtemp(dir) ? 0 : 1;
}

static int end(void **s) {
    char path[96];
    (void)s;
    snprintf(path, sizeof path, "%s/mlp-0.member", dir);
    (void)unlink(path);
    return rmdir(dir);
}

TESTS(begin, end, there_and_back, forged, strangers, damage)
