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
 *   (7) device with `target` (split.c): one device is held out. Its tasks are
 *       divided by rank into test, validation and candidates; K candidates are chosen
 *       from their inputs. The test part does not depend on K or the way of choosing.
 *           part         the target's programs of      other devices' programs of
 *           test         test tasks                    -
 *           validation   validation tasks (K > 0)      validation tasks, and a fraction
 *                                                      of the tasks the target lacks
 *           train        the K chosen tasks            all other tasks
 *           unlabelled   other candidates; for K = 0   -
 *                        validation tasks as well
 *   (8) no part is empty;
 *   (9) `train_per_task` (split.c) is of the train part alone, when all else is decided: of a
 *       task on a device with more programs the fastest and a draw of the others stay, the rest is
 *       in no part. Validation and test part do not depend on it. */
#ifndef CD_SPLIT_H
#define CD_SPLIT_H
#include "base/text/text.h"
#include "dataset/select/select.h"

/* filter -- which programs are fit to learn from, and how many were not and why.
 *
 *   program by program:  ASKED ERROR LATENCY NO_ROWS NO_FACTS | NOISY LEAVES FLOP
 *   all together:                  percentiles of the programs left of the bar -> RANGE
 *   by task and device:            RARE, then SURPLUS of what is left
 *
 * (1) reasons are tried in the order of CD_FILTER_MAP, a program is counted once:
 *     in = kept + sum of drop;
 * (2) the percentiles are those of all measured programs that were asked for, before
 *     other limits, of all devices together (as CDMPP's third filter); linear between
 *     the two nearest, as numpy.percentile;
 * (3) SURPLUS is drawn by seed and program (cd_stable_id_program): the order of programs
 *     is nothing, and a smaller limit keeps a subset. A split with the same seed draws
 *     other numbers: what is kept falls into its parts by their fractions. */

#define CD_FILTER_MAP(X)                                                                           \
    X(ASKED, "of a device or task that was not asked for")                                         \
    X(ERROR, "not measured, or rejected by its target")                                            \
    X(LATENCY, "latency is not a finite number above 0, or is 1e9 s or more")                      \
    X(NO_ROWS, "no feature rows (the program was rejected)")                                       \
    X(NO_FACTS, "no facts of its loop nest")                                                       \
    X(NOISY, "std/mean of the repeats above the limit")                                            \
    X(LEAVES, "another number of leaves")                                                          \
    X(FLOP, "operations of the task unknown or outside the limits")                                \
    X(RANGE, "latency outside the percentiles")                                                    \
    X(RARE, "fewer programs of its task and device than the minimum")                              \
    X(SURPLUS, "more programs of its task and device than the maximum")

typedef enum {
#define CD_X(name, text) CD_FILTER_DROP_##name,
    CD_FILTER_MAP(CD_X)
#undef CD_X
        CD_FILTER_N_DROP
} cd_filter_drop;

typedef struct cd_filter_spec {
    const uint8_t *asked; /* (d->n) 1: use it; NULL: all */
    bool facts;           /* drop programs without facts; those of d are then loaded */
    double max_std_ratio; /* std/mean over 2 repeats or more; <= 0: no limit */
    /* of latency, both kept; <= 0, and <= 0 or >= 100: no limit */
    double low_percentile, high_percentile;
    const uint32_t *leaves;    /* (n_leaves) numbers of leaves to keep */
    size_t n_leaves;           /* 0: any */
    double min_flop, max_flop; /* of the task, both kept; <= 0: no limit */
    int64_t min_per_task;      /* of one device; <= 1: no minimum */
    int64_t max_per_task;      /* of one device; <= 0: no maximum */
    uint64_t seed;             /* of the draw of max_per_task */
} cd_filter_spec;

typedef struct cd_filter_count {
    size_t in, kept, drop[CD_FILTER_N_DROP];
} cd_filter_count;

/* The reason in words, for reports. */
const char *cd_filter_drop_text(cd_filter_drop d);

/* keep[i] = 1 for programs to use, (d->n), caller's. Errors: ENOMEM. */
cdmpp_status cd_filter(const cd_dataset *d, const cd_filter_spec *spec, uint8_t *keep,
                       cd_filter_count *count, cdmpp_err *err);

typedef enum {
    CD_SPLIT_PART_TRAIN,
    CD_SPLIT_PART_VALID,
    CD_SPLIT_PART_TEST,
    CD_SPLIT_N_PART,
    CD_SPLIT_PART_NONE = CD_SPLIT_N_PART
} cd_split_part;
#define CD_SPLIT_KINDS "record|task|network|device|interleaved"
typedef enum {
    CD_SPLIT_RECORD,
    CD_SPLIT_TASK,
    CD_SPLIT_NETWORK,
    CD_SPLIT_DEVICE,
    CD_SPLIT_INTERLEAVED
} cd_split_kind;

/* K tasks of a held-out device. */
typedef struct cd_split_target {
    size_t n_task; /* K */
    cd_select_kind select;
    const float *x; /* (d->n, dim) vectors to choose by; NULL: embed.h's of the rows */
    size_t dim;
    cd_threads *pool; /* for choosing; NULL: none */
} cd_split_target;

typedef struct cd_split_spec {
    cd_split_kind kind;
    uint64_t seed;
    double valid, test; /* fractions, both > 0, sum < 1 */
    /* units by name instead of fractions; not for RECORD and INTERLEAVED. Networks: see
     * features/task/task.h */
    cd_texts valid_name, test_name, train_name;
    const cd_split_target *target; /* DEVICE only; NULL: the whole device is the test part */
    int64_t train_per_task;        /* of one device; <= 0: no maximum */
    double train_best;             /* share of these that are the fastest ones, 0..1 */
} cd_split_spec;

typedef struct cd_split {
    cd_arena arena; /* of the arrays */
    cd_split_kind kind;
    size_t n;
    /* (n) cd_split_part; CD_SPLIT_PART_NONE: filtered out, or in no part */
    uint8_t *part;
    size_t n_program[CD_SPLIT_N_PART], n_task[CD_SPLIT_N_PART];
    /* SHA-256 over the sorted 64-bit keys of the part's programs */
    char hash[CD_SPLIT_N_PART][65];
    char digest[65]; /* over the three */

    size_t n_unused;  /* kept programs in no part, not unlabelled, and not thinned out */
    size_t n_thinned; /* by train_per_task */
    size_t n_shared;  /* NETWORK: see (3) */
    /* (n) 1: a kept program of the held-out device; NULL without `target` */
    uint8_t *target;
    /* (n) 1: its input may be used, its latency not; NULL without `target` */
    uint8_t *unlabelled;
    size_t n_target[CD_SPLIT_N_PART], n_unlabelled; /* programs of the held-out device */
    size_t n_candidate;                             /* tasks to choose from */
    uint32_t *chosen; /* (n_chosen) tasks of the data set, in the order of choice */
    size_t n_chosen;
} cd_split;

const char *cd_split_part_name(cd_split_part p); /* "train", "validation", "test" */
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

/* stable_id -- 64-bit numbers that name things of a data set: whatever is drawn by such a
 * number does not depend on the order of files, programs or threads. The first 64
 * bits of a SHA-256. */

/* The number of a name. */
uint64_t cd_stable_id_name(const char *name);
/* Of a program: task, device, name of its file without the folder, line. The same
 * record given twice has one key. */
uint64_t cd_stable_id_program(const cd_dataset *d, size_t i);

/* sample -- CDMPP's words for which task files to use, and for who is held out.
 *
 *   sample   = part {"," part}
 *   part     = [device ":"] mode {"+" mode}         without a device: all not named elsewhere
 *   mode     = "cross"                              all tasks of the device
 *            | "sample" K                           the K first of its tasks
 *            | "random" K                           K drawn by seed and name
 *            | "list" {"-" id}                      tasks by number
 *            | "network" {"-" network}              tasks of these networks
 *
 *   split    = "by_device:" side ["," side]
 *            | "by_net:" side ["," side]
 *   side     = ("train" | "test") {"-" name}        or "-all"
 *
 *   t4:sample200,v100:random50+network-resnet_50_bs1-bert_base_
 *   by_net:train-all,test-resnet_18_bs1
 *
 *   (1) tasks are numbered from 0 by (operations, workload key), GPU tasks and CPU tasks
 *       each for themselves: TenSet's order, in which low numbers are small tasks and
 *       unknown operations (-1) come first. On a data set of all of TenSet's tasks the
 *       numbers are TenSet's; on others, the order of what there is;
 *   (2) a device gets what its modes name together, as far as it has it;
 *   (3) a side that is not given, or is "all", is everybody that the other side does not
 *       name; who is named on neither of two sides is not used. A task of a tested
 *       network is never trained on (split.h, 3), where CDMPP has it on both sides;
 *   (4) names may hold "-": the longest name of the data set that fits is meant. Networks
 *       answer as features/task/task.h says.
 * No state, any thread. */

/* asked[i] = 1 for the programs of the sample, 0 for others; (d->n), the caller's.
 * Errors: EPARSE (with the character at which it stops to make sense), ESCHEMA (a device
 * or network that the data set does not have, with the nearest), ENOMEM. */
cdmpp_status cd_sample_mark(const cd_dataset *d, const char *text, uint64_t seed, uint8_t *asked,
                            cdmpp_err *err);

/* Sets kind, train_name and test_name of *spec; texts live in the arena. The same errors. */
cdmpp_status cd_sample_split(const cd_dataset *d, const char *text, cd_arena *arena,
                             cd_split_spec *spec, cdmpp_err *err);
#endif
