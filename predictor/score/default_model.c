/* The default cost model. A newcomer with an ONNX file has no model yet; refusing to answer helps nobody, and answering
 * without saying which model and which device would be silently wrong. So it answers and says both. */
#include "predictor/score/default_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "base/io/io.h"
#include "learner/model/model.h"

const char *cd_default_model_plain(cd_arena *a) {
    const char *own = getenv("CDMPP_DEFAULT_MODEL");
    if (own) return *own ? own : NULL;
    return cd_data_path_find(a, "models/" CD_DEFAULT_MODEL);
}

const char *cd_default_model_gpu_plain(cd_arena *a) {
    return getenv("CDMPP_DEFAULT_MODEL") ? NULL
                                         : cd_data_path_find(a, "models/" CD_DEFAULT_MODEL_GPU);
}

bool cd_default_model_is_gpu_plain(const char *path) {
    const char *name = strrchr(path, '/');
    return !strcmp(name ? name + 1 : path, CD_DEFAULT_MODEL_GPU);
}

/* ---- corrected for a machine ---- */
static const char *text_of(const cd_json *v, const char *key, cd_arena *a) {
    cd_str s;
    const char *p = cd_json_need_str(v, key, &s, NULL) ? NULL : cd_str_dup(a, s);
    return p ? p : "?";
}

/* The back end of a GPU; NULL: it is a processor. */
static const char *backend_of(const cd_json *v, cd_arena *a) {
    return cd_json_get(v, "backend") ? text_of(v, "backend", a) : NULL;
}

/* A folder may be seen by several machines: the correction of one is wrong for another one. */
static bool is_of(const cd_json *v, const char *gpu, cd_arena *a,
                  char differs[CD_DESCRIBE_DIFFERS]) {
    cd_describe_identity file, here;
    const cd_json *machine = cd_json_get(v, "machine");
    const char *backend = backend_of(v, a);
    differs[0] = 0;
    if (!machine || cd_describe_identity_read(machine, &file, NULL)) return false;
    if (backend) return cd_describe_gpu_is_here(backend, gpu, &file, differs);
    return !cd_describe_identity_cpu("", &here, NULL) &&
           !cd_describe_identity_differs(&file, &here, differs);
}

static bool is_of_here(const cd_json *v, cd_arena *a) {
    char differs[CD_DESCRIBE_DIFFERS];
    return is_of(v, NULL, a, differs);
}

/* Nobody named the file: who may write into the folder, and is not this user, does not choose the model. *owner: who that is. */
static bool is_ours(const char *path, unsigned *owner) {
    struct stat s;
    *owner = 0;
    if (stat(path, &s)) return false;
    *owner = (unsigned)s.st_uid;
    return s.st_uid == 0 || s.st_uid == geteuid();
}

/* Is the file that nobody named used on this machine (on this GPU of it)? `why`: why it is not, "is of another processor (...) and is not used: cores 8 (here 16)". */
static bool is_used(const char *path, const cd_json *v, const char *gpu, cd_arena *a,
                    char why[CD_DEFAULT_MODEL_SAID]) {
    static const char unused[] = "and is not used";
    char differs[CD_DESCRIBE_DIFFERS];
    unsigned owner;
    why[0] = 0;
    if (!is_ours(path, &owner))
        (void)snprintf(why, CD_DEFAULT_MODEL_SAID,
                       "belongs to another user (number %u) %s: --cost-model names it all the same",
                       owner, unused);
    else if (!cd_json_get(v, "machine"))
        (void)snprintf(why, CD_DEFAULT_MODEL_SAID,
                       "does not say which machine it is of (%.120s), as an earlier version wrote "
                       "it, %s: calibrate again",
                       text_of(v, "cpu", a), unused);
    else if (!is_of(v, gpu, a, differs))
        (void)snprintf(why, CD_DEFAULT_MODEL_SAID, "is of another %s (%.120s) %s%s%s",
                       backend_of(v, a) ? "GPU" : "processor", text_of(v, "cpu", a), unused,
                       differs[0] ? ": " : "", differs);
    return !why[0];
}

bool cd_default_model_is_here(const char *path) {
    cd_arena a = {0};
    const cd_json *v;
    cd_here_look(path, &a, &v);
    const bool is = v && is_of_here(v, &a);
    cd_arena_free(&a);
    return is;
}

const char *cd_default_model_path(cd_arena *a) {
    char why[CD_DEFAULT_MODEL_SAID];
    const cd_json *v = NULL;
    if (!getenv("CDMPP_DEFAULT_MODEL")) cd_here_look(CD_DEFAULT_MODEL_HERE, a, &v);
    return v && !backend_of(v, a) && is_used(CD_DEFAULT_MODEL_HERE, v, NULL, a, why)
               ? CD_DEFAULT_MODEL_HERE
               : cd_default_model_plain(a);
}

static bool is_for(const cd_json *v, const char *backend, cd_arena *a) {
    const char *is = backend_of(v, a);
    return is && (!backend || !strcmp(is, backend));
}

const char *cd_default_model_gpu_file(cd_arena *a) {
    const cd_json *v = NULL;
    if (!getenv("CDMPP_DEFAULT_MODEL")) cd_here_look(CD_DEFAULT_MODEL_HERE_GPU, a, &v);
    unsigned owner;
    return v && backend_of(v, a) && is_ours(CD_DEFAULT_MODEL_HERE_GPU, &owner)
               ? CD_DEFAULT_MODEL_HERE_GPU
               : NULL;
}

const char *cd_default_model_gpu(cd_arena *a, const char *backend, const char *gpu) {
    char why[CD_DEFAULT_MODEL_SAID];
    const cd_json *v = NULL;
    if (!getenv("CDMPP_DEFAULT_MODEL")) cd_here_look(CD_DEFAULT_MODEL_HERE_GPU, a, &v);
    return v && is_for(v, backend, a) && is_used(CD_DEFAULT_MODEL_HERE_GPU, v, gpu, a, why)
               ? CD_DEFAULT_MODEL_HERE_GPU
               : NULL;
}

const char *cd_default_model_for_gpu(cd_arena *a, const char *backend, const char *gpu) {
    const char *here = cd_default_model_gpu(a, backend, gpu);
    return here ? here : cd_default_model_gpu_plain(a);
}

/* It is there, and nobody can read in it for which machine it is. */
static bool is_damaged(const char *path) {
    cd_arena a = {0};
    const cd_json *v;
    cd_here_look(path, &a, &v);
    cd_arena_free(&a);
    return !v && !access(path, F_OK);
}

const char *cd_default_model_gpu_why(const char *backend, const char *gpu,
                                     char out[CD_DEFAULT_MODEL_SAID]) {
    static const char file[] = CD_DEFAULT_MODEL_HERE_GPU, unused[] = "and is not used";
    char why[CD_DEFAULT_MODEL_SAID];
    cd_arena a = {0};
    const cd_json *v;
    out[0] = 0;
    cd_here_look(file, &a, &v);
    const char *is = v ? backend_of(v, &a) : NULL;
    if (getenv("CDMPP_DEFAULT_MODEL")) out[0] = 0; /* nobody looks for it */
    else if (!v && !access(file, F_OK))
        (void)snprintf(out, CD_DEFAULT_MODEL_SAID,
                       "%s is damaged, or no model that calibrate wrote, %s", file, unused);
    else if (v && !is)
        (void)snprintf(out, CD_DEFAULT_MODEL_SAID, "%s is of a processor (%.120s) %s", file,
                       text_of(v, "cpu", &a), unused);
    else if (v && backend && strcmp(is, backend) != 0)
        (void)snprintf(out, CD_DEFAULT_MODEL_SAID, "%s is of %.20s, not of %.20s, %s", file, is,
                       backend, unused);
    else if (v && !is_used(file, v, gpu, &a, why))
        (void)snprintf(out, CD_DEFAULT_MODEL_SAID, "%s %.700s", file, why);
    cd_arena_free(&a);
    return out;
}

cdmpp_status cd_default_model_gpu_missing(const char *backend, cdmpp_err *err) {
    char why[CD_DEFAULT_MODEL_SAID];
    cd_default_model_gpu_why(backend, NULL, why);
    return CD_FAIL(err, EUSAGE,
                   "there is no cost model for this machine's GPU: --cost-model FILE names one, "
                   "cdmpp-tune calibrate --target %s makes one%s%s",
                   backend, why[0] ? "; " : "", why);
}

static const char *what_gpu(char out[CD_DEFAULT_MODEL_SAID]) {
    char why[CD_DEFAULT_MODEL_SAID];
    cd_default_model_gpu_why(NULL, NULL, why);
    (void)snprintf(out, CD_DEFAULT_MODEL_SAID, "the default one of GPUs%s%.700s",
                   why[0] ? "; " : "", why);
    return out;
}

const char *cd_default_model_what(const char *path, char out[CD_DEFAULT_MODEL_SAID]) {
    cd_arena a = {0};
    char why[CD_DEFAULT_MODEL_SAID];
    const cd_json *v, *other = NULL;
    uint64_t n = 0;
    if (cd_default_model_is_gpu_plain(path)) return what_gpu(out);
    cd_here_look(path, &a, &v);
    if (!v && !getenv("CDMPP_DEFAULT_MODEL")) cd_here_look(CD_DEFAULT_MODEL_HERE, &a, &other);
    if (v && !cd_json_need_count(v, "programs", &n, NULL)) {
        const bool here = is_of_here(v, &a), gpu = backend_of(v, &a) != NULL;
        (void)snprintf(
            out, CD_DEFAULT_MODEL_SAID,
            here && gpu ? "corrected by %llu programs measured on this machine's GPU (%.120s)"
                        : "corrected by %llu programs measured on %.120s",
            (unsigned long long)n, here && !gpu ? "this machine" : text_of(v, "cpu", &a));
    } else if (other && backend_of(other, &a))
        (void)snprintf(out, CD_DEFAULT_MODEL_SAID,
                       "the default one; " CD_DEFAULT_MODEL_HERE
                       " is of a GPU (%.120s) and is not used: that of a GPU is "
                       "called " CD_DEFAULT_MODEL_HERE_GPU,
                       text_of(other, "cpu", &a));
    else if (other && !is_used(CD_DEFAULT_MODEL_HERE, other, NULL, &a, why))
        (void)snprintf(out, CD_DEFAULT_MODEL_SAID,
                       "the default one; " CD_DEFAULT_MODEL_HERE " %.700s", why);
    else if (!v && !getenv("CDMPP_DEFAULT_MODEL") && is_damaged(CD_DEFAULT_MODEL_HERE))
        (void)snprintf(out, CD_DEFAULT_MODEL_SAID,
                       "the default one; " CD_DEFAULT_MODEL_HERE
                       " is damaged, or no model that calibrate wrote, and is not used");
    else (void)snprintf(out, CD_DEFAULT_MODEL_SAID, "the default one");
    cd_arena_free(&a);
    return out;
}

/* One that is there and is not used is no secret. */
static void why_not_here(char out[CD_DEFAULT_MODEL_SAID]) {
    cd_arena a = {0};
    const cd_json *v = NULL;
    out[0] = 0;
    if (!getenv("CDMPP_DEFAULT_MODEL")) cd_here_look(CD_DEFAULT_MODEL_HERE, &a, &v);
    if (v && !backend_of(v, &a)) (void)is_used(CD_DEFAULT_MODEL_HERE, v, NULL, &a, out);
    cd_arena_free(&a);
}

cdmpp_status cd_default_model_missing(cdmpp_err *err) {
    char why[CD_DEFAULT_MODEL_SAID];
    why_not_here(why);
    return CD_FAIL(err, EUSAGE,
                   "there is no cost model: --cost-model FILE names one; `make model` or an "
                   "installation brings a default one%s%s",
                   why[0] ? "; " CD_DEFAULT_MODEL_HERE " " : "", why);
}

/* The machine of a correction, where that is this one. A GPU says itself what it is; the other members of *here stay as they are. */
static bool find_corrected(const cd_json *v, cd_arena *a, const char *const *name, size_t n,
                           cd_describe_match *here) {
    bool found = false;
    for (size_t i = 0; v && !found && i < n; i++)
        if (!strcmp(name[i], text_of(v, "name", a))) {
            here->index = i;
            here->exact = found = true;
        }
    return found;
}

/* A GPU of this machine, described where somebody does. False: the file is not of one. */
static bool find_gpu(const cd_json *v, cd_arena *a, const cd_device_table *devices,
                     const char *const *name, size_t n, cd_describe_match *here) {
    *here = (cd_describe_match){0};
    if (!v || !backend_of(v, a) || !find_corrected(v, a, name, n, here)) return false;
    (void)snprintf(here->cpu, sizeof here->cpu, "%s", text_of(v, "cpu", a));
    (void)snprintf(here->microarch, sizeof here->microarch, "%s", backend_of(v, a));
    for (int k = CD_N_DEVICE_KIND + CD_N_DEVICE_RATIO; k < CD_N_DEVICE_COL; k++)
        here->here[k] = 1; /* unknown */
    if (devices) (void)cd_device_table_vector(devices, name[here->index], here->here, NULL);
    return true;
}

static cdmpp_status find(const char *path, const cd_device_table *devices, const char *const *name,
                         size_t n, cd_describe_match *here, bool *gpu, cdmpp_err *err) {
    cd_arena a = {0};
    const cd_json *v;
    cdmpp_status st = CDMPP_OK;
    cd_here_look(path, &a, &v);
    if (v && !is_of_here(v, &a)) v = NULL;
    *gpu = find_gpu(v, &a, devices, name, n, here);
    if (!*gpu) {
        st = cd_describe_match_host("", devices, name, n, here, err);
        if (!st) (void)find_corrected(v, &a, name, n, here);
    }
    cd_arena_free(&a);
    return st;
}

/* Which model answers, and for which device. */
static void say(const char *path, const char *device, const cd_describe_match *here, bool gpu,
                struct cd_log *log) {
    char what[CD_DEFAULT_MODEL_SAID];
    const char *cpu = here->cpu[0] ? here->cpu : "unknown processor",
               *microarch = here->microarch[0] ? here->microarch : "not listed";
    const char *is = here->exact
                         ? gpu ? "recognised as this machine's GPU" : "recognised as this machine"
                     : gpu ? "the nearest known one to this machine's GPU"
                           : "the nearest known one to this machine";
    cd_default_model_what(path, what);
    cd_log_put(log, CD_LOG_WARNING, "cost model: %s%s%s; device: %s, %s (%s, %s)%s", path,
               strcmp(what, "the default one") ? ", " : "",
               strcmp(what, "the default one") ? what : "", device, is, cpu, microarch,
               here->exact ? "" : ", which is out of range");
}

cdmpp_status cd_default_model_device(const char *model_path, const cd_device_table *devices,
                                     const char *const *name, size_t n, struct cd_log *log,
                                     const char **out, cd_describe_match *here, cdmpp_err *err) {
    bool gpu;
    CD_TRY(find(model_path, devices, name, n, here, &gpu, err));
    *out = name[here->index];
    if (log) say(model_path, *out, here, gpu, log);
    return CDMPP_OK;
}

cdmpp_status cd_default_model_gpu_device(const char *model_path, const char *backend,
                                         const char *gpu, const cd_device_table *devices,
                                         const char *const *name, size_t n, struct cd_log *log,
                                         const char **out, cd_describe_match *here,
                                         cdmpp_err *err) {
    cd_describe_entry e;
    CD_TRY(cd_describe_gpu_apart(backend, gpu, &e, err));
    CD_TRY(cd_describe_match_gpu(&e, backend, devices, name, n, here, err));
    *out = name[here->index];
    if (log) say(model_path, *out, here, true, log);
    return CDMPP_OK;
}

/* backend NULL: this machine's processor, or what the model is corrected for. */
static cdmpp_status host(const char *model_path, const struct cd_model *m, const char *backend,
                         const char *gpu, struct cd_log *log, const char **out, cdmpp_err *err) {
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
    if (!st && backend)
        st = cd_default_model_gpu_device(model_path, backend, gpu, devices, name, n, log, out,
                                         &here, err);
    else if (!st) st = cd_default_model_device(model_path, devices, name, n, log, out, &here, err);
    cd_diag_free(&diag);
    cd_device_table_free(devices);
    cd_arena_free(&a);
    return st;
}

cdmpp_status cd_default_model_host(const char *model_path, const struct cd_model *m,
                                   struct cd_log *log, const char **out, cdmpp_err *err) {
    return host(model_path, m, NULL, NULL, log, out, err);
}

cdmpp_status cd_default_model_gpu_host(const char *model_path, const struct cd_model *m,
                                       const char *backend, const char *gpu, struct cd_log *log,
                                       const char **out, cdmpp_err *err) {
    return host(model_path, m, backend, gpu, log, out, err);
}
