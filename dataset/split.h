/* split -- three parts of a data set: train, validation, test.
 *
 *   kind      unit drawn       what the test part answers
 *   record    one program      another schedule of a known task
 *   task      workload key     an operator never seen
 *   network   network          a network never seen, its tasks neither
 *   device    device           a device never seen
 *
 *   (1) a unit is drawn by a number that depends on the seed and on the unit's
 *       own name alone (base/rng): order of files, rows or threads is nothing;
 *   (2) record: programs whose number is below the fraction, so that a program
 *       keeps its part when others are added; the same record twice (same task,
 *       device, file name and line) falls into one part. Others: the units are
 *       ranked by number and the first round(fraction * units), at least one, taken;
 *   (3) network: a task that also occurs in a held-out network belongs to the
 *       test part: it is never trained on. Programs of tasks in no network train;
 *   (4) network, device: validation is a fraction of the remaining tasks, so
 *       that few networks are not halved, unless `valid_name` lists units;
 *   (5) no part is empty. */
#ifndef CD_SPLIT_H
#define CD_SPLIT_H
#include "base/conf.h"
#include "dataset/dataset.h"

typedef enum { CD_PART_TRAIN, CD_PART_VALID, CD_PART_TEST, CD_N_PART, CD_PART_NONE = CD_N_PART } cd_part;
#define CD_SPLIT_KINDS "record|task|network|device"
typedef enum { CD_SPLIT_RECORD, CD_SPLIT_TASK, CD_SPLIT_NETWORK, CD_SPLIT_DEVICE } cd_split_kind;

typedef struct cd_split_spec {
    cd_split_kind kind;
    uint64_t seed;
    double valid, test;              /* fractions, both > 0, sum < 1 */
    cd_texts valid_name, test_name;  /* units by name instead of fractions; not for RECORD. A
                                        network "(name,[shape])" also answers to "name". */
} cd_split_spec;

typedef struct cd_split {
    size_t n;
    uint8_t *part;               /* (n) cd_part; CD_PART_NONE: filtered out */
    size_t n_program[CD_N_PART], n_task[CD_N_PART];
    char hash[CD_N_PART][65];    /* SHA-256 over the sorted 64-bit keys of the part's programs */
    char digest[65];             /* over the three */
} cd_split;

const char *cd_part_name(cd_part p);       /* "train", "validation", "test" */
const char *cd_split_name(cd_split_kind k);

/* `keep` (d->n) from cd_filter. Errors: ESCHEMA (a name that no program has, key
 * "split.test[i]"), ERANGE (an empty part), ENOMEM. */
cdmpp_status cd_split_make(const cd_dataset *d, const uint8_t *keep, const cd_split_spec *spec,
                           CD_GIVE cd_split **out, cdmpp_err *err);
void cd_split_free(CD_TAKE cd_split *s); /* NULL is fine */
#endif
