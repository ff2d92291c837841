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

/* ---- main_train.c: their tables ---- */
extern const cd_command cd_main_train_options, cd_main_train_options_mpi;

/* The whole command; the exit code. `ranks`: of cdmpp-mpi, or NULL. */
int cd_main_train(int argc, char **argv, const cd_command *command, const cd_process_group *ranks);
#endif
