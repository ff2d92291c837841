/* Decisions, drawn at random or read from a list. Every rule that has a choice asks
 * cd_sketch_choose, which notes what was chosen: the list of all choices is the schedule's name,
 * and gives the same schedule again. */
#include <string.h>

#include "features/sketch/sketch_internal.h"

void cd_sketch_choices_free(cd_sketch_choices *c) {
    cd_mem_free(c->p);
    *c = (cd_sketch_choices){0};
}

/* Room for n choices. False: out of memory. */
static bool sketch_choices_reserve(cd_sketch_choices *c, uint32_t n) {
    if (n <= c->cap) return true;
    const uint32_t cap = n < 32 ? 64 : n * 2;
    cd_sketch_choice *p = cd_mem_realloc(c->p, c->n * sizeof *p, cap * sizeof *p);
    if (!p) return false;
    c->p = p;
    c->cap = cap;
    return true;
}

/* 0 .. n-1 */
static uint64_t sketch_random(cd_sketch_sampler *w, uint64_t n) {
    return cd_rng_at(w->key, w->drawn++) % n;
}

static uint32_t slot_of(const cd_sketch_sampler *w, uint32_t kind, uint32_t at) {
    return (uint32_t)cd_rng_mix((uint64_t)kind << 32 | at) & (w->n_slot - 1);
}

/* Chains of the given choices by kind and place, each in the list's order: a large schedule has
 * thousands. */
static bool index_given(cd_sketch_sampler *w) {
    const cd_sketch_choices *g = &w->given;
    for (w->n_slot = 16; w->n_slot < g->n; w->n_slot *= 2) {
    }
    w->slot = cd_arena_zalloc(&w->arena, w->n_slot, sizeof *w->slot);
    w->chain = cd_arena_alloc(&w->arena, g->n + 1, sizeof *w->chain);
    if (!w->slot || !w->chain) return false;
    for (uint32_t j = g->n; j-- > 0;) {
        uint32_t *slot = &w->slot[slot_of(w, g->p[j].kind, g->p[j].at)];
        w->chain[j] = *slot;
        *slot = j + 1;
    }
    return true;
}

/* The given choice of this decision: in general the next one; where decisions came to be or ceased
 * to be, the next of this kind and place. A list that ends early must read as one that goes on with
 * zeros: picks are not looked for in front. */
static const cd_sketch_choice *given(cd_sketch_sampler *w, const cd_sketch_options *m) {
    const cd_sketch_choices *g = &w->given;
    uint32_t found = 0; /* + 1 */
    for (uint32_t j = w->slot[slot_of(w, m->kind, m->at)]; j; j = w->chain[j - 1]) {
        const cd_sketch_choice *c = &g->p[j - 1];
        if (c->kind != m->kind || c->at != m->at) continue;
        if (j - 1 >= w->at) {
            found = j;
            break;
        }
        /* in front: if there is none behind */
        if (!found && w->source == CD_SKETCH_VALUES) found = j;
    }
    if (!found) return NULL;
    g->p[found - 1].kind = CD_SKETCH_CHOICE_KINDS; /* taken */
    w->at = found;
    return &g->p[found - 1];
}

/* The option of this meaning, else the nearest: places by loops of one stage, others by number. */
static uint32_t option_of(const cd_sketch_sampler *w, const cd_sketch_options *m,
                          const cd_sketch_choice *c) {
    if (!m->value || c->value == CD_SKETCH_CHOICE_ANY) return c->pick % m->n;
    uint32_t best = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t k = 0; k < m->n + (w->strict ? 0 : m->hidden); k++) {
        uint64_t far = m->value[k] > c->value ? m->value[k] - c->value : c->value - m->value[k];
        /* root or inline */
        if (m->kind == CD_SKETCH_CHOICE_PLACE && m->value[k] >> 16 != c->value >> 16)
            far += UINT32_MAX;
        if (far >= least || (k >= m->n && far)) continue;
        least = far;
        best = k;
    }
    return best;
}

static uint32_t choose(cd_sketch_sampler *w, const cd_sketch_options *m) {
    if (w->source == CD_SKETCH_RANDOM) return m->n_draw ? (uint32_t)sketch_random(w, m->n_draw) : 0;
    const cd_sketch_choice *c = given(w, m);
    if (w->source == CD_SKETCH_VALUES) return c ? option_of(w, m, c) : m->other;
    return !c ? 0 : c->pick < m->n + m->hidden ? c->pick : c->pick % m->n;
}

uint32_t cd_sketch_choose(cd_sketch_sampler *w, const cd_sketch_options *m) {
    if (w->listen) w->listen(w->listener, m);
    const uint32_t pick = choose(w, m);
    if (!sketch_choices_reserve(&w->made, w->made.n + 1)) {
        w->oom = true;
        return pick;
    }
    w->made.p[w->made.n++] = (cd_sketch_choice){.pick = pick,
                                                .n = pick < m->n ? m->n : m->n + m->hidden,
                                                .value = m->value ? m->value[pick] : pick,
                                                .kind = (uint16_t)m->kind,
                                                .at = (uint16_t)m->at};
    return pick;
}

static bool parts_well(int64_t ext, int64_t whole, int32_t k) {
    return ext % k == 0 || (whole && whole % k == 0);
}

int32_t cd_sketch_choose_length(cd_sketch_sampler *w, uint32_t stage, int64_t ext, int32_t length) {
    uint32_t value[CD_SKETCH_MAX_INNERMOST + 1] = {(uint32_t)length}, n = 1, all;
    const int64_t whole = length > 0 ? ext - ext % length : 0;
    for (int32_t k = 1; k <= CD_SKETCH_MAX_INNERMOST; k++)
        if (k != length && ext > 0 && parts_well(ext, whole, k)) value[n++] = (uint32_t)k;
    all = n;
    for (int32_t k = 1; k <= CD_SKETCH_MAX_INNERMOST; k++)
        if (k != length && !(ext > 0 && parts_well(ext, whole, k))) value[all++] = (uint32_t)k;
    return (int32_t)value[cd_sketch_choose(
        w, &(cd_sketch_options){CD_SKETCH_CHOICE_SPLIT, stage, value, n, 0, 0, all - n})];
}

static cdmpp_status sketch_sampler_reserve(cd_sketch_sampler *w, uint32_t n, cdmpp_err *err) {
    return sketch_choices_reserve(&w->given, n) ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%u choices", n);
}

/* Set given: a copy; room in it for n. */
static cdmpp_status sketch_sampler_set(cd_sketch_sampler *w, const cd_sketch_choice *c, uint32_t n,
                                       cdmpp_err *err) {
    CD_TRY(sketch_sampler_reserve(w, n, err));
    if (n) memcpy(w->given.p, c, n * sizeof *c);
    w->given.n = n;
    return CDMPP_OK;
}

/* Complete a schedule from what has been set in w.
 *
 * The first decision is the sketch; all others are made while it is completed. */
static cdmpp_status sketch_sampler_run(cd_sketch_sampler *w, cd_sketch_sample *out,
                                       cdmpp_err *err) {
    const cd_sketch_space *sp = w->space;
    cd_arena_reset(&w->arena);
    w->made.n = w->at = 0;
    w->oom = false;
    *out = (cd_sketch_sample){0};
    if (w->source != CD_SKETCH_RANDOM && !index_given(w)) return CD_FAIL(err, ENOMEM, "choices");
    const uint32_t k = cd_sketch_choose(w, &(cd_sketch_options){CD_SKETCH_CHOICE_SKETCH, 0, NULL,
                                                                sp->n_sketch, sp->n_sketch, 0, 0});
    cd_sketch_state *s = cd_sketch_copy(&w->arena, sp->sketch[k]);
    if (!s) return CD_FAIL(err, ENOMEM, "schedule");
    const bool good = sp->naive || cd_sketch_complete(w, s, k);
    if (s->oom || w->oom) return CD_FAIL(err, ENOMEM, "schedule");
    *out = (cd_sketch_sample){w->made.n, w->made.p, 0, NULL};
    if (!good) return CD_FAIL(err, EREJECTED, "sketch %u so completed breaks a rule", k);
    out->step = s->step;
    out->n_step = s->n_step;
    return CDMPP_OK;
}

cdmpp_status cd_sketch_sampler_draw(cd_sketch_sampler *w, uint64_t i, cd_sketch_sample *out,
                                    cdmpp_err *err) {
    w->source = CD_SKETCH_RANDOM;
    w->strict = true;
    w->key = cd_rng_at(w->seed, i);
    w->drawn = 0;
    return sketch_sampler_run(w, out, err);
}

cdmpp_status cd_sketch_sampler_make(cd_sketch_sampler *w, const cd_sketch_choice *c, uint32_t n,
                                    cd_sketch_sample *out, cdmpp_err *err) {
    CD_TRY(sketch_sampler_set(w, c, n, err));
    w->source = CD_SKETCH_PICKS;
    w->strict = false;
    return sketch_sampler_run(w, out, err);
}

/* A space as a whole: all its schedules in order, their number, its decisions as JSON for other
 * tuners. */

/* Spaces that are estimated to be no larger than this are counted by walking through them. */
#define WALK_MAX 20000.0

/* The list of choices after this one: the last choice that has a next option takes it, those behind
 * it are forgotten. */
static bool turn(cd_sketch_choices *c) {
    while (c->n && c->p[c->n - 1].pick + 1 >= c->p[c->n - 1].n) c->n--;
    if (!c->n) return false;
    c->p[c->n - 1].pick++;
    return true;
}

static cdmpp_status keep_choices(const cd_sketch_sampler *w, cd_sketch_choices *at,
                                 cdmpp_err *err) {
    if (!sketch_choices_reserve(at, w->made.n))
        return CD_FAIL(err, ENOMEM, "%u choices", w->made.n);
    memcpy(at->p, w->made.p, w->made.n * sizeof *at->p);
    at->n = w->made.n;
    return CDMPP_OK;
}

cdmpp_status cd_sketch_sampler_next(cd_sketch_sampler *w, cd_sketch_choices *at,
                                    cd_sketch_sample *out, cdmpp_err *err) {
    *out = (cd_sketch_sample){0};
    if (at->n && !turn(at)) return CD_FAIL(err, ENODATA, "no more schedules");
    CD_TRY(sketch_sampler_set(w, at->p, at->n, err));
    w->source = CD_SKETCH_PICKS;
    w->strict = true;
    const cdmpp_status st = sketch_sampler_run(w, out, err);
    if (st && st != CDMPP_EREJECTED) return st;
    CD_TRY(keep_choices(w, at, err));
    return st;
}

/* Product of the options of one sketch when option 0 is taken everywhere. */
static cdmpp_status size_of(cd_sketch_sampler *w, uint32_t sketch, double *size, cdmpp_err *err) {
    cd_sketch_sample d;
    const cdmpp_status st = cd_sketch_sampler_make(
        w, &(cd_sketch_choice){.pick = sketch, .kind = CD_SKETCH_CHOICE_SKETCH}, 1, &d, err);
    if (st && st != CDMPP_EREJECTED) return st;
    *size = 1;
    for (uint32_t k = 1; k < d.n_choice; k++) *size *= d.choice[k].n;
    return CDMPP_OK;
}

static cdmpp_status walk(cd_sketch_sampler *w, double *size, cdmpp_err *err) {
    cd_sketch_choices at = {0};
    cd_sketch_sample d;
    cdmpp_status st;
    for (*size = 0; (st = cd_sketch_sampler_next(w, &at, &d, err)) != CDMPP_ENODATA; *size += !st)
        if (st && st != CDMPP_EREJECTED) break;
    cd_sketch_choices_free(&at);
    return st == CDMPP_ENODATA ? CDMPP_OK : st;
}

static cdmpp_status size_with(cd_sketch_sampler *w, double *size, bool *exact, cdmpp_err *err) {
    *size = 0;
    for (uint32_t k = 0; k < w->space->n_sketch; k++) {
        double one;
        CD_TRY(size_of(w, k, &one, err));
        *size += one;
    }
    *exact = *size <= WALK_MAX;
    return *exact ? walk(w, size, err) : CDMPP_OK;
}

cdmpp_status cd_sketch_space_size(const cd_sketch_space *s, double *size, bool *exact,
                                  cdmpp_err *err) {
    cd_sketch_sampler *w;
    CD_TRY(cd_sketch_sampler_new(s, 0, &w, err));
    const cdmpp_status st = size_with(w, size, exact, err);
    cd_sketch_sampler_free(w);
    return st;
}

/* ---- knobs as JSON ---- */

enum { FEW = 24 }; /* options that are listed */

typedef struct {
    cd_buf *json;
    const cd_sketch_space *space;
    uint32_t sketch, n;
} dumper;

static const char *const kind_name[CD_SKETCH_CHOICE_KINDS] = {
    "sketch", "tile", "place", "parallel", "unroll", "vector", "split"};

/* Tile lengths are listed where there are few; else only extent and number of parts. */
static void dump_lengths(const dumper *d, const cd_sketch_options *m) {
    const cd_sketch_open_splits *o = &d->space->open[d->sketch];
    for (uint32_t k = 0; k < o->n; k++) {
        if (o->p[k].step != m->at || !o->p[k].tile) continue;
        const cd_record_step *t = &d->space->sketch[d->sketch]->step[m->at];
        cd_buf_putf(d->json, ", \"extent\": %d, \"parts\": %u", t->i[1], t->n_list + 1);
        if (m->n > FEW || t->n_list >= CD_SKETCH_MAX_LEVEL) return;
        cd_buf_puts(d->json, ", \"lengths\": [");
        for (uint32_t pick = 0; pick < m->n; pick++) {
            int32_t len[CD_SKETCH_MAX_LEVEL];
            cd_sketch_tile_lengths(o->p[k].tile, t->n_list, pick, len);
            cd_buf_puts(d->json, pick ? ", [" : "[");
            for (uint32_t j = 0; j < t->n_list; j++)
                cd_buf_putf(d->json, j ? ", %d" : "%d", len[j]);
            cd_buf_puts(d->json, "]");
        }
        cd_buf_puts(d->json, "]");
    }
}

static void dump_place(cd_buf *b, uint32_t v) {
    if (v == CD_SKETCH_PLACE_INLINE) cd_buf_puts(b, "\"inline\"");
    else if (v == CD_SKETCH_PLACE_ROOT) cd_buf_puts(b, "\"root\"");
    else cd_buf_putf(b, "[%u, %u]", cd_sketch_place_stage(v), cd_sketch_place_loop(v));
}

static void dump_decision(void *ctx, const cd_sketch_options *m) {
    dumper *d = ctx;
    if (m->kind == CD_SKETCH_CHOICE_SKETCH) return;
    cd_buf_putf(d->json, "%s\n    {\"kind\": \"%s\", \"%s\": %u, \"options\": %u",
                d->n++ ? "," : "", kind_name[m->kind],
                m->kind == CD_SKETCH_CHOICE_TILE ? "step" : "stage", m->at, m->n);
    if (m->kind == CD_SKETCH_CHOICE_TILE) dump_lengths(d, m);
    for (uint32_t k = 0; m->value && m->n <= FEW && k < m->n; k++) {
        cd_buf_puts(d->json, k ? ", " : ", \"values\": [");
        if (m->kind == CD_SKETCH_CHOICE_PLACE) dump_place(d->json, m->value[k]);
        else cd_buf_putf(d->json, "%u", m->value[k]);
    }
    cd_buf_puts(d->json, m->value && m->n <= FEW ? "]}" : "}");
}

/* The decisions are those that completing the sketch with option 0 everywhere asks for. */
static cdmpp_status dump_sketch(cd_sketch_sampler *w, dumper *d, cdmpp_err *err) {
    const cd_sketch_state *s = w->space->sketch[d->sketch];
    const cd_record r = {.n_step = s->n_step, .step = s->step};
    cd_sketch_sample draft;
    double size;
    CD_TRY(size_of(w, d->sketch, &size, err));
    cd_buf_puts(d->json, d->sketch ? ",\n  {\"steps\": " : "\n  {\"steps\": ");
    CD_TRY(cd_record_write_steps(d->json, &r, err));
    cd_buf_puts(d->json, ",\n   \"product\": ");
    cd_buf_put_json_real(d->json, size);
    cd_buf_puts(d->json, ", \"choices\": [");
    d->n = 0;
    w->listen = dump_decision;
    w->listener = d;
    const cdmpp_status st = cd_sketch_sampler_make(
        w, &(cd_sketch_choice){.pick = d->sketch, .kind = CD_SKETCH_CHOICE_SKETCH}, 1, &draft, err);
    w->listen = NULL;
    cd_buf_puts(d->json, "]}");
    return st == CDMPP_EREJECTED ? CDMPP_OK : st;
}

static cdmpp_status dump_with(cd_sketch_sampler *w, cd_buf *json, cdmpp_err *err) {
    dumper d = {.json = json, .space = w->space};
    double size;
    bool exact;
    CD_TRY(size_with(w, &size, &exact, err));
    cd_buf_putf(json,
                "{\"target\": \"%s\", \"naive\": %s, \"size\": ", d.space->gpu ? "gpu" : "cpu",
                d.space->naive ? "true" : "false");
    cd_buf_put_json_real(json, size);
    cd_buf_putf(json, ", \"exact\": %s, \"sketches\": [", exact ? "true" : "false");
    for (; d.sketch < d.space->n_sketch; d.sketch++) CD_TRY(dump_sketch(w, &d, err));
    cd_buf_puts(json, "]}\n");
    return json->oom ? CD_FAIL(err, ENOMEM, "knobs") : CDMPP_OK;
}

cdmpp_status cd_sketch_space_dump(const cd_sketch_space *s, cd_buf *json, cdmpp_err *err) {
    cd_sketch_sampler *w;
    CD_TRY(cd_sketch_sampler_new(s, 0, &w, err));
    const cdmpp_status st = dump_with(w, json, err);
    cd_sketch_sampler_free(w);
    return st;
}

/* A record's schedule as choices of a space, which may be of a task of another shape: the steps of
 * the record are read as decisions, and the sampler takes for each the option nearest to it. So a
 * good schedule of one task is a start for another. */

static bool same_text(cd_str a, cd_str b) { return a.n == b.n && (!a.n || !memcmp(a.p, b.p, a.n)); }

/* The extent that a split notes is not compared: nothing depends on it, and TVM's mutations leave
 * that of an ancestor. */
static bool same_step(const cd_record_step *a, const cd_record_step *b) {
    const bool noted = a->kind == CD_RECORD_STEP_SP || a->i[1] == b->i[1];
    return a->kind == b->kind && a->stage == b->stage && a->i[0] == b->i[0] && noted &&
           a->i[2] == b->i[2] && a->n_list == b->n_list &&
           (!a->n_list || !memcmp(a->list, b->list, a->n_list * sizeof *a->list)) &&
           same_text(a->s, b->s);
}

/* Is b step a of a sketch, but for the extent and open lengths? */
static bool like_step(const cd_record_step *a, const cd_record_step *b) {
    if (a->kind != CD_RECORD_STEP_SP) return same_step(a, b);
    if (b->kind != CD_RECORD_STEP_SP || a->stage != b->stage || a->i[0] != b->i[0] ||
        a->i[2] != b->i[2] || a->n_list != b->n_list)
        return false;
    for (uint32_t k = 0; k < a->n_list; k++) /* a single one is a choice */
        if (a->list[k] && a->list[k] != b->list[k] && a->n_list > 1) return false;
    return true;
}

static bool begins(const cd_sketch_state *s, const cd_record *r) {
    if (s->n_step > r->n_step) return false;
    for (uint32_t k = 0; k < s->n_step; k++)
        if (!like_step(&s->step[k], &r->step[k])) return false;
    return true;
}

/* The longest sketch that the record begins with: shorter ones are those where rules were skipped.
 * -1: none. */
static int64_t find_sketch(const cd_sketch_space *sp, const cd_record *r) {
    int64_t best = -1;
    for (uint32_t k = 0; k < sp->n_sketch; k++)
        if (begins(sp->sketch[k], r) &&
            (best < 0 || sp->sketch[k]->n_step > sp->sketch[best]->n_step))
            best = k;
    return best;
}

/* ---- the record's decisions ---- */

static void want_choice(cd_sketch_sampler *w, cd_sketch_choice_kind kind, uint32_t at,
                        uint32_t pick, uint32_t value) {
    if (w->given.n == w->given.cap) return; /* room was made for all */
    w->given.p[w->given.n++] = (cd_sketch_choice){
        .pick = pick, .n = 1, .value = value, .kind = (uint16_t)kind, .at = (uint16_t)at};
}

static bool want_tile(cd_sketch_sampler *w, const cd_sketch_open_split *o,
                      const cd_record_step *ours, const cd_record_step *theirs) {
    uint32_t pick;
    const uint32_t n = ours->n_list;
    if (ours->i[1] != theirs->i[1] || !cd_sketch_tile_index(o->tile, n, theirs->list, &pick)) {
        double *want = cd_arena_alloc(&w->arena, n + 1, sizeof *want), product = 1;
        if (!want) return false;
        for (uint32_t k = 0; k < n; k++)
            product *= want[k + 1] = theirs->list[k] > 0 ? theirs->list[k] : 1;
        want[0] = theirs->i[1] > 0 ? theirs->i[1] / product : 1;
        pick = cd_sketch_tile_nearest(o->tile, n, want, &w->arena);
        if (pick == UINT32_MAX) return false;
    }
    want_choice(w, CD_SKETCH_CHOICE_TILE, o->step, pick, CD_SKETCH_CHOICE_ANY);
    return true;
}

/* Loops that the step before fused into the one that is annotated. */
static uint32_t fused_before(const cd_record *r, uint32_t k) {
    const cd_record_step *fu = &r->step[k ? k - 1 : 0], *an = &r->step[k];
    return fu->kind == CD_RECORD_STEP_FU && fu->stage == an->stage && fu->n_list &&
                   fu->list[0] == an->i[0]
               ? fu->n_list
               : 1;
}

static uint32_t unroll_of(cd_str pragma) {
    const char *at = memchr(pragma.p, '$', pragma.n);
    uint32_t v = 0;
    if (!at) return 0;
    for (at++; at < pragma.p + pragma.n && *at >= '0' && *at <= '9' && v < 100000000; at++)
        v = v * 10 + (uint32_t)(*at - '0');
    return v;
}

/* What a step after the sketch decided. */
static void want_step(cd_sketch_sampler *w, const cd_record *r, uint32_t k, bool *vector,
                      uint32_t n_stage) {
    const cd_record_step *t = &r->step[k];
    const uint32_t at = (uint32_t)t->stage;
    switch (t->kind) {
    case CD_RECORD_STEP_CI:
        want_choice(w, CD_SKETCH_CHOICE_PLACE, at, 0, CD_SKETCH_PLACE_INLINE);
        break;
    case CD_RECORD_STEP_CR:
        want_choice(w, CD_SKETCH_CHOICE_PLACE, at, 0, CD_SKETCH_PLACE_ROOT);
        break;
    case CD_RECORD_STEP_CA:
        want_choice(w, CD_SKETCH_CHOICE_PLACE, at, 0,
                    cd_sketch_place((uint32_t)t->i[0], (uint32_t)t->i[1]));
        break;
    case CD_RECORD_STEP_SP:
        want_choice(w, CD_SKETCH_CHOICE_SPLIT, at, 0, t->n_list ? (uint32_t)t->list[0] : 1);
        break;
    case CD_RECORD_STEP_PR: want_choice(w, CD_SKETCH_CHOICE_UNROLL, at, 0, unroll_of(t->s)); break;
    case CD_RECORD_STEP_AN:
        if (t->i[1] == CD_SKETCH_PARALLEL)
            want_choice(w, CD_SKETCH_CHOICE_PARALLEL, at, 0, fused_before(r, k));
        if (t->i[1] != CD_SKETCH_VECTORIZE) break;
        want_choice(w, CD_SKETCH_CHOICE_VECTOR, at, 0, fused_before(r, k));
        if (at < n_stage) vector[at] = true;
        break;
    default: break;
    }
}

/* A stage without a vector step wants no vector: that is a decision, too. */
static cdmpp_status want_all(cd_sketch_sampler *w, uint32_t sketch, const cd_record *r,
                             cdmpp_err *err) {
    const cd_sketch_state *s = w->space->sketch[sketch];
    const cd_sketch_open_splits *o = &w->space->open[sketch];
    bool *vector = cd_arena_zalloc(&w->arena, s->n_stage + 1, sizeof *vector);
    if (!vector) return CD_FAIL(err, ENOMEM, "vectors");
    CD_TRY(sketch_sampler_reserve(w, 1 + r->n_step + o->n + s->n_stage, err));
    want_choice(w, CD_SKETCH_CHOICE_SKETCH, 0, sketch, CD_SKETCH_CHOICE_ANY);
    for (uint32_t k = 0; k < o->n; k++) {
        const cd_record_step *theirs = &r->step[o->p[k].step];
        if (o->p[k].fixed)
            want_choice(w, CD_SKETCH_CHOICE_SPLIT, o->p[k].stage, 0, (uint32_t)theirs->list[0]);
        else if (o->p[k].tile && !want_tile(w, &o->p[k], &s->step[o->p[k].step], theirs))
            return CD_FAIL(err, ENOMEM, "tile lengths");
    }
    for (uint32_t k = s->n_step; k < r->n_step; k++) want_step(w, r, k, vector, s->n_stage);
    for (uint32_t k = 0; k < s->n_stage; k++)
        if (!vector[k]) want_choice(w, CD_SKETCH_CHOICE_VECTOR, k, 0, 0);
    return CDMPP_OK;
}

/* *exact by comparing the steps: limits of the space may have moved a decision. */
cdmpp_status cd_sketch_sampler_match(cd_sketch_sampler *w, const cd_record *r,
                                     cd_sketch_sample *out, bool *exact, cdmpp_err *err) {
    *out = (cd_sketch_sample){0};
    *exact = false;
    const int64_t sketch = w->space->naive ? 0 : find_sketch(w->space, r);
    if (sketch < 0)
        return CD_FAIL(err, EREJECTED, "the record begins with no sketch of this space");
    cd_arena_reset(&w->arena);
    w->given.n = 0;
    if (!w->space->naive) CD_TRY(want_all(w, (uint32_t)sketch, r, err));
    w->source = CD_SKETCH_VALUES;
    w->strict = false;
    CD_TRY(sketch_sampler_run(w, out, err));
    *exact = out->n_step == r->n_step;
    for (uint32_t k = 0; *exact && k < r->n_step; k++)
        *exact = same_step(&out->step[k], &r->step[k]);
    return CDMPP_OK;
}

/* From schedules to others near them: Ansor's mutations, and crossover, which Ansor does not have.
 * Both change the list of choices and complete the sketch again. */

/* Streams of random numbers apart from those of draws. */
enum { MUTATE = 0x6d75, CROSS = 0x6372 };

static void seed(cd_sketch_sampler *w, uint64_t stream, uint64_t i) {
    w->key = cd_rng_at(w->seed ^ cd_rng_mix(stream), i);
    w->drawn = 0;
    w->source = CD_SKETCH_VALUES;
    w->strict = true;
}

static double unit(cd_sketch_sampler *w) { return cd_rng_unit(w->key, w->drawn++); }

/* ---- one factor from a level of a split to another ---- */

static void shuffle(cd_sketch_sampler *w, uint32_t *p, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) p[k] = k;
    for (uint32_t k = n; k > 1; k--) {
        const uint32_t j = (uint32_t)sketch_random(w, k), x = p[k - 1];
        p[k - 1] = p[j];
        p[j] = x;
    }
}

/* A random divisor of n, above 1 and at most `most`; 0: there is none. */
static int32_t factor_of(cd_sketch_sampler *w, int32_t n, int32_t most) {
    uint32_t count = 0;
    for (int32_t f = 2; f <= n && f <= most; f++) count += n % f == 0;
    if (!count) return 0;
    uint32_t pick = (uint32_t)sketch_random(w, count);
    for (int32_t f = 2;; f++)
        if (n % f == 0 && !pick--) return f;
}

/* Levels 0 (outermost) .. n of a split. */
static bool move_factor(cd_sketch_sampler *w, int32_t *len, uint32_t n) {
    uint32_t order[CD_SKETCH_MAX_LEVEL];
    shuffle(w, order, n + 1);
    for (uint32_t k = 0; k <= n; k++) {
        const uint32_t from = order[k], to = order[(k + 1) % (n + 1)];
        if (len[from] < 2) continue;
        const int32_t f =
            factor_of(w, len[from], to == n ? CD_SKETCH_MAX_INNERMOST / len[n] : len[from]);
        if (!f) continue;
        len[from] /= f;
        len[to] *= f;
        return true;
    }
    return false;
}

static const cd_sketch_open_split *open_at(const cd_sketch_space *sp, uint32_t sketch,
                                           uint32_t step) {
    const cd_sketch_open_splits *o = &sp->open[sketch];
    for (uint32_t k = 0; k < o->n; k++)
        if (o->p[k].step == step) return &o->p[k];
    return NULL;
}

static bool mutate_tile(cd_sketch_sampler *w, uint32_t sketch, cd_sketch_choice *c) {
    const cd_sketch_open_split *o = open_at(w->space, sketch, c->at);
    if (!o || !o->tile) return false;
    const cd_record_step *t = &w->space->sketch[sketch]->step[o->step];
    int32_t len[CD_SKETCH_MAX_LEVEL];
    if (t->n_list >= CD_SKETCH_MAX_LEVEL) return false;
    cd_sketch_tile_lengths(o->tile, t->n_list, c->pick % cd_sketch_tile_count(o->tile, t->n_list),
                           len + 1);
    len[0] = t->i[1];
    for (uint32_t k = 1; k <= t->n_list; k++) len[0] /= len[k];
    return move_factor(w, len, t->n_list) &&
           cd_sketch_tile_index(o->tile, t->n_list, len + 1, &c->pick);
}

static bool mutate_other(cd_sketch_sampler *w, cd_sketch_choice *c) {
    c->pick = (c->pick + 1 + (uint32_t)sketch_random(w, c->n - 1)) % c->n;
    c->value = CD_SKETCH_CHOICE_ANY;
    return true;
}

/* ---- which choice ---- */

/* Ansor counts all splits among the tiles. */
static uint32_t weigh_as(uint16_t kind) {
    return kind == CD_SKETCH_CHOICE_SPLIT ? CD_SKETCH_CHOICE_TILE : kind;
}

static const double cpu_weight[CD_SKETCH_CHOICE_KINDS] = {[CD_SKETCH_CHOICE_TILE] = 0.90,
                                                          [CD_SKETCH_CHOICE_UNROLL] = 0.04,
                                                          [CD_SKETCH_CHOICE_PLACE] = 0.05,
                                                          [CD_SKETCH_CHOICE_PARALLEL] = 0.01};
static const double gpu_weight[CD_SKETCH_CHOICE_KINDS] = {
    [CD_SKETCH_CHOICE_TILE] = 0.90, [CD_SKETCH_CHOICE_UNROLL] = 0.10};

/* First the kind, by weight among those that have something to change, then one of its choices. */
static cd_sketch_choice *choose_mutate(cd_sketch_sampler *w) {
    const double *weight = w->space->gpu ? gpu_weight : cpu_weight;
    uint32_t count[CD_SKETCH_CHOICE_KINDS] = {0}, kind = CD_SKETCH_CHOICE_KINDS;
    double sum = 0;
    for (uint32_t k = 0; k < w->given.n; k++)
        if (w->given.p[k].n > 1 && w->given.p[k].kind < CD_SKETCH_CHOICE_KINDS)
            count[weigh_as(w->given.p[k].kind)]++;
    for (uint32_t k = 0; k < CD_SKETCH_CHOICE_KINDS; k++) sum += count[k] ? weight[k] : 0;
    double at = unit(w) * sum;
    for (uint32_t k = 0; k < CD_SKETCH_CHOICE_KINDS; k++) {
        if (!count[k] || weight[k] <= 0) continue;
        kind = k;
        if ((at -= weight[k]) < 0) break;
    }
    if (kind == CD_SKETCH_CHOICE_KINDS) return NULL;
    uint32_t pick = (uint32_t)sketch_random(w, count[kind]);
    for (uint32_t k = 0;; k++)
        if (w->given.p[k].n > 1 && weigh_as(w->given.p[k].kind) == kind && !pick--)
            return &w->given.p[k];
}

static uint32_t sketch_of(const cd_sketch_space *sp, const cd_sketch_choice *c, uint32_t n) {
    return n && c->kind == CD_SKETCH_CHOICE_SKETCH && sp->n_sketch ? c->pick % sp->n_sketch : 0;
}

cdmpp_status cd_sketch_sampler_mutate(cd_sketch_sampler *w, const cd_sketch_choice *c, uint32_t n,
                                      uint64_t i, cd_sketch_sample *out, cdmpp_err *err) {
    const uint32_t sketch = sketch_of(w->space, c, n);
    *out = (cd_sketch_sample){0};
    CD_TRY(sketch_sampler_set(w, c, n, err));
    seed(w, MUTATE, i);
    cd_sketch_choice *m = choose_mutate(w);
    if (!m || !(m->kind == CD_SKETCH_CHOICE_TILE ? mutate_tile(w, sketch, m) : mutate_other(w, m)))
        return CD_FAIL(err, EREJECTED, "nothing of sketch %u can be mutated so", sketch);
    return sketch_sampler_run(w, out, err);
}

/* The second list is followed in order: a decision that only one of them has stays as it is. */
cdmpp_status cd_sketch_sampler_crossover(cd_sketch_sampler *w, const cd_sketch_choice *a,
                                         uint32_t na, const cd_sketch_choice *b, uint32_t nb,
                                         uint64_t i, cd_sketch_sample *out, cdmpp_err *err) {
    const uint32_t sketch = sketch_of(w->space, a, na), other = sketch_of(w->space, b, nb);
    *out = (cd_sketch_sample){0};
    if (sketch != other)
        return CD_FAIL(err, EREJECTED, "schedules of sketches %u and %u do not cross", sketch,
                       other);
    CD_TRY(sketch_sampler_set(w, a, na, err));
    seed(w, CROSS, i);
    for (uint32_t k = 0, j = 0; k < w->given.n; k++) {
        cd_sketch_choice *c = &w->given.p[k];
        uint32_t at = j;
        while (at < nb && (b[at].kind != c->kind || b[at].at != c->at)) at++;
        if (at == nb) continue;
        j = at + 1;
        if (sketch_random(w, 2)) *c = b[at];
    }
    return sketch_sampler_run(w, out, err);
}
