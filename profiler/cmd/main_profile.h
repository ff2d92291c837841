/* main_profile -- what the parts of cdmpp-profile share. Not in the library.
 *
 *   argv -> options (one struct, one table in main_profile.c) -> mode -> its part
 *
 * A mode is a first word ("records") or a flag of its own ("--list-tasks"); a new one is a member
 * and a row in the table of options, a row in the table of modes, and a main_profile_<x>.c. */
#ifndef CD_MAIN_PROFILE_H
#define CD_MAIN_PROFILE_H
#include <signal.h>

#include "base/cli/cli.h"
#include "features/task/task.h"
#include "profiler/network/onnx/onnx.h"

typedef struct cd_main_profile {
    /* what */
    cd_texts operand;           /* behind the mode's word */
    cd_texts task;
    bool dry_run, emit_source, check;
    int dialect;                /* -1: by the target */
    const char *isa, *stats;
    /* how */
    int jobs, threads, rounds;
    bool cold, cool, no_pin, retry;
    int budget_ms, timeout_s, build_timeout_s, memory_mb, cache_mb;
    const char *cache, *cflags;
    /* draw (main_profile_draw.c) */
    int trials, seed;
    /* store (main_profile_store.c) */
    const char *store, *device, *target, *operator_name, *workload, *shape, *dtype, *layout, *out;
    int form, as, limit, each;
    bool errors, strict, steps;
    /* devices (main_profile_describe.c) */
    bool describe, measure;
    /* networks (main_profile_model.c) */
    bool list_ops, list_tasks, training;
    const char *out_tasks;
    int model_source, batch, input_size; /* position in CD_MAIN_PROFILE_SOURCES; 0: as published */
    const char *model_name;
    cd_texts dim, input;
    /* other hosts (main_profile_worker.c, main_profile_remote.c) */
    bool worker;
    cd_texts host;
    int port, lease_s;
    const char *transport;
    /* sweep (main_profile_sweep.c) */
    const char *factor, *plot;
    /* curves (main_profile_curves.c) */
    const char *sizes;
    /* networks, measured (main_profile_run.c) */
    bool run_ops, key_only;
    int cover, csv, passes;     /* percent; CD_MAIN_PROFILE_*; 0: until steady */
    /* every command */
    bool json;
    cd_log *log;
    const volatile sig_atomic_t *stop; /* not 0: end before the next program */
    size_t bad;                 /* items that failed: exit code 3 */
    int exit_code;              /* of a program that was run: instead of 0 */
} cd_main_profile;

/* ---- main_profile_records.c ---- */
cdmpp_status cd_main_profile_records_check(const cd_main_profile *o, cdmpp_err *err);
cdmpp_status cd_main_profile_records(cd_main_profile *o, cdmpp_err *err);
/* ---- main_profile_draw.c ---- */
cdmpp_status cd_main_profile_draw_check(const cd_main_profile *o, cdmpp_err *err);
cdmpp_status cd_main_profile_draw(cd_main_profile *o, cdmpp_err *err);
/* ---- main_profile_describe.c ---- */
cdmpp_status cd_main_profile_describe_check(const cd_main_profile *o, cdmpp_err *err);
cdmpp_status cd_main_profile_describe(cd_main_profile *o, cdmpp_err *err);
/* ---- main_profile_measure.c ---- */
struct cd_recmaker;
struct cd_record_reader;
/* Measure what the file gives, to --out and --stats. */
cdmpp_status cd_main_profile_measure(cd_main_profile *o, struct cd_recmaker *maker, struct cd_record_reader *file, cdmpp_err *err);
/* A line or program that is no use: said, counted in *reason (NULL: not). Errors: the ones that would hit the next one too. */
cdmpp_status cd_main_profile_bad(cd_main_profile *o, const cdmpp_err *why, size_t *reason, cdmpp_err *err);
/* ---- main_profile_sweep.c ---- */
cdmpp_status cd_main_profile_sweep_check(const cd_main_profile *o, cdmpp_err *err);
cdmpp_status cd_main_profile_sweep(cd_main_profile *o, cdmpp_err *err);
/* ---- main_profile_corun.c ---- */
cdmpp_status cd_main_profile_corun_check(const cd_main_profile *o, cdmpp_err *err);
cdmpp_status cd_main_profile_corun(cd_main_profile *o, cdmpp_err *err);
/* ---- main_profile_run.c ---- */
#define CD_MAIN_PROFILE_CSV "groups|eop"
enum { CD_MAIN_PROFILE_NO_CSV = -1, CD_MAIN_PROFILE_GROUPS, CD_MAIN_PROFILE_EOP };
cdmpp_status cd_main_profile_run_check(const cd_main_profile *o, cdmpp_err *err);
cdmpp_status cd_main_profile_run(cd_main_profile *o, cdmpp_err *err);
struct cd_measure_options;
/* How networks are measured: processors of a program in *hw. */
struct cd_measure_options cd_main_profile_network_options(const cd_main_profile *o, cd_hardware *hw);
struct cd_workload;
struct cd_program_select;
struct cd_measure;
/* The network of the options and its tasks; what is left out is said. Free both, after an error too. */
cdmpp_status cd_main_profile_network(const cd_main_profile *o, const cd_hardware *hw, CD_GIVE cd_graph **g, CD_GIVE struct cd_workload **w, cdmpp_err *err);
/* A program for each of its tasks; what has none is said and counted. */
cdmpp_status cd_main_profile_programs(cd_main_profile *o, const struct cd_workload *w, const cd_hardware *hw, struct cd_measure *m,
                                      CD_GIVE struct cd_program_select **out, cdmpp_err *err);
/* ---- main_profile_curves.c ---- */
cdmpp_status cd_main_profile_curves_check(const cd_main_profile *o, cdmpp_err *err);
cdmpp_status cd_main_profile_curves(cd_main_profile *o, cdmpp_err *err);
/* ---- main_profile_wrap.c ---- */
cdmpp_status cd_main_profile_wrap_check(const cd_main_profile *o, cdmpp_err *err);
cdmpp_status cd_main_profile_wrap(cd_main_profile *o, cdmpp_err *err);
/* ---- main_profile_keep.c: everything may be NULL, for no --store ---- */
struct cd_measure_result;
typedef struct cd_main_profile_keep cd_main_profile_keep;
cdmpp_status cd_main_profile_keep_open(const cd_main_profile *o, CD_GIVE cd_main_profile_keep **out, cdmpp_err *err);
/* `line` of --out. */
cdmpp_status cd_main_profile_keep_add(cd_main_profile_keep *k, const cd_record *r, const cd_task *t, const struct cd_measure_result *m, long line,
                                      cdmpp_err *err);
/* What is added from now on was measured there: its own names in place of this machine's. They live until the next call. */
void cd_main_profile_keep_host(cd_main_profile_keep *k, const char *host, const char *cpu);
cdmpp_status cd_main_profile_keep_close(CD_TAKE cd_main_profile_keep *k, cdmpp_err *err);
/* ---- main_profile_worker.c, main_profile_remote.c ---- */
struct cd_measure_options;
/* What the options say of measuring, for every mode that does. */
struct cd_measure_options cd_main_profile_measure_options(const cd_main_profile *o);
cdmpp_status cd_main_profile_worker_check(const cd_main_profile *o, cdmpp_err *err);
cdmpp_status cd_main_profile_worker(cd_main_profile *o, cdmpp_err *err);
/* Have what the file gives measured by --host, to --out. */
cdmpp_status cd_main_profile_remote(cd_main_profile *o, struct cd_recmaker *maker, struct cd_record_reader *file, cdmpp_err *err);
/* ---- main_profile_store.c ---- */
#define CD_MAIN_PROFILE_AS "records|csv|json"
cdmpp_status cd_main_profile_store_check(const cd_main_profile *o, cdmpp_err *err);
cdmpp_status cd_main_profile_store(cd_main_profile *o, cdmpp_err *err);
/* ---- main_profile_model.c ---- */
#define CD_MAIN_PROFILE_SOURCES "zoo|onnx"
/* What every mode about a network asks of its options. */
cdmpp_status cd_main_profile_model_check(const cd_main_profile *o, cdmpp_err *err);
/* The network that they name; the misses live in it. */
cdmpp_status cd_main_profile_model(const cd_main_profile *o, CD_GIVE cd_graph **g, CD_KEEP const cd_onnx_miss **miss, uint32_t *n_miss,
                                   cdmpp_err *err);
/* "unsupported": [{name, op, domain, reason}] */
void cd_main_profile_misses(cd_buf *b, const cd_onnx_miss *miss, uint32_t n);
cdmpp_status cd_main_profile_ops(cd_main_profile *o, cdmpp_err *err);
/* ---- main_profile_tasks.c ---- */
cdmpp_status cd_main_profile_tasks_check(const cd_main_profile *o, cdmpp_err *err);
cdmpp_status cd_main_profile_tasks(cd_main_profile *o, cdmpp_err *err);
#endif
