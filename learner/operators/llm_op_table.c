/* Tables of measured operators of language models in memory: read, joined with the devices, repetitions averaged. */
#include "learner/operators/llm_op_table.h"

#include <string.h>
#include <strings.h>

#include "base/io/io.h"

typedef struct {
    cd_llm_op_table *t;
    const cd_device_table *devices;
    const cd_texts *only;
    cd_llm_op_table_bad *bad;
    void *ctx;
} loading;

const char *cd_llm_op_drop_text(cd_llm_op_drop d) {
    static const char *const text[CD_LLM_OP_N_DROP] = {"no record, or of an unknown device", "with a time that is not above 0", "without a time",
                                                       "of devices that data.devices does not name"};
    return text[d];
}

void cd_llm_op_table_free(cd_llm_op_table *t) {
    cd_mem_free(t->r);
    cd_mem_free(t->device);
    cd_mem_free(t->count);
    cd_mem_free(t->known);
    cd_mem_free(t->slot);
    cd_mem_free(t->alike);
    for (size_t i = 0; i < CD_LLM_OP_MAX_SIZE; i++) cd_mem_free(t->order[i]);
    cd_dict_free(&t->names);
    memset(t, 0, sizeof *t);
}

/* ---- growing ---- */
static uint64_t key(const cd_llm_op_record *r, uint32_t device) {
    uint64_t h = cd_rng_at((uint64_t)r->kind << 16 | (uint64_t)r->type << 8 | r->kv, (uint64_t)device << 32 | (uint64_t)r->stack << 16 | r->kernel);
    for (size_t i = 0; i < cd_llm_op_n_size((cd_llm_op_kind)r->kind); i++) h = cd_rng_mix(h ^ (uint64_t)r->size[i]);
    return cd_rng_mix(h ^ (uint64_t)(1e4 * r->skew));
}

/* Slot of the row, or the free one where it would be. */
static uint32_t *find(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device) {
    size_t i = (size_t)key(r, device) & (t->n_slot - 1);
    while (t->slot[i]) {
        const size_t k = t->slot[i] - 1;
        if (t->device[k] == device && cd_llm_op_same(&t->r[k], r)) break;
        i = (i + 1) & (t->n_slot - 1);
    }
    return &t->slot[i];
}

long cd_llm_op_table_find(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device) {
    const uint32_t k = t->n_slot ? *find(t, r, device) : 0;
    return k ? (long)k - 1 : CD_LLM_OP_NONE;
}

long cd_llm_op_table_device(const cd_llm_op_table *t, const cd_device *d) {
    for (size_t i = 0; i < t->n_known; i++)
        if (t->known[i] == d || !strcmp(t->known[i]->name, d->name)) return (long)i;
    return CD_LLM_OP_NONE;
}

static cdmpp_status grow_slots(cd_llm_op_table *t, cdmpp_err *err) {
    if (2 * (t->n + 1) <= t->n_slot) return CDMPP_OK;
    cd_mem_free(t->slot);
    t->n_slot = t->n_slot ? 2 * t->n_slot : 4096;
    t->slot = cd_mem_zalloc(t->n_slot, sizeof *t->slot);
    if (!t->slot) {
        const size_t want = t->n_slot;
        t->n_slot = 0;
        return CD_FAIL(err, ENOMEM, "table of %zu rows", want);
    }
    for (size_t k = 0; k < t->n; k++) *find(t, &t->r[k], t->device[k]) = (uint32_t)k + 1;
    return CDMPP_OK;
}

static cdmpp_status number_of(cd_llm_op_table *t, const cd_device *v, uint32_t *out, cdmpp_err *err) {
    const long at = cd_llm_op_table_device(t, v);
    *out = at < 0 ? (uint32_t)t->n_known : (uint32_t)at;
    if (at >= 0) return CDMPP_OK;
    if (CD_GROW(t->known, t->n_known, t->cap_known)) return CD_FAIL(err, ENOMEM, "%zu devices", t->n_known);
    t->known[t->n_known++] = v;
    return CDMPP_OK;
}

cdmpp_status cd_llm_op_table_put(cd_llm_op_table *t, const cd_llm_op_record *r, const cd_device *device, cdmpp_err *err) {
    uint32_t d;
    CD_TRY(number_of(t, device, &d, err));
    if (CD_GROW(t->r, t->n, t->cap) || CD_GROW(t->device, t->n, t->cap_device) || CD_GROW(t->count, t->n, t->cap_count))
        return CD_FAIL(err, ENOMEM, "%zu rows", t->n);
    CD_TRY(grow_slots(t, err));
    uint32_t *slot = find(t, r, d);
    if (*slot) {
        const size_t k = *slot - 1;
        t->count[k]++;
        t->r[k].latency_s += (r->latency_s - t->r[k].latency_s) / t->count[k];
        t->repeated++;
        return CDMPP_OK;
    }
    t->r[t->n] = *r;
    t->device[t->n] = d;
    t->count[t->n] = 1;
    *slot = (uint32_t)++t->n;
    return CDMPP_OK;
}

/* ---- files ---- */
static bool line_is_bad(cdmpp_status st) {
    return st == CDMPP_EPARSE || st == CDMPP_ESCHEMA || st == CDMPP_ERANGE || st == CDMPP_EUNSUPPORTED;
}

static cdmpp_status wanted(const loading *l, const cd_device *v, bool *out, cdmpp_err *err) {
    const cd_device *named;
    *out = !l->only || !l->only->n;
    for (size_t i = 0; l->only && i < l->only->n; i++) {
        CD_TRY(cd_err_key(err, cd_device_table_find(l->devices, l->only->v[i], &named, err), "data.devices"));
        *out |= named == v;
    }
    return CDMPP_OK;
}

static cdmpp_status keep(loading *l, const cd_llm_op_record *r, const cd_device *v, cdmpp_err *err) {
    bool want;
    CD_TRY(wanted(l, v, &want, err));
    if (want && r->latency_s > 0) return cd_llm_op_table_put(l->t, r, v, err);
    l->t->drop[want ? CD_LLM_OP_DROP_QUESTION : CD_LLM_OP_DROP_DEVICE]++;
    return CDMPP_OK;
}

static void tell(loading *l, const cdmpp_err *why, bool no_time) {
    l->t->drop[no_time ? CD_LLM_OP_DROP_TIME : CD_LLM_OP_DROP_BAD]++;
    if (l->bad && !no_time) l->bad(l->ctx, why); /* times of zero are counted alone: a table may have thousands */
}

/* A bad line is reported and left out; an error of reading ends the file. */
static cdmpp_status rows(loading *l, cd_llm_op_reader *in, const char *path, cdmpp_err *err) {
    bool more = true;
    cdmpp_status st = CDMPP_OK;
    while (!st && more) {
        cd_llm_op_record r;
        cdmpp_err why = {0};
        const char *name;
        const cd_device *v;
        bool no_time;
        st = cd_llm_op_reader_next(in, &r, &name, &more, &no_time, &why);
        if (!st && more) st = cd_err_at(&why, cd_err_key(&why, cd_device_table_find(l->devices, name, &v, &why), "device"), path, cd_llm_op_reader_line(in));
        l->t->n_line += more;
        if (line_is_bad(st) && more) {
            tell(l, &why, no_time);
            st = CDMPP_OK;
        } else if (st) {
            if (err) *err = why;
        } else if (more) {
            st = keep(l, &r, v, err);
        }
    }
    return st;
}

static cdmpp_status file(loading *l, const char *path, bool alone, cdmpp_err *err) {
    cd_llm_op_reader *in = NULL;
    cdmpp_err why = {0};
    cdmpp_status st = cd_llm_op_reader_open(path, &l->t->names, &in, &why);
    if (st == CDMPP_ESCHEMA && !alone) { /* tables of other operators stand in the same folder */
        l->t->n_line++;
        tell(l, &why, false);
        return CDMPP_OK;
    }
    if (st && err) *err = why;
    if (!st) st = rows(l, in, path, err);
    cd_llm_op_reader_close(in);
    return st;
}

static bool is_table(const char *path, void *ctx) {
    static const char *const end[] = {".tsv", ".csv", ".tsv.xz", ".csv.xz", ".tsv.gz", ".csv.gz", ".tsv.zst", ".csv.zst"};
    const size_t n = strlen(path);
    (void)ctx;
    for (size_t i = 0; i < sizeof end / sizeof *end; i++)
        if (n > strlen(end[i]) && !strcasecmp(path + n - strlen(end[i]), end[i])) return true;
    return false;
}

cdmpp_status cd_llm_op_table_add(cd_llm_op_table *t, const char *path, const cd_device_table *devices, const cd_texts *only,
                                 cd_llm_op_table_bad *bad, void *ctx, cdmpp_err *err) {
    loading l = {t, devices, only, bad, ctx};
    const char *const *v;
    size_t n;
    cd_arena a = {0};
    cdmpp_status st = cd_file_list(&a, path, is_table, NULL, &v, &n, err);
    if (!st && !n) { /* one file of another name */
        st = cd_file_list(&a, path, NULL, NULL, &v, &n, err);
        if (!st && (n != 1 || strcmp(v[0], path) != 0)) st = cd_err_at(err, CD_FAIL(err, ESCHEMA, "expected tables (*.tsv, *.csv) in this folder"), path, 0);
    }
    const bool alone = n == 1 && !st && !strcmp(v[0], path);
    for (size_t i = 0; !st && i < n; i++) st = file(&l, v[i], alone, err);
    cd_arena_free(&a);
    return st;
}
