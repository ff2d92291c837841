/* Tables of measured library operators (cuBLAS, cuDNN and the like) in memory: filtered, joined with the devices, without
 * repetitions. */
#include "learner/operators/operators.h"

#include <string.h>
#include <strings.h>

#include "base/io/io.h"

typedef struct {
    cd_library_op_data *d;
    const cd_device_table *devices;
    const cd_library_op_filter *f;
    cd_library_op_data_bad *bad;
    void *ctx;
} loading;

const char *cd_library_op_drop_text(cd_library_op_drop d) {
    static const char *const text[CD_LIBRARY_OP_N_DROP] = {"no record, or of an unknown device", "without a latency",
                                                  "of devices that data.devices does not name", "by operators.exclude", "repeated"};
    return text[d];
}

void cd_library_op_data_free(cd_library_op_data *d) {
    cd_mem_free(d->r);
    cd_mem_free(d->device);
    cd_mem_free(d->known);
    cd_mem_free(d->slot);
    cd_mem_free(d->excluded);
    memset(d, 0, sizeof *d);
}

/* ---- growing ---- */
/* Slot of the row, or the free one where it would be. */
static uint32_t *find(const cd_library_op_data *d, const cd_library_op_record *r, uint32_t device) {
    size_t i = (size_t)cd_library_op_record_key(r, device) & (d->n_slot - 1);
    while (d->slot[i]) {
        const size_t k = d->slot[i] - 1;
        if (d->device[k] == device && cd_library_op_record_same(&d->r[k], r)) break;
        i = (i + 1) & (d->n_slot - 1);
    }
    return &d->slot[i];
}

const cd_library_op_record *cd_library_op_data_find(const cd_library_op_data *d, const cd_library_op_record *r, const cd_device *device) {
    for (size_t i = 0; i < d->n_known; i++) {
        const uint32_t k = d->known[i] == device ? *find(d, r, (uint32_t)i) : 0;
        if (k) return &d->r[k - 1];
    }
    return NULL;
}

static cdmpp_status grow_slots(cd_library_op_data *d, cdmpp_err *err) {
    if (2 * (d->n + 1) <= d->n_slot) return CDMPP_OK;
    cd_mem_free(d->slot);
    d->n_slot = d->n_slot ? 2 * d->n_slot : 4096;
    d->slot = cd_mem_zalloc(d->n_slot, sizeof *d->slot);
    if (!d->slot) {
        const size_t want = d->n_slot;
        d->n_slot = 0;
        return CD_FAIL(err, ENOMEM, "table of %zu rows", want);
    }
    for (size_t k = 0; k < d->n; k++) *find(d, &d->r[k], d->device[k]) = (uint32_t)k + 1;
    return CDMPP_OK;
}

static cdmpp_status number_of(cd_library_op_data *d, const cd_device *v, uint32_t *out, cdmpp_err *err) {
    for (size_t i = 0; i < d->n_known; i++)
        if (d->known[i] == v) return *out = (uint32_t)i, CDMPP_OK;
    if (CD_GROW(d->known, d->n_known, d->cap_known)) return CD_FAIL(err, ENOMEM, "%zu devices", d->n_known);
    *out = (uint32_t)d->n_known;
    d->known[d->n_known++] = v;
    return CDMPP_OK;
}

/* ---- what is wanted ---- */
static cdmpp_status wanted_device(const loading *l, const cd_device *v, bool *out, cdmpp_err *err) {
    const cd_device *named;
    *out = l->f->devices.n == 0;
    for (size_t i = 0; i < l->f->devices.n; i++) {
        CD_TRY(cd_err_key(err, cd_device_table_find(l->devices, l->f->devices.v[i], &named, err), "data.devices"));
        *out |= named == v;
    }
    return CDMPP_OK;
}

/* The operators that the word of an entry means: kinds by their bits. A word that means none would leave out nothing, without a word. */
static cdmpp_status kinds_of(const char *word, unsigned *out, cdmpp_err *err) {
    const char *name[CD_N_LIBRARY_OP_KIND + CD_N_LIBRARY_OP_CLASS], *near = NULL;
    size_t n = 0;
    *out = 0;
    for (int k = 0; k < CD_N_LIBRARY_OP_KIND; k++) {
        const cd_library_op_kind kind = (cd_library_op_kind)k;
        name[n++] = cd_library_op_kind_name(kind);
        if (!strcasecmp(word, name[n - 1]) || !strcasecmp(word, cd_library_op_class_name(cd_library_op_kind_class(kind)))) *out |= 1u << k;
    }
    for (int c = 0; c < CD_N_LIBRARY_OP_CLASS; c++) name[n++] = cd_library_op_class_name((cd_library_op_class)c);
    if (*out) return CDMPP_OK;
    (void)cd_did_you_mean_several(word, name, n, &near, 1);
    return CD_FAIL(err, ESCHEMA, "no operator or class '%.40s'%s%s%s", word, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static cdmpp_status entry(const loading *l, const char *text, const cd_library_op_record *r, const cd_device *v, bool *out, cdmpp_err *err) {
    const cd_device *named;
    const char *slash = strrchr(text, '/');
    unsigned kinds;
    char name[64];
    if (!slash || (size_t)(slash - text) >= sizeof name) return CD_FAIL(err, ESCHEMA, "expected device/operator, found '%.60s'", text);
    memcpy(name, text, (size_t)(slash - text));
    name[slash - text] = 0;
    CD_TRY(cd_device_table_find(l->devices, name, &named, err));
    CD_TRY(kinds_of(slash + 1, &kinds, err));
    *out = named == v && kinds >> r->kind & 1;
    return CDMPP_OK;
}

/* *at: the first entry that names the row; exclude.n: none does. */
static cdmpp_status excluded(loading *l, const cd_library_op_record *r, const cd_device *v, size_t *at, cdmpp_err *err) {
    const cd_texts *x = &l->f->exclude;
    *at = x->n;
    if (!l->d->excluded && !(l->d->excluded = cd_mem_zalloc(x->n + 1, sizeof *l->d->excluded))) return CD_FAIL(err, ENOMEM, "%zu entries", x->n);
    for (size_t i = x->n; i-- > 0;) {
        bool hit = false;
        CD_TRY(cd_err_key(err, entry(l, x->v[i], r, v, &hit, err), "operators.exclude"));
        if (hit) *at = i;
    }
    return CDMPP_OK;
}

/* Every row is counted exactly once: used, or dropped for one reason. */
static cdmpp_status keep(loading *l, const cd_library_op_record *r, const cd_device *v, cdmpp_err *err) {
    cd_library_op_data *d = l->d;
    uint32_t device;
    bool want;
    size_t at;
    CD_TRY(wanted_device(l, v, &want, err));
    CD_TRY(excluded(l, r, v, &at, err));
    if (!want || at < l->f->exclude.n || !(r->latency_s > 0)) {
        d->drop[!want ? CD_LIBRARY_OP_DROP_DEVICE : at < l->f->exclude.n ? CD_LIBRARY_OP_DROP_EXCLUDED : CD_LIBRARY_OP_DROP_QUESTION]++;
        if (want && at < l->f->exclude.n) d->excluded[at]++;
        return CDMPP_OK;
    }
    CD_TRY(number_of(d, v, &device, err));
    if (CD_GROW(d->r, d->n, d->cap) || CD_GROW(d->device, d->n, d->cap_device)) return CD_FAIL(err, ENOMEM, "%zu rows", d->n);
    CD_TRY(grow_slots(d, err));
    uint32_t *slot = find(d, r, device);
    if (*slot) {
        d->drop[CD_LIBRARY_OP_DROP_REPEATED]++;
        return CDMPP_OK;
    }
    d->r[d->n] = *r;
    d->device[d->n] = device;
    *slot = (uint32_t)++d->n;
    return CDMPP_OK;
}

/* ---- files ---- */
static bool line_is_bad(cdmpp_status st) {
    return st == CDMPP_EPARSE || st == CDMPP_ESCHEMA || st == CDMPP_ERANGE || st == CDMPP_EUNSUPPORTED;
}

/* A bad line is reported and left out; an error of reading ends the file. */
static cdmpp_status table(loading *l, const char *path, cdmpp_err *err) {
    cd_library_op_reader *in;
    bool more = true;
    CD_TRY(cd_library_op_reader_open(path, &in, err));
    cdmpp_status st = CDMPP_OK;
    while (!st && more) {
        cd_library_op_record r;
        cdmpp_err why = {0};
        const char *name;
        const cd_device *v;
        st = cd_library_op_reader_next(in, &r, &name, &more, &why);
        if (!st && more) st = cd_err_at(&why, cd_err_key(&why, cd_device_table_find(l->devices, name, &v, &why), "Device"), path, cd_library_op_reader_line(in));
        l->d->n_line += more;
        if (line_is_bad(st) && more) {
            l->d->drop[CD_LIBRARY_OP_DROP_BAD]++;
            if (l->bad) l->bad(l->ctx, &why);
            st = CDMPP_OK;
        } else if (st) {
            if (err) *err = why;
        } else if (more) {
            st = keep(l, &r, v, err);
        }
    }
    cd_library_op_reader_close(in);
    return st;
}

static bool is_table(const char *path, void *ctx) {
    const size_t n = strlen(path);
    (void)ctx;
    return n > 4 && !strcasecmp(path + n - 4, ".csv");
}

cdmpp_status cd_library_op_data_add(cd_library_op_data *d, const char *path, const cd_device_table *devices, const cd_library_op_filter *f, cd_library_op_data_bad *bad,
                           void *ctx, cdmpp_err *err) {
    loading l = {d, devices, f, bad, ctx};
    const char *const *file;
    size_t n;
    cd_arena a = {0};
    cdmpp_status st = cd_file_list(&a, path, is_table, NULL, &file, &n, err);
    if (!st && !n) { /* one file of another name */
        st = cd_file_list(&a, path, NULL, NULL, &file, &n, err);
        if (!st && (n != 1 || strcmp(file[0], path) != 0)) st = cd_err_at(err, CD_FAIL(err, ESCHEMA, "expected tables (*.csv) in this folder"), path, 0);
    }
    for (size_t i = 0; !st && i < n; i++) st = table(&l, file[i], err);
    cd_arena_free(&a);
    return st;
}
