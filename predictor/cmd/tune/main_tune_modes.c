/* The modes of cdmpp-tune: what each asks of predictor/tune, and what it prints. */
#include <string.h>

#include "predictor/cmd/tune/main_tune.h"
#include "predictor/estimate/estimate.h"
#include "predictor/score/score.h"

/* --device of a search: the device of the model whose answers rank candidates. Programs are
 * measured here, so it must be one of the kind of the programs. */

typedef cd_main_tune options;

/* -1: nobody describes it. */
static int kind_of(const char *device) {
    cd_arena a = {0};
    cd_diag diag = {0};
    cd_device_table *t = NULL;
    const cd_device *d;
    const char *path;
    int gpu = -1;
    if (!cd_device_table_path(&a, NULL, NULL, &path, NULL) &&
        !cd_device_table_load(path, &diag, &t, NULL))
        gpu = cd_device_table_find(t, device, &d, NULL) ? -1 : d->kind == CD_DEVICE_GPU;
    cd_diag_free(&diag);
    cd_device_table_free(t);
    cd_arena_free(&a);
    return gpu;
}

cdmpp_status cd_main_tune_device_check(const options *o, cdmpp_err *err) {
    const char *device = o->session.device, *target = o->what.target    ? o->what.target
                                                      : o->what.network ? "llvm"
                                                                        : "";
    const cd_backend_kind *k = cd_backend_for_target((cd_str){target, strlen(target)});
    const int gpu = device ? kind_of(device) : -1;
    if (!device || !k || o->session.host.n || o->dry_run) return CDMPP_OK;
    if (gpu == 1 && k->dialect == CD_DIALECT_C)
        return CD_FAIL(err, EUSAGE,
                       "--device: %.60s is a GPU, and programs of %.20s are measured on this "
                       "machine's processor: --target cuda or opencl measures on a GPU that is "
                       "here; cdmpp-replay --device %.60s "
                       "estimates one that is not",
                       device, target, device);
    if (gpu == 0 && k->dialect != CD_DIALECT_C)
        return CD_FAIL(err, EUSAGE,
                       "--device: %.60s is a processor, and programs of %.20s are measured on a "
                       "GPU of this machine",
                       device, k->name);
    if (!o->model && !o->compare && k->dialect != CD_DIALECT_C)
        return CD_FAIL(err, EUSAGE,
                       "--device: a search measures on a GPU of this machine: none here runs "
                       "programs of %s, or no default model is installed; --cost-model FILE names "
                       "one; cdmpp-replay --device %.60s "
                       "estimates a GPU that is not here",
                       k->name, device);
    return CDMPP_OK;
}

/* Who ranks and who measures, where the user named a GPU. */
static void main_tune_device_say(const options *o, bool named) {
    if (named && o->session.device && kind_of(o->session.device) == 1)
        cd_log_put(o->log, CD_LOG_INFO,
                   "--device: the model ranks candidates as for %s; they are measured on this "
                   "machine's device",
                   o->session.device);
}

/* What a search says at its end: how fast its programs are beside the peak of what measured them,
 * and the command that estimates the network with them. */

/* Of one core of a processor, of a GPU; 0: nobody describes it. */
static double peak_of(const char *device) {
    cd_arena a = {0};
    cd_diag diag = {0};
    cd_device_table *t = NULL;
    const cd_device *d;
    double peak = 0;
    if (!cd_device_table_open(&a, NULL, NULL, &diag, NULL, &t, NULL) &&
        !cd_device_table_find(t, device, &d, NULL) && d->fp32_gflops > 0)
        peak = d->kind == CD_DEVICE_GPU ? d->fp32_gflops
               : d->cores > 0           ? d->fp32_gflops / d->cores
                                        : 0;
    cd_diag_free(&diag);
    cd_device_table_free(t);
    cd_arena_free(&a);
    return peak;
}

/* Peak in GFLOP/s of what measured: of one core of a processor, of a GPU; 0: nobody describes
 * it. */
static double main_tune_peak(cd_tune_session *s) {
    const char *target = s->what->n ? s->what->unit[0].of.target : "llvm";
    const char *name =
        s->board ? cd_remote_measure_about(s->board)->model
                 : cd_describe_namer_ask(&s->namer, (cd_str){target, strcspn(target, " ")});
    return name && name[0] ? peak_of(name) : 0;
}

static void put_word(cd_buf *b, const char *option, const char *text) {
    if (!text || !text[0]) return;
    cd_buf_putf(b, " %s ", option);
    cd_escape_shell(b, cd_str_of(text));
}

static void put_number(cd_buf *b, const char *option, int n) {
    if (n) cd_buf_putf(b, " %s %d", option, n);
}

static bool all_tried(const cd_tune_session *s) {
    for (uint32_t i = 0; i < s->what->n; i++)
        if (!cd_tune_session_state(s, i) ||
            !(cd_tune_session_state(s, i)->best_s < CD_TUNE_FAILED_S))
            return false;
    return true;
}

/* The file of the best ones has all tasks; of those that are not in the log candidates are
 * drawn. */
static void put_schedules(cd_buf *b, const options *o, const cd_tune_session *s) {
    put_word(b, o->best ? "--schedules" : "--records", o->best ? o->best : o->out);
    if (!o->best && !all_tried(s)) put_number(b, "--trials", CD_SCHEDULE_DB_TRIALS);
}

/* The command that estimates the network with the records, in o->arena; NULL: there is none.
 *
 * Programs of a board are those of another device, and a size that is known at run time has several
 * networks: of these nothing is said. */
static const char *main_tune_use(options *o, const cd_tune_session *s) {
    const cd_tune_tasks_options *w = &o->what;
    const char *network = w->network ? w->network : w->of_network;
    cd_buf b = {0};
    if (!network || !o->out || o->session.host.n || o->executor == 2) return NULL;
    cd_buf_puts(&b, "cdmpp-replay");
    put_word(&b, "--network", network);
    for (size_t k = 0; k < w->file.n; k++) put_word(&b, "--tasks", w->file.v[k]);
    put_number(&b, "--batch", w->batch);
    put_number(&b, "--input-size", w->input_size);
    for (size_t k = 0; k < w->dim.n; k++) put_word(&b, "--dim", w->dim.v[k]);
    for (size_t k = 0; k < w->input.n; k++) put_word(&b, "--input", w->input.v[k]);
    put_word(&b, "--layout", w->layout);
    put_word(&b, "--target", w->target);
    if (!o->default_model) put_word(&b, "--cost-model", o->model);
    if (!o->default_model) put_word(&b, "--device", o->session.device);
    put_schedules(&b, o, s);
    const char *text = b.oom ? NULL : cd_arena_text(&o->arena, b.p);
    cd_buf_free(&b);
    return text;
}

static cdmpp_status list_tuners(const options *o, cdmpp_err *err) {
    cd_buf b = {0};
    (o->json ? cd_tune_tuner_print_json : cd_tune_tuner_print_text)(&b);
    return cd_command_result(o->json, "cdmpp.tune_tuners", "cdmpp-tune", o->log, &b, err);
}

static cdmpp_status dump_spaces(options *o, cdmpp_err *err) {
    cd_tune_tasks t = {0};
    cd_buf b = {0};
    cdmpp_status st = cd_tune_tasks_read(&o->what, o->log, &t, err);
    if (!st) st = cd_tune_space_print(&b, &t, o->log, err);
    o->json = true;
    if (!st) st = cd_command_result(o->json, "cdmpp.tune_space", "cdmpp-tune", o->log, &b, err);
    else cd_buf_free(&b);
    o->bad = t.n_left_out;
    cd_tune_tasks_free(&t);
    return st;
}

static cdmpp_status show_templates(options *o, cdmpp_err *err) {
    const int most =
        o->session.trials_per_task ? o->session.trials_per_task : CD_TUNE_TEMPLATE_TRIALS;
    cd_tune_tasks t = {0};
    cd_tune_template_shown shown = {.tasks = &t,
                                    .o = {o->session.machine, o->session.isa},
                                    .most = (uint32_t)most,
                                    .json = o->json,
                                    .out = o->out};
    cd_buf b = {0};
    cdmpp_status st = cd_tune_tasks_read(&o->what, o->log, &t, err);
    if (!st) st = cd_tune_template_print(&b, &shown, err);
    o->bad += t.n_left_out + shown.without;
    cd_tune_tasks_free(&t);
    if (!st)
        return cd_command_result(o->json, "cdmpp.tune_templates", "cdmpp-tune", o->log, &b, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status print_tasks(const options *o, const cd_tune_tasks *t, cdmpp_err *err) {
    cd_buf b = {0};
    (o->json ? cd_tune_tasks_print_json : cd_tune_tasks_print_text)(&b, t);
    return cd_command_result(o->json, "cdmpp.tune", "cdmpp-tune", o->log, &b, err);
}

static cdmpp_status compare(options *o, const cd_tune_session *base, cdmpp_err *err) {
    cd_tune_compare c;
    cd_buf b = {0};
    const char *name = o->what.network ? o->what.network : "sum";
    cdmpp_status st = cd_tune_compare_run(base, &o->plan, o->curves, &c, &o->bad, err);
    if (!st) {
        (o->json ? cd_tune_compare_print_json : cd_tune_compare_print_csv)(&b, &c, base->what,
                                                                           name);
        st = cd_command_result(o->json, "cdmpp.tune_compare", "cdmpp-tune", o->log, &b, err);
    }
    cd_tune_compare_free(&c);
    return st;
}

static cdmpp_status tune(options *o, cd_tune_session *s, cdmpp_err *err) {
    cd_buf b = {0};
    if (o->tune) s->tuner = o->plan.tuner[0];
    CD_TRY(cd_tune_session_run(s, err));
    CD_TRY(cd_tune_session_finish(s, err));
    if (o->best) CD_TRY(cd_tune_session_write_best(s, o->best, err));
    if (o->curves) CD_TRY(cd_tune_session_write_curves(s, o->curves, err));
    if (o->emit >= 0)
        CD_TRY(cd_tune_session_write_code(s, (cd_dialect)o->emit, o->emit_dir ? o->emit_dir : ".",
                                          err));
    cd_tune_session_warn(s);
    s->peak_gflops = main_tune_peak(s);
    if (o->tune) s->use = main_tune_use(o, s);
    (o->json ? cd_tune_session_print_json : cd_tune_session_print_text)(&b, s);
    return cd_command_result(o->json, "cdmpp.tune", "cdmpp-tune", o->log, &b, err);
}

static void on_note(void *ctx, const char *text) {
    cd_log_put(((const options *)ctx)->log, CD_LOG_WARNING, "%s", text);
}

/* A board says itself how many processors it has, and which device of a model of several it is. */
static cdmpp_status open_board(options *o, const cd_record_listener *l, cd_tune_session *s,
                               cdmpp_err *err) {
    CD_TRY(cd_tune_session_open_board(&o->session, l, &s->board, err));
    const cd_remote_about *a = cd_remote_measure_about(s->board);
    o->what.cpus = a->cpus;
    if (o->emit >= 0 && !a->isa[0] && !o->session.isa)
        return CD_FAIL(err, EUSAGE,
                       "--emit needs --isa: %.60s does not say which instructions it has",
                       cd_remote_measure_name(s->board));
    return CDMPP_OK;
}

/* The device of a model of several that a board is by its own name, where no target names one. */
static void take_board(options *o, const cd_tune_session *s) {
    const char *name = cd_remote_measure_about(s->board)->model;
    if (!s->model || o->session.device || !name[0] || cd_model_n_device(s->model) < 2) return;
    for (uint32_t i = 0; i < s->what->n; i++)
        if (s->what->unit[i].of.gpu || cd_target_option(s->what->unit[i].of.target, "-model").n)
            return;
    o->session.device = name;
}

/* Programs run here: of a model of several devices this machine's answers where no target names
 * one. Of a GPU's programs it does where the model is corrected for the GPU. */
static bool is_for_here(const options *o, const cd_model *m, const cd_tune_tasks *w) {
    if (!m || o->session.device || o->session.nearest) return false;
    if (!o->default_model && cd_model_here(m) &&
        cd_model_device_is_gpu(m, cd_model_here(m)->device) && cd_default_model_is_here(o->model))
        return true;
    for (uint32_t i = 0; !o->default_model && i < w->n; i++)
        if (w->unit[i].of.gpu || cd_target_option(w->unit[i].of.target, "-model").n) return false;
    return o->default_model || cd_model_n_device(m) > 1;
}

/* Which device of the model this machine is. The installed model of GPUs is only taken for a target
 * of the user's. */
static cdmpp_status host_of(options *o, const cd_model *m, cdmpp_err *err) {
    const cd_backend_kind *k =
        o->what.target ? cd_backend_for_target((cd_str){o->what.target, strlen(o->what.target)})
                       : NULL;
    if (!o->default_model || !k || !cd_default_model_is_gpu_plain(o->model))
        return cd_default_model_host(o->model, m, o->log, &o->session.device, err);
    return cd_default_model_gpu_host(o->model, m, k->name, o->session.gpu ? o->session.gpu : "",
                                     o->log, &o->session.device, err);
}

/* A file that is there and not used is no secret. */
static void say_unused(const options *o) {
    char why[CD_DEFAULT_MODEL_SAID];
    const cd_backend_kind *k =
        o->what.target ? cd_backend_for_target((cd_str){o->what.target, strlen(o->what.target)})
                       : NULL;
    if (o->model || !k || k->dialect == CD_DIALECT_C || o->session.host.n) return;
    if (cd_default_model_gpu_why(k->name, o->session.gpu ? o->session.gpu : "", why)[0])
        cd_log_put(o->log, CD_LOG_WARNING, "%s", why);
}

static cdmpp_status with_model(options *o, cd_tune_session *s, cdmpp_err *err) {
    cd_model *model = NULL;
    say_unused(o);
    if (o->model) CD_TRY(cd_model_load(o->model, &model, err));
    s->model = model;
    if (model) cd_score_warn(model, o->model, o->log);
    main_tune_device_say(o, model && o->tune && !s->board);
    if (s->board) {
        take_board(o, s);
    } else if (is_for_here(o, model, s->what)) {
        const cdmpp_status st = host_of(o, model, err);
        if (st) return cd_model_free(model), st;
    }
    const cdmpp_status st = o->compare ? compare(o, s, err) : tune(o, s, err);
    o->bad += s->failed;
    cd_tune_session_free(s);
    cd_model_free(model);
    return st;
}

static cdmpp_status run_session_there(options *o, cdmpp_err *err) {
    cd_tune_tasks what = {0};
    cd_tune_session s = {.o = &o->session, .what = &what, .out = o->out};
    const cd_measure_options mo = cd_tune_session_measure(&o->session);
    const cd_record_listener l = {.note = on_note, .ctx = o};
    cdmpp_status st = o->session.host.n ? open_board(o, &l, &s, err)
                      : o->dry_run      ? CDMPP_OK
                                   /* first of all: it forks */
                                   : cd_measure_open(&mo, &s.measure, err);
    if (!st && o->what.target) st = cd_target_check(o->what.target, o->log, err);
    if (!st) st = cd_tune_tasks_read(&o->what, o->log, &what, err);
    if (!st) st = o->dry_run ? print_tasks(o, &what, err) : with_model(o, &s, err);
    o->bad += what.n_left_out;
    cd_measure_close(s.measure);
    cd_remote_measure_close(s.board);
    cd_tune_tasks_free(&what);
    return st;
}

/* The session, on the cores that measure; of a board these are the worker's. */
static cdmpp_status run_session(options *o, cdmpp_err *err) {
    cd_core_hold h = {0};
    const bool here = o->core_type >= 0 && !o->session.host.n;
    cdmpp_status st = here ? cd_core_type_begin("", (cd_core_type)o->core_type, &h, err) : CDMPP_OK;
    if (!st && here && o->session.threads > cd_affinity_count())
        st = CD_FAIL(err, EUSAGE, "--threads %d: there are %d processors for --core-type %s",
                     o->session.threads, cd_affinity_count(), o->session.core);
    if (!st) st = run_session_there(o, err);
    cd_core_type_end(&h);
    return st;
}

static cdmpp_status print_replay(const options *o, const cd_tune_replay_set *s, cdmpp_err *err) {
    cd_tune_replay_row *row = NULL;
    cd_buf b = {0};
    CD_TRY(cd_tune_replay_table(&s->logs, s->replay, o->plan.at, o->plan.n_at, &row, err));
    (o->json ? cd_tune_replay_print_json : cd_tune_replay_print_text)(&b, s, row);
    cd_mem_free(row);
    CD_TRY(cd_command_result(o->json, "cdmpp.tune_replay", "cdmpp-tune", o->log, &b, err));
    if (o->curves) CD_TRY(cd_tune_replay_write_csv(s, o->curves, err));
    if (o->svg) CD_TRY(cd_tune_replay_write_svg(s, o->svg, err));
    return o->opbench ? cd_tune_replay_write_opbench(s, o->opbench, err) : CDMPP_OK;
}

static cdmpp_status replay(options *o, cdmpp_err *err) {
    const cd_tune_session_options *l = &o->session;
    const cd_tune_replay_options r = {.plan = &o->plan,
                                      .input = o->operand,
                                      .tasks = o->what.file,
                                      .model = o->model,
                                      .device = l->device,
                                      .nearest = l->nearest,
                                      .frozen = l->frozen,
                                      .held_out = o->held_out,
                                      .data = o->replay.data,
                                      .min = o->replay.min,
                                      .seeds = o->replay.seeds,
                                      .seed = l->seed,
                                      .trials = l->trials,
                                      .per_round = l->per_round,
                                      .population = l->population,
                                      .generations = l->generations,
                                      .jobs = l->jobs,
                                      .epsilon = l->epsilon,
                                      .log = o->log};
    cd_tune_replay_set s = {0};
    cdmpp_status st = cd_tune_replay_set_run(&r, &s, err);
    if (!st) st = print_replay(o, &s, err);
    o->bad = s.logs.bad;
    cd_tune_replay_set_free(&s);
    return st;
}

cdmpp_status cd_main_tune_run(cd_main_tune *o, cdmpp_err *err) {
    if (cd_main_tune_is_calibrate(o)) return cd_main_tune_calibrate(o, err);
    return o->list_tuners  ? list_tuners(o, err)
           : o->space_dump ? dump_spaces(o, err)
           : o->templates  ? show_templates(o, err)
           : o->replays    ? replay(o, err)
                           : run_session(o, err);
}
