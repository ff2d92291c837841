/* kinds -- what of a candidate's task and device the model was not trained on.
 *
 *   task, target, hardware, device ──> signature ──> trained_on of the model ──> reasons
 *
 * A search asks for thousands of programs of one task: its reasons are kept. One thread; after the
 * longest definition was seen, nothing asks the heap. */
#ifndef CD_KINDS_INTERNAL_H
#define CD_KINDS_INTERNAL_H
#include "learner/model/model.h"
#include "predictor/score/device_match.h"

typedef struct cd_kinds cd_kinds;

/* stranger: all that are asked about are of another device than the one of the model that they name
 * (a stand-in). Errors: ENOMEM. */
cdmpp_status cd_kinds_new(CD_KEEP const cd_model *m, bool stranger, CD_GIVE cd_kinds **out,
                          cdmpp_err *err);
void cd_kinds_free(CD_TAKE cd_kinds *k); /* NULL is fine */
/* t, or its definition, NULL: only the device counts. hardware NULL: not known. Errors: ENOMEM. */
cdmpp_status cd_kinds_check(cd_kinds *k, const cd_task *t, cd_str target,
                            const cd_hardware *hardware, const cd_device_pick *which,
                            cd_unlike *out, cdmpp_err *err);
#endif
