/* Tasks that a model was trained on, by name: hashes in its header, which training writes
 * (learner/train/selection_bias.h). */
#include <stdlib.h>
#include <string.h>

#include "dataset/split/split.h"
#include "learner/model/model.h"

enum { DIGITS = 16 };

/* 64-bit hashes in hex, ascending, so that a look-up can bisect. */
cdmpp_status cd_trained_tasks_read(const cd_json *list, cd_trained_tasks *out, cdmpp_err *err) {
    const cd_json *v;
    CD_TRY(cd_json_arr(list, 0, &v, err));
    out->v = cd_mem_zalloc((size_t)list->n + 1, sizeof *out->v);
    if (!out->v) return CD_FAIL(err, ENOMEM, "%u tasks", list->n);
    for (; v; v = v->next) {
        cd_str s;
        char digits[DIGITS + 1] = "", *end = digits;
        CD_TRY(cd_json_str(v, &s, err));
        if (s.n == DIGITS) memcpy(digits, s.p, DIGITS);
        out->v[out->n] = strtoull(digits, &end, DIGITS);
        if (end != digits + DIGITS)
            return CD_FAIL(err, ESCHEMA, "expected %d hex digits, found \"%.*s\"", DIGITS,
                           cd_str_shown(s, 24), s.p);
        if (out->n && out->v[out->n] <= out->v[out->n - 1])
            return CD_FAIL(err, ESCHEMA, "expected names in their order");
        out->n++;
    }
    return CDMPP_OK;
}

cdmpp_status cd_trained_tasks_of(const cd_model *m, cd_trained_tasks *out, cdmpp_err *err) {
    const char *text = cd_model_header(m);
    const cd_json *header, *best, *list;
    cd_arena a = {0};
    *out = (cd_trained_tasks){0};
    cdmpp_status st = cd_json_parse(&a, text, strlen(text), &header, err);
    if (!st && (best = cd_json_get(header, "best")) && (list = cd_json_get(best, "tasks")))
        st = cd_err_key(err, cd_trained_tasks_read(list, out, err), "best.tasks");
    cd_arena_free(&a);
    return st;
}

void cd_trained_tasks_free(cd_trained_tasks *t) {
    cd_mem_free(t->v);
    *t = (cd_trained_tasks){0};
}

bool cd_trained_tasks_knows(const cd_trained_tasks *t, const char *key, const char *device) {
    cd_buf name = {0};
    cd_buf_putf(&name, "%s\n%s", key, device);
    const uint64_t want = name.oom ? 0 : cd_stable_id_name(name.p);
    cd_buf_free(&name);
    size_t lo = 0, hi = t->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (t->v[mid] < want) lo = mid + 1;
        else hi = mid;
    }
    return lo < t->n && t->v[lo] == want;
}
