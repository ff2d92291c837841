/* Versions of the libraries that this program is linked with. Symbols are looked up by name with
 * dlsym(): a direct call would make every command load every library. */
#include "base/cli/library_versions.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* How a library returns its version: as a text, as three numbers, or into a buffer. */
typedef enum { TEXT, THREE, BUFFER } how;

static const struct {
    const char *name, *symbol;
    how how;
} known[] = {
    {"XGBoost", "XGBoostVersion", THREE}, {"OpenBLAS", "openblas_get_config", TEXT},
    {"HDF5", "H5get_libversion", THREE},  {"libyaml", "yaml_get_version_string", TEXT},
    {"zstd", "ZSTD_versionString", TEXT}, {"liblzma", "lzma_version_string", TEXT},
    {"zlib", "zlibVersion", TEXT},        {"Open MPI", "MPI_Get_library_version", BUFFER},
};

/* The first word that begins with a digit, or with v and a digit: of "Open MPI v4.1.4, ...". */
static void put_number(const char *text, char *out, size_t n) {
    for (const char *p = text; *p; p += strspn(p, " ")) {
        const size_t len = strcspn(p, " ,");
        const char *digit = p + (*p == 'v');
        if (*digit >= '0' && *digit <= '9') {
            snprintf(out, n, "%.*s", (int)(len - (size_t)(digit - p)), digit);
            return;
        }
        p += strcspn(p, " ");
    }
}

static void ask(void *symbol, how form, cd_library_versions *out) {
    /* POSIX: what dlsym gives may be a function; ISO C has no cast for it. */
    union {
        void *object;
        const char *(*text)(void);
        void (*three)(int *, int *, int *);
        int (*buffer)(char *, int *);
    } call = {symbol};
    char text[1024] = "";
    int v[3] = {0}, n = 0;
    if (form == TEXT) {
        put_number(call.text(), out->version, sizeof out->version);
    } else if (form == THREE) {
        call.three(&v[0], &v[1], &v[2]);
        snprintf(out->version, sizeof out->version, "%d.%d.%d", v[0], v[1], v[2]);
    } else {
        call.buffer(text, &n);
        text[sizeof text - 1] = 0;
        put_number(text, out->version, sizeof out->version);
    }
}

bool cd_library_versions_at(size_t k, cd_library_versions *out) {
    if (k >= sizeof known / sizeof *known) return false;
    out->name = known[k].name;
    out->version[0] = 0;
    void *symbol = dlsym(RTLD_DEFAULT, known[k].symbol);
    if (symbol) ask(symbol, known[k].how, out);
    return true;
}
