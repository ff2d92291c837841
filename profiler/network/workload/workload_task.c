/* Equal definitions are one task. Definitions are compared as text, by a hash table; the key of a
 * new one comes from its DAG, as TVM computes it. */
#include <string.h>

#include "profiler/network/workload/workload_internal.h"

static uint32_t hash(const char *s, size_t n) {
    uint32_t h = 2166136261U;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 16777619U;
    return h ^ h >> 15;
}

/* The text of a task but for its key and target: this is what is compared. */
static void put_body(cd_buf *out, const cd_te_compute *c) {
    cd_buf_puts(out, "\"args\": [");
    for (uint32_t i = 0; i < c->n_arg; i++) cd_buf_putf(out, "%s\"t%u\"", i ? ", " : "", c->arg[i]);
    cd_buf_puts(out, "], \"ops\": [\n");
    cd_buf_puts(out, c->ops.p);
    cd_buf_puts(out, "]");
}

/* The DAG of a definition, from the task reader; *why: the reader's reason to refuse it. */
static cdmpp_status read_one(cd_workload_builder *b, const char *body, const cd_te_dag **dag,
                             const char **why) {
    cd_buf text = {0};
    cdmpp_err own = {0};
    const size_t n = cd_task_registry_count(b->one);
    cd_buf_putf(
        &text,
        "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [{\"workload_key\": \"%zu\", ",
        n);
    cd_buf_puts(&text, body);
    cd_buf_puts(&text, "}]}");
    if (text.oom) {
        cd_buf_free(&text);
        return CD_FAIL(b->err, ENOMEM, "out of memory for tasks");
    }
    cdmpp_status st = cd_task_registry_load_text(b->one, "definition", text.p, text.n, &own);
    cd_buf_free(&text);
    const cd_task *t = cd_task_registry_count(b->one) > n ? cd_task_registry_at(b->one, n) : NULL;
    *dag = t ? t->dag : NULL;
    if (st == CDMPP_ENOMEM) return CD_FAIL(b->err, ENOMEM, "out of memory for tasks");
    if (st || !*dag) {
        char buf[400];
        const cdmpp_err *why_not = t && t->why ? t->why : &own;
        cdmpp_err_format(why_not, buf, sizeof buf);
        *why = cd_str_dup(&b->w->arena, (cd_str){buf, strlen(buf)});
        if (!*why) return CD_FAIL(b->err, ENOMEM, "out of memory for tasks");
    }
    return CDMPP_OK;
}

static bool taken(const cd_workload_builder *b, const char *key) {
    for (uint32_t i = 0; i < b->w->n_task; i++)
        if (!strcmp(b->def[i].key, key)) return true;
    return false;
}

/* TVM's key is the hash of the DAG and the shapes. Where another definition of the network has it,
 * the hash of the whole text is taken instead. */
static cdmpp_status key_of(cd_workload_builder *b, const cd_te_dag *dag, const char *body,
                           const char **key) {
    cd_buf text = {0};
    char h[33];
    CD_TRY(cd_te_dag_hash(dag, h, b->err));
    for (int again = 0; again < 2; again++) {
        cd_buf_clear(&text);
        cd_te_workload_key(&text, dag, h);
        if (text.oom || !taken(b, text.p)) break;
        cd_md5_hex(body, strlen(body), h);
    }
    *key = text.oom ? NULL : cd_str_dup(&b->w->arena, (cd_str){text.p, text.n});
    cd_buf_free(&text);
    return *key ? CDMPP_OK : CD_FAIL(b->err, ENOMEM, "out of memory for tasks");
}

/* The slot of a body: of the task that has it, or free. */
static uint32_t *slot_of(const cd_workload_builder *b, const char *body, size_t n) {
    uint32_t i = hash(body, n) & (b->n_slot - 1);
    while (b->slot[i] && strcmp(b->def[b->slot[i] - 1].body, body)) i = (i + 1) & (b->n_slot - 1);
    return &b->slot[i];
}

static cdmpp_status enter(cd_workload_builder *b, const char *body, uint32_t *slot, uint32_t *task,
                          const char **why) {
    const cd_te_dag *dag;
    cd_workload_definition def = {.body = body};
    CD_TRY(read_one(b, body, &dag, why));
    if (*why) return CDMPP_OK;
    CD_TRY(key_of(b, dag, body, &def.key));
    const uint32_t k = b->w->n_task++;
    b->def[k] = def;
    b->w->task[k] = (cd_workload_task){.flop = dag->flop > 0 ? dag->flop : 0};
    *slot = k + 1;
    *task = k;
    return CDMPP_OK;
}

cdmpp_status cd_workload_make_task(cd_workload_builder *b, uint32_t *task, const char **why) {
    cd_buf text = {0};
    *why = NULL;
    put_body(&text, b->c);
    const char *body = text.oom ? NULL : cd_str_dup(&b->scratch, (cd_str){text.p, text.n});
    const size_t n = text.n;
    cd_buf_free(&text);
    if (!body) return CD_FAIL(b->err, ENOMEM, "out of memory for tasks");
    uint32_t *slot = slot_of(b, body, n);
    if (!*slot) return enter(b, body, slot, task, why);
    *task = *slot - 1;
    return CDMPP_OK;
}
