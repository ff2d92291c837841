/* What the files of predictor/calibrate share: logs that are given in the place of measurements (calibrate_given.c). */
#ifndef CD_CALIBRATE_INTERNAL_H
#define CD_CALIBRATE_INTERNAL_H
#include "predictor/calibrate/calibrate.h"

enum { CD_CALIBRATE_NAME = 96 };
/* The device that all records of the logs name. Errors: EUSAGE (they name several), ENODATA, EIO, ENOMEM. */
cdmpp_status cd_calibrate_name_of(const char *const *path, size_t n, char name[CD_CALIBRATE_NAME], cdmpp_err *err);
/* The device of the model that is most like the one of this name, or itself. Errors: EMODEL (nobody describes it), ENOMEM. */
cdmpp_status cd_calibrate_stand_in(const cd_model *m, const cd_device_table *devices, const char *name, CD_KEEP const char **out, cdmpp_err *err);
#endif
