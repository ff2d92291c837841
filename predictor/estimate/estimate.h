/* The door of predictor/estimate: other rooms include this header and no other of the room.
 *
 * Time of a network's nodes: models, schedule databases, node latency, parallel training. */
#ifndef CD_PREDICTOR_ESTIMATE_DOOR_H
#define CD_PREDICTOR_ESTIMATE_DOOR_H
#include <stdbool.h>

#include "base/cli/cli.h"
#include "features/device/device.h"
#include "learner/model/model.h"
#include "learner/operators/operators.h"
#include "predictor/estimate/network_cost.h"
#include "predictor/estimate/node_cost.h"
#include "predictor/estimate/schedule_db.h"

/* model_set -- cost models of a command, and which of them answers for a device.
 *
 *   paths, $CDMPP_MODELS ─> headers ─ device ─> the first that knows it, loaded when it is first
 *                                               asked for
 *
 *   (1) models are asked in the order they are given, then those in the folders of $CDMPP_MODELS,
 *       by name;
 *   (2) descriptions of devices are a help: without a file of them models still answer for the
 *       devices they know.
 * One thread. */

typedef struct cd_model_set_entry {
    const char *path;
    bool operators; /* a model of library operators, or of those of language models */
    /* of language models: it answers tasks in types of 16 and 8 bits; its devices are not
     * counted */
    bool language;
    const char **device; /* (n_device) that it was trained on */
    size_t n_device;
    /* what the model is corrected for: its name, and the back end of a GPU. NULL: nothing, no
     * GPU */
    const char *here, *backend;
    /* that it is corrected for, the last of device; who stands for it. NULL: none, or it was
     * trained on the machine */
    const char *machine, *stands;
    cd_model *tasks; /* loaded when first asked for */
    bool warned;     /* cd_model_set_warn */
    /* of gpu_path: cd_model_set_uses has asked the driver; its GPU is not here */
    bool asked, absent;
    cd_library_op_model *ops;
    cd_llm_op_model *llm;
} cd_model_set_entry;

typedef struct cd_model_set {
    cd_arena arena;
    cd_model_set_entry *v; /* (n) in the order they are asked */
    size_t n, cap;
    /* the default model, where it is the only one; NULL: models were named */
    const char *default_path;
    /* the user's model of a GPU, which is used beside the default one where its GPU is here
     * (cd_model_set_uses); NULL: there is none, or models were named */
    const char *gpu_path;
    /* the installed model of GPUs, behind that; NULL: it is not installed, or models were named */
    const char *gpu_default;
    bool default_said;        /* cd_model_set_host has named it in the log */
    bool gpu_said;            /* cd_model_set_gpu_host has named gpu_default */
    cd_device_table *devices; /* descriptions; NULL: there is no file of them */
    bool named;               /* a file of them was named: its devices come first */
    /* fits of what networks cost; NULL: there is no file of them */
    cd_network_cost *costs;
    /* those of machines that models are corrected for; in `costs` too, where the file has no entry
     * of the machine */
    cd_network_cost *measured;
    /* cd_model_set_host, cd_model_set_gpu_host, cd_model_set_is_host found no device that is this
     * machine: the answer is the nearest one */
    bool guessed;
    float here[CD_N_DEVICE_COL]; /* since then: this machine's own description */
    cd_dict no_names;            /* of questions to `narrow` */
    /* of the first model of operators of language models, made when it is first asked for */
    cd_llm_op_asker *narrow;
    char host[128]; /* and what its processor says: "AMD EPYC, zen4" */
} cd_model_set;

typedef struct cd_model_set_options {
    const cd_texts *model; /* models, all of them */
    const cd_texts *mixed; /* of these what begins as a model does; NULL: none */
    /* without any model: the default ones (predictor/score/default_model.h), for processors and for
     * GPUs where it is installed or was calibrated */
    bool use_default;
    const char *devices; /* descriptions; NULL: where they usually are */
    /* models of operators of language models are taken; else they are errors */
    bool language;
    /* what the user calls `devices`, and the name of a device, in messages; NULL: "--devices",
     * "--device" */
    const char *file_option, *name_option;
    /* what is wrong with the descriptions, line by line; NULL: nobody listens */
    void (*lines)(void *ctx, const char *text);
    void *ctx;
} cd_model_set_options;

/* Whether the file begins as a model does. */
bool cd_model_set_is_model(const char *path);
/* Errors: EIO, EPARSE, ESCHEMA, with the path; those of cd_device_table_load; ENOMEM. Free after an
 * error too. */
cdmpp_status cd_model_set_open(const cd_model_set_options *a, cd_model_set *m, cdmpp_err *err);
void cd_model_set_free(cd_model_set *m); /* zeroed is fine */
/* EMODEL where there are models and none is of programs: says what they serve. */
cdmpp_status cd_model_set_need_programs(const cd_model_set *m, cdmpp_err *err);
/* The first model of tasks (of operators) that knows the device, loaded; *out NULL: none. nearest:
 * else the first of its kind. */
cdmpp_status cd_model_set_tasks(cd_model_set *m, const char *device, bool nearest,
                                CD_KEEP const cd_model **out, cdmpp_err *err);
cdmpp_status cd_model_set_ops(cd_model_set *m, const char *device,
                              CD_KEEP const cd_library_op_model **out, cdmpp_err *err);
/* Of the first model of operators of language models: who answers tasks in types of 16 and 8 bits.
 * *out NULL: there is none. */
cdmpp_status cd_model_set_narrow(cd_model_set *m, CD_KEEP const cd_llm_op_asker **out,
                                 cdmpp_err *err);
/* For a device that none knows: the model of tasks with the most similar device of the same kind,
 * by description, else of any kind; *stands: that device, as the model calls it; *other_kind: it is
 * of another kind, and both descriptions have both peaks. *out NULL: nobody describes the device,
 * or any of a model. Errors: EMODEL (key): only another kind is there, and the device's description
 * lacks a peak; of loading. */
cdmpp_status cd_model_set_stand_in(cd_model_set *m, const char *device,
                                   CD_KEEP const cd_model **out, CD_KEEP const char **stands,
                                   bool *other_kind, cdmpp_err *err);
/* Where a model of tasks that comes later in the set knows the device too: its path. NULL: at most
 * one does. */
CD_KEEP const char *cd_model_set_also(const cd_model_set *m, const char *device);
/* What it adds that device `at` of the model stands for one: of the same kind the model's law
 * (learner/model/model.h); of another kind CD_MODEL_SET_BETWEEN_KINDS. want, has: their
 * descriptions as vectors; NULL: nobody describes one of them. own_times: its analytic times are
 * computed with its own description (cd_model_set_numbers). */
cd_device_doubt cd_model_set_doubt(const cd_model *model, size_t at, const float *want,
                                   const float *has, bool own_times, bool other_kind);
/* Where a device of another kind stands for one, times are multiplied by this: seconds by the
 * roofline here over those there, of an operator with so many operations and bytes. here, there:
 * descriptions as vectors; a peak counts where both know it. 0: there is none. */
double cd_model_set_rooflines(const float *here, const float *there, double flop, double bytes);
/* Between kinds nine of ten operators are at most so many times off: of tasks of three GPUs for
 * which a CPU stood, each GPU counting the same, measured once (single-learner.md of c7debccd,
 * "Devices that a model never saw"). */
#define CD_MODEL_SET_BETWEEN_KINDS 10.0
/* For messages: by how many times nine of ten times may be shorter or longer, "4.9". spread:
 * standard deviation of ln(true / predicted). Gives `out`. */
enum { CD_MODEL_SET_TIMES_OFF = 16 };
const char *cd_model_set_times_off(double spread, char out[CD_MODEL_SET_TIMES_OFF]);
/* The description of device i of a model: the model's own, else that of the file. False: there is
 * none. */
bool cd_model_set_vector(const cd_model_set *m, const cd_model *model, size_t i,
                         float out[CD_N_DEVICE_COL]);
/* "float16", "bfloat16", "float32", "float64". */
const char *cd_model_set_type(cd_te_least_type t);
/* That a share of the time of a network is of a type that the model was not trained on, and how the
 * device's own peak of the type compares with that of float32, as which it answers. d NULL: not
 * described. products: a model of operators of language models answers the matrix products in
 * it. */
void cd_model_set_say_type(const cd_device *d, bool products, cd_te_least_type t,
                           const char *network, const char *device, double share, cd_log *log);
/* The same of 8-bit integers. */
void cd_model_set_say_int8(const cd_device *d, bool products, const char *network,
                           const char *device, double share, cd_log *log);
/* Cores that the times of a CPU are of, where its description says that they are fewer than all:
 * "one core", "4 cores"; NULL: all, or nobody says. */
enum { CD_MODEL_SET_CORES = 24 };
const char *cd_model_set_cores(const cd_device *d, char out[CD_MODEL_SET_CORES]);
/* File of a loaded model of the set; NULL: none of it, or `model` is NULL. */
CD_KEEP const char *cd_model_set_path(const cd_model_set *m, const cd_model *model);
/* cd_score_warn, and which file it is if nobody named one; once for each model; `model` NULL is
 * fine. Where a default one is corrected for this machine, and `device`, about which it is asked,
 * is another one: that each time. device NULL: nobody says; stands: who answers for it, NULL:
 * itself. */
void cd_model_set_warn(cd_model_set *m, const cd_model *model, const char *device,
                       const char *stands, cd_log *log);
/* False: model k of the set is the user's of a GPU, and its GPU is not here. The driver is asked
 * once, when that matters first: a question about a processor starts none. */
bool cd_model_set_uses(const cd_model_set *m, size_t k);
/* "k80, v100" of all that are used. */
void cd_model_set_list(const cd_model_set *m, cd_buf *out);
/* "; did you mean v100 or v100s?" of the names that models and descriptions have, those of models
 * first; nothing where none is near, or where the name is described. */
void cd_model_set_near(const cd_model_set *m, const char *name, cd_buf *out);
/* In the place of a device's name: this machine, as where no device is named. A device that is
 * called so by a model or a description keeps its name. */
#define CD_MODEL_SET_HERE "here"
bool cd_model_set_is_here(const cd_model_set *m, const char *name);
/* Whether a model or a description has a device of this name. */
bool cd_model_set_has(const cd_model_set *m, const char *name);
/* A line, or with json an object in a list, for each device of a model or of the descriptions:
 * name, kind ("-", null: not described), model that knows it ("-", null: another device stands for
 * it). Out of memory stays in out->oom. */
void cd_model_set_put_devices(const cd_model_set *m, bool json, cd_buf *out);
/* With the default model, or a single one that is corrected for this machine: the device that
 * stands for this machine, in *out, and a line of level INFO in the log: which model, which device
 * (log NULL: silent; a warning where a calibrated model is there and is not used); else *out NULL.
 * m->guessed: the machine is not in the model, and the caller warns (cd_model_set_say_stand_in).
 * Errors: those of cd_default_model_device. */
cdmpp_status cd_model_set_host(cd_model_set *m, cd_log *log, CD_KEEP const char **out,
                               cdmpp_err *err);
/* A device that no model knows, for a message. */
typedef struct cd_model_set_doubtful {
    const char *name, *stands;
    bool here, gpu; /* it is this machine's processor (GPU), not one that was named */
    bool described; /* false: it or what stands in has no description, and it may be further off
                       than `spread` says */
    double spread;  /* standard deviation of ln(true / predicted) that all its times share */
} cd_model_set_doubtful;
/* The one warning of such a device: who stands in, by how many times nine of ten times are off at
 * most, and for this machine what to do. */
void cd_model_set_say_stand_in(const cd_model_set *m, const cd_model_set_doubtful *d, cd_log *log);
/* The GPU of this machine that a model of the set is corrected for, by its back end (NULL: any);
 * NULL: none is. */
CD_KEEP const char *cd_model_set_gpu(const cd_model_set *m, const char *backend);
/* The same or, of the installed model of GPUs, the device that stands for the GPU of this machine
 * that this back end has, and a line in the log that says so. *out NULL: models were named, and
 * none is of it. Errors: EUSAGE (no such model, or no GPU is here, and what to do about it),
 * ENOMEM. */
cdmpp_status cd_model_set_gpu_host(cd_model_set *m, const char *backend, cd_log *log,
                                   CD_KEEP const char **out, cdmpp_err *err);
/* The same for a device that is the only one: guessed is false only where a description says that
 * it is this machine's processor. Errors: ENOMEM. */
cdmpp_status cd_model_set_is_host(cd_model_set *m, const char *device, cdmpp_err *err);
/* What the analytic times of a device that the model does not know are computed with: its own
 * description (not NULL). NULL: the model reads no facts, or the description says too little; then
 * those of the device that stands for it. */
CD_KEEP const cd_device_numbers *cd_model_set_numbers(const cd_model *m, const cd_device *about);
/* Who stands for a machine that a model is corrected for; NULL: it is none. */
CD_KEEP const char *cd_model_set_stands(const cd_model_set *m, const char *name);
/* Does the user's own file describe the device as the kind that the model knows it as? Errors:
 * ESCHEMA, it does not. */
cdmpp_status cd_model_set_check_kind(const cd_model_set *m, const cd_model *model, const char *name,
                                     cdmpp_err *err);
/* A machine that a model is corrected for, and nobody describes, is as the device that stands for
 * it. NULL: not described. */
CD_KEEP const cd_device *cd_model_set_device(const cd_model_set *m, const char *name);
/* A target of a processor that says nothing of its vectors gets those of the description, as the
 * usual one has them: else programs would be scored as if they had short ones. Others as they are;
 * d NULL: likewise. NULL: no memory. */
CD_KEEP const char *cd_usual_target_vectors(cd_arena *a, const char *target, const cd_device *d);
/* A target in the form of TenSet's records: features depend on its kind and on the hardware only,
 * so that the rest may be usual values. name: of the device, NULL: none; d: its description, NULL:
 * none; cores: of a program on a processor, 0: not said. NULL: no memory. */
CD_KEEP const char *cd_usual_target_make(cd_arena *a, const char *name, const cd_device *d,
                                         bool gpu, int cores);
/* The same of this machine's processor: with the instructions that are here, whoever's model stands
 * in and is called `name`. */
CD_KEEP const char *cd_usual_target_here(cd_arena *a, const char *name, int cores);

/* node_cost_bias -- how far off a model is for the fastest program of a task, as its training found
 * (learner/train/selection_bias.h).
 *
 *   header "best" ──> ratio of tasks that it was trained on, ratio of others, names of the former
 *
 * A model without such a header, or of too few tasks, says nothing: ratio 1, spread -1. Read-only
 * once read. */

typedef struct cd_node_cost_bias {
    /* [0] tasks that it does not know, [1] tasks that it was trained on */
    double ratio[2], spread[2];
    /* 0: the header does not say; else of a program whose slower ones are known: */
    double within[2];
    double among[2], among_spread[2];
    /* of a machine that the model is corrected for (learner/model/here.h); 0: not known */
    double picks;
    cd_trained_tasks tasks;
} cd_node_cost_bias;

/* device: whose figures are taken where the header has them apart; NULL, and for others: those of
 * all devices. Errors: ESCHEMA, ERANGE (the header), ENOMEM. Free after an error too. */
cdmpp_status cd_node_cost_bias_read(const cd_model *m, const char *device, cd_node_cost_bias *out,
                                    cdmpp_err *err);
void cd_node_cost_bias_free(cd_node_cost_bias *b);
/* The fastest of a task's records: its logarithm in the mean, given that the slower ones
 * (log_s[1..n), each of them `times` others) were predicted as they were, and it was predicted
 * log_s[0]. */
double cd_node_cost_bias_correct(const cd_node_cost_bias *b, bool known, const double *log_s,
                                 size_t n, double times);
/* Was the model trained on programs of this task on this device of its? */
bool cd_node_cost_bias_knows(const cd_node_cost_bias *b, const char *key, const char *device);

/* parallel_training -- what an iteration of training takes on many devices, from what it takes on
 * one.
 *
 *   data parallel    every device a slice of the batch; gradients summed by a ring: 2 (n-1)/n bytes
 *                    / bandwidth + 2 (n-1) latency,
 *                    in buckets that start one behind the other as soon as their last gradient is
 *                    there (overlap)
 *   pipeline         stages of consecutive nodes, m micro-batches. GPipe: all forward, then all
 *                    backward; each direction takes
 *                    sum of (stages, links) + (m - 1) of the slowest of them. 1F1B is as long where
 *                    stages and links are equal
 *                    and nothing is sent, and keeps min(m, n - i) micro-batches at stage i instead
 *                    of m
 *   tensor parallel  products and what stands between them cut in n; ring sums of the activations;
 *                    of library operators alone
 * An optimizer's steps (programs of the update phase) come once, behind it all: not hidden by
 * rings, not in every micro-batch.
 *
 *   device 0  |F0|F1|F2|         |B0|B1|B2|        device d  |forward |backward      |
 *   device 1     |F0|F1|F2|   |B0|B1|B2|           ring d                |sum 0|sum 1|
 *
 * Closed forms, and the same as a net for replay.h: the two are compared in tests. Sources: ring
 * allreduce, Patarasuk and Yuan 2009; GPipe 2019; PipeDream-flush (1F1B) 2021; Megatron-LM 2019. No
 * state, any thread. Seconds, bytes. */

typedef struct cd_parallel_link {
    double latency_s, bytes_per_s; /* each way, of one device to its neighbour */
} cd_parallel_link;

typedef struct cd_parallel_bucket {
    /* after the start of the iteration; not before the bucket in front of it */
    double ready_s;
    int64_t bytes;
} cd_parallel_bucket;

typedef struct cd_pipeline_stage {
    double forward_s, backward_s; /* of one micro-batch */
    int64_t bytes;                /* sent to the next stage, and as much back */
} cd_pipeline_stage;

typedef enum cd_parallel_schedule { CD_PARALLEL_GPIPE, CD_PARALLEL_1F1B } cd_parallel_schedule;

/* ---- closed forms; NaN: n < 1, bytes_per_s <= 0 ---- */

/* Sum of `bytes` over n devices in a ring; 0 for n = 1. */
double cd_parallel_training_ring_s(int64_t bytes, uint32_t n, cd_parallel_link link);
/* One iteration whose computing takes compute_s on each of n devices. */
double cd_parallel_training_data_s(double compute_s, const cd_parallel_bucket *b, uint32_t n_bucket,
                                   uint32_t n, cd_parallel_link link);
/* GPipe, any stages. */
double cd_parallel_training_pipeline_s(const cd_pipeline_stage *s, uint32_t n, uint32_t micro,
                                       cd_parallel_link link);
/* Micro-batches whose activations stage i keeps at once. */
uint32_t cd_parallel_training_kept(cd_parallel_schedule is, uint32_t stage, uint32_t n,
                                   uint32_t micro);

/* ---- the same as nets ---- */
typedef struct cd_parallel_net {
    cd_arena arena;
    cd_replay_net net;
} cd_parallel_net;

/* Devices 0 .. n-1 compute, n .. 2n-1 are their rings. Errors: ERANGE (numbers, too many devices),
 * ENOMEM. */
cdmpp_status cd_parallel_training_data_net(double compute_s, const cd_parallel_bucket *b,
                                           uint32_t n_bucket, uint32_t n, cd_parallel_link link,
                                           cd_parallel_net *out, cdmpp_err *err);
cdmpp_status cd_parallel_training_pipeline_net(const cd_pipeline_stage *s, uint32_t n,
                                               uint32_t micro, cd_parallel_schedule is,
                                               cd_parallel_link link, cd_parallel_net *out,
                                               cdmpp_err *err);
void cd_parallel_net_free(cd_parallel_net *c); /* zeroed is fine */

/* ---- a graph of training (backward and update nodes) on a cluster ---- */
typedef enum cd_parallel_kind {
    CD_PARALLEL_DATA,
    CD_PARALLEL_PIPELINE,
    CD_PARALLEL_TENSOR
} cd_parallel_kind;

typedef struct cd_parallel_plan {
    cd_parallel_kind is;
    uint32_t n;                    /* devices */
    uint32_t micro;                /* pipeline: micro-batches, the graph is of one of them */
    cd_parallel_schedule schedule; /* pipeline */
    int64_t bucket_bytes;          /* data */
    cd_parallel_link link;
} cd_parallel_plan;

typedef struct cd_parallel_result {
    double one_s;       /* the graph on one device, one after the other */
    double closed_s;    /* NaN: no closed form (1F1B of unequal stages) */
    double replay_s;    /* tensor: as closed_s */
    double sent_s;      /* of links, if nothing overlapped */
    int64_t sent_bytes; /* by each device */
    uint32_t kept;      /* pipeline: micro-batches that stage 0 keeps */
} cd_parallel_result;

/* "data:4", "pipeline:4x8" (stages x micro-batches), "pipeline-1f1b:4x8", "tensor:4". Buckets of 25
 * MiB. The link is left at zero. Errors: EUSAGE. */
cdmpp_status cd_parallel_plan_parse(const char *parallel, cd_parallel_plan *out, cdmpp_err *err);
/* Errors: ESCHEMA (a missing node: its name and why; data parallel without update nodes; tensor
 * parallel without norms of library operators), ERANGE, ENOMEM. */
cdmpp_status cd_parallel_training_of(const cd_network_graph *g, const cd_node_cost *c,
                                     const cd_parallel_plan *p, cd_parallel_result *out,
                                     cdmpp_err *err);

/* schedule_db_store -- schedules out of a store of measurements: of each task the device's fastest
 * record. One thread. */

/* key (n): sorted; what the database has already stays. Errors: those of cd_store_open, with the
 * path; ENOMEM. */
cdmpp_status cd_schedule_db_store_read(cd_schedule_db *to, const char *path, const char *device,
                                       const char *const *key, size_t n, cdmpp_err *err);
#endif
