/* Questions about operators of language models, from their names and values to answers. */
#include "learner/llm_op/llm_op_oracle.h"

#include <string.h>

#include "base/io/io.h"

void cd_llm_op_oracle_free(cd_llm_op_oracle *o) {
    cd_llm_op_asker_free(o->asker);
    cd_llm_op_table_free(&o->t);
    cd_llm_op_model_free(o->m);
    cd_device_table_free(o->devices);
    *o = (cd_llm_op_oracle){0};
}

size_t cd_llm_op_oracle_bad(const cd_llm_op_oracle *o) {
    return o->t.drop[CD_LLM_OP_DROP_BAD] + o->t.drop[CD_LLM_OP_DROP_TIME];
}

static cdmpp_status load_model(cd_llm_op_oracle *o, const char *path, cdmpp_err *err) {
    char *data = NULL;
    size_t n = 0;
    cd_sha256 h;
    CD_TRY(cd_file_read(path, 0, &data, &n, err));
    cd_sha256_init(&h);
    cd_sha256_add(&h, data, n);
    cd_sha256_hex(&h, o->digest);
    const cdmpp_status st =
        cd_err_at(err, cd_llm_op_model_from_bytes(data, n, &o->m, err), path, 0);
    cd_mem_free(data);
    return st;
}

static cdmpp_status load_devices(cd_llm_op_oracle *o, const cd_llm_op_oracle_options *how,
                                 cdmpp_err *err) {
    cd_arena a = {0};
    cd_diag diag = {0};
    cdmpp_status st =
        cd_device_table_open(&a, how->devices_file, NULL, &diag, NULL, &o->devices, err);
    if (!st && how->device)
        st = cd_err_key(err, cd_device_table_find(o->devices, how->device, &o->device, err),
                        "device");
    cd_diag_free(&diag);
    cd_arena_free(&a);
    return st;
}

/* Names that the model or a table knows have numbers of their own; all others share those of
 * cd_llm_op_names_close. */
static cdmpp_status close_names(cd_llm_op_oracle *o, cdmpp_err *err) {
    const cd_dict *of[] = {&o->m->stacks, &o->m->kernels};
    uint32_t k;
    for (size_t d = 0; d < 2; d++)
        for (size_t i = 0; i < of[d]->n; i++)
            CD_TRY(cd_dict_add(&o->t.names, (cd_str){of[d]->text[i], strlen(of[d]->text[i])}, &k,
                               err));
    CD_TRY(cd_llm_op_names_close(&o->t.names, err));
    return o->t.names.n <= UINT16_MAX
               ? CDMPP_OK
               : CD_FAIL(err, ERANGE, "more than 65535 names of stacks and kernels");
}

cdmpp_status cd_llm_op_oracle_open(cd_llm_op_oracle *o, const cd_llm_op_oracle_options *how,
                                   cdmpp_err *err) {
    uint32_t empty;
    CD_TRY(load_model(o, how->model, err));
    CD_TRY(load_devices(o, how, err));
    CD_TRY(cd_dict_add(&o->t.names, (cd_str){"", 0}, &empty, err));
    for (size_t i = 0; i < how->n_measured; i++)
        CD_TRY(cd_llm_op_table_add(&o->t, how->measured[i], o->devices, NULL, how->bad, how->ctx,
                                   err));
    CD_TRY(cd_llm_op_table_index(&o->t, err));
    CD_TRY(close_names(o, err));
    return cd_llm_op_asker_new(o->m, &o->t, &o->t.names, &o->asker, err);
}

cdmpp_status cd_llm_op_oracle_read(const cd_llm_op_oracle *o, const cd_op_named *v, size_t n,
                                   cd_llm_op_told *out, cdmpp_err *err) {
    const char *name;
    CD_TRY(cd_llm_op_from_named(v, n, &o->t.names, &out->r, &name, err));
    out->d = o->device;
    if (name[0])
        CD_TRY(cd_err_key(err, cd_device_table_find(o->devices, name, &out->d, err), "device"));
    return out->d ? CDMPP_OK
                  : cd_err_key(err,
                               CD_FAIL(err, ESCHEMA, "expected a device, or one for all questions"),
                               "device");
}

cdmpp_status cd_llm_op_oracle_ask(const cd_llm_op_oracle *o, const cd_op_named *v, size_t n,
                                  double level, cd_llm_op_told *out, cdmpp_err *err) {
    CD_TRY(cd_llm_op_oracle_read(o, v, n, out, err));
    return cd_llm_op_ask(o->asker, &out->r, out->d, level, &out->a, err);
}

cdmpp_status cd_llm_op_ask_told(const cd_llm_op_asker *a, cd_llm_op_told *v, cdmpp_err *whys,
                                size_t n, double level, cdmpp_err *err) {
    cd_llm_op_record r[CD_LLM_OP_TOLD];
    const cd_device *d[CD_LLM_OP_TOLD];
    cd_llm_op_answer said[CD_LLM_OP_TOLD];
    for (size_t i = 0, m; i < n; i += m ? m : 1) { /* runs of questions that could be read */
        for (m = 0; m < CD_LLM_OP_TOLD && i + m < n && !whys[i + m].code; m++)
            r[m] = v[i + m].r, d[m] = v[i + m].d;
        if (!m) continue;
        CD_TRY(cd_llm_op_ask_many(a, r, d, m, level, said, whys + i, err));
        for (size_t k = 0; k < m; k++)
            if (!whys[i + k].code) v[i + k].a = said[k];
    }
    return CDMPP_OK;
}
