/* schedule_db -- the schedule database: which schedule each task runs with, fixed before anything
 * is compared.
 *
 *   measure logs ─ best record by the median of its repeats ──┐
 *   store ──────── the same ──────────────────────────────────┤
 *   model ──────── the best predicted of `trials` candidates ─┴─> one record a task, with its
 *                                                                 origin
 *
 *   (1) a task has one schedule; who comes first stays: logs before candidates, unless replaced by
 *       name;
 *   (2) its file has the records, one line each, in the order of the keys, with "origin" where
 *       TVM's readers look past it (behind "v"): tuners and profilers read it as any log;
 *   (3) candidates depend on model, task, trials and seed alone: the same schedules on any machine
 *       and thread count.
 * One thread fills it, then read-only. */
#ifndef CD_SCHEDULE_DB_H
#define CD_SCHEDULE_DB_H
#include "base/core/core.h"
#include "features/task/task.h"
#include "predictor/score/score.h"

typedef struct cd_schedule_db cd_schedule_db;
typedef struct cd_schedule_db_line {
    const char *line; /* as below */
    size_t len;
} cd_schedule_db_line;
typedef struct cd_schedule_db_entry {
    const char *key;
    const char *line; /* the record, JSON, NUL-terminated, no newline */
    size_t len;
    /* "records/a.json:12", "best of 1000 predicted by 1f00..., seed 1" */
    const char *origin;
    /* of the log; NaN: never measured. For comparison only, never for a prediction */
    double measured_s;
    /* (n_slower) other measured records of the task in the same logs: that they are slower is all
     * that may be used */
    const cd_schedule_db_line *slower;
    /* at most CD_SCHEDULE_DB_SLOWER, drawn by their texts alone, in no order that says which is
     * faster */
    uint32_t n_slower;
    uint64_t of_slower; /* how many there were */
} cd_schedule_db_entry;
enum { CD_SCHEDULE_DB_SLOWER = 32 };

/* An empty one. Errors: ENOMEM. */
cdmpp_status cd_schedule_db_new(CD_GIVE cd_schedule_db **out, cdmpp_err *err);
void cd_schedule_db_free(CD_TAKE cd_schedule_db *b); /* NULL is fine */
size_t cd_schedule_db_count(const cd_schedule_db *b);
/* in the order of the keys */
const cd_schedule_db_entry *cd_schedule_db_at(const cd_schedule_db *b, size_t i);
/* NULL: none */
const cd_schedule_db_entry *cd_schedule_db_find(const cd_schedule_db *b, const char *key);

typedef struct cd_schedule_db_logs {
    /* only records of this device (folder or -model= of the target); NULL: all */
    const char *device;
    const char *also; /* another name of it; NULL: it has none */
    /* it is a GPU. A record that names no device, neither by its target nor by a folder, is of it
     * where the kind agrees */
    bool gpu;
    /* so is one whose target names none, whatever its folder is called */
    bool unnamed;
    /* so is one of another device of the kind, but without its time: that is not this device's */
    bool elsewhere;
    const char *const *key; /* (n_key) only these; n_key 0: all */
    size_t n_key;
    /* of each bad line, with file and line; NULL: nobody listens */
    void (*warn)(void *ctx, const cdmpp_err *why);
    void *ctx;
    /* out: records of these keys and this device, also of tasks that have a schedule already */
    size_t wanted;
    /* out: read; not usable; without a time, of those that are used as schedules only those of a
     * schedule database's file */
    size_t lines, bad, failed;
} cd_schedule_db_logs;
/* Files and folders (dataset/extract/extract.h), those of cd_schedule_db_write too, which keep
 * their origins. The best of all of them; a task that the database had before stays. Errors: EIO,
 * EUSAGE (nothing to read), ENOMEM; a bad line is counted. */
cdmpp_status cd_schedule_db_read_logs(cd_schedule_db *b, const char *const *path, size_t n,
                                      cd_schedule_db_logs *io, cdmpp_err *err);

enum { CD_SCHEDULE_DB_TRIALS = 160 };
typedef struct cd_schedule_db_pick {
    uint32_t trials; /* candidates of a task; 0: CD_SCHEDULE_DB_TRIALS */
    uint64_t seed;
    const char *target; /* NULL: the task's */
    const char *device; /* of the model; NULL: as cd_device_match finds it */
    /* what analytic times are computed with; NULL: with those of the device */
    CD_KEEP const cd_device_numbers *numbers;
    /* candidates are what cd_sketch_sampler_match makes of it and its mutations; NULL, and where
     * nothing follows it: drawn */
    const cd_record *start;
    const cd_hardware *hardware; /* NULL: the task's, else what cd_target_hardware says */
    /* (n_plain) sorted keys of tasks whose free parameter is another operator's result, not a
     * weight: no packing */
    const char *const *plain;
    size_t n_plain;
} cd_schedule_db_pick;
/* For each of the keys that has none yet. Few of the model's estimators rank (cd_model_sketch), the
 * whole model has the last word on the best 16 (from a start: 8). pool NULL: one thread. A task of
 * which no candidate lowers is left out. Errors: ENOTASK, EMODEL, ENOMEM. */
cdmpp_status cd_schedule_db_predict(cd_schedule_db *b, const cd_model *m, const cd_task_registry *t,
                                    const char *const *key, size_t n, const cd_schedule_db_pick *o,
                                    cd_threads *pool, cdmpp_err *err);
/* In the place of what its task has: by name. Errors: those of cd_record_write, ENOMEM. */
cdmpp_status cd_schedule_db_add(cd_schedule_db *b, const cd_record *r, const char *origin,
                                double measured_s, cdmpp_err *err);
/* temporary file, then renamed */
cdmpp_status cd_schedule_db_write(const cd_schedule_db *b, const char *path, cdmpp_err *err);
#endif
