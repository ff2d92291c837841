/* Makes variants of a schedule by changing one number of one step. Whether a change is valid is not
 * decided here: a variant that does not lower is left out, so that the rules of lowering stand in
 * one place. */
#include "profiler/records/schedule_variants.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DIVISORS = 64, MAX_PLACE = 32 };

typedef struct {
    cd_arena *a;
    cd_program *p;
    const cd_task *task;
    const cd_record *base;
    cd_variant *v; /* (n, cap) */
    size_t n, cap;
    int factor;
    bool oom;
} varier;

/* ---- keeping ---- */

static void push(varier *w, const cd_variant *v) {
    if (CD_GROW_IN(w->a, w->v, w->n, w->cap)) w->oom = true;
    else w->v[w->n++] = *v;
}

/* The base's steps, to be changed in one place. */
static cd_record_step *steps(varier *w) {
    cd_record_step *s = cd_arena_alloc(w->a, w->base->n_step + 1, sizeof *s);
    if (!s) w->oom = true;
    else if (w->base->n_step) memcpy(s, w->base->step, w->base->n_step * sizeof *s);
    return s;
}

static int32_t *list(varier *w, cd_record_step *t) {
    int32_t *p = cd_arena_alloc(w->a, t->n_list + 1, sizeof *p);
    if (!p) {
        w->oom = true;
        return NULL;
    }
    if (t->n_list) memcpy(p, t->list, t->n_list * sizeof *p);
    t->list = p;
    return p;
}

static void keep(varier *w, const cd_record_step *s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The variant with these steps, if it lowers; fmt: its value. */
static void keep(varier *w, const cd_record_step *s, const char *fmt, ...) {
    char text[64];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    cd_variant v = {.factor = w->factor, .record = *w->base};
    char *value = cd_arena_alloc(w->a, (size_t)n + 1, 1);
    if (!value || n < 0) {
        w->oom = true;
        return;
    }
    memcpy(value, text, (size_t)n + 1);
    v.value = value;
    v.record.step = s;
    const cdmpp_status st = cd_program_lower(w->p, w->task, &v.record, NULL);
    if (st == CDMPP_ENOMEM) w->oom = true;
    if (!st) push(w, &v);
}

/* ---- factors: k is a step ---- */

/* Length j of split k: every divisor of the room that the other lengths leave. */
static void tile_length(varier *w, uint32_t k, uint32_t j) {
    const cd_record_step *t = &w->base->step[k];
    int64_t room = t->i[1]; /* what the length and the outermost part have together */
    for (uint32_t i = 0; i < t->n_list; i++)
        if (i != j && t->list[i] > 0) room /= t->list[i];
    for (int32_t f = 1, n = 0; f <= room && n < MAX_DIVISORS && !w->oom; f++) {
        if (room % f || f == t->list[j]) continue;
        cd_record_step *s = steps(w);
        int32_t *len = s ? list(w, &s[k]) : NULL;
        if (!len) return;
        len[j] = f;
        keep(w, s, "step%u[%u]=%d", k, j, f);
        n++;
    }
}

static void vary_tile(varier *w, uint32_t k) {
    const cd_record_step *t = &w->base->step[k];
    for (uint32_t j = 0; t->kind == CD_RECORD_STEP_SP && t->i[1] > 0 && j < t->n_list; j++)
        tile_length(w, k, j);
}

static void vary_reorder(varier *w, uint32_t k) {
    for (uint32_t j = 0;
         w->base->step[k].kind == CD_RECORD_STEP_RE && j + 1 < w->base->step[k].n_list; j++) {
        cd_record_step *s = steps(w);
        int32_t *order = s ? list(w, &s[k]) : NULL;
        if (!order) return;
        const int32_t x = order[j];
        order[j] = order[j + 1];
        order[j + 1] = x;
        keep(w, s, "step%u %u<>%u", k, j, j + 1);
    }
}

/* At every iterator of the target stage; most of them do not lower and are left out there. */
static void vary_compute_at(varier *w, uint32_t k) {
    if (w->base->step[k].kind != CD_RECORD_STEP_CA) return;
    for (int32_t at = 0; at < MAX_PLACE && !w->oom; at++) {
        cd_record_step *s = steps(w);
        if (!s) return;
        if (at == w->base->step[k].i[1]) continue;
        s[k].i[1] = at;
        keep(w, s, "step%u it %d", k, at);
    }
    cd_record_step *s = steps(w);
    if (!s) return;
    s[k] = (cd_record_step){.kind = CD_RECORD_STEP_CR, .stage = s[k].stage};
    keep(w, s, "step%u root", k);
}

static void vary_fuse(varier *w, uint32_t k) {
    cd_record_step *s = w->base->step[k].kind == CD_RECORD_STEP_CI ? steps(w) : NULL;
    if (!s) return;
    s[k].kind = CD_RECORD_STEP_CR;
    keep(w, s, "step%u apart", k);
}

static void without(varier *w, uint32_t k, int32_t annotation) {
    const cd_record_step *t = &w->base->step[k];
    cd_record_step *s = t->kind == CD_RECORD_STEP_AN && t->i[1] == annotation ? steps(w) : NULL;
    if (!s) return;
    s[k].i[1] = 0;
    keep(w, s, "step%u off", k);
}

enum { AN_VECTORIZE = 2, AN_PARALLEL = 3 };
static void vary_vectorize(varier *w, uint32_t k) { without(w, k, AN_VECTORIZE); }
static void vary_parallel(varier *w, uint32_t k) { without(w, k, AN_PARALLEL); }

static bool is_unroll(const cd_record_step *t) {
    static const char head[] = "auto_unroll_max_step$";
    return t->kind == CD_RECORD_STEP_PR && t->s.n >= sizeof head &&
           !memcmp(t->s.p, head, sizeof head - 1);
}

/* ---- factors of the whole program ---- */

static void vary_unroll(varier *w) {
    static const char *const most[] = {"auto_unroll_max_step$0", "auto_unroll_max_step$16",
                                       "auto_unroll_max_step$64", "auto_unroll_max_step$512",
                                       "auto_unroll_max_step$1024"};
    for (size_t m = 0; m < sizeof most / sizeof *most && !w->oom; m++) {
        cd_record_step *s = steps(w);
        bool changed = false;
        for (uint32_t k = 0; s && k < w->base->n_step; k++) {
            if (!is_unroll(&s[k]) || cd_str_is(s[k].s, most[m])) continue;
            s[k].s = (cd_str){most[m], strlen(most[m])};
            changed = true;
        }
        if (changed) keep(w, s, "%s", strchr(most[m], '$') + 1);
    }
}

static void vary_threads(varier *w, int most) {
    for (int n = 1; n <= most && !w->oom; n++) {
        const size_t before = w->n;
        keep(w, w->base->step, "%d", n);
        if (w->n > before) w->v[before].threads = n;
    }
}

static void vary_cache(varier *w) {
    for (size_t mb = 1; mb <= 128; mb *= 2) {
        const size_t n = w->n;
        keep(w, w->base->step, "%zu MB", mb);
        if (w->n > n) w->v[n].others_bytes = mb << 20;
    }
    const size_t before = w->n;
    keep(w, w->base->step, "cold");
    if (w->n > before) w->v[before].cold = true;
}

static void (*const by_step[CD_VARY_COUNT])(varier *,
                                            uint32_t) = {[CD_VARY_TILE] = vary_tile,
                                                         [CD_VARY_REORDER] = vary_reorder,
                                                         [CD_VARY_COMPUTE_AT] = vary_compute_at,
                                                         [CD_VARY_FUSE] = vary_fuse,
                                                         [CD_VARY_VECTORIZE] = vary_vectorize,
                                                         [CD_VARY_PARALLEL] = vary_parallel};

bool cd_schedule_variants_mask(const char *text, unsigned *mask, cd_str *bad) {
    *mask = text ? 0 : ~0U;
    for (const char *s = text; s && *s;) {
        const size_t n = strcspn(s, ",");
        const int k = cd_enum_names_find(CD_VARY_FACTORS, (cd_str){s, n});
        *bad = (cd_str){s, n};
        if (k < 0) return false;
        *mask |= 1U << k;
        s += n + (s[n] == ',');
    }
    return true;
}

/* Factor by factor, so that the order of variants is the same on any machine. */
cdmpp_status cd_schedule_variants(cd_arena *a, cd_program *p, const cd_task *task,
                                  const cd_record *r, unsigned mask, int max_threads,
                                  cd_variant **out, size_t *n, cdmpp_err *err) {
    varier w = {.a = a, .p = p, .task = task, .base = r, .factor = CD_VARY_BASE};
    CD_TRY(cd_program_lower(p, task, r, err));
    keep(&w, r->step, "base");
    for (w.factor = 0; w.factor < CD_VARY_COUNT && !w.oom; w.factor++) {
        if (!(mask >> w.factor & 1)) continue;
        for (uint32_t k = 0; by_step[w.factor] && k < r->n_step && !w.oom; k++)
            by_step[w.factor](&w, k);
        if (w.factor == CD_VARY_UNROLL) vary_unroll(&w);
        if (w.factor == CD_VARY_THREADS) vary_threads(&w, max_threads);
        if (w.factor == CD_VARY_CACHE) vary_cache(&w);
    }
    if (w.oom) return CD_FAIL(err, ENOMEM, "variants");
    *out = w.v;
    *n = w.n;
    return CDMPP_OK;
}
