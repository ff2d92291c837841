/* The model of operators of language models of a set: who answers tasks in types of 16 and 8
 * bits. */
#include "base/io/io.h"
#include "predictor/estimate/estimate.h"

static cdmpp_status load_language(cd_model_set_entry *v, cdmpp_err *err) {
    char *data = NULL;
    size_t n = 0;
    CD_TRY(cd_file_read(v->path, 0, &data, &n, err));
    const cdmpp_status st = cd_llm_op_model_from_bytes(data, n, &v->llm, err);
    cd_mem_free(data);
    return st;
}

cdmpp_status cd_model_set_narrow(cd_model_set *m, const cd_llm_op_asker **out, cdmpp_err *err) {
    size_t k = 0;
    while (k < m->n && !m->v[k].language) k++;
    *out = m->narrow;
    if (k == m->n || m->narrow) return CDMPP_OK;
    if (!m->v[k].llm) CD_TRY(cd_err_at(err, load_language(&m->v[k], err), m->v[k].path, 0));
    if (!m->no_names.n) CD_TRY(cd_llm_op_names_close(&m->no_names, err));
    CD_TRY(cd_llm_op_asker_new(m->v[k].llm, NULL, &m->no_names, &m->narrow, err));
    *out = m->narrow;
    return CDMPP_OK;
}
