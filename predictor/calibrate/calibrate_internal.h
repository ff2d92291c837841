/* What the files of predictor/calibrate share: the machine (calibrate_machine.c), and logs that are given in the place of measurements (calibrate_given.c). */
#ifndef CD_CALIBRATE_INTERNAL_H
#define CD_CALIBRATE_INTERNAL_H
#include <string.h>

#include "predictor/calibrate/calibrate.h"

/* Which facts the programs of a target have. */
static inline cd_facts_set cd_calibrate_facts_set(const char *target) {
    return target && cd_target_is_gpu((cd_str){target, strlen(target)}) ? CD_FACTS_OF_GPU : CD_FACTS_OF_CPU;
}

/* ---- what is measured on ---- */
typedef struct cd_calibrate_machine {
    const char *stands;         /* in: a device of the model, or NULL: the one that is most like the machine is found */
    cd_describe_name name;
    cd_describe_identity identity; /* of this machine; of another one, nobody's: what was not measured here is not used unasked here */
    cd_describe_entry entry;    /* of the machine */
    cd_describe_entry code;     /* of the machine with the vectors of the code */
    const cd_device *numbers;   /* what the costs of candidates are computed with */
    const cd_device *own;       /* what its analytic times are computed with; NULL: nobody knows them, or the model knows the machine */
} cd_calibrate_machine;

/* This machine's processor or a GPU of it, by o->target. Errors: EMODEL (no device of the model can stand for it; nobody describes what is needed), EUSAGE (-model= of the target is another
 * device's name), EBACKEND (no such GPU, no compiler for it), ENOMEM. */
cdmpp_status cd_calibrate_machine_find(const cd_calibrate_options *o, const cd_model *m, const cd_device_table *devices, cd_calibrate_machine *io, cdmpp_err *err);
/* A board, by what it says of itself and the file of descriptions. Errors: EUSAGE (it has no name), EMODEL, ENOMEM. */
cdmpp_status cd_calibrate_board_find(const cd_calibrate_options *o, const cd_model *m, const cd_device_table *devices, cd_calibrate_machine *io, cdmpp_err *err);
/* Are there numbers enough for the analytic time of a program? */
bool cd_calibrate_machine_says_enough(cd_facts_set set, const cd_device *d);
/* A model of which a device can stand for a GPU; `stands`, where it is not NULL. Errors: EMODEL (it knows none; `stands` is a processor). */
cdmpp_status cd_calibrate_needs_gpus(const cd_calibrate_options *o, const cd_model *m, const char *stands, cdmpp_err *err);
/* Is -model= of a target a name for the device that calls itself `name` (says: in its own words)? n == 0: nothing is said. Errors: EUSAGE, it is another described device's. */
cdmpp_status cd_calibrate_machine_is(cd_str said, const cd_device_table *devices, const char *name, const char *says, cdmpp_err *err);
/* m->own of a machine whose name is known; measured NULL: its description is that of its name. */
void cd_calibrate_machine_own(const cd_model *m, const cd_device_table *devices, const cd_device *measured, cd_calibrate_machine *io);

/* ---- what it is made of ---- */
/* Adds to *marks, the text of a signature, what the program of a scored record has and its device of the model lacks. `a`: for the while. Errors: ENOMEM. */
cdmpp_status cd_calibrate_note_marks(const cd_model *m, const cd_scored *s, const cd_record *r, cd_arena *a, cd_buf *marks, cdmpp_err *err);

/* ---- logs of another device ---- */
enum { CD_CALIBRATE_NAME = 96 };
/* The device that all records of the logs name. Errors: EUSAGE (they name several), ENODATA, EIO, ENOMEM. */
cdmpp_status cd_calibrate_name_of(const char *const *path, size_t n, char name[CD_CALIBRATE_NAME], cdmpp_err *err);
/* The device of the model that is most like the one of this name, or itself. Errors: EMODEL (nobody describes it), ENOMEM. */
cdmpp_status cd_calibrate_stand_in(const cd_model *m, const cd_device_table *devices, const char *name, CD_KEEP const char **out, cdmpp_err *err);
/* Is the log that grows (where there is one) of this back end's programs, and of this GPU? gpu NULL: it is a processor, whose name is not asked for. Errors: EUSAGE (it is not), EIO, ENOMEM. */
cdmpp_status cd_calibrate_log_check(const char *path, const char *target, const char *gpu, cdmpp_err *err);
#endif
