/* Measures the variants of one schedule in batches: those with a warm cache by one measurer, those with a cold cache by another,
 * because a measurer's timing policy is fixed when it is opened. */
#include "profiler/records/schedule_sweep.h"

enum { BATCH = 32 };

const char *cd_schedule_sweep_factor(int factor) {
    static const char *const name[CD_VARY_COUNT] = {"tile", "reorder", "compute_at", "fuse", "unroll", "vectorize", "parallel", "threads", "cache"};
    return factor == CD_VARY_BASE ? "base" : name[factor];
}

/* ---- measuring ---- */

typedef struct {
    cd_record_maker *maker;
    int threads;
    cd_record_program job[BATCH];
    cd_measure_item item[BATCH];
    cd_buf line;
} batch;

static cdmpp_status make(batch *b, size_t k, const cd_variant *v, cdmpp_err *err) {
    cd_record r = v->record;
    if (v->threads && r.has_hardware) r.hardware.num_cores = v->threads; /* another program: its loops are cut up otherwise */
    cd_buf_clear(&b->line);
    CD_TRY(cd_record_write(&b->line, &r, err));
    const cd_recline l = {.path = cd_schedule_sweep_factor(v->factor), .text = b->line.p, .len = b->line.n - 1};
    CD_TRY(cd_record_program_make(b->maker, &l, &b->job[k], err));
    CD_TRY(cd_record_program_code(b->maker, &b->job[k], err));
    b->item[k] = (cd_measure_item){.code = &b->job[k].code, .target = b->job[k].target, .threads = v->threads ? v->threads : b->threads};
    if (b->job[k].why.code) cd_measure_result_fail(&b->item[k].out, 1, &b->job[k].why);
    return CDMPP_OK;
}

/* Those of rows [0, n) that are cold or those that are not. */
static cdmpp_status some(batch *b, cd_measure *m, bool cold, cd_schedule_sweep_row *row, size_t n, const volatile sig_atomic_t *stop, cdmpp_err *err) {
    size_t at[BATCH], made = 0;
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; i < n && !st; i++) {
        if (row[i].v->cold != cold) continue;
        at[made] = i;
        st = make(b, made++, row[i].v, err);
    }
    if (!st && made) st = cd_measure_build(m, b->item, made, err);
    for (size_t i = 0; i < made && !st; i++) {
        if (stop && *stop) st = CD_FAIL(err, EINTERRUPTED, "while variants were measured");
        if (!st && !b->item[i].out.error_no) st = cd_measure_run(m, &b->item[i], err);
        row[at[i]].out = b->item[i].out;
    }
    for (size_t i = 0; i < made; i++) cd_record_program_free(&b->job[i]);
    return st;
}

static void ratios(cd_schedule_sweep_row *row, size_t n) {
    const double base = n && !row[0].out.error_no ? row[0].out.time.median_s : 0;
    for (size_t i = 0; i < n; i++) row[i].ratio = base > 0 && !row[i].out.error_no ? row[i].out.time.median_s / base : 0;
}

typedef struct {
    const cd_schedule_sweep_options *o;
    cd_record_maker maker;
    cd_measure *warm, *cold;    /* cold NULL: cold variants are not measured */
} sweeper;

/* Ratios come last: row 0, the base, is in the first batch. */
static cdmpp_status measure_variants(sweeper *w, const cd_variant *v, cd_schedule_sweep_row *row, size_t n, cdmpp_err *err) {
    const volatile sig_atomic_t *stop = w->o->measure.stop;
    batch *b = cd_mem_zalloc(1, sizeof *b);
    if (!b) return CD_FAIL(err, ENOMEM, "variants");
    b->maker = &w->maker;
    b->threads = w->o->threads;
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; i < n; i++) row[i] = (cd_schedule_sweep_row){.v = &v[i]};
    for (size_t i = 0; i < n && !st; i += BATCH) {
        const size_t m = n - i < BATCH ? n - i : BATCH;
        st = some(b, w->warm, false, row + i, m, stop, err);
        if (!st && w->cold) st = some(b, w->cold, true, row + i, m, stop, err);
    }
    ratios(row, n);
    cd_buf_free(&b->line);
    cd_mem_free(b);
    return st;
}

static cdmpp_status open_measure(const cd_schedule_sweep_options *o, bool cold, cd_measure **out, cdmpp_err *err) {
    cd_measure_options mo = o->measure;
    mo.threads = o->threads;
    /* A worker that is pinned has `threads` processors: variants with other numbers of threads would share them. */
    mo.pin = mo.pin && !(o->factors >> CD_VARY_THREADS & 1);
    mo.timing.cold = cold;
    mo.timing.cool = false;
    return cd_measure_open(&mo, out, err);
}

static cdmpp_status read_base(const cd_schedule_sweep_options *o, cd_arena *a, cd_record *base, cdmpp_err *err) {
    cd_record_best_options bo = o->best;
    cd_record_best b;
    size_t n;
    bo.max = 1;
    CD_TRY(cd_record_best_read(a, &bo, &b, &n, err));
    if (n) return cd_record_read(a, b.text, b.len, base, err);
    return bo.workload ? CD_FAIL(err, ENODATA, "no record of workload %.150s", bo.workload) : CD_FAIL(err, ENODATA, "no record to begin from");
}

static cdmpp_status sweep(sweeper *w, cd_schedule_sweep *s, cdmpp_err *err) {
    const cd_schedule_sweep_options *o = w->o;
    cd_variant *v;
    CD_TRY(open_measure(o, false, &w->warm, err)); /* first of all: they fork */
    if (o->factors >> CD_VARY_CACHE & 1) CD_TRY(open_measure(o, true, &w->cold, err));
    CD_TRY(cd_record_program_maker_open(&w->maker, o->task_file, o->n_task_file, err));
    CD_TRY(read_base(o, &s->arena, &s->base, err));
    const cd_str key = s->base.workload_key;
    const cd_task *task = cd_task_registry_find(w->maker.tasks, key);
    if (!task) return CD_FAIL(err, ENOTASK, "no task file defines %.*s", (int)(key.n < 100 ? key.n : 100), key.p);
    CD_TRY(cd_schedule_variants(&s->arena, w->maker.program, task, &s->base, o->factors, cd_backend_cpu_threads(""), &v, &s->n, err));
    s->row = cd_arena_zalloc(&s->arena, s->n, sizeof *s->row);
    if (!s->row) return CD_FAIL(err, ENOMEM, "%zu variants", s->n);
    return measure_variants(w, v, s->row, s->n, err);
}

cdmpp_status cd_schedule_sweep_run(const cd_schedule_sweep_options *o, cd_schedule_sweep *out, cdmpp_err *err) {
    sweeper w = {.o = o, .maker = {.target = o->target, .dialect = -1, .isa = o->measure.isa}};
    *out = (cd_schedule_sweep){0};
    const cdmpp_status st = sweep(&w, out, err);
    cd_measure_close(w.cold); /* opened last, closed first: its supervisor holds what the other one's waits for */
    cd_measure_close(w.warm);
    cd_record_program_maker_close(&w.maker);
    return st;
}

void cd_schedule_sweep_free(cd_schedule_sweep *s) { cd_arena_free(&s->arena); }
