/* split -- three parts of a data set: train, validation, test.
 *
 *   kind          unit drawn       what the test part answers
 *   record        one program      another schedule of a known task
 *   task          workload key     an operator never seen
 *   network       network          a network never seen, its tasks neither
 *   device        device           a device never seen
 *   device + target tasks          a device of which K tasks were measured
 *   interleaved   every 5th program by latency: CDMPP's own split, for comparison
 *
 *   (1) a unit is drawn by a number that depends on the seed and on the unit's
 *       own name alone (base/rng): order of files, rows or threads is nothing;
 *   (2) record: programs whose number is below the fraction, so that a program
 *       keeps its part when others are added; the same record twice (same task,
 *       device, file name and line) falls into one part. Others: the units are
 *       ranked by number and the first round(fraction * units), at least one, taken;
 *   (3) network: a task that also occurs in a held-out network belongs to the
 *       test part: it is never trained on. `n_shared` counts such tasks of networks
 *       that are not held out. Programs of tasks in no network train;
 *   (4) network, device: validation is a fraction of the remaining tasks, so
 *       that few networks are not halved, unless `valid_name` lists units;
 *   (5) `train_name`: only these units train, the others are the test part or, when
 *       `test_name` is given too, in no part;
 *   (6) interleaved: all programs sorted by latency, ties by key; of each five the first
 *       four train and the fifth is tested, an unfinished group at the end is in no
 *       part. Every k-th of the train programs, k = round(0.8 / valid), at least 2,
 *       validates instead: the test part is exactly CDMPP's;
 *   (7) device with `target` (split_target.c): one device is held out. Its tasks are
 *       divided by rank into test, validation and candidates; K candidates are chosen
 *       from their inputs. The test part does not depend on K or the way of choosing.
 *           part         the target's programs of      other devices' programs of
 *           test         test tasks                    -
 *           validation   validation tasks (K > 0)      validation tasks, and a fraction
 *                                                      of the tasks the target lacks
 *           train        the K chosen tasks            all other tasks
 *           unlabelled   other candidates; for K = 0   -
 *                        validation tasks as well
 *   (8) no part is empty. */
#ifndef CD_SPLIT_H
#define CD_SPLIT_H
#include "base/core/core.h"
#include "base/text/text.h"
#include "dataset/file/file.h"
#include "dataset/select/select.h"

typedef enum { CD_SPLIT_PART_TRAIN, CD_SPLIT_PART_VALID, CD_SPLIT_PART_TEST, CD_SPLIT_N_PART, CD_SPLIT_PART_NONE = CD_SPLIT_N_PART } cd_split_part;
#define CD_SPLIT_KINDS "record|task|network|device|interleaved"
typedef enum { CD_SPLIT_RECORD, CD_SPLIT_TASK, CD_SPLIT_NETWORK, CD_SPLIT_DEVICE, CD_SPLIT_INTERLEAVED } cd_split_kind;

/* K tasks of a held-out device. */
typedef struct cd_split_target {
    size_t n_task;            /* K */
    cd_select_kind select;
    const float *x;           /* (d->n, dim) vectors to choose by; NULL: embed.h's of the rows */
    size_t dim;
    cd_threads *pool;         /* for choosing; NULL: none */
} cd_split_target;

typedef struct cd_split_spec {
    cd_split_kind kind;
    uint64_t seed;
    double valid, test;              /* fractions, both > 0, sum < 1 */
    cd_texts valid_name, test_name, train_name; /* units by name instead of fractions; not for RECORD
                                        and INTERLEAVED. Networks: see features/task/network_alias.h */
    const cd_split_target *target;   /* DEVICE only; NULL: the whole device is the test part */
} cd_split_spec;

typedef struct cd_split {
    cd_arena arena;              /* of the arrays */
    cd_split_kind kind;
    size_t n;
    uint8_t *part;               /* (n) cd_split_part; CD_SPLIT_PART_NONE: filtered out, or in no part */
    size_t n_program[CD_SPLIT_N_PART], n_task[CD_SPLIT_N_PART];
    char hash[CD_SPLIT_N_PART][65];    /* SHA-256 over the sorted 64-bit keys of the part's programs */
    char digest[65];             /* over the three */

    size_t n_unused;             /* kept programs in no part and not unlabelled */
    size_t n_shared;             /* NETWORK: see (3) */
    uint8_t *target;             /* (n) 1: a kept program of the held-out device; NULL without `target` */
    uint8_t *unlabelled;         /* (n) 1: its input may be used, its latency not; NULL without `target` */
    size_t n_target[CD_SPLIT_N_PART], n_unlabelled; /* programs of the held-out device */
    size_t n_candidate;          /* tasks to choose from */
    uint32_t *chosen;            /* (n_chosen) tasks of the data set, in the order of choice */
    size_t n_chosen;
} cd_split;

const char *cd_split_part_name(cd_split_part p);       /* "train", "validation", "test" */
const char *cd_split_name(cd_split_kind k);

/* `keep` (d->n) from cd_filter. Errors: ESCHEMA (a name that no program has, a unit in
 * two parts, names or a target with a kind that has none; key "split.test_names[i]"),
 * ERANGE (an empty part, more target tasks than candidates), ENOMEM, ENUMERIC. */
cdmpp_status cd_split_make(const cd_dataset *d, const uint8_t *keep, const cd_split_spec *spec,
                           CD_GIVE cd_split **out, cdmpp_err *err);
void cd_split_free(CD_TAKE cd_split *s); /* NULL is fine */
/* What the counts of parts do not tell, one line each: shared tasks, programs in no
 * part, the target's programs. Nothing for most splits. */
void cd_split_notes(cd_buf *out, const cd_split *s);

/* The other headers of the room that are open to other rooms. */
#include "dataset/split/filter.h"
#include "dataset/split/sample.h"
#include "dataset/split/stable_id.h"
#endif
