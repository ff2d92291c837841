/* --device of a search: the device of the model whose answers rank candidates. Programs are
 * measured here, so it must be one of the kind of the programs. */
#include <string.h>

#include "predictor/cmd/tune/main_tune.h"

typedef cd_main_tune options;

/* -1: nobody describes it. */
static int kind_of(const char *device) {
    cd_arena a = {0};
    cd_diag diag = {0};
    cd_device_table *t = NULL;
    const cd_device *d;
    const char *path;
    int gpu = -1;
    if (!cd_device_table_path(&a, NULL, NULL, &path, NULL) &&
        !cd_device_table_load(path, &diag, &t, NULL))
        gpu = cd_device_table_find(t, device, &d, NULL) ? -1 : d->kind == CD_DEVICE_GPU;
    cd_diag_free(&diag);
    cd_device_table_free(t);
    cd_arena_free(&a);
    return gpu;
}

cdmpp_status cd_main_tune_device_check(const options *o, cdmpp_err *err) {
    const char *device = o->session.device, *target = o->what.target    ? o->what.target
                                                      : o->what.network ? "llvm"
                                                                        : "";
    const cd_backend_kind *k = cd_backend_for_target((cd_str){target, strlen(target)});
    const int gpu = device ? kind_of(device) : -1;
    if (!device || !k || o->session.host.n || o->dry_run) return CDMPP_OK;
    if (gpu == 1 && k->dialect == CD_DIALECT_C)
        return CD_FAIL(err, EUSAGE,
                       "--device: %.60s is a GPU, and programs of %.20s are measured on this "
                       "machine's processor: --target cuda or opencl measures on a GPU that is "
                       "here; cdmpp-replay --device %.60s "
                       "estimates one that is not",
                       device, target, device);
    if (gpu == 0 && k->dialect != CD_DIALECT_C)
        return CD_FAIL(err, EUSAGE,
                       "--device: %.60s is a processor, and programs of %.20s are measured on a "
                       "GPU of this machine",
                       device, k->name);
    if (!o->model && !o->compare && k->dialect != CD_DIALECT_C)
        return CD_FAIL(err, EUSAGE,
                       "--device: a search measures on a GPU of this machine: none here runs "
                       "programs of %s, or no default model is installed; --cost-model FILE names "
                       "one; cdmpp-replay --device %.60s "
                       "estimates a GPU that is not here",
                       k->name, device);
    return CDMPP_OK;
}

void cd_main_tune_device_say(const options *o, bool named) {
    if (named && o->session.device && kind_of(o->session.device) == 1)
        cd_log_put(o->log, CD_LOG_INFO,
                   "--device: the model ranks candidates as for %s; they are measured on this "
                   "machine's device",
                   o->session.device);
}
