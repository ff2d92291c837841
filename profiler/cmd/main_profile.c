/* cdmpp-profile -- measures tensor programs. This file has the modes, which options they take, and
 * main(), and what several modes use. The options are in main_profile_options.def. */
#include <string.h>

#include "base/io/io.h"
#include "features/sketch/sketch.h"
#include "profiler/cmd/main_profile.h"
#include "profiler/describe/describe.h"
#include "profiler/machine/machine.h"
#include "profiler/network/source/source.h"
#include "profiler/records/records.h"
#include "profiler/store/store.h"
#include "profiler/wrap/wrap.h"

#define AT(member) offsetof(cd_main_profile, member)
enum { IN_WHAT, IN_HOW, IN_STORE, IN_NETWORK, IN_FUSION, IN_KERNELS, IN_HOSTS, IN_TRACE };
static const char *const group[] = {"What",   "How",     "Store",       "Network",
                                    "Fusion", "Kernels", "Other hosts", "Traces"};
/* Bits of the modes, in the order of the table of modes. */
enum {
    RECORDS = 1,
    DRAW = 1 << 1,
    SWEEP = 1 << 2,
    CORUN = 1 << 3,
    CURVES = 1 << 4,
    KERNELS = 1 << 5,
    FUSION = 1 << 6,
    STORE = 1 << 7,
    LIST_NETWORKS = 1 << 8,
    LIST_OPS = 1 << 9,
    LIST_TASKS = 1 << 10,
    OPS = 1 << 11,
    DESCRIBE = 1 << 12,
    WORKER = 1 << 13,
    WRAP = 1 << 14,
    TRACE = 1 << 15,
    /* programs, by cd_main_profile_measure_options */
    MEASURING = RECORDS | SWEEP | CORUN | CURVES | KERNELS | FUSION | OPS | WORKER,
    OF_NETWORKS = LIST_OPS | LIST_TASKS | OPS | CURVES | KERNELS | TRACE
};
#define X(name, letter, arg, kind, member, values, group, modes, help)                             \
    {name, letter, arg, CD_OPTION_##kind, AT(member), values, group, help},
static const cd_option table[] = {
#include "profiler/cmd/main_profile_options.def"
};
#undef X
#define X(name, letter, arg, kind, member, values, group, modes, help) modes,
static const unsigned taken_by[] = {
/* of each row of `table` */
#include "profiler/cmd/main_profile_options.def"
};
#undef X

/* The first row whose flag is given or whose word comes first. */
typedef struct {
    const char *name; /* a word, or the option that is its flag */
    long flag;        /* offset of a bool; -1: it is a word */
    cdmpp_status (*check)(const cd_main_profile *o, cdmpp_err *err); /* NULL: nothing to check */
    cdmpp_status (*run)(cd_main_profile *o, cdmpp_err *err);
} mode;
static const mode modes[] = {
    {"records", -1, cd_main_profile_records_check, cd_main_profile_records},
    {"draw", -1, cd_main_profile_draw_check, cd_main_profile_draw},
    {"sweep", -1, cd_main_profile_sweep_check, cd_main_profile_sweep},
    {"corun", -1, cd_main_profile_corun_check, cd_main_profile_corun},
    {"curves", -1, cd_main_profile_curves_check, cd_main_profile_curves},
    {"kernels", -1, cd_main_profile_kernels_check, cd_main_profile_kernels},
    {"fusion", -1, cd_main_profile_fusion_check, cd_main_profile_fusion},
    {"store", -1, cd_main_profile_store_check, cd_main_profile_store},
    {"--list-networks", (long)AT(list_networks), NULL, cd_main_profile_networks},
    {"--list-ops", (long)AT(list_ops), cd_main_profile_ops_check, cd_main_profile_ops},
    {"--list-tasks", (long)AT(list_tasks), cd_main_profile_tasks_check, cd_main_profile_tasks},
    {"--ops", (long)AT(run_ops), cd_main_profile_run_check, cd_main_profile_run},
    {"--describe-device", (long)AT(describe), cd_main_profile_describe_check,
     cd_main_profile_describe},
    {"--worker", (long)AT(worker), cd_main_profile_worker_check, cd_main_profile_worker},
    {"wrap", -1, cd_main_profile_wrap_check, cd_main_profile_wrap},
    {"trace", -1, cd_main_profile_trace_check, cd_main_profile_trace},
};
enum { N_MODE = sizeof modes / sizeof *modes };

static const mode *mode_of(const cd_main_profile *o, const char *word) {
    for (const mode *m = modes; m < modes + N_MODE; m++)
        if (m->flag >= 0 ? *((const bool *)o + m->flag) : word && !strcmp(m->name, word)) return m;
    return NULL;
}

/* An option that the mode would not read is refused, with the modes that do. */
static cdmpp_status check_taken(const cd_cli_args *said, const mode *m, cdmpp_err *err) {
    const unsigned self_bit = 1u << (m - modes);
    for (size_t i = 0; said->given && i < sizeof table / sizeof *table; i++) {
        cd_buf b = {0};
        if (!said->given[i] || taken_by[i] & self_bit) continue;
        for (size_t k = 0; k < N_MODE; k++)
            if (modes[k].flag == (long)table[i].offset)
                return CD_FAIL(err, EUSAGE, "%s and --%s do not go together", m->name,
                               table[i].name);
        for (size_t k = 0; k < N_MODE; k++)
            if (taken_by[i] >> k & 1) cd_buf_putf(&b, "%s%s", b.n ? ", " : "", modes[k].name);
        (void)CD_FAIL(err, EUSAGE, "--%s is an option of %s; %s does not take it", table[i].name,
                      b.p ? b.p : "", m->name);
        cd_buf_free(&b);
        return CDMPP_EUSAGE;
    }
    return CDMPP_OK;
}

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    cd_main_profile *o = to;
    const char *word = said->operand.n ? said->operand.v[0] : NULL;
    const mode *m = mode_of(o, word);
    if (!m) {
        cd_buf b = {0};
        const char *name[N_MODE];
        for (size_t i = 0; i < N_MODE; i++)
            cd_buf_putf(&b, "%s%s", i ? ", " : "", name[i] = modes[i].name);
        const char *near = word ? cd_did_you_mean_nearest(word, name, N_MODE) : NULL;
        (void)CD_FAIL(err, EUSAGE, "expected what to do (%s), found '%.60s'%s%s%s", b.p ? b.p : "",
                      word ? word : "", near ? ", did you mean '" : "", near ? near : "",
                      near ? "'?" : "");
        cd_buf_free(&b);
        return CDMPP_EUSAGE;
    }
    CD_TRY(check_taken(said, m, err));
    o->operand = said->operand;
    if (m->flag < 0) o->operand.v++, o->operand.n--; /* without the mode's word */
    return m->check ? m->check(o, err) : CDMPP_OK;
}

static const char *const use[] = {
    "records --tasks FILE --out OUT.json [OPTION...] LOG|FOLDER...",
    "records --tasks FILE --dry-run|--emit-source [OPTION...] LOG|FOLDER...",
    "draw --tasks FILE [--trials N] [--seed N] [--target TARGET] [--out FILE]",
    "sweep --tasks FILE [--workload KEY] [--factor LIST] [--out CSV] [--plot SVG] [OPTION...] "
    "LOG...",
    "corun --tasks FILE [--limit N] [--threads N] [--rounds N] [--out CSV] [OPTION...] LOG...",
    "corun --tasks FILE --group N [--trials N] [--seed N] [--pairs CSV] [OPTION...] LOG...",
    "curves --network NAME|FILE --sizes batch=N,N,...|input=N,N,... [--trials N] [--out TSV] "
    "[OPTION...] [LOG...]",
    "fusion detect [--backend cpu|opencl|command] [--command COMMAND] [--operators LIST] [--out "
    "RULES.json] [OPTION...]",
    "kernels sample --network NAME,NAME,... --out SAMPLES.jsonl [--seconds N] [--limit N] "
    "[OPTION...]",
    "kernels predict --network NAME,NAME,... [--measure] [OPTION...] SAMPLES.jsonl",
    "store import|list|best|near|export|stats|tables --store FILE [OPTION...] "
    "[LOG|TABLE|TRACE|FOLDER...]",
    "--list-ops --network NAME|FILE [OPTION...]",
    "--list-tasks --network NAME|FILE [--target TARGET] [--layout LAYOUT] [--out-tasks FILE]",
    "--describe-device [--measure] [cpu|opencl[:NAME]|cuda[:NUMBER]...]",
    "--describe-device --from-records --tasks FILE LOG|FOLDER...",
    "records --host USER@BOARD... --tasks FILE --out OUT.json [OPTION...] LOG|FOLDER...",
    "--ops --network NAME|FILE [--trials N] [--cover PERCENT] [--out FILE] [OPTION...] [LOG...]",
    "wrap [--json] [--out FILE] -- COMMAND [ARGUMENT...]",
    "trace [--range PATTERN] [--map CSV] [--network NAME|FILE] [--save-graph FILE] [--labels CSV] "
    "FILE...",
    NULL};
static const char *const example[] = {
    "Measure on one thread what others have measured elsewhere",
    "cdmpp-profile records --tasks network_info --threads 1 --target 'llvm -model=here' --out "
    "here.json measure_records/",
    "The C code of the first ten",
    "cdmpp-profile records --tasks network_info --emit-source --dialect c --limit 10 "
    "measure_records/",
    "Which records can be lowered",
    "cdmpp-profile records --dry-run --tasks network_info measure_records/",
    "Keep what others measured, and ask for the best schedules of a task",
    "cdmpp-profile store import --store all.db --tasks network_info measure_records/\n"
    "cdmpp-profile store best --store all.db --device v100 --workload '[\"9f8e...\", [1, 64, 56, "
    "56]]'",
    "Shapes and operations of an ONNX file",
    "cdmpp-profile --list-ops --model-source onnx --network net.onnx --batch 8",
    NULL};
static const char *const see[] = {"cdmpp-extract(1)", "cdmpp-train(1)", NULL};
static const cd_option_usual usual[] = {
    {"tasks", "Task definitions: a file or a folder"},
    {"network", "An ONNX file or a name"},
    {"out", "The file that grows"},
    {"target", "Target: llvm, cuda, opencl"},
    {"threads", "Threads of a program on a CPU"},
    {"trials", "Programs of a task"},
    {"limit", "At most N records"},
    {"describe-device", "Describe this machine"},
    {"measure", "With --describe-device: measure it"},
    {"ops", "Measure a network by operators"},
    {"list-tasks", "The tasks of a network"},
    {"host", "Measure there, by ssh"},
    {"store", "The store of measurements"},
    {NULL, NULL},
};

static const cd_command self = {
    "cdmpp-profile",
    "measure tensor programs",
    use,
    "Makes measure records in the format of TVM's auto_scheduler on this machine.\n\n"
    "records: compiles and measures the programs of measure records, of any tuner and machine, and "
    "appends a record of each to --out. "
    "\"-\" is standard input. A program that crashes, hangs, does not compile or is wrong is a "
    "record with its error number; a line that cannot be used is "
    "counted and named. The others are done, and the exit status is 3. A run that was stopped or "
    "killed goes on with the same command.\n\n"
    "draw: writes records of random schedules of all tasks, by the rules of TVM's auto_scheduler; "
    "they have no time yet.\n\n"
    "sweep: takes the fastest record of a workload and measures variants of it that differ in one "
    "thing each: a tile length, the "
    "order of two loops, where a stage is computed, what is fused, unrolling, vectors, threads, a "
    "cache that others use or that is cold.\n\n"
    "corun: takes the fastest record of each of the first workloads (--limit, default 6) and "
    "measures all pairs of them alone and at the same "
    "time, on different processors and on the same: how much slower does each make the other? With "
    "--group it draws groups of two to four of the programs, measures them, and prints what "
    "the pairs predict beside that.\n\n"
    "curves: measures the operators of a network at several sizes and writes a table of time "
    "against size, which store import reads.\n\n"
    "fusion detect: measures test networks of two or more operators on a back end and tells which "
    "operators it runs as one program, as a table and with "
    "--out as a file of rules for --fusion-rules.\n\n"
    "kernels sample: measures groups of operators of networks, with other sizes, where predictions "
    "of their times are wrong, until they are not. "
    "kernels predict: the sum of predicted times of a network's groups.\n\n"
    "store: keeps measurements in one SQLite file that many may write at once. import reads logs, "
    "tables of operators, "
    "Nsight Systems' exports and PyTorch's traces; list shows workloads, best the fastest "
    "measurements, near those of the "
    "nearest shapes of the same operator; export writes records, CSV or JSON; stats counts; tables "
    "shows which factors of which operators were measured on what, and what fills empty cells.\n\n"
    "wrap: runs a program and tells on standard error its time, resident memory, and heap by a "
    "library that is loaded into it; "
    "the exit status is the program's.\n\n"
    "trace: reads what a profiler wrote (nvprof, Nsight Systems, Nsight Compute, cutlass_profiler, "
    "PyTorch's profiler, Habana's), several files as repeats "
    "of one run, and tells the time of each kernel and operator, how busy the device was, and the "
    "gaps.",
    table,
    sizeof table / sizeof *table,
    group,
    "",
    example,
    NULL,
    see,
    NULL,
    check,
    usual};

/* ---- shared by the modes ---- */
cdmpp_status cd_main_profile_logs_check(const cd_main_profile *o, const char *none,
                                        cdmpp_err *err) {
    if (!o->task.n) return CD_FAIL(err, EUSAGE, "--tasks is missing");
    return o->operand.n ? CDMPP_OK : CD_FAIL(err, EUSAGE, "%s", none);
}

cdmpp_status cd_main_profile_tasks_load(const cd_main_profile *o, cd_task_registry **out,
                                        cdmpp_err *err) {
    CD_TRY(cd_task_registry_new(out, err));
    return cd_task_registry_load_all(*out, o->task.v, o->task.n, o->log, err);
}

cd_measure_options cd_main_profile_measure_options(const cd_main_profile *o) {
    return (cd_measure_options){
        .device = o->device,
        .isa = o->isa,
        .flags = o->cflags,
        .cache = o->cache,
        .cache_bytes = (uint64_t)o->cache_mb << 20,
        .pin = !o->no_pin,
        .build_limit_s = o->build_timeout_s,
        .run_limit_s = o->timeout_s,
        .memory_bytes = (uint64_t)o->memory_mb << 20,
        .timing = {.budget_s = o->budget_ms * 1e-3, .cold = o->cold, .cool = o->cool},
        .stop = o->stop};
}

cd_hardware cd_main_profile_hardware(const char *target) {
    const bool gpu = cd_target_is_gpu((cd_str){target, strlen(target)});
    return cd_target_hardware(gpu, gpu ? 0 : cd_backend_cpu_threads(target), 64);
}

const char *cd_main_profile_core(const cd_main_profile *o) {
    return o->core_type >= 0 ? cd_core_type_name((cd_core_type)o->core_type) : NULL;
}

static void on_note(void *ctx, const char *text) {
    cd_log_put(((cd_main_profile *)ctx)->log, CD_LOG_WARNING, "%s", text);
}
int cd_main_profile_source(const cd_main_profile *o) {
    int kind = CD_NETWORK_SOURCE_ZOO;
    /* checked with the options */
    (void)cd_network_source_kind(o->model_source, o->network, &kind, NULL);
    return kind;
}

static void on_bad(void *ctx, const cdmpp_err *why) {
    cd_main_profile *o = ctx;
    o->bad++;
    cd_log_err(o->log, CD_LOG_WARNING, why);
}
cd_record_listener cd_main_profile_listener(cd_main_profile *o) {
    return (cd_record_listener){on_bad, on_note, o};
}

cdmpp_status cd_main_profile_print(const cd_main_profile *o, const char *schema, cd_buf *b,
                                   cdmpp_err *err) {
    return cd_command_result(o->json, schema, "cdmpp-profile", o->log, b, err);
}

cdmpp_status cd_main_profile_write(const char *path, cd_buf *b, cdmpp_err *err) {
    if (!path) return cd_command_print(b, err);
    cdmpp_status st = CDMPP_OK;
    if (b->oom) st = CD_FAIL(err, ENOMEM, "output");
    else st = cd_file_write(path, b->p ? b->p : "", b->n, err);
    cd_buf_free(b);
    return st;
}

/* The mode, on the cores that it is to run on; of other hosts these are the worker's. */
static cdmpp_status run_there(cd_main_profile *o, const mode *m, cdmpp_err *err) {
    cd_core_hold h = {0};
    const bool here = o->core_type >= 0 && !o->host.n;
    cdmpp_status st = here ? cd_core_type_begin("", (cd_core_type)o->core_type, &h, err) : CDMPP_OK;
    if (!st && here && o->threads > cd_affinity_count())
        st = CD_FAIL(err, EUSAGE, "--threads %d: there are %d processors for --core-type %s",
                     o->threads, cd_affinity_count(), cd_main_profile_core(o));
    if (!st) st = m->run(o, err);
    cd_core_type_end(&h);
    return st;
}

/* Exit status: of an error its own, 3 where items failed, else that of a wrapped program. */
static cdmpp_status run(cd_command_run *r, void *options, cdmpp_err *err) {
    cd_main_profile *o = options;
    o->json = r->said.json;
    o->log = &r->log;
    o->stop = r->stop;
    const mode *m = mode_of(o, r->said.operand.n ? r->said.operand.v[0] : NULL);
    /* of the store it is a filter */
    cdmpp_status st = o->target && m->run != cd_main_profile_store
                          ? cd_target_check(o->target, o->log, err)
                          : CDMPP_OK;
    if (!st) st = run_there(o, m, err);
    r->exit_code = o->bad ? 3 : o->exit_code;
    return st;
}

int main(int argc, char **argv) {
    cd_main_profile o = {.dialect = -1, .core_type = -1, .csv = CD_MAIN_PROFILE_NO_CSV};
    return cd_command_main(&self, argc, argv, &o, run);
}

/* Modes about this machine: "--describe-device" prints entries of devices.yaml, "wrap" measures
 * time and memory of any program. */

cdmpp_status cd_main_profile_describe_check(const cd_main_profile *o, cdmpp_err *err) {
    if (o->core_type >= 0 && (o->from_records || o->operand.n > 1 ||
                              (o->operand.n && strcmp(o->operand.v[0], "cpu") != 0)))
        return CD_FAIL(
            err, EUSAGE,
            "--core-type is about the processor: --describe-device --core-type TYPE cpu");
    if (o->keep_noisy && !o->measure)
        return CD_FAIL(err, EUSAGE, "--keep-noisy goes with --measure");
    if (!o->from_records) return CDMPP_OK;
    if (o->measure) return CD_FAIL(err, EUSAGE, "--measure and --from-records: one or the other");
    return cd_main_profile_logs_check(o, "no records to read", err);
}

/* Descriptions beside which the descriptors stand: the installed ones, where there are any. */
static cdmpp_status from_records(cd_main_profile *o, cd_buf *b, cdmpp_err *err) {
    const cd_record_listener l = cd_main_profile_listener(o);
    cd_task_registry *tasks = NULL;
    cd_device_table *devices = NULL;
    cd_arena a = {0};
    cd_diag diag = {0};
    const char *path;
    if (!cd_device_table_path(&a, NULL, NULL, &path, NULL))
        (void)cd_device_table_load(path, &diag, &devices, NULL);
    cdmpp_status st = cd_main_profile_tasks_load(o, &tasks, err);
    if (!st) st = cd_describe_records(tasks, o->operand.v, o->operand.n, devices, &l, b, err);
    cd_task_registry_free(tasks);
    cd_device_table_free(devices);
    cd_diag_free(&diag);
    cd_arena_free(&a);
    return st;
}

cdmpp_status cd_main_profile_describe(cd_main_profile *o, cdmpp_err *err) {
    cd_buf b = {0}, quoted = {0};
    const size_t n = o->operand.n ? o->operand.n : 1;
    const cd_describe_how how = !o->measure     ? CD_DESCRIBE_SAID
                                : o->keep_noisy ? CD_DESCRIBE_NOISY
                                                : CD_DESCRIBE_MEASURED;
    cdmpp_status st = o->from_records ? from_records(o, &b, err) : CDMPP_OK;
    for (size_t i = 0; i < n && !st && !o->from_records; i++)
        st = cd_describe(o->operand.n ? o->operand.v[i] : "cpu", how, cd_main_profile_core(o), &b,
                         err);
    if (st) return cd_buf_free(&b), st;
    if (o->json) cd_command_quote(&quoted, &b);
    return cd_main_profile_print(o, "cdmpp.device_description", o->json ? &quoted : &b, err);
}

cdmpp_status cd_main_profile_wrap_check(const cd_main_profile *o, cdmpp_err *err) {
    return o->operand.n ? CDMPP_OK
                        : CD_FAIL(err, EUSAGE, "wrap: expected -- and the command to run");
}

/* To standard error, behind everything that the program wrote there, or to --out ("-": standard
 * output). */
static cdmpp_status print_wrap(const cd_main_profile *o, const cd_process_profile_report *r,
                               cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    (o->json ? cd_process_profile_put_json : cd_process_profile_put_text)(o->json ? &b : &all, r);
    if (o->json) cd_command_json(&all, "cdmpp.wrap", "cdmpp-profile", o->log, &b);
    FILE *f = o->out && strcmp(o->out, "-") ? fopen(o->out, "wb") : o->out ? stdout : stderr;
    bool good = f && !all.oom && fwrite(all.p, 1, all.n, f) == all.n;
    cd_buf_free(&all);
    if (f && f != stderr && f != stdout && fclose(f)) good = false;
    return good ? CDMPP_OK
                : CD_FAIL(err, EIO, "cannot write %.150s", o->out ? o->out : "to standard error");
}

cdmpp_status cd_main_profile_wrap(cd_main_profile *o, cdmpp_err *err) {
    cd_arena a = {0};
    cd_process_profile_report r;
    char **argv = cd_arena_zalloc(&a, o->operand.n + 1, sizeof *argv);
    bool good = argv != NULL;
    for (size_t i = 0; i < o->operand.n && good; i++) /* copies: posix_spawnp takes char *const * */
        good =
            (argv[i] = cd_str_dup(&a, (cd_str){o->operand.v[i], strlen(o->operand.v[i])})) != NULL;
    cdmpp_status st = good ? CDMPP_OK : CD_FAIL(err, ENOMEM, "arguments");
    if (!st) st = cd_process_profile_run(&a, argv, NULL, &r, err);
    if (!st) st = print_wrap(o, &r, err);
    if (!st) o->exit_code = r.signaled ? 128 + r.code : r.code; /* as a shell does */
    cd_arena_free(&a);
    return st;
}

/* Modes that measure variants and pairs of programs: "sweep" (one schedule, changed in one thing at
 * a time), "corun" (two programs at the same time); and "draw", which only makes records. */

/* ---- sweep ---- */
cdmpp_status cd_main_profile_sweep_check(const cd_main_profile *o, cdmpp_err *err) {
    unsigned mask;
    cd_str bad = {0};
    CD_TRY(cd_main_profile_logs_check(o, "no records to begin from", err));
    if (!cd_schedule_variants_mask(o->factor, &mask, &bad))
        return CD_FAIL(err, EUSAGE,
                       "--factor: expected some of %s, separated by commas, found '%.*s'",
                       CD_VARY_FACTORS, cd_str_shown(bad, 60), bad.p);
    return CDMPP_OK;
}

static cdmpp_status print_sweep(cd_main_profile *o, const cd_schedule_sweep *s, cdmpp_err *err) {
    cd_buf b = {0};
    size_t disturbed = 0;
    for (size_t i = 0; i < s->n; i++)
        o->bad += s->row[i].out.error_no != 0, disturbed += s->row[i].disturbed;
    if (disturbed)
        cd_log_put(
            o->log, CD_LOG_WARNING,
            "%zu of %zu ratios are disturbed, marked '?': meanwhile the base took %.4g to %.4g ms",
            disturbed, s->n - 1, s->measured.low_s * 1e3, s->measured.high_s * 1e3);
    if (o->out) {
        CD_TRY(cd_schedule_sweep_csv(&b, s, err));
        CD_TRY(cd_main_profile_write(o->out, &b, err));
    }
    if (o->plot) {
        CD_TRY(cd_schedule_sweep_svg(&b, s, err));
        CD_TRY(cd_main_profile_write(o->plot, &b, err));
    }
    CD_TRY(o->json ? cd_schedule_sweep_json(&b, s, err) : cd_schedule_sweep_text(&b, s, err));
    return cd_main_profile_print(o, "cdmpp.profile_sweep", &b, err);
}

cdmpp_status cd_main_profile_sweep(cd_main_profile *o, cdmpp_err *err) {
    const cd_record_listener l = cd_main_profile_listener(o);
    cd_schedule_sweep_options so = {
        .task_file = o->task.v,
        .n_task_file = o->task.n,
        .log = o->log,
        .best = {o->operand.v, o->operand.n, o->workload, 1, &l, o->stop},
        .measure = cd_main_profile_measure_options(o),
        .target = o->target,
        .threads =
            o->threads > 0 ? o->threads : cd_backend_cpu_threads(o->target ? o->target : "")};
    cd_schedule_sweep s;
    cd_str ignored;
    so.measure.flags = NULL; /* --cflags and --memory-mb are for records */
    so.measure.memory_bytes = 0;
    so.measure.jobs = o->jobs;
    (void)cd_schedule_variants_mask(o->factor, &so.factors, &ignored);
    cdmpp_status st = cd_schedule_sweep_run(&so, &s, err);
    if (!st) st = print_sweep(o, &s, err);
    cd_schedule_sweep_free(&s);
    return st;
}

/* ---- corun ---- */
cdmpp_status cd_main_profile_corun_check(const cd_main_profile *o, cdmpp_err *err) {
    CD_TRY(cd_main_profile_logs_check(o, "no records to read", err));
    if (o->limit > CD_RECORD_CORUN_MAX)
        return CD_FAIL(err, EUSAGE, "--limit: at most %d workloads in one table",
                       CD_RECORD_CORUN_MAX);
    if (o->rounds > CD_CORUN_ROUNDS)
        return CD_FAIL(err, EUSAGE, "--rounds: at most %d", CD_CORUN_ROUNDS);
    if ((o->pairs || o->trials || o->seed) && !o->corun_group)
        return CD_FAIL(err, EUSAGE, "--pairs, --trials and --seed are about --group");
    return CDMPP_OK;
}

static cdmpp_status print_corun(cd_main_profile *o, const cd_record_corun *c, cdmpp_err *err) {
    cd_buf b = {0};
    o->bad += c->bad;
    if (o->out) {
        cd_record_corun_csv(&b, c);
        CD_TRY(cd_main_profile_write(o->out, &b, err));
    }
    (o->json ? cd_record_corun_json : cd_record_corun_text)(&b, c);
    return cd_main_profile_print(o, "cdmpp.profile_corun", &b, err);
}

static cdmpp_status put_groups(cd_main_profile *o, const cd_record_corun *c,
                               const cd_corun_table *t, cd_arena *a, cdmpp_err *err) {
    cd_buf b = {0};
    cd_corun_check k;
    double *predicted = CD_NEWN(a, double, c->n_group *CD_CORUN_GROUP);
    if (!predicted) return CD_FAIL(err, ENOMEM, "%zu groups", c->n_group);
    CD_TRY(cd_corun_table_check(t, c, predicted, &k, err));
    if (o->out) {
        cd_corun_table_csv(&b, c, t, predicted);
        CD_TRY(cd_main_profile_write(o->out, &b, err));
    }
    (o->json ? cd_corun_table_json : cd_corun_table_text)(&b, c, t, predicted, &k);
    return cd_main_profile_print(o, "cdmpp.profile_corun_groups", &b, err);
}

static cdmpp_status print_groups(cd_main_profile *o, const cd_record_corun *c, cdmpp_err *err) {
    cd_corun_table t = {0};
    o->bad += c->bad;
    cdmpp_status st =
        o->pairs ? cd_corun_table_read(o->pairs, &t, err) : cd_corun_table_of(c, &t, err);
    if (!st) st = cd_err_at(err, put_groups(o, c, &t, &t.arena, err), o->pairs, 0);
    cd_corun_table_free(&t);
    return st;
}

cdmpp_status cd_main_profile_corun(cd_main_profile *o, cdmpp_err *err) {
    const cd_record_listener l = cd_main_profile_listener(o);
    const cd_record_corun_options co = {.task_file = o->task.v,
                                        .n_task_file = o->task.n,
                                        .log = o->log,
                                        .measure = cd_main_profile_measure_options(o),
                                        .target = o->target,
                                        .best = {o->operand.v, o->operand.n, o->workload,
                                                 o->limit > 0 ? (size_t)o->limit : 6, &l, o->stop},
                                        .group = (unsigned)o->corun_group,
                                        .n_group = o->trials > 0 ? (unsigned)o->trials : 10,
                                        .seed = (uint64_t)o->seed,
                                        .no_pairs = o->pairs != NULL,
                                        .policy = {.threads = o->threads > 0 ? o->threads : 1,
                                                   .window_s = o->budget_ms * 1e-3,
                                                   .rounds = (unsigned)o->rounds,
                                                   .limit_s = o->timeout_s,
                                                   .stop = o->stop}};
    cd_record_corun *c = NULL;
    cdmpp_status st = cd_record_corun_run(&co, &c, err);
    if (!st) st = o->corun_group ? print_groups(o, c, err) : print_corun(o, c, err);
    cd_record_corun_free(c);
    return st;
}

/* ---- draw ---- */
cdmpp_status cd_main_profile_draw_check(const cd_main_profile *o, cdmpp_err *err) {
    if (!o->task.n) return CD_FAIL(err, EUSAGE, "--tasks is missing");
    if (o->operand.n)
        return CD_FAIL(err, EUSAGE, "'%.60s': draw takes no file but --tasks", o->operand.v[0]);
    return CDMPP_OK;
}

static cdmpp_status print_draw(const cd_main_profile *o, cd_buf *lines, size_t n, cdmpp_err *err) {
    cd_buf b = {0};
    CD_TRY(cd_main_profile_write(o->out, lines, err));
    if (o->out && !o->json) cd_log_put(o->log, CD_LOG_INFO, "%s: %zu records", o->out, n);
    if (!o->out || !o->json) return CDMPP_OK;
    cd_buf_putf(&b, "{\"records\":%zu,\"tasks_without\":%zu}", n, o->bad);
    return cd_main_profile_print(o, "cdmpp.profile_draw", &b, err);
}

/* All lines are made before the first is written: a file of half the records would look
 * complete. */
cdmpp_status cd_main_profile_draw(cd_main_profile *o, cdmpp_err *err) {
    const char *target = o->target ? o->target : "";
    const cd_random_schedules_options opt = {.trials = (uint32_t)o->trials,
                                             .seed = (uint64_t)o->seed,
                                             .target = target,
                                             .hardware = cd_main_profile_hardware(target)};
    const cd_record_listener l = cd_main_profile_listener(o);
    cd_task_registry *tasks = NULL;
    cd_random_schedules *d = NULL;
    cd_buf b = {0};
    size_t n = 0;
    cdmpp_status st = cd_main_profile_tasks_load(o, &tasks, err);
    if (!st) st = cd_random_schedules_new(tasks, &opt, &d, err);
    if (!st) st = cd_random_schedules_all(d, &l, o->stop, &b, &n, err);
    if (!st) st = print_draw(o, &b, n, err);
    if (!st && !n) {
        cd_log_put(o->log, CD_LOG_WARNING, "draw: no task has a record");
        o->exit_code = 3;
    }
    cd_buf_free(&b);
    cd_random_schedules_free(d);
    cd_task_registry_free(tasks);
    return st;
}
