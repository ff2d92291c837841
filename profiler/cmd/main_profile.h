/* main_profile -- what the modes of cdmpp-profile share. Not in the library.
 *
 *   argv -> options (one struct, one table in main_profile.c) -> mode: check, run
 *
 * A mode is a first word ("records") or a flag of its own ("--list-tasks"). It checks its options,
 * calls the library and prints. A new one is a member and a row in the table of options
 * (main_profile_options.def), a row in the table of modes, and two functions below. */
#ifndef CD_MAIN_PROFILE_H
#define CD_MAIN_PROFILE_H
#include <signal.h>

#include "base/cli/cli.h"
#include "profiler/describe/describe.h"
#include "profiler/network/workload/workload.h"
#include "profiler/records/records.h"

typedef struct cd_main_profile {
    /* what */
    cd_texts operand; /* behind the mode's word */
    cd_texts task;
    bool dry_run, emit_source, check, no_check;
    int dialect; /* -1: by the target */
    const char *isa, *stats;
    /* how */
    int jobs, threads, rounds;
    int core_type; /* cd_core_type; -1: any */
    bool cold, cool, no_pin, retry;
    int budget_ms, timeout_s, build_timeout_s, memory_mb, cache_mb;
    const char *cache, *cflags;
    /* draw, sweep, corun (main_profile.c) */
    int trials, seed;
    /* random schedules of a task from which the analytic time chooses; 0: the default */
    int pool;
    const char *factor, *plot;
    int corun_group; /* corun: programs of a group; 0: pairs */
    const char *pairs;
    /* store (main_profile_store.c) */
    const char *store, *device, *target, *operator_name, *workload, *shape, *dtype, *layout, *out;
    int form, as, limit, each;
    bool errors, strict, steps;
    /* devices (main_profile.c) */
    bool describe, measure, from_records, keep_noisy;
    /* networks (main_profile_network.c) */
    bool list_networks, list_ops, list_tasks, training;
    const char *out_tasks;
    int model_source, batch, input_size; /* position in CD_NETWORK_SOURCES; 0: as published */
    const char *network;
    cd_texts dim, input;
    const char *sizes; /* curves */
    bool run_ops, key_only;
    int cover, csv, passes; /* percent; CD_MAIN_PROFILE_*; 0: until steady */
    /* fusion (main_profile_network.c); fusion_rules: networks, too */
    /* position in CD_MAIN_PROFILE_FUSION_BACKENDS; 0: the default */
    int fusion_backend, channels, repeats;
    const char *fusion_command, *alpha, *confidence, *operators, *chains, *planted, *fusion_rules;
    /* kernels (main_profile_kernels.c) */
    int seconds, target_error, within, first; /* 0: the default */
    bool plain;
    /* other hosts (main_profile_records.c) */
    bool worker;
    cd_texts host;
    int port, lease_s;
    const char *transport;
    const char *map, *range, *save_graph, *labels; /* trace (main_profile_store.c) */
    /* every command */
    bool json;
    cd_log *log;
    const volatile sig_atomic_t *stop; /* not 0: end before the next program */
    size_t bad;                        /* items that failed: exit code 3 */
    int exit_code;                     /* of a program that was run: instead of 0 */
} cd_main_profile;

#define CD_MAIN_PROFILE_CSV "groups|eop"
enum { CD_MAIN_PROFILE_NO_CSV = -1, CD_MAIN_PROFILE_GROUPS, CD_MAIN_PROFILE_EOP };

#define CD_MAIN_PROFILE_FUSION_BACKENDS "cpu|opencl|command"
enum { CD_MAIN_PROFILE_FUSION_CPU, CD_MAIN_PROFILE_FUSION_OPENCL, CD_MAIN_PROFILE_FUSION_COMMAND };

/* The modes, X(name): each has a check of its options and a run. Both give what they fail with in
 * *err; items of a run that failed are counted in o->bad. */
#define CD_MAIN_PROFILE_MODES(X)                                                                   \
    X(records)                                                                                     \
    X(worker)                                                                                      \
    X(draw)                                                                                        \
    X(sweep)                                                                                       \
    X(corun)                                                                                       \
    X(curves)                                                                                      \
    X(fusion)                                                                                      \
    X(kernels)                                                                                     \
    X(store)                                                                                       \
    X(networks)                                                                                    \
    X(ops)                                                                                         \
    X(tasks)                                                                                       \
    X(run)                                                                                         \
    X(describe)                                                                                    \
    X(wrap)                                                                                        \
    X(trace)
#define CD_X(name)                                                                                 \
    cdmpp_status cd_main_profile_##name##_check(const cd_main_profile *o, cdmpp_err *err);         \
    cdmpp_status cd_main_profile_##name(cd_main_profile *o, cdmpp_err *err);
CD_MAIN_PROFILE_MODES(CD_X)
#undef CD_X

/* ---- main_profile.c: shared by the modes ---- */
/* A mode that reads logs: --tasks and a log must be there; `none` says that there is none. */
cdmpp_status cd_main_profile_logs_check(const cd_main_profile *o, const char *none, cdmpp_err *err);
/* All of --tasks. Free *out, after an error too. */
cdmpp_status cd_main_profile_tasks_load(const cd_main_profile *o, CD_GIVE cd_task_registry **out,
                                        cdmpp_err *err);
/* Options of measuring, for every mode that does. */
cd_measure_options cd_main_profile_measure_options(const cd_main_profile *o);
/* CD_NETWORK_SOURCE_ZOO or _ONNX: --network that is a file is one without --model-source, too. */
int cd_main_profile_source(const cd_main_profile *o);
/* --core-type as a word; NULL: not given. */
const char *cd_main_profile_core(const cd_main_profile *o);
/* The usual hardware of a target. */
cd_hardware cd_main_profile_hardware(const char *target);
/* Random schedules of a task from which the analytic time chooses. */
uint32_t cd_main_profile_pool(const cd_main_profile *o);
/* What the analytic time needs: this processor, measured (two seconds), in *e, with the vectors of
 * the code and so many cores in use. NULL: no pool is wanted, or the processor cannot be described,
 * which is told. */
const cd_device *cd_main_profile_pool_device(const cd_main_profile *o, int threads,
                                             cd_describe_entry *e);
/* Logs what it hears; bad items are counted in o->bad. */
cd_record_listener cd_main_profile_listener(cd_main_profile *o);
/* The text, or with --json the JSON in its envelope, to standard output; freed. */
cdmpp_status cd_main_profile_print(const cd_main_profile *o, const char *schema, CD_TAKE cd_buf *b,
                                   cdmpp_err *err);
/* Warns of rules of fusion that the network needs and --fusion-rules does not have. */
void cd_main_profile_open_rules(const cd_main_profile *o, const cd_workload *w);
/* To the file, to standard output where `path` is NULL; freed and empty again. */
cdmpp_status cd_main_profile_write(const char *path, CD_TAKE cd_buf *b, cdmpp_err *err);
#endif
