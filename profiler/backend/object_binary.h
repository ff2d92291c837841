/* object_binary -- binaries of GPU programs in the cache of compiled programs (object_cache.h).
 *
 *   key = SHA-256 of what the device and its compiler are, the prelude, the text
 *   get: the bytes, checked, in memory of the caller's      put: the bytes are stored under the key
 *
 * The cache is opened and closed in each call: the calling process may be killed at any time between
 * two calls. A cache that cannot be used finds nothing and keeps nothing. No state, any thread. */
#ifndef CD_OBJECT_BINARY_H
#define CD_OBJECT_BINARY_H
#include "profiler/backend/backend_kind.h"
#include "profiler/backend/object_cache.h"

/* The key of a program; identity: of the back end (backend_kind.h). */
void cd_object_binary_key(cd_str identity, const cd_codegen_code *code, char key[CD_OBJCACHE_KEY]);
/* dir, max_bytes: as in cd_object_cache_open. A 0 byte follows the n bytes; the caller frees them. False: not found. */
bool cd_object_binary_get(const char *dir, uint64_t max_bytes, const char *key, CD_GIVE void **bytes, size_t *n);
/* Stores a binary, in place of an older one. False: it was not kept. */
bool cd_object_binary_put(const char *dir, uint64_t max_bytes, const char *key, const void *bytes, size_t n);
#endif
