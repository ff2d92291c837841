/* default_model -- the cost model that the commands use where the user names none.
 *
 *   programs of processors    $CDMPP_DEFAULT_MODEL ──> here.cdmpp in the current folder, of this processor ──> the installed one      the first that there is
 *   programs of a GPU         here-gpu.cdmpp in the current folder, of a GPU that is here ──> the installed one of GPUs                          not with $CDMPP_DEFAULT_MODEL
 *
 * Who calibrates writes for which of both a file is ("backend" in its key "here"): under the wrong name it is not used. So is not one of another machine ("machine",
 * profiler/describe/describe_identity.h), one that does not say of which machine it is, and one that belongs to another user than this one and root. The commands say why.
 * `make quickstart`, `make install` and the Debian package leave the installed ones in models/ beside the programs or in
 * PREFIX/share/cdmpp/models. They are trained from the records that this project carries (configs/default.yaml, default-gpu.yaml). */
#ifndef CD_DEFAULT_MODEL_H
#define CD_DEFAULT_MODEL_H
#include "base/core/core.h"
#include "features/device/device.h"
#include "profiler/describe/describe.h"

/* Name and version: the version grows when the recipe or the carried records change. */
#define CD_DEFAULT_MODEL     "cdmpp-default-6.cdmpp"
#define CD_DEFAULT_MODEL_GPU "cdmpp-default-gpu-3.cdmpp" /* of programs of GPUs */

#define CD_DEFAULT_MODEL_HERE                                                                      \
    "here.cdmpp" /* of cdmpp-tune calibrate: corrected for a machine (learner/model/here.h) */
#define CD_DEFAULT_MODEL_HERE_GPU "here-gpu.cdmpp" /* the same of a GPU */

struct cd_log;

/* Its path, in `a`; NULL: it is not installed, or out of memory. $CDMPP_DEFAULT_MODEL names another file; empty: none. */
CD_KEEP const char *cd_default_model_path(cd_arena *a);
/* The same without here.cdmpp: what a machine is calibrated from. */
CD_KEEP const char *cd_default_model_plain(cd_arena *a);
/* here-gpu.cdmpp in `a`, where it is of this GPU of this machine (as its back end counts it, "": the first; NULL: any) and of this back end ("cuda", "opencl"; NULL: any). NULL: there is none, or out of memory. The driver is asked in
 * a process of its own. */
CD_KEEP const char *cd_default_model_gpu(cd_arena *a, const char *backend, const char *gpu);
/* here-gpu.cdmpp in `a`, where it is of some GPU, here or not: no driver is asked. NULL: there is none, or out of memory. */
CD_KEEP const char *cd_default_model_gpu_file(cd_arena *a);
/* Why cd_default_model_gpu gives none although the file is there: "here-gpu.cdmpp is of another GPU (...) and is not used"; "" where it is not there. Returns `out`. */
enum { CD_DEFAULT_MODEL_SAID = 800 };
const char *cd_default_model_gpu_why(const char *backend, const char *gpu,
                                     char out[CD_DEFAULT_MODEL_SAID]);
/* The installed one of GPUs, in `a`; NULL: it is not installed, $CDMPP_DEFAULT_MODEL names another model or none, or out of memory. */
CD_KEEP const char *cd_default_model_gpu_plain(cd_arena *a);
/* Is this file that one, by its name? */
bool cd_default_model_is_gpu_plain(const char *path);
/* cd_default_model_gpu, else cd_default_model_gpu_plain. */
CD_KEEP const char *cd_default_model_for_gpu(cd_arena *a, const char *backend, const char *gpu);
/* EUSAGE: there is no model for programs of this back end's GPU, and what to do about it. */
cdmpp_status cd_default_model_gpu_missing(const char *backend, cdmpp_err *err);
/* Is the file a model that is corrected for this machine, or a GPU of it? Who names such a one, and no device, asks about this machine. */
bool cd_default_model_is_here(const char *path);
/* What to say of the model that cd_default_model_path gave: "the default one", "corrected by 120 programs measured on this machine", "... on this machine's GPU (NVIDIA A100)"; also why a
 * here.cdmpp is not used. Returns `out`. */
const char *cd_default_model_what(const char *model_path, char out[CD_DEFAULT_MODEL_SAID]);
/* EUSAGE: there is no cost model, and what to do about it. */
cdmpp_status cd_default_model_missing(cdmpp_err *err);

/* The device among name[0 .. n) that stands for this machine's processor, in *out (borrowed from `name`), and one line
 * of warning level in the log: which model answers, for which device, whether the device was recognised or is only the
 * nearest one. here->exact false: predictions are out of range. Of a model that is corrected for this machine it is the device of that
 * name, and here->exact; so it is of a GPU of this machine. log NULL: silent.
 * Errors: EMODEL (no described CPU among them), EBACKEND (this machine cannot be described), ENOMEM. */
cdmpp_status cd_default_model_device(const char *model_path, const cd_device_table *devices,
                                     const char *const *name, size_t n, struct cd_log *log,
                                     CD_KEEP const char **out, cd_describe_match *here,
                                     cdmpp_err *err);
/* The same of a model of GPUs that is not corrected, and the GPU of this machine that this back end has (as it counts it, "": the first). The driver is asked in a process of its own.
 * Errors: EMODEL (it is no GPU; no described GPU among them), EBACKEND (there is none), EIO, ENOMEM. */
cdmpp_status cd_default_model_gpu_device(const char *model_path, const char *backend,
                                         const char *gpu, const cd_device_table *devices,
                                         const char *const *name, size_t n, struct cd_log *log,
                                         CD_KEEP const char **out, cd_describe_match *here,
                                         cdmpp_err *err);
/* Both for a loaded model, with the installed descriptions; *out lives with `m`. Errors: also those of
 * cd_device_table_load. */
struct cd_model;
cdmpp_status cd_default_model_gpu_host(const char *model_path, const struct cd_model *m,
                                       const char *backend, const char *gpu, struct cd_log *log,
                                       CD_KEEP const char **out, cdmpp_err *err);
cdmpp_status cd_default_model_host(const char *model_path, const struct cd_model *m,
                                   struct cd_log *log, CD_KEEP const char **out, cdmpp_err *err);
#endif
