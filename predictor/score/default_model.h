/* default_model -- the cost model that the commands use where the user names none.
 *
 *   programs of processors   $CDMPP_DEFAULT_MODEL ──> the user's, of this processor
 *                            ──> the shipped one
 *   programs of a GPU        the user's, of a GPU that is here ──> the shipped one of GPUs
 *
 * Of a row the first that there is counts. The row of GPUs is not used with $CDMPP_DEFAULT_MODEL.
 *
 * The user's models are those that cdmpp-tune calibrate wrote into the user's folder
 * (user_model.h): one of another machine, one that does not say of which machine it is, and one
 * that belongs to another user than this one and root are not used, and the commands say why. The
 * shipped ones lie in models/ of the project, in PREFIX/share/cdmpp/models where it is installed;
 * `make model` trains them again (models/README.md). */
#ifndef CD_DEFAULT_MODEL_H
#define CD_DEFAULT_MODEL_H
#include "base/core/core.h"
#include "features/device/device.h"
#include "profiler/describe/describe.h"

/* Files of models/. */
#define CD_DEFAULT_MODEL     "cpu.cdmpp"
#define CD_DEFAULT_MODEL_GPU "gpu.cdmpp" /* of programs of GPUs */
#define CD_DEFAULT_MODEL_LLM "llm.cdmpp" /* of operators of language models */

struct cd_log;

/* Its path, in `a`; NULL: it is not installed, or out of memory. $CDMPP_DEFAULT_MODEL names another
 * file; empty: none. */
CD_KEEP const char *cd_default_model_path(cd_arena *a);
/* The same without the user's models: what a machine is calibrated from. */
CD_KEEP const char *cd_default_model_plain(cd_arena *a);
/* The user's model in `a`, where it is of this GPU of this machine (as its back end counts it, "":
 * the first; NULL: any) and of this back end ("cuda", "opencl"; NULL: any). NULL: there is none, or
 * out of memory. The driver is asked in a process of its own. */
CD_KEEP const char *cd_default_model_gpu(cd_arena *a, const char *backend, const char *gpu);
/* The user's model of a GPU, here or not, in `a`: no driver is asked where there is one alone, of
 * several only one that is of a GPU that is here. NULL: there is none, or out of memory. */
CD_KEEP const char *cd_default_model_gpu_file(cd_arena *a);
/* Why cd_default_model_gpu gives none although a file is there: "FILE is of another GPU (...) and
 * is not used"; "" where none is there. Returns `out`. */
enum { CD_DEFAULT_MODEL_SAID = 800 };
const char *cd_default_model_gpu_why(const char *backend, const char *gpu,
                                     char out[CD_DEFAULT_MODEL_SAID]);
/* The shipped one of operators of language models, in `a`; NULL: it is not there,
 * $CDMPP_DEFAULT_MODEL names another model or none, or out of memory. */
CD_KEEP const char *cd_default_model_llm(cd_arena *a);
/* The installed one of GPUs, in `a`; NULL: it is not installed, $CDMPP_DEFAULT_MODEL names another
 * model or none, or out of memory. */
CD_KEEP const char *cd_default_model_gpu_plain(cd_arena *a);
/* Is this file that one, by its name? */
bool cd_default_model_is_gpu_plain(const char *path);
/* cd_default_model_gpu, else cd_default_model_gpu_plain. */
CD_KEEP const char *cd_default_model_for_gpu(cd_arena *a, const char *backend, const char *gpu);
/* EUSAGE: there is no model for programs of this back end's GPU, and what to do about it. */
cdmpp_status cd_default_model_gpu_missing(const char *backend, cdmpp_err *err);
/* Is it a file of the user's folder, by its path? */
bool cd_default_model_is_user(const char *path);
/* Is the file a model that is corrected for this machine, or a GPU of it? Who names such a one, and
 * no device, asks about this machine. */
bool cd_default_model_is_here(const char *path);
/* What to say of the model that cd_default_model_path gave: "the default one", "corrected by 120
 * programs measured on this machine", "... on this machine's GPU (NVIDIA A100)"; also why a model
 * of the user is not used. Returns `out`. */
const char *cd_default_model_what(const char *model_path, char out[CD_DEFAULT_MODEL_SAID]);
/* EUSAGE: there is no cost model, and what to do about it. */
cdmpp_status cd_default_model_missing(cdmpp_err *err);

/* The device among name[0 .. n) that stands for this machine's processor, in *out (borrowed from
 * `name`), and one line of warning level in the log: which model answers, for which device, whether
 * the device was recognised or is only the nearest one. here->exact false: predictions are out of
 * range. Of a model that is corrected for this machine it is the device of that name, and
 * here->exact; so it is of a GPU of this machine. log NULL: silent. Errors: EMODEL (no described
 * CPU among them), EBACKEND (this machine cannot be described), ENOMEM. */
cdmpp_status cd_default_model_device(const char *model_path, const cd_device_table *devices,
                                     const char *const *name, size_t n, struct cd_log *log,
                                     CD_KEEP const char **out, cd_describe_match *here,
                                     cdmpp_err *err);
/* The same of a model of GPUs that is not corrected, and the GPU of this machine that this back end
 * has (as it counts it, "": the first). The driver is asked in a process of its own. Errors: EMODEL
 * (it is no GPU; no described GPU among them), EBACKEND (there is none), EIO, ENOMEM. */
cdmpp_status cd_default_model_gpu_device(const char *model_path, const char *backend,
                                         const char *gpu, const cd_device_table *devices,
                                         const char *const *name, size_t n, struct cd_log *log,
                                         CD_KEEP const char **out, cd_describe_match *here,
                                         cdmpp_err *err);
/* Both for a loaded model, with the installed descriptions; *out lives with `m`. Errors: also those
 * of cd_device_table_load. */
struct cd_model;
cdmpp_status cd_default_model_gpu_host(const char *model_path, const struct cd_model *m,
                                       const char *backend, const char *gpu, struct cd_log *log,
                                       CD_KEEP const char **out, cdmpp_err *err);
cdmpp_status cd_default_model_host(const char *model_path, const struct cd_model *m,
                                   struct cd_log *log, CD_KEEP const char **out, cdmpp_err *err);
#endif
