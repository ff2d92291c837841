/* A digest at the end of a file. A process that is killed while it writes an object, or a full
 * disk, leaves a file that would crash the loader; the digest finds it. */
#include "profiler/backend/backend_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { SEAL = CD_OBJSEAL_BYTES };
static const char mark[] = "cdmpp-obj ";

/* The digest line that the first n bytes must have. */
static bool seal_of(FILE *f, size_t n, char seal[SEAL + 1]) {
    cd_sha256 s;
    char hex[65], b[16384];
    cd_sha256_init(&s);
    for (size_t k; n; n -= k) {
        k = fread(b, 1, n < sizeof b ? n : sizeof b, f);
        if (!k) return false;
        cd_sha256_add(&s, b, k);
    }
    cd_sha256_hex(&s, hex);
    snprintf(seal, SEAL + 1, "%s%s\n", mark, hex);
    return true;
}

static bool size_of(FILE *f, size_t *n) {
    struct stat t;
    if (fstat(fileno(f), &t) != 0 || t.st_size < 0) return false;
    *n = (size_t)t.st_size;
    return true;
}

cdmpp_status cd_object_signature_put(const char *path, cdmpp_err *err) {
    char seal[SEAL + 1];
    size_t n = 0;
    FILE *f = fopen(path, "r+b");
    bool good = f && size_of(f, &n) && seal_of(f, n, seal) && fseek(f, 0, SEEK_END) == 0 &&
                fwrite(seal, 1, SEAL, f) == SEAL;
    const int e = errno;
    if (f && fclose(f) != 0) good = false;
    return good ? CDMPP_OK
                : cd_err_at(err, CD_FAIL(err, EIO, "cannot seal the file: %s", strerror(e)), path,
                            0);
}

bool cd_object_signature_good(const char *path) {
    char seal[SEAL + 1], found[SEAL + 1] = "";
    size_t n = 0;
    FILE *f = fopen(path, "rb");
    const bool good = f && size_of(f, &n) && n > SEAL && seal_of(f, n - SEAL, seal) &&
                      fread(found, 1, SEAL, f) == SEAL && memcmp(seal, found, SEAL) == 0;
    if (f) fclose(f);
    return good;
}
