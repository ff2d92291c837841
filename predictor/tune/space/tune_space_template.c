/* tune_space_template -- the programs that templates make of a task, best first.
 *
 *   blocks (cd_template_best) ─> programs of Ansor's space ─> list; a program that two blocks make
 *                                                             stands at the place of the better one
 *
 * (1) The list is made at once and is all there is: draws are of it, a change of a candidate is one
 *     near it in the order.
 * (2) Candidates of the list live as long as the space, that of follow until the next follow. */
#include "predictor/tune/space/space.h"

enum { NEAR = 4 };

typedef struct {
    cd_tune_space space;
    cd_sketch_space *sketches;
    cd_sketch_sampler *sampler;
    cd_arena mem;
    cd_tune_cand *list;       /* (n_list) */
    cd_template_block *block; /* (n_list) which each is of */
    size_t n_list;
    cd_template_nest nest;
    uint64_t seed;
} template_space;

static cd_tune_cand cand_of(const cd_sketch_sample *d) {
    return (cd_tune_cand){.key = cd_record_steps_key(d->step, d->n_step),
                          .n_choice = d->n_choice,
                          .choice = d->choice,
                          .n_step = d->n_step,
                          .step = d->step};
}

static cdmpp_status draw(cd_tune_space *space, uint64_t i, cd_tune_cand *out, cdmpp_err *err) {
    const template_space *s = (template_space *)space;
    (void)err;
    *out = s->list[cd_rng_at(s->seed, i) % s->n_list];
    return CDMPP_OK;
}

/* Up to NEAR places before or behind; those of other spaces (follow) count as the first. */
static cdmpp_status change(cd_tune_space *space, const cd_tune_cand *from, uint64_t i,
                           cd_tune_cand *out, cdmpp_err *err) {
    const template_space *s = (template_space *)space;
    (void)err;
    const size_t far = 1 + cd_rng_at(s->seed, i) % NEAR, at = from->row % s->n_list, n = s->n_list;
    *out = s->list[i % 2 ? (at + far) % n : (at + n - far % n) % n];
    return CDMPP_OK;
}

static cdmpp_status cross(cd_tune_space *space, const cd_tune_cand *a, const cd_tune_cand *b,
                          uint64_t i, cd_tune_cand *out, cdmpp_err *err) {
    return change(space, i / 2 % 2 ? a : b, i, out, err);
}

static cdmpp_status list(cd_tune_space *space, const cd_tune_cand **all, size_t *n,
                         cdmpp_err *err) {
    const template_space *s = (template_space *)space;
    (void)err;
    *all = s->list;
    *n = s->n_list;
    return CDMPP_OK;
}

static cdmpp_status follow(cd_tune_space *space, const cd_record *r, cd_tune_cand *out, bool *exact,
                           cdmpp_err *err) {
    const template_space *s = (template_space *)space;
    cd_sketch_sample d;
    CD_TRY(cd_sketch_sampler_match(s->sampler, r, &d, exact, err));
    *out = cand_of(&d);
    for (size_t k = 0; k < s->n_list; k++)
        if (s->list[k].key == out->key) out->row = (uint32_t)k;
    return CDMPP_OK;
}

static void free_space(cd_tune_space *space) {
    template_space *s = (template_space *)space;
    cd_arena_free(&s->mem);
    cd_sketch_sampler_free(s->sampler);
    cd_sketch_space_free(s->sketches);
    cd_mem_free(s);
}

static const cd_tune_space_kind kind = {.name = "template",
                                        .draw = draw,
                                        .change = change,
                                        .cross = cross,
                                        .list = list,
                                        .follow = follow,
                                        .free = free_space};

/* A block that Ansor's rules do not allow is left out. */
static cdmpp_status fill(template_space *s, const cd_template_block *b, uint32_t n_block,
                         cdmpp_err *err) {
    cd_tune_key_set seen = {0};
    cdmpp_status st = CDMPP_OK;
    s->list = CD_NEWN(&s->mem, cd_tune_cand, n_block + 1);
    s->block = CD_NEWN(&s->mem, cd_template_block, n_block + 1);
    if (!s->list || !s->block) return CD_FAIL(err, ENOMEM, "%u programs", n_block);
    for (uint32_t k = 0; !st && k < n_block; k++) {
        cd_sketch_sample d;
        st = cd_template_sample(&s->nest, &b[k], s->sketches, s->sampler, &d, err);
        const cd_tune_cand c = st ? (cd_tune_cand){0} : cand_of(&d);
        const bool skip =
            st == CDMPP_EREJECTED || (!st && cd_tune_key_set_find(&seen, c.key, NULL));
        if (st == CDMPP_EREJECTED) st = CDMPP_OK;
        if (st || skip) continue;
        st = cd_tune_key_set_put(&seen, c.key, 0, err);
        if (!st) st = cd_tune_cand_copy(&s->mem, &c, &s->list[s->n_list], err);
        s->list[s->n_list].row = (uint32_t)s->n_list;
        s->block[s->n_list] = b[k];
        s->n_list += !st;
    }
    cd_tune_key_set_free(&seen);
    if (!st && !s->n_list)
        return CD_FAIL(err, EUNSUPPORTED, "Ansor's rules allow none of %u blocks", n_block);
    return st;
}

static cdmpp_status make(template_space *s, const cd_template_machine *m, cdmpp_err *err) {
    const cd_tune_task *t = &s->space.of;
    cd_template_block *b;
    uint32_t n_block;
    cd_arena a = {0};
    CD_TRY(cd_template_nest_read(t->task, t->gpu, &s->nest, err));
    CD_TRY(cd_sketch_space_new(t->task, &t->hardware, t->gpu, &s->sketches, err));
    CD_TRY(cd_sketch_sampler_new(s->sketches, s->seed, &s->sampler, err));
    cdmpp_status st = cd_template_best(&s->nest, m, CD_TUNE_TEMPLATES, &a, &b, &n_block, err);
    if (!st) st = fill(s, b, n_block, err);
    cd_arena_free(&a);
    return st;
}

cdmpp_status cd_tune_space_template(const cd_tune_task *t, const cd_template_machine *m,
                                    uint64_t seed, cd_tune_space **out, cdmpp_err *err) {
    template_space *s = cd_mem_zalloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "space");
    s->space.kind = &kind;
    s->space.of = *t;
    s->seed = seed;
    const cdmpp_status st = make(s, m, err);
    if (st) free_space(&s->space);
    else *out = &s->space;
    return st;
}

const cd_template_block *cd_tune_space_template_blocks(const cd_tune_space *space,
                                                       const cd_template_nest **nest) {
    const template_space *s = (const template_space *)space;
    *nest = &s->nest;
    return s->block;
}
