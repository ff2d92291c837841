/* user_model -- models that `cdmpp-tune calibrate` wrote for machines of this user.
 *
 *   $XDG_DATA_HOME/cdmpp/models (~/.local/share/cdmpp/models)
 *     cpu-amd-epyc-9354-1a2b3c4d.cdmpp     of a processor
 *     cuda-nvidia-a100-0f1e2d3c.cdmpp      of a GPU, by its back end
 *
 * One file a machine and kind, so a home folder that several machines share holds all of them.
 * Names only sort files: the machine that a file belongs to stands in its header ("machine",
 * "backend" in key "here") and is compared with this one (profiler/describe/describe_identity.h).
 * Not used, and why: a file of another machine, of another user than this one and root, without a
 * machine (an earlier version wrote it), of other feature columns or another form, or damaged. Any
 * thread; the environment is read at each call. */
#ifndef CD_USER_MODEL_H
#define CD_USER_MODEL_H
#include "base/core/core.h"
#include "base/text/text.h"
#include "profiler/describe/describe.h"

/* Where the model of this processor (backend NULL) or of a GPU is written: over the file of that
 * machine where there is one, else under a new name. The folder is made. Errors: EUSAGE (no folder:
 * --out names a file), EIO, ENOMEM. */
cdmpp_status cd_user_model_path(cd_arena *a, const char *backend,
                                const cd_describe_identity *machine, CD_KEEP const char **out,
                                cdmpp_err *err);

typedef struct cd_user_model {
    const char *path;
    const cd_json *here; /* of its header; NULL: damaged, or no model that calibrate wrote */
    bool fits;           /* of a form and of feature columns that this program reads */
} cd_user_model;

/* ---- of one file, wherever it lies ---- */
enum { CD_USER_MODEL_WHY = 800 };
#endif
