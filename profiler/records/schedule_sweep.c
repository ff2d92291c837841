/* Makes and compiles the variants of one schedule in batches; how they are measured is
 * schedule_sweep_frame.c's. Those with a cold cache have a measurer of their own, because a
 * measurer's timing policy is fixed when it is opened. */
#include "profiler/records/schedule_sweep_internal.h"

enum { BATCH = 32 };

const char *cd_schedule_sweep_factor(int factor) {
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
        .path = cd_schedule_sweep_factor(v->factor), .text = b->line.p, .len = b->line.n - 1};
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
