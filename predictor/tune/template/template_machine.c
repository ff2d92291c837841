/* What templates know of a processor, from this machine or from a description. What is not known is
 * an error, for tiles of a guessed cache would be called computed. */
#include <stdio.h>
#include <string.h>

#include "predictor/tune/template/template.h"
#include "predictor/tune/template/template_internal.h"
#include "profiler/host/host.h"

/* A block as a program: the steps of a sketch with the block's lengths, and behind them what else
 * it decides, are a record that the space follows. What the space follows is one of its own
 * programs. */

enum { AFTER = 8, PRAGMA = 40, VECTOR = 2 };

typedef struct {
    const cd_template_nest *n;
    const cd_template_block *b;
    const cd_record_step *from; /* (n_from) of the sketch */
    uint32_t n_from;
    cd_arena a;
    cd_record_step *step; /* (n_step) wanted */
    uint32_t n_step;
    char pragma[PRAGMA];
} wanted;

static bool inlined(const wanted *w, uint32_t stage) {
    for (uint32_t k = 0; k < w->n_from; k++)
        if (w->from[k].kind == CD_RECORD_STEP_CI && w->from[k].stage == (int32_t)stage) return true;
    return false;
}

/* Where the result is attached: its level is the number of its tiles, S0 or S0 and S1. */
static const cd_record_step *fusion(const wanted *w) {
    for (uint32_t k = 0; k < w->n_from; k++)
        if (w->from[k].kind == CD_RECORD_STEP_CA && w->from[k].stage == (int32_t)w->n->op)
            return &w->from[k];
    return NULL;
}

/* Lengths of the next split of the tiled stage; its axes are split in their order. */
static cdmpp_status set_lengths(wanted *w, cd_record_step *t, uint32_t axis, cdmpp_err *err) {
    const uint32_t parts = axis < w->n->n_space ? 3 : 1;
    int32_t *len = CD_NEWN(&w->a, int32_t, parts);
    if (!len) return CD_FAIL(err, ENOMEM, "steps");
    if (axis >= w->n->n_axis || t->n_list != parts)
        return CD_FAIL(err, EREJECTED, "the sketch splits other loops");
    if (parts == 1) len[0] = w->b->r1[axis];
    else len[0] = w->b->s1[axis], len[1] = w->b->s2[axis], len[2] = w->b->s3[axis];
    t->list = len;
    return CDMPP_OK;
}

static cdmpp_status set_sketch(wanted *w, cdmpp_err *err) {
    uint32_t axis = 0;
    w->step = CD_NEWN(&w->a, cd_record_step, w->n_from + AFTER * (w->n->op + 2));
    if (!w->step) return CD_FAIL(err, ENOMEM, "steps");
    for (uint32_t k = 0; k < w->n_from; k++) {
        cd_record_step *t = &w->step[w->n_step++];
        *t = w->from[k];
        if (t->kind == CD_RECORD_STEP_RF)
            return CD_FAIL(err, EREJECTED, "the sketch factors the sum");
        if (t->kind == CD_RECORD_STEP_SP && t->stage == (int32_t)w->n->op)
            CD_TRY(set_lengths(w, t, axis++, err));
    }
    return axis == w->n->n_axis ? CDMPP_OK
                                : CD_FAIL(err, EREJECTED, "the sketch does not split every loop");
}

static void want_vector(wanted *w, int32_t stage) {
    w->step[w->n_step++] =
        (cd_record_step){.kind = CD_RECORD_STEP_AN, .stage = stage, .i = {0, VECTOR}};
}

/* Where a guarded operand is made: before all, in the last S0 loop, in the last R0 loop. */
static void want_copy(wanted *w, const cd_record_step *fused, uint32_t stage) {
    const int32_t s = (int32_t)w->n->n_space, r = (int32_t)(w->n->n_axis - w->n->n_space),
                  tiled = (int32_t)w->n->op;
    cd_record_step *t = &w->step[w->n_step++];
    *t = (cd_record_step){
        .kind = CD_RECORD_STEP_CA, .stage = (int32_t)stage, .i = {fused->i[0], s - 1}};
    if (w->b->copy == CD_TEMPLATE_COPY_ROOT)
        *t = (cd_record_step){.kind = CD_RECORD_STEP_CR, .stage = (int32_t)stage};
    if (w->b->copy == CD_TEMPLATE_COPY_INNER) t->i[0] = tiled, t->i[1] = 2 * s + r - 1;
    want_vector(w, (int32_t)stage);
}

static void set_rest(wanted *w, const cd_record_step *fused) {
    const int n = snprintf(w->pragma, sizeof w->pragma, "auto_unroll_max_step$%u", w->b->unroll);
    w->step[w->n_step++] = (cd_record_step){
        .kind = CD_RECORD_STEP_PR, .stage = (int32_t)w->n->op, .s = {w->pragma, (size_t)n}};
    want_vector(w, (int32_t)w->n->op);
    want_vector(w, fused->i[0]);
    for (int k = 0; k < 2; k++)
        if (w->n->in[k].guarded && !inlined(w, w->n->in[k].op)) want_copy(w, fused, w->n->in[k].op);
}

/* Of the sketches that attach the result the one with most levels: the sums leave their L2 block at
 * once. */
static bool find_sketch(wanted *w, const cd_sketch_space *space) {
    int32_t level = -1;
    const cd_record_step *best = NULL;
    uint32_t n_best = 0;
    for (size_t k = 0; k < cd_sketch_space_count(space); k++) {
        w->from = cd_sketch_space_steps(space, k, &w->n_from);
        const cd_record_step *fused = fusion(w);
        bool factored = false;
        for (uint32_t j = 0; j < w->n_from; j++) factored |= w->from[j].kind == CD_RECORD_STEP_RF;
        if (!fused || factored || fused->i[1] <= level) continue;
        level = fused->i[1];
        best = w->from;
        n_best = w->n_from;
    }
    w->from = best;
    w->n_from = n_best;
    return best;
}

cdmpp_status cd_template_sample(const cd_template_nest *n, const cd_template_block *b,
                                const cd_sketch_space *space, cd_sketch_sampler *sampler,
                                cd_sketch_sample *out, cdmpp_err *err) {
    wanted w = {.n = n, .b = b};
    bool exact;
    if (!find_sketch(&w, space))
        return CD_FAIL(err, EREJECTED, "no sketch of the task tiles the sum");
    cdmpp_status st = set_sketch(&w, err);
    if (!st) {
        set_rest(&w, fusion(&w));
        const cd_record r = {.n_step = w.n_step, .step = w.step};
        st = cd_sketch_sampler_match(sampler, &r, out, &exact, err);
    }
    cd_arena_free(&w.a);
    return st;
}

enum { KB = 1024, BITS = 8 };

/* Registers of an instruction set. */
static void set_vectors(cd_template_machine *m, cd_isa isa) {
    m->vector_bytes = isa == CD_ISA_AVX512 ? 64 : isa == CD_ISA_AVX2 ? 32 : 16;
    m->registers = isa == CD_ISA_AVX512 || isa == CD_ISA_AARCH64 ? 32 : 16;
}

cdmpp_status cd_template_machine_here(const char *isa, const char *target, int64_t threads,
                                      cd_template_machine *out, cdmpp_err *err) {
    cd_isa_choice c;
    cd_host_info h;
    CD_TRY(cd_isa_choose(isa, target, &c, err));
    cd_host_info_read("", &h);
    if (h.l1d_bytes < 1 || h.l2_bytes < 1)
        return cd_err_key(
            err,
            CD_FAIL(err, EMODEL,
                    "this system does not tell the size of its caches: name a described device"),
            h.l1d_bytes < 1 ? "l1_kb" : "l2_kb");
    *out =
        (cd_template_machine){.l1_bytes = h.l1d_bytes, .l2_bytes = h.l2_bytes, .threads = threads};
    set_vectors(out, c.isa == CD_ISA_NATIVE ? cd_isa_here() : c.isa);
    return CDMPP_OK;
}

cdmpp_status cd_template_machine_of(const cd_device *d, int64_t threads, cd_template_machine *out,
                                    cdmpp_err *err) {
    if (d->kind != CD_DEVICE_CPU)
        return CD_FAIL(err, EMODEL, "%s is a %s, templates are for CPUs", d->name,
                       cd_device_kind_name(d->kind));
    const char *missing = d->simd_bits <= 0 ? "simd_bits"
                          : d->l1_kb <= 0   ? "l1_kb"
                          : d->l2_kb <= 0   ? "l2_kb"
                                            : NULL;
    if (missing)
        return cd_err_key(err,
                          CD_FAIL(err, EMODEL,
                                  "the description of %s has no %s, which templates need", d->name,
                                  missing),
                          missing);
    const int64_t bytes = (int64_t)d->simd_bits / BITS;
    *out = (cd_template_machine){.vector_bytes = bytes,
                                 .registers = bytes >= 64 ? 32 : 16,
                                 .l1_bytes = (int64_t)(d->l1_kb * KB),
                                 .l2_bytes = (int64_t)(d->l2_kb * KB),
                                 .threads = threads};
    return CDMPP_OK;
}
