/* random_schedules -- records of random schedules: what to measure when nothing has been.
 *
 *   tasks ──sketches──> up to `trials` different programs a task ──> one record line each
 *
 * The schedules are Ansor's (features/sketch/sketch.h). The records have no measurement
 * yet: their cost is 1e10 and their error number 8, as TVM marks what has not
 * run, so that nobody trains on them by mistake.
 *   (1) task by task in the order of the registry, tasks without a DAG left out;
 *   (2) programs of a task are different; where the space is too small or too many
 *       draws fail there are fewer than `trials`;
 *   (3) the same seed gives the same lines on any machine.
 * One thread. */
#ifndef CD_RANDOM_SCHEDULES_H
#define CD_RANDOM_SCHEDULES_H
#include <signal.h>

#include "features/task/task.h"
#include "profiler/records/record_listener.h"

typedef struct cd_random_schedules_options {
    uint32_t trials;            /* programs of a task; 0: 10 */
    uint64_t seed;
    const char *target;         /* NULL or "": that of the task */
    cd_hardware hardware;       /* used where the task has none, or target is given */
} cd_random_schedules_options;

typedef struct cd_random_schedules cd_random_schedules;

/* `tasks` and its records' texts are borrowed until free. Errors: ENOMEM. */
cdmpp_status cd_random_schedules_new(CD_KEEP const cd_task_registry *tasks, const cd_random_schedules_options *o, CD_GIVE cd_random_schedules **out, cdmpp_err *err);
void cd_random_schedules_free(CD_TAKE cd_random_schedules *d); /* NULL is fine */
/* Append the next record and its newline to `line`; nothing is appended at the
 * end. A task that has no schedules is an error with its key, once: go on with the
 * next call. Errors: EUNSUPPORTED, EINVALID (hardware), ENOMEM. */
cdmpp_status cd_random_schedules_next(cd_random_schedules *d, cd_buf *line, cdmpp_err *err);
/* All of them to `line`, *n of them, until *stop. A task without schedules is reported to `l` and costs only itself. Errors: ENOMEM,
 * EINTERRUPTED. */
cdmpp_status cd_random_schedules_all(cd_random_schedules *d, const cd_record_listener *l, const volatile sig_atomic_t *stop, cd_buf *line, size_t *n, cdmpp_err *err);
#endif
