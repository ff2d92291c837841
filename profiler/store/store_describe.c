/* store_describe -- what operator a workload is: by its task's definition, or by its key alone. */
#include <string.h>

#include "profiler/store/store_internal.h"

static bool starts(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

/* Tags that say how an operator is computed, not what it is. */
static bool generic(const char *tag) {
    static const char *const word[] = {
        "", "elemwise", "broadcast", "injective", "comm_reduce", "comm_reduce_idx", "opaque"};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (!strcmp(tag, word[i])) return true;
    return false;
}

/* "T_relu" -> "relu", "conv2d_nchw" by its tag; "" for helpers: padding, dilation, constants. */
static const char *word_of(const cd_te_op *op) {
    if (op->is_placeholder || starts(op->tag, "injective,") ||
        starts(op->name, "compile_engine_const") || starts(op->name, "pad_temp"))
        return "";
    if (!generic(op->tag)) return op->tag;
    return starts(op->name, "T_") ? op->name + 2 : op->name;
}

/* "nchw" of "conv2d_nchw"; "" when the tag has none. */
static cd_str layout_of(const char *tag) {
    const char *at = strrchr(tag, '_');
    if (!at || strspn(at + 1, "nchwdkioNCHWDKIO0123456789") != strlen(at + 1) || strlen(at + 1) < 3)
        return (cd_str){"", 0};
    return (cd_str){at + 1, strlen(at + 1)};
}

/* The name joins the words of the operators in order: "conv2d_nchw+add+relu". */
cdmpp_status cd_store_describe_task(cd_arena *a, const cd_task *t, cd_store_row *row,
                                    cdmpp_err *err) {
    const cd_te_dag *g = t->dag;
    cd_buf b = {0};
    const char *last = "";
    cd_str layout = {"", 0};
    char type[24];
    for (uint32_t i = 0; i < g->n_op; i++) {
        const char *w = word_of(&g->op[i]);
        if (!*w || !strcmp(w, last)) continue; /* the stages of a softmax have one tag */
        if (b.n) cd_buf_puts(&b, "+");
        cd_buf_puts(&b, w);
        if (!layout.n) layout = layout_of(w);
        last = w;
    }
    if (!b.n) cd_buf_puts(&b, "copy");
    const char *types =
        g->n_op ? cd_expr_dtype_format(g->op[g->n_op - 1].dtype[0], type, sizeof type) : "";
    row->operator_name = (cd_str){b.oom ? NULL : cd_str_dup(a, (cd_str){b.p, b.n}), b.n};
    row->dtype = (cd_str){cd_str_dup(a, (cd_str){types, strlen(types)}), strlen(types)};
    row->layout = layout;
    row->flop = cd_task_flop(t);
    cd_buf_free(&b);
    return row->operator_name.p && row->dtype.p ? CDMPP_OK
                                                : CD_FAIL(err, ENOMEM, "operator's name");
}

/* ---- by the key: ["<hash of the DAG>", sizes or lists of sizes ...] ---- */
static void put_sizes(cd_buf *b, const cd_json *first) {
    cd_buf_puts(b, "[");
    for (const cd_json *c = first; c; c = c->next) {
        if (c != first) cd_buf_puts(b, ",");
        if (c->kind == CD_JSON_INT) cd_buf_put_int(b, c->u.i);
        else if (c->kind == CD_JSON_ARR) put_sizes(b, c->u.child);
        else if (c->kind == CD_JSON_STR) cd_buf_put_json_str(b, c->u.s.p, c->u.s.n);
        else cd_buf_puts(b, "null");
    }
    cd_buf_puts(b, "]");
}

static cdmpp_status dup_buf(cd_arena *a, cd_buf *b, cd_str *out, cdmpp_err *err) {
    *out = (cd_str){b->oom ? NULL : cd_str_dup(a, (cd_str){b->p, b->n}), b->n};
    cd_buf_free(b);
    return out->p ? CDMPP_OK : CD_FAIL(err, ENOMEM, "text");
}

cdmpp_status cd_store_describe_key(cd_arena *a, cd_str key, cd_store_row *row, cdmpp_err *err) {
    const cd_json *v = NULL;
    cd_buf shape = {0}, name = {0};
    const cdmpp_status st = cd_json_parse(a, key.p, key.n, &v, NULL);
    const bool form = !st && v->kind == CD_JSON_ARR && v->n && v->u.child->kind == CD_JSON_STR;
    if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "workload key");
    put_sizes(&shape, form ? v->u.child->next : NULL);
    cd_buf_puts(&name, form ? "dag:" : "key:");
    if (form) cd_buf_put(&name, v->u.child->u.s.p, v->u.child->u.s.n);
    else cd_buf_put(&name, key.p, key.n);
    const cdmpp_status made = dup_buf(a, &shape, &row->shape, err);
    CD_TRY(dup_buf(a, &name, &row->operator_name, err));
    return made;
}
