/* objbin -- binaries of GPU programs in the cache of compiled programs (objcache.h).
 *
 *   key = SHA-256 of what the device and its compiler are, the prelude, the text
 *   get: the bytes, checked, in memory of the caller's      put: they are found from now on
 *
 * The folder is opened for each call and left as it was: who calls may be killed at any time between
 * two calls. A cache that cannot be used finds nothing and keeps nothing. No state, any thread. */
#ifndef CD_OBJECT_BINARY_H
#define CD_OBJECT_BINARY_H
#include "profiler/backend/backend.h"
#include "profiler/backend/object_cache.h"

/* `identity`: of the back end (backend.h). */
void cd_object_binary_key(cd_str identity, const cd_codegen_code *code, char key[CD_OBJCACHE_KEY]);
/* dir, max_bytes: as cd_object_cache_open has them. One 0 byte stands behind the n; false: there is none. */
bool cd_object_binary_get(const char *dir, uint64_t max_bytes, const char *key, CD_GIVE void **bytes, size_t *n);
/* In place of what is there. */
bool cd_object_binary_put(const char *dir, uint64_t max_bytes, const char *key, const void *bytes, size_t n);
#endif
