/* Tables of measured operators of language models in memory: read, joined with the devices, further
 * times of a row set aside. */
#include <string.h>

#include "learner/llm_op/llm_op_internal.h"

const char *cd_llm_op_drop_text(cd_llm_op_drop d) {
    static const char *const text[CD_LLM_OP_N_DROP] = {
        "no record, or of an unknown device", "with a time that is not above 0", "without a time",
        "of devices that data.devices does not name"};
    return text[d];
}

void cd_llm_op_table_free(cd_llm_op_table *t) {
    cd_op_rows_free(&t->rows);
    cd_mem_free(t->count);
    cd_mem_free(t->place);
    cd_llm_op_repeats_free(&t->again);
    for (size_t i = 0; i <= CD_LLM_OP_MAX_SIZE; i++) {
        cd_mem_free(t->curve[i].row);
        cd_mem_free(t->curve[i].value);
        cd_mem_free(t->curve[i].slot);
    }
    cd_mem_free(t->met);
    cd_dict_free(&t->names);
    memset(t, 0, sizeof *t);
}

/* ---- rows ---- */
static uint64_t key(const void *record, uint32_t device) {
    const cd_llm_op_record *r = record;
    uint64_t h = cd_rng_at((uint64_t)r->kind << 16 | (uint64_t)r->type << 8 | r->kv,
                           (uint64_t)device << 32 | (uint64_t)r->stack << 16 | r->kernel);
    for (size_t i = 0; i < cd_llm_op_n_size((cd_llm_op_kind)r->kind); i++)
        h = cd_rng_mix(h ^ (uint64_t)r->size[i]);
    return cd_rng_mix(h ^ (uint64_t)(1e4 * r->skew));
}

static bool same(const void *a, const void *b) { return cd_llm_op_same(a, b); }

/* ---- files ---- */
typedef struct {
    cd_llm_op_table *t;
    const cd_device_table *devices;
    const cd_texts *only;
    const cd_op_reader *in; /* of the file that is read */
    uint32_t before;        /* lines of the files before it */
} loading;

static cdmpp_status open_table(const char *path, void *to, cd_op_reader **in, cdmpp_err *err) {
    loading *l = to;
    CD_TRY(cd_llm_op_reader_open(path, &l->t->names, in, err));
    l->in = *in;
    l->before = l->t->again.last;
    const cdmpp_status st = cd_llm_op_repeats_file(&l->t->again, path, err);
    if (st) cd_op_reader_close(*in), *in = NULL;
    return st;
}

static cdmpp_status next(cd_op_reader *in, cd_op_any *r, const char **device, bool *more,
                         bool *no_time, cdmpp_err *err) {
    return cd_llm_op_reader_next(in, &r->llm, device, more, no_time, err);
}

static void put_bad(void *to, bool no_time) {
    ((loading *)to)->t->drop[no_time ? CD_LLM_OP_DROP_TIME : CD_LLM_OP_DROP_BAD]++;
}

static const cd_op_kind_of_table kind;

static cdmpp_status put(cd_llm_op_table *t, const cd_llm_op_record *r, const cd_device *device,
                        uint32_t place, cdmpp_err *err) {
    size_t k;
    bool is_new;
    if (CD_GROW(t->count, t->n, t->cap_count) || CD_GROW(t->place, t->n, t->cap_place))
        return CD_FAIL(err, ENOMEM, "%zu rows", t->n);
    CD_TRY(cd_op_rows_put(&t->rows, &kind, r, device, &k, &is_new, err));
    if (is_new) {
        t->count[k] = 1;
        t->place[k] = place;
        return CDMPP_OK;
    }
    if (t->count[k] == 1)
        CD_TRY(cd_llm_op_repeats_put(
            &t->again, &(cd_llm_op_time){t->r[k].latency_s, (uint32_t)k, t->place[k]}, err));
    CD_TRY(
        cd_llm_op_repeats_put(&t->again, &(cd_llm_op_time){r->latency_s, (uint32_t)k, place}, err));
    t->count[k]++;
    t->repeated++;
    return CDMPP_OK;
}

static cdmpp_status put_row(void *to, const cd_op_any *r, const cd_device *v, cdmpp_err *err) {
    const loading *l = to;
    bool want;
    CD_TRY(cd_op_rows_wanted(l->devices, l->only, v, &want, err));
    if (want && r->llm.latency_s > 0)
        return put(l->t, &r->llm, v,
                   l->t->again.last = l->before + (uint32_t)cd_op_reader_line(l->in), err);
    l->t->drop[want ? CD_LLM_OP_DROP_QUESTION : CD_LLM_OP_DROP_DEVICE]++;
    return CDMPP_OK;
}

static const cd_op_kind_of_table kind = {
    sizeof(cd_llm_op_record), "device", key, same, open_table, next, put_row, put_bad};

/* ---- the door ---- */
long cd_llm_op_table_find(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device) {
    return cd_op_rows_find(&t->rows, &kind, r, device);
}
uint64_t cd_llm_op_table_hash(const cd_llm_op_table *t, const cd_llm_op_record *r,
                              uint32_t device) {
    return cd_op_rows_hash(&t->rows, &kind, r, device);
}
void cd_llm_op_table_fetch(const cd_llm_op_table *t, uint64_t hash) {
    cd_op_rows_fetch(&t->rows, &kind, hash);
}
long cd_llm_op_table_at(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device,
                        uint64_t hash) {
    return cd_op_rows_at(&t->rows, &kind, r, device, hash);
}
long cd_llm_op_table_device(const cd_llm_op_table *t, const cd_device *d) {
    return cd_op_rows_device(&t->rows, d);
}

cdmpp_status cd_llm_op_table_put(cd_llm_op_table *t, const cd_llm_op_record *r,
                                 const cd_device *device, cdmpp_err *err) {
    return put(t, r, device, 0, err);
}

cdmpp_status cd_llm_op_table_add(cd_llm_op_table *t, const char *path,
                                 const cd_device_table *devices, const cd_texts *only,
                                 cd_op_bad_line *bad, void *ctx, cdmpp_err *err) {
    loading to = {.t = t, .devices = devices, .only = only};
    return cd_op_rows_load(&(cd_op_loading){&kind, &t->rows, &to, devices, bad, ctx}, path, err);
}
