/* Plans of files against the network that they are drawn for; names of dimensions. */
#include "check.h"
#include "made_snet.h"

static cdmpp_err err;
static ms_kinds kinds;

/* conv, dense, flip, one behind the other, split where that pays. */
static cd_shard_plan *made(ms_net *m) {
    cd_shard_plan *p;
    ms_begin(m, 3);
    assert_ok(ms_machine(m, 2, NULL, 1e-7, 1e-9, &err));
    const uint32_t x = ms_tensor(m, 2, ms_shape, CD_SHARD_NET_OUTSIDE, false);
    const uint32_t last = ms_op(m, &kinds, MS_FLIP,
                                ms_op(m, &kinds, MS_DENSE, ms_op(m, &kinds, MS_CONV, x, x), x), x);
    m->tensor[last].result = true;
    for (uint32_t d = 0; d < 2; d++) m->speed[d] = (ms_speed){.per_flop = 1e-6};
    const cd_shard_plan_options a = ms_ask(m);
    assert_ok(cd_shard_plan_make(&a, &p, NULL, &err));
    return p;
}

static void refused(const cd_shard_plan *p, const ms_net *m, const char *key, const char *words) {
    err = (cdmpp_err){0};
    assert_int_equal(cd_shard_plan_fits(p, &m->net, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.key, key);
    if (!strstr(err.msg, words)) fail_msg("\"%s\" has no \"%s\"", err.msg, words);
}

static void test_fits(void **state) {
    (void)state;
    static ms_net m;
    cd_shard_plan *p = made(&m);
    uint32_t k = 0;
    assert_ok(cd_shard_plan_fits(p, &m.net, &err));
    while (k < p->n_op && !p->op[k].dim[0]) k++;
    assert_true(k < p->n_op); /* what would be tested else? */
    cd_shard_plan_op *o = &p->op[k];
    const cd_shard_plan_op was = *o;
    char key[40];
    snprintf(key, sizeof key, "operators.%s", o->name);
    o->axis = 7;
    refused(p, &m, key, "cannot be split over");
    *o = was, o->way_op = 99;
    refused(p, &m, key, "operator 99 of its definition");
    *o = was, o->dim = "Q";
    refused(p, &m, key, "cannot be split over Q");
    *o = was, o->reduce = !o->reduce;
    refused(p, &m, key, "cannot be split over");
    *o = was;
    cd_shard_plan_part *last = (cd_shard_plan_part *)(uintptr_t)&o->part[o->n_part - 1];
    last->hi++;
    refused(p, &m, key, "end at");
    last->hi--;
    const cd_te_dag *dag = m.op[k].dag;
    m.op[k].dag = NULL;
    refused(p, &m, key, "nothing defines it");
    m.op[k].dag = dag;
    o->name = "other";
    refused(p, &m, "", "another network, batch or size");
    *o = was;
    p->n_op--;
    refused(p, &m, "", "has 2 operators");
    p->n_op++;
    const cd_shard_plan_copy far = {.tensor = m.net.n_tensor};
    cd_shard_plan_copy *copy = p->copy;
    const uint32_t n_copy = p->n_copy;
    p->copy = (cd_shard_plan_copy *)(uintptr_t)&far, p->n_copy = 1;
    refused(p, &m, "", "copy 0");
    p->copy = copy, p->n_copy = n_copy;
    assert_ok(cd_shard_plan_fits(p, &m.net, &err));
    cd_shard_plan_free(p);
    ms_free(&m);
}

/* Each name is one that splitting takes, and all that it takes are there. */
static void test_dims(void **state) {
    (void)state;
    static ms_net m;
    cd_arena a = {0};
    const char *const *name;
    uint32_t n;
    cd_shard_plan_free(made(&m));
    assert_ok(cd_shard_net_dims(&m.net, &a, &name, &n, &err));
    assert_true(n >= 3);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++) assert_string_not_equal(name[i], name[j]);
    for (uint32_t i = 0; i < n; i++) {
        cd_shard_plan_options ask = ms_ask(&m);
        cd_shard_plan *p;
        ask.dims = name[i];
        assert_ok(cd_shard_plan_make(&ask, &p, NULL, &err));
        for (uint32_t k = 0; k < p->n_op; k++)
            assert_true(!p->op[k].dim[0] || !strcmp(p->op[k].dim, name[i]));
        cd_shard_plan_free(p);
    }
    m.net.n_op = 0;
    assert_ok(cd_shard_net_dims(&m.net, &a, &name, &n, &err));
    assert_int_equal(n, 0);
    cd_arena_free(&a);
    ms_free(&m);
}

static int up(void **state) {
    (void)state;
    return ms_load(&kinds, &err) != CDMPP_OK;
}

static int down(void **state) {
    (void)state;
    cd_task_registry_free(kinds.tasks);
    return 0;
}

TESTS(up, down, test_fits, test_dims)
