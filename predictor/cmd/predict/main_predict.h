/* What the files of cdmpp-predict share. */
#ifndef CD_MAIN_PREDICT_H
#define CD_MAIN_PREDICT_H
#include <signal.h>

#include "base/cli/cli.h"
#include "features/device/device.h"
#include "learner/model/model.h"
#include "predictor/serve/serve.h"

/* An error that says why --eval has no figures. */
cdmpp_status cd_predict_no_figures(size_t rows, size_t scored, cdmpp_err *err);
/* Descriptions of devices from a file, NULL: from where they are looked for. */
cdmpp_status cd_predict_devices(const char *file, cd_log *log, CD_GIVE cd_device_table **out,
                                cdmpp_err *err);

/* What says of which kind the default model is asked: the device, else the record of --explain,
 * else the first one of the first input. */
typedef struct cd_predict_asked {
    const char *device, *devices, *explain;
    const cd_texts *input;
} cd_predict_asked;

/* Options of the command that count for operators of language models. */
typedef struct cd_predict_llm {
    const char *model, *device, *devices;
    const cd_texts *measured, *input;
    bool eval, json, strict, info, scales, stream, verbose; /* scales: --from was given */
    cd_log *log;
    const volatile sig_atomic_t *stop;
} cd_predict_llm;
/* *is: the file is a model of operators of language models, and has been used; *bad: rows that
 * could not be read or answered. */
cdmpp_status cd_predict_llm_operators(const cd_predict_llm *o, bool *is, size_t *bad,
                                      cdmpp_err *err);
/* --info without --operators: prints what a model of operators is, of either kind. *is false: it is
 * another file, or damaged. */
cdmpp_status cd_predict_operators_info(const char *path, bool json, bool *is, cdmpp_err *err);
/* Prints what the model of this file and header is, in ten lines; json: the header. Errors: EIO,
 * ENOMEM. */
cdmpp_status cd_predict_info(const char *path, const char *header, bool json, cdmpp_err *err);
#endif
