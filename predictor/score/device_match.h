/* device_match -- the device of the model that answers for a candidate.
 *
 *   its own name -----------+
 *   fixed name (--device) --+    known to the model, by this name or by
 *   -model= of the target --+--> another one of its description? -- yes --> its number
 *   folder of the file -----+      | no
 *                                  +--> nearest allowed: the most similar of the same kind, marked
 *                                  +--> else EMODEL, saying which there are
 *
 * A folder's name is a device's only where the model or a description knows it: of others the error
 * says what is missing.
 * (1) Never silently another device. (2) A model of a single device takes candidates that do
 * not say theirs, and marks them: a folder's name proves nothing. (3) GPU programs are for GPUs:
 * the kinds of target and device must agree.
 * (4) Similar: least mean squared difference of the columns of the device vectors
 * (features/device/device.h) that both know; ties go to the first device of the model.
 * One thread; after a name was seen once, asking again touches no heap. */
#ifndef CD_DEVICE_MATCH_H
#define CD_DEVICE_MATCH_H
#include "features/device/device.h"
#include "learner/model/model.h"

typedef struct cd_device_match cd_device_match;

typedef struct cd_device_match_options {
    const char *device; /* of every candidate; NULL: each its own */
    bool nearest;
    /* other names of devices, and for nearest; borrowed. NULL: exact names, and only a model of one
     * device finds the nearest */
    const cd_device_table *devices;
} cd_device_match_options;

typedef struct cd_device_pick {
    uint32_t device;      /* number in the model */
    const char *name;     /* as it was asked for; lives with the cd_device_match */
    bool unknown;         /* the model does not know that name */
    const cd_device *own; /* its own description, of one that is unknown and described; else NULL */
    cd_device_doubt doubt; /* of an unknown one: what it adds that another device answers */
    bool assumed;          /* nothing says the device: it is the only one of the model */
} cd_device_pick;

/* The device of the model by its name, else by another name of its description
 * (configs/devices.yaml: aliases). -1: the model does not know it. devices NULL: exact names
 * alone. */
int cd_device_match_find(const cd_model *m, const cd_device_table *devices, const char *name);

/* Errors: EMODEL (fixed name), ENOMEM. */
cdmpp_status cd_device_match_new(CD_KEEP const cd_model *m, const cd_device_match_options *o,
                                 CD_GIVE cd_device_match **out, cdmpp_err *err);
void cd_device_match_free(CD_TAKE cd_device_match *w); /* NULL is fine */
/* `target`: target string, n == 0 when there is none; `source`: file, "" if none. Errors: EMODEL,
 * ENOMEM. */
cdmpp_status cd_device_match_pick(cd_device_match *w, cd_str target, const char *source,
                                  cd_device_pick *out, cdmpp_err *err);
/* The same of a candidate that says its device; name.n == 0: it does not. */
cdmpp_status cd_device_match_named(cd_device_match *w, cd_str name, cd_str target,
                                   cd_device_pick *out, cdmpp_err *err);
/* The fixed one; NULL: there is none. */
CD_KEEP const cd_device_pick *cd_device_match_fixed(const cd_device_match *w);
#endif
