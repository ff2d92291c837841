/* 5,000 operators of 60 definitions on 4 devices; and that memory that ends leaves nothing
 * behind. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/core/core.h"
#include "check.h"
#include "fault.h"
#include "made_snet.h"

static cdmpp_err err;
enum { SIZES = 15, KINDS = 4, OPS = 5000 };
static const char *const kind_name[] = {"conv", "dense", "add", "flip"};

/* The made definitions with other numbers of rows: "6" and "8" of the text become others. */
static void put_kinds(cd_buf *b, int rows) {
    static const char text[] = MS_OPS_TEXT("@", "#", "4");
    for (const char *c = text; *c; c++) {
        if (*c == '@') cd_buf_put_int(b, rows);
        else if (*c == '#') cd_buf_put_int(b, rows + 2);
        else if (!strncmp(c, "\\\"]\", \"target", 13))
            cd_buf_putf(b, "\\\", %d]\", \"target", rows), c += 12;
        else cd_buf_put(b, c, 1);
    }
}

static cd_task_registry *definitions(void) {
    cd_buf b = {0};
    cd_task_registry *t;
    cd_buf_puts(&b, "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [");
    for (int i = 0; i < SIZES; i++) {
        if (i) cd_buf_puts(&b, ", ");
        put_kinds(&b, 16 + 4 * i);
    }
    cd_buf_puts(&b, "]}");
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_load_text(t, "made", b.p, b.n, &err));
    cd_buf_free(&b);
    return t;
}

typedef struct {
    cd_shard_net net;
    cd_shard_net_op *op;
    cd_shard_net_tensor *tensor;
    uint32_t (*arg)[3];
    int64_t shape[SIZES][2];
    char (*key)[KINDS][32];
    size_t asked;
} large;

static uint32_t tensor(large *g, const int64_t *shape, uint32_t rank, uint32_t from,
                       bool constant) {
    g->tensor[g->net.n_tensor] = (cd_shard_net_tensor){"t", rank, shape, 4, from, constant, false};
    return g->net.n_tensor++;
}

static uint32_t put(large *g, const cd_task_registry *t, int size, int kind, uint32_t x,
                    uint32_t y) {
    const uint32_t i = g->net.n_op++;
    uint32_t n = 0, *arg = g->arg[i];
    const char *key = g->key[size][kind];
    arg[n++] = x;
    if (kind < 2)
        arg[n++] = tensor(g, kind ? ms_w2 : ms_w3, kind ? 2 : 3, CD_SHARD_NET_OUTSIDE, true);
    if (kind == 2) arg[n++] = y;
    arg[n++] = tensor(g, g->shape[size], 2, i, false);
    const cd_task *found = cd_task_registry_find(t, (cd_str){key, strlen(key)});
    assert_non_null(found);
    g->op[i] = (cd_shard_net_op){"op", kind_name[kind], key,  found->dag, NULL, n,
                                 arg,  UINT32_MAX,      NULL, 0};
    return arg[n - 1];
}

/* Stages of residual blocks: conv, dense, conv, flip, add of what came in. Each stage begins with
 * an input of its own size. */
static void build(large *g, const cd_task_registry *t, uint32_t ops) {
    memset(g, 0, sizeof *g);
    g->op = calloc(ops + 8, sizeof *g->op),
    g->tensor = calloc(3 * (size_t)ops + 64, sizeof *g->tensor),
    g->arg = calloc(ops + 8, sizeof *g->arg), g->key = calloc(SIZES, sizeof *g->key);
    assert_true(g->op && g->tensor && g->arg && g->key);
    g->net = (cd_shard_net){"large", 1, 0, 0, g->tensor, g->op};
    for (int s = 0; s < SIZES; s++) {
        g->shape[s][0] = 16 + 4 * s, g->shape[s][1] = 4;
        for (int k = 0; k < KINDS; k++)
            snprintf(g->key[s][k], sizeof g->key[s][k], "[\"%s\", %d]", kind_name[k], 16 + 4 * s);
    }
    for (int s = 0; s < SIZES; s++) {
        uint32_t x = tensor(g, g->shape[s], 2, CD_SHARD_NET_OUTSIDE, false);
        while (g->net.n_op < ops * ((uint32_t)s + 1) / SIZES) {
            uint32_t y = put(g, t, s, 0, x, x);
            y = put(g, t, s, 1, y, y);
            y = put(g, t, s, 0, y, y);
            y = put(g, t, s, 3, y, y);
            x = put(g, t, s, 2, y, x);
        }
        g->tensor[x].result = true;
    }
}

static void drop(large *g) {
    free(g->op);
    free(g->tensor);
    free(g->arg);
    free(g->key);
}

static cdmpp_status seconds(void *ctx, uint32_t op, uint32_t device, const cd_te_shard *part,
                            cd_shard_plan_estimate *out, cdmpp_err *e) {
    static const double speed[] = {1, 1.3, 0.8, 2};
    large *g = ctx;
    (void)e;
    g->asked++;
    *out = (cd_shard_plan_estimate){
        5e-6 + speed[device] * 1e-6 * (part ? part->dag->flop : g->op[op].dag->flop), 0.5};
    return CDMPP_OK;
}

static void add_devices(cd_machine *m, uint32_t n) {
    static const char *const name[] = {"cpu0", "ocl0", "ocl1", "ocl2"};
    cd_machine_init(m);
    for (uint32_t d = 0; d < n; d++)
        assert_ok(cd_machine_add(m,
                                 &(cd_machine_device){.name = name[d],
                                                      .kind = "model",
                                                      .core = -1,
                                                      .memory = d / 2,
                                                      .times = 1,
                                                      .scale = 1,
                                                      .launch_s = 1e-6,
                                                      .sync_s = 1e-6},
                                 &err));
    for (uint32_t d = 0; d < n; d++)
        for (uint32_t e = 0; e < n; e++)
            if (d / 2 != e / 2) {
                const cd_link_piece p = {0, 5e-6, 1e-9};
                assert_ok(cd_link_table_add(
                    &m->links, &(cd_link){name[d], name[e], "copy", 1, 3, &p, 0}, &err));
            }
}

static void plans_in_seconds(void **state) {
    (void)state;
    cd_task_registry *t = definitions();
    large g;
    build(&g, t, OPS);
    for (uint32_t n = 2; n <= 4; n += 2) {
        cd_machine m;
        cd_shard_plan *p;
        cd_arena a = {0};
        cd_replay_net net;
        cd_replay r;
        add_devices(&m, n);
        g.asked = 0;
        const clock_t begin = clock();
        assert_ok(cd_shard_plan_make(&(cd_shard_plan_options){.net = &g.net,
                                                              .machine = &m,
                                                              .time = seconds,
                                                              .ctx = &g,
                                                              .margin = NAN,
                                                              .least_s = NAN,
                                                              .cover = NAN,
                                                              .fixed_share = NAN,
                                                              .split = true},
                                     &p, NULL, &err));
        const double s = (double)(clock() - begin) / CLOCKS_PER_SEC;
        print_message("%u operators on %u devices: %.2f s, %zu times asked; %s%s\n", g.net.n_op, n,
                      s, g.asked, p->verdict, p->exact ? ", exact" : "");
        assert_true(s < 10 && p->split);
        for (uint32_t i = 0; i < p->n_base; i++)
            assert_true(p->predicted_s <= p->base[i].predicted_s * (1 + 1e-12));
        assert_ok(cd_shard_plan_replay(p, &g.net, &m, &a, &net, &err));
        assert_ok(cd_replay_run(&net, &r, &err));
        assert_true(r.makespan_s <= p->predicted_s * (1 + 1e-9) &&
                    r.makespan_s >= r.chain_s * (1 - 1e-9));
        cd_replay_free(&r);
        cd_arena_free(&a);
        cd_shard_plan_free(p);
        cd_machine_free(&m);
    }
    drop(&g);
    cd_task_registry_free(t);
}

static cdmpp_status nothing(void *ctx, const cd_shard_plan_query *w, size_t n, cdmpp_err *e) {
    (void)ctx, (void)w, (void)n, (void)e;
    return CDMPP_OK;
}

static cdmpp_status all_of_it(large *g, const cd_machine *m, cd_buf *b) {
    cd_shard_plan *p, **base;
    cd_arena a = {0};
    cd_replay_net net;
    cd_buf_clear(b);
    CD_TRY(cd_shard_plan_make(&(cd_shard_plan_options){.net = &g->net,
                                                       .machine = m,
                                                       .time = seconds,
                                                       .prepare = nothing,
                                                       .ctx = g,
                                                       .margin = 0,
                                                       .least_s = 0,
                                                       .cover = 1,
                                                       .fixed_share = 0.5,
                                                       .split = true},
                              &p, &base, &err));
    const uint32_t n = p->n_base;
    cdmpp_status st = cd_shard_plan_replay(p, &g->net, m, &a, &net, &err);
    cd_arena_free(&a);
    cd_shard_plan_write(p, b);
    cd_shard_plan_free_all(base, n);
    cd_shard_plan_free(p);
    if (!st && b->oom) st = CDMPP_ENOMEM;
    if (!st) st = cd_shard_plan_read_text("p", b->p, b->n, &p, &err);
    if (!st) cd_shard_plan_free(p);
    return st;
}

static void memory_that_ends(void **state) {
    (void)state;
    cd_task_registry *t = definitions();
    large g;
    cd_machine m;
    build(&g, t, 2);
    add_devices(&m, 3);
    FAULT_SWEEP(f, 1) {
        cd_buf b = {0};
        f.step = f.k < 200 ? 1 : 7;
        f.st = all_of_it(&g, &m, &b);
        cd_buf_free(&b);
    }
    cd_machine_free(&m);
    drop(&g);
    cd_task_registry_free(t);
}

TESTS(NULL, NULL, plans_in_seconds, memory_that_ends)
