/* Tables of measured operators in memory: files and folders read, joined with the devices, rows
 * found by hash. */
#include "learner/operators/op_rows.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/io/io.h"

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
