/* The door of features/task: tasks, and the measured programs that name them.
 *
 * Registry of tasks: (workload key, target kind) -> definition. Below it: target strings and
 * default hardware, names of networks, one line of a log (record).
 *
 *   all_tasks.pkl ---\
 *   *.task.pkl -------> [key | target | hardware | DAG or why not] + networks
 *   own text form ---/
 *   printed by TVM --/
 *
 * Loaded once from TenSet's pickles or from our own text form (docs/reference/tasks.md),
 * read-only afterwards: share it between threads. Equal keys mean equal DAGs:
 * tasks that differ only in the target kind share one. A task whose DAG cannot be read stays in
 * it with the reason, so that it harms nobody but its own records. */
#ifndef CD_TASK_H
#define CD_TASK_H
#include <stdbool.h>
#include <stdint.h>

#include "features/te/te.h"

/* Target strings, "llvm -keys=cpu -mcpu=znver5 -num-cores=2", and the hardware parameters of a
 * tuner.
 *
 * The first word is the kind; options follow. TVM's auto_scheduler keeps eight numbers beside it.
 * No state, any thread. */

/* TVM's HardwareParams, in the order of the record format. */
typedef struct cd_hardware {
    int64_t num_cores, vector_unit_bytes, cache_line_bytes, max_shared_memory_per_block,
        max_local_memory_per_block, max_threads_per_block, max_vthread_extent, warp_size;
} cd_hardware;

/* Is the kind one that TVM's auto_scheduler treats as a GPU, and whose programs it verifies? */
bool cd_target_is_gpu(cd_str target);
/* Value of an option: of "-mcpu" in "llvm -mcpu=znver3 -num-cores=2" znver3, of several the last;
 * empty: it is not there. target may be NULL. */
CD_KEEP cd_str cd_target_option(const char *target, const char *name);
/* Of a target that a user typed, as --target: is its kind one of TVM's? An attribute that is nearly
 * a usual one is a warning; log NULL: nothing is said. Errors: EUSAGE, with the nearest kind. */
struct cd_log;
cdmpp_status cd_target_check(const char *target, struct cd_log *log, cdmpp_err *err);
/* The target in "DEVICE=TARGET" or "TARGET", and its device, of length 0: of all. "=" after a blank
 * belongs to the target itself. */
CD_KEEP const char *cd_target_of_device(const char *text, CD_KEEP cd_str *device);
/* Bytes of the longest vector register that code for this target may use, by -mcpu, -mattr and
 * -mtriple: 64 with AVX-512, 16 of ARM and of a triple x86_64 alone, else 32. */
uint32_t cd_target_vector_bytes(cd_str target);
/* What TVM's tuner assumes for a target without numbers of its own: for CPUs the machine's cores
 * and vectors, for GPUs the limits of CUDA. */
cd_hardware cd_target_hardware(bool gpu, int64_t num_cores, int64_t vector_bytes);
/* Layout option (ansor.md, Records) of programs that a tuner makes for a whole network: on CPUs
 * weights lie ready in the order of the program's loops, 2; on GPUs they stay as they are, 0. */
static inline int64_t cd_target_layout(bool gpu) { return gpu ? 0 : 2; }

/* device_name -- which device a record was measured on. */

/* "zen5" of the target "llvm -model=zen5", else the folder of the file `source`, else "unknown".
 * Part of one of both. */
cd_str cd_device_name_of(cd_str target, const char *source);
/* "sm_86" of "cuda -arch=sm_86", "gfx90a" of "rocm -mcpu=gfx90a"; n 0: the target does not say it.
 * Part of it. */
cd_str cd_device_arch_of(cd_str target);

/* label -- the latency of a measured program: one number from the repeats of a record. */

#define CD_LABEL_REJECTED     254 /* error: the target rejects the program */
#define CD_LABEL_NOT_MEASURED 255 /* error: the record claims success without a time */

typedef struct cd_label {
    /* median, mean, population deviation, fastest of the repeats; NaN where error is not 0 */
    double latency_s, mean_s, std_s, min_s;
    uint32_t repeats;
    /* 0: measured; 1..8: TVM's error number; or one of the above */
    uint8_t error;
} cd_label;

/* From cost_s: (n) seconds, sorted in place, and the record's error number. A median is the label
 * because single repeats may be interrupted. */
cd_label cd_label_of(double *cost_s, uint32_t n, int64_t error_no);

/* Which networks of a data set a written name means.
 *
 *   "(resnet_50,[(1,3,224,224)])"  answers to  itself, "resnet_50" and "resnet_50_" (any
 *   "bert_large"                                shape), "resnet_50_bs1" (batch size 1)
 *
 * The batch size is the first number of the shape. No state, any thread. */

/* The name without a shape, borrowed from `network`. */
cd_str cd_network_alias_base(const char *network);
/* The batch size; -1 when the name has no shape. */
int64_t cd_network_alias_batch(const char *network);
/* Does the written name `asked` mean this network? */
bool cd_network_alias_answers(const char *network, const char *asked);

typedef struct cd_task {
    const char *workload_key;
    const char *target;      /* target string, "llvm -keys=cpu ..."; "" if unknown */
    const char *target_kind; /* "llvm", "cuda", ...; "" if unknown */
    cd_hardware hardware;
    bool has_hardware;
    const char *desc;     /* "" if absent */
    const cd_te_dag *dag; /* NULL: unusable, see why */
    const cdmpp_err *why; /* reason when dag is NULL, else NULL */
    /* another definition that came for the same key, after this one; NULL: none. Only who decides
     * by a record reads it */
    const struct cd_task *twin;
} cd_task;
/* Operations of the task; -1 when they cannot be counted. */
double cd_task_flop(const cd_task *t);

/* A network: which tasks it uses and how often. */
typedef struct cd_network {
    /* from the file name of a *.task.pkl, "(resnet_18,[(1,3,224,224)])" */
    const char *name;
    uint32_t n;
    const uint32_t *task;  /* (n) index of what cd_task_registry_find gives for the key */
    const int64_t *weight; /* (n) occurrences */
} cd_network;

typedef struct cd_task_registry cd_task_registry;

/* An empty registry. Errors: ENOMEM. */
cdmpp_status cd_task_registry_new(CD_GIVE cd_task_registry **out, cdmpp_err *err);
void cd_task_registry_free(cd_task_registry *t); /* NULL is fine */

/* Add every task of a file: all_tasks.pkl, *.task.pkl (also registers the network that the file is
 * named after), networks.json ({"network": [{"workload_key", "weight"}]} or {"network": [key,
 * ...]}), our text form, or a text in which TVM printed definitions beside their keys
 * (task_load.c); plain or packed (gz, xz, zst). Which it is, is decided by content. Also a
 * folder: every such file below it, found by name: *.pkl but *.relay.pkl, *.tasks.json, and
 * networks*.json where no pickle names networks, *.out where nothing else defines tasks. A task or
 * network that is known already is not added twice: the first definition stays, unless it is a
 * printed one and the other is not; the one that is not used is kept as a twin and told by
 * cd_task_registry_unused. Tasks that only a network names are entered without a DAG. Errors are
 * about whole files and carry the path: EIO, EPARSE, ESCHEMA, EUNSUPPORTED (a pickle that calls
 * anything but TVM's task classes), ENOMEM. */
cdmpp_status cd_task_registry_load(cd_task_registry *t, const char *path, cdmpp_err *err);
/* The same from memory; `name` stands for the path. */
cdmpp_status cd_task_registry_load_text(cd_task_registry *t, const char *name, const char *text,
                                        size_t len, cdmpp_err *err);
/* Definitions and networks that are not used, because an earlier one of their key or name differs
 * (of a print: a later one that is none), and printed ones that cannot be read: number i, with its
 * file, and of a definition that is no pickle its line; NULL: no such i. Valid until the next
 * load. */
CD_KEEP const cdmpp_err *cd_task_registry_unused(const cd_task_registry *t, size_t i);
/* What may be assumed where a printed definition leaves something open (dagtext.h): bits, for what
 * is loaded from now on. */
void cd_task_registry_assume(cd_task_registry *t, unsigned assumptions);
/* The bits of names, "symmetric-padding" and so on, as of an option --assume. Errors: EUSAGE. */
cdmpp_status cd_task_assumptions(const char *const *name, size_t n, unsigned *out, cdmpp_err *err);
/* Tasks whose definitions rest on any of these assumptions. */
size_t cd_task_registry_rest_count(const cd_task_registry *t, unsigned assumptions);
/* Files and folders one after another. What is not used is then told as warnings. log NULL: nothing
 * is said. */
struct cd_log;
cdmpp_status cd_task_registry_load_all(cd_task_registry *t, const char *const *path, size_t n,
                                       struct cd_log *log, cdmpp_err *err);

/* One task, unless its key is known: then *out is what is there. The definition is copied, target
 * "" is unknown. Errors: ESCHEMA (no key; another definition has it), ENOMEM. */
cdmpp_status cd_task_registry_add(cd_task_registry *t, cd_str workload_key, const cd_te_dag *dag,
                                  CD_KEEP const cd_task **out, cdmpp_err *err);

/* Equal, or one of them is the flat form of the other: TVM has written ["hash", 1, 64, 56] and
 * ["hash", [1, 64], [56]] for the same task. */
bool cd_task_same_key(cd_str a, cd_str b);

/* Tasks in order of registration: how many, without a DAG, number i (NULL: none). */
size_t cd_task_registry_count(const cd_task_registry *t);
size_t cd_task_registry_bad_count(const cd_task_registry *t); /* tasks without a DAG */
const cd_task *cd_task_registry_at(const cd_task_registry *t, size_t i);
/* NULL when unknown. Found by workload key alone, in the flat or the nested form; of several target
 * kinds, the first. A flat key that stands for several nested ones, and came for none of them, is
 * unknown. */
const cd_task *cd_task_registry_find(const cd_task_registry *t, cd_str workload_key);
/* Position of a task of this registry. */
size_t cd_task_registry_index(const cd_task_registry *t, const cd_task *task);
/* Networks in order of registration. */
size_t cd_task_registry_network_count(const cd_task_registry *t);
const cd_network *cd_task_registry_network(const cd_task_registry *t, size_t i);

/* All tasks that have a DAG and all networks, in our own text form. Reading it
 * gives equal tasks. Errors: ENOMEM. */
struct cd_buf;
cdmpp_status cd_task_registry_write(struct cd_buf *out, const cd_task_registry *t, cdmpp_err *err);

/* What kind of program a task is, without its extents: what a model must have seen to be believed.
 *
 *   definition ──> dtypes of buffers, a fingerprint of each reduction, intrinsics, unusual accesses
 *   target     ──> threads, width of vectors, features
 *
 * A signature is a sorted list of marks, each a class and a text:
 *
 *   dtype float32                          a buffer of this type
 *   operator sum 2+1 * ir,ir               a reduction: combiner, spatial+reduce axes, arithmetic
 *                                          of its source, its reads
 *   typed float32<float32 sum 2+1 * ir,ir  the same, with the types that it writes and reads
 *   operator no reduction                  a program of elementwise stages alone
 *   operator access divided                of an elementwise stage: divided, gathered, fused,
 *                                          strided, permuted, joined, other
 *   intrinsic exp                          a call; casts as "cast float16>float32"
 *   threads 24, vector 64, feature +avx512f
 *
 * One letter for each dimension of a read: i a spatial axis, r a reduce axis, s and t the same
 * strided, + their sum, 2 the sum with a strided spatial axis, ~ with a dilated reduce axis, c a
 * constant, f several axes, d a division or remainder, g a value that is read, m anything else. So
 * a product of matrices and a convolution differ, and no list of operators is needed. Equal
 * definitions have equal signatures, whatever their shapes are called. No state, any thread. */

/* between the marks of a signature as one text; no mark has a ';' */
#define CD_SIGNATURE_BETWEEN "; "

typedef struct cd_signature {
    size_t n;
    const char **mark; /* (n) sorted, each once */
} cd_signature;

/* Marks of a definition and a target in `a`. target.n == 0: unknown; hardware NULL: unknown.
 * Errors: ENOMEM. */
cdmpp_status cd_signature_of(cd_arena *a, const cd_te_dag *dag, cd_str target,
                             const cd_hardware *hardware, cd_signature *out, cdmpp_err *err);
/* The marks as one text in `a`. Errors: ENOMEM. */
cdmpp_status cd_signature_text(cd_arena *a, const cd_signature *s, CD_KEEP const char **out,
                               cdmpp_err *err);
/* Takes the next mark off a text; false: there is none. *text: what is left. */
bool cd_signature_next(const char **text, cd_str *mark);

/* One line of an Ansor/TenSet measure log <-> struct.
 *
 *   {"i": [[key, target, [8 ints], host, layout, [names]], [[], [STEP, ...]]],
 *    "r": [[seconds, ...], error, total_s, timestamp], "v": "v0.6"}
 *
 * A member "origin" may follow, where TVM's readers stop reading. Versions v0.2 to v0.6
 * (docs/reference/record.md). A step is kept as numbers: steps of all 14 kinds fit one struct, see
 * cd_record_step; what they mean is in docs/internals/ansor.md, Steps. Text is borrowed from the
 * line. */

/* X(code, argument signature after the stage id), one letter an argument:
 *   i  integer >= 0                     a  annotation, 0..11
 *   n  integer >= 1                     b  flag, 0 or 1
 *   z  any integer                      s  string
 *   l  list of integers >= 0            f  list of integers >= 1 (lengths) */
#define CD_RECORD_STEP_MAP(X)                                                                      \
    X(AN, "ia")                                                                                    \
    X(FU, "l")                                                                                     \
    X(PR, "is")                                                                                    \
    X(RE, "l")                                                                                     \
    X(SP, "iifb")                                                                                  \
    X(FSP, "iin")                                                                                  \
    X(FFSP, "ilib")                                                                                \
    X(SA, "izz")                                                                                   \
    X(CA, "ii")                                                                                    \
    X(CI, "")                                                                                      \
    X(CR, "")                                                                                      \
    X(CHR, "sl")                                                                                   \
    X(CHW, "s")                                                                                    \
    X(RF, "ii")
/* bytes of a record: those of a search take 0.5 to 60 kB. Each thread may hold one as a tree */
#define CD_RECORD_LINE_MAX ((size_t)2 << 20)
#define CD_ANNOTATION_MAX  11 /* tensorize */
#define CD_ERROR_NO_MAX    8  /* unknown error */

typedef enum cd_record_step_kind {
#define CD_X(code, sig) CD_RECORD_STEP_##code,
    CD_RECORD_STEP_MAP(CD_X)
#undef CD_X
        CD_RECORD_STEP_COUNT
} cd_record_step_kind;

/* Arguments in the order of the record, integers in `i`, the list (at most one
 * per step) in `list`, the string in `s`:
 *   AN   i[0] iterator, i[1] annotation     FSP  i[0] iterator, i[1] source step, i[2] n_split
 *   FU   list iterators                     FFSP i[0] iterator, list source steps, i[1] level, i[2]
 *                                           factor(1)/nparts(0)
 *   PR   i[0] iterator, s pragma            SA   i[0] iterator, i[1] factor, i[2] offset
 *   RE   list new order                     CA   i[0] target stage, i[1] target iterator
 *   SP   i[0] iterator, i[1] extent,        CHR  s scope, list reader stages
 *        list lengths, i[2] inner_to_outer  CHW  s scope
 *   CI, CR nothing                          RF   i[0] iterator, i[1] factor iterator
 * Every integer fits int32_t. */
typedef struct cd_record_step {
    cd_record_step_kind kind;
    int32_t stage;
    int32_t i[3];
    uint32_t n_list;
    const int32_t *list; /* (n_list) */
    cd_str s;
} cd_record_step;

typedef struct cd_record {
    cd_str workload_key, target, target_host;
    bool has_hardware, has_host, has_layout, has_inputs; /* fields present in this version */
    cd_hardware hardware;
    int64_t layout_rewrite;
    uint32_t n_input;
    const cd_str *input; /* task input names */
    uint32_t n_step;
    const cd_record_step *step; /* (n_step) */
    uint32_t n_cost;
    const double *cost_s; /* (n_cost) seconds; 1e10 marks a failed measurement */
    int64_t error_no;     /* 0 none, 1..8: ansor.md, Records */
    double total_s;       /* building and running */
    int64_t timestamp;    /* unix seconds */
    cd_str version;       /* "v0.6" */
    /* who chose the schedule, predictor/estimate/schedule_db.h; n == 0: unknown */
    cd_str origin;
} cd_record;

/* Read one line (no newline needed). Everything *out points to lives in `a` or
 * in the line. Errors: EPARSE, ESCHEMA, ERANGE, EUNSUPPORTED (version, step
 * kind), ENOMEM; err->key is the path, "i[1][1][4]". */
cdmpp_status cd_record_read(cd_arena *a, const char *line, size_t len, cd_record *out,
                            cdmpp_err *err);

/* Its members one by one, "i", "r", "v" as texts; without r (n == 0) there are no costs, without v
 * the version is not looked at. Errors: as above. */
cdmpp_status cd_record_read_parts(cd_arena *a, cd_str i, cd_str r, cd_str v, cd_record *out,
                                  cdmpp_err *err);

/* The steps alone, item i[1][1] of a record: [["SP",2,0,512,[64],1], ...]; only step and
 * n_step of *out are written. Errors: as above, the key counts from the list. */
cdmpp_status cd_record_read_steps(cd_arena *a, const char *text, size_t len, cd_record *out,
                                  cdmpp_err *err);

/* A line that holds no record: empty, or starting with '#' or a blank. */
bool cd_record_is_comment(const char *line, size_t len);

/* Append the record as one line (with '\n') in TVM's own byte format: reals
 * with 6 significant digits. Errors: ESCHEMA, ERANGE, EUNSUPPORTED for what the
 * reader would refuse (nothing is appended then), ENOMEM. */
struct cd_buf;
cdmpp_status cd_record_write(struct cd_buf *out, const cd_record *r, cdmpp_err *err);
/* The steps alone, as cd_record_read_steps reads them; no '\n'. Errors: EUNSUPPORTED, ENOMEM. */
cdmpp_status cd_record_write_steps(struct cd_buf *out, const cd_record *r, cdmpp_err *err);
/* A digest of steps: equal steps have the same, and others another one. It does not depend on the
 * machine or the run. */
uint64_t cd_record_steps_key(const cd_record_step *step, uint32_t n_step);
/* Steps as one list of numbers (docs/reference/dataset.md, Steps): of each step its kind, how many
 * values, and these: the stage and the arguments in the order of the record, lists one by one. A
 * name is a number: local 1, shared 2, global 3, warp 4, auto_unroll_max_step$N N,
 * debug_skip_region -1. *code (*n) lives in `a`. Errors: EUNSUPPORTED (another name), ENOMEM. */
cdmpp_status cd_step_codes(cd_arena *a, const cd_record *r, int32_t **code, uint32_t *n,
                           cdmpp_err *err);
typedef struct cd_step_code {
    cd_record_step_kind kind;
    uint32_t n;
    const int32_t *value; /* (n) */
} cd_step_code;
/* Takes the first step off a list; false: it is empty, or no list of steps begins there. */
bool cd_step_codes_next(const int32_t **code, size_t *n, cd_step_code *out);
/* Is it such a list, whole? */
bool cd_step_codes_sound(const int32_t *code, size_t n);
/* "SP", "RE" ...; "?" for none. */
const char *cd_record_step_code(cd_record_step_kind k);
#endif
