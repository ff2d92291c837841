/* What the files of predictor/calibrate share: the machine (calibrate_machine.c), and logs that are
 * given in the place of measurements (calibrate.c). */
#ifndef CD_CALIBRATE_INTERNAL_H
#define CD_CALIBRATE_INTERNAL_H
#include <string.h>

#include "predictor/calibrate/calibrate.h"

/* Which facts the programs of a target have. */
static inline cd_facts_set cd_calibrate_facts_set(const char *target) {
    return target && cd_target_is_gpu((cd_str){target, strlen(target)}) ? CD_FACTS_OF_GPU
                                                                        : CD_FACTS_OF_CPU;
}

/* ---- what is measured on ---- */
typedef struct cd_calibrate_machine {
    /* in: a device of the model, or NULL: the one that is most like the machine is found */
    const char *stands;
    cd_describe_name name;
    /* of this machine; of another one, nobody's: what was not measured here is not used unasked
     * here */
    cd_describe_identity identity;
    cd_describe_entry entry;  /* of the machine */
    cd_describe_entry code;   /* of the machine with the vectors of the code */
    const cd_device *numbers; /* what the costs of candidates are computed with */
    /* what its analytic times are computed with; NULL: nobody knows them, or the model knows the
     * machine */
    const cd_device *own;
} cd_calibrate_machine;

/* This machine's processor or a GPU of it, by o->target. Errors: EMODEL (no device of the model can
 * stand for it; nobody describes what is needed), EUSAGE (-model= of the target is another device's
 * name), EBACKEND (no such GPU, no compiler for it), ENOMEM. */
cdmpp_status cd_calibrate_machine_find(const cd_calibrate_options *o, const cd_model *m,
                                       const cd_device_table *devices, cd_calibrate_machine *io,
                                       cdmpp_err *err);
/* A model of which a device can stand for a GPU; `stands`, where it is not NULL. Errors: EMODEL (it
 * knows none; `stands` is a processor). */
cdmpp_status cd_calibrate_needs_gpus(const cd_calibrate_options *o, const cd_model *m,
                                     const char *stands, cdmpp_err *err);
/* m->own of a machine whose name is known; measured NULL: its description is that of its name. */
void cd_calibrate_machine_own(const cd_model *m, const cd_device_table *devices,
                              const cd_device *measured, cd_calibrate_machine *io);

/* ---- what it is made of ----
 *
 *   programs of the log ─ five parts, of whole tasks ─> trees without each part (calibrate_fit.c)
 *                                                       ─> the programs of the part as the written
 *                                                          model would answer
 *
 * That is the members' answer for the device that stands for the machine, moved by trees, and
 * marked as unlike (cd_model_mark_unlike) by what the other parts lack, too. */
typedef struct cd_calibrate_point {
    cd_record_id id;
    const char *key;                /* of the task */
    cd_model_prediction pred;       /* of the members alone */
    bool compared;                  /* its task is defined */
    uint32_t before;                /* CD_UNLIKE_* of the device that stands for the machine */
    cd_signature is;                /* what its kind has; n 0: not known */
    const float *x;                 /* (width) what the trees of a correction see of it */
    double measured_log, again_log; /* NaN: measured once */
    uint32_t part;                  /* below CD_CALIBRATE_PARTS */
    double common, own; /* ln: what trees without its part say of it: bias, and beyond */
    uint32_t reason;    /* CD_UNLIKE_* of the machine, as the other parts know it */
} cd_calibrate_point;

typedef struct cd_calibrate_points {
    cd_calibrate_point *v; /* (n) */
    size_t n, cap, width;
    const cd_model *m;
    /* of the model: who stands for it; the machine, cd_model_n_device: it does not know its name */
    uint32_t stands, machine;
    cd_calibrate_result *out;
    double *work; /* (n) */
} cd_calibrate_points;
/* Two times of a program on a quiet machine differ by a smaller factor. */
#define CD_CALIBRATE_APART 1.5
/* What one more draw is not above in CD_CALIBRATE_LEVEL of all cases; the largest of v where n are
 * too few for that, 1 where there are none. Sorts v. */
double cd_calibrate_bound(double *v, size_t n);

/* ---- logs of another device ---- */
enum { CD_CALIBRATE_NAME = 96 };
/* The device of the model that is most like the one of this name, or itself. Errors: EMODEL (nobody
 * describes it), ENOMEM. */
cdmpp_status cd_calibrate_stand_in(const cd_model *m, const cd_device_table *devices,
                                   const char *name, CD_KEEP const char **out, cdmpp_err *err);
#endif
