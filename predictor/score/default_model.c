/* The default cost model. A newcomer with an ONNX file has no model yet; refusing to answer helps nobody, and answering
 * without saying which model and which device would be silently wrong. So it answers and says both. */
#include "predictor/score/default_model.h"

#include "base/cli/cli.h"
#include "base/io/io.h"
#include "profiler/describe/describe.h"

const char *cd_default_model_path(cd_arena *a) { return cd_data_path_find(a, "models/" CD_DEFAULT_MODEL); }

cdmpp_status cd_default_model_missing(cdmpp_err *err) {
    return CD_FAIL(err, EMODEL, "there is no cost model: --cost-model FILE names one; `make model` or an installation brings a default one");
}

cdmpp_status cd_default_model_device(const char *model_path, const cd_device_table *devices, const char *const *name, size_t n,
                                     struct cd_log *log, const char **out, bool *exact, cdmpp_err *err) {
    cd_describe_match here;
    CD_TRY(cd_describe_match_host("", devices, name, n, &here, err));
    *out = name[here.index];
    *exact = here.exact;
    if (!log) return CDMPP_OK;
    const char *cpu = here.cpu[0] ? here.cpu : "unknown processor", *microarch = here.microarch[0] ? here.microarch : "not listed";
    if (here.exact) cd_log_put(log, CD_LOG_WARNING, "cost model: %s; device: %s, recognised as this machine (%s, %s)", model_path, *out, cpu, microarch);
    else cd_log_put(log, CD_LOG_WARNING, "cost model: %s; device: %s, the nearest known one to this machine (%s, %s), which is out of range", model_path, *out, cpu, microarch);
    return CDMPP_OK;
}
