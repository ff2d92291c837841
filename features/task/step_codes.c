/* Steps as one list of numbers: what a data set keeps of them, and what a network reads that looks
 * at nothing but the schedule. */
#include <string.h>

#include "features/task/task_internal.h"

enum { HEAD = 2 }; /* kind and number of values */

/* ---- names ---- */
static bool scope_number(cd_str s, int32_t *out) {
    static const char *const scope[] = {"local", "shared", "global", "warp"};
    for (size_t k = 0; k < sizeof scope / sizeof *scope; k++)
        if (cd_str_is(s, scope[k])) {
            *out = (int32_t)k + 1;
            return true;
        }
    return false;
}

static bool unroll_number(cd_str s, int32_t *out) {
    static const char unroll[] = "auto_unroll_max_step$";
    const size_t n = sizeof unroll - 1;
    int64_t v = 0;
    if (s.n <= n || memcmp(s.p, unroll, n) != 0) return false;
    for (size_t k = n; k < s.n; k++) {
        if (s.p[k] < '0' || s.p[k] > '9') return false;
        v = v * 10 + (s.p[k] - '0');
        if (v > INT32_MAX) return false;
    }
    *out = (int32_t)v;
    return true;
}

/* A memory scope has a place in a list, the unroll pragma its limit, the other pragma -1. No name
 * gets the number of another. */
static cdmpp_status name_number(cd_str s, int32_t *out, cdmpp_err *err) {
    if (scope_number(s, out) || unroll_number(s, out)) return CDMPP_OK;
    *out = -1;
    if (cd_str_is(s, "debug_skip_region")) return CDMPP_OK;
    return CD_FAIL(err, EUNSUPPORTED, "the name \"%.*s\" of a step has no number",
                   cd_str_shown(s, 64), s.p);
}

/* ---- a step ---- */
static uint32_t count_values(const cd_record_step *t) {
    return 1 + (uint32_t)strlen(cd_record_step_args(t->kind)) + t->n_list;
}

static bool is_list(char letter) { return letter == 'l' || letter == 'f'; }

/* Stage, then the arguments in the order of the record; a list takes the place of its letter. */
static cdmpp_status put_values(const cd_record_step *t, int32_t *v, uint32_t *n, cdmpp_err *err) {
    uint32_t k = 0, i = 0;
    v[k++] = t->stage;
    for (const char *sig = cd_record_step_args(t->kind); *sig; sig++) {
        if (*sig == 's') CD_TRY(name_number(t->s, &v[k++], err));
        else if (!is_list(*sig)) v[k++] = t->i[i++];
        else
            for (uint32_t j = 0; j < t->n_list; j++) v[k++] = t->list[j];
    }
    *n = k;
    return CDMPP_OK;
}

cdmpp_status cd_step_codes(cd_arena *a, const cd_record *r, int32_t **code, uint32_t *n,
                           cdmpp_err *err) {
    size_t most = 1, at = 0;
    for (uint32_t k = 0; k < r->n_step; k++) most += HEAD + (size_t)count_values(&r->step[k]);
    int32_t *v = most <= INT32_MAX ? CD_NEWN(a, int32_t, most) : NULL;
    if (!v) return CD_FAIL(err, ENOMEM, "numbers of %u steps", r->n_step);
    for (uint32_t k = 0; k < r->n_step; k++) {
        uint32_t n_value = 0;
        CD_TRY(put_values(&r->step[k], v + at + HEAD, &n_value, err));
        v[at] = (int32_t)r->step[k].kind;
        v[at + 1] = (int32_t)n_value;
        at += HEAD + n_value;
    }
    *code = v;
    *n = (uint32_t)at;
    return CDMPP_OK;
}

bool cd_step_codes_next(const int32_t **code, size_t *n, cd_step_code *out) {
    const int32_t *v = *code;
    if (*n < HEAD || v[0] < 0 || v[0] >= CD_RECORD_STEP_COUNT || v[1] < 1 ||
        (size_t)v[1] > *n - HEAD)
        return false;
    *out = (cd_step_code){(cd_record_step_kind)v[0], (uint32_t)v[1], v + HEAD};
    *code += HEAD + v[1];
    *n -= HEAD + (size_t)v[1];
    return true;
}

bool cd_step_codes_sound(const int32_t *code, size_t n) {
    cd_step_code step;
    while (cd_step_codes_next(&code, &n, &step)) {
    }
    return n == 0;
}
