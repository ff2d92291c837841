/* Finds the records of one program among all inputs: sorts their identities, leaves out runs that are slow as a whole, and makes one label of
 * the copies that are left. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/extract/copies_internal.h"

enum { BLOCK = 65536 };

typedef struct {
    uint64_t id[2], program; /* counted over all inputs */
    double s;                /* NaN: not measured */
    uint32_t run;
} entry;

typedef struct {
    cd_copies *c;
    entry *e;             /* (c->n) */
    cd_dict run;          /* folders */
    uint64_t *run_n;      /* (run.n) records */
    cd_run_scale *scale;  /* (run.n) */
    cd_run_point *point;  /* (n_point) */
    size_t n_point, cap_point, cap_label;
    double slow;
    double *time;         /* (c->n) scratch */
} finder;

/* ---- reading ---- */

static cdmpp_status check_input(const cd_h5 *h, cdmpp_err *err) {
    char digest[65];
    CD_TRY(cd_layout_check(h, digest, err));
    const char *path = cd_layout[CD_LAYOUT_ARRAY_ID].path, *what = "the file has no identities of programs: extract the logs again, with cdmpp-extract --ids";
    if (cd_h5_has(h, path) && !cd_h5_has(h, cd_layout[CD_LAYOUT_ARRAY_COPIES].path)) return CDMPP_OK;
    if (cd_h5_has(h, path)) what = "copies are merged already: give the files of before";
    return cd_err_at(err, cd_err_key(err, CD_FAIL(err, ENODATA, "%s", what), path), h->path, 0);
}

/* The run of each source file: its folder. */
static cdmpp_status read_runs(finder *f, const cd_h5 *h, uint32_t **run, size_t *n, cdmpp_err *err) {
    char **text = NULL;
    CD_TRY(cd_h5_read_text(h, cd_layout_dict_path[CD_LAYOUT_DICT_SOURCE], n, &text, err));
    *run = cd_mem_zalloc(*n + 1, sizeof **run);
    cdmpp_status st = *run ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu names", *n);
    for (size_t i = 0; i < *n && !st; i++) {
        const char *end = strrchr(text[i], '/');
        st = cd_dict_add(&f->run, (cd_str){text[i], end ? (size_t)(end - text[i]) : 0}, &(*run)[i], err);
    }
    cd_mem_free(text);
    return st;
}

static cdmpp_status read_array(const cd_h5 *h, cd_layout_array a, uint64_t at, size_t n, void *out, cdmpp_err *err) {
    return cd_h5_read(h, cd_layout[a].path, (cd_h5_shape){cd_layout[a].type, n, cd_layout[a].n_col}, at, out, err);
}

typedef struct {
    uint64_t id[BLOCK][2];
    double v[3][BLOCK];
    uint32_t u[BLOCK];
} block;

static cdmpp_status read_entries(finder *f, const cd_h5 *h, uint64_t n, const uint32_t *run, size_t n_source, block *b, cdmpp_err *err) {
    for (uint64_t at = 0, m; at < n; at += m) {
        m = n - at < BLOCK ? n - at : BLOCK;
        CD_TRY(read_array(h, CD_LAYOUT_ARRAY_ID, at, m, b->id, err));
        CD_TRY(read_array(h, CD_LAYOUT_ARRAY_LATENCY, at, m, b->v[0], err));
        CD_TRY(read_array(h, CD_LAYOUT_ARRAY_SOURCE_FILE, at, m, b->u, err));
        for (size_t i = 0; i < m; i++) {
            if (b->u[i] >= n_source) return CD_FAIL(err, ESCHEMA, "an index beyond its dictionary");
            const double s = b->v[0][i] > 0 ? b->v[0][i] : (double)NAN;
            f->e[f->c->n] = (entry){{b->id[i][0], b->id[i][1]}, f->c->n, s, run[b->u[i]]};
            f->c->n++;
        }
    }
    return CDMPP_OK;
}

static cdmpp_status read_file(finder *f, const cd_h5 *h, block *b, cdmpp_err *err) {
    uint64_t n;
    uint32_t *run = NULL;
    size_t n_source = 0;
    CD_TRY(check_input(h, err));
    CD_TRY(cd_h5_size(h, cd_layout[CD_LAYOUT_ARRAY_ID].path, CD_H5_U64, 2, &n, err));
    entry *e = cd_mem_realloc(f->e, f->c->n * sizeof *e, (f->c->n + n + 1) * sizeof *e);
    if (!e) return CD_FAIL(err, ENOMEM, "identities of %llu programs", (unsigned long long)(f->c->n + n));
    f->e = e;
    cdmpp_status st = read_runs(f, h, &run, &n_source, err);
    if (!st) st = read_entries(f, h, n, run, n_source, b, err);
    cd_mem_free(run);
    return st;
}

/* Times and squares of the repeats of all copies, from the mean and the deviation of each. */
static cdmpp_status read_details(cd_copies *c, const cd_h5 *h, uint64_t *first, block *b, cdmpp_err *err) {
    uint64_t n;
    CD_TRY(cd_h5_size(h, cd_layout[CD_LAYOUT_ARRAY_ID].path, CD_H5_U64, 2, &n, err));
    for (uint64_t at = 0, m; at < n; at += m) {
        m = n - at < BLOCK ? n - at : BLOCK;
        CD_TRY(read_array(h, CD_LAYOUT_ARRAY_LATENCY_MEAN, at, m, b->v[0], err));
        CD_TRY(read_array(h, CD_LAYOUT_ARRAY_LATENCY_STD, at, m, b->v[1], err));
        CD_TRY(read_array(h, CD_LAYOUT_ARRAY_LATENCY_MIN, at, m, b->v[2], err));
        CD_TRY(read_array(h, CD_LAYOUT_ARRAY_REPEATS, at, m, b->u, err));
        for (size_t i = 0; i < m; i++) {
            if (!c->label_of[*first + at + i]) continue;
            cd_copy_label *l = &c->label[c->label_of[*first + at + i] - 1];
            l->sum += b->u[i] * b->v[0][i];
            l->sum_sq += b->u[i] * (b->v[1][i] * b->v[1][i] + b->v[0][i] * b->v[0][i]);
            l->min = l->repeats && l->min < b->v[2][i] ? l->min : b->v[2][i];
            l->repeats += b->u[i];
        }
    }
    *first += n;
    return CDMPP_OK;
}

/* Calls one of both for each input: `f` reads entries, NULL details. */
static cdmpp_status each_input(finder *f, cd_copies *c, const char *const *in, size_t n, cdmpp_err *err) {
    uint64_t first = 0;
    block *b = cd_mem_alloc(sizeof *b);
    cdmpp_status st = b ? CDMPP_OK : CD_FAIL(err, ENOMEM, "block of labels");
    for (size_t i = 0; i < n && !st; i++) {
        cd_h5 h = {.file = -1};
        st = cd_h5_open(&h, in[i], err);
        if (!st) st = cd_err_at(err, f ? read_file(f, &h, b, err) : read_details(c, &h, &first, b, err), in[i], 0);
        (void)cd_h5_close(&h, NULL);
    }
    cd_mem_free(b);
    return st;
}

/* ---- groups ---- */

/* By identity, then run, then time; what was not measured last in its run. */
static int by_program(const void *a, const void *b) {
    const entry *x = a, *y = b;
    for (int k = 0; k < 2; k++)
        if (x->id[k] != y->id[k]) return x->id[k] < y->id[k] ? -1 : 1;
    if (x->run != y->run) return x->run < y->run ? -1 : 1;
    if (isnan(x->s) != isnan(y->s)) return isnan(x->s) ? 1 : -1;
    if (x->s < y->s || x->s > y->s) return x->s < y->s ? -1 : 1;
    return (x->program > y->program) - (x->program < y->program);
}

static size_t group_end(const finder *f, size_t i) {
    size_t j = i + 1;
    while (j < f->c->n && !memcmp(f->e[j].id, f->e[i].id, sizeof f->e[i].id)) j++;
    return j;
}

/* A point for each run that measured the program, where two or more did. */
static cdmpp_status add_points(finder *f, size_t i, size_t end, uint32_t program, cdmpp_err *err) {
    const size_t before = f->n_point;
    for (size_t j; i < end; i = j) {
        size_t n = 0;
        for (j = i; j < end && f->e[j].run == f->e[i].run; j++)
            if (!isnan(f->e[j].s)) f->time[n++] = f->e[j].s;
        if (!n) continue;
        if (CD_GROW(f->point, f->n_point, f->cap_point)) return CD_FAIL(err, ENOMEM, "%zu measurements of shared programs", f->n_point);
        f->point[f->n_point++] = (cd_run_point){program, f->e[i].run, log(cd_sort_median(f->time, n))};
    }
    if (f->n_point == before + 1) f->n_point = before;
    return CDMPP_OK;
}

static bool is_slow(const finder *f, uint32_t run) { return f->slow > 0 && f->scale[run].factor > f->slow; }

static cdmpp_status find_slow_runs(finder *f, cd_log *log, cdmpp_err *err) {
    uint32_t program = 0;
    f->scale = cd_mem_zalloc(f->run.n + 1, sizeof *f->scale);
    f->run_n = cd_mem_zalloc(f->run.n + 1, sizeof *f->run_n);
    if (!f->scale || !f->run_n) return CD_FAIL(err, ENOMEM, "%zu runs", f->run.n);
    for (size_t i = 0, j; i < f->c->n; i = j) {
        j = group_end(f, i);
        if (j > i + 1) CD_TRY(add_points(f, i, j, program++, err));
    }
    CD_TRY(cd_copies_scale(f->point, f->n_point, f->run.n, f->scale, err));
    for (uint64_t i = 0; i < f->c->n; i++) f->run_n[f->e[i].run]++;
    for (uint32_t r = 0; r < f->run.n; r++) {
        if (!is_slow(f, r)) continue;
        f->c->stats.slow_runs++;
        f->c->stats.left_out += f->run_n[r];
        cd_log_put(log, CD_LOG_WARNING, "left out: the run %s/ with its %llu records; it took %.2f times as long as other runs took for the same programs (median of %llu)",
                   f->run.text[r], (unsigned long long)f->run_n[r], f->scale[r].factor, (unsigned long long)f->scale[r].n_shared);
    }
    return CDMPP_OK;
}

/* The copy that stays is the first that was measured, or the first if none was. */
static cdmpp_status settle_group(finder *f, size_t i, size_t end, cdmpp_err *err) {
    cd_copies *c = f->c;
    uint64_t first = UINT64_MAX, measured = UINT64_MAX;
    size_t n = 0;
    for (size_t j = i; j < end; j++) {
        const entry *e = &f->e[j];
        if (is_slow(f, e->run)) continue;
        if (e->program < first) first = e->program;
        if (isnan(e->s)) continue;
        if (e->program < measured) measured = e->program;
        f->time[n++] = e->s;
    }
    if (first == UINT64_MAX) return CDMPP_OK; /* slow runs alone had it */
    c->keep[n ? measured : first] = 1;
    c->stats.programs++;
    if (n < 2) return CDMPP_OK;
    if (c->n_label == UINT32_MAX - 1 || CD_GROW(c->label, c->n_label, f->cap_label)) return CD_FAIL(err, ENOMEM, "%zu programs of several records", c->n_label);
    for (size_t j = i; j < end; j++)
        if (!is_slow(f, f->e[j].run) && !isnan(f->e[j].s)) c->label_of[f->e[j].program] = (uint32_t)c->n_label + 1;
    cd_sort_doubles(f->time, n);
    c->label[c->n_label++] = (cd_copy_label){.program = measured, .median = cd_sort_median(f->time, n), .low = f->time[0], .high = f->time[n - 1], .copies = (uint32_t)n};
    c->stats.several++;
    c->stats.records_of_several += n;
    return CDMPP_OK;
}

static int by_place(const void *a, const void *b) {
    const cd_copy_label *x = a, *y = b;
    return (x->program > y->program) - (x->program < y->program);
}

/* After the labels were sorted; label_of of the copy that stays said where each was. */
static cdmpp_status renumber(cd_copies *c, cdmpp_err *err) {
    uint32_t *now = cd_mem_zalloc(c->n_label + 1, sizeof *now);
    if (!now) return CD_FAIL(err, ENOMEM, "%zu programs of several records", c->n_label);
    for (size_t k = 0; k < c->n_label; k++) now[c->label_of[c->label[k].program]] = (uint32_t)k + 1;
    for (uint64_t i = 0; i < c->n; i++) c->label_of[i] = now[c->label_of[i]];
    cd_mem_free(now);
    return CDMPP_OK;
}

static void measure_spread(finder *f) {
    cd_copies *c = f->c;
    const size_t n = c->n_label;
    for (size_t k = 0; k < n; k++) f->time[k] = c->label[k].high / c->label[k].low;
    cd_sort_doubles(f->time, n);
    c->stats.spread_median = n ? cd_sort_median(f->time, n) : 1;
    c->stats.spread_p90 = n ? f->time[(n - 1) * 9 / 10] : 1;
}

static cdmpp_status find(finder *f, const char *const *in, size_t n, cd_log *log, cdmpp_err *err) {
    cd_copies *c = f->c;
    CD_TRY(each_input(f, c, in, n, err));
    c->keep = cd_mem_zalloc(c->n + 1, sizeof *c->keep);
    c->label_of = cd_mem_zalloc(c->n + 1, sizeof *c->label_of);
    f->time = cd_mem_zalloc(c->n + 1, sizeof *f->time);
    if (!c->keep || !c->label_of || !f->time) return CD_FAIL(err, ENOMEM, "%llu programs", (unsigned long long)c->n);
    if (c->n) qsort(f->e, (size_t)c->n, sizeof *f->e, by_program);
    CD_TRY(find_slow_runs(f, log, err));
    for (size_t i = 0, j; i < c->n; i = j) {
        j = group_end(f, i);
        CD_TRY(settle_group(f, i, j, err));
    }
    if (c->n_label) qsort(c->label, c->n_label, sizeof *c->label, by_place);
    measure_spread(f);
    CD_TRY(renumber(c, err));
    return each_input(NULL, c, in, n, err);
}

cdmpp_status cd_copies_find(const char *const *in, size_t n, double slow, cd_log *log, cd_copies *out, cdmpp_err *err) {
    finder f = {.c = out, .slow = slow};
    *out = (cd_copies){0};
    const cdmpp_status st = find(&f, in, n, log, err);
    cd_mem_free(f.e);
    cd_mem_free(f.run_n);
    cd_mem_free(f.scale);
    cd_mem_free(f.point);
    cd_mem_free(f.time);
    cd_dict_free(&f.run);
    if (st) cd_copies_free(out);
    return st;
}

void cd_copies_free(cd_copies *c) {
    cd_mem_free(c->keep);
    cd_mem_free(c->label_of);
    cd_mem_free(c->label);
    *c = (cd_copies){0};
}

/* ---- labels ---- */

static double value_of(const cd_copy_label *l, cd_layout_array a) {
    const double n = (double)l->repeats, mean = l->sum / n;
    switch (a) {
    case CD_LAYOUT_ARRAY_LATENCY: return l->median;
    case CD_LAYOUT_ARRAY_LATENCY_MEAN: return mean;
    case CD_LAYOUT_ARRAY_LATENCY_STD: return sqrt(fmax(0, l->sum_sq / n - mean * mean));
    case CD_LAYOUT_ARRAY_LATENCY_MIN: return l->min;
    case CD_LAYOUT_ARRAY_COPY_MIN: return l->low;
    case CD_LAYOUT_ARRAY_COPY_MAX: return l->high;
    case CD_LAYOUT_ARRAY_REPEATS: return n;
    default: return l->copies;
    }
}

void cd_copies_patch(const cd_copies *c, cd_layout_array a, uint64_t first, void *out, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t k = c->label_of[first + i];
        if (!k || c->label[k - 1].program != first + i) continue;
        const double v = value_of(&c->label[k - 1], a);
        if (cd_layout[a].type == CD_H5_U32) ((uint32_t *)out)[i] = v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
        else ((double *)out)[i] = v;
    }
}
