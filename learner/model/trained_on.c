/* Marks of training programs as a sorted list, with a table of the devices that saw them. */
#include "learner/model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MARK = 65536 };

/* ---- reasons ---- */
const char *cd_trained_on_reason(uint32_t bit) {
    static const char *const name[CD_N_UNLIKE] = {
#define CD_X(id, text) text,
        CD_UNLIKE_MAP(CD_X)
#undef CD_X
    };
    return bit < CD_N_UNLIKE ? name[bit] : "?";
}

void cd_trained_on_shares(const double part_s[CD_N_UNLIKE], double all_s,
                          char to[CD_UNLIKE_SHARES]) {
    *to = 0;
    for (uint32_t b = 0; b < CD_N_UNLIKE; b++) {
        const size_t n = strlen(to);
        if (part_s[b] > 0 && part_s[b] >= 0.01 * all_s)
            (void)snprintf(to + n, CD_UNLIKE_SHARES - n, "%s%s %.0f %%", n ? ", " : "",
                           cd_trained_on_reason(b), 100 * part_s[b] / all_s);
    }
}

void cd_trained_on_add(cd_unlike *u, uint32_t bit, const char *detail, size_t n) {
    const size_t at = strlen(u->text);
    if (u->reason >> bit & 1) return; /* the first of a kind stands for all */
    u->reason |= 1u << bit;
    (void)snprintf(u->text + at, sizeof u->text - at, "%s%s%s%.*s", at ? ", " : "",
                   cd_trained_on_reason(bit), n ? " " : "", (int)n, detail);
}

/* ---- classes of marks ---- */
static const struct {
    const char *name; /* with its blank: the beginning of a mark */
    uint32_t bit;
    bool own;  /* compared with what the device itself saw */
    bool told; /* only where the device's targets say something of this reason */
    int words; /* of the mark that the reason quotes */
} class[] = {{"dtype ", CD_UNLIKE_BIT_DTYPE, true, false, 1},
             {"operator ", CD_UNLIKE_BIT_OPERATOR, false, false, 2},
             {"typed ", CD_UNLIKE_BIT_DTYPE, false, false, 3},
             {"intrinsic ", CD_UNLIKE_BIT_INTRINSIC, false, false, 9},
             {"threads ", CD_UNLIKE_BIT_THREADS, true, true, 1},
             {"vector ", CD_UNLIKE_BIT_FEATURE, true, true, 0},
             {"feature ", CD_UNLIKE_BIT_FEATURE, true, true, 1}};
enum { N_CLASS = sizeof class / sizeof *class, TYPED = 2 };

static int class_of(const char *mark) {
    for (int k = 0; k < N_CLASS; k++)
        if (!strncmp(mark, class[k].name, strlen(class[k].name))) return k;
    return -1;
}

/* The quoted words of a mark, behind the name of its class; vectors with it: "vector 64". */
static cd_str quoted(const char *mark, int k) {
    const char *beg = class[k].words ? mark + strlen(class[k].name) : mark;
    size_t n = 0;
    for (int w = 0; beg[n]; n++)
        if (beg[n] == ' ' && ++w == class[k].words) break;
    return (cd_str){beg, n};
}

/* ---- checking ---- */
static bool any_seen(const cd_trained_on *t, size_t i) {
    for (size_t d = 0; d < t->n_device; d++)
        if (t->seen[d * t->n + i]) return true;
    return false;
}

static bool device_tells(const cd_trained_on *t, uint32_t device, int k) {
    for (size_t i = 0; i < t->n; i++)
        if (t->seen[device * t->n + i] && class_of(t->mark[i]) == k) return true;
    return false;
}

static bool is_new(const cd_trained_on *t, uint32_t device, const char *mark, int k) {
    const char **at = bsearch(&mark, t->mark, t->n, sizeof *t->mark, cd_sort_by_text);
    const size_t i = at ? (size_t)(at - t->mark) : 0;
    if (at && (class[k].own ? t->seen[device * t->n + i] != 0 : any_seen(t, i))) return false;
    return !class[k].told || device_tells(t, device, k) ||
           (class[k].bit == CD_UNLIKE_BIT_FEATURE && device_tells(t, device, N_CLASS - 2));
}

bool cd_trained_on_saw(const cd_trained_on *t, uint32_t device) {
    for (size_t i = 0; i < t->n; i++)
        if (t->seen[device * t->n + i]) return true;
    return false;
}

/* In the order of the classes. A reduction that is new is new with its types too: that says nothing
 * of them. A device that saw nothing is new itself: that all types are new to it says nothing
 * more. */
void cd_trained_on_check(const cd_trained_on *t, uint32_t device, bool stranger,
                         const cd_signature *s, cd_unlike *out) {
    const bool saw = cd_trained_on_saw(t, device);
    if (!saw && !stranger) cd_trained_on_add(out, CD_UNLIKE_BIT_DEVICE, "", 0);
    for (int k = 0; k < N_CLASS; k++) {
        if ((k == TYPED && out->reason & CD_UNLIKE_OPERATOR) || (class[k].own && !saw)) continue;
        if (stranger && class[k].bit == CD_UNLIKE_BIT_FEATURE) continue;
        for (size_t i = 0; i < s->n; i++) {
            if (class_of(s->mark[i]) != k || !is_new(t, device, s->mark[i], k)) continue;
            const cd_str q = quoted(s->mark[i], k);
            cd_trained_on_add(out, class[k].bit, q.p, q.n);
        }
    }
}

/* An interval that is wider already stays. */
static void widen(const cd_unlike_law *l, double latency_s, double *low_s, double *high_s,
                  double *rel_std) {
    if (!l->n) {
        *low_s = *high_s = *rel_std = (double)NAN;
        return;
    }
    *low_s = fmin(*low_s, latency_s * exp(l->low));
    *high_s = fmax(*high_s, latency_s * exp(l->high));
    *rel_std = fmax(*rel_std, (l->high - l->low) / (2 * 1.645));
}

void cd_trained_on_widen(const cd_trained_on *t, uint32_t reason, double latency_s, double *low_s,
                         double *high_s, double *rel_std) {
    for (uint32_t b = 0; t && b < CD_N_UNLIKE; b++)
        if (reason & CD_UNLIKE_LEARNED & 1u << b && !isnan(*low_s))
            widen(&t->law[b], latency_s, low_s, high_s, rel_std);
}

double cd_trained_on_shift(const cd_trained_on *t, const double part[CD_N_UNLIKE]) {
    double sum = 0;
    for (uint32_t b = 0; t && b < CD_N_UNLIKE; b++)
        if (CD_UNLIKE_LEARNED & 1u << b && part[b] > 0)
            sum = hypot(sum, fmin(part[b], 1) * t->law[b].shift);
    return sum;
}

/* ---- making ---- */
static cdmpp_status all_marks(cd_arena *a, const char *const *text, size_t n, cd_trained_on *t,
                              cdmpp_err *err) {
    size_t cap = 0, m = 0;
    for (size_t i = 0; i < n; i++) {
        const char *p = text[i];
        for (cd_str mark; cd_signature_next(&p, &mark);) {
            char *copy = cd_str_dup(a, mark);
            if (!copy || CD_GROW_IN(a, t->mark, t->n, cap))
                return CD_FAIL(err, ENOMEM, "marks of %zu kinds", n);
            t->mark[t->n++] = copy;
        }
    }
    qsort(t->mark, t->n, sizeof *t->mark, cd_sort_by_text);
    for (size_t i = 0; i < t->n; i++)
        if (!m || strcmp(t->mark[m - 1], t->mark[i]) != 0) t->mark[m++] = t->mark[i];
    t->n = m;
    return CDMPP_OK;
}

cdmpp_status cd_trained_on_make(cd_arena *a, const char *const *text, const uint32_t *device,
                                size_t n, size_t n_device, cd_trained_on **out, cdmpp_err *err) {
    *out = NULL;
    for (size_t i = 0; i < n; i++)
        if (!*text[i]) return CDMPP_OK;
    if (!n) return CDMPP_OK;
    cd_trained_on *t = CD_NEW(a, cd_trained_on);
    if (!t) return CD_FAIL(err, ENOMEM, "marks of %zu kinds", n);
    t->n_device = n_device;
    CD_TRY(all_marks(a, text, n, t, err));
    t->seen = CD_NEWN(a, uint8_t, n_device * t->n + 1);
    if (!t->seen) return CD_FAIL(err, ENOMEM, "marks of %zu kinds", n);
    for (size_t i = 0; i < n; i++) {
        const char *p = text[i];
        for (cd_str mark; cd_signature_next(&p, &mark);) {
            const char *key = cd_str_dup(a, mark);
            if (!key) return CD_FAIL(err, ENOMEM, "marks of %zu kinds", n);
            const char **at = bsearch(&key, t->mark, t->n, sizeof *t->mark, cd_sort_by_text);
            if (at) t->seen[device[i] * t->n + (size_t)(at - t->mark)] = 1;
        }
    }
    *out = t;
    return CDMPP_OK;
}

bool cd_trained_on_lacks(const cd_trained_on *t, uint32_t device, const char *mark) {
    const int k = class_of(mark);
    const char **at = bsearch(&mark, t->mark, t->n, sizeof *t->mark, cd_sort_by_text);
    return k >= 0 && class[k].own && (!at || !t->seen[device * t->n + (size_t)(at - t->mark)]);
}

cdmpp_status cd_trained_on_more(cd_arena *a, const cd_trained_on *old, uint32_t device,
                                uint32_t like, const char *const *more, size_t n,
                                cd_trained_on **out, cdmpp_err *err) {
    cd_trained_on *t = CD_NEW(a, cd_trained_on);
    const size_t cap = old->n + n;
    if (!t || !(*t = *old, t->mark = CD_NEWN(a, const char *, cap + 1)))
        return CD_FAIL(err, ENOMEM, "marks");
    t->n_device += device == old->n_device;
    memcpy(t->mark, old->mark, old->n * sizeof *t->mark);
    if (n) memcpy(t->mark + old->n, more, n * sizeof *t->mark);
    qsort(t->mark, cap, sizeof *t->mark, cd_sort_by_text);
    t->n = 0;
    for (size_t i = 0; i < cap; i++)
        if (!t->n || strcmp(t->mark[t->n - 1], t->mark[i]) != 0) t->mark[t->n++] = t->mark[i];
    if (!(t->seen = CD_NEWN(a, uint8_t, t->n_device * t->n + 1)))
        return CD_FAIL(err, ENOMEM, "marks");
    memset(t->seen, 0, t->n_device * t->n);
    for (size_t i = 0; i < old->n; i++) {
        const size_t at = (size_t)((const char **)bsearch(&old->mark[i], t->mark, t->n,
                                                          sizeof *t->mark, cd_sort_by_text) -
                                   t->mark);
        for (size_t d = 0; d < t->n_device; d++)
            t->seen[d * t->n + at] = old->seen[(d < old->n_device ? d : like) * old->n + i];
    }
    for (size_t i = 0; i < n; i++)
        t->seen[device * t->n + (size_t)((const char **)bsearch(&more[i], t->mark, t->n,
                                                                sizeof *t->mark, cd_sort_by_text) -
                                         t->mark)] = 1;
    *out = t;
    return CDMPP_OK;
}

/* ---- JSON ---- */
static void write_laws(const cd_trained_on *t, cd_buf *b) {
    const char *before = "";
    cd_buf_puts(b, "{\"laws\":{");
    for (uint32_t k = 0; k < CD_N_UNLIKE; k++) {
        const cd_unlike_law *l = &t->law[k];
        if (!l->n) continue;
        cd_buf_putf(b, "%s\"%s\":{\"n\":%u,\"low\":%.9g,\"high\":%.9g,\"shift\":%.9g}", before,
                    cd_trained_on_reason(k), l->n, l->low, l->high, l->shift);
        before = ",";
    }
    cd_buf_puts(b, "},");
}

void cd_trained_on_write(const cd_trained_on *t, cd_buf *b) {
    write_laws(t, b);
    cd_buf_putf(b, "\"range\":%.9g,\"marks\":[", t->range);
    for (size_t i = 0; i < t->n; i++) {
        if (i) cd_buf_puts(b, ",");
        cd_buf_put_json_str(b, t->mark[i], strlen(t->mark[i]));
    }
    cd_buf_puts(b, "],\"devices\":[");
    for (size_t d = 0; d < t->n_device; d++) {
        bool any = false;
        cd_buf_puts(b, d ? ",[" : "[");
        for (size_t i = 0; i < t->n; i++) {
            if (!t->seen[d * t->n + i]) continue;
            cd_buf_putf(b, "%s%zu", any ? "," : "", i);
            any = true;
        }
        cd_buf_puts(b, "]");
    }
    cd_buf_puts(b, "]}");
}

static cdmpp_status read_marks(const cd_json *v, cd_arena *a, cd_trained_on *t, cdmpp_err *err) {
    const cd_json *list, *x;
    cd_str s;
    CD_TRY(cd_json_need(v, "marks", &list, err));
    CD_TRY(cd_json_arr(list, 1, &x, err));
    if (list->n > MAX_MARK)
        return CD_FAIL(err, ERANGE, "expected at most %d, found %u", MAX_MARK, list->n);
    t->mark = CD_NEWN(a, const char *, list->n);
    if (!t->mark) return CD_FAIL(err, ENOMEM, "%u marks", list->n);
    for (; x; x = x->next) {
        CD_TRY(cd_json_str(x, &s, err));
        if (!(t->mark[t->n++] = cd_str_dup(a, s))) return CD_FAIL(err, ENOMEM, "%u marks", list->n);
        if (t->n > 1 && strcmp(t->mark[t->n - 2], t->mark[t->n - 1]) >= 0)
            return CD_FAIL(err, ESCHEMA, "expected rising texts");
    }
    return CDMPP_OK;
}

static cdmpp_status read_devices(const cd_json *v, cd_arena *a, cd_trained_on *t, cdmpp_err *err) {
    const cd_json *list, *x, *y;
    int64_t k;
    CD_TRY(cd_json_need(v, "devices", &list, err));
    CD_TRY(cd_json_arr(list, 1, &x, err));
    if (list->n != t->n_device)
        return CD_FAIL(err, ESCHEMA, "expected %zu lists, found %u", t->n_device, list->n);
    t->seen = CD_NEWN(a, uint8_t, t->n_device * t->n);
    if (!t->seen) return CD_FAIL(err, ENOMEM, "marks of %zu devices", t->n_device);
    for (uint8_t *row = t->seen; x; x = x->next, row += t->n) {
        CD_TRY(cd_json_arr(x, 0, &y, err));
        for (; y; y = y->next) {
            CD_TRY(cd_json_int(y, 0, (int64_t)t->n - 1, &k, err));
            row[k] = 1;
        }
    }
    return CDMPP_OK;
}

static cdmpp_status read_law(const cd_json *v, cd_unlike_law *l, cdmpp_err *err) {
    int64_t n;
    const cd_json *count;
    CD_TRY(cd_json_need(v, "n", &count, err));
    CD_TRY(cd_err_key(err, cd_json_int(count, 1, INT32_MAX, &n, err), "n"));
    l->n = (uint32_t)n;
    CD_TRY(cd_json_need_real(v, "low", -20, 0, &l->low, err));
    CD_TRY(cd_json_need_real(v, "high", 0, 20, &l->high, err));
    return cd_json_need_real(v, "shift", 0, 20, &l->shift, err);
}

/* Files of earlier versions have one interval, of operators that were left out, or a factor of ten
 * where none could be. Of programs out of range they know what the interval of a program says by
 * itself. */
static cdmpp_status read_old_law(const cd_json *v, cd_unlike_law law[CD_N_UNLIKE], cdmpp_err *err) {
    enum { FEW = 3 };
    static const double ten = 2.302585;
    cd_unlike_law *l = &law[CD_UNLIKE_BIT_OPERATOR];
    const cd_json *list, *x;
    law[CD_UNLIKE_BIT_RANGE].n = FEW;
    CD_TRY(cd_json_need(v, "unlike", &list, err));
    CD_TRY(cd_json_arr(list, 2, &x, err));
    CD_TRY(cd_json_real(x, &l->low, err));
    CD_TRY(cd_json_real(x->next, &l->high, err));
    if (!(l->low >= -20 && l->low <= 0 && l->high >= 0 && l->high <= 20))
        return cd_err_key(err, CD_FAIL(err, ERANGE, "%g to %g", l->low, l->high), "unlike");
    if (l->high > l->low && (fabs(l->low + ten) > 1e-5 || fabs(l->high - ten) > 1e-5))
        l->n = FEW, l->shift = (l->high - l->low) / (2 * 1.645);
    return CDMPP_OK;
}

static cdmpp_status read_laws(const cd_json *v, cd_trained_on *t, cdmpp_err *err) {
    const cd_json *laws = cd_json_get(v, "laws");
    if (!laws) return read_old_law(v, t->law, err);
    for (uint32_t k = 0; k < CD_N_UNLIKE; k++) {
        const cd_json *l = cd_json_get(laws, cd_trained_on_reason(k));
        if (l)
            CD_TRY(cd_err_key(
                err, cd_err_key(err, read_law(l, &t->law[k], err), cd_trained_on_reason(k)),
                "laws"));
    }
    return CDMPP_OK;
}

cdmpp_status cd_trained_on_read(const cd_json *v, size_t n_device, cd_arena *a, cd_trained_on **out,
                                cdmpp_err *err) {
    cd_trained_on *t = CD_NEW(a, cd_trained_on);
    if (!t) return CD_FAIL(err, ENOMEM, "trained_on");
    t->n_device = n_device;
    CD_TRY(cd_err_key(err, read_marks(v, a, t, err), "marks"));
    CD_TRY(cd_err_key(err, read_devices(v, a, t, err), "devices"));
    CD_TRY(read_laws(v, t, err));
    if (cd_json_get(v, "range")) CD_TRY(cd_json_need_real(v, "range", 0, 1e9, &t->range, err));
    *out = t;
    return CDMPP_OK;
}
