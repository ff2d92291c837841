/* A model in the forms of other programs. ONNX is one graph of everything and has files of its own;
 * here are the choice of members and the two forms that hold one kind each. */
#include "learner/export/export.h"

#include <stdio.h>
#include <string.h>

#include "learner/export/export_internal.h"

static bool fits(const cd_model *m, cd_export_form form, size_t k) {
    return cd_member_is_net(cd_model_member(m, k)->kind) == (form == CD_EXPORT_SAFETENSORS);
}

/* The members that are asked for: first .. end, of which those that fit. */
static cdmpp_status choose(const cd_model *m, cd_export_form form, int member, size_t *first,
                           size_t *end, cdmpp_err *err) {
    const char *const what = form == CD_EXPORT_XGBOOST ? "trees" : "a network";
    size_t n = 0;
    if (member >= 0 && (size_t)member >= cd_model_n_member(m))
        return CD_FAIL(err, EUSAGE, "expected a member below %zu, found %d", cd_model_n_member(m),
                       member);
    *first = member >= 0 ? (size_t)member : 0;
    *end = member >= 0 ? *first + 1 : cd_model_n_member(m);
    for (size_t k = *first; k < *end; k++) n += fits(m, form, k);
    if (!n && member >= 0)
        return CD_FAIL(err, EUSAGE, "member %d is %s, not %s", member,
                       cd_member_name(cd_model_member(m, (size_t)member)->kind), what);
    if (!n) return CD_FAIL(err, EUSAGE, "no member is %s", what);
    if (n > 1 && form == CD_EXPORT_XGBOOST)
        return CD_FAIL(err, EUSAGE, "expected the number of one member, for %zu are trees", n);
    return CDMPP_OK;
}

static cdmpp_status trees(const cd_model *m, size_t first, size_t end, cd_buf *out,
                          cdmpp_err *err) {
    while (first < end && !fits(m, CD_EXPORT_XGBOOST, first)) first++;
    return cd_xgb_save(cd_model_member(m, first)->gbt, out, err);
}

/* ---- safetensors ---- */
typedef struct {
    cd_tensor *t;
    size_t n;
    cd_arena names;
    cd_buf meta;
} tensors;

/* Descriptions are JSON inside of JSON strings, because safetensors metadata are texts. */
static cdmpp_status put_member(tensors *all, const cd_member *e, size_t k, bool prefix,
                               cdmpp_err *err) {
    const cd_params *p = cd_net_params_of(e->net);
    cd_tensor *t = all->t + all->n;
    cd_buf text = {0};
    cd_params_tensors(p, t);
    const size_t n = p->n + cd_scalers_tensors(&e->scalers, t + p->n);
    for (size_t i = 0; prefix && i < n; i++) {
        char name[120];
        snprintf(name, sizeof name, "%zu.%s", k, t[i].name);
        t[i].name = cd_str_dup(&all->names, (cd_str){name, strlen(name)});
        if (!t[i].name) return CD_FAIL(err, ENOMEM, "names of tensors");
    }
    all->n += n;
    cd_net_config_json(&text, cd_net_config_of(e->net));
    cd_buf_putf(&all->meta, prefix ? ",\"%zu.cdmpp.net\":" : ",\"cdmpp.net\":", k);
    cd_buf_put_json_str(&all->meta, text.p ? text.p : "", text.n);
    cd_buf_clear(&text);
    cd_transform_write(&text, e->label);
    cd_buf_putf(&all->meta, prefix ? ",\"%zu.cdmpp.label\":" : ",\"cdmpp.label\":", k);
    cd_buf_put_json_str(&all->meta, text.p ? text.p : "", text.n);
    all->meta.oom = all->meta.oom || text.oom;
    cd_buf_free(&text);
    return CDMPP_OK;
}

static cdmpp_status put_members(tensors *all, const cd_model *m, size_t first, size_t end,
                                cdmpp_err *err) {
    size_t most = 0;
    for (size_t k = first; k < end; k++)
        if (cd_model_member(m, k)->net)
            most += cd_net_params_of(cd_model_member(m, k)->net)->n + CD_SCALERS_TENSORS;
    all->t = cd_mem_zalloc(most, sizeof *all->t);
    if (!all->t) return CD_FAIL(err, ENOMEM, "list of tensors");
    cd_buf_puts(&all->meta, "{\"format\":\"pt\"");
    for (size_t k = first; k < end; k++)
        if (cd_model_member(m, k)->net)
            CD_TRY(put_member(all, cd_model_member(m, k), k, end > first + 1, err));
    cd_buf_puts(&all->meta, "}");
    return CDMPP_OK;
}

static cdmpp_status networks(const cd_model *m, size_t first, size_t end, cd_buf *out,
                             cdmpp_err *err) {
    tensors all = {0};
    cdmpp_status st = put_members(&all, m, first, end, err);
    if (!st && !all.meta.oom) cd_safetensors_write(out, all.t, all.n, all.meta.p);
    if (!st && (all.meta.oom || out->oom)) st = CD_FAIL(err, ENOMEM, "file of %zu tensors", all.n);
    cd_buf_free(&all.meta);
    cd_arena_free(&all.names);
    cd_mem_free(all.t);
    return st;
}

cdmpp_status cd_export_model(const cd_model *m, cd_export_form form, int member, cd_buf *out,
                             cdmpp_err *err) {
    size_t first, end;
    if (form == CD_EXPORT_ONNX && cd_model_order(m))
        return CD_FAIL(err, EUNSUPPORTED,
                       "the graph would have seconds alone, not what the members of model.order "
                       "say of the order: export a model of --set model.order=[]");
    if (form == CD_EXPORT_ONNX && member < 0) return cd_export_onnx(m, out, err);
    if (form == CD_EXPORT_ONNX) return CD_FAIL(err, EUSAGE, "onnx is of all members");
    CD_TRY(choose(m, form, member, &first, &end, err));
    return form == CD_EXPORT_XGBOOST ? trees(m, first, end, out, err)
                                     : networks(m, first, end, out, err);
}
