/* Intervals of an operator model: trainings without rows of like sizes, without the largest rows,
 * without a device and without a maker's devices tell how far measured times are from predictions
 * of what a training did not see. Nothing of the model itself is chosen by them. */
#include <math.h>
#include <string.h>

#include "learner/train/train_internal.h"

enum { FOLDS = 4, OCTAVES = 3 };
static const double LEVEL = 0.9; /* of the coverage that is reported */

/* ---- folds ---- */
/* Rows of like sizes stand in one fold, whatever their operator, type and device. `octaves`: how
 * many factors of two a block of sizes is wide. */
static uint8_t fold_of(const cd_config *c, const cd_library_op_record *r, int octaves) {
    const double size[] = {r->b, r->m, r->n, r->k, r->cin, r->ksize, r->size};
    uint64_t h = (uint64_t)cd_library_op_family_of(r->kind);
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        h = cd_rng_at(h, (uint64_t)(octaves ? lround(log2(size[i] + 1) / octaves)
                                            : lround(1e3 * log2(size[i] + 1))));
    return (uint8_t)(cd_rng_at((uint64_t)c->operators_seed, h) % FOLDS);
}

/* Blocks are wide, for a table of new sizes stands apart from those of the training; narrower where
 * a family's rows do not fill all folds. */
static void fill_folds(const cd_library_op_fitting *a, const uint8_t *use, uint8_t *fold) {
    const cd_library_op_data *d = a->d;
    for (int f = 0; f < CD_LIBRARY_OP_N_FAMILY; f++) {
        unsigned filled = 0;
        for (int octaves = OCTAVES; octaves >= 0 && filled + 1 != 1u << FOLDS; octaves--) {
            filled = 0;
            for (size_t i = 0; i < d->n; i++) {
                if (cd_library_op_family_of(d->r[i].kind) != (cd_library_op_family)f) continue;
                fold[i] = fold_of(a->c, &d->r[i], octaves);
                filled |= use[i] ? 1u << fold[i] : 0;
            }
        }
    }
}

/* ---- one training ---- */
typedef struct {
    const cd_library_op_fitting *a;
    const uint8_t *use; /* (d->n) rows that may be trained on */
    /* (d->n_known) number of the device's stack: devices of one lockstep width */
    uint32_t *stack;
    /* (d->n) large: the tenth with the most work; wide: beyond a part of the sizes */
    uint8_t *train, *ask, *fold, *large, *wide;
    cd_library_op_residual *r; /* (n) */
    size_t n, room;
} calibrating;

static cdmpp_status put(calibrating *k, const cd_library_op_residual *r, cdmpp_err *err) {
    if (k->n == k->room) {
        const size_t room = k->room ? 2 * k->room : 4096;
        cd_library_op_residual *v = cd_mem_realloc(k->r, k->room * sizeof *v, room * sizeof *v);
        if (!v) return CD_FAIL(err, ENOMEM, "%zu residuals", room);
        k->r = v;
        k->room = room;
    }
    k->r[k->n++] = *r;
    return CDMPP_OK;
}

static bool is_new(cd_library_op_held h) {
    return h == CD_LIBRARY_OP_HELD_DEVICE || h == CD_LIBRARY_OP_HELD_STACK;
}

/* Rows that the trained trees answer: a device of which no row is trained on is asked as a new one,
 * and only then. */
static size_t answered(const calibrating *k, const cd_library_op_model *m, cd_library_op_held held,
                       size_t *row) {
    const cd_library_op_data *d = k->a->d;
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        const cd_library_op_kind kind = d->r[i].kind;
        const bool seen = k->ask[i] && cd_library_op_model_seen(m, kind, d->known[d->device[i]]);
        if (k->ask[i] && seen != is_new(held) && m->part[cd_library_op_family_of(kind)][seen].gbt)
            row[n++] = i;
    }
    return n;
}

typedef struct {
    size_t *row;
    cd_library_op_record *r;
    const cd_device **device;
    double *s;
} asked;

/* What a device's larger rows have in common is one draw, so they are held out together. */
static uint32_t large_part(const calibrating *k, size_t i) {
    return k->a->d->n_known > 1 ? k->a->d->device[i] : k->fold[i];
}

static cdmpp_status residuals(calibrating *k, const cd_library_op_model *m, cd_library_op_held held,
                              uint32_t part, asked *q, cdmpp_err *err) {
    const cd_library_op_data *d = k->a->d;
    const size_t n = answered(k, m, held, q->row);
    for (size_t j = 0; j < n; j++) {
        q->r[j] = d->r[q->row[j]];
        q->device[j] = d->known[d->device[q->row[j]]];
    }
    CD_TRY(cd_library_op_model_predict(m, q->r, q->device, n, q->s, err));
    for (size_t j = 0; j < n; j++) {
        const size_t i = q->row[j];
        const cd_library_op_apart apart = cd_library_op_model_apart(m, &q->r[j], q->device[j]);
        const cd_library_op_residual one = {
            .held = held,
            .class = cd_library_op_kind_class(d->r[i].kind),
            .device = d->device[i],
            .part = held == CD_LIBRARY_OP_HELD_LARGE ? large_part(k, i) : part,
            .stack = k->stack[d->device[i]],
            .predicted_s = q->s[j],
            .reach = apart.reach,
            .distance = fmax(apart.distance, 0),
            .log_ratio = log(d->r[i].latency_s / q->s[j])};
        CD_TRY(put(k, &one, err));
    }
    return CDMPP_OK;
}

static cdmpp_status ask_all(calibrating *k, const cd_library_op_model *m, cd_library_op_held held,
                            uint32_t part, cdmpp_err *err) {
    const size_t n = k->a->d->n + 1;
    asked q = {cd_mem_zalloc(n, sizeof *q.row), cd_mem_zalloc(n, sizeof *q.r),
               cd_mem_zalloc(n, sizeof *q.device), cd_mem_zalloc(n, sizeof *q.s)};
    cdmpp_status st = CDMPP_OK;
    if (!q.row || !q.r || !q.device || !q.s) st = CD_FAIL(err, ENOMEM, "%zu rows", n);
    if (!st) st = residuals(k, m, held, part, &q, err);
    cd_mem_free(q.row);
    cd_mem_free(q.r);
    cd_mem_free(q.device);
    cd_mem_free(q.s);
    return st;
}

/* Rows and sizes held out ask the trees that see devices, devices held out the others: only those
 * are trained. */
static cdmpp_status once(calibrating *k, cd_library_op_held held, uint32_t part, cdmpp_err *err) {
    const size_t n = k->a->d->n;
    cd_library_op_model *m = NULL;
    size_t train = 0, ask = 0;
    for (size_t i = 0; i < n; i++) {
        train += k->train[i];
        ask += k->ask[i];
    }
    if (!train || !ask) return CDMPP_OK;
    const unsigned sets = is_new(held) ? CD_LIBRARY_OP_SET_UNSEEN : CD_LIBRARY_OP_SET_SEEN;
    cdmpp_status st = cd_library_op_fit(k->a, k->train, sets, &m, err);
    if (!st) st = ask_all(k, m, held, part, err);
    cd_library_op_model_free(m);
    return st;
}

static cdmpp_status without_rows(calibrating *k, cdmpp_err *err) {
    const cd_library_op_data *d = k->a->d;
    for (uint8_t f = 0; f < FOLDS; f++) {
        for (size_t i = 0; i < d->n; i++) {
            k->train[i] = k->use[i] && k->fold[i] != f;
            k->ask[i] = k->use[i] && k->fold[i] == f;
        }
        CD_TRY(once(k, CD_LIBRARY_OP_HELD_ROW, f, err));
    }
    return CDMPP_OK;
}

/* Once the tenth with the most work, as what is a little beyond; once all that is beyond a part of
 * the sizes, as what is far beyond. */
static cdmpp_status without_large(calibrating *k, cdmpp_err *err) {
    const uint8_t *const held[] = {k->large, k->wide};
    for (size_t h = 0; h < 2; h++) {
        for (size_t i = 0; i < k->a->d->n; i++) {
            k->train[i] = k->use[i] && !held[h][i];
            k->ask[i] = k->use[i] && held[h][i];
        }
        CD_TRY(once(k, CD_LIBRARY_OP_HELD_LARGE, 0, err));
    }
    return CDMPP_OK;
}

/* Rows beyond an eighth of the most work of their class, or beyond half of its range of another
 * size. */
static void find_wide(const cd_library_op_data *d, const uint8_t *use, uint8_t *wide) {
    double size[CD_LIBRARY_OP_N_SIZE], low[CD_N_LIBRARY_OP_CLASS][CD_LIBRARY_OP_N_SIZE],
        high[CD_N_LIBRARY_OP_CLASS][CD_LIBRARY_OP_N_SIZE] = {{0}};
    for (size_t i = 0; i < d->n; i++) {
        const cd_library_op_class c = cd_library_op_kind_class(d->r[i].kind);
        cd_library_op_record_sizes(&d->r[i], size);
        for (size_t k = 0; use[i] && k < CD_LIBRARY_OP_N_SIZE; k++) {
            low[c][k] = high[c][k] > 0 ? fmin(low[c][k], size[k]) : size[k];
            high[c][k] = fmax(high[c][k], size[k]);
        }
    }
    for (size_t i = 0; i < d->n; i++) {
        const cd_library_op_class c = cd_library_op_kind_class(d->r[i].kind);
        cd_library_op_record_sizes(&d->r[i], size);
        for (size_t k = 0; k < CD_LIBRARY_OP_N_SIZE; k++) {
            const double cut = high[c][k] / (k ? 2 : 8);
            /* a size that hardly varies divides nothing */
            wide[i] |= use[i] && size[k] > cut && low[c][k] <= cut;
        }
    }
}

/* The largest rows of the other devices are left out, too: a new device is asked for sizes that
 * nobody measured. */
static cdmpp_status without_devices(calibrating *k, const uint8_t *some, cdmpp_err *err) {
    const cd_library_op_data *d = k->a->d;
    for (size_t v = 0; v < d->n_known && d->n_known > 2; v++) {
        for (size_t i = 0; i < d->n; i++) {
            k->train[i] = some[i] && d->device[i] != v && !k->large[i];
            k->ask[i] = some[i] && d->device[i] == v;
        }
        CD_TRY(once(k, CD_LIBRARY_OP_HELD_DEVICE, (uint32_t)v, err));
    }
    return CDMPP_OK;
}

/* What another maker's devices are off by, as far as two makers tell. */
static cdmpp_status without_stacks(calibrating *k, const uint8_t *some, cdmpp_err *err) {
    const cd_library_op_data *d = k->a->d;
    uint32_t n = 0;
    for (size_t v = 0; v < d->n_known; v++) {
        size_t u = 0;
        while (u < v && !cd_library_op_same_stack(d->known[u], d->known[v])) u++;
        k->stack[v] = u < v ? k->stack[u] : n++;
    }
    for (uint32_t s = 0; s < n && n > 1; s++) {
        for (size_t i = 0; i < d->n; i++) {
            const bool of = k->stack[d->device[i]] == s;
            k->train[i] = some[i] && !of && !k->large[i];
            k->ask[i] = some[i] && of;
        }
        CD_TRY(once(k, CD_LIBRARY_OP_HELD_STACK, s, err));
    }
    return CDMPP_OK;
}

/* ---- all ---- */
static cdmpp_status run(calibrating *k, uint8_t *some, cdmpp_err *err) {
    const cd_library_op_data *d = k->a->d;
    cd_op_place *p = NULL;
    cdmpp_status st = cd_library_op_places(k->a->c, d, true, &p, err);
    if (!st) cd_library_op_first_tenth(p, d->n, k->large);
    cd_mem_free(p);
    if (!st) st = cd_library_op_places(k->a->c, d, false, &p, err);
    if (st) return st;
    cd_op_draw(p, d->n, (size_t)k->a->c->operators_calibration_rows, some);
    cd_mem_free(p);
    for (size_t i = 0; i < d->n; i++) some[i] = some[i] && k->use[i];
    fill_folds(k->a, k->use, k->fold);
    find_wide(d, k->use, k->wide);
    CD_TRY(without_rows(k, err));
    CD_TRY(without_large(k, err));
    CD_TRY(without_stacks(k, some, err)); /* numbers the stacks */
    return without_devices(k, some, err);
}

/* The model numbers devices that it was trained on, the residuals those of the data. */
static void name_devices(const cd_library_op_data *d, cd_library_op_model *m) {
    for (size_t i = 0; i < m->n_spread; i++)
        for (uint32_t k = 0; m->spread[i].device != CD_LIBRARY_OP_ANY_DEVICE && k < m->n_device;
             k++)
            if (!strcmp(m->device[k].is.name, d->known[m->spread[i].device]->name)) {
                m->spread[i].device = k;
                break;
            }
}

cdmpp_status
cd_library_op_calibrate(const cd_library_op_fitting *a, const uint8_t *use, cd_library_op_model *m,
                        cd_library_op_coverage out[CD_LIBRARY_OP_N_HELD][CD_N_LIBRARY_OP_CLASS + 1],
                        cdmpp_err *err) {
    const size_t n = a->d->n;
    if (!a->c->operators_calibration_rows) return CDMPP_OK;
    uint8_t *flags = cd_mem_zalloc(6 * n + 1, 1);
    uint32_t *stack = cd_mem_zalloc(a->d->n_known + 1, sizeof *stack);
    calibrating k = {.a = a, .use = use, .stack = stack};
    cdmpp_status st = flags && stack ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu rows", n);
    if (!st) {
        uint8_t **const part[] = {&k.train, &k.ask, &k.fold, &k.large, &k.wide};
        for (size_t i = 0; i < 5; i++) *part[i] = flags + i * n;
        st = run(&k, flags + 5 * n, err);
    }
    if (!st) st = cd_library_op_spread_fit(k.r, k.n, &m->arena, &m->spread, &m->n_spread, err);
    if (!st) name_devices(a->d, m);
    for (int h = 0; !st && h < CD_LIBRARY_OP_N_HELD; h++)
        st = cd_library_op_spread_check(k.r, k.n, (cd_library_op_held)h, LEVEL, out[h], err);
    cd_mem_free(k.r);
    cd_mem_free(flags);
    cd_mem_free(stack);
    return st;
}
