/* Samples random schedules and writes them as records. A sample is kept only if its program can be
 * built and differs from all earlier ones of its task; a task is left after too many samples in a
 * row that were not kept. */
#include "profiler/records/records.h"

#include <string.h>

#include "features/sketch/sketch.h"

/* Samples in a row that may fail or repeat before a task is left; programs of a task. */
enum { PATIENCE = 400, TRIALS = 10 };

struct cd_random_schedules {
    const cd_task_registry *tasks;
    cd_random_schedules_options o;
    char *target;              /* copy of o.target; NULL: each task's own */
    size_t task;               /* being drawn from */
    cd_sketch_space *sketches; /* of it; NULL: not begun */
    cd_sketch_sampler *sampler;
    cd_program *program;
    uint64_t next; /* draw */
    uint32_t made;
    cd_record_id *seen; /* (trials) its programs */
};

void cd_random_schedules_free(cd_random_schedules *d) {
    if (!d) return;
    cd_sketch_sampler_free(d->sampler);
    cd_sketch_space_free(d->sketches);
    cd_program_free(d->program);
    cd_mem_free(d->target);
    cd_mem_free(d->seen);
    cd_mem_free(d);
}

static cdmpp_status fill(cd_random_schedules *d, cdmpp_err *err) {
    const char *t = d->o.target;
    d->seen = cd_mem_zalloc(d->o.trials, sizeof *d->seen);
    if (t && *t) d->target = cd_mem_text(t);
    if (!d->seen || (t && *t && !d->target)) return CD_FAIL(err, ENOMEM, "%u trials", d->o.trials);
    return cd_program_new(&d->program, err);
}

cdmpp_status cd_random_schedules_new(const cd_task_registry *tasks,
                                     const cd_random_schedules_options *o,
                                     cd_random_schedules **out, cdmpp_err *err) {
    cd_random_schedules *d = cd_mem_zalloc(1, sizeof *d);
    if (!d) return CD_FAIL(err, ENOMEM, "draws");
    d->tasks = tasks;
    d->o = *o;
    if (!d->o.trials) d->o.trials = TRIALS;
    const cdmpp_status st = fill(d, err);
    if (st) cd_random_schedules_free(d);
    else *out = d;
    return st;
}

static void leave(cd_random_schedules *d) {
    cd_sketch_sampler_free(d->sampler);
    cd_sketch_space_free(d->sketches);
    d->sampler = NULL;
    d->sketches = NULL;
    d->task++;
}

static cd_str text(const char *s) { return (cd_str){s, strlen(s)}; }

static const char *target_of(const cd_random_schedules *d, const cd_task *t) {
    return d->target ? d->target : t->target;
}

static cd_hardware hardware_of(const cd_random_schedules *d, const cd_task *t) {
    return t->has_hardware && !d->target ? t->hardware : d->o.hardware;
}

static cdmpp_status begin(cd_random_schedules *d, const cd_task *t, cdmpp_err *err) {
    const cd_hardware hw = hardware_of(d, t);
    d->next = d->made = 0;
    CD_TRY(cd_sketch_space_new(t, &hw, cd_target_is_gpu(text(target_of(d, t))), &d->sketches, err));
    return cd_sketch_sampler_new(d->sketches, d->o.seed, &d->sampler, err);
}

static bool is_new(cd_random_schedules *d, cd_record_id id) {
    for (uint32_t k = 0; k < d->made; k++)
        if (d->seen[k].a == id.a && d->seen[k].b == id.b) return false;
    d->seen[d->made++] = id;
    return true;
}

/* The record of a schedule that was not measured: cost 1e10 and TVM's error number for it. */
static cdmpp_status write_record(cd_random_schedules *d, const cd_task *t, cd_record *r,
                                 cd_buf *line, cdmpp_err *err) {
    static const double never = 1e10;
    r->workload_key = text(t->workload_key);
    r->target = text(target_of(d, t));
    r->target_host = text("");
    r->has_hardware = r->has_host = r->has_layout = r->has_inputs = true;
    r->hardware = hardware_of(d, t);
    r->layout_rewrite = cd_target_layout(cd_target_is_gpu(r->target));
    r->n_cost = 1;
    r->cost_s = &never;
    r->error_no = CD_ERROR_NO_MAX;
    r->version = text("v0.6");
    return cd_record_write(line, r, err);
}

/* One sample; *got: it was kept, and its line was written. */
static cdmpp_status draw(cd_random_schedules *d, const cd_task *t, cd_buf *line, bool *got,
                         cdmpp_err *err) {
    cd_record r = {0};
    const size_t from = line->n;
    *got = false;
    cd_sketch_sample s;
    cdmpp_status st = cd_sketch_sampler_draw(d->sampler, d->next++, &s, err);
    if (st == CDMPP_EREJECTED) return CDMPP_OK;
    CD_TRY(st);
    r.step = s.step;
    r.n_step = s.n_step;
    CD_TRY(write_record(d, t, &r, line, err));
    cd_rows rows;
    cd_record_id id;
    CD_TRY(cd_record_id_of(&r, &id, err));
    st = cd_program_build(d->program, t, &r, &rows, err);
    if (st == CDMPP_ENOMEM) return st;
    *got = !st && is_new(d, id);
    if (!*got) line->p[line->n = from] = 0;
    return CDMPP_OK;
}

/* The next record of the current task, or of the first later task that has one. */
cdmpp_status cd_random_schedules_next(cd_random_schedules *d, cd_buf *line, cdmpp_err *err) {
    uint64_t tries = 0;
    while (d->task < cd_task_registry_count(d->tasks)) {
        const cd_task *t = cd_task_registry_at(d->tasks, d->task);
        if (!t->dag || (d->sketches && (d->made == d->o.trials || tries > PATIENCE))) {
            leave(d);
            tries = 0;
            continue;
        }
        bool got = false;
        cdmpp_status st = d->sketches ? CDMPP_OK : begin(d, t, err);
        if (!st) st = draw(d, t, line, &got, err);
        if (st) {
            leave(d);
            return cd_err_key(err, st, t->workload_key);
        }
        if (got) return CDMPP_OK;
        tries++;
    }
    return CDMPP_OK;
}

cdmpp_status cd_random_schedules_all(cd_random_schedules *d, const cd_record_listener *l,
                                     const volatile sig_atomic_t *stop, cd_buf *line, size_t *n,
                                     cdmpp_err *err) {
    for (*n = 0; !*stop;) {
        const size_t from = line->n;
        cdmpp_err why = {0};
        const cdmpp_status st = cd_random_schedules_next(d, line, &why);
        if (line->oom || st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "%zu records", *n);
        /* not cd_record_listener_bad: no error of a task ends the others */
        if (st) l->bad(l->ctx, &why);
        else if (line->n == from) return CDMPP_OK;
        else ++*n;
    }
    return CD_FAIL(err, EINTERRUPTED, "after %zu records", *n);
}
