/* Tables of measured library operators (cuBLAS, cuDNN and the like) in memory: filtered, joined
 * with the devices, without repetitions. */
#include "learner/operators/operators.h"

#include <string.h>
#include <strings.h>

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
