/* object_cache -- compiled programs on disk, found by what they were made from.
 *
 *   <folder>/objects/3f/3f9a...e2.so    key: SHA-256 of compiler, flags and text, given by the caller
 *   <folder>/work.<pid>.XXXXXX/         of one process: files being made, links to entries in use
 *
 *   (1) an entry ends in a digest of its bytes (object_signature.h): a damaged one is removed and not found;
 *   (2) entries appear in one step, so any number of processes may share a folder; an entry in use
 *       is linked into the work folder of its process, so that eviction cannot take it away;
 *   (3) above `max_bytes` the least recently used entries are removed; entries that are one file
 *       (programs of one compilation) count once;
 *   (4) a cache that cannot be written (full disk, read-only) finds less and is never an error:
 *       only a work folder is needed, and there is one in TMPDIR.
 * One thread at a time; `find` and `put` may be called from another one than `open`. */
#ifndef CD_OBJECT_CACHE_H
#define CD_OBJECT_CACHE_H

#include "base/core/core.h"

#define CD_OBJCACHE_BYTES ((uint64_t)1 << 30)
#define CD_OBJCACHE_KEY 65 /* 64 hex digits and NUL */
#define CD_OBJCACHE_PATH 512

typedef struct cd_object_cache cd_object_cache;

/* dir NULL: $XDG_CACHE_HOME/cdmpp, ~/.cache/cdmpp; "": nothing is kept. max_bytes 0: CD_OBJCACHE_BYTES.
 * Errors: EIO (no folder to work in), ERANGE (a path too long), ENOMEM. */
cdmpp_status cd_object_cache_open(const char *dir, uint64_t max_bytes, CD_GIVE cd_object_cache **out, cdmpp_err *err);
void cd_object_cache_close(CD_TAKE cd_object_cache *c); /* NULL is fine; evicts, removes the work folder */

CD_KEEP const char *cd_object_cache_work(const cd_object_cache *c); /* folder for files of this process */
/* Path of the entry, in the work folder; false: there is none. */
bool cd_object_cache_find(cd_object_cache *c, const char *key, char path[CD_OBJCACHE_PATH]);
/* Append the digest to a new file of the work folder, once, before it is stored under any key. Errors: EIO. */
cdmpp_status cd_object_cache_seal(const char *file, cdmpp_err *err);
/* Store a file with a digest under a key; false: not kept (see 4). */
bool cd_object_cache_put(cd_object_cache *c, const char *key, const char *file);
/* Remove the entry of a key. */
void cd_object_cache_drop(cd_object_cache *c, const char *key);
/* Evict down to 90 % of max_bytes if there is more than that; returns the bytes that are left. */
uint64_t cd_object_cache_evict(cd_object_cache *c);
#endif
