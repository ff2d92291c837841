/* The default cost model. A newcomer with an ONNX file has no model yet; refusing to answer helps
 * nobody, and answering without saying which model and which device would be silently wrong. So it
 * answers and says both. */
#include "predictor/score/default_model.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "base/io/io.h"
#include "learner/model/model.h"
#include "predictor/score/user_model.h"

/* The folder of the user's models: what lies there, what is used on this machine, and names of new
 * files. */

static const char ending[] = ".cdmpp", unused[] = "and is not used";

/* ---- the folder ---- */
/* NULL: neither variable names an absolute folder, or out of memory. */
static const char *user_model_folder(cd_arena *a) {
    const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    const bool named = xdg && xdg[0] == '/';
    if (!named && !(home && home[0] == '/')) return NULL;
    const char *base = named ? xdg : home, *below = named ? "" : "/.local/share";
    static const char models[] = "/cdmpp/models";
    const size_t cap = strlen(base) + strlen(below) + sizeof models;
    char *p = cd_arena_alloc(a, cap, 1);
    if (p) (void)snprintf(p, cap, "%s%s%s", base, below, models);
    return p;
}

/* It and what is above it. */
static cdmpp_status make_folder(cd_arena *a, const char *path, cdmpp_err *err) {
    char *p = cd_str_dup(a, (cd_str){path, strlen(path)});
    if (!p) return CD_FAIL(err, ENOMEM, "name of a folder");
    for (char *s = p + 1; *s; s++) {
        if (*s != '/') continue;
        *s = 0;
        if (access(p, F_OK) != 0) CD_TRY(cd_file_make_folder(p, err));
        *s = '/';
    }
    return cd_file_make_folder(p, err);
}

/* ---- one file ---- */
/* A member of key "here", "?" where it is not there or no text. */
static const char *user_model_text(const cd_json *here, const char *key, cd_arena *a) {
    cd_str s;
    const char *p = cd_json_need_str(here, key, &s, NULL) ? NULL : cd_str_dup(a, s);
    return p ? p : "?";
}

/* The back end of the GPU that it is of; NULL: a processor. */
static const char *user_model_backend(const cd_json *here, cd_arena *a) {
    return cd_json_get(here, "backend") ? user_model_text(here, "backend", a) : NULL;
}

/* Is it of this processor, or of a GPU that is here (gpu NULL: any; "": the first)? `differs`: what
 * differs, in words. */
static bool user_model_is_of(const cd_json *here, const char *gpu, cd_arena *a,
                             char differs[CD_DESCRIBE_DIFFERS]) {
    cd_describe_identity file, cpu;
    const cd_json *machine = cd_json_get(here, "machine");
    const char *backend = user_model_backend(here, a);
    differs[0] = 0;
    if (!machine || cd_describe_identity_read(machine, &file, NULL)) return false;
    if (backend) return cd_describe_gpu_is_here(backend, gpu, &file, differs);
    return !cd_describe_identity_cpu("", &cpu, NULL) &&
           !cd_describe_identity_differs(&file, &cpu, differs);
}

/* Does its processor or GPU have the name of this machine's processor? Then "another one" deserves
 * a word. */
static bool user_model_same_name(const cd_json *here, cd_arena *a) {
    cd_describe_identity cpu;
    return !cd_describe_identity_cpu("", &cpu, NULL) &&
           !strcmp(cpu.says, user_model_text(here, "cpu", a));
}

/* Does another user own it than this one and root? *owner: who. False, too, where there is no
 * file. */
static bool user_model_foreign(const char *path, unsigned *owner) {
    struct stat s;
    *owner = 0;
    if (stat(path, &s)) return false;
    *owner = (unsigned)s.st_uid;
    return s.st_uid != 0 && s.st_uid != geteuid();
}

/* Is this file of the user's folder used here? `why`: why not, "belongs to another user (number 7)
 * and is not used". */
static bool user_model_used(const cd_user_model *f, const char *gpu, cd_arena *a,
                            char why[CD_USER_MODEL_WHY]) {
    char differs[CD_DESCRIBE_DIFFERS];
    unsigned owner;
    const char *cpu = f->here ? user_model_text(f->here, "cpu", a) : "";
    why[0] = 0;
    if (user_model_foreign(f->path, &owner))
        (void)snprintf(why, CD_USER_MODEL_WHY,
                       "belongs to another user (number %u) %s: --cost-model names it all the same",
                       owner, unused);
    else if (!f->here)
        (void)snprintf(why, CD_USER_MODEL_WHY, "is damaged, or no model that calibrate wrote, %s",
                       unused);
    else if (!cd_json_get(f->here, "machine"))
        (void)snprintf(why, CD_USER_MODEL_WHY,
                       "does not say which machine it is of (%.120s), as an earlier version wrote "
                       "it, %s: calibrate again",
                       cpu, unused);
    else if (!user_model_is_of(f->here, gpu, a, differs))
        (void)snprintf(why, CD_USER_MODEL_WHY, "is of another %s (%.120s) %s%s%s",
                       user_model_backend(f->here, a) ? "GPU" : "processor", cpu, unused,
                       differs[0] ? ": " : "", differs);
    else if (!f->fits)
        (void)snprintf(why, CD_USER_MODEL_WHY,
                       "is of another version of cdmpp (feature columns or form differ) %s: "
                       "calibrate again",
                       unused);
    return !why[0];
}

/* ---- all files ---- */
static bool is_cpu_name(const char *name) { return !strncmp(name, "cpu-", 4); }

/* Files of the folder itself: a name with the ending, and the kind before the first "-". */
static bool is_kind(const char *path, void *gpu) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t n = strlen(name), end = sizeof ending - 1;
    return n > end && !strcmp(name + n - end, ending) && strchr(name, '-') &&
           is_cpu_name(name) == !*(bool *)gpu;
}

/* Files of processors, or of GPUs, by name. 0: there is none, the folder cannot be read, or out of
 * memory. */
static size_t user_model_list(cd_arena *a, bool gpu, const cd_user_model **out) {
    const char *folder = user_model_folder(a), *const * path;
    size_t n;
    *out = NULL;
    if (!folder || access(folder, R_OK) != 0 ||
        cd_file_list(a, folder, is_kind, &gpu, &path, &n, NULL))
        return 0;
    cd_user_model *f = CD_NEWN(a, cd_user_model, n + 1);
    for (size_t i = 0; f && i < n; i++) {
        f[i].path = path[i];
        cd_here_look(path[i], a, &f[i].here, &f[i].fits);
    }
    *out = f;
    return f ? n : 0;
}

/* ---- names of new files ---- */
/* "AMD EPYC 9354 32-Core Processor" -> "amd-epyc-9354-32-core-processor" */
static void put_word(cd_buf *b, const char *text) {
    enum { LETTERS = 48 };
    bool gap = false;
    for (size_t n = 0; *text && n < LETTERS; text++) {
        const bool plain = isalnum((unsigned char)*text) && (unsigned char)*text < 128;
        if (plain && gap) cd_buf_puts(b, "-");
        if (plain) cd_buf_putf(b, "%c", tolower((unsigned char)*text)), n++;
        gap = !plain;
    }
}

static cdmpp_status name_of(cd_arena *a, const char *folder, const char *kind,
                            const cd_describe_identity *machine, const char **out, cdmpp_err *err) {
    cd_buf name = {0}, all = {0};
    char digest[65];
    cd_sha256 sum;
    cd_describe_identity_put(&all, machine);
    cd_buf_putf(&name, "%s/%s-", folder, kind);
    put_word(&name, machine->says);
    cd_sha256_init(&sum);
    cd_sha256_add(&sum, all.p ? all.p : "", all.n);
    cd_sha256_hex(&sum, digest);
    cd_buf_putf(&name, "-%.8s%s", digest, ending);
    *out = name.oom || all.oom ? NULL : cd_str_dup(a, (cd_str){name.p, name.n});
    cd_buf_free(&name);
    cd_buf_free(&all);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "name of a model");
}

/* Does the file hold the model of this machine, so that a new one takes its place? */
static bool is_of_machine(const cd_user_model *f, const char *backend,
                          const cd_describe_identity *machine, cd_arena *a) {
    cd_describe_identity file;
    char differs[CD_DESCRIBE_DIFFERS];
    const cd_json *of = f->here ? cd_json_get(f->here, "machine") : NULL;
    const char *is = f->here ? user_model_backend(f->here, a) : NULL;
    if (!of || !is != !backend || (is && strcmp(is, backend) != 0)) return false;
    return !cd_describe_identity_read(of, &file, NULL) &&
           !cd_describe_identity_differs(&file, machine, differs);
}

cdmpp_status cd_user_model_path(cd_arena *a, const char *backend,
                                const cd_describe_identity *machine, const char **out,
                                cdmpp_err *err) {
    const char *folder = user_model_folder(a);
    const cd_user_model *f;
    unsigned owner;
    if (!folder)
        return CD_FAIL(err, EUSAGE,
                       "nowhere to keep the model: neither XDG_DATA_HOME nor HOME names a folder; "
                       "--out names a file");
    CD_TRY(make_folder(a, folder, err));
    const size_t n = user_model_list(a, backend != NULL, &f);
    for (size_t i = 0; i < n; i++)
        if (!user_model_foreign(f[i].path, &owner) && is_of_machine(&f[i], backend, machine, a))
            return *out = f[i].path, CDMPP_OK;
    return name_of(a, folder, backend ? backend : "cpu", machine, out, err);
}

const char *cd_default_model_plain(cd_arena *a) {
    const char *own = getenv("CDMPP_DEFAULT_MODEL");
    if (own) return *own ? own : NULL;
    return cd_data_path_find(a, "models/" CD_DEFAULT_MODEL);
}

const char *cd_default_model_gpu_plain(cd_arena *a) {
    return getenv("CDMPP_DEFAULT_MODEL") ? NULL
                                         : cd_data_path_find(a, "models/" CD_DEFAULT_MODEL_GPU);
}

const char *cd_default_model_llm(cd_arena *a) {
    return getenv("CDMPP_DEFAULT_MODEL") ? NULL
                                         : cd_data_path_find(a, "models/" CD_DEFAULT_MODEL_LLM);
}

bool cd_default_model_is_gpu_plain(const char *path) {
    const char *name = strrchr(path, '/');
    return !strcmp(name ? name + 1 : path, CD_DEFAULT_MODEL_GPU);
}

/* ---- corrected for a machine ---- */
static bool is_of_here(const cd_json *v, cd_arena *a) {
    char differs[CD_DESCRIBE_DIFFERS];
    return user_model_is_of(v, NULL, a, differs);
}

bool cd_default_model_is_here(const char *path) {
    cd_arena a = {0};
    const cd_json *v;
    cd_here_look(path, &a, &v, NULL);
    const bool is = v && is_of_here(v, &a);
    cd_arena_free(&a);
    return is;
}

bool cd_default_model_is_user(const char *path) {
    cd_arena a = {0};
    const char *folder = user_model_folder(&a);
    const size_t n = folder ? strlen(folder) : 0;
    const bool is = n && !strncmp(path, folder, n) && path[n] == '/' && !strchr(path + n + 1, '/');
    cd_arena_free(&a);
    return is;
}

/* $CDMPP_DEFAULT_MODEL hides the user's models, too. */
static size_t user_models(cd_arena *a, bool gpu, const cd_user_model **out) {
    *out = NULL;
    return getenv("CDMPP_DEFAULT_MODEL") ? 0 : user_model_list(a, gpu, out);
}

const char *cd_default_model_path(cd_arena *a) {
    char why[CD_USER_MODEL_WHY];
    const cd_user_model *f;
    const size_t n = user_models(a, false, &f);
    for (size_t i = 0; i < n; i++)
        if (f[i].here && !user_model_backend(f[i].here, a) && user_model_used(&f[i], NULL, a, why))
            return f[i].path;
    return cd_default_model_plain(a);
}

static bool is_for(const cd_user_model *f, const char *backend, cd_arena *a) {
    const char *is = f->here ? user_model_backend(f->here, a) : NULL;
    return is && (!backend || !strcmp(is, backend));
}

const char *cd_default_model_gpu_file(cd_arena *a) {
    const cd_user_model *f, *only = NULL;
    size_t found = 0;
    unsigned owner;
    const size_t n = user_models(a, true, &f);
    for (size_t i = 0; i < n; i++)
        if (is_for(&f[i], NULL, a) && !user_model_foreign(f[i].path, &owner)) only = &f[i], found++;
    /* of several the driver tells which */
    return found > 1 ? cd_default_model_gpu(a, NULL, NULL) : found ? only->path : NULL;
}

const char *cd_default_model_gpu(cd_arena *a, const char *backend, const char *gpu) {
    char why[CD_USER_MODEL_WHY];
    const cd_user_model *f;
    const size_t n = user_models(a, true, &f);
    for (size_t i = 0; i < n; i++)
        if (is_for(&f[i], backend, a) && user_model_used(&f[i], gpu, a, why)) return f[i].path;
    return NULL;
}

const char *cd_default_model_for_gpu(cd_arena *a, const char *backend, const char *gpu) {
    const char *here = cd_default_model_gpu(a, backend, gpu);
    return here ? here : cd_default_model_gpu_plain(a);
}

/* ---- why a user's model is not used ---- */
static const char *base_name(const cd_user_model *f) {
    const char *slash = strrchr(f->path, '/');
    return slash ? slash + 1 : f->path;
}

/* Earlier versions wrote it into the current folder and found it there. */
static void why_left(const char *file, char out[CD_DEFAULT_MODEL_SAID]) {
    if (!out[0] && !getenv("CDMPP_DEFAULT_MODEL") && !access(file, F_OK))
        (void)snprintf(out, CD_DEFAULT_MODEL_SAID,
                       "%s of this folder is no longer read unless --cost-model names it; "
                       "cdmpp-tune calibrate makes one that is found",
                       file);
}

const char *cd_default_model_gpu_why(const char *backend, const char *gpu,
                                     char out[CD_DEFAULT_MODEL_SAID]) {
    char why[CD_USER_MODEL_WHY];
    cd_arena a = {0};
    const cd_user_model *f;
    const size_t n = user_models(&a, true, &f);
    out[0] = 0;
    for (size_t i = 0; !out[0] && i < n; i++) {
        const char *is = f[i].here ? user_model_backend(f[i].here, &a) : NULL;
        if (f[i].here && !is)
            (void)snprintf(out, CD_DEFAULT_MODEL_SAID,
                           "%.120s is of a processor (%.120s) and is not used", base_name(&f[i]),
                           user_model_text(f[i].here, "cpu", &a));
        else if (is && backend && strcmp(is, backend) != 0)
            (void)snprintf(out, CD_DEFAULT_MODEL_SAID,
                           "%.120s is of %.20s, not of %.20s, and is not used", base_name(&f[i]),
                           is, backend);
        else if (!user_model_used(&f[i], gpu, &a, why))
            (void)snprintf(out, CD_DEFAULT_MODEL_SAID, "%.120s %.660s", base_name(&f[i]), why);
    }
    cd_arena_free(&a);
    why_left("here-gpu.cdmpp", out);
    return out;
}

/* A home folder may hold models of other machines: of these only one whose processor has the same
 * name as this one's is reported. */
static void why_not_here(char out[CD_DEFAULT_MODEL_SAID]) {
    char why[CD_USER_MODEL_WHY];
    cd_arena a = {0};
    const cd_user_model *f;
    const size_t n = user_models(&a, false, &f);
    out[0] = 0;
    for (size_t i = 0; !out[0] && i < n; i++) {
        if (f[i].here && user_model_backend(f[i].here, &a))
            (void)snprintf(out, CD_DEFAULT_MODEL_SAID,
                           "%.120s is of a GPU (%.120s) and is not used", base_name(&f[i]),
                           user_model_text(f[i].here, "cpu", &a));
        else if ((!f[i].here || user_model_same_name(f[i].here, &a)) &&
                 !user_model_used(&f[i], NULL, &a, why))
            (void)snprintf(out, CD_DEFAULT_MODEL_SAID, "%.120s %.660s", base_name(&f[i]), why);
    }
    cd_arena_free(&a);
    why_left("here.cdmpp", out);
}

cdmpp_status cd_default_model_gpu_missing(const char *backend, cdmpp_err *err) {
    char why[CD_DEFAULT_MODEL_SAID];
    cd_default_model_gpu_why(backend, NULL, why);
    return CD_FAIL(err, EUSAGE,
                   "there is no cost model for this machine's GPU: --cost-model FILE names one, "
                   "cdmpp-tune calibrate --target %s makes one%s%s",
                   backend, why[0] ? "; " : "", why);
}

cdmpp_status cd_default_model_missing(cdmpp_err *err) {
    char why[CD_DEFAULT_MODEL_SAID];
    why_not_here(why);
    return CD_FAIL(err, EUSAGE,
                   "there is no cost model: --cost-model FILE names one; the project's models/ or "
                   "an installation brings a default one%s%s",
                   why[0] ? "; " : "", why);
}

/* ---- what is said of it ---- */
static void what_plain(const char *name, const char *why, char out[CD_DEFAULT_MODEL_SAID]) {
    (void)snprintf(out, CD_DEFAULT_MODEL_SAID, "%s%s%.700s", name, why[0] ? "; " : "", why);
}

const char *cd_default_model_what(const char *path, char out[CD_DEFAULT_MODEL_SAID]) {
    cd_arena a = {0};
    char why[CD_DEFAULT_MODEL_SAID];
    const cd_json *v;
    uint64_t n = 0;
    cd_here_look(path, &a, &v, NULL);
    if (cd_default_model_is_gpu_plain(path))
        what_plain("the default one of GPUs", cd_default_model_gpu_why(NULL, NULL, why), out);
    else if (v && !cd_json_need_count(v, "programs", &n, NULL)) {
        const bool here = is_of_here(v, &a), gpu = user_model_backend(v, &a) != NULL;
        (void)snprintf(
            out, CD_DEFAULT_MODEL_SAID,
            here && gpu ? "corrected by %llu programs measured on this machine's GPU (%.120s)"
                        : "corrected by %llu programs measured on %.120s",
            (unsigned long long)n, here && !gpu ? "this machine" : user_model_text(v, "cpu", &a));
    } else why_not_here(why), what_plain("the default one", why, out);
    cd_arena_free(&a);
    return out;
}

/* The machine of a correction, where that is this one. A GPU says itself what it is; the other
 * members of *here stay as they are. */
static bool find_corrected(const cd_json *v, cd_arena *a, const char *const *name, size_t n,
                           cd_describe_match *here) {
    bool found = false;
    for (size_t i = 0; v && !found && i < n; i++)
        if (!strcmp(name[i], user_model_text(v, "name", a))) {
            here->index = i;
            here->exact = found = true;
        }
    return found;
}

/* A GPU of this machine, described where somebody does. False: the file is not of one. */
static bool find_gpu(const cd_json *v, cd_arena *a, const cd_device_table *devices,
                     const char *const *name, size_t n, cd_describe_match *here) {
    *here = (cd_describe_match){0};
    if (!v || !user_model_backend(v, a) || !find_corrected(v, a, name, n, here)) return false;
    (void)snprintf(here->cpu, sizeof here->cpu, "%s", user_model_text(v, "cpu", a));
    (void)snprintf(here->microarch, sizeof here->microarch, "%s", user_model_backend(v, a));
    /* unknown */
    for (int k = CD_N_DEVICE_KIND + CD_N_DEVICE_RATIO; k < CD_N_DEVICE_COL; k++) here->here[k] = 1;
    if (devices) (void)cd_device_table_vector(devices, name[here->index], here->here, NULL);
    return true;
}

static cdmpp_status find(const char *path, const cd_device_table *devices, const char *const *name,
                         size_t n, cd_describe_match *here, bool *gpu, cdmpp_err *err) {
    cd_arena a = {0};
    const cd_json *v;
    cdmpp_status st = CDMPP_OK;
    cd_here_look(path, &a, &v, NULL);
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
    cd_log_put(log, here->exact && !strstr(what, "not used") ? CD_LOG_INFO : CD_LOG_WARNING,
               "cost model: %s%s%s; device: %s, %s (%s, %s)%s", path,
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
