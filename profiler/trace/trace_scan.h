/* trace_scan -- a JSON text that is longer than memory, value by value.
 *
 *   {"a": [..], "traceEvents": [ {..}, {..}, ...
 *                                ^value  ^value
 *
 * Only brackets and quotes are matched; whoever wants a value parses its text. */
#ifndef CD_TRACE_SCAN_H
#define CD_TRACE_SCAN_H
#include "base/io/io.h"

#define CD_TRACE_SCAN_MAX ((size_t)64 << 20) /* bytes of one value */

typedef struct cd_trace_scan {
    cd_input_stream *in;
    char *p; /* (n) of (cap) bytes; what stands before `at` is used up */
    size_t n, cap, at;
    long line;       /* of `at`, from 1 */
    bool end;        /* the stream has no more */
    cdmpp_status st; /* what the stream ended with: EPARSE where it is cut off */
    cdmpp_err err;
} cd_trace_scan;

#endif
