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

/* The next byte that is no blank, not taken; -1: the text ends. */
int cd_trace_scan_peek(cd_trace_scan *s);
/* The next byte, taken. */
int cd_trace_scan_take(cd_trace_scan *s);
/* A whole value, taken. Its text stays until the next call. *out NULL: the text ends in it, or
 * `keep` is false. Errors: ERANGE (longer than CD_TRACE_SCAN_MAX; only where it is kept), EPARSE
 * (no value begins here), ENOMEM. */
cdmpp_status cd_trace_scan_value(cd_trace_scan *s, bool keep, cd_str *out, bool *whole,
                                 cdmpp_err *err);
#endif
