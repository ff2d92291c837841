/* Finds the records of one program among all inputs: groups those of one identity, leaves out runs
 * that are slow as a whole, and makes one label of the copies that are left. Groups come a part at
 * a time (copies.c), twice: what runs share, then what stays. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/extract/copies_internal.h"
#include "dataset/extract/extract.h"

/* How slow a run was as a whole: its programs against the same programs in other runs. log time =
 * program + run + noise; the runs' parts are found one after another by medians, so a second mode
 * that hits some programs, or a slow run beside many others, moves nothing else. */

enum { MAX_SWEEP = 50 };
#define SETTLED 1e-4 /* of a log ratio: far below what repeats differ by */

typedef struct {
    const cd_run_point *p;
    size_t n, n_run;
    uint32_t *first, *end; /* (n) of the points of the same program */
    uint32_t *by_run;      /* (n) points, run by run */
    uint32_t *at;          /* (n_run + 1) into by_run */
    double *part;          /* (n_run) log factor so far */
    double *diff, *other;  /* (n) scratch */
    uint32_t *root;        /* (n_run) runs that shared programs join */
} scale;

static uint32_t root_of(uint32_t *root, uint32_t r) {
    while (root[r] != r) r = root[r] = root[root[r]];
    return r;
}

static cdmpp_status allocate(scale *s, cd_arena *a, cdmpp_err *err) {
    s->first = CD_NEWN(a, uint32_t, s->n + 1);
    s->end = CD_NEWN(a, uint32_t, s->n + 1);
    s->by_run = CD_NEWN(a, uint32_t, s->n + 1);
    s->at = CD_NEWN(a, uint32_t, s->n_run + 1);
    s->root = CD_NEWN(a, uint32_t, s->n_run + 1);
    s->part = CD_NEWN(a, double, s->n_run + 1);
    s->diff = CD_NEWN(a, double, s->n + 1);
    s->other = CD_NEWN(a, double, s->n + 1);
    return a->oom ? CD_FAIL(err, ENOMEM, "%zu measurements of shared programs", s->n) : CDMPP_OK;
}

/* Points of a program stand together; of a run they are listed. */
static void index_points(scale *s) {
    for (size_t i = 0, j; i < s->n; i = j) {
        for (j = i; j < s->n && s->p[j].program == s->p[i].program; j++) {
            s->first[j] = (uint32_t)i;
            const uint32_t x = root_of(s->root, s->p[i].run), y = root_of(s->root, s->p[j].run);
            s->root[x > y ? x : y] = x < y ? x : y;
        }
        for (size_t k = i; k < j; k++) s->end[k] = (uint32_t)j;
    }
    for (size_t i = 0; i < s->n; i++) s->at[s->p[i].run + 1]++;
    for (size_t r = 0; r < s->n_run; r++) s->at[r + 1] += s->at[r];
    for (size_t i = 0; i < s->n; i++) s->by_run[s->at[s->p[i].run]++] = (uint32_t)i;
    /* each stands at its end: the beginning of the next */
    memmove(s->at + 1, s->at, s->n_run * sizeof *s->at);
    s->at[0] = 0;
}

/* What the other runs say of the program of point i. */
static double elsewhere(const scale *s, uint32_t i) {
    size_t n = 0;
    for (uint32_t k = s->first[i]; k < s->end[i]; k++)
        if (s->p[k].run != s->p[i].run) s->other[n++] = s->p[k].log_s - s->part[s->p[k].run];
    cd_sort_doubles(s->other, n);
    return cd_sort_median(s->other, n);
}

/* How much the part of a run changes; the runs before it have changed already. */
static double settle_runs(scale *s, size_t r) {
    const size_t n = s->at[r + 1] - s->at[r];
    if (!n) return 0;
    for (size_t k = 0; k < n; k++) {
        const uint32_t i = s->by_run[s->at[r] + k];
        s->diff[k] = s->p[i].log_s - elsewhere(s, i);
    }
    cd_sort_doubles(s->diff, n);
    const double old = s->part[r];
    s->part[r] = cd_sort_median(s->diff, n);
    return fabs(s->part[r] - old);
}

static bool judged(const scale *s, size_t r) {
    return s->at[r + 1] - s->at[r] >= CD_RUN_LEAST_SHARED;
}

/* The middle part of the judged runs that are joined with run r; the smaller middle of an even
 * number. */
static double middle(scale *s, size_t r) {
    size_t n = 0;
    for (size_t k = 0; k < s->n_run; k++)
        if (judged(s, k) && root_of(s->root, (uint32_t)k) == root_of(s->root, (uint32_t)r))
            s->other[n++] = s->part[k];
    cd_sort_doubles(s->other, n);
    return s->other[(n - 1) / 2];
}

cdmpp_status cd_copies_scale(const cd_run_point *p, size_t n, size_t n_run, cd_run_scale *out,
                             cdmpp_err *err) {
    cd_arena a = {0};
    scale s = {.p = p, .n = n, .n_run = n_run};
    const cdmpp_status st = allocate(&s, &a, err);
    if (!st) {
        for (size_t r = 0; r < n_run; r++) s.root[r] = (uint32_t)r, s.part[r] = 0;
        memset(s.at, 0, (n_run + 1) * sizeof *s.at);
        index_points(&s);
        double moved = 1;
        for (int k = 0; k < MAX_SWEEP && moved > SETTLED; k++) {
            moved = 0;
            for (size_t r = 0; r < n_run; r++) moved = fmax(moved, settle_runs(&s, r));
        }
        for (size_t r = 0; r < n_run; r++)
            out[r] = (cd_run_scale){judged(&s, r) ? exp(s.part[r] - middle(&s, r)) : 1,
                                    s.at[r + 1] - s.at[r]};
    }
    cd_arena_free(&a);
    return st;
}

/* The identities of all inputs, a part at a time. A part holds those whose first bits lie in its
 * range, so all records of a program are in one part, and parts in order, each sorted, are the
 * order of all. The inputs are read once for each part; nothing is kept on disk. */

enum { MAX_PART = 16 }; /* reading takes time: beyond 16 parts they grow */

/* n elements from `at` on. Errors: those of reading. */
static cdmpp_status copies_read(const cd_h5 *h, cd_layout_array a, uint64_t at, size_t n, void *out,
                                cdmpp_err *err) {
    return cd_h5_read(h, cd_layout[a].path, (cd_h5_shape){cd_layout[a].type, n, cd_layout[a].n_col},
                      at, out, err);
}

static cdmpp_status check_input(const cd_h5 *h, cdmpp_err *err) {
    char digest[65];
    CD_TRY(cd_layout_check(h, digest, err));
    const char *path = cd_layout[CD_LAYOUT_ARRAY_ID].path,
               *what = "the file has no identities of programs: extract the logs again, with "
                       "cdmpp-extract --ids";
    if (cd_h5_has(h, path) && !cd_h5_has(h, cd_layout[CD_LAYOUT_ARRAY_COPIES].path))
        return CDMPP_OK;
    if (cd_h5_has(h, path)) what = "copies are merged already: give the files of before";
    return cd_err_at(err, cd_err_key(err, CD_FAIL(err, ENODATA, "%s", what), path), h->path, 0);
}

/* The run of each source file: its folder. */
static cdmpp_status read_runs(cd_copies_scan *s, const cd_h5 *h, uint32_t **run, size_t *n,
                              cdmpp_err *err) {
    char **text = NULL;
    CD_TRY(cd_h5_read_text(h, cd_layout_dict_path[CD_LAYOUT_DICT_SOURCE], n, &text, err));
    *run = cd_mem_zalloc(*n + 1, sizeof **run);
    cdmpp_status st = *run ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu names", *n);
    for (size_t i = 0; i < *n && !st; i++) {
        const char *end = strrchr(text[i], '/');
        st = cd_dict_add(&s->run, (cd_str){text[i], end ? (size_t)(end - text[i]) : 0}, &(*run)[i],
                         err);
    }
    cd_mem_free(text);
    return st;
}

static cdmpp_status size_of(const cd_h5 *h, uint64_t *n, cdmpp_err *err) {
    return cd_h5_size(h, cd_layout[CD_LAYOUT_ARRAY_ID].path, CD_H5_U64, 2, n, err);
}

/* Before the parts: may the file be merged, how many records, which runs? */
static cdmpp_status count_file(cd_copies_scan *s, const cd_h5 *h, cdmpp_err *err) {
    uint64_t n;
    size_t n_source;
    uint32_t *run = NULL;
    CD_TRY(check_input(h, err));
    CD_TRY(size_of(h, &n, err));
    s->n += n;
    const cdmpp_status st = read_runs(s, h, &run, &n_source, err);
    cd_mem_free(run);
    return st;
}

/* ---- one part ---- */

static uint32_t part_of(const cd_copies_scan *s, uint64_t id) {
    return (uint32_t)((id >> 32) * s->n_part >> 32);
}

static cdmpp_status add_entry(cd_copies_scan *s, cd_copies_entry e, cdmpp_err *err) {
    if (CD_GROW(s->e, s->n_e, s->cap_e))
        return CD_FAIL(err, ENOMEM, "identities of %zu programs", s->n_e);
    s->e[s->n_e++] = e;
    return CDMPP_OK;
}

static cdmpp_status read_entries(cd_copies_scan *s, const cd_h5 *h, uint64_t n, const uint32_t *run,
                                 size_t n_source, cdmpp_err *err) {
    cd_copies_block *b = s->block;
    for (uint64_t at = 0, m; at < n; at += m) {
        m = n - at < CD_COPIES_BLOCK ? n - at : CD_COPIES_BLOCK;
        CD_TRY(copies_read(h, CD_LAYOUT_ARRAY_ID, at, m, b->id, err));
        CD_TRY(copies_read(h, CD_LAYOUT_ARRAY_LATENCY, at, m, b->v[0], err));
        CD_TRY(copies_read(h, CD_LAYOUT_ARRAY_SOURCE_FILE, at, m, b->u, err));
        for (size_t i = 0; i < m; i++) {
            if (b->u[i] >= n_source) return CD_FAIL(err, ESCHEMA, "an index beyond its dictionary");
            if (part_of(s, b->id[i][0]) != s->part) continue;
            const double t = b->v[0][i] > 0 ? b->v[0][i] : (double)NAN;
            CD_TRY(add_entry(
                s,
                (cd_copies_entry){{b->id[i][0], b->id[i][1]}, s->first + at + i, t, run[b->u[i]]},
                err));
        }
    }
    return CDMPP_OK;
}

static cdmpp_status read_file(cd_copies_scan *s, const cd_h5 *h, cdmpp_err *err) {
    uint64_t n;
    size_t n_source = 0;
    uint32_t *run = NULL;
    const size_t n_run = s->run.n;
    CD_TRY(size_of(h, &n, err));
    cdmpp_status st = read_runs(s, h, &run, &n_source, err);
    if (!st && (n > s->n - s->first || s->run.n != n_run))
        st = CD_FAIL(err, ESCHEMA, "the file has changed since it was read first");
    if (!st) st = read_entries(s, h, n, run, n_source, err);
    s->first += n;
    cd_mem_free(run);
    return st;
}

typedef cdmpp_status reading(cd_copies_scan *s, const cd_h5 *h, cdmpp_err *err);
static cdmpp_status each_input(cd_copies_scan *s, reading *read, cdmpp_err *err) {
    for (size_t i = 0; i < s->n_in; i++) {
        cd_h5 h = {.file = -1};
        cdmpp_status st = cd_h5_open(&h, s->in[i], err);
        if (!st) st = cd_err_at(err, read(s, &h, err), s->in[i], 0);
        (void)cd_h5_close(&h, NULL);
        if (st) return st;
    }
    return CDMPP_OK;
}

/* By identity, then run, then time; what was not measured last in its run. */
static int by_program(const void *a, const void *b) {
    const cd_copies_entry *x = a, *y = b;
    for (int k = 0; k < 2; k++)
        if (x->id[k] != y->id[k]) return x->id[k] < y->id[k] ? -1 : 1;
    if (x->run != y->run) return x->run < y->run ? -1 : 1;
    if (isnan(x->s) != isnan(y->s)) return isnan(x->s) ? 1 : -1;
    if (x->s < y->s || x->s > y->s) return x->s < y->s ? -1 : 1;
    return (x->program > y->program) - (x->program < y->program);
}

/* Identities are hashes, so parts are about as large as each other; more only where a program has
 * very many records. */
static cdmpp_status make_room(cd_copies_scan *s, cdmpp_err *err) {
    const size_t mean = (size_t)(s->n / s->n_part), room = mean + mean / 64 + 64;
    if (room <= s->cap_e) return CDMPP_OK;
    cd_mem_free(s->e);
    s->cap_e = 0;
    s->e = cd_mem_alloc(room * sizeof *s->e);
    if (!s->e) return CD_FAIL(err, ENOMEM, "identities of %zu programs", room);
    s->cap_e = room;
    return CDMPP_OK;
}

cdmpp_status cd_copies_scan_part(cd_copies_scan *s, uint32_t part, cdmpp_err *err) {
    s->part = part;
    s->n_e = 0;
    s->first = 0;
    CD_TRY(make_room(s, err));
    CD_TRY(each_input(s, read_file, err));
    if (s->n_e) qsort(s->e, s->n_e, sizeof *s->e, by_program);
    return CDMPP_OK;
}

/* ---- life ---- */

cdmpp_status cd_copies_scan_open(cd_copies_scan *s, const char *const *in, size_t n,
                                 size_t part_records, cdmpp_err *err) {
    *s = (cd_copies_scan){.in = in, .n_in = n};
    s->block = cd_mem_alloc(sizeof *s->block);
    if (!s->block) return CD_FAIL(err, ENOMEM, "block of labels");
    CD_TRY(each_input(s, count_file, err));
    const uint64_t parts = s->n / part_records + 1;
    s->n_part = parts < MAX_PART ? (uint32_t)parts : MAX_PART;
    return CDMPP_OK;
}

/* Frees e: until the next part. */
static void copies_scan_rest(cd_copies_scan *s) {
    cd_mem_free(s->e);
    s->e = NULL;
    s->n_e = s->cap_e = 0;
}

void cd_copies_scan_close(cd_copies_scan *s) {
    copies_scan_rest(s);
    cd_mem_free(s->block);
    s->block = NULL;
    cd_dict_free(&s->run);
}

typedef struct {
    cd_copies *c;
    cd_copies_scan scan;
    uint64_t *run_n;     /* (run.n) records */
    cd_run_scale *scale; /* (run.n) */
    cd_run_point *point; /* (n_point) */
    size_t n_point, cap_point, cap_label;
    double slow;
    double *time; /* (n_time) scratch */
    size_t n_time;
} finder;

/* ---- details ---- */

/* Times and squares of the repeats of all copies, from the mean and the deviation of each. */
static cdmpp_status read_details(cd_copies *c, const cd_h5 *h, uint64_t *first, cd_copies_block *b,
                                 cdmpp_err *err) {
    uint64_t n;
    CD_TRY(cd_h5_size(h, cd_layout[CD_LAYOUT_ARRAY_ID].path, CD_H5_U64, 2, &n, err));
    for (uint64_t at = 0, m; at < n; at += m) {
        m = n - at < CD_COPIES_BLOCK ? n - at : CD_COPIES_BLOCK;
        CD_TRY(copies_read(h, CD_LAYOUT_ARRAY_LATENCY_MEAN, at, m, b->v[0], err));
        CD_TRY(copies_read(h, CD_LAYOUT_ARRAY_LATENCY_STD, at, m, b->v[1], err));
        CD_TRY(copies_read(h, CD_LAYOUT_ARRAY_LATENCY_MIN, at, m, b->v[2], err));
        CD_TRY(copies_read(h, CD_LAYOUT_ARRAY_REPEATS, at, m, b->u, err));
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

static cdmpp_status read_all_details(cd_copies *c, const char *const *in, size_t n,
                                     cdmpp_err *err) {
    uint64_t first = 0;
    cd_copies_block *b = cd_mem_alloc(sizeof *b);
    cdmpp_status st = b ? CDMPP_OK : CD_FAIL(err, ENOMEM, "block of labels");
    for (size_t i = 0; i < n && !st; i++) {
        cd_h5 h = {.file = -1};
        st = cd_h5_open(&h, in[i], err);
        if (!st) st = cd_err_at(err, read_details(c, &h, &first, b, err), in[i], 0);
        (void)cd_h5_close(&h, NULL);
    }
    cd_mem_free(b);
    return st;
}

/* ---- groups ---- */

/* Scratch for n times; what was in it is lost. */
static cdmpp_status need_times(finder *f, size_t n, cdmpp_err *err) {
    if (n <= f->n_time) return CDMPP_OK;
    cd_mem_free(f->time);
    f->n_time = 0;
    f->time = cd_mem_alloc(n * sizeof *f->time);
    if (!f->time) return CD_FAIL(err, ENOMEM, "%zu times", n);
    f->n_time = n;
    return CDMPP_OK;
}

static size_t group_end(const finder *f, size_t i) {
    size_t j = i + 1;
    while (j < f->scan.n_e && !memcmp(f->scan.e[j].id, f->scan.e[i].id, sizeof f->scan.e[i].id))
        j++;
    return j;
}

/* One part of the identities, and scratch for as many times. */
static cdmpp_status next_part(finder *f, uint32_t part, cdmpp_err *err) {
    CD_TRY(cd_copies_scan_part(&f->scan, part, err));
    return need_times(f, f->scan.n_e, err);
}

/* A point for each run that measured the program, where two or more did. */
static cdmpp_status add_points(finder *f, size_t i, size_t end, uint32_t program, cdmpp_err *err) {
    const size_t before = f->n_point;
    for (size_t j; i < end; i = j) {
        size_t n = 0;
        for (j = i; j < end && f->scan.e[j].run == f->scan.e[i].run; j++)
            if (!isnan(f->scan.e[j].s)) f->time[n++] = f->scan.e[j].s;
        if (!n) continue;
        if (CD_GROW(f->point, f->n_point, f->cap_point))
            return CD_FAIL(err, ENOMEM, "%zu measurements of shared programs", f->n_point);
        f->point[f->n_point++] =
            (cd_run_point){program, f->scan.e[i].run, log(cd_sort_median(f->time, n))};
    }
    if (f->n_point == before + 1) f->n_point = before;
    return CDMPP_OK;
}

static bool is_slow(const finder *f, uint32_t run) {
    return f->slow > 0 && f->scale[run].factor > f->slow;
}

static cdmpp_status compare_runs(finder *f, cdmpp_err *err) {
    uint32_t program = 0;
    for (uint32_t part = 0; part < f->scan.n_part; part++) {
        CD_TRY(next_part(f, part, err));
        for (size_t i = 0, j; i < f->scan.n_e; i = j) {
            j = group_end(f, i);
            if (j > i + 1) CD_TRY(add_points(f, i, j, program++, err));
        }
        for (size_t i = 0; i < f->scan.n_e; i++) f->run_n[f->scan.e[i].run]++;
    }
    copies_scan_rest(&f->scan);
    CD_TRY(cd_copies_scale(f->point, f->n_point, f->scan.run.n, f->scale, err));
    cd_mem_free(f->point);
    f->point = NULL;
    return CDMPP_OK;
}

static cdmpp_status find_slow_runs(finder *f, cd_log *log, cdmpp_err *err) {
    f->scale = cd_mem_zalloc(f->scan.run.n + 1, sizeof *f->scale);
    f->run_n = cd_mem_zalloc(f->scan.run.n + 1, sizeof *f->run_n);
    if (!f->scale || !f->run_n) return CD_FAIL(err, ENOMEM, "%zu runs", f->scan.run.n);
    CD_TRY(compare_runs(f, err));
    for (uint32_t r = 0; r < f->scan.run.n; r++) {
        if (!is_slow(f, r)) continue;
        f->c->stats.slow_runs++;
        f->c->stats.left_out += f->run_n[r];
        cd_log_put(log, CD_LOG_WARNING,
                   "left out: the run %s/ with its %llu records; it took %.2f times as long as "
                   "other runs took for the same programs (median of %llu)",
                   f->scan.run.text[r], (unsigned long long)f->run_n[r], f->scale[r].factor,
                   (unsigned long long)f->scale[r].n_shared);
    }
    return CDMPP_OK;
}

/* The copy that stays is the first that was measured, or the first if none was. */
static cdmpp_status settle_group(finder *f, size_t i, size_t end, cdmpp_err *err) {
    cd_copies *c = f->c;
    uint64_t first = UINT64_MAX, measured = UINT64_MAX;
    size_t n = 0;
    for (size_t j = i; j < end; j++) {
        const cd_copies_entry *e = &f->scan.e[j];
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
    if (c->n_label == UINT32_MAX - 1 || CD_GROW(c->label, c->n_label, f->cap_label))
        return CD_FAIL(err, ENOMEM, "%zu programs of several records", c->n_label);
    for (size_t j = i; j < end; j++)
        if (!is_slow(f, f->scan.e[j].run) && !isnan(f->scan.e[j].s))
            c->label_of[f->scan.e[j].program] = (uint32_t)c->n_label + 1;
    cd_sort_doubles(f->time, n);
    c->label[c->n_label++] = (cd_copy_label){.program = measured,
                                             .median = cd_sort_median(f->time, n),
                                             .low = f->time[0],
                                             .high = f->time[n - 1],
                                             .copies = (uint32_t)n};
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

static cdmpp_status measure_spread(finder *f, cdmpp_err *err) {
    cd_copies *c = f->c;
    const size_t n = c->n_label;
    CD_TRY(need_times(f, n, err));
    for (size_t k = 0; k < n; k++) f->time[k] = c->label[k].high / c->label[k].low;
    cd_sort_doubles(f->time, n);
    c->stats.spread_median = n ? cd_sort_median(f->time, n) : 1;
    c->stats.spread_p90 = n ? f->time[(n - 1) * 9 / 10] : 1;
    return CDMPP_OK;
}

static cdmpp_status settle(finder *f, cdmpp_err *err) {
    for (uint32_t part = 0; part < f->scan.n_part; part++) {
        CD_TRY(next_part(f, part, err));
        for (size_t i = 0, j; i < f->scan.n_e; i = j) {
            j = group_end(f, i);
            CD_TRY(settle_group(f, i, j, err));
        }
    }
    copies_scan_rest(&f->scan);
    return CDMPP_OK;
}

static cdmpp_status find(finder *f, cd_log *log, cdmpp_err *err) {
    cd_copies *c = f->c;
    CD_TRY(find_slow_runs(f, log, err));
    c->n = f->scan.n;
    c->keep = cd_mem_zalloc(c->n + 1, sizeof *c->keep);
    c->label_of = cd_mem_zalloc(c->n + 1, sizeof *c->label_of);
    if (!c->keep || !c->label_of)
        return CD_FAIL(err, ENOMEM, "%llu programs", (unsigned long long)c->n);
    CD_TRY(settle(f, err));
    if (c->n_label) qsort(c->label, c->n_label, sizeof *c->label, by_place);
    CD_TRY(measure_spread(f, err));
    CD_TRY(renumber(c, err));
    return read_all_details(c, f->scan.in, f->scan.n_in, err);
}

cdmpp_status cd_copies_find(const char *const *in, size_t n, double slow, size_t part_records,
                            cd_log *log, cd_copies *out, cdmpp_err *err) {
    finder f = {.c = out, .slow = slow};
    *out = (cd_copies){0};
    cdmpp_status st = cd_copies_scan_open(&f.scan, in, n, part_records, err);
    if (!st) st = find(&f, log, err);
    cd_copies_scan_close(&f.scan);
    cd_mem_free(f.run_n);
    cd_mem_free(f.scale);
    cd_mem_free(f.point);
    cd_mem_free(f.time);
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
        if (cd_layout[a].type == CD_H5_U32)
            ((uint32_t *)out)[i] = v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
        else ((double *)out)[i] = v;
    }
}
