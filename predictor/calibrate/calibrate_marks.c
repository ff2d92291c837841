/* What programs that were measured have, and the device of the model had not seen: threads of this
 * machine, its instructions. It counts as seen afterwards. */
#include <string.h>

#include "predictor/calibrate/calibrate_internal.h"

cdmpp_status cd_calibrate_signature(const cd_model *m, const cd_scored *s, const cd_record *r,
                                    cd_arena *kept, cd_signature *out, cdmpp_err *err) {
    *out = (cd_signature){0};
    if (!cd_model_trained_on(m) || !s->task || !s->task->dag) return CDMPP_OK;
    return cd_signature_of(kept, s->task->dag, r->target,
                           r->has_hardware         ? &r->hardware
                           : s->task->has_hardware ? &s->task->hardware
                                                   : NULL,
                           out, err);
}

typedef struct marks {
    const char **v; /* (n) each once */
    size_t n, cap;
} marks;

static bool has(const marks *m, const char *mark) {
    for (size_t i = 0; i < m->n; i++)
        if (!strcmp(m->v[i], mark)) return true;
    return false;
}

/* Of the programs that are not in the part. */
static cdmpp_status collect(const cd_calibrate_points *p, uint32_t without, cd_arena *in,
                            marks *out, cdmpp_err *err) {
    const cd_trained_on *t = cd_model_trained_on(p->m);
    for (size_t i = 0; t && i < p->n; i++) {
        const cd_calibrate_point *x = &p->v[i];
        if (x->part == without) continue;
        for (size_t k = 0; k < x->is.n; k++) {
            if (!cd_trained_on_lacks(t, p->stands, x->is.mark[k]) || has(out, x->is.mark[k]))
                continue;
            if (CD_GROW_IN(in, out->v, out->n, out->cap)) return CD_FAIL(err, ENOMEM, "marks");
            out->v[out->n++] = x->is.mark[k];
        }
    }
    return CDMPP_OK;
}

static cdmpp_status mark_part(cd_calibrate_points *p, uint32_t part, cd_arena *in, cdmpp_err *err) {
    marks more = {0};
    cd_trained_on *t;
    CD_TRY(collect(p, part, in, &more, err));
    CD_TRY(cd_trained_on_more(in, cd_model_trained_on(p->m), p->machine, p->stands, more.v, more.n,
                              &t, err));
    for (size_t i = 0; i < p->n; i++) {
        cd_calibrate_point *x = &p->v[i];
        cd_unlike u = {0};
        if (x->part != part) continue;
        cd_trained_on_check(t, p->machine, false, &x->is, &u);
        x->reason = u.reason;
    }
    return CDMPP_OK;
}

cdmpp_status cd_calibrate_mark_part(cd_calibrate_points *p, uint32_t part, cdmpp_err *err) {
    cd_arena in = {0};
    const cdmpp_status st = cd_model_trained_on(p->m) ? mark_part(p, part, &in, err) : CDMPP_OK;
    cd_arena_free(&in);
    return st;
}

cdmpp_status cd_calibrate_marks_of(const cd_calibrate_points *p, cd_buf *out, cdmpp_err *err) {
    cd_arena in = {0};
    marks all = {0};
    const cdmpp_status st = collect(p, CD_CALIBRATE_PARTS, &in, &all, err);
    for (size_t i = 0; !st && i < all.n; i++)
        cd_buf_putf(out, "%s%s", i ? CD_SIGNATURE_BETWEEN : "", all.v[i]);
    cd_arena_free(&in);
    if (!st && out->oom) return CD_FAIL(err, ENOMEM, "marks");
    return st;
}
