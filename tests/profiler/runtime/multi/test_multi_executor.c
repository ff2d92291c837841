/* Nets of devices: the same values as netrun's, whatever the order in time; devices that fail or
 * are slow; what cannot be opened. */
#include <math.h>
#include <stdlib.h>

#include "fault.h"
#include "made_devnet_up.h"
#include "noopencl.h"

static md_net net;
static md_actions act;
static float want[MD_RESULTS][MD_N], got[MD_RESULTS][MD_N];

static void check_ran(const cd_multi_action_time *ran, double total) {
    for (uint32_t k = 0; k < act.dn.n_action; k++) {
        assert_true(ran[k].done && ran[k].start_s >= 0 && ran[k].start_s <= ran[k].end_s &&
                    ran[k].end_s <= total);
        for (uint32_t e = 0; e < act.action[k].n_after; e++)
            if (act.action[act.action[k].after[e]].device != act.action[k].device)
                assert_true(ran[act.action[k].after[e]].end_s <= ran[k].start_s);
    }
}

static void moved_is(const cd_multi_executor *r) {
    int64_t between, within, b = 0, w = 0;
    cd_multi_executor_moved(r, &between, &within);
    for (uint32_t k = 0; k < act.dn.n_action; k++) {
        const cd_multi_copy *c = &act.action[k].copy;
        if (!act.action[k].build)
            *(act.buffer[c->from].memory != act.buffer[c->to].memory ? &b : &w) +=
                4 * c->n[0] * c->n[1];
    }
    assert_int_equal(between, b);
    assert_int_equal(within, w);
}

/* A drawn network on these devices, pass after pass. */
static void same_values(const cd_multi_device *d, uint32_t n, uint64_t seeds, int passes) {
    cd_multi_action_time *ran = calloc(MD_ACTIONS, sizeof *ran);
    cdmpp_err err = {0};
    for (uint64_t seed = 0; seed < seeds; seed++) {
        cd_multi_executor *r;
        double total;
        uint32_t failed;
        md_net_make(&net, seed, seed % 2 ? 30 : 6, &programs);
        md_truth(&net, want);
        md_actions_make(&act, &net, &programs, d, n, seed, seed % 3 != 0);
        assert_ok(cd_multi_executor_open(&act.dn, &r, &err));
        md_write_inputs(&act, r);
        for (int pass = 0; pass < passes; pass++) {
            assert_ok(cd_multi_executor_pass(r, pass % 2 ? ran : NULL, &total, &failed, &err));
            assert_int_equal(failed, UINT32_MAX);
            if (pass % 2) check_ran(ran, total);
            md_read_results(&act, r, got);
            assert_memory_equal(want, got, sizeof want);
            moved_is(r);
        }
        cd_multi_executor_close(r);
    }
    free(ran);
}

static const cd_multi_device cpu[] = {
    {.name = "cpu0", .core = -1}, {.name = "cpu1", .core = -1}, {.name = "cpu2", .core = -1}};

static void test_processors(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 3; n++) same_values(cpu, n, 6, 20);
    const cd_multi_device pinned[] = {{.name = "cpu0", .core = 0},
                                      {.name = "twice", .core = 0, .times = 2}};
    same_values(pinned, 2, 2, 10);
}

static void test_native(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    const cd_multi_device in_place[] = {
        {.name = "cpu0", .core = -1},
        {.name = "ocl0", .kind = CD_MULTI_NATIVE, .opencl = "", .core = -1}};
    const cd_multi_device own[] = {
        {.name = "cpu0", .core = -1},
        {.name = "ocl0", .kind = CD_MULTI_NATIVE, .core = -1, .memory = 1}};
    const cd_multi_device both[] = {
        in_place[1], own[1], {.name = "ocl1", .kind = CD_MULTI_NATIVE, .core = -1, .memory = 2}};
    same_values(in_place, 2, 4, 10);
    same_values(in_place + 1, 1, 2, 4);
    same_values(own, 2, 4, 10);
    same_values(both, 3, 3, 6);
}

static void test_opencl(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    const cd_multi_device in_place[] = {
        {.name = "cpu0", .core = -1},
        {.name = "ocl0", .kind = CD_MULTI_OPENCL, .opencl = "", .core = -1}};
    const cd_multi_device own[] = {
        {.name = "cpu0", .core = -1},
        {.name = "ocl0", .kind = CD_MULTI_OPENCL, .core = -1, .memory = 2}};
    const cd_multi_device three[] = {
        in_place[1], own[1], {.name = "ocl1", .kind = CD_MULTI_NATIVE, .core = -1, .memory = 1}};
    same_values(in_place, 2, 3, 6);
    same_values(own, 2, 3, 6);
    same_values(three, 3, 3, 6);
}

/* ---- devices that fail ---- */

static void fails(const cd_multi_device *d, uint32_t n, uint32_t broken, uint64_t seed) {
    float before[2][MD_N], after[2][MD_N];
    uint32_t n_broken = 0, failed = 99;
    cd_multi_action_time *ran = calloc(MD_ACTIONS, sizeof *ran);
    cdmpp_err err = {0};
    cd_multi_executor *r, *other;
    double total;
    md_net_make(&net, seed, 20, &programs);
    md_truth(&net, want);
    md_actions_make(&act, &net, &programs, d, n, seed, true);
    for (uint32_t k = 0; k < act.dn.n_action; k++) n_broken += act.action[k].device == broken;
    assert_ok(cd_multi_executor_open(&act.dn, &r, &err));
    md_write_inputs(&act, r);
    for (uint32_t t = 0; t < 2; t++)
        assert_ok(cd_multi_executor_read(r, act.slot[t].buffer, before[t], &err));
    for (uint32_t at = 0; at < n_broken; at += 1 + n_broken / 5) {
        cd_multi_executor_break(r, broken, at);
        assert_int_equal(cd_multi_executor_pass(r, ran, &total, &failed, &err), CDMPP_EBACKEND);
        assert_int_equal(failed, broken);
        assert_non_null(strstr(err.msg, d[broken].name));
        for (uint32_t k = 0, i = 0; k < act.dn.n_action; k++) {
            if (act.action[k].device == broken) assert_true(i++ < at || !ran[k].done);
            for (uint32_t e = 0; e < act.action[k].n_after; e++)
                assert_true(!ran[k].done || ran[act.action[k].after[e]].done);
        }
        for (uint32_t t = 0; t < 2; t++)
            assert_ok(cd_multi_executor_read(r, act.slot[t].buffer, after[t], &err));
        assert_memory_equal(before, after, sizeof before);
    }
    cd_multi_executor_break(r, broken, UINT32_MAX); /* as if nothing had been */
    assert_ok(cd_multi_executor_pass(r, NULL, &total, &failed, &err));
    md_read_results(&act, r, got);
    assert_memory_equal(want, got, sizeof want);
    cd_multi_executor_close(r);
    md_actions_make(&act, &net, &programs, &d[!broken], 1, seed, true); /* what is left of two */
    assert_ok(cd_multi_executor_open(&act.dn, &other, &err));
    for (uint32_t t = 0; t < 2; t++)
        assert_ok(cd_multi_executor_write(other, act.slot[t].buffer, after[t], &err));
    assert_ok(cd_multi_executor_pass(other, NULL, &total, NULL, &err));
    md_read_results(&act, other, got);
    assert_memory_equal(want, got, sizeof want);
    cd_multi_executor_close(other);
    free(ran);
}

static void test_broken(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) fails(cpu, 2, seed % 2, seed);
    fails(cpu, 3, 0, 9);
}

static void test_broken_opencl(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    const cd_multi_device native[] = {{.name = "cpu0", .core = -1},
                                      {.name = "ocl0", .kind = CD_MULTI_NATIVE, .core = -1}};
    const cd_multi_device own[] = {
        {.name = "cpu0", .core = -1},
        {.name = "ocl0", .kind = CD_MULTI_OPENCL, .core = -1, .memory = 1}};
    for (uint32_t broken = 0; broken < 2; broken++) {
        fails(native, 2, broken, broken);
        fails(own, 2, broken, broken);
    }
}

/* The least of some passes with `times` repeats on the second device, and of as many without, by
 * turns; results stay. */
static void slow_and_fast(cd_multi_executor *r, unsigned times, double *slow, double *fast) {
    cdmpp_err err = {0};
    *slow = *fast = HUGE_VAL;
    for (int k = 0; k < 20; k++) {
        double total, *best = k % 2 ? slow : fast;
        cd_multi_executor_slow(r, 1, k % 2 ? times : 0);
        assert_ok(cd_multi_executor_pass(r, NULL, &total, NULL, &err));
        if (total < *best) *best = total;
        md_read_results(&act, r, got);
        assert_memory_equal(want, got, sizeof want);
    }
}

/* On a loaded machine few repeats may not be seen beside what others take: then more are tried. */
static void test_slow(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_multi_executor *r;
    double fast, slow;
    md_net_make(&net, 3, 20, &programs);
    md_truth(&net, want);
    md_actions_make(&act, &net, &programs, cpu, 2, 3, true);
    assert_ok(cd_multi_executor_open(&act.dn, &r, &err));
    md_write_inputs(&act, r);
    unsigned times = 4000;
    for (slow_and_fast(r, times, &slow, &fast); slow <= 1.5 * fast && times < 4000000; times *= 10)
        slow_and_fast(r, 10 * times, &slow, &fast);
    assert_true(slow > 1.5 * fast);
    cd_multi_executor_close(r);
}

/* ---- what cannot be opened ---- */

typedef struct {
    cd_multi_net dn;
    cd_multi_device device[2];
    cd_multi_buffer buffer[5];
    cd_multi_action action[3];
    uint32_t arg[3][3], after[3];
} plain;

/* 0 and 1 inputs, 2 = f(0, 1) on device 0, 3 = f(2, 1) on device 1, 4 = copy of 3. */
static plain plain_net(void) {
    static const int64_t shape[2] = {MD_ROWS, MD_COLS};
    plain p = {.device = {cpu[0], cpu[1]}, .arg = {{0, 1, 2}, {2, 1, 3}}, .after = {0, 0, 1}};
    for (int k = 0; k < 5; k++)
        p.buffer[k] = (cd_multi_buffer){.name = "buf",
                                        .of = CD_MULTI_OWN,
                                        .bytes = 4 * MD_N,
                                        .dtype = CD_F32,
                                        .rank = 2,
                                        .shape = shape};
    p.action[0] = (cd_multi_action){.name = "one", .build = &programs.build[0]};
    p.action[1] =
        (cd_multi_action){.name = "two", .device = 1, .build = &programs.build[1], .n_after = 1};
    p.action[2] = (cd_multi_action){.name = "three",
                                    .copy = {.from = 3,
                                             .to = 4,
                                             .rank = 1,
                                             .n = {MD_N},
                                             .from_stride = {1},
                                             .to_stride = {1},
                                             .size = 4},
                                    .n_after = 1};
    return p;
}

static cdmpp_status try_open(plain *p, cdmpp_err *err) {
    cd_multi_executor *r = NULL;
    p->dn = (cd_multi_net){2, 5, 3, p->device, p->buffer, p->action};
    for (int k = 0; k < 3; k++) {
        p->action[k].buffer = p->arg[k];
        p->action[k].after = &p->after[k];
    }
    const cdmpp_status st = cd_multi_executor_open(&p->dn, &r, err);
    if (!st) cd_multi_executor_close(r);
    return st;
}

#define REFUSED(change, code, words)                                                               \
    do {                                                                                           \
        plain p = plain_net();                                                                     \
        cdmpp_err e = {0};                                                                         \
        change;                                                                                    \
        assert_int_equal(try_open(&p, &e), CDMPP_##code);                                          \
        if (!strstr(e.msg, words)) fail_msg("\"%s\" has no \"%s\"", e.msg, words);                 \
    } while (0)

static void test_errors(void **state) {
    (void)state;
    plain good = plain_net();
    cdmpp_err err = {0};
    static made_code packed;
    static const cd_codegen_digit digit = {0, 1, MD_ROWS};
    static cd_build none, pack;
    packed = programs.c[0];
    packed.buffer[1].n_digit = 1;
    packed.buffer[1].digit = &digit;
    packed.code.buffer = packed.buffer;
    pack = (cd_build){.code = &packed.code, .object = programs.build[0].object};
    none = (cd_build){.code = &programs.c[0].code};
    assert_ok(try_open(&good, &err));
    REFUSED(p.buffer[4].bytes = -1, EINVALID, "below 0");
    REFUSED((p.buffer[3].of = 4), EINVALID, "no buffer of its own");
    REFUSED((p.buffer[2].of = 1, p.buffer[3].of = 2), EINVALID, "no buffer of its own");
    REFUSED((p.buffer[3].of = 1, p.buffer[3].offset = 4), EINVALID, "outside of");
    REFUSED((p.buffer[3].of = 1, p.buffer[3].memory = 1), EINVALID, "another memory");
    REFUSED((p.buffer[3].of = 2, p.buffer[3].constant = true), EINVALID, "constant window");
    REFUSED(p.device[0].memory = 1, EINVALID, "host's memory");
    REFUSED((p.device[0].kind = p.device[1].kind = CD_MULTI_NATIVE,
             p.device[0].memory = p.device[1].memory = 1),
            EINVALID, "one memory");
    REFUSED(p.device[0].kind = (cd_multi_device_kind)7, EINVALID, "no kind");
    REFUSED(p.action[1].device = 2, EINVALID, "no device 2");
    REFUSED(p.after[1] = 1, EINVALID, "not before it");
    REFUSED(p.arg[1][0] = 5, EINVALID, "no buffer 5");
    REFUSED(p.buffer[1].memory = 1, EINVALID, "is in memory 1");
    REFUSED(p.buffer[2].bytes = 4, EINVALID, "does not fit");
    REFUSED(p.buffer[2].constant = true, EINVALID, "a constant");
    REFUSED(p.buffer[4].constant = true, EINVALID, "a constant");
    REFUSED(p.action[0].build = &pack, EINVALID, "is packed");
    REFUSED((p.action[0].build = &pack, p.buffer[1].constant = true, p.buffer[1].rank = 0),
            EINVALID, "no shape");
    REFUSED(p.action[0].build = &programs.cl_build[0], EINVALID, "does not run");
    REFUSED(p.action[0].build = &none, EBACKEND, "not been compiled");
    REFUSED(p.action[2].copy.rank = 9, EINVALID, "rank 9");
    REFUSED(p.action[2].copy.size = 0, EINVALID, "0 bytes");
    REFUSED(p.action[2].copy.to = 9, EINVALID, "no buffer 9");
    REFUSED(p.action[2].copy.from_first = 1, EINVALID, "outside of buffer");
    REFUSED(p.action[2].copy.to_stride[0] = 2, EINVALID, "outside of buffer");
    REFUSED(p.action[2].copy.n[0] = -1, EINVALID, "outside of buffer");
    REFUSED(p.buffer[4].memory = 1, EINVALID, "only its own device");
    REFUSED(p.action[1].n_after = 0, EINVALID, "actions 0 (one) and 1 (two)");
    REFUSED(p.action[2].n_after = 0, EINVALID, "no order");
    REFUSED(p.arg[0][2] = 0, EINVALID, "writes what it reads");
    REFUSED(p.device[0].core = 4096, EIO, "no processor 4096");
    cd_multi_executor *r;
    float x[MD_N];
    assert_ok(cd_multi_executor_open(&good.dn, &r, &err));
    assert_int_equal(cd_multi_executor_write(r, 5, x, &err), CDMPP_ERANGE);
    assert_int_equal(cd_multi_executor_read(r, 5, x, &err), CDMPP_ERANGE);
    assert_int_equal(cd_multi_executor_fill(r, 5, 0, &err), CDMPP_ERANGE);
    cd_multi_executor_close(r);
    SKIP_WITHOUT_OPENCL();
    REFUSED((p.device[1].kind = CD_MULTI_NATIVE, p.device[1].opencl = "nobody:7"), EBACKEND,
            "nobody");
}

/* ---- (7) against bytes one by one ---- */

enum { FIELD = 240 };

static void paint(const cd_multi_copy *c, bool to, unsigned char *field) {
    const int64_t *stride = to ? c->to_stride : c->from_stride,
                  first = to ? c->to_first : c->from_first;
    for (int64_t i = 0; i < c->n[0]; i++)
        for (int64_t j = 0; j < c->n[1]; j++)
            for (int64_t k = 0; k < c->n[2]; k++)
                field[first + i * stride[0] + j * stride[1] + k * stride[2]] |= to ? 2 : 1;
}

/* A box of 6 x 5 x 8 elements of a byte, or strides of its own. */
static void draw_side(uint64_t *s, const int64_t *n, int64_t *stride, int64_t *first) {
    static const int64_t row_major[3] = {40, 8, 1}, other[3] = {48, 6, 1}, loose[3] = {37, 9, 2};
    const int64_t *t = md_pick(s, 3) ? row_major : md_pick(s, 2) ? other : loose;
    int64_t reach = 0;
    for (int d = 0; d < 3; d++) {
        stride[d] = t[d];
        reach += (n[d] ? n[d] - 1 : 0) * t[d];
    }
    *first = md_pick(s, (uint32_t)(FIELD - reach));
}

static void test_overlaps(void **state) {
    (void)state;
    uint64_t s = 77;
    int n_met = 0, n_apart = 0;
    cdmpp_err err = {0};
    for (int round = 0; round < 1500; round++) {
        unsigned char field[2][3][FIELD] = {{{0}}};
        const cd_multi_buffer buffer[3] = {{.name = "a", .of = CD_MULTI_OWN, .bytes = FIELD},
                                           {.name = "b", .of = CD_MULTI_OWN, .bytes = FIELD},
                                           {.name = "w", .of = 0, .offset = 100, .bytes = 140}};
        cd_multi_action action[2] = {{.name = "x", .device = 0}, {.name = "y", .device = 1}};
        for (int k = 0; k < 2; k++) {
            cd_multi_copy *c = &action[k].copy;
            *c = (cd_multi_copy){.from = md_pick(&s, 2),
                                 .rank = 3,
                                 .n = {1 + md_pick(&s, 3), md_pick(&s, 4), 1 + md_pick(&s, 5)},
                                 .size = 1};
            if (md_pick(&s, 4)) c->n[1]++;
            draw_side(&s, c->n, c->from_stride, &c->from_first);
            draw_side(&s, c->n, c->to_stride, &c->to_first);
            c->to = !c->from;
            paint(c, false, field[k][c->from]);
            paint(c, true, field[k][c->to]);
        }
        bool met = false;
        for (int b = 0; b < 2; b++)
            for (int i = 0; i < FIELD; i++)
                met = met ||
                      (field[0][b][i] && field[1][b][i] && (field[0][b][i] | field[1][b][i]) > 1);
        cd_multi_executor *r = NULL;
        const cd_multi_net dn = {2, 3, 2, cpu, buffer, action};
        const cdmpp_status st = cd_multi_executor_open(&dn, &r, &err);
        assert_int_equal(st, met ? CDMPP_EINVALID : CDMPP_OK);
        cd_multi_executor_close(r);
        n_met += met;
        n_apart += !met;
    }
    assert_true(n_met > 200 && n_apart > 200);
}

static void test_no_memory(void **state) {
    (void)state;
    md_net_make(&net, 1, 20, &programs);
    md_actions_make(&act, &net, &programs, cpu, 2, 1, true);
    FAULT_SWEEP(f, 1) {
        cdmpp_err err = {0};
        double total;
        cd_multi_executor *r = NULL;
        f.st = cd_multi_executor_open(&act.dn, &r, &f.err);
        if (f.st) continue;
        fault_off(); /* and nothing is allocated in passes */
        md_write_inputs(&act, r);
        fault_all();
        assert_ok(cd_multi_executor_pass(r, NULL, &total, NULL, &err));
        cd_multi_executor_close(r);
    }
}

TESTS(md_up, md_down, test_processors, test_native, test_opencl, test_broken, test_broken_opencl,
      test_slow, test_errors, test_overlaps, test_no_memory)
