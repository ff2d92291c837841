/* Spaces and samplers. A space whose sketches cannot be completed, or for which there are too many,
 * becomes the space of one naive schedule: a tuner has something to run for every task. */
#include "features/sketch/sketch.h"

#include "features/sketch/sketch_internal.h"

/* Binds loops to blocks, virtual threads and threads of a GPU: TVM's ThreadBind
 * (docs/internals/ansor.md, Sketches). A schedule with too few or too many threads is refused here,
 * before anything is lowered. */

/* The loops before the first reduction, annotation or attached stage become one. Returns how many
 * there were. */
static uint32_t fuse_outer_space(cd_sketch_state *s, uint32_t stage) {
    const cd_sketch_stage *st = &s->stage[stage];
    uint32_t n = 0;
    for (; n < st->n; n++) {
        if (cd_sketch_is_reduce(&st->it[n]) || st->it[n].ann) break;
        if (n && cd_sketch_has_attached(s, stage, n - 1)) break;
    }
    if (n != 1) cd_sketch_fuse(s, stage, 0, n);
    return n;
}

/* w NULL: without a choice. */
static void bind_untiled(const cd_sketch_space *sp, cd_sketch_sampler *w, cd_sketch_state *s,
                         uint32_t stage) {
    const int32_t warp = sp->hw.warp_size < INT32_MAX ? (int32_t)sp->hw.warp_size : INT32_MAX;
    fuse_outer_space(s, stage);
    if (s->oom) return;
    const int64_t ext = s->stage[stage].it[0].ext;
    if (ext <= warp) {
        cd_sketch_annotate(s, stage, 0, CD_SKETCH_THREAD_X);
        return;
    }
    cd_sketch_split(s, stage, 0,
                    (const int64_t[]){w ? cd_sketch_choose_length(w, stage, ext, warp) : warp}, 1);
    cd_sketch_annotate(s, stage, 0, CD_SKETCH_BLOCK_X);
    cd_sketch_annotate(s, stage, 1, CD_SKETCH_THREAD_X);
}

/* Loops from `at` on that are part `level` of their split become one loop. */
static bool fuse_level(cd_sketch_state *s, uint32_t stage, uint32_t at, int8_t level) {
    const cd_sketch_stage *st = &s->stage[stage];
    uint32_t n = 0;
    while (at + n < st->n && n < s->prog->op[stage].n_axis && st->it[at + n].level == level) n++;
    if (!n) return false;
    cd_sketch_fuse(s, stage, at, n); /* also of one loop: TVM's records hold that step */
    return !s->oom;
}

static int64_t all_points(const cd_sketch_op *op) {
    int64_t n = 1;
    for (uint32_t k = 0; k < op->n_axis + op->n_raxis; k++)
        n = cd_sketch_saturating_mul(n, op->init[k].ext);
    return n;
}

static bool bind_tiled(cd_sketch_sampler *w, cd_sketch_state *s, uint32_t stage) {
    const cd_hardware *hw = &w->space->hw;
    const bool small = all_points(&s->prog->op[stage]) <= hw->warp_size * 2;
    if (!fuse_level(s, stage, 0, 0)) return false;
    cd_sketch_annotate(s, stage, 0, CD_SKETCH_BLOCK_X);
    if (!fuse_level(s, stage, 1, 1) ||
        (w->strict && s->stage[stage].it[1].ext > hw->max_vthread_extent))
        return false;
    cd_sketch_annotate(s, stage, 1, CD_SKETCH_VTHREAD);
    if (!fuse_level(s, stage, 2, 2) ||
        (w->strict && !small && s->stage[stage].it[2].ext < hw->warp_size))
        return false;
    cd_sketch_annotate(s, stage, 2, CD_SKETCH_THREAD_X);
    return !s->oom;
}

/* All threads of the block load a shared stage together. */
static bool fetch_together(cd_sketch_sampler *w, cd_sketch_state *s, uint32_t stage) {
    const uint32_t target = (uint32_t)s->stage[stage].at_stage;
    uint32_t split[2 * CD_TE_MAX_AXIS];
    const uint32_t n = cd_sketch_stage_splits(s, target, split, 2 * CD_TE_MAX_AXIS),
                   skip = s->prog->op[target].n_raxis;
    if (n <= skip) return false; /* splits of reduce axes come last, so first when walking back */
    cd_sketch_fuse(s, stage, 0, s->stage[stage].n);
    if (s->oom) return false;
    cd_sketch_split(
        s, stage, 0,
        (const int64_t[]){cd_sketch_choose_length(w, stage, s->stage[stage].it[0].ext, 1)}, 1);
    cd_sketch_annotate(s, stage, 1, CD_SKETCH_VECTORIZE);
    cd_sketch_follow_fused_split(s, stage, 0, split + skip, n - skip, 1);
    if (s->oom || s->failed) return false;
    cd_sketch_annotate(s, stage, 1, CD_SKETCH_THREAD_X);
    return true;
}

static bool has_thread(const cd_sketch_stage *st) {
    for (uint32_t k = 0; k < st->n; k++)
        if (st->it[k].ann == CD_SKETCH_THREAD_X) return true;
    return false;
}

/* False where a stage that needs tiling has none: TVM draws no such schedule. */
static bool tiling_roots(const cd_sketch_state *s, bool *root) {
    for (uint32_t k = 0; k < s->n_stage; k++) {
        if (!s->prog->op[k].tiling || s->stage[k].at == CD_SKETCH_INLINED) continue;
        if (s->stage[k].at == CD_SKETCH_AT) root[s->stage[k].at_stage] = true;
        else if (!cd_sketch_has_cross_thread(s, k)) return false;
    }
    return true;
}

/* By what the stage is: a reduction across threads, a tiled stage, another one at the root, a
 * shared copy. */
static bool bind_stage(cd_sketch_sampler *w, cd_sketch_state *s, uint32_t stage, bool tiled_root) {
    const cd_sketch_stage *st = &s->stage[stage];
    if (cd_sketch_has_cross_thread(s, stage)) {
        if (st->at != CD_SKETCH_ROOT) return true;
        fuse_outer_space(s, stage);
        cd_sketch_annotate(s, stage, 0, CD_SKETCH_BLOCK_X);
        return true;
    }
    if (has_thread(st)) return true;
    if (st->at == CD_SKETCH_ROOT) {
        if (tiled_root) return bind_tiled(w, s, stage);
        bind_untiled(w->space, w, s, stage);
        return true;
    }
    return st->at != CD_SKETCH_AT || !s->prog->op[stage].shared || fetch_together(w, s, stage);
}

/* Every stage by itself: its spatial loops to blocks and a warp of threads. */
static void sketch_bind_naive(const cd_sketch_space *sp, cd_sketch_state *s) {
    for (uint32_t k = s->n_stage; k-- > 0;)
        if (!s->prog->op[k].placeholder && !s->oom) bind_untiled(sp, NULL, s, k);
}

/* The refusal of bind_tiled, found from the lengths alone: it concerns most fresh schedules, and
 * comes before their bounds are inferred. */
static bool hopeless(const cd_sketch_sampler *w, const cd_sketch_state *s,
                     const cd_sketch_open_splits *o) {
    const cd_hardware *hw = &w->space->hw;
    for (uint32_t k = 0; k < o->n_follower && w->strict;) {
        const uint32_t stage = o->follower[k].stage;
        int64_t virtual = 1, threads = 1;
        for (; k < o->n_follower && o->follower[k].stage == stage; k++) {
            const cd_record_step *t = &s->step[o->follower[k].step];
            virtual = cd_sketch_saturating_mul(virtual, t->list[0]);
            threads = cd_sketch_saturating_mul(threads, t->list[1]);
        }
        const bool small = all_points(&s->prog->op[stage]) <= hw->warp_size * 2;
        if (virtual > hw->max_vthread_extent || (!small && threads < hw->warp_size)) return true;
    }
    return false;
}

bool cd_sketch_bind_threads(cd_sketch_sampler *w, cd_sketch_state *s,
                            const cd_sketch_open_splits *o) {
    bool *root = cd_arena_zalloc(s->a, s->n_stage + 1, sizeof *root);
    if (!root) s->oom = true;
    if (!root || !tiling_roots(s, root) || hopeless(w, s, o) || !cd_sketch_infer_bound(w, s))
        return false;
    for (uint32_t k = s->n_stage; k-- > 0;) {
        if (s->stage[k].at == CD_SKETCH_INLINED || s->prog->op[k].placeholder) continue;
        if (!bind_stage(w, s, k, root[k]) || s->oom) return false;
    }
    return true;
}

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
    if (s->gpu) sketch_bind_naive(s, one);
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
