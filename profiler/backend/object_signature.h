/* object_signature -- a digest at the end of a file, which tells whether the file is whole.
 *
 *   | bytes ... | "cdmpp-obj " SHA-256 of the bytes, 64 hex digits "\n" |
 *
 * The loader of ELF files ignores bytes after the last section. Any thread. */
#ifndef CD_OBJECT_SIGNATURE_H
#define CD_OBJECT_SIGNATURE_H

#include "base/core/core.h"

#define CD_OBJSEAL_BYTES 75

/* Append the digest. Errors: EIO. */
cdmpp_status cd_object_signature_put(const char *path, cdmpp_err *err);
/* Does the file end in the digest of what is before it? */
bool cd_object_signature_good(const char *path);
#endif
