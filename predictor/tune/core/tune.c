/* Copies of candidates, which outlive the space. */
#include "predictor/tune/core/core.h"

#include <string.h>

static void *copied(cd_arena *a, const void *from, size_t n, size_t size, bool *ok) {
    if (!n) return NULL;
    void *to = cd_arena_zalloc(a, n, size);
    if (to) memcpy(to, from, n * size);
    else *ok = false;
    return to;
}

cdmpp_status cd_tune_cand_copy(cd_arena *a, const cd_tune_cand *from, cd_tune_cand *out,
                               cdmpp_err *err) {
    bool ok = true;
    cd_record_step *step = copied(a, from->step, from->n_step, sizeof *step, &ok);
    for (uint32_t k = 0; ok && k < from->n_step; k++) {
        step[k].list = copied(a, step[k].list, step[k].n_list, sizeof *step[k].list, &ok);
        step[k].s.p = copied(a, step[k].s.p, step[k].s.n, 1, &ok);
    }
    *out = *from;
    out->step = step;
    out->choice = copied(a, from->choice, from->n_choice, sizeof *from->choice, &ok);
    return ok ? CDMPP_OK : CD_FAIL(err, ENOMEM, "candidate");
}

void cd_tune_space_free(cd_tune_space *s) {
    if (s) s->kind->free(s);
}
