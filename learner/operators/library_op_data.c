/* Tables of measured operators in memory: files and folders read, joined with the devices, rows
 * found by hash. */
#include "learner/operators/op_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/io/io.h"
#include "learner/operators/operators.h"

void cd_op_rows_free(cd_op_rows *t) {
    cd_mem_free(t->r);
    cd_mem_free(t->device);
    cd_mem_free(t->known);
    cd_mem_free(t->slot);
    cd_mem_free(t->read);
    *t = (cd_op_rows){0};
}

/* ---- growing ---- */
static const void *record(const cd_op_rows *t, const cd_op_kind_of_table *k, size_t i) {
    return (const char *)t->r + i * k->bytes;
}

/* Slot of the row, or the free one where it would be. */
static cd_op_slot *find(const cd_op_rows *t, const cd_op_kind_of_table *k, const void *r,
                        uint32_t device, uint64_t hash) {
    const uint32_t tag = (uint32_t)(hash >> 32);
    size_t i = (size_t)hash & (t->n_slot - 1);
    for (; t->slot[i].row; i = (i + 1) & (t->n_slot - 1))
        if (t->slot[i].tag == tag && t->device[t->slot[i].row - 1] == device &&
            k->same(record(t, k, t->slot[i].row - 1), r))
            break;
    return &t->slot[i];
}

long cd_op_rows_at(const cd_op_rows *t, const cd_op_kind_of_table *k, const void *r,
                   uint32_t device, uint64_t hash) {
    const uint32_t at = t->n_slot ? find(t, k, r, device, hash)->row : 0;
    return at ? (long)at - 1 : CD_OP_ROWS_NONE;
}

long cd_op_rows_find(const cd_op_rows *t, const cd_op_kind_of_table *k, const void *r,
                     uint32_t device) {
    return cd_op_rows_at(t, k, r, device, k->key(r, device));
}

uint64_t cd_op_rows_hash(const cd_op_rows *t, const cd_op_kind_of_table *k, const void *r,
                         uint32_t device) {
    const uint64_t hash = k->key(r, device);
    if (t->n_slot) __builtin_prefetch(&t->slot[(size_t)hash & (t->n_slot - 1)]);
    return hash;
}

void cd_op_rows_fetch(const cd_op_rows *t, const cd_op_kind_of_table *k, uint64_t hash) {
    if (!t->n_slot) return;
    const cd_op_slot *s = &t->slot[(size_t)hash & (t->n_slot - 1)];
    /* another row: what is asked for is behind it, or nowhere */
    if (!s->row || s->tag != (uint32_t)(hash >> 32)) return;
    const char *r = record(t, k, s->row - 1);
    __builtin_prefetch(&t->device[s->row - 1]);
    for (size_t i = 0; i < k->bytes; i += 64) __builtin_prefetch(r + i);
}

long cd_op_rows_device(const cd_op_rows *t, const cd_device *d) {
    for (size_t i = 0; i < t->n_known; i++)
        if (t->known[i] == d || !strcmp(t->known[i]->name, d->name)) return (long)i;
    return CD_OP_ROWS_NONE;
}

static cdmpp_status grow_slots(cd_op_rows *t, const cd_op_kind_of_table *k, cdmpp_err *err) {
    if (2 * (t->n + 1) <= t->n_slot) return CDMPP_OK;
    const size_t want = t->n_slot ? 2 * t->n_slot : 4096;
    cd_mem_free(t->slot);
    t->slot = cd_mem_zalloc(want, sizeof *t->slot);
    t->n_slot = t->slot ? want : 0;
    if (!t->slot) return CD_FAIL(err, ENOMEM, "table of %zu rows", want);
    for (size_t i = 0; i < t->n; i++) {
        const uint64_t hash = k->key(record(t, k, i), t->device[i]);
        *find(t, k, record(t, k, i), t->device[i], hash) =
            (cd_op_slot){(uint32_t)i + 1, (uint32_t)(hash >> 32)};
    }
    return CDMPP_OK;
}

static cdmpp_status number_of(cd_op_rows *t, const cd_device *v, uint32_t *out, cdmpp_err *err) {
    const long at = cd_op_rows_device(t, v);
    *out = at < 0 ? (uint32_t)t->n_known : (uint32_t)at;
    if (at >= 0) return CDMPP_OK;
    if (CD_GROW(t->known, t->n_known, t->cap_known))
        return CD_FAIL(err, ENOMEM, "%zu devices", t->n_known);
    t->known[t->n_known++] = v;
    return CDMPP_OK;
}

static cdmpp_status room(cd_op_rows *t, const cd_op_kind_of_table *k, cdmpp_err *err) {
    if (CD_GROW(t->device, t->n, t->cap_device)) return CD_FAIL(err, ENOMEM, "%zu rows", t->n);
    if (t->n >= t->cap) {
        void *p = cd_grow_heap(t->r, t->n, &t->cap, k->bytes, SIZE_MAX / 2);
        if (!p) return CD_FAIL(err, ENOMEM, "%zu rows", t->n);
        t->r = p;
    }
    return grow_slots(t, k, err);
}

cdmpp_status cd_op_rows_put(cd_op_rows *t, const cd_op_kind_of_table *k, const void *r,
                            const cd_device *device, size_t *at, bool *is_new, cdmpp_err *err) {
    uint32_t d;
    CD_TRY(number_of(t, device, &d, err));
    CD_TRY(room(t, k, err));
    const uint64_t hash = k->key(r, d);
    cd_op_slot *slot = find(t, k, r, d, hash);
    *is_new = !slot->row;
    if (*is_new) {
        memcpy((char *)t->r + t->n * k->bytes, r, k->bytes);
        t->device[t->n] = d;
        *slot = (cd_op_slot){(uint32_t)++t->n, (uint32_t)(hash >> 32)};
    }
    *at = slot->row - 1;
    return CDMPP_OK;
}

/* ---- files ---- */
bool cd_op_line_is_bad(cdmpp_status st) {
    return st == CDMPP_EPARSE || st == CDMPP_ESCHEMA || st == CDMPP_ERANGE ||
           st == CDMPP_EUNSUPPORTED;
}

cdmpp_status cd_op_rows_wanted(const cd_device_table *devices, const cd_texts *only,
                               const cd_device *d, bool *out, cdmpp_err *err) {
    const cd_device *named;
    *out = !only || !only->n;
    for (size_t i = 0; only && i < only->n; i++) {
        CD_TRY(cd_err_key(err, cd_device_table_find(devices, only->v[i], &named, err),
                          "data.devices"));
        *out |= named == d;
    }
    return CDMPP_OK;
}

static void tell(const cd_op_loading *l, const cdmpp_err *why) {
    if (l->bad) l->bad(l->ctx, why);
}

enum { SHOWN = 8 };

/* The bad lines of a file: SHOWN are told one by one. Where a device or an operator is not known
 * the next lines mostly have the same: they are counted at the first of them. */
typedef struct {
    cdmpp_err first;
    size_t alike;      /* lines like the first one, which is not told yet; 0: it is */
    size_t told, more; /* more: further lines, not told */
} bad_lines;

static void tell_first(const cd_op_loading *l, bad_lines *b) {
    const size_t n = strlen(b->first.msg);
    if (!b->alike) return;
    if (b->alike > 1)
        snprintf(b->first.msg + n, sizeof b->first.msg - n, "; %zu further line%s alike",
                 b->alike - 1, b->alike > 2 ? "s are" : " is");
    tell(l, &b->first);
    b->alike = 0;
}

static void tell_line(const cd_op_loading *l, bad_lines *b, const cdmpp_err *why) {
    const bool shared = !strcmp(why->key, l->kind->device_column) || !strcmp(why->key, "op");
    if (b->alike && !strcmp(why->key, b->first.key) && !strcmp(why->msg, b->first.msg)) {
        b->alike++;
        return;
    }
    tell_first(l, b);
    if (b->told == SHOWN) {
        b->more++;
        return;
    }
    b->told++;
    if (shared) b->first = *why, b->alike = 1;
    else tell(l, why);
}

static void tell_rest(const cd_op_loading *l, bad_lines *b, const char *path) {
    cdmpp_err why = {0};
    tell_first(l, b);
    if (!b->more) return;
    (void)cd_err_at(&why, CD_FAIL(&why, ESCHEMA, "%zu further lines are left out", b->more), path,
                    0);
    tell(l, &why);
}

static cdmpp_status device_of(const cd_op_loading *l, const char *name, const cd_device **out,
                              cdmpp_err *err) {
    if (!name[0])
        return CD_FAIL(err, ESCHEMA,
                       "expected a device: in a column, or as the name of the folder");
    return cd_device_table_find(l->devices, name, out, err);
}

/* *ours: the error is not of the file. */
static cdmpp_status rows(const cd_op_loading *l, cd_op_reader *in, const char *path, bool *ours,
                         bad_lines *bad, cdmpp_err *err) {
    const cd_op_kind_of_table *k = l->kind;
    bool more = true;
    cdmpp_status st = CDMPP_OK;
    while (!st && more) {
        cd_op_any r;
        cdmpp_err why = {0};
        const char *name;
        const cd_device *v;
        bool no_time = false;
        st = k->next(in, &r, &name, &more, &no_time, &why);
        if (!st && more)
            st = cd_err_at(&why, cd_err_key(&why, device_of(l, name, &v, &why), k->device_column),
                           path, cd_op_reader_line(in));
        l->rows->n_line += more;
        if (cd_op_line_is_bad(st) && more) {
            k->put_bad(l->to, no_time);
            if (!no_time) tell_line(l, bad, &why);
            st = CDMPP_OK;
        } else if (st) {
            if (err) *err = why;
        } else if (more) {
            *ours = (st = k->put_row(l->to, &r, v, err)) != CDMPP_OK;
        }
    }
    return st;
}

/* *was: the file was read before. A pipe is not known again. */
static cdmpp_status read_before(const cd_op_loading *l, const char *path, bool *was,
                                cdmpp_err *err) {
    cd_op_rows *t = l->rows;
    cdmpp_err why = {0};
    struct stat s;
    *was = false;
    if (stat(path, &s) || !S_ISREG(s.st_mode)) return CDMPP_OK;
    for (size_t i = 0; i < t->n_read; i++)
        *was |= t->read[i].device == (uint64_t)s.st_dev && t->read[i].inode == (uint64_t)s.st_ino;
    if (*was) {
        (void)cd_err_at(&why, CD_FAIL(&why, ESCHEMA, "this file is given twice: it is read once"),
                        path, 0);
        tell(l, &why);
        return CDMPP_OK;
    }
    if (CD_GROW(t->read, t->n_read, t->cap_read))
        return CD_FAIL(err, ENOMEM, "%zu files", t->n_read);
    t->read[t->n_read++] = (cd_op_file){(uint64_t)s.st_dev, (uint64_t)s.st_ino};
    return CDMPP_OK;
}

/* Other files, tables of other operators and damaged ones stand in the same folder: none of them
 * ends the others. */
static cdmpp_status file(const cd_op_loading *l, const char *path, bool alone, cdmpp_err *err) {
    cd_op_reader *in = NULL;
    cdmpp_err why = {0}, odd;
    bool ours = false;
    bad_lines bad = {.told = 0};
    bool was;
    CD_TRY(read_before(l, path, &was, err));
    if (was) return CDMPP_OK;
    cdmpp_status st = l->kind->open(path, l->to, &in, &why);
    if (!st) {
        for (size_t i = 0; cd_op_reader_odd(in, i, &odd); i++) tell(l, &odd);
        st = rows(l, in, path, &ours, &bad, &why);
        tell_rest(l, &bad, path);
        cd_op_reader_close(in);
    }
    if (!alone && !ours && (cd_op_line_is_bad(st) || st == CDMPP_EIO)) {
        (void)cd_err_at(&why, st, path, 0);
        l->rows->n_line++;
        l->kind->put_bad(l->to, false);
        tell(l, &why);
        return CDMPP_OK;
    }
    if (st && err) *err = why;
    return st;
}

bool cd_op_rows_is_table(const char *path, void *ctx) {
    static const char *const end[] = {".tsv",    ".csv",     ".tsv.xz",  ".csv.xz", ".tsv.gz",
                                      ".csv.gz", ".tsv.zst", ".csv.zst", ".h5",     ".hdf5"};
    const size_t n = strlen(path);
    (void)ctx;
    for (size_t i = 0; i < sizeof end / sizeof *end; i++)
        if (n > strlen(end[i]) && !strcasecmp(path + n - strlen(end[i]), end[i])) return true;
    return false;
}

cdmpp_status cd_op_rows_load(const cd_op_loading *l, const char *path, cdmpp_err *err) {
    const char *const *v;
    size_t n;
    cd_arena a = {0};
    cdmpp_status st = cd_file_list(&a, path, cd_op_rows_is_table, NULL, &v, &n, err);
    if (!st && !n) { /* one file of another name */
        st = cd_file_list(&a, path, NULL, NULL, &v, &n, err);
        if (!st && (n != 1 || strcmp(v[0], path) != 0))
            st = cd_err_at(
                err, CD_FAIL(err, ESCHEMA, "expected tables (*.tsv, *.csv, *.h5) in this folder"),
                path, 0);
    }
    const bool alone = n == 1 && !st && !strcmp(v[0], path);
    for (size_t i = 0; !st && i < n; i++) st = file(l, v[i], alone, err);
    cd_arena_free(&a);
    return st;
}

/* Tables of measured library operators (cuBLAS, cuDNN and the like) in memory: filtered, joined
 * with the devices, without repetitions. */

typedef struct {
    cd_library_op_data *d;
    const cd_device_table *devices;
    const cd_library_op_filter *f;
} loading;

const char *cd_library_op_drop_text(cd_library_op_drop d) {
    static const char *const text[CD_LIBRARY_OP_N_DROP] = {
        "no record, or of an unknown device", "without a latency",
        "of devices that data.devices does not name", "by operators.exclude", "repeated"};
    return text[d];
}

void cd_library_op_data_free(cd_library_op_data *d) {
    cd_op_rows_free(&d->rows);
    cd_mem_free(d->excluded);
    memset(d, 0, sizeof *d);
}

/* ---- what is wanted ---- */
/* The operators that the word of an entry means: kinds by their bits. A word that means none would
 * leave out nothing, without a word. */
static cdmpp_status kinds_of(const char *word, unsigned *out, cdmpp_err *err) {
    const char *name[CD_N_LIBRARY_OP_KIND + CD_N_LIBRARY_OP_CLASS], *near = NULL;
    size_t n = 0;
    *out = 0;
    for (int k = 0; k < CD_N_LIBRARY_OP_KIND; k++) {
        const cd_library_op_kind kind = (cd_library_op_kind)k;
        name[n++] = cd_library_op_kind_name(kind);
        if (!strcasecmp(word, name[n - 1]) ||
            !strcasecmp(word, cd_library_op_class_name(cd_library_op_kind_class(kind))))
            *out |= 1u << k;
    }
    for (int c = 0; c < CD_N_LIBRARY_OP_CLASS; c++)
        name[n++] = cd_library_op_class_name((cd_library_op_class)c);
    if (*out) return CDMPP_OK;
    (void)cd_did_you_mean_several(word, name, n, &near, 1);
    return CD_FAIL(err, ESCHEMA, "no operator or class '%.40s'%s%s%s", word,
                   near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static cdmpp_status entry(const loading *l, const char *text, const cd_library_op_record *r,
                          const cd_device *v, bool *out, cdmpp_err *err) {
    const cd_device *named;
    const char *slash = strrchr(text, '/');
    unsigned kinds;
    char name[64];
    if (!slash || (size_t)(slash - text) >= sizeof name)
        return CD_FAIL(err, ESCHEMA, "expected device/operator, found '%.60s'", text);
    memcpy(name, text, (size_t)(slash - text));
    name[slash - text] = 0;
    CD_TRY(cd_device_table_find(l->devices, name, &named, err));
    CD_TRY(kinds_of(slash + 1, &kinds, err));
    *out = named == v && kinds >> r->kind & 1;
    return CDMPP_OK;
}

/* *at: the first entry that names the row; exclude.n: none does. */
static cdmpp_status excluded(loading *l, const cd_library_op_record *r, const cd_device *v,
                             size_t *at, cdmpp_err *err) {
    const cd_texts *x = &l->f->exclude;
    *at = x->n;
    if (!l->d->excluded && !(l->d->excluded = cd_mem_zalloc(x->n + 1, sizeof *l->d->excluded)))
        return CD_FAIL(err, ENOMEM, "%zu entries", x->n);
    for (size_t i = x->n; i-- > 0;) {
        bool hit = false;
        CD_TRY(cd_err_key(err, entry(l, x->v[i], r, v, &hit, err), "operators.exclude"));
        if (hit) *at = i;
    }
    return CDMPP_OK;
}

/* ---- rows ---- */
static uint64_t key(const void *r, uint32_t device) { return cd_library_op_record_key(r, device); }
static bool same(const void *a, const void *b) { return cd_library_op_record_same(a, b); }

static cdmpp_status open_table(const char *path, void *to, cd_op_reader **in, cdmpp_err *err) {
    (void)to;
    return cd_library_op_reader_open(path, in, err);
}

static cdmpp_status next(cd_op_reader *in, cd_op_any *r, const char **device, bool *more,
                         bool *no_time, cdmpp_err *err) {
    *no_time = false;
    return cd_library_op_reader_next(in, &r->library, device, more, err);
}

static void put_bad(void *to, bool no_time) {
    (void)no_time;
    ((loading *)to)->d->drop[CD_LIBRARY_OP_DROP_BAD]++;
}

static cdmpp_status put_row(void *to, const cd_op_any *r, const cd_device *v, cdmpp_err *err);
static const cd_op_kind_of_table kind = {
    sizeof(cd_library_op_record), "Device", key, same, open_table, next, put_row, put_bad};

/* Every row is counted exactly once: used, or dropped for one reason. */
static cdmpp_status put_row(void *to, const cd_op_any *any, const cd_device *v, cdmpp_err *err) {
    loading *l = to;
    cd_library_op_data *d = l->d;
    const cd_library_op_record *r = &any->library;
    bool want, is_new;
    size_t at;
    CD_TRY(cd_op_rows_wanted(l->devices, &l->f->devices, v, &want, err));
    CD_TRY(excluded(l, r, v, &at, err));
    if (!want || at < l->f->exclude.n || !(r->latency_s > 0)) {
        d->drop[!want                  ? CD_LIBRARY_OP_DROP_DEVICE
                : at < l->f->exclude.n ? CD_LIBRARY_OP_DROP_EXCLUDED
                                       : CD_LIBRARY_OP_DROP_QUESTION]++;
        if (want && at < l->f->exclude.n) d->excluded[at]++;
        return CDMPP_OK;
    }
    CD_TRY(cd_op_rows_put(&d->rows, &kind, r, v, &at, &is_new, err));
    d->drop[CD_LIBRARY_OP_DROP_REPEATED] += !is_new;
    return CDMPP_OK;
}

const cd_library_op_record *cd_library_op_data_find(const cd_library_op_data *d,
                                                    const cd_library_op_record *r,
                                                    const cd_device *device) {
    const long v = cd_op_rows_device(&d->rows, device),
               at = v < 0 ? v : cd_op_rows_find(&d->rows, &kind, r, (uint32_t)v);
    return at < 0 ? NULL : &d->r[at];
}

cdmpp_status cd_library_op_data_add(cd_library_op_data *d, const char *path,
                                    const cd_device_table *devices, const cd_library_op_filter *f,
                                    cd_op_bad_line *bad, void *ctx, cdmpp_err *err) {
    loading to = {d, devices, f};
    return cd_op_rows_load(&(cd_op_loading){&kind, &d->rows, &to, devices, bad, ctx}, path, err);
}

/* Figures of a check: errors of each class and device, as a table and as JSON. */

void cd_library_op_score_free(cd_library_op_score *s) {
    cd_mem_free(s->row);
    *s = (cd_library_op_score){0};
}

cdmpp_status cd_library_op_score_add(cd_library_op_score *s, const cd_library_op_score_row *row,
                                     cdmpp_err *err) {
    if (CD_GROW(s->row, s->n, s->cap)) return CD_FAIL(err, ENOMEM, "%zu predictions", s->n);
    s->row[s->n++] = *row;
    return CDMPP_OK;
}

static double middle(const double *sorted, size_t n) {
    return n ? cd_sort_median(sorted, n) : (double)NAN;
}

void cd_library_op_score_errors(double *e, size_t n, cd_library_op_score_sum *out) {
    double sum = 0, log_sum = 0, close = 0;
    cd_sort_doubles(e, n); /* before adding: the sum then depends on no order */
    out->n = n;
    out->bias = middle(e, n);
    for (size_t i = 0; i < n; i++) {
        log_sum += fabs(log1p(e[i]));
        e[i] = fabs(e[i]);
        sum += e[i];
        close += e[i] <= 0.2;
    }
    cd_sort_doubles(e, n);
    out->mape = sum / (double)n;
    out->mae_log = log_sum / (double)n;
    out->median = middle(e, n);
    out->p90 = n ? e[n * 9 / 10] : (double)NAN;
    out->within20 = close / (double)n;
}

cdmpp_status cd_library_op_score_sum_of(const cd_library_op_score *s,
                                        cd_library_op_score_want *want, const void *ctx,
                                        cd_library_op_score_sum *out, cdmpp_err *err) {
    double *e = cd_mem_zalloc(s->n + 1, sizeof *e);
    double inside = 0, told = 0;
    size_t n = 0;
    if (!e) return CD_FAIL(err, ENOMEM, "%zu errors", s->n);
    for (size_t i = 0; i < s->n; i++) {
        if (want && !want(&s->row[i], ctx)) continue;
        e[n++] = s->row[i].error;
        if (isnan(s->row[i].inside)) continue;
        inside += s->row[i].inside;
        told++;
    }
    cd_library_op_score_errors(e, n, out);
    out->inside = inside / told; /* 0 / 0: no row has an interval */
    cd_mem_free(e);
    return CDMPP_OK;
}

/* ---- the table ---- */
typedef struct {
    cd_library_op_class class; /* CD_N_LIBRARY_OP_CLASS: any */
    const char *device;        /* NULL: any */
    int seen, beyond;          /* -1: either */
} group;

static bool belongs(const cd_library_op_score_row *r, const void *ctx) {
    const group *g = ctx;
    return (g->class == CD_N_LIBRARY_OP_CLASS || r->class == g->class) &&
           (!g->device || !strcmp(r->device, g->device)) && (g->seen < 0 || g->seen == r->seen) &&
           (g->beyond < 0 || g->beyond == r->beyond);
}

static cdmpp_status line(const cd_library_op_score *s, const group *g, const char *device,
                         const char *sizes, cd_buf *out, cdmpp_err *err) {
    cd_library_op_score_sum v;
    CD_TRY(cd_library_op_score_sum_of(s, belongs, g, &v, err));
    if (!v.n) return CDMPP_OK;
    const char *class =
        g->class == CD_N_LIBRARY_OP_CLASS ? "**all**" : cd_library_op_class_name(g->class);
    cd_buf_putf(out, "| %s | %s | %s | %zu | %.1f | %.3f | %.1f | %+.1f | %.1f | ", class, device,
                sizes, v.n, 100 * v.mape, v.mae_log, 100 * v.median, 100 * v.bias,
                100 * v.within20);
    if (isnan(v.inside)) cd_buf_puts(out, "- |\n");
    else cd_buf_putf(out, "%.1f |\n", 100 * v.inside);
    return CDMPP_OK;
}

static int by_group(const void *a, const void *b) {
    const cd_library_op_score_row *x = a, *y = b;
    if (x->class != y->class) return (int)x->class - (int)y->class;
    if (x->seen != y->seen) return (int)y->seen - (int)x->seen;
    return strcmp(x->device, y->device);
}

static cdmpp_status totals(const cd_library_op_score *s, cd_library_op_class c, cd_buf *out,
                           cdmpp_err *err) {
    for (int seen = 1; seen >= 0; seen--) {
        const char *name = seen ? "**trained on**" : "**unseen**";
        CD_TRY(line(s, &(group){c, NULL, seen, 0}, name, "not larger", out, err));
        CD_TRY(line(s, &(group){c, NULL, seen, 1}, name, "larger", out, err));
        CD_TRY(line(s, &(group){c, NULL, seen, -1}, name, "all", out, err));
    }
    return CDMPP_OK;
}

/* One line a device, then the totals of the class; at the end those of all classes. */
cdmpp_status cd_library_op_score_text(cd_library_op_score *s, cd_buf *out, cdmpp_err *err) {
    if (s->n) qsort(s->row, s->n, sizeof *s->row, by_group);
    cd_buf_puts(out, "| class | device | sizes | n | MAPE % | MAE(log) | median % | bias % | "
                     "within 20 % | in interval % |\n"
                     "| --- | --- | --- | --: | --: | --: | --: | --: | --: | --: |\n");
    for (size_t i = 0; i < s->n; i++) {
        const cd_library_op_score_row *r = &s->row[i];
        const bool first = !i || by_group(r, r - 1), last = i + 1 == s->n || r[1].class != r->class;
        cd_buf name = {0};
        cd_buf_putf(&name, "%s%s", r->device, r->seen ? "" : " (unseen)");
        if (name.oom) return CD_FAIL(err, ENOMEM, "table");
        cdmpp_status st =
            first ? line(s, &(group){r->class, r->device, r->seen, -1}, name.p, "all", out, err)
                  : CDMPP_OK;
        if (!st && last) st = totals(s, r->class, out, err);
        cd_buf_free(&name);
        if (st) return st;
    }
    for (int seen = 1; seen >= 0; seen--)
        CD_TRY(line(s, &(group){CD_N_LIBRARY_OP_CLASS, NULL, seen, -1},
                    seen ? "**trained on**" : "**unseen**", "all", out, err));
    return out->oom ? CD_FAIL(err, ENOMEM, "table") : CDMPP_OK;
}

/* As the table, without the totals. */
cdmpp_status cd_library_op_score_json(cd_library_op_score *s, cd_buf *out, cdmpp_err *err) {
    if (s->n) qsort(s->row, s->n, sizeof *s->row, by_group);
    cd_buf_puts(out, "[");
    for (size_t i = 0; i < s->n; i++) {
        const cd_library_op_score_row *r = &s->row[i];
        cd_library_op_score_sum v;
        if (i && !by_group(r, r - 1)) continue;
        CD_TRY(cd_library_op_score_sum_of(s, belongs, &(group){r->class, r->device, r->seen, -1},
                                          &v, err));
        cd_buf_putf(out, "%s{\"class\":\"%s\",\"device\":", i ? "," : "",
                    cd_library_op_class_name(r->class));
        cd_buf_put_json_str(out, r->device, strlen(r->device));
        cd_buf_putf(out,
                    ",\"seen\":%s,\"n\":%zu,\"mape\":%.6g,\"mae_log\":%.6g,\"median\":%.6g,"
                    "\"bias\":%.6g,\"within20\":%.6g,\"inside\":",
                    r->seen ? "true" : "false", v.n, v.mape, v.mae_log, v.median, v.bias,
                    v.within20);
        if (isnan(v.inside)) cd_buf_puts(out, "null}");
        else cd_buf_putf(out, "%.6g}", v.inside);
    }
    cd_buf_puts(out, "]");
    return out->oom ? CD_FAIL(err, ENOMEM, "figures") : CDMPP_OK;
}
