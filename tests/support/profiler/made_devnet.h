/* made_devnet.h -- small networks of made programs, once as a net of steps (netrun.h: the truth)
 * and once as actions on devices, with windows, places that are used again, and copies in pieces,
 * all drawn. */
#ifndef MADE_DEVNET_H
#define MADE_DEVNET_H
#include <stdio.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "made_code.h"
#include "profiler/backend/backend.h"
#include "profiler/runtime/multi/multi.h"
#include "profiler/runtime/single/single.h"

enum {
    MD_ROWS = 6,
    MD_COLS = 16,
    MD_N = MD_ROWS * MD_COLS,
    MD_STEPS = 40,
    MD_TENSORS = MD_STEPS + 2,
    MD_RESULTS = 5,
    MD_PROGRAMS = 3
};
enum {
    MD_BUFFERS = 600,
    MD_ACTIONS = 600,
    MD_AFTER = 60000,
    MD_MEMORIES = 3,
    MD_NONE = -1,
    MD_SLOTS = 40
};

/* ---- programs: one rounding for each element, so that C and OpenCL C agree to the bit ---- */

typedef struct md_programs {
    made_code c[MD_PROGRAMS], cl[MD_PROGRAMS];
    cd_build build[MD_PROGRAMS], cl_build[MD_PROGRAMS];
    cd_compiler *compiler;
} md_programs;

static const char *const md_body[MD_PROGRAMS][2] = {
    {"for (int i = 0; i < n; i++) c[i] = a[i] + b[n - 1 - i];", "c[i] = a[i] + b[n - 1 - i];"},
    /* with scratch */
    {"float *s = arg[3]; for (int i = 0; i < n; i++) s[i] = a[i]; for (int i = 0; i < n; i++) c[i] "
     "= s[i] - b[i];",
     "s[i] = a[i]; c[i] = s[i] - b[i];"},
    {"for (int r = 0; r < 3; r++) for (int i = 0; i < n; i++) c[i] = a[n - 1 - i] > b[i] ? a[n - 1 "
     "- i] : -b[i];",
     "c[i] = a[n - 1 - i] > b[i] ? a[n - 1 - i] : -b[i];"}};

static inline void md_scratch(made_code *m) {
    m->buffer[3] =
        (cd_codegen_buffer){.name = "s", .dtype = CD_F32, .elements = MD_N, .bytes = 4 * MD_N};
    m->order[3] = 3;
    m->code.n_buffer = m->launch.n_buffer = 4;
}

static inline void md_opencl(made_code *m, const char *name, const char *body) {
    made_code_set(m, name, MD_N, "");
    cd_buf_free(&m->code.text);
    m->code.text = (cd_buf){0};
    cd_buf_putf(&m->code.text,
                "__kernel void %s(__global const float *a, __global const float *b, __global float "
                "*c%s) {\n const int i = get_global_id(0), n = %d;\n %s\n}\n",
                name, strstr(body, "s[i]") ? ", __global float *s" : "", MD_N, body);
    m->code.dialect = CD_DIALECT_OPENCL;
    m->launch.grid[0] = MD_N;
}

static inline void md_programs_make(md_programs *p) {
    cdmpp_err err = {0};
    *p = (md_programs){0};
    for (int k = 0; k < MD_PROGRAMS; k++) {
        char name[16];
        snprintf(name, sizeof name, "md%d", k);
        made_code_set(&p->c[k], name, MD_N, md_body[k][0]);
        md_opencl(&p->cl[k], name, md_body[k][1]);
        if (k == 1) {
            md_scratch(&p->c[k]);
            md_scratch(&p->cl[k]);
        }
        p->build[k].code = &p->c[k].code;
        p->cl_build[k].code = &p->cl[k].code;
    }
    assert_ok(cd_compiler_open(&(cd_compiler_options){.cache = ""}, &p->compiler, &err));
    assert_ok(cd_compiler_build(p->compiler, p->build, MD_PROGRAMS, 1, &err));
}

static inline void md_programs_free(md_programs *p) {
    cd_compiler_close(p->compiler);
    for (int k = 0; k < MD_PROGRAMS; k++) {
        made_code_free(&p->c[k]);
        made_code_free(&p->cl[k]);
    }
}

/* ---- the network ---- */

typedef struct md_net {
    cd_executor_net net;
    cd_executor_net_tensor tensor[MD_TENSORS];
    cd_executor_net_step step[MD_STEPS];
    uint32_t arg[MD_STEPS][3], program[MD_STEPS];
    uint32_t last[MD_TENSORS]; /* step that reads it last; UINT32_MAX: kept */
} md_net;

static inline uint32_t md_pick(uint64_t *s, uint32_t most) {
    return (uint32_t)(cd_rng_at(0xd0, (*s)++) % most);
}

/* Step k makes tensor k + 2, of two of the `window` before. */
static inline void md_net_make(md_net *r, uint64_t seed, uint32_t window, const md_programs *p) {
    uint64_t s = seed << 32;
    memset(r, 0, sizeof *r);
    for (uint32_t t = 0; t < MD_TENSORS; t++) {
        r->tensor[t] =
            (cd_executor_net_tensor){.bytes = 4 * MD_N,
                                     .dtype = CD_F32,
                                     .role = t < 2                          ? CD_TENSOR_INPUT
                                             : t >= MD_TENSORS - MD_RESULTS ? CD_TENSOR_RESULT
                                                                            : CD_TENSOR_INNER};
        r->last[t] = t < 2 || t >= MD_TENSORS - MD_RESULTS ? UINT32_MAX : t - 2;
    }
    for (uint32_t k = 0; k < MD_STEPS; k++) {
        for (uint32_t i = 0; i < 2; i++) {
            const uint32_t t = r->arg[k][i] = k + 1 - md_pick(&s, k + 2 < window ? k + 2 : window);
            if (r->last[t] != UINT32_MAX) r->last[t] = k;
        }
        r->arg[k][2] = k + 2;
        r->program[k] = md_pick(&s, MD_PROGRAMS);
        r->step[k] = (cd_executor_net_step){"step", &p->build[r->program[k]], r->arg[k], NULL};
    }
    r->net = (cd_executor_net){MD_TENSORS, MD_STEPS, r->tensor, r->step};
}

/* Results of a pass of netrun, with inputs of cd_tensor_fill. */
static inline void md_truth(const md_net *n, float out[MD_RESULTS][MD_N]) {
    cdmpp_err err = {0};
    cd_executor *r;
    double total;
    assert_ok(cd_executor_open(&n->net, &(cd_executor_options){.threads = 1}, &r, &err));
    cd_executor_pass(r, NULL, &total);
    for (uint32_t k = 0; k < MD_RESULTS; k++)
        assert_ok(cd_executor_read(r, MD_TENSORS - MD_RESULTS + k, out[k], &err));
    cd_executor_close(r);
}

/* ---- as actions on devices ---- */

typedef struct md_slot { /* a buffer, and who touched it */
    uint32_t buffer, memory, n_touch, touch[MD_ACTIONS];
    bool wrote[MD_ACTIONS];
    uint32_t tensor; /* UINT32_MAX: free */
} md_slot;

typedef struct md_actions {
    cd_multi_net dn;
    cd_multi_buffer buffer[MD_BUFFERS];
    cd_multi_action action[MD_ACTIONS];
    uint32_t arg[MD_ACTIONS][3];
    uint32_t after[MD_AFTER], n_after, n_slot;
    md_slot slot[MD_BUFFERS];
    int where[MD_TENSORS][MD_MEMORIES]; /* slot of a tensor in a memory */
    uint64_t rng;
    bool again; /* slots are used again */
} md_actions;

static inline uint32_t md_buffer(md_actions *m, uint32_t memory, uint32_t of, int64_t offset,
                                 int64_t bytes) {
    assert_true(m->dn.n_buffer < MD_BUFFERS);
    m->buffer[m->dn.n_buffer] = (cd_multi_buffer){.name = "buffer",
                                                  .memory = memory,
                                                  .of = of,
                                                  .offset = offset,
                                                  .bytes = bytes,
                                                  .dtype = CD_F32};
    return m->dn.n_buffer++;
}

/* A place for a tensor: one that is free, a window with bytes before and behind, or a buffer. */
static inline uint32_t md_place(md_actions *m, uint32_t tensor, uint32_t memory) {
    for (uint32_t s = 0; m->again && s < m->n_slot; s++)
        if (m->slot[s].tensor == UINT32_MAX && m->slot[s].memory == memory && md_pick(&m->rng, 4)) {
            m->slot[s].tensor = tensor;
            return s;
        }
    uint32_t b;
    if (md_pick(&m->rng, 2)) {
        const int64_t before = 4 * md_pick(&m->rng, 50);
        b = md_buffer(m, memory, CD_MULTI_OWN, 0, before + 4 * MD_N + 4 * md_pick(&m->rng, 9));
        b = md_buffer(m, memory, b, before, 4 * MD_N);
    } else b = md_buffer(m, memory, CD_MULTI_OWN, 0, 4 * MD_N);
    m->slot[m->n_slot] = (md_slot){.buffer = b, .memory = memory, .tensor = tensor};
    return m->n_slot++;
}

static inline uint32_t md_action(md_actions *m, uint32_t device) {
    assert_true(m->dn.n_action < MD_ACTIONS);
    m->action[m->dn.n_action] =
        (cd_multi_action){.name = "action", .device = device, .after = &m->after[m->n_after]};
    return m->dn.n_action++;
}

/* Action k, the last one, comes after whoever wrote the slot; one that writes after all, but for
 * the last `but`, which write with it. */
static inline void md_touch(md_actions *m, uint32_t k, uint32_t s, bool writes, uint32_t but) {
    md_slot *x = &m->slot[s];
    for (uint32_t i = 0; i + but < x->n_touch; i++) {
        if (!writes && !x->wrote[i]) continue;
        assert_true(m->n_after < MD_AFTER);
        m->after[m->n_after++] = x->touch[i];
        m->action[k].n_after++;
    }
    assert_true(x->n_touch < MD_ACTIONS);
    x->wrote[x->n_touch] = writes;
    x->touch[x->n_touch++] = k;
}

/* Tensor copied from slot to slot, whole or in columns; `device` of a piece, UINT32_MAX: any of
 * n_any. */
static inline void md_copy(md_actions *m, uint32_t from, uint32_t to, uint32_t device,
                           uint32_t n_any) {
    const uint32_t pieces = 1 + md_pick(&m->rng, 3);
    uint32_t at = 0;
    for (uint32_t p = 0; p < pieces; p++) {
        const uint32_t end = p + 1 == pieces ? MD_COLS : at + 1 + md_pick(&m->rng, 5);
        const uint32_t k = md_action(m, device == UINT32_MAX ? md_pick(&m->rng, n_any) : device);
        m->action[k].copy = (cd_multi_copy){.from = m->slot[from].buffer,
                                            .to = m->slot[to].buffer,
                                            .rank = 2,
                                            .n = {MD_ROWS, end - at},
                                            .from_stride = {MD_COLS, 1},
                                            .to_stride = {MD_COLS, 1},
                                            .from_first = at,
                                            .to_first = at,
                                            .size = 4};
        md_touch(m, k, from, false, 0);
        md_touch(m, k, to, true, p);
        at = end;
    }
}

static inline uint32_t md_device_of(const cd_multi_device *d, uint32_t n, uint32_t memory) {
    for (uint32_t k = 0; k < n; k++)
        if (d[k].memory == memory) return k;
    return UINT32_MAX;
}

/* The slot where a device finds the tensor. */
static inline uint32_t md_bring(md_actions *m, uint32_t t, uint32_t memory) {
    if (m->where[t][memory] != MD_NONE) return (uint32_t)m->where[t][memory];
    uint32_t from = 0;
    while (m->where[t][from] == MD_NONE) from++;
    if (from && memory) {
        (void)md_bring(m, t, 0);
        from = 0;
    }
    const uint32_t to = md_place(m, t, memory);
    md_copy(m, (uint32_t)m->where[t][from], to,
            md_device_of(m->dn.device, m->dn.n_device, from ? from : memory), 0);
    m->where[t][memory] = (int)to;
    return to;
}

/* The host's slot of a tensor moves: by any devices that may. */
static inline void md_shuffle(md_actions *m, uint32_t t) {
    if (m->where[t][0] == MD_NONE || md_pick(&m->rng, 3)) return;
    const uint32_t to = md_place(m, t, 0);
    md_copy(m, (uint32_t)m->where[t][0], to, UINT32_MAX, m->dn.n_device);
    m->slot[m->where[t][0]].tensor = t < 2 ? t : UINT32_MAX;
    m->where[t][0] = (int)to;
}

static inline void md_free_dead(md_actions *m, const md_net *n, uint32_t k) {
    for (uint32_t s = 0; s < m->n_slot; s++)
        if (m->slot[s].tensor != UINT32_MAX && n->last[m->slot[s].tensor] != UINT32_MAX &&
            n->last[m->slot[s].tensor] < k)
            m->slot[s].tensor = UINT32_MAX;
}

static inline void md_actions_make(md_actions *m, const md_net *n, const md_programs *p,
                                   const cd_multi_device *d, uint32_t n_device, uint64_t seed,
                                   bool again) {
    memset(m, 0, sizeof *m);
    m->rng = seed << 20 | 1 << 19;
    m->again = again;
    m->dn =
        (cd_multi_net){.n_device = n_device, .device = d, .buffer = m->buffer, .action = m->action};
    for (uint32_t t = 0; t < MD_TENSORS; t++)
        for (uint32_t i = 0; i < MD_MEMORIES; i++) m->where[t][i] = MD_NONE;
    for (uint32_t t = 0; t < 2; t++) m->where[t][0] = (int)md_place(m, t, 0);
    for (uint32_t k = 0; k < MD_STEPS; k++) {
        const uint32_t dev = md_pick(&m->rng, n_device);
        uint32_t in[2];
        if (again) md_free_dead(m, n, k);
        for (uint32_t i = 0; i < 2; i++) md_shuffle(m, n->arg[k][i]);
        for (uint32_t i = 0; i < 2; i++) in[i] = md_bring(m, n->arg[k][i], d[dev].memory);
        const uint32_t out = md_place(m, k + 2, d[dev].memory), a = md_action(m, dev);
        m->where[k + 2][d[dev].memory] = (int)out;
        m->action[a].build =
            d[dev].kind == CD_MULTI_OPENCL ? &p->cl_build[n->program[k]] : &p->build[n->program[k]];
        m->action[a].buffer = m->arg[a];
        for (uint32_t i = 0; i < 3; i++) {
            m->arg[a][i] = m->slot[i < 2 ? in[i] : out].buffer;
            md_touch(m, a, i < 2 ? in[i] : out, i == 2, 0);
        }
    }
    for (uint32_t t = MD_TENSORS - MD_RESULTS; t < MD_TENSORS; t++) (void)md_bring(m, t, 0);
}

static inline void md_write_inputs(const md_actions *m, cd_multi_executor *r) {
    float x[MD_N];
    cdmpp_err err = {0};
    for (uint32_t t = 0; t < 2; t++) {
        /* the first slots are theirs */
        assert_ok(cd_multi_executor_fill(r, m->slot[t].buffer, t, &err));
        assert_ok(cd_multi_executor_read(r, m->slot[t].buffer, x, &err));
        assert_true(x[0] >= 0.25f && x[0] < 1);
    }
}

static inline void md_read_results(const md_actions *m, cd_multi_executor *r,
                                   float out[MD_RESULTS][MD_N]) {
    cdmpp_err err = {0};
    for (uint32_t k = 0; k < MD_RESULTS; k++)
        assert_ok(cd_multi_executor_read(
            r, m->slot[m->where[MD_TENSORS - MD_RESULTS + k][0]].buffer, out[k], &err));
}
#endif
