/* Prints a measured sweep: CSV, JSON, a table for people, and a plot (SVG) with one bar a
 * variant. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "profiler/records/schedule_sweep.h"
#include "profiler/records/schedule_sweep_internal.h"
#include "profiler/records/schedule_variants.h"

/* Measures the variants of a sweep in frames, and compares each with the base before and behind its
 * frame. */

enum { FRAME = 8, TRIES = 3 };
/* the base may change by so much between two measurements, or by what their intervals explain */
static const double SAME = 0.05;
/* times its least: more is no drift of clock and heat, something else runs */
static const double SLOW = 1.25;

static cdmpp_status measure_base(const cd_schedule_sweep_meter *m, cd_schedule_sweep_base *b,
                                 cdmpp_err *err) {
    CD_TRY(m->base(m->ctx, &b->last, err));
    if (b->last.error_no) return CDMPP_OK;
    const double s = b->last.time.median_s;
    b->low_s = b->n ? fmin(b->low_s, s) : s;
    b->high_s = b->n ? fmax(b->high_s, s) : s;
    b->n++;
    return CDMPP_OK;
}

/* An interval of 1 is that of a single repeat: nothing is known. */
static bool is_known(const cd_timing *t) { return t->ci < 1; }

static bool differ(const cd_timing *a, const cd_timing *b) {
    const double explained = is_known(a) && is_known(b) ? hypot(a->ci, b->ci) : 0;
    return fabs(log(a->median_s / b->median_s)) > fmax(SAME, explained);
}

/* The interval is that of the row's own time over that of both bases. */
static void compare(cd_schedule_sweep_row *r, const cd_timing *a, const cd_timing *b,
                    bool disturbed) {
    const cd_timing *t = &r->out.time;
    r->ratio = 0;
    r->ratio_low = r->ratio_high = NAN;
    r->base_s = sqrt(a->median_s * b->median_s);
    r->disturbed = disturbed;
    if (r->out.error_no) return;
    r->ratio = t->median_s / r->base_s;
    if (!is_known(t) || !is_known(a) || !is_known(b)) return;
    r->ratio_low =
        t->median_s * (1 - t->ci) / fmax(a->median_s * (1 + a->ci), b->median_s * (1 + b->ci));
    r->ratio_high =
        t->median_s * (1 + t->ci) / fmin(a->median_s * (1 - a->ci), b->median_s * (1 - b->ci));
}

/* Rows [at, at + n). */
static cdmpp_status frame(const cd_schedule_sweep_meter *m, cd_schedule_sweep_row *row, size_t at,
                          size_t n, cd_schedule_sweep_base *b, cdmpp_err *err) {
    for (int try = 1;; try++) {
        const cd_timing before = b->last.time;
        for (size_t i = at; i < at + n; i++) CD_TRY(m->variant(m->ctx, i, &row[i].out, err));
        CD_TRY(measure_base(m, b, err));
        if (b->last.error_no) return CDMPP_OK;
        const bool disturbed = differ(&before, &b->last.time) ||
                               fmax(before.median_s, b->last.time.median_s) > SLOW * b->low_s;
        for (size_t i = at; i < at + n; i++) compare(&row[i], &before, &b->last.time, disturbed);
        if (!disturbed || try == TRIES) return CDMPP_OK;
    }
}

cdmpp_status cd_schedule_sweep_frames(const cd_schedule_sweep_meter *m, cd_schedule_sweep_row *row,
                                      size_t n, cd_schedule_sweep_base *b, cdmpp_err *err) {
    /* where the base fails nobody knows them */
    for (size_t i = 0; i < n; i++) row[i].ratio_low = row[i].ratio_high = NAN;
    if (!b->n && !b->last.error_no) CD_TRY(measure_base(m, b, err));
    for (size_t at = 0; at < n; at += FRAME) {
        const size_t some = n - at < FRAME ? n - at : FRAME;
        if (b->last.error_no)
            for (size_t i = at; i < at + some; i++) CD_TRY(m->variant(m->ctx, i, &row[i].out, err));
        else CD_TRY(frame(m, row, at, some, b, err));
    }
    return CDMPP_OK;
}

void cd_schedule_sweep_mark(cd_schedule_sweep_row *row, size_t n, const cd_schedule_sweep_base *b) {
    for (size_t i = 0; i < n; i++) row[i].disturbed |= row[i].base_s > SLOW * b->low_s;
}

/* Makes variants of a schedule by changing one number of one step. Whether a change is valid is not
 * decided here: a variant that does not lower is left out, so that the rules of lowering stand in
 * one place. */

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

/* Makes and compiles the variants of one schedule in batches; how they are measured is
 * schedule_sweep_print.c's. Those with a cold cache have a measurer of their own, because a
 * measurer's timing policy is fixed when it is opened. */

enum { BATCH = 32 };

/* Name of a factor: "base", "tile" ... */
static const char *schedule_sweep_factor(int factor) {
    static const char *const name[CD_VARY_COUNT] = {"tile",     "reorder", "compute_at",
                                                    "fuse",     "unroll",  "vectorize",
                                                    "parallel", "threads", "cache"};
    return factor == CD_VARY_BASE ? "base" : name[factor];
}

/* ---- measuring ---- */

typedef struct {
    const cd_schedule_sweep_options *o;
    cd_record_maker maker;
    cd_measure *warm, *cold; /* cold NULL: cold variants are not measured */
} sweeper;

typedef struct {
    sweeper *w;
    cd_record_program job[BATCH + 1]; /* the last is the base */
    cd_measure_item item[BATCH + 1];
    const cd_variant *variant; /* (made) of the batch */
    cd_buf line;
} batch;

static cdmpp_status make(batch *b, size_t k, const cd_variant *v, cdmpp_err *err) {
    cd_record_maker *maker = &b->w->maker;
    cd_record r = v->record;
    /* another program: its loops are cut up otherwise */
    if (v->threads && r.has_hardware) r.hardware.num_cores = v->threads;
    cd_buf_clear(&b->line);
    CD_TRY(cd_record_write(&b->line, &r, err));
    const cd_recline l = {
        .path = schedule_sweep_factor(v->factor), .text = b->line.p, .len = b->line.n - 1};
    CD_TRY(cd_record_program_make(maker, &l, &b->job[k], err));
    CD_TRY(cd_record_program_code(maker, &b->job[k], err));
    b->item[k] = (cd_measure_item){.code = &b->job[k].code,
                                   .target = b->job[k].target,
                                   .threads = v->threads ? v->threads : b->w->o->threads,
                                   .others_bytes = v->others_bytes};
    if (b->job[k].why.code) cd_measure_result_fail(&b->item[k].out, 1, &b->job[k].why);
    return CDMPP_OK;
}

/* A program is compiled the same way for both caches. */
static cdmpp_status run(batch *b, size_t k, bool cold, cd_measure_result *out, cdmpp_err *err) {
    const volatile sig_atomic_t *stop = b->w->o->measure.stop;
    if (stop && *stop) return CD_FAIL(err, EINTERRUPTED, "while variants were measured");
    if (!b->item[k].out.error_no)
        CD_TRY(cd_measure_run(cold ? b->w->cold : b->w->warm, &b->item[k], err));
    *out = b->item[k].out;
    return CDMPP_OK;
}

static cdmpp_status run_base(void *ctx, cd_measure_result *out, cdmpp_err *err) {
    return run(ctx, BATCH, false, out, err);
}
static cdmpp_status run_variant(void *ctx, size_t k, cd_measure_result *out, cdmpp_err *err) {
    batch *b = ctx;
    return run(b, k, b->variant[k].cold, out, err);
}

/* At most BATCH variants. */
static cdmpp_status some(batch *b, const cd_variant *v, cd_schedule_sweep_row *row, size_t n,
                         cd_schedule_sweep_base *base, cdmpp_err *err) {
    const cd_schedule_sweep_meter meter = {b, run_base, run_variant};
    size_t made = 0;
    cdmpp_status st = CDMPP_OK;
    b->variant = v;
    while (!st && made < n) st = make(b, made, &v[made], err), made++;
    if (!st) st = cd_measure_build(b->w->warm, b->item, made, err);
    if (!st) st = cd_schedule_sweep_frames(&meter, row, n, base, err);
    for (size_t i = 0; i < made; i++) cd_record_program_free(&b->job[i]);
    return st;
}

/* Variant 0 is the base. */
static cdmpp_status measure_all(batch *b, const cd_variant *v, cd_schedule_sweep *s,
                                cdmpp_err *err) {
    CD_TRY(make(b, BATCH, &v[0], err));
    CD_TRY(cd_measure_build(b->w->warm, &b->item[BATCH], 1, err));
    for (size_t i = 0; i < s->n; i++) s->row[i] = (cd_schedule_sweep_row){.v = &v[i]};
    for (size_t i = 1; i < s->n; i += BATCH)
        CD_TRY(some(b, v + i, s->row + i, s->n - i < BATCH ? s->n - i : BATCH, &s->measured, err));
    if (s->n == 1)
        CD_TRY(cd_schedule_sweep_frames(&(cd_schedule_sweep_meter){b, run_base, run_variant}, NULL,
                                        0, &s->measured, err));
    cd_schedule_sweep_mark(s->row, s->n, &s->measured);
    s->row[0].out = s->measured.last;
    if (!s->row[0].out.error_no) s->row[0].ratio = s->row[0].ratio_low = s->row[0].ratio_high = 1;
    return CDMPP_OK;
}

static cdmpp_status measure_variants(sweeper *w, const cd_variant *v, cd_schedule_sweep *s,
                                     cdmpp_err *err) {
    batch *b = cd_mem_zalloc(1, sizeof *b);
    if (!b) return CD_FAIL(err, ENOMEM, "variants");
    b->w = w;
    const cdmpp_status st = measure_all(b, v, s, err);
    cd_record_program_free(&b->job[BATCH]);
    cd_buf_free(&b->line);
    cd_mem_free(b);
    return st;
}

static cdmpp_status open_measure(const cd_schedule_sweep_options *o, bool cold, cd_measure **out,
                                 cdmpp_err *err) {
    cd_measure_options mo = o->measure;
    mo.threads = o->threads;
    /* A worker that is pinned has `threads` processors: variants with other numbers of threads
     * would share them. */
    mo.pin = mo.pin && !(o->factors >> CD_VARY_THREADS & 1);
    mo.timing.cold = cold;
    mo.timing.cool = false;
    return cd_measure_open(&mo, out, err);
}

static cdmpp_status read_base(const cd_schedule_sweep_options *o, cd_arena *a, cd_record *base,
                              cdmpp_err *err) {
    cd_record_best_options bo = o->best;
    cd_record_best b;
    size_t n;
    bo.max = 1;
    CD_TRY(cd_record_best_read(a, &bo, &b, &n, err));
    if (n) return cd_record_read(a, b.text, b.len, base, err);
    return bo.workload ? CD_FAIL(err, ENODATA, "no record of workload %.150s", bo.workload)
                       : CD_FAIL(err, ENODATA, "no record to begin from");
}

static cdmpp_status sweep(sweeper *w, cd_schedule_sweep *s, cdmpp_err *err) {
    const cd_schedule_sweep_options *o = w->o;
    cd_variant *v;
    CD_TRY(open_measure(o, false, &w->warm, err)); /* first of all: they fork */
    if (o->factors >> CD_VARY_CACHE & 1) CD_TRY(open_measure(o, true, &w->cold, err));
    CD_TRY(cd_record_program_maker_open(&w->maker, o->task_file, o->n_task_file, o->log, err));
    CD_TRY(read_base(o, &s->arena, &s->base, err));
    const cd_str key = s->base.workload_key;
    const cd_task *task = cd_task_registry_find(w->maker.tasks, key);
    if (!task)
        return CD_FAIL(err, ENOTASK, "no task file defines %.*s", cd_str_shown(key, 100), key.p);
    CD_TRY(cd_schedule_variants(&s->arena, w->maker.program, task, &s->base, o->factors,
                                cd_backend_cpu_threads(""), &v, &s->n, err));
    s->row = cd_arena_zalloc(&s->arena, s->n, sizeof *s->row);
    if (!s->row) return CD_FAIL(err, ENOMEM, "%zu variants", s->n);
    return measure_variants(w, v, s, err);
}

cdmpp_status cd_schedule_sweep_run(const cd_schedule_sweep_options *o, cd_schedule_sweep *out,
                                   cdmpp_err *err) {
    sweeper w = {.o = o, .maker = {.target = o->target, .dialect = -1, .isa = o->measure.isa}};
    *out = (cd_schedule_sweep){0};
    const cdmpp_status st = sweep(&w, out, err);
    /* opened last, closed first: its supervisor holds what the other one's waits for */
    cd_measure_close(w.cold);
    cd_measure_close(w.warm);
    cd_record_program_maker_close(&w.maker);
    return st;
}

void cd_schedule_sweep_free(cd_schedule_sweep *s) { cd_arena_free(&s->arena); }

static cdmpp_status done(const cd_buf *b, cdmpp_err *err) {
    return b->oom ? CD_FAIL(err, ENOMEM, "report") : CDMPP_OK;
}

cdmpp_status cd_schedule_sweep_csv(cd_buf *b, const cd_schedule_sweep *s, cdmpp_err *err) {
    cd_buf_puts(b, "factor,value,median_s,ci,ratio,error_no,ratio_low,ratio_high,disturbed\n");
    for (size_t i = 0; i < s->n; i++) {
        const cd_schedule_sweep_row *r = &s->row[i];
        cd_buf_putf(b, "%s,", schedule_sweep_factor(r->v->factor));
        cd_csv_fields_put_bare(b, r->v->value, strlen(r->v->value));
        cd_buf_puts(b, ",");
        if (r->out.error_no) cd_buf_putf(b, ",,,%d,,,\n", r->out.error_no);
        else cd_buf_putf(b, "%.9g,%.4g,%.6g,0,", r->out.time.median_s, r->out.time.ci, r->ratio);
        if (r->out.error_no) continue;
        if (isfinite(r->ratio_low))
            cd_buf_putf(b, "%.6g,%.6g,%d\n", r->ratio_low, r->ratio_high, r->disturbed);
        else cd_buf_putf(b, ",,%d\n", r->disturbed);
    }
    return done(b, err);
}

cdmpp_status cd_schedule_sweep_json(cd_buf *b, const cd_schedule_sweep *s, cdmpp_err *err) {
    const cd_str key = s->base.workload_key;
    cd_buf_puts(b, "{\"workload_key\":");
    cd_buf_put_json_str(b, key.p, key.n < 255 ? key.n : 255);
    cd_buf_putf(b,
                ",\"base\":{\"measurements\":%u,\"least_s\":%.9g,\"most_s\":%.9g},\"variants\":[",
                s->measured.n, s->measured.low_s, s->measured.high_s);
    for (size_t i = 0; i < s->n; i++) {
        const cd_schedule_sweep_row *r = &s->row[i];
        cd_buf_putf(b, "%s{\"factor\":\"%s\",\"value\":", i ? "," : "",
                    schedule_sweep_factor(r->v->factor));
        cd_buf_put_json_str(b, r->v->value, strlen(r->v->value));
        cd_buf_putf(b, ",\"error_no\":%d", r->out.error_no);
        if (!r->out.error_no) {
            cd_buf_putf(b, ",\"median_s\":%.9g,\"ci\":%.4g,\"ratio\":%.6g,\"ratio_low\":",
                        r->out.time.median_s, r->out.time.ci, r->ratio);
            cd_buf_put_json_real(b, r->ratio_low);
            cd_buf_puts(b, ",\"ratio_high\":");
            cd_buf_put_json_real(b, r->ratio_high);
            cd_buf_putf(b, ",\"disturbed\":%s", r->disturbed ? "true" : "false");
        }
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]}");
    return done(b, err);
}

/* Of each factor the best and the worst variant, by the ratio. */
cdmpp_status cd_schedule_sweep_text(cd_buf *b, const cd_schedule_sweep *s, cdmpp_err *err) {
    if (s->measured.n)
        cd_buf_putf(b, "base %.4f to %.4f ms, measured %u times\n", s->measured.low_s * 1e3,
                    s->measured.high_s * 1e3, s->measured.n);
    cd_buf_puts(b, "factor      variants  failed  best           worst\n");
    for (int f = 0; f < CD_VARY_COUNT; f++) {
        const cd_schedule_sweep_row *best = NULL, *worst = NULL;
        size_t all = 0, failed = 0;
        for (size_t i = 0; i < s->n; i++) {
            if (s->row[i].v->factor != f) continue;
            all++;
            failed += s->row[i].out.error_no != 0;
            if (s->row[i].ratio > 0 && (!best || s->row[i].ratio < best->ratio)) best = &s->row[i];
            if (s->row[i].ratio > 0 && (!worst || s->row[i].ratio > worst->ratio))
                worst = &s->row[i];
        }
        if (!all) continue;
        cd_buf_putf(b, "%-10s  %8zu  %6zu", schedule_sweep_factor(f), all, failed);
        if (best)
            cd_buf_putf(b, "  %.3f%s %s   %.3f%s %s", best->ratio, best->disturbed ? "?" : "",
                        best->v->value, worst->ratio, worst->disturbed ? "?" : "", worst->v->value);
        cd_buf_puts(b, "\n");
    }
    return done(b, err);
}

/* ---- the plot ---- */

enum { ROW = 16, LEFT = 220, WIDE = 420, TOP = 40, DECADES = 2 };

/* Ratio 1 in the middle, DECADES powers of ten from edge to edge. */
static double place(double ratio) {
    const double x = LEFT + WIDE / 2.0 + log10(ratio) * WIDE / DECADES;
    return x < LEFT ? LEFT : x > LEFT + WIDE ? LEFT + WIDE : x;
}

static void put_bar(cd_buf *b, const cd_schedule_sweep_row *r, int y) {
    const double x = r->ratio > 0 ? place(r->ratio) : place(1), one = place(1);
    cd_buf_putf(b, "<text x='%d' y='%d' text-anchor='end'>%s ", LEFT - 6, y + 11,
                schedule_sweep_factor(r->v->factor));
    cd_escape_xml(b, cd_str_of(r->v->value));
    cd_buf_puts(b, "</text>");
    if (r->ratio > 0)
        cd_buf_putf(b,
                    "<rect x='%.1f' y='%d' width='%.1f' height='%d' fill='%s'/><text x='%d' "
                    "y='%d'>%.2f%s</text>\n",
                    x < one ? x : one, y + 2, fabs(x - one) + 1, ROW - 4,
                    r->ratio < 1 ? "#2a7" : "#c63", LEFT + WIDE + 6, y + 11, r->ratio,
                    r->disturbed ? "?" : "");
    else
        cd_buf_putf(b, "<text x='%d' y='%d'>error %d</text>\n", LEFT + WIDE + 6, y + 11,
                    r->out.error_no);
}

cdmpp_status cd_schedule_sweep_svg(cd_buf *b, const cd_schedule_sweep *s, cdmpp_err *err) {
    const int height = TOP + (int)s->n * ROW + 10;
    cd_buf_putf(b,
                "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
                "font-family='sans-serif' font-size='11'>\n",
                LEFT + WIDE + 80, height);
    cd_buf_puts(b, "<rect width='100%' height='100%' fill='white'/>");
    cd_buf_putf(b,
                "<text x='%d' y='16' text-anchor='middle'>time over the base's, log scale</text>\n",
                LEFT + WIDE / 2);
    static const double tick[] = {0.1, 0.2, 0.5, 1, 2, 5, 10};
    for (size_t k = 0; k < sizeof tick / sizeof *tick; k++)
        cd_buf_putf(b,
                    "<line x1='%.1f' x2='%.1f' y1='%d' y2='%d' stroke='#ccc'/><text x='%.1f' "
                    "y='%d' text-anchor='middle'>%g</text>\n",
                    place(tick[k]), place(tick[k]), TOP, height - 8, place(tick[k]), TOP - 4,
                    tick[k]);
    for (size_t i = 1; i < s->n; i++) put_bar(b, &s->row[i], TOP + (int)(i - 1) * ROW);
    cd_buf_puts(b, "</svg>\n");
    return done(b, err);
}
