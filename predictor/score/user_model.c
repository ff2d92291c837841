/* The folder of the user's models: what lies there, what is used on this machine, and names of new
 * files. */
#include "predictor/score/user_model.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/io.h"
#include "learner/model/model.h"

static const char ending[] = ".cdmpp", unused[] = "and is not used";

/* ---- the folder ---- */
const char *cd_user_model_folder(cd_arena *a) {
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
const char *cd_user_model_text(const cd_json *here, const char *key, cd_arena *a) {
    cd_str s;
    const char *p = cd_json_need_str(here, key, &s, NULL) ? NULL : cd_str_dup(a, s);
    return p ? p : "?";
}

const char *cd_user_model_backend(const cd_json *here, cd_arena *a) {
    return cd_json_get(here, "backend") ? cd_user_model_text(here, "backend", a) : NULL;
}

bool cd_user_model_is_of(const cd_json *here, const char *gpu, cd_arena *a,
                         char differs[CD_DESCRIBE_DIFFERS]) {
    cd_describe_identity file, cpu;
    const cd_json *machine = cd_json_get(here, "machine");
    const char *backend = cd_user_model_backend(here, a);
    differs[0] = 0;
    if (!machine || cd_describe_identity_read(machine, &file, NULL)) return false;
    if (backend) return cd_describe_gpu_is_here(backend, gpu, &file, differs);
    return !cd_describe_identity_cpu("", &cpu, NULL) &&
           !cd_describe_identity_differs(&file, &cpu, differs);
}

bool cd_user_model_same_name(const cd_json *here, cd_arena *a) {
    cd_describe_identity cpu;
    return !cd_describe_identity_cpu("", &cpu, NULL) &&
           !strcmp(cpu.says, cd_user_model_text(here, "cpu", a));
}

bool cd_user_model_foreign(const char *path, unsigned *owner) {
    struct stat s;
    *owner = 0;
    if (stat(path, &s)) return false;
    *owner = (unsigned)s.st_uid;
    return s.st_uid != 0 && s.st_uid != geteuid();
}

bool cd_user_model_used(const cd_user_model *f, const char *gpu, cd_arena *a,
                        char why[CD_USER_MODEL_WHY]) {
    char differs[CD_DESCRIBE_DIFFERS];
    unsigned owner;
    const char *cpu = f->here ? cd_user_model_text(f->here, "cpu", a) : "";
    why[0] = 0;
    if (cd_user_model_foreign(f->path, &owner))
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
    else if (!cd_user_model_is_of(f->here, gpu, a, differs))
        (void)snprintf(why, CD_USER_MODEL_WHY, "is of another %s (%.120s) %s%s%s",
                       cd_user_model_backend(f->here, a) ? "GPU" : "processor", cpu, unused,
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

size_t cd_user_model_list(cd_arena *a, bool gpu, const cd_user_model **out) {
    const char *folder = cd_user_model_folder(a), *const * path;
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
    const char *is = f->here ? cd_user_model_backend(f->here, a) : NULL;
    if (!of || !is != !backend || (is && strcmp(is, backend) != 0)) return false;
    return !cd_describe_identity_read(of, &file, NULL) &&
           !cd_describe_identity_differs(&file, machine, differs);
}

cdmpp_status cd_user_model_path(cd_arena *a, const char *backend,
                                const cd_describe_identity *machine, const char **out,
                                cdmpp_err *err) {
    const char *folder = cd_user_model_folder(a);
    const cd_user_model *f;
    unsigned owner;
    if (!folder)
        return CD_FAIL(err, EUSAGE,
                       "nowhere to keep the model: neither XDG_DATA_HOME nor HOME names a folder; "
                       "--out names a file");
    CD_TRY(make_folder(a, folder, err));
    const size_t n = cd_user_model_list(a, backend != NULL, &f);
    for (size_t i = 0; i < n; i++)
        if (!cd_user_model_foreign(f[i].path, &owner) && is_of_machine(&f[i], backend, machine, a))
            return *out = f[i].path, CDMPP_OK;
    return name_of(a, folder, backend ? backend : "cpu", machine, out, err);
}
