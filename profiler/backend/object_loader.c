/* Loads a compiled C program with dlopen. OpenMP's library is pinned, because its waiting threads
 * would crash if it were unloaded with the last program. */
#include "profiler/backend/backend.h"

#include <dlfcn.h>
#include <stdio.h>

static void keep_openmp(void *symbol) {
    Dl_info where;
    if (dladdr(symbol, &where) && where.dli_fname)
        (void)dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

cdmpp_status cd_object_loader_open(const cd_build *p, int threads, void **handle,
                                   cd_object_loader_entry **entry, cdmpp_err *err) {
    const char *name = p->code->launch[0].entry;
    void *h = *handle = dlopen(p->object, RTLD_NOW | RTLD_LOCAL);
    if (!h) return CD_FAIL(err, EBACKEND, "cannot load the object: %.180s", dlerror());
    union { /* POSIX: what dlsym gives may be a function */
        void *object;
        cd_object_loader_entry *entry;
        void (*threads)(int n);
    } u = {dlsym(h, name)};
    *entry = u.entry;
    if (!u.object) return CD_FAIL(err, EBACKEND, "the object has no function %.80s", name);
    u.object = dlsym(h, "omp_set_num_threads");
    if (!u.object) return CDMPP_OK;
    keep_openmp(u.object);
    u.threads(threads);
    return CDMPP_OK;
}

cdmpp_status cd_object_loader_parts(void *handle, const cd_codegen_code *code,
                                    cd_object_loader_part **out, cdmpp_err *err) {
    char name[256];
    const int n = snprintf(name, sizeof name, "%s_part", code->launch[0].entry);
    union {
        void *object;
        cd_object_loader_part *part;
    } u = {n > 0 && (size_t)n < sizeof name ? dlsym(handle, name) : NULL};
    *out = u.part;
    return u.object ? CDMPP_OK
                    : CD_FAIL(err, EBACKEND, "the object has no function %.80s_part",
                              code->launch[0].entry);
}

void cd_object_loader_threads(void *handle, int threads) {
    union {
        void *object;
        void (*threads)(int n);
    } u = {handle ? dlsym(handle, "omp_set_num_threads") : NULL};
    if (u.object) u.threads(threads);
}

void cd_object_loader_close(void *handle) {
    if (handle) dlclose(handle);
}
