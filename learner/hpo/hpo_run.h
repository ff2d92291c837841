/* hpo_run -- the search of a command, from its files to the best configuration.
 *
 *   space file + base configuration + "--set"s  ->  data set  ->  search
 *       ->  the winner as a configuration file, ready to use
 *
 * Prints nothing: the caller gets every result as it comes, and the found. */
#ifndef CD_HPO_RUN_H
#define CD_HPO_RUN_H
#include "learner/hpo/hpo_objective.h"

typedef struct cd_hpo_run {
    const char *space;           /* the search file */
    const char *config;          /* the base; NULL: tune.base of the search file */
    const char *const *set;      /* (n_set) "tune.x=y" goes to the search, the rest to the base */
    size_t n_set;
    const char *out;             /* the winner's file; the journal is "<out>.journal.jsonl" */
    const char *journal;         /* NULL: that; the caller removes it when nothing is left to go on with */
    int jobs;
    cd_hpo_event_fn *tell;          /* NULL is fine */
    cd_progress_event_fn *tick;          /* NULL is fine */
    void *ctx;                   /* of both */
} cd_hpo_run;

typedef struct cd_hpo_run_state {
    cd_hpo_space space;
    cd_config base;
    cd_hpo_result found;
    cd_config best;              /* borrows from base */
    char journal[4096];
    cd_arena arena;
} cd_hpo_run_state;

/* Read and check everything: `space`, `base`. Errors are in the lists of both and of
 * cd_hpo_space_load, cd_config_load, cd_config_set; `data`: also that the files are there. */
cdmpp_status cd_hpo_run_read(const cd_hpo_run *cmd, bool data, cd_hpo_run_state *s, cdmpp_err *err);
/* Search and write cmd->out: `found`, `best`. Errors: those of loading and of cd_hpo, EIO. */
cdmpp_status cd_hpo_run_search(const cd_hpo_run *cmd, cd_hpo_run_state *s, cdmpp_err *err);
/* The end of a search: the best trials, the winner and its file `out`, as text and as an object of schema "cdmpp.search". */
void cd_hpo_run_text(cd_buf *b, const cd_hpo_run_state *s, const char *out);
void cd_hpo_run_json(cd_buf *b, const cd_hpo_run_state *s, const char *out);
/* After any of the two, and after an error. */
void cd_hpo_run_free(cd_hpo_run_state *s);
#endif
