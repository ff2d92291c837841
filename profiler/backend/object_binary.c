/* Keeps binaries of GPU programs in the object cache. The binaries carry the cache's digest at
 * their end, which is cut off when they are read. */

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "profiler/backend/backend_internal.h"

void cd_object_binary_key(cd_str identity, const cd_codegen_code *code, char key[CD_OBJCACHE_KEY]) {
    const char *prelude = cd_codegen_prelude(code->dialect);
    cd_sha256 h;
    cd_sha256_init(&h);
    cd_sha256_add(&h, "binary", sizeof "binary");
    cd_sha256_add(&h, identity.p, identity.n);
    cd_sha256_add(&h, "", 1);
    cd_sha256_add(&h, prelude, strlen(prelude) + 1);
    cd_sha256_add(&h, code->text.p, code->text.n);
    cd_sha256_hex(&h, key);
}

/* All bytes but the digest, with a 0 byte after them: PTX is a text. */
static void *read_all(const char *path, size_t *n) {
    struct stat s;
    FILE *f = fopen(path, "rb");
    char *p = NULL;
    if (f && fstat(fileno(f), &s) == 0 && s.st_size > CD_OBJSEAL_BYTES) {
        *n = (size_t)s.st_size - CD_OBJSEAL_BYTES;
        p = cd_mem_zalloc(*n + 1, 1);
        if (p && fread(p, 1, *n, f) != *n) cd_mem_free(p), p = NULL;
    }
    if (f) fclose(f);
    return p;
}

bool cd_object_binary_get(const char *dir, uint64_t max_bytes, const char *key, void **bytes,
                          size_t *n) {
    cd_object_cache *c = NULL;
    char path[CD_OBJCACHE_PATH];
    *bytes = NULL;
    if ((dir && !dir[0]) || cd_object_cache_open(dir, max_bytes, &c, NULL)) return false;
    if (cd_object_cache_find(c, key, path)) *bytes = read_all(path, n);
    cd_object_cache_close(c);
    return *bytes != NULL;
}

static bool write_all(const char *path, const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(bytes, 1, n, f) == n;
    if (f && fclose(f) != 0) good = false;
    return good;
}

bool cd_object_binary_put(const char *dir, uint64_t max_bytes, const char *key, const void *bytes,
                          size_t n) {
    cd_object_cache *c = NULL;
    char path[CD_OBJCACHE_PATH];
    if ((dir && !dir[0]) || cd_object_cache_open(dir, max_bytes, &c, NULL)) return false;
    bool good =
        snprintf(path, sizeof path, "%s/new.bin", cd_object_cache_work(c)) < (int)sizeof path &&
        write_all(path, bytes, n);
    if (good) cd_object_cache_drop(c, key);
    good = good && !cd_object_cache_seal(path, NULL) && cd_object_cache_put(c, key, path);
    cd_object_cache_close(c);
    return good;
}
