/* A space of recorded candidates. Steps of one class differ only in numbers; each number that
 * varies is a choice, so candidates have neighbours as they have in a space of sketches. */
#include "predictor/tune/space/space.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbering ---- */
typedef struct {
    uint64_t class;
    size_t from;           /* in the order that was given */
    const int32_t *number; /* (n_number) */
    uint32_t n_number;
    cd_sketch_choice *choice;
    uint32_t n_choice;
} entry;

static int by_class(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->n_number != y->n_number) return x->n_number < y->n_number ? -1 : 1;
    if (x->class != y->class) return x->class < y->class ? -1 : 1;
    return memcmp(x->number, y->number, x->n_number * sizeof *x->number); /* any fixed order */
}

static int by_choice(const void *a, const void *b) {
    const entry *x = a, *y = b;
    for (uint32_t k = 0; k < x->n_choice && k < y->n_choice; k++)
        if (x->choice[k].pick != y->choice[k].pick)
            return x->choice[k].pick < y->choice[k].pick ? -1 : 1;
    return (x->n_choice > y->n_choice) - (x->n_choice < y->n_choice);
}

static int ascending(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static uint8_t kind_of(const cd_record_step *s) {
    switch (s->kind) {
    case CD_RECORD_STEP_AN: return CD_SKETCH_CHOICE_PARALLEL;
    case CD_RECORD_STEP_PR: return CD_SKETCH_CHOICE_UNROLL;
    case CD_RECORD_STEP_CA: return CD_SKETCH_CHOICE_PLACE;
    default: return CD_SKETCH_CHOICE_TILE;
    }
}

/* Distinct values of number k within a class, ascending. */
static uint32_t values(const entry *e, size_t n, uint32_t k, int32_t *v) {
    uint32_t m = 0;
    for (size_t i = 0; i < n; i++) v[i] = e[i].number[k];
    qsort(v, n, sizeof *v, ascending);
    for (size_t i = 0; i < n; i++)
        if (!m || v[m - 1] != v[i]) v[m++] = v[i];
    return m;
}

static uint32_t rank_of(const int32_t *v, uint32_t n, int32_t x) {
    return (uint32_t)((const int32_t *)bsearch(&x, v, n, sizeof *v, ascending) - v);
}

/* Choices of the members e (n) of class number c of n_class. v (n): work; at: the steps of the
 * numbers. */
static cdmpp_status choose(cd_arena *a, entry *e, size_t n, uint32_t c, uint32_t n_class,
                           const cd_tune_cand *cand, int32_t *v, uint16_t *at, cdmpp_err *err) {
    const cd_tune_cand *like = &cand[e[0].from];
    cd_tune_numbers(like->step, like->n_step, (int32_t *)v + n, at);
    uint32_t n_choice = 1;
    for (uint32_t k = 0; k < e[0].n_number; k++) n_choice += values(e, n, k, v) > 1;
    for (size_t i = 0; i < n; i++) {
        e[i].choice = cd_arena_zalloc(a, n_choice, sizeof *e[i].choice);
        if (!e[i].choice) return CD_FAIL(err, ENOMEM, "choices of %zu candidates", n);
        e[i].choice[e[i].n_choice++] =
            (cd_sketch_choice){.pick = c, .n = n_class, .kind = CD_SKETCH_CHOICE_SKETCH};
    }
    for (uint32_t k = 0; k < e[0].n_number; k++) {
        const uint32_t m = values(e, n, k, v);
        for (size_t i = 0; m > 1 && i < n; i++)
            e[i].choice[e[i].n_choice++] = (cd_sketch_choice){.pick = rank_of(v, m, e[i].number[k]),
                                                              .n = m,
                                                              .kind = kind_of(&like->step[at[k]]),
                                                              .at = at[k]};
    }
    return CDMPP_OK;
}

static uint32_t count_classes(const entry *e, size_t n) {
    uint32_t c = n > 0;
    for (size_t i = 1; i < n; i++)
        c += e[i].class != e[i - 1].class || e[i].n_number != e[i - 1].n_number;
    return c;
}

/* Candidates are sorted by class. Within a class each number that varies becomes a choice: the rank
 * of its value. */
static cdmpp_status choose_all(cd_arena *a, entry *e, size_t n, const cd_tune_cand *cand,
                               cdmpp_err *err) {
    uint32_t most = 0, c = 0;
    for (size_t i = 0; i < n; i++) most = e[i].n_number > most ? e[i].n_number : most;
    int32_t *v = cd_mem_zalloc(n + most + 1, sizeof *v);
    uint16_t *at = cd_mem_zalloc(most + 1, sizeof *at);
    cdmpp_status st = v && at ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu candidates", n);
    const uint32_t n_class = count_classes(e, n);
    for (size_t i = 0, end; !st && i < n; i = end) {
        for (end = i + 1;
             end < n && e[end].class == e[i].class && e[end].n_number == e[i].n_number;)
            end++;
        st = choose(a, e + i, end - i, c++, n_class, cand, v, at, err);
    }
    cd_mem_free(v);
    cd_mem_free(at);
    return st;
}

static cdmpp_status put_in_order(const entry *e, cd_tune_cand *cand, size_t n, cdmpp_err *err) {
    cd_tune_cand *old = cd_mem_zalloc(n + 1, sizeof *old);
    if (!old) return CD_FAIL(err, ENOMEM, "%zu candidates", n);
    if (n) memcpy(old, cand, n * sizeof *old);
    for (size_t i = 0; i < n; i++) {
        cand[i] = old[e[i].from];
        cand[i].row = (uint32_t)i;
        cand[i].choice = e[i].choice;
        cand[i].n_choice = e[i].n_choice;
    }
    cd_mem_free(old);
    return CDMPP_OK;
}

/* Two sorts: by class, to find what varies within it; then by the choices that come of it, which is
 * the final order. */
cdmpp_status cd_tune_log_number(cd_arena *a, cd_tune_cand *cand, size_t n, cdmpp_err *err) {
    cd_arena numbers = {0};
    entry *e = cd_mem_zalloc(n + 1, sizeof *e);
    cdmpp_status st = e ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu candidates", n);
    for (size_t i = 0; !st && i < n; i++) {
        const uint32_t m = cd_tune_knobs_count(cand[i].step, cand[i].n_step);
        int32_t *number = cd_arena_alloc(&numbers, m + 1, sizeof *number);
        if (!number) st = CD_FAIL(err, ENOMEM, "%zu candidates", n);
        else cd_tune_numbers(cand[i].step, cand[i].n_step, number, NULL);
        e[i] = (entry){.class = cd_tune_class(cand[i].step, cand[i].n_step),
                       .from = i,
                       .number = number,
                       .n_number = m};
    }
    if (!st && n) qsort(e, n, sizeof *e, by_class);
    if (!st) st = choose_all(a, e, n, cand, err);
    if (!st && n) qsort(e, n, sizeof *e, by_choice);
    if (!st) st = put_in_order(e, cand, n, err);
    cd_mem_free(e);
    cd_arena_free(&numbers);
    return st;
}

/* ---- the space ---- */
typedef struct {
    cd_tune_space base;
    const cd_tune_cand *cand; /* (n) borrowed */
    size_t n;
    uint64_t seed;
    uint32_t *near;         /* (n, CD_TUNE_NEAR) rows, nearest first; filled where known */
    uint8_t *known;         /* (n) how many, plus one; 0: not looked yet */
    cd_sketch_choice *want; /* of a crossing */
} space;

/* Of choices x (n) and those of y: classes far apart, then what differs. */
static double distance(const cd_sketch_choice *x, uint32_t n, const cd_tune_cand *y) {
    const bool same = n == y->n_choice && x[0].pick == y->choice[0].pick;
    double d = same ? 0 : 1e6;
    for (uint32_t k = 1; k < n && k < y->n_choice; k++) {
        const double a = x[k].pick / (double)(x[k].n - 1),
                     b = y->choice[k].pick / (double)(y->choice[k].n - 1);
        if (a != b) d += 1 + fabs(a - b);
    }
    return d;
}

/* Keeps the CD_TUNE_NEAR nearest by insertion, nearest first; known is their count plus one, so 0
 * means not looked yet. */
static void look_around(space *s, uint32_t row) {
    double d[CD_TUNE_NEAR];
    uint32_t *near = s->near + (size_t)row * CD_TUNE_NEAR, m = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (i == row) continue;
        const double x = distance(s->cand[row].choice, s->cand[row].n_choice, &s->cand[i]);
        if (m == CD_TUNE_NEAR && x >= d[m - 1]) continue;
        uint32_t k = m < CD_TUNE_NEAR ? m++ : m - 1;
        for (; k && d[k - 1] > x; k--) {
            d[k] = d[k - 1];
            near[k] = near[k - 1];
        }
        d[k] = x;
        near[k] = i;
    }
    s->known[row] = (uint8_t)(m + 1);
}

static cdmpp_status draw(cd_tune_space *b, uint64_t i, cd_tune_cand *out, cdmpp_err *err) {
    const space *s = (const space *)b;
    if (!s->n) return CD_FAIL(err, ENODATA, "no candidates");
    *out = s->cand[cd_rng_at(s->seed, i) % s->n];
    return CDMPP_OK;
}

/* The row of a candidate of this space; ENODATA: it is of another. */
static cdmpp_status row_of(const space *s, const cd_tune_cand *c, uint32_t *row, cdmpp_err *err) {
    if (c->row < s->n && s->cand[c->row].key == c->key) *row = c->row;
    else return CD_FAIL(err, ENODATA, "no candidate of this space");
    return CDMPP_OK;
}

static cdmpp_status change(cd_tune_space *b, const cd_tune_cand *from, uint64_t i,
                           cd_tune_cand *out, cdmpp_err *err) {
    space *s = (space *)b;
    uint32_t row;
    CD_TRY(row_of(s, from, &row, err));
    if (!s->known[row]) look_around(s, row);
    const unsigned m = s->known[row] - 1u;
    if (!m) return CD_FAIL(err, ENODATA, "a single candidate");
    const double u = cd_rng_unit(s->seed ^ from->key, i);
    *out = s->cand[s->near[(size_t)row * CD_TUNE_NEAR + (unsigned)(u * u * m)]];
    return CDMPP_OK;
}

/* Wants each choice from one of the parents, by a random bit, and takes the recorded candidate
 * nearest to that. */
static cdmpp_status cross(cd_tune_space *b, const cd_tune_cand *x, const cd_tune_cand *y,
                          uint64_t i, cd_tune_cand *out, cdmpp_err *err) {
    space *s = (space *)b;
    uint32_t rx, ry, best = UINT32_MAX;
    CD_TRY(row_of(s, x, &rx, err));
    CD_TRY(row_of(s, y, &ry, err));
    const uint64_t bits = cd_rng_at(s->seed ^ x->key, i ^ y->key);
    if (x->n_choice != y->n_choice || x->choice[0].pick != y->choice[0].pick)
        return change(b, bits & 1 ? x : y, i, out, err);
    for (uint32_t k = 0; k < x->n_choice; k++)
        s->want[k] = cd_rng_at(bits, k) & 1 ? x->choice[k] : y->choice[k];
    double least = HUGE_VAL;
    for (uint32_t c = 0; c < s->n; c++) {
        const double d =
            c == rx || c == ry ? HUGE_VAL : distance(s->want, x->n_choice, &s->cand[c]);
        if (d >= least) continue;
        least = d;
        best = c;
    }
    if (best == UINT32_MAX) return CD_FAIL(err, ENODATA, "no candidate but the two");
    *out = s->cand[best];
    return CDMPP_OK;
}

static cdmpp_status list(cd_tune_space *b, const cd_tune_cand **all, size_t *n, cdmpp_err *err) {
    const space *s = (const space *)b;
    (void)err;
    *all = s->cand;
    *n = s->n <= CD_TUNE_LIST_MAX ? s->n : 0;
    return CDMPP_OK;
}

/* Sum of the ratios' logarithms over numbers of steps of one class. */
static double apart(const int32_t *x, const int32_t *y, uint32_t n) {
    double d = 0;
    for (uint32_t k = 0; k < n; k++)
        d += fabs(log2(1 + fabs((double)x[k])) - log2(1 + fabs((double)y[k])));
    return d;
}

/* Only candidates of the same class have the same numbers at the same places; their distances can
 * be compared. */
static cdmpp_status follow_near(const space *s, const cd_record *r, uint32_t *best,
                                cdmpp_err *err) {
    const uint64_t class = cd_tune_class(r->step, r->n_step);
    const uint32_t m = cd_tune_knobs_count(r->step, r->n_step);
    int32_t *want = cd_mem_zalloc(2 * (size_t)m + 1, sizeof *want);
    if (!want) return CD_FAIL(err, ENOMEM, "%u numbers", m);
    double least = HUGE_VAL;
    cd_tune_numbers(r->step, r->n_step, want, NULL);
    for (uint32_t i = 0; i < s->n; i++) {
        const cd_tune_cand *c = &s->cand[i];
        if (cd_tune_knobs_count(c->step, c->n_step) != m ||
            cd_tune_class(c->step, c->n_step) != class)
            continue;
        cd_tune_numbers(c->step, c->n_step, want + m, NULL);
        const double d = apart(want, want + m, m);
        if (d >= least) continue;
        least = d;
        *best = i;
    }
    cd_mem_free(want);
    return least < HUGE_VAL ? CDMPP_OK : CD_FAIL(err, ENODATA, "no candidate of the steps' class");
}

static cdmpp_status follow(cd_tune_space *b, const cd_record *r, cd_tune_cand *out, bool *exact,
                           cdmpp_err *err) {
    const space *s = (const space *)b;
    const uint64_t key = cd_record_steps_key(r->step, r->n_step);
    uint32_t best = 0;
    *exact = false;
    for (uint32_t i = 0; i < s->n && !*exact; i++)
        if (s->cand[i].key == key) {
            best = i;
            *exact = true;
        }
    if (!*exact) CD_TRY(follow_near(s, r, &best, err));
    *out = s->cand[best];
    return CDMPP_OK;
}

static void release(cd_tune_space *b) {
    space *s = (space *)b;
    cd_mem_free(s->near);
    cd_mem_free(s->known);
    cd_mem_free(s->want);
    cd_mem_free(s);
}

static const cd_tune_space_kind kind = {.name = "log",
                                        .draw = draw,
                                        .change = change,
                                        .cross = cross,
                                        .list = list,
                                        .follow = follow,
                                        .free = release};

/* Neighbours are found when a candidate is first changed: for all of them at once it would take n^2
 * distances. */
cdmpp_status cd_tune_space_log(const cd_tune_task *t, const cd_tune_cand *cand, size_t n,
                               uint64_t seed, cd_tune_space **out, cdmpp_err *err) {
    uint32_t most = 1;
    for (size_t i = 0; i < n; i++) most = cand[i].n_choice > most ? cand[i].n_choice : most;
    space *s = cd_mem_zalloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "space of %zu candidates", n);
    *s = (space){.base = {&kind, *t}, .cand = cand, .n = n, .seed = seed};
    s->near = cd_mem_zalloc(n * CD_TUNE_NEAR + 1, sizeof *s->near);
    s->known = cd_mem_zalloc(n + 1, 1);
    s->want = cd_mem_zalloc(most, sizeof *s->want);
    if (!s->near || !s->known || !s->want) {
        release(&s->base);
        return CD_FAIL(err, ENOMEM, "space of %zu candidates", n);
    }
    *out = &s->base;
    return CDMPP_OK;
}
