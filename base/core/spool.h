/* spool -- large arrays in a file on disk, as if they were in memory; one file may be read by
 * several processes.
 *
 *   cd_spool_new(folder, need, most) -> cd_spool_take(n, size) ... -> arrays of zeros, read and
 *     written as any other
 *   cd_spool_rest              -> where more than `most` bytes of them are in memory: the file
 *                                 keeps them, memory does not
 *
 * (1) An array stays where it is, and its contents are the same before and after a rest: the next
 *     access reads the file.
 * (2) The file has no name: it is removed as soon as it is made, so a crash leaves nothing behind.
 *     Its space is reserved when an array is taken, so a full disk is an error and not a signal
 *     later.
 * (3) The kernel keeps pages of the file in memory that no one else needs, as of any file: they do
 *     not count for the process.
 * (4) A spool in memory is such a file without a disk (memfd): it is there for other processes to
 *     read.
 *
 *   one process: cd_spool_new, takes, writes -> cd_spool_place_of -told-> others: cd_spool_open,
 *     the same takes: what was written, to be read
 *
 * Any thread may rest at any time, others may read and write meanwhile; taking is for one
 * thread. */
#ifndef CD_SPOOL_H
#define CD_SPOOL_H
#include <stdbool.h>
#include <stddef.h>

#include "base/core/mem.h"
#include "cdmpp.h"

typedef struct cd_spool cd_spool;

/* need: bytes that will be taken; most: bytes in memory at most. folder NULL: in memory. folder "":
 * $TMPDIR where that is on a disk with so much room, else /var/tmp. Errors: EIO (no file can be
 * made there, too little room), EUNSUPPORTED (the folder is itself in memory: tmpfs), ENOMEM. */
cdmpp_status cd_spool_new(const char *folder, size_t need, size_t most, CD_GIVE cd_spool **out,
                          cdmpp_err *err);
/* n * size bytes, zeros, of an opened spool those of the same take and only to be read; they live
 * as long as the spool. NULL: no space on the disk, or no address space; cd_spool_failed says
 * why. */
CD_KEEP void *cd_spool_take(cd_spool *s, size_t n, size_t size);
/* EIO with the folder and the bytes that it would not hold, or ENOMEM; OK where all were taken. */
cdmpp_status cd_spool_failed(const cd_spool *s, cdmpp_err *err);
/* To be called every few MB of work. NULL is fine. */
void cd_spool_rest(cd_spool *s);
size_t cd_spool_bytes(const cd_spool *s);
/* Not of NULL, nor of one in memory. */
bool cd_spool_on_disk(const cd_spool *s);

/* Where another process of this machine and user finds the file, as long as this one has it. */
typedef struct cd_spool_place {
    int process, file;
} cd_spool_place;
cd_spool_place cd_spool_place_of(const cd_spool *s);
/* Errors: EIO (there is no such process, or none whose files this one may open), ENOMEM. */
cdmpp_status cd_spool_open(cd_spool_place place, size_t most, CD_GIVE cd_spool **out,
                           cdmpp_err *err);
/* Where the file is: a place for other temporary files of the same use. "" in memory, and of an
 * opened spool. */
CD_KEEP const char *cd_spool_folder(const cd_spool *s);
void cd_spool_free(CD_TAKE cd_spool *s); /* NULL is fine */
#endif
