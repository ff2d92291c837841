/* here -- a model that programs measured on one machine have corrected. learner/model/model.h includes it.
 *
 *   model file + measured programs of a machine ──cd_here_add──> the same file, with key "here" in its header, version 4
 *
 *   "here": {"device", "name", "cpu", "programs", "widen", "adapt": {..}, ...}       docs/reference/calibrate.md
 *
 *   (1) one device of the model stands for the machine: its answers, and those for the machine's own name, are corrected. All others
 *       stay as they were;
 *   (2) the correction is that of online_adapt; the ends of an interval then move away from the median by a factor `widen` (on the
 *       logarithm), which was found on programs that the correction had not seen;
 *   (3) the members and their weights are the bytes of the model that was corrected. The small model for schedule search is not corrected.
 * Immutable once read: any thread, no heap. */
#ifndef CD_HERE_H
#define CD_HERE_H
#include "learner/model/model.h"

#define CD_HERE_ADAPTED "here" /* what the device of the correction is called */

typedef struct cd_here {
    uint32_t device;            /* of the model */
    const char *name, *cpu;     /* what records call the machine; what its processor says */
    uint32_t programs;          /* that the correction is made of */
    double widen;               /* above 0 */
    cd_online_adapt *adapt;     /* of one device CD_HERE_ADAPTED; NULL: this part of the model is not corrected */
} cd_here;

/* NULL: it is not corrected. */
CD_KEEP const cd_here *cd_model_here(const cd_model *m);

/* Corrects *p, a prediction for the device of the model. False: it is of another device. */
bool cd_here_apply(const cd_here *h, uint32_t device, const char *task, const float trait[CD_N_TRAIT], cd_model_prediction *p);
/* How many times as far as its end of the interval the measured time lies from the median: 1 at the end. */
double cd_here_beyond(const cd_model_prediction *p, double measured_s);

/* The (n) bytes of a model file with the correction. `more`: further members of "here", `"a":1,"b":2`, "" for none. Errors: EUSAGE (it is
 * corrected already), EMODEL (no such device), those of cd_model_load. */
cdmpp_status cd_here_add(const void *file, size_t n, const cd_here *h, const char *more, cd_buf *out, cdmpp_err *err);
/* What a file's header says in its key "here", without its members and unchecked: to be told before the model is loaded. *out NULL: it has none, or it
 * is no model. Texts live in `a`. */
void cd_here_look(const char *path, cd_arena *a, CD_KEEP const cd_json **out);

/* For model_file.c and model.c: key "here" of the header into m->here. */
cdmpp_status cd_here_read(cd_model *m, const cd_json *root, cdmpp_err *err);
#endif
