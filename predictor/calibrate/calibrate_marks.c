/* What programs that were measured have, and the device of the model had not seen: threads of this machine, its instructions. It counts as seen afterwards. */
#include <string.h>

#include "predictor/calibrate/calibrate_internal.h"

static bool has(const char *all, const char *mark) {
    for (cd_str one; cd_signature_next(&all, &one);)
        if (cd_str_is(one, mark)) return true;
    return false;
}

cdmpp_status cd_calibrate_note_marks(const cd_model *m, const cd_scored *s, const cd_record *r, cd_arena *a, cd_buf *marks, cdmpp_err *err) {
    const cd_trained_on *t = cd_model_trained_on(m);
    cd_signature of;
    if (!t || !s->task || !s->task->dag) return CDMPP_OK;
    CD_TRY(cd_signature_of(a, s->task->dag, r->target, r->has_hardware ? &r->hardware : s->task->has_hardware ? &s->task->hardware : NULL, &of, err));
    for (size_t i = 0; i < of.n; i++)
        if (cd_trained_on_lacks(t, s->which.device, of.mark[i]) && !has(marks->n ? marks->p : "", of.mark[i]))
            cd_buf_putf(marks, "%s%s", marks->n ? CD_SIGNATURE_BETWEEN : "", of.mark[i]);
    return marks->oom ? CD_FAIL(err, ENOMEM, "marks") : CDMPP_OK;
}
