/* inputs -- the files that a run reads, in order, and a name for all of them. */
#ifndef CD_INPUTS_H
#define CD_INPUTS_H
#include "dataset/extract/extract.h"

typedef struct cd_inputs {
    cd_arena arena;
    const char **path; /* (n) as given, or the folder as given + "/" + the path in it */
    uint64_t *size;    /* (n) bytes as they are, packed or not                        */
    size_t n;
    uint64_t bytes;
} cd_inputs;

/* Files are taken as given; of a folder all *.json, *.jsonl and *.log (plain or
 * with .gz .xz .zst), sorted by path. Of shard i/n the files whose middle byte
 * lies in the i-th n-th of all bytes: shards in order give the whole in order.
 * Errors: EIO, EUSAGE (nothing to read), ENOMEM. */
cdmpp_status cd_inputs_list(const cd_extract *x, cd_inputs *out, cdmpp_err *err);
void cd_inputs_free(cd_inputs *in);
/* Digest of paths, sizes, times of change and options that matter: equal means
 * that a run can go on where another stopped. */
cdmpp_status cd_inputs_fingerprint(const cd_extract *x, const cd_inputs *in, char out[65], cdmpp_err *err);
#endif
