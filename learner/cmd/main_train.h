/* main_train -- what the parts of cdmpp-train share. Not in the library. */
#ifndef CD_MAIN_TRAIN_H
#define CD_MAIN_TRAIN_H
#include "learner/distributed/distributed.h"
#include "learner/train/train.h"

typedef struct cd_main_options {
    const char *out, *report, *finetune, *folder;
    const char *space, *journal; /* --autotune, --journal */
    cd_texts set;                /* --set */
    char *command;               /* shell line of this call, for the report */
    int jobs;
    int choose, choose_tasks, budget; /* 0: not given */
    int config_of;                    /* -1: not given */
    const char *name;                 /* of the command, for its messages */
    const cd_process_group *ranks;    /* NULL: this process alone */
    bool print, doc, trial, verbose;
    bool json, quiet; /* copied from what every command has */
    bool skipped;     /* set: done, but some lines of the input were not used */
    cd_log *log;
} cd_main_options;

/* ---- main_train_options.c: their tables ---- */
extern const cd_command cd_main_train_options, cd_main_train_options_mpi;

/* The whole command; the exit code. `ranks`: of cdmpp-mpi, or NULL. */
int cd_main_train(int argc, char **argv, const cd_command *command, const cd_process_group *ranks);
/* A cd_progress_event_fn: shows the event on a cd_train_progress, which may be NULL; false once a
 * signal asked to stop. */
bool cd_main_tick(void *progress, const cd_progress_event *t);
/* Print the list of a configuration's errors, and clear *err; `err` alone when it is about no
 * key. */
cdmpp_status cd_main_config_failed(const cd_config *c, cd_main_options *o, cdmpp_status st,
                                   cdmpp_err *err);
/* Whether the model that is to be written is none of the files of the data set. Errors: EUSAGE. */
cdmpp_status cd_main_out_apart(const cd_config *c, const char *path, cdmpp_err *err);
/* Train, write the model and what the options ask for, print the figures. */
cdmpp_status cd_main_fit(const cd_config *c, cd_main_options *o, cdmpp_err *err);

/* ---- main_train_search.c ---- */
/* --trial: the validation figures alone. */
cdmpp_status cd_main_try(const cd_config *c, cd_main_options *o, cdmpp_err *err);
/* --autotune over `config` (NULL: the base that the search file names); prints its errors. */
cdmpp_status cd_main_search(const char *config, cd_main_options *o, cdmpp_err *err);

/* ---- main_train_choose.c ---- */
/* --choose, --choose-tasks: what to measure on a new device. */
cdmpp_status cd_main_choose(const cd_config *c, cd_main_options *o, cdmpp_err *err);

/* ---- main_train_operators.c ---- */
/* data.kind: operators or llm_operators; `config` is the path of the configuration. Sets o->skipped
 * when bad lines were left out. */
cdmpp_status cd_main_operators(const cd_config *c, const char *config, cd_main_options *o,
                               cdmpp_err *err);
#endif
