/* Modes about networks: "--list-networks" prints the built-in ones, "--list-ops" and "--list-tasks"
 * what a network consists of, "--ops" measures it operator by operator and as a whole, "curves"
 * measures its operators at several sizes. */
#include <string.h>
#include <sys/utsname.h>

#include "features/sketch/sketch.h"
#include "profiler/cmd/main_profile.h"
#include "profiler/curves/curves.h"
#include "profiler/detect/detect.h"
#include "profiler/host/host.h"
#include "profiler/network/zoo/zoo.h"

static const char *target_of(const cd_main_profile *o) { return o->target ? o->target : "llvm"; }

static cd_network_source source_of(const cd_main_profile *o) {
    return (cd_network_source){.kind = cd_main_profile_source(o),
                               .name = o->network,
                               .batch = o->batch,
                               .size = o->input_size,
                               .dim = o->dim.v,
                               .input = o->input.v,
                               .n_dim = (uint32_t)o->dim.n,
                               .n_input = (uint32_t)o->input.n,
                               .training = o->training};
}

static cdmpp_status check_source(const cd_main_profile *o, cdmpp_err *err) {
    int kind;
    if (!o->network) return CD_FAIL(err, EUSAGE, "--network is missing");
    CD_TRY(cd_network_source_kind(o->model_source, o->network, &kind, err));
    const bool zoo = kind == CD_NETWORK_SOURCE_ZOO;
    if (zoo && (o->dim.n || o->input.n))
        return CD_FAIL(err, EUSAGE, "--dim and --input are for ONNX files");
    if (!zoo && o->input_size)
        return CD_FAIL(err, EUSAGE, "--input-size is for networks of the zoo; use --dim");
    return CDMPP_OK;
}

/* An operator that is left out: reported, and makes exit status 3. */
static void report_missing(cd_main_profile *o, const char *node, const char *op,
                           const char *reason) {
    cdmpp_err why = {0};
    if (op) (void)CD_FAIL(&why, EUNSUPPORTED, "%s: %s", op, reason);
    else (void)CD_FAIL(&why, EUNSUPPORTED, "%s", reason);
    cd_err_add_key(&why, node);
    cd_err_add_place(&why, o->network, 0);
    cd_log_err(o->log, CD_LOG_WARNING, &why);
    o->bad++;
}

void cd_main_profile_open_rules(const cd_main_profile *o, const cd_workload *w) {
    for (uint32_t k = 0; k < w->open.n; k++) {
        const cd_fusion_rule *r = &w->open.rule[k];
        if (!strcmp(r->second, CD_FUSION_RULES_MANY))
            cd_log_put(o->log, CD_LOG_WARNING,
                       "%s: no rule for %s with several readers: they stay apart", o->fusion_rules,
                       r->first);
        else
            cd_log_put(o->log, CD_LOG_WARNING, "%s: no rule for %s and %s: they stay apart",
                       o->fusion_rules, r->first, r->second);
    }
}

/* ---- --list-networks ---- */
cdmpp_status cd_main_profile_networks(cd_main_profile *o, cdmpp_err *err) {
    cd_buf b = {0};
    (o->json ? cd_zoo_print_json : cd_zoo_print_text)(&b);
    return cd_main_profile_print(o, "cdmpp.networks", &b, err);
}

/* ---- --list-ops ---- */
cdmpp_status cd_main_profile_ops_check(const cd_main_profile *o, cdmpp_err *err) {
    if (o->network && o->operand.n) return CD_FAIL(err, EUSAGE, "unexpected '%s'", o->operand.v[0]);
    return check_source(o, err);
}

/* Operators that cannot be read are in the JSON and on standard error. */
cdmpp_status cd_main_profile_ops(cd_main_profile *o, cdmpp_err *err) {
    const cd_network_source s = source_of(o);
    cd_buf b = {0};
    const cd_onnx_miss *miss;
    uint32_t n;
    cd_graph *g;
    CD_TRY(cd_network_source_read(&s, &g, &miss, &n, err));
    cd_network_source_say(g, o->log);
    for (uint32_t i = 0; i < n; i++) report_missing(o, miss[i].node, NULL, miss[i].reason);
    if (o->json) {
        cd_buf_puts(&b, "{");
        cd_graph_print_json(&b, g);
        cd_buf_puts(&b, ",");
        cd_network_source_put_misses(&b, miss, n);
        cd_buf_puts(&b, "}");
    } else cd_graph_print(&b, g);
    cd_graph_free(g);
    return cd_main_profile_print(o, "cdmpp.profile_ops", &b, err);
}

/* ---- --list-tasks ---- */
cdmpp_status cd_main_profile_tasks_check(const cd_main_profile *o, cdmpp_err *err) {
    cd_workload_layout layout;
    if (o->layout && !cd_workload_layout_parse(o->layout, &layout))
        return CD_FAIL(err, EUSAGE,
                       "--layout: expected one of " CD_WORKLOAD_LAYOUTS ", found '%.40s'",
                       o->layout);
    return cd_main_profile_ops_check(o, err);
}

/* JSON: the list's own members stand beside those of the envelope, not in "result". */
static cdmpp_status print_tasks(const cd_main_profile *o, const cd_workload *w, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    const cdmpp_status st = o->json ? cd_workload_json(&b, w, err) : cd_workload_text(&all, w, err);
    if (!st && o->json) {
        cd_buf_puts(&all, "{\"schema\":\"cdmpp.profile_tasks\",\"command\":\"cdmpp-profile\",");
        cd_buf_put(&all, b.p + 1, b.n - 3); /* between its braces */
        cd_buf_puts(&all, ",\"warnings\":");
        cd_log_put_kept(o->log, &all);
        cd_buf_puts(&all, "}\n");
    }
    cd_buf_free(&b);
    return st ? cd_buf_free(&all), st : cd_command_print(&all, err);
}

/* --out-tasks is written before anything is printed. */
cdmpp_status cd_main_profile_tasks(cd_main_profile *o, cdmpp_err *err) {
    const cd_network_source s = source_of(o);
    const cd_hardware hw = cd_main_profile_hardware(target_of(o));
    cd_workload_options opt = {.target = target_of(o), .hardware = &hw};
    const cd_onnx_miss *miss;
    uint32_t n;
    cd_graph *g;
    cd_workload *w = NULL;
    cd_buf b = {0};
    cd_fusion_rules rules = {0};
    if (o->layout) (void)cd_workload_layout_parse(o->layout, &opt.layout);
    if (o->fusion_rules) opt.rules = &rules;
    CD_TRY(cd_network_source_read(&s, &g, &miss, &n, err));
    cd_network_source_say(g, o->log);
    cdmpp_status st = cd_network_source_missing(g, miss, n, &opt, err);
    if (!st && o->fusion_rules) st = cd_fusion_rules_read(o->fusion_rules, &rules, err);
    if (!st) st = cd_workload_build(g, &opt, &w, err);
    if (!st) cd_main_profile_open_rules(o, w);
    for (uint32_t i = 0; !st && i < w->n_unsupported; i++)
        report_missing(o, w->unsupported[i].node, w->unsupported[i].op, w->unsupported[i].reason);
    if (!st && o->out_tasks) st = cd_task_registry_write(&b, w->tasks, err);
    if (!st && o->out_tasks) st = cd_main_profile_write(o->out_tasks, &b, err);
    if (!st) st = print_tasks(o, w, err);
    cd_buf_free(&b);
    cd_workload_free(w);
    cd_graph_free(g);
    cd_fusion_rules_free(&rules);
    return st;
}

/* ---- --ops ---- */

static const cd_backend_kind *backend_of(const cd_main_profile *o) {
    return cd_backend_for_target((cd_str){target_of(o), strlen(target_of(o))});
}
static bool is_opencl(const cd_main_profile *o) {
    return backend_of(o) && backend_of(o) == cd_backend_find("opencl");
}

/* How networks are measured; *hw: the processors of a program. */
static cd_measure_options measure_options(const cd_main_profile *o, cd_hardware *hw) {
    cd_measure_options m = cd_main_profile_measure_options(o);
    m.threads = o->threads > 0 ? o->threads : cd_backend_cpu_threads(o->target ? o->target : "");
    m.jobs = o->jobs;
    m.flags = NULL;
    m.memory_bytes = 0;
    m.timing = (cd_timing_policy){.budget_s = o->budget_ms * 1e-3};
    *hw = is_opencl(o) ? cd_main_profile_hardware(target_of(o))
                       : cd_target_hardware(false, m.threads, 64);
    if (is_opencl(o)) m.threads = 1;
    else m.device = NULL;
    return m;
}

enum { POOL = 256 };

uint32_t cd_main_profile_pool(const cd_main_profile *o) {
    return o->pool ? (uint32_t)o->pool : POOL;
}

const cd_device *cd_main_profile_pool_device(const cd_main_profile *o, int threads,
                                             cd_describe_entry *e) {
    cdmpp_err why = {0};
    if (cd_main_profile_pool(o) <= (o->trials > 1 ? (uint32_t)o->trials : 1)) return NULL;
    if (cd_describe_cores("", true, cd_main_profile_core(o), e, &why)) {
        cd_log_put(o->log, CD_LOG_WARNING,
                   "random schedules are measured as they come, as this processor could not be "
                   "described: %s",
                   why.msg);
        return NULL;
    }
    cd_describe_narrow(e, cd_isa_vector_bytes(o->isa, o->target));
    e->device.cores_used = threads;
    return &e->device;
}

/* Free *x, after an error too. */
static cdmpp_status make_programs(cd_main_profile *o, const cd_hardware *hw, cd_measure *m,
                                  cd_network_programs *x, cdmpp_err *err) {
    const cd_network_source s = source_of(o);
    cd_describe_entry here;
    cd_describe_namer namer = {.core = cd_main_profile_core(o)};
    const cd_program_select_options po = {
        .log = o->operand.v,
        .n_log = o->operand.n,
        .trials = (uint32_t)o->trials,
        .pool = cd_main_profile_pool(o),
        .device = is_opencl(o) ? NULL : cd_main_profile_pool_device(o, (int)hw->num_cores, &here),
        .seed = (uint64_t)o->seed,
        .target = target_of(o),
        .hardware = *hw,
        .threads = is_opencl(o) ? 1 : (int)hw->num_cores,
        .measure = m,
        .namer = is_opencl(o) ? NULL : &namer,
        .stop = o->stop};
    const cd_record_listener l = cd_main_profile_listener(o);
    cd_fusion_rules rules = {0};
    cdmpp_status st =
        o->fusion_rules ? cd_fusion_rules_read(o->fusion_rules, &rules, err) : CDMPP_OK;
    if (!st) st = cd_network_programs_make(&s, o->fusion_rules ? &rules : NULL, &po, &l, x, err);
    if (!st) cd_network_source_say(x->graph, o->log);
    if (!st && o->fusion_rules) cd_main_profile_open_rules(o, x->workload);
    cd_fusion_rules_free(&rules);
    o->bad += x->bad;
    return st;
}

cdmpp_status cd_main_profile_run_check(const cd_main_profile *o, cdmpp_err *err) {
    if (backend_of(o) != cd_backend_find("cpu") && !is_opencl(o))
        return CD_FAIL(err, EUSAGE,
                       "--ops runs on this machine's processor or on an OpenCL device: expected "
                       "--target llvm... or opencl..., found '%.60s'",
                       target_of(o));
    if (o->device && !is_opencl(o))
        return CD_FAIL(err, EUSAGE, "--device is one of OpenCL (--target opencl)");
    return check_source(o, err);
}

static cdmpp_status print_run(const cd_main_profile *o, const cd_network_programs *x,
                              cd_op_profile *ops, cdmpp_err *err) {
    cd_buf b = {0};
    if (o->json) CD_TRY(cd_op_profile_json(&b, x->workload, x->select, ops, err));
    else if (o->csv != CD_MAIN_PROFILE_NO_CSV)
        CD_TRY(
            cd_op_profile_csv(&b, x->workload, x->select, ops, o->csv == CD_MAIN_PROFILE_EOP, err));
    else CD_TRY(cd_op_profile_text(&b, x->workload, x->select, ops, o->key_only, err));
    return cd_main_profile_print(o, "cdmpp.profile_ops", &b, err);
}

/* The interval of a pass tells how steady it was, not that somebody else had half of the time. */
static void say_load(const cd_main_profile *o, int threads) {
    const double left = cd_host_load_left(threads);
    if (threads > cd_affinity_count())
        cd_log_put(
            o->log, CD_LOG_WARNING,
            "%d threads share %d processors: they wait for each other, and the times say little",
            threads, cd_affinity_count());
    if (left < CD_HOST_LOAD_IDLE)
        cd_log_put(o->log, CD_LOG_WARNING,
                   "others use the processors of the run: %.0f %% of one is left, so that times "
                   "are longer than on a quiet machine",
                   100 * left);
}

cdmpp_status cd_main_profile_run(cd_main_profile *o, cdmpp_err *err) {
    cd_hardware hw;
    const cd_measure_options mo = measure_options(o, &hw);
    const cd_op_profile_options no = {.threads = mo.threads,
                                      .device = mo.device,
                                      .cover = o->cover / 100.0,
                                      .passes = (unsigned)o->passes};
    cd_network_programs x = {0};
    cd_measure *m = NULL;
    cd_op_profile *ops = NULL;
    cd_buf b = {0};
    cdmpp_status st = cd_measure_open(&mo, &m, err); /* first of all: it forks */
    if (!st) st = make_programs(o, &hw, m, &x, err);
    if (!st && o->out) st = cd_network_programs_put_records(&b, &x, err);
    if (!st && o->out) st = cd_main_profile_write(o->out, &b, err);
    if (!st && !is_opencl(o)) say_load(o, mo.threads);
    if (!st) st = cd_op_profile_run(x.workload, x.select, &no, &ops, err);
    if (!st) st = print_run(o, &x, ops, err);
    cd_buf_free(&b);
    cd_op_profile_free(ops);
    cd_network_programs_free(&x);
    cd_measure_close(m);
    return st;
}

/* ---- curves ---- */
cdmpp_status cd_main_profile_curves_check(const cd_main_profile *o, cdmpp_err *err) {
    cd_size_list l;
    if (!o->sizes) return CD_FAIL(err, EUSAGE, "--sizes is missing");
    if (!cd_size_list_parse(o->sizes, &l))
        return CD_FAIL(err, EUSAGE,
                       "--sizes: expected batch=N,N,... or input=N,N,..., 2 to %d ascending "
                       "numbers up to %d, found '%.60s'",
                       CD_SIZE_LIST_MAX, CD_SIZE_LIST_LARGEST, o->sizes);
    if (l.input ? o->input_size : o->batch)
        return CD_FAIL(err, EUSAGE, "--sizes goes in place of %s",
                       l.input ? "--input-size" : "--batch");
    if (backend_of(o) != cd_backend_find("cpu"))
        return CD_FAIL(
            err, EUSAGE,
            "curves are of this machine's processor: expected --target llvm..., found '%.60s'",
            target_of(o));
    return check_source(o, err);
}

static cdmpp_status write_curves(cd_main_profile *o, const cd_op_curve_size *size, size_t n,
                                 cdmpp_err *err) {
    cd_op_curve_tally t;
    cd_buf b = {0};
    struct utsname host;
    if (uname(&host)) memset(&host, 0, sizeof host);
    const cdmpp_status st = cd_op_curve_write(&b, host.nodename, size, n, &t, err);
    if (st) return cd_buf_free(&b), st;
    if (t.fixed + t.apart + t.short_of_points)
        cd_log_put(o->log, CD_LOG_WARNING,
                   "left out: %zu operators whose sizes stay, %zu whose sizes vary in different "
                   "ways, %zu with a time at fewer than two sizes",
                   t.fixed, t.apart, t.short_of_points);
    return cd_main_profile_write(o->out, &b, err);
}

/* The middle one of the programs: one of them alone says little. */
static void note_spread(cd_noise *n, const cd_program_select *s) {
    double *v = cd_mem_zalloc(s->n + 1, sizeof *v);
    size_t k = 0;
    for (uint32_t i = 0; v && i < s->n; i++)
        if (!s->task[i].status) v[k++] = s->task[i].item.out.time.cv;
    if (k) cd_sort_doubles(v, k);
    if (k) cd_noise_spread(n, "programs", v[k / 2]);
    cd_mem_free(v);
}

static void say_noisy(const cd_main_profile *o, const cd_noise *n) {
    cd_buf b = {0};
    cd_noise_put(&b, n);
    cd_log_put(o->log, CD_LOG_WARNING, "curves: kept, though the machine was too noisy: %s",
               b.p ? b.p : "");
    cd_buf_free(&b);
}

cdmpp_status cd_main_profile_curves(cd_main_profile *o, cdmpp_err *err) {
    cd_network_programs x[CD_SIZE_LIST_MAX] = {0};
    cd_op_curve_size size[CD_SIZE_LIST_MAX];
    cd_size_list l;
    cd_hardware hw;
    cd_measure *m = NULL;
    const cd_measure_options mo = measure_options(o, &hw);
    cd_noise noise;
    cdmpp_status st = cd_measure_open(&mo, &m, err); /* first of all: it forks */
    cd_noise_begin(&noise);
    (void)cd_size_list_parse(o->sizes, &l);
    for (size_t i = 0; i < l.n && !st; i++) {
        *(l.input ? &o->input_size : &o->batch) = l.v[i];
        st = make_programs(o, &hw, m, &x[i], err);
        size[i] = (cd_op_curve_size){x[i].workload, x[i].select};
    }
    cd_measure_close(m); /* what its processes used counts as ours from now on */
    for (size_t i = 0; i < l.n && !st; i++) note_spread(&noise, x[i].select);
    cd_noise_end(&noise);
    if (!st) st = cd_noise_check(&noise, o->keep_noisy, "curves", "--keep-noisy", err);
    if (!st && cd_noise_is_much(&noise)) say_noisy(o, &noise);
    if (!st) st = write_curves(o, size, l.n, err);
    for (size_t i = 0; i < l.n; i++) cd_network_programs_free(&x[i]);
    return st;
}

/* "fusion detect": which operators a back end runs as one program. */

static const char *target_of_fusion(const cd_main_profile *o) {
    return o->target                                            ? o->target
           : o->fusion_backend == CD_MAIN_PROFILE_FUSION_OPENCL ? "opencl"
                                                                : "llvm";
}

/* A detection takes minutes: each answer is told when it is there. */
static void told(void *ctx, const cd_detect_test *t) {
    static const char *const word[] = {"undecided", "apart", "fused"};
    const cd_main_profile *o = ctx;
    cd_log_put(o->log, CD_LOG_INFO, "%s%s%s and %s: %s", t->before ? t->before : "",
               t->before ? "+" : "", t->first,
               strcmp(t->second, CD_FUSION_RULES_MANY) ? t->second : "several readers",
               word[t->answer]);
}

static cdmpp_status read_numbers(const cd_main_profile *o, cd_detect_options *d, cdmpp_err *err) {
    *d = (cd_detect_options){.operators = o->operators,
                             .chains = o->chains,
                             .alpha = 0.5,
                             .level = 0.99,
                             .repeats = (unsigned)o->repeats,
                             .channels = o->channels,
                             .size = o->input_size,
                             .stop = o->stop};
    CD_TRY(cd_option_number("alpha", o->alpha, 0.01, 1, &d->alpha, err));
    return cd_option_number("confidence", o->confidence, 0.5, 0.999999, &d->level, err);
}

cdmpp_status cd_main_profile_fusion_check(const cd_main_profile *o, cdmpp_err *err) {
    cd_detect_options d;
    const bool command = o->fusion_backend == CD_MAIN_PROFILE_FUSION_COMMAND;
    if (o->operand.n != 1 || strcmp(o->operand.v[0], "detect"))
        return CD_FAIL(err, EUSAGE, "fusion: expected detect, found '%.40s'",
                       o->operand.n ? o->operand.v[o->operand.n > 1] : "");
    if (command != (o->fusion_command != NULL))
        return CD_FAIL(err, EUSAGE,
                       command ? "--backend command: --command is missing"
                               : "--command goes with --backend command");
    if (command && o->planted) return CD_FAIL(err, EUSAGE, "--planted is for our executor");
    const cd_backend_kind *b =
        cd_backend_for_target((cd_str){target_of_fusion(o), strlen(target_of_fusion(o))});
    if (!command &&
        b != cd_backend_find(o->fusion_backend == CD_MAIN_PROFILE_FUSION_OPENCL ? "opencl" : "cpu"))
        return CD_FAIL(err, EUSAGE, "--target %.60s: not of this --backend", target_of_fusion(o));
    return read_numbers(o, &d, err);
}

/* The file of rules first: what is printed may be lost in a pipe. Undecided tests make exit status
 * 3 where they could not be measured. */
static cdmpp_status print(cd_main_profile *o, const cd_detect *d, cdmpp_err *err) {
    static const char *const name[] = {"cpu", "opencl", "command"};
    cd_buf rules = {0}, b = {0};
    for (uint32_t k = 0; k < d->n; k++) {
        if (!d->test[k].why.code) continue;
        cd_log_put(o->log, CD_LOG_WARNING, "%s and %s: %s", d->test[k].first, d->test[k].second,
                   d->test[k].why.msg);
        o->bad++;
    }
    if (d->apart)
        cd_log_put(o->log, CD_LOG_WARNING,
                   "%u pairs are not tested: no tensor can be read by both operators", d->apart);
    cdmpp_status st = cd_detect_json(&rules, d, name[o->fusion_backend], err);
    if (!st && !o->json) st = cd_detect_text(&b, d, err);
    if (!st && o->json) cd_buf_put(&b, rules.p, rules.n);
    cd_buf_puts(&rules, "\n");
    if (!st && o->out) st = cd_main_profile_write(o->out, &rules, err);
    cd_buf_free(&rules);
    if (!st) return cd_main_profile_print(o, "cdmpp.profile_fusion", &b, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status detect(cd_main_profile *o, const cd_detect_backend *b, cdmpp_err *err) {
    cd_detect_options d;
    cd_detect *found = NULL;
    CD_TRY(read_numbers(o, &d, err));
    d.told = told;
    d.ctx = o;
    cdmpp_status st = cd_detect_run(b, &d, &found, err);
    if (!st) st = print(o, found, err);
    cd_detect_free(found);
    return st;
}

/* One thread, if nothing else is said: its own time is read, so that other load is not in it. */
static cdmpp_status on_executor(cd_main_profile *o, cdmpp_err *err) {
    cd_measure_options mo = cd_main_profile_measure_options(o);
    cd_detect_backend b;
    cd_fusion_rules planted = {0};
    mo.threads = o->threads > 0 ? o->threads : 1;
    mo.jobs = o->jobs;
    cd_detect_executor_options eo = {.target = target_of_fusion(o),
                                     .device = o->device,
                                     .hardware = cd_main_profile_hardware(target_of_fusion(o)),
                                     .threads = mo.threads,
                                     .trials = (uint32_t)o->trials,
                                     .pool = cd_main_profile_pool(o),
                                     .seed = (uint64_t)o->seed,
                                     .budget_s = o->budget_ms * 1e-3,
                                     .planted = o->planted ? &planted : NULL,
                                     .stop = o->stop};
    const bool cpu = o->fusion_backend == CD_MAIN_PROFILE_FUSION_CPU;
    cd_describe_entry here;
    cd_detect_executor *x = NULL;
    if (cpu) eo.hardware = cd_target_hardware(false, mo.threads, 64);
    cdmpp_status st = o->planted ? cd_fusion_rules_read(o->planted, &planted, err) : CDMPP_OK;
    if (!st) st = cd_measure_open(&mo, &eo.measure, err);
    if (!st && cpu) eo.described = cd_main_profile_pool_device(o, mo.threads, &here);
    if (!st) st = cd_detect_executor_open(&eo, &x, &b, err);
    if (!st) st = detect(o, &b, err);
    cd_detect_executor_close(x);
    cd_measure_close(eo.measure);
    cd_fusion_rules_free(&planted);
    return st;
}

cdmpp_status cd_main_profile_fusion(cd_main_profile *o, cdmpp_err *err) {
    if (o->fusion_backend != CD_MAIN_PROFILE_FUSION_COMMAND) return on_executor(o, err);
    cd_detect_command c = {.command = o->fusion_command,
                           .limit_s = o->timeout_s ? o->timeout_s : 120,
                           .stop = o->stop};
    const cd_detect_backend b = cd_detect_command_backend(&c);
    return detect(o, &b, err);
}
