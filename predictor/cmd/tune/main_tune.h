/* What the files of cdmpp-tune share. */
#ifndef CD_MAIN_TUNE_H
#define CD_MAIN_TUNE_H
#include "predictor/tune/report/report.h"
#include "profiler/network/source/source.h"

typedef struct cd_main_tune {
    cd_texts operand;
    cd_tune_tasks_options what;
    cd_tune_session_options session;
    cd_tune_replay_options replay;
    cd_tune_compare_plan plan; /* of --compare, --at, --tuner */
    int tune, held_out;        /* 0: false */
    int tuner, emit, executor; /* -1: not given */
    int fallback;              /* -1: not given */
    int core_type;             /* cd_core_type; -1: any */
    const char *machine;       /* a described processor, for templates */
    const char *devices;       /* calibrate: a file of descriptions */
    const char *network, *model, *compare, *at, *epsilon, *min_gain, *out, *best, *curves,
        *emit_dir, *svg, *opbench;
    bool pynq;          /* the target was OpBench's word */
    bool default_model; /* `model` is the default one */
    cd_arena arena;
    const char *records; /* calibrate: the log that grows */
    cd_texts given;      /* calibrate: logs in the place of measurements */
    /* calibrate: run for what a network adds to its operators; after the check n 0: none */
    cd_texts networks;
    bool force; /* calibrate: write in any case */
    bool list_tuners, space_dump, templates, dry_run, replays, json, check;
    bool cpu_time; /* calibrate: --seconds are of the processor */
    int argc;      /* the command line as given */
    char **argv;
    cd_log *log;
    size_t bad; /* items that failed: exit code 3 */
} cd_main_tune;

/* The mode that the options ask for. Items that fail are counted in o->bad. Errors: those of the
 * mode. */
cdmpp_status cd_main_tune_run(cd_main_tune *o, cdmpp_err *err);

/* The verb "calibrate" (main_tune_calibrate.c). Defaults of its options are set where they are
 * checked. */
bool cd_main_tune_is_calibrate(const cd_main_tune *o);
cdmpp_status cd_main_tune_calibrate_check(cd_main_tune *o, cdmpp_err *err);
cdmpp_status cd_main_tune_calibrate(cd_main_tune *o, cdmpp_err *err);
/* --device of a search against the kind of its target. Errors: EUSAGE (it is of the other kind; no
 * GPU is here and no model is named). */
cdmpp_status cd_main_tune_device_check(const cd_main_tune *o, cdmpp_err *err);
#endif
