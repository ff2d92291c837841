/* Scores one question: finds at most two candidate schedules and takes the one that the model
 * predicts to be faster.
 *
 *   database's own line ──────────────────────────────┐
 *   else whole's record ── follow ── record ──────────┤
 *   nothing to follow ── drawn, best of 160 ──────────┼── whole model ── score as schedules are
 *   trials, or poor ── mutations of the followed one ─┘                  picked ──> line, seconds
 *
 * Poor: well above its proportion of the whole's time. Tile lengths that divide the whole's loops
 * may not divide the part's: if 7/8 of the channels are not a multiple of 16, tiles of 16 are not
 * possible, and the part really takes longer than the whole (measured:
 * docs/reference/partition.md). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/core.h"
#include "features/sketch/sketch.h"
#include "predictor/partition/shard/shard_cost_internal.h"

/* Adapts the schedule of a whole operator to a partial sum. A partial sum ends at the reduction,
 * where the whole has more operators behind it.
 *
 *   whole  pad  conv  bias  relu  conv tiled, computed at relu; bias inlined
 *   part   pad  conv              TVM's rules tile such an operator with a cache of its own in
 *                                 front of it:
 *               conv.local  conv  conv.local takes what the whole did to conv, conv what it did to
 *                                 relu */

enum { NONE = -1 };

typedef struct {
    const cd_record *r;
    int32_t *stage; /* (whole's n_op) stage of the part; NONE: it has none such */
    int32_t *at;    /* (r's n_step) where the step is now; NONE: left out */
    cd_record_step *step;
    uint32_t n;
    cd_arena *a;
    bool oom, lost;
} adapter;

/* The only operator of that name. */
static int32_t find(const cd_te_dag *d, const char *name) {
    int32_t at = NONE;
    for (uint32_t i = 0; i < d->n_op; i++) {
        if (strcmp(d->op[i].name, name) != 0) continue;
        if (at != NONE) return NONE;
        at = (int32_t)i;
    }
    return at;
}

/* Stages keep the numbers of operators only as long as no step adds one. */
static bool adds_stages(const cd_record *r) {
    for (uint32_t k = 0; k < r->n_step; k++)
        if (r->step[k].kind == CD_RECORD_STEP_CHW || r->step[k].kind == CD_RECORD_STEP_CHR ||
            r->step[k].kind == CD_RECORD_STEP_RF)
            return true;
    return false;
}

static int32_t stage_of(const adapter *k, int32_t stage, uint32_t n) {
    return stage >= 0 && (uint32_t)stage < n ? k->stage[stage] : NONE;
}

static int32_t source_of(adapter *k, int32_t step) {
    const int32_t to = step >= 0 && (uint32_t)step < k->r->n_step ? k->at[step] : NONE;
    k->lost |= to == NONE;
    return to;
}

static void sources(adapter *k, cd_record_step *s) {
    int32_t *list = cd_arena_alloc(k->a, s->n_list + 1, sizeof *list);
    if (!list) {
        k->oom = true;
        return;
    }
    for (uint32_t i = 0; i < s->n_list; i++) list[i] = source_of(k, s->list[i]);
    s->list = list;
}

static void take(adapter *k, uint32_t i, uint32_t n_op) {
    cd_record_step s = k->r->step[i];
    s.stage = stage_of(k, s.stage, n_op);
    if (s.kind == CD_RECORD_STEP_CA) s.i[0] = stage_of(k, s.i[0], n_op);
    k->at[i] = NONE;
    if (s.stage == NONE || (s.kind == CD_RECORD_STEP_CA && s.i[0] == NONE)) return;
    if (s.kind == CD_RECORD_STEP_FSP) s.i[1] = source_of(k, s.i[1]);
    if (s.kind == CD_RECORD_STEP_FFSP) sources(k, &s);
    k->at[i] = (int32_t)k->n;
    k->step[k->n++] = s;
}

/* Maps stages by name. False: not needed or not possible (the part's last operator must be one of
 * the whole's, and not its last). */
static bool map_stages(adapter *k, const cd_te_dag *whole, const cd_te_dag *part) {
    const int32_t last = (int32_t)part->n_op - 1, ends = find(whole, part->op[last].name),
                  end = (int32_t)whole->n_op - 1;
    if (ends == NONE || ends == end || adds_stages(k->r)) return false;
    for (int32_t i = 0; i < end; i++)
        k->stage[i] = find(whole, whole->op[i].name) == i ? find(part, whole->op[i].name) : NONE;
    k->stage[end] = last + 1;
    return true;
}

/* r: a record of the whole. For a partial sum its steps become those with which such an operator is
 * tiled (in `a`). For any other part, and where this is not possible, it stays as it is. Errors:
 * ENOMEM.
 *
 * The new record begins with the cache write that makes conv.local; after it, the stage numbers of
 * map_stages hold. Steps of stages that the shard lacks are left out. If a kept step refers to one
 * that is left out (lost), the record cannot be adapted and stays as it is. */
static cdmpp_status shard_cost_adapt(const cd_te_dag *whole, const cd_te_dag *part, cd_arena *a,
                                     cd_record *r, cdmpp_err *err) {
    adapter k = {.r = r, .a = a};
    k.stage = CD_NEWN(a, int32_t, whole->n_op + 1);
    k.at = CD_NEWN(a, int32_t, r->n_step + 1);
    k.step = CD_NEWN(a, cd_record_step, r->n_step + 1);
    if (!k.stage || !k.at || !k.step) return CD_FAIL(err, ENOMEM, "schedule");
    if (!map_stages(&k, whole, part)) return CDMPP_OK;
    k.step[k.n++] = (cd_record_step){
        .kind = CD_RECORD_STEP_CHW, .stage = (int32_t)part->n_op - 1, .s = {"local", 5}};
    for (uint32_t i = 0; i < r->n_step; i++) take(&k, i, whole->n_op);
    if (k.oom) return CD_FAIL(err, ENOMEM, "schedule");
    if (k.lost) return CDMPP_OK;
    r->step = k.step;
    r->n_step = k.n;
    return CDMPP_OK;
}

enum { MUTATED = 64, MOST_DRAWN = 4096, LINES = 2, TRIES = 64, MAX_ROWS = 16384 };
static const double caution = 0.5;    /* the same as in schedule_db_pick.c */
static const double poor_from = 1.15; /* times its proportion of the whole's time */

typedef struct {
    const cd_shard_cost *p;
    cd_shard_cost_worker *w;
    cd_shard_cost_entry *e;
    const cd_shard_cost_rule *rule;
    const cd_shard_cost_kind *kind;
    cd_buf line[LINES];
    uint32_t n;
    cdmpp_err why; /* of the last that came to nothing */
} asking;

static cd_str text(const char *s) { return (cd_str){s ? s : "", s ? strlen(s) : 0}; }

/* Errors that are a property of the question; ENOMEM and EBACKEND are not. */
static bool is_fault(cdmpp_status st) { return st && st != CDMPP_ENOMEM && st != CDMPP_EBACKEND; }

/* A fault of the question is kept as its reason; any other error is returned. */
static cdmpp_status keep_why(asking *k, cdmpp_status st, const cdmpp_err *why, cdmpp_err *err) {
    if (!st) return CDMPP_OK;
    if (is_fault(st)) k->why = *why;
    else if (err) *err = *why;
    return is_fault(st) ? CDMPP_OK : st;
}

/* ---- candidates ---- */
static cdmpp_status put_line(asking *k, const cd_sketch_sample *d, const cd_hardware *hw,
                             int64_t layout, const char *origin, cdmpp_err *err) {
    static const double never = 1e10;
    const cd_record r = {.workload_key = text(k->e->task->workload_key),
                         .target = text(k->kind->target),
                         .target_host = text(""),
                         .has_hardware = true,
                         .has_host = true,
                         .has_layout = true,
                         .has_inputs = true,
                         .hardware = *hw,
                         .layout_rewrite = layout,
                         .n_step = d->n_step,
                         .step = d->step,
                         .n_cost = 1,
                         .cost_s = &never,
                         .error_no = CD_ERROR_NO_MAX,
                         .version = text("v0.6"),
                         .origin = text(origin)};
    CD_TRY(cd_record_write(&k->line[k->n], &r, err));
    k->line[k->n].p[--k->line[k->n].n] = 0; /* no newline */
    k->n++;
    return CDMPP_OK;
}

static cdmpp_status as_in_book(asking *k, const cd_schedule_db_entry *s, cdmpp_err *err) {
    cd_buf_put(&k->line[k->n], s->line, s->len);
    if (k->line[k->n].oom) return CD_FAIL(err, ENOMEM, "schedule");
    k->n++;
    return CDMPP_OK;
}

static cdmpp_status follow_with(asking *k, cd_sketch_sampler *s, cdmpp_err *err) {
    cd_record r = *k->rule->record;
    cd_sketch_sample d;
    bool exact;
    char origin[160];
    CD_TRY(shard_cost_adapt(k->rule->task->dag, k->e->task->dag, &k->w->mem, &r, err));
    CD_TRY(cd_sketch_sampler_match(s, &r, &d, &exact, err));
    snprintf(origin, sizeof origin, "as the whole's: %.120s", k->rule->sched->origin);
    return put_line(k, &d, &r.hardware, k->rule->plain ? 0 : r.layout_rewrite, origin, err);
}

/* The first drawn schedule that lowers. Used where there is no model, so nothing can rank
 * several. */
static cdmpp_status any_of(asking *k, cd_sketch_sampler *s, cdmpp_err *err) {
    cd_program *prog = NULL;
    CD_TRY(cd_program_new(&prog, err));
    cdmpp_status st = CDMPP_EREJECTED;
    for (uint64_t i = 0; is_fault(st) && i < TRIES; i++) {
        cd_sketch_sample d;
        st = cd_sketch_sampler_draw(s, i, &d, err);
        if (st) continue;
        const cd_record r = {.workload_key = text(k->e->task->workload_key),
                             .target = text(k->kind->target),
                             .hardware = k->kind->hardware,
                             .has_hardware = true,
                             .n_step = d.n_step,
                             .step = d.step};
        st = cd_program_lower(prog, k->e->task, &r, err);
        if (!st)
            st = put_line(k, &d, &k->kind->hardware,
                          k->rule->plain ? 0 : cd_target_layout(k->kind->gpu), "drawn", err);
    }
    cd_program_free(prog);
    return st;
}

/* A schedule by fn, of a space for this hardware. */
static cdmpp_status in_space(asking *k, const cd_hardware *hw,
                             cdmpp_status (*fn)(asking *, cd_sketch_sampler *, cdmpp_err *),
                             cdmpp_err *err) {
    cd_sketch_space *sk = NULL;
    cd_sketch_sampler *s = NULL;
    cdmpp_err why = {0};
    cdmpp_status st = cd_sketch_space_new(k->e->task, hw, k->kind->gpu, &sk, &why);
    if (!st) st = cd_sketch_sampler_new(sk, cd_rng_mix(k->p->a.seed), &s, &why);
    if (!st) st = fn(k, s, &why);
    cd_sketch_sampler_free(s);
    cd_sketch_space_free(sk);
    return keep_why(k, st, &why, err);
}

static bool follows(const asking *k) {
    return k->rule->record && k->rule->task && k->rule->gpu == k->kind->gpu;
}

/* Uses the program selection of the schedule database: a temporary database of this one task is
 * filled by prediction, and its line becomes a candidate. Where the whole has a schedule for such a
 * device, candidates are mutations of it; else they are drawn from the sketch space. */
static cdmpp_status drawn_best_of(asking *k, uint32_t trials, cdmpp_err *err) {
    const char *key = k->e->task->workload_key;
    cd_record start;
    if (follows(k)) start = *k->rule->record;
    if (follows(k))
        CD_TRY(shard_cost_adapt(k->rule->task->dag, k->e->task->dag, &k->w->mem, &start, err));
    const cd_schedule_db_pick o = {.trials = trials,
                                   .seed = k->p->a.seed,
                                   .target = k->kind->target,
                                   .device = k->kind->as,
                                   .numbers = k->kind->numbers,
                                   .start = follows(k) ? &start : NULL,
                                   .hardware = follows(k) ? &start.hardware : &k->kind->hardware,
                                   .plain = &key,
                                   .n_plain = k->rule->plain};
    cd_schedule_db *b = NULL;
    cdmpp_err why = {0};
    CD_TRY(cd_schedule_db_new(&b, err));
    const cdmpp_status st =
        cd_schedule_db_predict(b, k->kind->model, k->p->tasks, &key, 1, &o, NULL, &why);
    cdmpp_status put = keep_why(k, st, &why, err);
    const cd_schedule_db_entry *s = st ? NULL : cd_schedule_db_find(b, key);
    if (s) put = as_in_book(k, s, err);
    else if (!st) (void)CD_FAIL(&k->why, EREJECTED, "none of %u drawn schedules lowers", trials);
    cd_schedule_db_free(b);
    return put;
}

/* Where none of the candidates is a program (many of a GPU's ask for more memory than there is),
 * more are drawn: a device without a time for one operator would have none for the network. */
static cdmpp_status drawn_best(asking *k, uint32_t trials, cdmpp_err *err) {
    const uint32_t before = k->n;
    do CD_TRY(drawn_best_of(k, trials, err));
    while (k->n == before && k->why.code == CDMPP_EREJECTED && (trials *= 8) <= MOST_DRAWN);
    return CDMPP_OK;
}

static const cd_schedule_db_entry *own_schedule(const asking *k) {
    const cd_schedule_db_entry *s =
        !k->e->of           ? k->rule->sched
        : k->p->a.schedules ? cd_schedule_db_find(k->p->a.schedules, k->e->task->workload_key)
                            : NULL;
    if (!s || !k->e->of) return s && k->rule->record && k->rule->gpu == k->kind->gpu ? s : NULL;
    cd_record r;
    return !cd_record_read(&k->w->mem, s->line, s->len, &r, NULL) &&
                   cd_target_is_gpu(r.target) == k->kind->gpu
               ? s
               : NULL;
}

static cdmpp_status find_lines(asking *k, cdmpp_err *err) {
    const cd_schedule_db_entry *own = own_schedule(k);
    if (own) CD_TRY(as_in_book(k, own, err));
    else if (follows(k)) CD_TRY(in_space(k, &k->rule->record->hardware, follow_with, err));
    /* as many as cdmpp-replay draws, so that both answer alike */
    const uint32_t trials = own              ? 0
                            : k->p->a.trials ? k->p->a.trials
                            : k->n           ? 0
                                             : CD_SCHEDULE_DB_TRIALS;
    if (trials && k->kind->model) CD_TRY(drawn_best(k, trials, err));
    if (!k->n) CD_TRY(in_space(k, &k->kind->hardware, any_of, err));
    return CDMPP_OK;
}

/* ---- scores ---- */
static cdmpp_status scorer_of(asking *k, cd_scorer **out, cdmpp_err *err) {
    const uint32_t i = (uint32_t)(k->kind - k->p->kind);
    const cd_scorer_options o = {.which = {.device = k->kind->as},
                                 .uncorrected = k->kind->stands,
                                 .numbers = k->kind->numbers,
                                 .max_rows = MAX_ROWS,
                                 .peaks = k->p->a.devices};
    if (!k->w->scorer[i])
        CD_TRY(cd_scorer_new(k->kind->model, k->p->tasks, &o, &k->w->scorer[i], err));
    *out = k->w->scorer[i];
    return CDMPP_OK;
}

/* Predictions are summed over a network, so the mean is wanted, not the median: with the spread
 * that programs like those of the training have, as cdmpp-replay's times. That a program is unlike
 * them makes its interval wider, and not its time longer. If the schedule follows one that was
 * measured to be the fastest, the median is multiplied by the selection bias that training found
 * for fastest schedules (cd_node_cost_bias) instead. */
static void expect(const asking *k, const cd_scored *o) {
    const cd_node_cost_bias *b = &k->kind->best;
    const bool known = k->rule->sched && k->kind->as &&
                       cd_node_cost_bias_knows(b, k->rule->sched->key, k->kind->as);
    const bool chosen = k->rule->sched && isfinite(k->rule->sched->measured_s) &&
                        b->spread[known] >= 0 && k->rule->gpu == k->kind->gpu;
    const cd_node_cost_fastest f = {chosen, chosen, b->ratio[known], b->spread[known], b->picks};
    cd_node_cost_entry n = {0};
    cd_node_cost_predicted(&n, &f, &o->pred, o->least_s);
    k->e->seconds = n.seconds;
    k->e->spread = n.spread;
    k->e->low = n.low_s / n.seconds; /* NaN: nothing tells */
    k->e->high = n.high_s / n.seconds;
    k->e->least_s = o->least_s;
    k->e->reason = o->pred.reason;
}

/* All candidates are scored in one batch. They are ranked by a cautious score (an uncertain
 * prediction counts as slower), but the seconds that are reported are the expected ones. The best
 * line moves to line[0]. */
static cdmpp_status choose(asking *k, cd_scorer *s, cdmpp_err *err) {
    cd_scored o[LINES];
    double best = -HUGE_VAL;
    cd_scorer_start(s);
    for (uint32_t i = 0; i < k->n; i++)
        CD_TRY(
            cd_scorer_line(s, &(cd_predict_line){k->line[i].p, k->line[i].n, "", 1}, &o[i], err));
    CD_TRY(cd_scorer_finish(s, err));
    uint32_t at = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        if (o[i].st) CD_TRY(keep_why(k, o[i].st, &o[i].err, err));
        if (o[i].st) continue;
        const cd_model_prediction *p = &o[i].pred;
        const double score =
            -log(p->order_s > 0 ? p->order_s : p->latency_s) - caution * cd_model_expected_error(p);
        if (!(score > best)) continue;
        best = score;
        at = i;
        expect(k, &o[i]);
    }
    const cd_buf first = k->line[0];
    k->line[0] = k->line[at];
    k->line[at] = first;
    return CDMPP_OK;
}

/* The proportion of the whole is measured in operations; where there are none, in bytes moved. */
static bool is_poor(const asking *k) {
    const cd_shard_cost_entry *e = k->e, *of = e->of;
    if (!of || !(e->seconds < HUGE_VAL) || !(of->seconds < HUGE_VAL) || k->p->a.trials ||
        !follows(k) || k->n != 1)
        return false;
    const double flop = cd_task_flop(e->task), all = cd_task_flop(of->task);
    const double share = flop > 0 && all > 0 ? flop / all
                         : of->moved > 0     ? (double)e->moved / (double)of->moved
                                             : 1;
    return e->seconds > poor_from * share * of->seconds;
}

/* By default no candidates are searched beside a schedule that follows the whole's, because that is
 * slow; only where it turns out poor are candidates added, and the best of all is taken. */
static cdmpp_status score(asking *k, cdmpp_err *err) {
    cd_scorer *s = NULL;
    cdmpp_err why = {0};
    CD_TRY(find_lines(k, err));
    if (!k->n) return CDMPP_OK;
    if (!k->kind->model) {
        (void)CD_FAIL(&k->why, EMODEL, "no model of programs");
        return CDMPP_OK;
    }
    const cdmpp_status st = scorer_of(k, &s, &why);
    if (st) return keep_why(k, st, &why, err);
    CD_TRY(choose(k, s, err));
    if (!is_poor(k)) return CDMPP_OK;
    CD_TRY(drawn_best(k, MUTATED, err));
    return choose(k, s, err);
}

/* asked is set where there is no answer too: a shard that cannot be scored is not tried again. An
 * error leaves it unasked. */
cdmpp_status cd_shard_cost_score(const cd_shard_cost *p, cd_shard_cost_worker *w,
                                 cd_shard_cost_entry *e, cdmpp_err *err) {
    asking k = {.p = p, .w = w, .e = e, .rule = &p->rule[e->op], .kind = &p->kind[e->kind]};
    char buf[512];
    cd_arena_reset(&w->mem);
    e->seconds = HUGE_VAL;
    cd_buf_clear(&e->line);
    cdmpp_status st = e->task ? score(&k, err) : CDMPP_OK;
    if (!st && k.n) {
        e->line = k.line[0];
        k.line[0] = (cd_buf){0};
    }
    if (!st && e->task && !(e->seconds < HUGE_VAL)) {
        cd_buf_clear(&e->why);
        cd_buf_puts(&e->why, cdmpp_err_format(&k.why, buf, sizeof buf));
        if (e->why.oom) st = CD_FAIL(err, ENOMEM, "reason");
    }
    for (uint32_t i = 0; i < LINES; i++) cd_buf_free(&k.line[i]);
    e->asked = !st;
    return st;
}
