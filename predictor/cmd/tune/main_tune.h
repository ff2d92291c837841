/* main_tune -- what the parts of cdmpp-tune share. Not in the library.
 *
 *   argv -> options (one struct, one table in main_tune.c) -> mode -> its part
 *
 * A mode is a flag of its own ("--replay"); what has none is tuning on this machine. A new one is a member and a row in
 * the table of options, a row in the table of modes, and a main_tune_<x>.c. */
#ifndef CD_MAIN_TUNE_H
#define CD_MAIN_TUNE_H
#include <signal.h>

#include "base/cli/cli.h"
#include "predictor/tune/session/session.h"
#include "profiler/network/workload/workload.h"

#define CD_MAIN_TUNE_SOURCES "zoo|onnx"
#define CD_MAIN_TUNE_EMITS "c|opencl|cuda"
enum { CD_MAIN_TUNE_NO_EMIT = -1, CD_MAIN_TUNE_EMIT_C, CD_MAIN_TUNE_EMIT_OPENCL, CD_MAIN_TUNE_EMIT_CUDA };

typedef struct cd_main_tune {
    cd_texts operand;
    /* what (main_tune_tasks.c) */
    int model_source, batch, input_size;
    const char *model_name, *target, *layout, *network;
    cd_texts dim, input, tasks, task;
    int threads;
    /* the search */
    int tune;                   /* 0: false */
    int tuner;                  /* place in CD_TUNERS; -1: not said */
    const char *model, *device, *compare, *at;
    bool nearest, frozen;
    int seed, population, generations;
    const char *epsilon;
    /* when it ends */
    int trials, trials_per_task, per_round, seconds, early_stopping, runs;
    const char *min_gain;
    /* what is kept */
    const char *out, *best, *stats, *curves, *emit_dir;
    cd_texts warm;
    int emit;
    /* measuring */
    int jobs, executor, budget_ms, timeout_s, build_timeout_s, memory_mb, cache_mb;
    const char *isa, *cflags, *cache, *opencl_device;
    bool no_pin, check;
    /* other modes */
    bool list_tuners, space_dump, dry_run;
    /* replays */
    bool replay;
    int seeds, min, held_out;   /* held_out 0: false */
    cd_texts data;
    const char *svg, *opbench;
    /* every command */
    bool json;
    cd_log *log;
    const volatile sig_atomic_t *stop;
    size_t bad;                 /* items that failed: exit code 3 */
} cd_main_tune;

/* ---- main_tune.c ---- */
/* The name of place i of a list "a|b|c", in `out` (cap); false: there are fewer. */
bool cd_main_tune_word(const char *list, int i, char *out, size_t cap);
/* A number of an option that is no integer. Errors: EUSAGE. */
cdmpp_status cd_main_tune_real(const char *option, const char *text, double lo, double hi, double *out, cdmpp_err *err);
/* The tuner of --tuner; `fallback` where it is not said. Errors: EUSAGE (not in this build). */
cdmpp_status cd_main_tune_tuner(const cd_main_tune *o, const char *fallback, const cd_tune_tuner **out, cdmpp_err *err);

/* ---- main_tune_tasks.c: what is tuned ---- */
typedef struct cd_main_tune_tasks {
    cd_task_registry *owned;            /* of --tasks; NULL: the workload's */
    const cd_task_registry *tasks;
    struct cd_graph *graph;
    cd_workload *workload;      /* NULL: no --model-name */
    cd_arena arena;
    cd_tune_unit *unit;         /* (n) */
    uint32_t n;
} cd_main_tune_tasks;
cdmpp_status cd_main_tune_tasks_check(const cd_main_tune *o, cdmpp_err *err);
/* Free after an error too. Errors: EIO, EPARSE ..., EUSAGE (--task fits none), ENOTASK. */
cdmpp_status cd_main_tune_tasks_get(cd_main_tune *o, cd_main_tune_tasks *out, cdmpp_err *err);
void cd_main_tune_tasks_free(cd_main_tune_tasks *t);

/* ---- main_tune_live.c: one tuner on all tasks ---- */
typedef struct cd_main_tune_live {
    cd_main_tune *o;
    const cd_main_tune_tasks *what;
    cd_measure *measure;
    const struct cd_model *model;
    const cd_tune_tuner *tuner;      /* NULL: nothing is tuned */
    const char *out;            /* its log */
    cd_tune_measure *meter;
    cd_record_log *log;
    FILE *stats;
    cd_tune_run *run;
    cd_tune_task_scheduler_end end;
    cd_tune_resume_tally warm;
    cd_tune_result *result;     /* (what->n); NULL: not made */
    cd_progress progress;
    size_t wrong;               /* candidates with a wrong result, of --check */
} cd_main_tune_live;
cdmpp_status cd_main_tune_live_check(const cd_main_tune *o, cdmpp_err *err);
cdmpp_status cd_main_tune_live_mode(cd_main_tune *o, cdmpp_err *err);
/* Tune; `l` has o, what, measure, model, tuner, out. Free after an error too. */
cdmpp_status cd_main_tune_live_run(cd_main_tune_live *l, cdmpp_err *err);
void cd_main_tune_live_free(cd_main_tune_live *l);
/* ---- main_tune_tell.c: what came out ---- */
cdmpp_status cd_main_tune_text(cd_main_tune_live *l, cdmpp_err *err);
cdmpp_status cd_main_tune_text_tasks(const cd_main_tune *o, const cd_main_tune_tasks *t, cdmpp_err *err);
/* --stats, a line of each round. Errors: EIO. */
cdmpp_status cd_main_tune_stats(cd_main_tune_live *l, const cd_tune_round *r, cdmpp_err *err);
/* ---- main_tune_keep.c: --best, --curves ---- */
cdmpp_status cd_main_tune_keep_best(cd_main_tune_live *l, cdmpp_err *err);
cdmpp_status cd_main_tune_keep_curves(const cd_main_tune_live *l, const char *path, cdmpp_err *err);
/* ---- main_tune_compare.c ---- */
enum { CD_MAIN_TUNE_TUNERS = 16, CD_MAIN_TUNE_POINTS = 32 };
typedef struct cd_main_tune_plan {
    const cd_tune_tuner *tuner[CD_MAIN_TUNE_TUNERS];
    size_t n_tuner;
    long at[CD_MAIN_TUNE_POINTS];
    size_t n_at;
} cd_main_tune_plan;
/* What --compare (absent: no tuner) and --at say. Errors: EUSAGE. */
cdmpp_status cd_main_tune_plan_of(const cd_main_tune *o, cd_main_tune_plan *p, cdmpp_err *err);
cdmpp_status cd_main_tune_compare_check(const cd_main_tune *o, cdmpp_err *err);
cdmpp_status cd_main_tune_compare(cd_main_tune_live *base, cdmpp_err *err);
/* ---- main_tune_emit.c ---- */
cdmpp_status cd_main_tune_emit(cd_main_tune_live *l, cdmpp_err *err);
/* ---- main_tune_dump.c ---- */
cdmpp_status cd_main_tune_tuners_check(const cd_main_tune *o, cdmpp_err *err);
cdmpp_status cd_main_tune_tuners(cd_main_tune *o, cdmpp_err *err);
cdmpp_status cd_main_tune_space_check(const cd_main_tune *o, cdmpp_err *err);
cdmpp_status cd_main_tune_space(cd_main_tune *o, cdmpp_err *err);
/* ---- main_tune_replay.c: tuners against logs ---- */
cdmpp_status cd_main_tune_replay_check(const cd_main_tune *o, cdmpp_err *err);
cdmpp_status cd_main_tune_replay(cd_main_tune *o, cdmpp_err *err);
#endif
