/* link -- the cost of a transfer from one device's memory to another's, as a piecewise linear
 * function of its bytes.
 *
 *   seconds │            ____/   bandwidth of the memory
 *           │      _____/        of a cache
 *           │_____/              latency
 *           └──────────────────> bytes            one such line for each direction: write, read
 *
 *   (1) pieces ascend in bytes from 0; a piece holds the seconds at its first byte and the seconds
 *       of each byte more, none below 0; pieces meet: cost never falls when bytes grow;
 *   (2) 0 bytes take 0 s: nothing is sent. 1 byte takes the latency. From a device to itself
 *       nothing costs anything ; a link X -> X is the cost of a copy within its memory, which only
 *       cd_link_table_find gives;
 *   (3) a link that is not in the table is an error that names both devices: there is no default;
 *   (4) one link a (from, to): a second one replaces the first.
 * As text: {"cdmpp_links": 1, "links": [{"from": "cpu0", "to": "ocl0", "how": "write", "n": 30,
 * "noise": 0.04,
 *   "pieces": [[0, 4e-6, 2e-11], [1048576, 2.5e-5, 1e-10]]}]}, seconds and bytes. One thread
 *   changes a table; any thread may read it. */
#ifndef CD_LINK_H
#define CD_LINK_H

#include "base/core/core.h"

typedef struct cd_link_piece {
    double bytes, seconds, s_per_byte; /* from here; at its first byte */
} cd_link_piece;

typedef struct cd_link {
    const char *from, *to, *how; /* how: "copy", "write", "read", "map", ... */
    uint32_t n_piece, n;         /* n: measured pairs */
    const cd_link_piece *piece;  /* (n_piece), at least one */
    double noise;                /* relative standard deviation of the pairs around the pieces */
} cd_link;

typedef struct cd_link_table {
    cd_arena arena;
    cd_link *link;
    size_t n, cap;
} cd_link_table;

/* An empty table; free everything in it (a zeroed one is fine). */
void cd_link_table_init(cd_link_table *l);
void cd_link_table_free(cd_link_table *l);
/* Add a link with the given pieces; all is copied. Errors: EINVALID (see (1)), ENOMEM. */
cdmpp_status cd_link_table_add(cd_link_table *l, const cd_link *one, cdmpp_err *err);
/* Fit measured pairs (n >= 3, in any order, bytes >= 1, a size may be there more than once) and
 * add. Errors: EINVALID, ENOMEM. */
cdmpp_status cd_link_table_fit(cd_link_table *l, const char *from, const char *to, const char *how,
                               const double *bytes, const double *seconds, size_t n,
                               cdmpp_err *err);
/* NULL: there is none. */
const cd_link *cd_link_table_find(const cd_link_table *l, const char *from, const char *to);
/* Seconds of one link; 0 bytes and fewer: 0. */
double cd_link_cost(const cd_link *l, int64_t bytes);
/* Bytes a second of a large transfer; latency of a small one. */
double cd_link_bandwidth(const cd_link *l);
double cd_link_latency(const cd_link *l);

/* The table as JSON, from and to a file or a text. Errors: EIO, EPARSE, ESCHEMA, EINVALID, with the
 * path and the link's number; ENOMEM. */
cdmpp_status cd_link_table_read(cd_link_table *l, const char *path, cdmpp_err *err);
cdmpp_status cd_link_table_write(const cd_link_table *l, const char *path, cdmpp_err *err);
cdmpp_status cd_link_table_parse(cd_link_table *l, const char *text, size_t n, cdmpp_err *err);
void cd_link_table_print(const cd_link_table *l, cd_buf *out); /* the text above */
#endif
