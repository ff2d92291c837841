/* The default cost model. A newcomer with an ONNX file has no model yet; refusing to answer helps nobody, and answering
 * without saying which model and which device would be silently wrong. So it answers and says both. */
#include "predictor/score/default_model.h"

#include <stdlib.h>

#include "base/cli/cli.h"
#include "base/io/io.h"
#include "learner/model/model.h"

const char *cd_default_model_path(cd_arena *a) {
    const char *own = getenv("CDMPP_DEFAULT_MODEL");
    if (own) return *own ? own : NULL;
    return cd_data_path_find(a, "models/" CD_DEFAULT_MODEL);
}

cdmpp_status cd_default_model_missing(cdmpp_err *err) {
    return CD_FAIL(err, EUSAGE, "there is no cost model: --cost-model FILE names one; `make model` or an installation brings a default one");
}

cdmpp_status cd_default_model_device(const char *model_path, const cd_device_table *devices, const char *const *name, size_t n,
                                     struct cd_log *log, const char **out, cd_describe_match *here, cdmpp_err *err) {
    CD_TRY(cd_describe_match_host("", devices, name, n, here, err));
    *out = name[here->index];
    if (!log) return CDMPP_OK;
    const char *cpu = here->cpu[0] ? here->cpu : "unknown processor", *microarch = here->microarch[0] ? here->microarch : "not listed";
    if (here->exact) cd_log_put(log, CD_LOG_WARNING, "cost model: %s; device: %s, recognised as this machine (%s, %s)", model_path, *out, cpu, microarch);
    else cd_log_put(log, CD_LOG_WARNING, "cost model: %s; device: %s, the nearest known one to this machine (%s, %s), which is out of range", model_path, *out, cpu, microarch);
    return CDMPP_OK;
}

cdmpp_status cd_default_model_host(const char *model_path, const struct cd_model *m, struct cd_log *log, const char **out, cdmpp_err *err) {
    cd_arena a = {0};
    cd_diag diag = {0};
    cd_device_table *devices = NULL;
    const char *path;
    cd_describe_match here;
    const size_t n = cd_model_n_device(m);
    const char **name = CD_NEWN(&a, const char *, n + 1);
    if (!name) return CD_FAIL(err, ENOMEM, "%zu devices", n);
    cdmpp_status st = cd_device_table_path(&a, NULL, NULL, &path, err);
    for (size_t i = 0; !st && i < n; i++) name[i] = cd_model_device(m, i);
    if (!st) st = cd_device_table_load(path, &diag, &devices, err);
    if (!st) st = cd_default_model_device(model_path, devices, name, n, log, out, &here, err);
    cd_diag_free(&diag);
    cd_device_table_free(devices);
    cd_arena_free(&a);
    return st;
}
