/* objseal -- a file that knows whether it is whole.
 *
 *   | bytes ... | "cdmpp-obj " SHA-256 of the bytes, 64 hex digits "\n" |
 *
 * A loader of ELF files does not look behind their sections. Any thread. */
#ifndef CD_OBJECT_SIGNATURE_H
#define CD_OBJECT_SIGNATURE_H
#include <stdbool.h>

#include "base/core/core.h"

#define CD_OBJSEAL_BYTES 75

/* Append the seal. Errors: EIO. */
cdmpp_status cd_object_signature_put(const char *path, cdmpp_err *err);
bool cd_object_signature_good(const char *path);
#endif
