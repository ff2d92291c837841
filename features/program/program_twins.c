/* Two graphs may stand behind one workload key, because the key's hash does not see how wide a
 * padding is. A record names the key only; what its steps say decides, or nothing does. */
#include "features/program/program.h"

typedef struct {
    const cd_task *first, *noted; /* that fits; whose extents are those that the steps note */
    cd_hash rows, noted_rows;
    bool differ, noted_differ;
} choice;

static cd_hash hash_of(const cd_rows *r) {
    cd_hash h = cd_hash_start();
    cd_hash_add(&h, r->row, (size_t)r->n_row * CD_N_COL * sizeof *r->row);
    cd_hash_add(&h, r->leaf, (size_t)r->n_leaf * CD_N_COL * sizeof *r->leaf);
    return h;
}

static void take(const cd_task **task, cd_hash *rows, bool *differ, const cd_task *t, cd_hash h) {
    if (*task) *differ |= h.a != rows->a || h.b != rows->b;
    else *task = t, *rows = h;
}

cdmpp_status cd_program_choose(cd_program *p, const cd_record *r, const cd_task **task,
                               cdmpp_err *err) {
    choice c = {0};
    if (!(*task)->twin) return CDMPP_OK;
    for (const cd_task *t = *task; t; t = t->twin) {
        cd_rows rows = {0};
        cdmpp_err why = {0};
        const cdmpp_status st = cd_program_build(p, t, r, &rows, &why);
        if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "%s", why.msg);
        if (st && st != CDMPP_EREJECTED) continue;
        if (st) rows = (cd_rows){0};
        const cd_hash h = hash_of(&rows);
        take(&c.first, &c.rows, &c.differ, t, h);
        if (!cd_program_foreign_extents(p)) take(&c.noted, &c.noted_rows, &c.noted_differ, t, h);
    }
    if (c.differ && (!c.noted || c.noted_differ))
        return CD_FAIL(err, ENOTASK,
                       "several definitions of its task fit and give different rows; give one of "
                       "them for %.100s",
                       (*task)->workload_key);
    if (c.first) *task = c.differ ? c.noted : c.first;
    return CDMPP_OK;
}
