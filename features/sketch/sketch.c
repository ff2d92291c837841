/* Spaces and samplers. A space whose sketches cannot be completed, or for which there are too many,
 * becomes the space of one naive schedule: a tuner has something to run for every task. */
#include "features/sketch/sketch.h"

#include "features/sketch/sketch_internal.h"

void cd_sketch_space_free(cd_sketch_space *s) {
    if (!s) return;
    cd_schedule_free(&s->sched);
    cd_arena_free(&s->arena);
    cd_mem_free(s);
}

static cdmpp_status check(const cd_sketch_space *s, cdmpp_err *err) {
    const cd_hardware *h = &s->hw;
    if (h->num_cores < 1 && !s->gpu)
        return CD_FAIL(err, EINVALID, "hardware with %lld cores", (long long)h->num_cores);
    if (s->gpu && (h->warp_size < 1 || h->max_threads_per_block < 1 || h->max_vthread_extent < 1))
        return CD_FAIL(err, EINVALID,
                       "hardware without warp, threads of a block or virtual threads");
    return CDMPP_OK;
}

/* A task that no schedule can have is an error; whatever else is too much for the rules ends in the
 * naive schedule. */
static cdmpp_status check_size(cd_sketch_space *s, cdmpp_err *err) {
    cd_schedule_start(&s->sched, s->dag);
    if (s->sched.oom) return CD_FAIL(err, ENOMEM, "space");
    return cd_schedule_check_size(&s->sched, err);
}

/* One schedule: the program as it is; on a GPU every stage by itself. */
static cdmpp_status be_naive(cd_sketch_space *s, cdmpp_err *err) {
    const cd_sketch_program *start = cd_sketch_program_get(s, NULL, 0);
    cd_sketch_state *one = start ? cd_sketch_start(&s->arena, start) : NULL;
    if (!one) return CD_FAIL(err, ENOMEM, "naive schedule");
    s->n_sketch = 0;
    s->naive = true;
    if (s->gpu) cd_sketch_bind_naive(s, one);
    return !one->oom && cd_sketch_space_add(s, one) ? CDMPP_OK
                                                    : CD_FAIL(err, ENOMEM, "naive schedule");
}

enum { TRIES = 64 };

/* Can any sketch be completed? Most can at the first try. */
static cdmpp_status try_all(const cd_sketch_space *s, bool *any, cdmpp_err *err) {
    cd_sketch_sampler *w;
    cd_sketch_sample d;
    *any = false;
    CD_TRY(cd_sketch_sampler_new(s, 0, &w, err));
    cdmpp_status st = CDMPP_EREJECTED;
    for (uint32_t k = 0; st == CDMPP_EREJECTED && k < s->n_sketch; k++)
        st = cd_sketch_sampler_make(
            w, &(cd_sketch_choice){.pick = k, .kind = CD_SKETCH_CHOICE_SKETCH}, 1, &d, err);
    for (uint32_t i = 0; st == CDMPP_EREJECTED && i < TRIES; i++)
        st = cd_sketch_sampler_draw(w, i, &d, err);
    cd_sketch_sampler_free(w);
    *any = !st;
    return st == CDMPP_EREJECTED ? CDMPP_OK : st;
}

/* EUNSUPPORTED of the rules is no error here: it ends in the naive schedule. */
cdmpp_status cd_sketch_space_new(const cd_task *task, const cd_hardware *hw, bool gpu,
                                 cd_sketch_space **out, cdmpp_err *err) {
    if (!task->dag) return CD_FAIL(err, ENOTASK, "the task's definition could not be read");
    cd_sketch_space *s = cd_mem_zalloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "space");
    s->dag = task->dag;
    s->hw = *hw;
    s->gpu = gpu;
    cdmpp_status st = check(s, err);
    if (!st) st = cd_schedule_init(&s->sched, err);
    if (!st) st = check_size(s, err);
    if (st) {
        cd_sketch_space_free(s);
        return st;
    }
    st = cd_sketch_generate(s, err);
    bool any = false;
    if (!st) st = try_all(s, &any, err);
    if (st == CDMPP_EUNSUPPORTED || (!st && !any)) st = be_naive(s, err);
    if (st) cd_sketch_space_free(s);
    else *out = s;
    return st;
}

size_t cd_sketch_space_count(const cd_sketch_space *s) { return s->n_sketch; }
const cd_record_step *cd_sketch_space_steps(const cd_sketch_space *s, size_t i, uint32_t *n) {
    *n = s->sketch[i]->n_step;
    return s->sketch[i]->step;
}
bool cd_sketch_space_is_naive(const cd_sketch_space *s) { return s->naive; }

cdmpp_status cd_sketch_sampler_new(const cd_sketch_space *s, uint64_t seed, cd_sketch_sampler **out,
                                   cdmpp_err *err) {
    cd_sketch_sampler *w = cd_mem_zalloc(1, sizeof *w);
    if (!w) return CD_FAIL(err, ENOMEM, "sampler");
    w->space = s;
    w->seed = seed;
    const cdmpp_status st = cd_schedule_init(&w->sched, err);
    if (st) cd_sketch_sampler_free(w);
    else *out = w;
    return st;
}

void cd_sketch_sampler_free(cd_sketch_sampler *w) {
    if (!w) return;
    cd_schedule_free(&w->sched);
    cd_arena_free(&w->arena);
    cd_sketch_choices_free(&w->given);
    cd_sketch_choices_free(&w->made);
    cd_mem_free(w);
}
