/* A whole calibration: the machine is described, candidates are drawn, measured and compared with
 * the model, and what corrects it is written. Where logs of another device are given, nothing is
 * described or measured. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "base/io/io.h"
#include "predictor/calibrate/calibrate_internal.h"
#include "predictor/estimate/estimate.h"

/* Whose a log is: of logs of another device in the place of measurements, with the device of the
 * model that stands for it; and of the log that grows. */

/* ---- records of a log ---- */
typedef cdmpp_status (*taker)(void *ctx, const cd_recline *l, const cd_record *r, cdmpp_err *err);

/* A line that is none is told when the log is used. */
static cdmpp_status take_line(const cd_recline *l, cd_arena *a, taker take, void *ctx,
                              cdmpp_err *err) {
    cd_record r;
    cd_arena_reset(a);
    return cd_record_read(a, l->text, l->len, &r, NULL)
               ? CDMPP_OK
               : cd_err_at(err, take(ctx, l, &r, err), l->path, l->number);
}

static cdmpp_status each(const char *const *path, size_t n, taker take, void *ctx, cdmpp_err *err) {
    cd_record_reader *file;
    cd_arena a = {0};
    CD_TRY(cd_record_reader_open(path, n, &file, err));
    cdmpp_status st = CDMPP_OK;
    for (bool more = true; !st && more;) {
        cd_recline l = {0};
        cdmpp_err why = {0};
        const cdmpp_status got = cd_record_reader_next(file, &l, &why);
        more = got || l.text;
        if (got == CDMPP_EIO || got == CDMPP_ENOMEM)
            st = CD_FAIL(err, EIO, "%s", why.msg), st = got == CDMPP_ENOMEM ? CDMPP_ENOMEM : st;
        else if (!got && l.text) st = take_line(&l, &a, take, ctx, err);
    }
    cd_record_reader_close(file);
    cd_arena_free(&a);
    return st;
}

/* ---- the name ---- */
/* A log of two devices says nothing of either: the first two names are told. */
static cdmpp_status take_name(void *ctx, const cd_recline *l, const cd_record *r, cdmpp_err *err) {
    char *name = ctx;
    const cd_str is = cd_device_name_of(r->target, l->path);
    if (is.n >= CD_CALIBRATE_NAME) return CD_FAIL(err, ERANGE, "a name of %zu letters", is.n);
    if (name[0] && !cd_str_is(is, name))
        return CD_FAIL(err, EUSAGE, "expected logs of one device, found %s and %.*s", name,
                       (int)is.n, is.p);
    (void)snprintf(name, CD_CALIBRATE_NAME, "%.*s", (int)is.n, is.p);
    return CDMPP_OK;
}

/* The device that all records of the logs name. Errors: EUSAGE (they name several), ENODATA, EIO,
 * ENOMEM. */
static cdmpp_status calibrate_name_of(const char *const *path, size_t n,
                                      char name[CD_CALIBRATE_NAME], cdmpp_err *err) {
    name[0] = 0;
    CD_TRY(each(path, n, take_name, name, err));
    return name[0] ? CDMPP_OK : CD_FAIL(err, ENODATA, "no record that can be read");
}

/* ---- whose log it is that grows ---- */
typedef struct owner {
    const cd_backend_kind *kind;
    const char *gpu; /* name; NULL: a processor */
} owner;

static cdmpp_status check_owner(void *ctx, const cd_recline *l, const cd_record *r,
                                cdmpp_err *err) {
    const owner *o = ctx;
    const cd_str is = cd_device_name_of(r->target, l->path);
    if (cd_backend_for_target(r->target) == o->kind && (!o->gpu || cd_str_is(is, o->gpu)))
        return CDMPP_OK;
    return CD_FAIL(err, EUSAGE,
                   "the log has programs of another device (%.*s): --out names another file, or "
                   "take this log away",
                   r->target.n > 60 ? 60 : (int)r->target.n, r->target.p);
}

/* Is the log that grows (where there is one) of this back end's programs, and of this GPU? gpu
 * NULL: it is a processor, whose name is not asked for. Errors: EUSAGE (it is not), EIO, ENOMEM. */
static cdmpp_status calibrate_log_check(const char *path, const char *target, const char *gpu,
                                        cdmpp_err *err) {
    owner o = {cd_backend_for_target((cd_str){target, strlen(target)}), gpu};
    return access(path, F_OK) ? CDMPP_OK : each(&path, 1, check_owner, &o, err);
}

/* ---- who stands for it ---- */
cdmpp_status cd_calibrate_stand_in(const cd_model *m, const cd_device_table *devices,
                                   const char *name, const char **out, cdmpp_err *err) {
    const cd_device_match_options mo = {.device = name, .nearest = true, .devices = devices};
    cd_device_match *w;
    const cdmpp_status st = cd_device_match_new(m, &mo, &w, err);
    if (st == CDMPP_ENOMEM) return st;
    if (st)
        return CD_FAIL(
            err, EMODEL,
            "%.60s, or all devices of the model, are described nowhere (--devices names a file "
            "that describes both): --device says which device of the model stands for it",
            name);
    *out = cd_model_device(m, cd_device_match_fixed(w)->device);
    cd_device_match_free(w);
    return CDMPP_OK;
}

/* Shares of the limit: drawing takes the first at most. What is left for the end is what the fit
 * takes by a trial of it (calibrate_measure.c), and these for all that is not foreseen. */
static const double draws = 0.15, spare = 0.01, spare_s = 0.2;
/* Programs of the trial: about half of those that there is time for. */
static const double trial_s = 1;
/* Of the limit: so much later a run may end. */
static const double over = 1.05;
enum { TRIAL_LEAST = 24, TRIAL_MOST = 96 };
/* Programs of which something can be learned: with fewer there are hardly enough beside any fifth
 * of the tasks. */
enum { LEAST = CD_CALIBRATE_LEAST + 4 };
/* Networks take the last quarter, as long as that is worth something: four of them need half a
 * minute. */
static const double runs = 0.25, most_runs_s = 90, least_runs_s = 20;

typedef struct run {
    const cd_calibrate_options *o;
    cd_buf *text;
    double begin, begin_wall; /* of the run's clock; of the machine's */
    char *file;               /* (n_file) of the model */
    size_t n_file;
    cd_model *model;
    cd_device_table *devices;
    cd_arena arena; /* the target */
    cd_calibrate_machine machine;
    const char *target; /* of the programs */
    bool gpu;           /* they are of a GPU */
    cd_calibrate_pool pool;
    cd_calibrate_costs after; /* what the fit takes */
    double load_s;            /* reading the model: it is read again where it is written */
    cd_calibrate_measured measured;
    cd_calibrate_result result;
    bool networks_done;
    cd_network_cost_fit costs; /* of the machine; networks 0: not known */
    cd_record_listener listener;
    cdmpp_err bad; /* the first line that says nothing; code 0: none */
    cd_progress progress;
} run;

static double now(const run *r) { return r->o->clock->now(r->o->clock->ctx); }
static double now_of(void *ctx) { return now(ctx); }

/* ---- the machine ---- */
static cdmpp_status open_devices(run *r, cdmpp_err *err) {
    cd_arena a = {0};
    cd_diag diag = {0};
    cdmpp_status st = cd_device_table_open(&a, r->o->devices, NULL, &diag, NULL, &r->devices, err);
    /* it takes a path without memory for one that is not there */
    if (st && a.oom) st = CD_FAIL(err, ENOMEM, "descriptions of devices");
    if (!st) cd_device_table_say(r->devices, r->o->log);
    cd_diag_free(&diag);
    cd_arena_free(&a);
    return st;
}

static cdmpp_status load(run *r, cdmpp_err *err) {
    const cd_calibrate_options *o = r->o;
    const double begin = now(r);
    CD_TRY(cd_file_read(o->model, 0, &r->file, &r->n_file, err));
    CD_TRY(cd_err_at(err, cd_model_from_bytes(r->file, r->n_file, &r->model, err), o->model, 0));
    if (cd_model_here(r->model))
        return CD_FAIL(
            err, EUSAGE,
            "%s is corrected for a machine already: calibrate from the model that it was made of",
            o->model);
    r->load_s = now(r) - begin;
    CD_TRY(open_devices(r, err));
    const int k = o->device ? cd_device_match_find(r->model, r->devices, o->device) : -1;
    if (k >= 0) r->machine.stands = cd_model_device(r->model, (size_t)k);
    if (o->device && k < 0) /* before minutes are spent */
        return cd_err_key(err,
                          CD_FAIL(err, EMODEL, "%s has no device '%.60s'%s", o->model, o->device,
                                  r->gpu ? "; --gpu says which GPU is measured" : ""),
                          "device");
    return CDMPP_OK;
}

/* Programs of a device without analytic times of its own have those of who stands for it, which may
 * be far off. */
static void warn_undescribed(const run *r) {
    const char *name = r->machine.name.name, *from = r->o->devices ? r->o->devices : "devices.yaml";
    const cd_device *d;
    if (r->machine.own || !cd_model_needs_facts(r->model) ||
        cd_model_find_device(r->model, name, strlen(name)) >= 0)
        return;
    if (cd_device_table_find(r->devices, name, &d, NULL))
        cd_log_put(r->o->log, CD_LOG_WARNING,
                   "%s does not describe %s, the device of the logs (-model= of their targets, "
                   "else their folder, names it): the numbers of %s stand in",
                   from, name, r->machine.stands);
    else
        cd_log_put(r->o->log, CD_LOG_WARNING,
                   "%s says too little of %s for analytic times: the numbers of %s stand in", from,
                   name, r->machine.stands);
}

/* The device of the logs has no processor that could be compared with that of this machine: it
 * answers by its name alone. */
static cdmpp_status begin_given(run *r, cdmpp_err *err) {
    const cd_calibrate_options *o = r->o;
    CD_TRY(load(r, err));
    CD_TRY(calibrate_name_of(o->given, o->n_given, r->machine.name.name, err));
    if (cd_record_first_is_gpu(o->given, o->n_given))
        CD_TRY(cd_calibrate_needs_gpus(o, r->model, r->machine.stands, err));
    (void)snprintf(r->machine.name.says, sizeof r->machine.name.says, "logs of %s",
                   r->machine.name.name);
    cd_calibrate_machine_own(r->model, r->devices, NULL, &r->machine);
    if (!r->machine.stands)
        CD_TRY(cd_calibrate_stand_in(r->model, r->devices, r->machine.name.name, &r->machine.stands,
                                     err));
    warn_undescribed(r);
    return CDMPP_OK;
}

static cdmpp_status begin(run *r, cdmpp_err *err) {
    const cd_calibrate_options *o = r->o;
    cd_host_info h;
    cd_buf b = {0};
    CD_TRY(load(r, err));
    CD_TRY(cd_calibrate_machine_find(o, r->model, r->devices, &r->machine, err));
    CD_TRY(calibrate_log_check(o->records, o->target,
                               r->gpu || o->board ? r->machine.name.name : NULL, err));
    /* Features of programs with other vectors would be of other programs. The device that stands in
     * has no say: its instructions need not be here. */
    if (!(r->target = cd_isa_target_of(&r->arena, o->isa, o->target)))
        return CD_FAIL(err, ENOMEM, "target");
    cd_host_info_read("", &h);
    cd_host_info_warnings(&b, &h, o->threads);
    if (b.n && !r->gpu && !o->board)
        cd_log_put(o->log, CD_LOG_WARNING, "times may be unsteady: %s", b.p);
    cd_buf_free(&b);
    cd_log_put(o->log, CD_LOG_INFO, "cost model: %s; %s stands for this %s (%s); at most %.0f s",
               o->model, r->machine.stands,
               r->gpu     ? "GPU"
               : o->board ? "board"
                          : "machine",
               r->machine.name.says, o->limit_s);
    return CDMPP_OK;
}

/* ---- measured ---- */
/* Before this run a replay on an unknown processor chooses schedules as for the device that stands
 * for it. It goes on to do so: measured numbers would choose others, which nobody has compared. */
static bool chooses_as_before(const run *r) {
    return r->machine.own && !r->gpu && !r->o->board && !r->o->n_given;
}
static const cd_device_numbers *choosing(const run *r) {
    return chooses_as_before(r) ? NULL : r->machine.own;
}

static cd_hardware hardware(const run *r) {
    return cd_target_hardware(r->gpu, r->gpu ? 0 : r->o->threads, 64);
}

static cdmpp_status draw(run *r, cdmpp_err *err) {
    const cd_calibrate_options *o = r->o;
    const size_t tasks = cd_task_registry_count(o->tasks),
                 paid = (size_t)(o->limit_s / cd_calibrate_price(0)),
                 worth = 4 * (o->most && o->most < paid ? o->most : paid);
    /* beside the best of each */
    const size_t most = worth < CD_CALIBRATE_MOST ? worth : CD_CALIBRATE_MOST,
                 drawn = most > tasks ? most - tasks : 0;
    /* four times as many as can be measured to choose from; of every task */
    const size_t each = tasks ? drawn / tasks : 0;
    const cd_calibrate_pool_options po = {.tasks = o->tasks,
                                          .target = r->target,
                                          .isa = o->isa,
                                          .hardware = hardware(r),
                                          .device = r->machine.numbers,
                                          .model = r->model,
                                          .stands = r->machine.stands,
                                          .numbers = choosing(r),
                                          .trials = each < 1    ? 1
                                                    : each > 64 ? 64
                                                                : (uint32_t)each,
                                          .jobs = o->jobs,
                                          .seed = o->seed,
                                          .now = now_of,
                                          .ctx = r,
                                          .until_s = now(r) + draws * o->limit_s,
                                          .listener = &r->listener,
                                          .stop = o->stop};
    CD_TRY(cd_calibrate_pool_build(&po, &r->pool, err));
    cd_log_put(o->log, CD_LOG_INFO,
               "%zu candidates of %zu tasks; %zu are left out, as too slow or without facts",
               r->pool.n, tasks, r->pool.left_out);
    return CDMPP_OK;
}

/* What the end of the run takes is tried before the programs are measured, so that these leave time
 * for it. */
static cdmpp_status try_fit(run *r, cdmpp_err *err) {
    const double paid =
        fmin(r->o->limit_s / trial_s, r->o->most ? (double)r->o->most : (double)INFINITY);
    const cd_calibrate_costs_options co = {.model = r->model,
                                           .tasks = r->o->tasks,
                                           .device = r->machine.stands,
                                           .numbers = r->machine.own,
                                           .pool = &r->pool,
                                           .programs = paid < TRIAL_LEAST  ? TRIAL_LEAST
                                                       : paid < TRIAL_MOST ? (size_t)paid
                                                                           : TRIAL_MOST,
                                           .now = now_of,
                                           .ctx = r};
    CD_TRY(cd_calibrate_costs_of(&co, &r->after, err));
    cd_log_put(r->o->log, CD_LOG_DEBUG, "a fit of %zu programs takes %.2g s", r->after.programs,
               cd_calibrate_costs_s(&r->after, r->after.programs));
    return CDMPP_OK;
}

static void told(void *ctx, size_t programs) {
    run *r = ctx;
    cd_progress_step(&r->progress, programs);
}

/* Of everything but the fit. */
static double end_of_rest(const run *r) {
    return r->begin + r->o->limit_s - spare * r->o->limit_s - spare_s - 2 * r->load_s;
}

static double time_of_networks(const run *r) {
    if (r->networks_done) return 0;
    const double s = fmin(runs * r->o->limit_s, most_runs_s);
    return r->o->n_network && r->o->clock->network && s >= least_runs_s ? s : 0;
}

static cdmpp_status measure_with(run *r, cd_record_maker *maker, cd_record_log *log,
                                 cdmpp_err *err) {
    const cd_calibrate_options *o = r->o;
    const cd_calibrate_measure_options mo = {.pool = &r->pool,
                                             .maker = maker,
                                             .log = log,
                                             .clock = o->clock,
                                             .until_s = (double)INFINITY,
                                             .end_s = end_of_rest(r) - time_of_networks(r),
                                             .after = &r->after,
                                             .least = o->most && o->most < LEAST ? 0 : LEAST,
                                             .most = o->most,
                                             .told = told,
                                             .ctx = r,
                                             .stop = o->stop};
    cd_progress_begin(&r->progress, o->log, "measuring", "programs", 0);
    const cdmpp_status st = cd_calibrate_measure(&mo, &r->measured, err);
    cd_progress_end(&r->progress);
    if (!st && r->measured.failed)
        cd_log_put(o->log, CD_LOG_WARNING, "%zu of %zu programs failed; the last: %s",
                   r->measured.failed, r->measured.fresh, r->measured.why.msg);
    return st;
}

static const char *name_of(void *ctx, cd_str target) {
    const run *r = ctx;
    (void)target;
    return r->machine.name.name;
}

static cdmpp_status measure(run *r, cdmpp_err *err) {
    cd_record_maker maker = {.tasks = r->o->tasks,
                             .dialect = -1,
                             .isa = r->o->isa,
                             .device = name_of,
                             .ctx = r,
                             .threads = r->o->threads,
                             .cpus = r->o->board ? r->o->board->cpus : cd_affinity_count()};
    cd_record_log *log = NULL;
    CD_TRY(cd_record_log_open(r->o->records, false, &log, err));
    cdmpp_status st = cd_program_new(&maker.program, err);
    if (!st) st = measure_with(r, &maker, log, err);
    cd_program_free(maker.program);
    const cdmpp_status closed = cd_record_log_close(log, st ? NULL : err);
    return st ? st : closed;
}

/* Networks begin only where there is time for another one: what is left of their quarter is for
 * more programs. */
static cdmpp_status measure_more(run *r, cdmpp_err *err) {
    const cd_calibrate_measured first = r->measured;
    const bool networks = time_of_networks(r) > 0;
    r->networks_done = true;
    if (!networks || !first.late) return CDMPP_OK;
    CD_TRY(measure(r, err));
    r->measured.fresh += first.fresh;
    r->measured.repeats += first.repeats;
    r->measured.failed += first.failed;
    return CDMPP_OK;
}

/* Seconds of the machine's own clock in one of the run's, so far. */
static double stretch(const run *r) {
    const double took = now(r) - r->begin;
    return r->o->clock->cpu_time && took > 0 ? fmax(1, (cd_clock_wall() - r->begin_wall) / took)
                                             : 1;
}

/* Caches are those that a replay knows of the machine (predictor/estimate/node_cost.c): of its own
 * description, else of who stands for it. The rate of memory is what was measured. */
static cdmpp_status run_networks(run *r, cdmpp_err *err) {
    const cd_calibrate_options *o = r->o;
    const cd_device *about = NULL;
    if (o->n_network && o->clock->network && !(time_of_networks(r) > 0))
        cd_log_put(o->log, CD_LOG_WARNING,
                   "no network is run within %.0f s, %.0f are needed: what a network adds to its "
                   "operators stays that of %s",
                   o->limit_s, least_runs_s / runs, r->machine.stands);
    if (!(time_of_networks(r) > 0)) return CDMPP_OK;
    if (cd_device_table_find(r->devices, r->machine.name.name, &about, NULL))
        (void)cd_device_table_find(r->devices, r->machine.stands, &about, NULL);
    cd_device known = about ? *about : (cd_device){0};
    const double *probe = r->machine.entry.device.probe;
    if (probe[CD_DEVICE_PROBE_probe_memory] > 0) memcpy(known.probe, probe, sizeof known.probe);
    const cd_calibrate_networks_options no = {
        .network = o->network,
        .n_network = o->n_network,
        .model = r->model,
        .stands = r->machine.stands,
        .numbers = choosing(r),
        .best = r->pool.best,
        .about = about ? &known : NULL,
        .target = r->target,
        .hardware = hardware(r),
        .gpu = o->gpu,
        .threads = o->threads,
        .jobs = o->jobs,
        .seed = o->seed,
        .clock = o->clock,
        .until_s = end_of_rest(r) - cd_calibrate_costs_s(&r->after, r->measured.known),
        .wall = stretch(r),
        .program_s = r->measured.each_s,
        .log = o->log,
        .stop = o->stop};
    CD_TRY(cd_calibrate_networks(&no, &r->costs, err));
    if (!r->costs.networks)
        cd_log_put(o->log, CD_LOG_WARNING,
                   "fewer than %d networks could be measured: what a network adds to its operators "
                   "stays that of %s; --seconds gives more time",
                   CD_NETWORK_COST_FEWEST, r->machine.stands);
    return CDMPP_OK;
}

/* ---- too few ---- */
/* Seconds with which the same command has programs enough, with some to spare, as one writes them.
 */
static double enough_s(const run *r) {
    const double step = 30, each = r->measured.each_s > 0 ? r->measured.each_s : 1,
                 had = now(r) - r->begin;
    const double more = 2 * each * LEAST + cd_calibrate_costs_s(&r->after, 2 * LEAST);
    return step * ceil(fmax(2 * r->o->limit_s, had + more) / step);
}

/* What is to be done next, as a command that can be pasted. */
static void put_next(const run *r, double seconds) {
    if (r->o->again && !r->o->json)
        cd_buf_putf(r->text, "next: %s --seconds %.0f\n", r->o->again,
                    fmin(seconds, CD_CALIBRATE_SECONDS));
}

static cdmpp_status check_hope(run *r, cdmpp_err *err) {
    const cd_calibrate_measured *m = &r->measured;
    const double took = now(r) - r->begin, fit = cd_calibrate_costs_s(&r->after, m->known);
    if (took + fit > over * r->o->limit_s) { /* of a log that earlier runs, with more time, left */
        put_next(r, 30 * ceil((took + fit) * 1.5 / 30));
        return CD_FAIL(
            err, ENODATA,
            "there is no time to learn from the %zu programs in the log: that takes %.0f s here",
            m->known, fit);
    }
    if (!m->hopeless) return CDMPP_OK;
    put_next(r, enough_s(r));
    return CD_FAIL(
        err, ENODATA,
        "there is no time for the %d programs that a correction needs: one takes %.2g s here, and "
        "%zu are in the log; the same command with more --seconds goes on from it",
        LEAST, m->each_s, m->programs);
}

/* ---- written ---- */
/* As an entry of network-costs.yaml. */
static void put_costs(const run *r, cd_buf *more) {
    cd_buf yaml = {0};
    cd_network_cost_fit f = r->costs;
    const char *name = r->machine.name.name;
    if (!f.networks) return;
    f.devices = (cd_texts){1, &name};
    f.source = "cdmpp-tune calibrate";
    cd_network_cost_put(&yaml, &f);
    cd_buf_puts(more, "\"network_cost\":");
    cd_buf_put_json_str(more, yaml.p ? yaml.p : "", yaml.n);
    cd_buf_puts(more, ",");
    more->oom |= yaml.oom;
    cd_buf_free(&yaml);
}

/* The figures are told in any case; the file is written last. */
static cdmpp_status refuse(const run *r, cdmpp_err *err) {
    const cd_calibrate_result *c = &r->result;
    if (r->o->force) return CDMPP_OK;
    if (cd_calibrate_noisy(c))
        return CD_FAIL(err, ERANGE,
                       "the machine is too noisy: two times of the same program differ by %.0f %% "
                       "(at most %.0f %%); nothing is written",
                       100 * expm1(c->noise), 100 * CD_CALIBRATE_NOISE);
    if (!cd_calibrate_better(c))
        return CD_FAIL(err, ERANGE,
                       "the model alone is better on tasks that a correction has not seen (mean "
                       "|ln| %.3f, corrected %.3f): nothing is written",
                       c->before.mean_log, c->after.mean_log);
    return CDMPP_OK;
}

/* Of logs and boards the name alone is known, which is no machine's. */
static void put_machine(const run *r, cd_buf *more) {
    cd_describe_identity other = cd_describe_identity_named(r->machine.name.says);
    cd_buf_puts(more, "\"machine\":");
    cd_describe_identity_put(more, r->o->n_given || r->o->board ? &other : &r->machine.identity);
    cd_buf_puts(more, ",");
}

static cdmpp_status write_model(const run *r, const cd_calibrate_told *t, cdmpp_err *err) {
    const int device = cd_model_find_device(r->model, r->machine.stands, strlen(r->machine.stands));
    const cd_here h = {.stands = (uint32_t)device,
                       .name = r->machine.name.name,
                       .cpu = r->machine.name.says,
                       .programs = (uint32_t)r->result.programs,
                       .widen = r->result.widen,
                       .most = r->result.most,
                       .noise = r->result.measured_noise,
                       .picks = r->result.picks,
                       .marks = r->result.marks.p,
                       .numbers = r->machine.own,
                       .stands_chooses = chooses_as_before(r),
                       .trees = r->result.trees};
    cd_buf more = {0}, out = {0}, yaml = {0};
    if (!r->o->n_given && !r->o->board) {
        cd_describe_entry_put_yaml(&yaml, &r->machine.entry);
        cd_buf_puts(&more, "\"description\":");
        cd_buf_put_json_str(&more, yaml.p ? yaml.p : "", yaml.n);
        cd_buf_puts(&more, ",");
    }
    put_machine(r, &more);
    if (r->gpu)
        cd_buf_putf(&more, "\"backend\":\"%s\",",
                    cd_backend_for_target((cd_str){r->o->target, strlen(r->o->target)})->name);
    put_costs(r, &more);
    cd_calibrate_members(&more, t, true);
    cdmpp_status st = more.oom || yaml.oom ? CD_FAIL(err, ENOMEM, "figures") : CDMPP_OK;
    if (!st) st = cd_here_add(r->file, r->n_file, &h, more.p, &out, err);
    if (!st) st = cd_file_write(r->o->out, out.p, out.n, err);
    cd_buf_free(&more);
    cd_buf_free(&yaml);
    cd_buf_free(&out);
    return st;
}

/* Of logs that are given; what failed here was told when it did. */
static void warn_unused(const run *r) {
    if (!r->o->n_given || !r->result.failed) return;
    char first[640] = "";
    if (r->bad.code) (void)cdmpp_err_format(&r->bad, first, sizeof first);
    cd_log_put(r->o->log, CD_LOG_WARNING,
               "lines of the logs that are not used: %zu. They are measurements that failed, and "
               "lines that cannot be scored%s%s%s",
               r->result.failed, first[0] ? "; the first of these: " : "", first,
               first[0] ? " (-v tells all)" : "");
}

static cdmpp_status finish(run *r, cdmpp_err *err) {
    const cd_calibrate_options *o = r->o;
    const cd_calibrate_fit_options fo = {.model = r->model,
                                         .tasks = o->tasks,
                                         .device = r->machine.stands,
                                         .name = r->machine.name.name,
                                         .numbers = r->machine.own,
                                         .log = o->n_given ? o->given : &o->records,
                                         .n_log = o->n_given ? o->n_given : 1,
                                         .given = o->n_given > 0,
                                         .noise = o->quiet ? o->quiet->noise : 0,
                                         .listener = &r->listener};
    const cdmpp_status fitted = cd_calibrate_fit(&fo, &r->result, err);
    warn_unused(r);
    if (fitted == CDMPP_ENODATA && !o->n_given) put_next(r, enough_s(r));
    if (fitted) return fitted;
    cd_calibrate_told t = {.result = &r->result,
                           .measured = &r->measured,
                           .costs = &r->costs,
                           .device = r->machine.stands,
                           .name = r->machine.name.name,
                           .cpu = r->machine.name.says,
                           .model = o->model,
                           .log = o->n_given ? o->given[0] : o->records,
                           .given = o->n_given > 0,
                           .out = o->out,
                           .limit_s = o->limit_s,
                           .as_before = chooses_as_before(r),
                           .cpu_time = !o->n_given && o->clock->cpu_time,
                           .most = o->most,
                           .again = o->n_given ? NULL : o->again,
                           .again_s = fmin(enough_s(r), CD_CALIBRATE_SECONDS)};
    cdmpp_status st = refuse(r, err);
    if (!st) st = write_model(r, &t, err);
    if (st) t.out = NULL;
    t.seconds = now(r) - r->begin;
    if (o->json)
        cd_buf_puts(r->text, "{"), cd_calibrate_members(r->text, &t, false),
            cd_buf_puts(r->text, "}");
    else cd_calibrate_text(r->text, &t);
    return st;
}

static void bad_line(void *ctx, const cdmpp_err *why) {
    run *r = ctx;
    if (!r->bad.code) r->bad = *why;
    cd_log_err(r->o->log, CD_LOG_DEBUG, why);
}

cdmpp_status cd_calibrate_run(const cd_calibrate_options *o, cd_buf *text, cdmpp_err *err) {
    run *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "calibration");
    r->o = o;
    r->text = text;
    r->gpu = cd_calibrate_facts_set(o->target) == CD_FACTS_OF_GPU;
    r->begin_wall = cd_clock_wall();
    r->begin = o->begin_s > 0 ? o->begin_s : now(r);
    r->listener = (cd_record_listener){.bad = bad_line, .ctx = r};
    cdmpp_status st = o->n_given ? begin_given(r, err) : begin(r, err);
    if (!st && !o->n_given) st = draw(r, err);
    if (!st && !o->n_given) st = try_fit(r, err);
    if (!st && !o->n_given) st = measure(r, err);
    if (!st && !o->n_given) st = check_hope(r, err);
    if (!st && !o->n_given) st = run_networks(r, err);
    if (!st && !o->n_given) st = measure_more(r, err);
    if (!st) st = finish(r, err);
    cd_calibrate_result_free(&r->result);
    cd_calibrate_pool_free(&r->pool);
    cd_device_table_free(r->devices);
    cd_model_free(r->model);
    cd_mem_free(r->file);
    cd_arena_free(&r->arena);
    cd_mem_free(r);
    return st;
}
