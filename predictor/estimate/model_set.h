/* model_set -- cost models of a command, and which of them answers for a device.
 *
 *   paths, $CDMPP_MODELS ──> headers ── device ──> the first that knows it, loaded when it is first asked for
 *
 *   (1) models are asked in the order they are given, then those in the folders of $CDMPP_MODELS, by name;
 *   (2) descriptions of devices are a help: without a file of them models still answer for the devices they know.
 * One thread. */
#ifndef CD_MODEL_SET_H
#define CD_MODEL_SET_H
#include "base/cli/cli.h"
#include "features/device/device.h"
#include "learner/model/model.h"
#include "learner/operators/operators.h"
#include "predictor/estimate/network_cost.h"

typedef struct cd_model_set_entry {
    const char *path;
    bool operators;             /* a model of library operators */
    const char **device;        /* (n_device) that it was trained on */
    size_t n_device;
    cd_model *tasks;            /* loaded when first asked for */
    bool warned;                /* cd_model_set_warn */
    cd_library_op_model *ops;
} cd_model_set_entry;

typedef struct cd_model_set {
    cd_arena arena;
    cd_model_set_entry *v;         /* (n) in the order they are asked */
    size_t n, cap;
    const char *default_path;   /* the default model, where it is the only one; NULL: models were named */
    cd_device_table *devices;        /* descriptions; NULL: there is no file of them */
    cd_device_table *usual;          /* those that everybody has, where others were named: of the devices of models; NULL: none */
    cd_network_cost *costs;          /* fits of what networks cost; NULL: there is no file of them */
} cd_model_set;

typedef struct cd_model_set_options {
    const cd_texts *model;      /* models, all of them */
    const cd_texts *mixed;      /* of these what begins as a model does; NULL: none */
    bool use_default;           /* without any model: the default one (predictor/score/default_model.h), where it is installed */
    const char *devices;        /* descriptions; NULL: where they usually are */
    void (*lines)(void *ctx, const char *text); /* what is wrong with the descriptions, line by line; NULL: nobody listens */
    void *ctx;
} cd_model_set_options;

/* Whether the file begins as a model does. */
bool cd_model_set_is_model(const char *path);
/* Errors: EIO, EPARSE, ESCHEMA, with the path; those of cd_device_table_load; ENOMEM. Free after an error too. */
cdmpp_status cd_model_set_open(const cd_model_set_options *a, cd_model_set *m, cdmpp_err *err);
void cd_model_set_free(cd_model_set *m); /* zeroed is fine */
/* The first model of tasks (of operators) that knows the device, loaded; *out NULL: none. nearest: else the first of its kind. */
cdmpp_status cd_model_set_tasks(cd_model_set *m, const char *device, bool nearest, CD_KEEP const cd_model **out, cdmpp_err *err);
cdmpp_status cd_model_set_ops(cd_model_set *m, const char *device, CD_KEEP const cd_library_op_model **out, cdmpp_err *err);
/* For a device that none knows: the model of tasks with the most similar device of the same kind, by description; *stands: that device,
 * as the model calls it. *out NULL: nobody describes the device, or no model has a described one of its kind. */
cdmpp_status cd_model_set_stand_in(cd_model_set *m, const char *device, CD_KEEP const cd_model **out, CD_KEEP const char **stands, cdmpp_err *err);
/* The description of device i of a model: the model's own, else that of the file, else the usual one. False: there is none. */
bool cd_model_set_vector(const cd_model_set *m, const cd_model *model, size_t i, float out[CD_N_DEVICE_COL]);
/* cd_scorer_warn, once for each model; `model` NULL is fine. */
void cd_model_set_warn(cd_model_set *m, const cd_model *model, cd_log *log);
/* "k80, v100" of all. */
void cd_model_set_list(const cd_model_set *m, cd_buf *out);
/* With the default model: the device that stands for this machine, in *out, and a line in the log that says so (log NULL:
 * silent); else *out NULL. Errors: those of cd_default_model_device. */
cdmpp_status cd_model_set_host(const cd_model_set *m, cd_log *log, CD_KEEP const char **out, cdmpp_err *err);
CD_KEEP const cd_device *cd_model_set_device(const cd_model_set *m, const char *name); /* NULL: not described */
#endif
