/* offload_rules -- a text file of rules: which devices can run which operators, and which chains of
 * operators they run as one; and its use on a graph.
 *
 *   host cpu                                                  runs everything
 *   pattern npu conv_bias_relu: conv2d -> bias_add -> relu? where dtype=float16|int8, 1.groups=1
 *   support npu conv2d dense where dtype=float16|int8, k<=4096
 *   refuse  npu conv2d where kernel>=11
 *   place   layer4.* npu                                      the user's decision; * stands for any
 *                                                             letters
 *   format  npu dtype=int8 layout=nchw rate=4e9               its values, where the host's are
 *                                                             float32 and laid out as they were
 *                                                             loaded
 *
 *   graph  conv ─> bias ─> relu ─> sort  matches  [conv bias relu] npu, table line 2
 *                                        ops      sort: cpu only ("no support line of npu for
 *                                                 sort")
 *
 *   (1) one line one rule, # to the end of a line is a comment; order counts: patterns are tried in
 *       the order of the file, each over the whole graph in its order, and take what is not yet
 *       taken (MergeComposite of TVM v0.9: greedy, no cost);
 *   (2) a pattern is a chain: each next operator reads the one before, and no other operator reads
 *   the results inside the chain; a|b either,
 *       x? may be missing (the longer match is tried first);
 *   (3) condition: attribute, one of = != < <= > >= %, value or values with |; "2.k" is attribute k
 *   of the chain's second operator, no number:
 *       of every operator of the pattern. Numbers compare as numbers. An operator without the
 *       attribute does not meet it.
 *       % is "divisible by". An attribute's values are texts: dtype, shape as "n" "c" "h" "w" or
 *       what the caller calls them;
 *   (4) a device supports an operator if a support line fits and no refuse line does; by a pattern,
 *       all of its operators together, without support lines but not against a refuse line or a
 *       place line;
 *   (5) errors, with file and line of both: a support and a refuse line with the same operator and
 *       conditions; two place lines that name one operator with two devices; a place line on a
 *       device that refuses or does not support it (where nothing of a pattern allows it), a device
 *       that is placed on and has no line; a refuse line of the host; two format lines of one
 *       device.
 *   (6) format: dtype one of int8|float16|bfloat16|float32, layout nchw|nhwc, rate bytes of a value
 *   that the host converts in a second.
 * Source: BYOC in TVM v0.9 (patterns, MergeComposite). Strings live in the rules' arena. Read by
 * one thread, then read-only. */
#ifndef CD_OFFLOAD_RULES_H
#define CD_OFFLOAD_RULES_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"

typedef struct cd_offload_rules cd_offload_rules;

/* Parses rules. path is for messages; the text is copied. Errors, with path and line: EPARSE,
 * EINVALID (5), ENOMEM. */
cdmpp_status cd_offload_parse(const char *path, const char *text, size_t n,
                              CD_GIVE cd_offload_rules **out, cdmpp_err *err);
/* The same from a file. */
/* EIO too */
cdmpp_status cd_offload_read(const char *path, CD_GIVE cd_offload_rules **out, cdmpp_err *err);
void cd_offload_free(CD_TAKE cd_offload_rules *r); /* NULL is fine */
/* the host first */
uint32_t cd_offload_devices(const cd_offload_rules *r, CD_KEEP const char *const **name);
/* The value of a key ("dtype", "layout", "rate") in the format line of a device; NULL: it has
 * none. */
const char *cd_offload_format(const cd_offload_rules *r, uint32_t device, const char *key);
/* The rules as they were read, one line each: "line, kind, device, what". only: one device,
 * UINT32_MAX: all; patterns: only pattern lines. */
void cd_offload_print(const cd_offload_rules *r, uint32_t only, bool patterns, cd_buf *out);

typedef struct cd_offload_attr {
    const char *key, *value;
} cd_offload_attr;

typedef struct cd_offload_op {
    const char *name, *type; /* "layer1.conv", "conv2d" */
    /* in[first .. first + n_in): operators that it reads, each smaller than itself */
    uint32_t n_attr, first, n_in;
    const cd_offload_attr *attr; /* (n_attr) */
} cd_offload_op;

typedef struct cd_offload_graph {
    uint32_t n_op, n_in;
    const cd_offload_op *op; /* (n_op) */
    const uint32_t *in;      /* (n_in) */
} cd_offload_graph;

typedef struct cd_offload_match {
    const char *pattern;  /* its name */
    uint32_t device;      /* position in cd_offload_devices */
    long line;            /* of the file */
    uint32_t first, n_op; /* member[first .. first + n_op), in the chain's order */
    bool taken;           /* by (1); the others overlap with one that was */
} cd_offload_match;

typedef struct cd_offload {
    cd_arena arena;
    uint32_t n_device, n_match;
    cd_offload_match *match; /* (n_match) in the order of (1) */
    uint32_t *member;
    bool *able;       /* (n_op, n_device) by a support line, alone */
    uint32_t *place;  /* (n_op) device by a place line, else UINT32_MAX */
    long *place_line; /* (n_op) 0: none */
    /* (n_op, n_device) what decides: "plan.rules:4: refuse", "no support line"; NULL: able */
    const char **why;
} cd_offload;

/* Applies rules to a graph: who can run each operator, places and matches. Errors: EINVALID ((5),
 * an input that is not before its operator; with names), ESCHEMA (a place line that no operator
 * fits), ENOMEM. Free after an error too. */
cdmpp_status cd_offload_apply(const cd_offload_rules *r, const cd_offload_graph *g, cd_offload *out,
                              cdmpp_err *err);
void cd_offload_done(cd_offload *o);

/* ---- which matches pay ---- */
/* Seconds of operators (n_op) that a match runs as one; of a single operator: n_op 1, match NULL.
 * Infinity: not possible. */
typedef double cd_offload_time(const cd_offload_match *m, const uint32_t *op, uint32_t n_op,
                               uint32_t device, void *ctx);
typedef struct cd_offload_options {
    cd_offload_time *seconds;
    void *ctx;
    const int64_t *bytes;             /* (n_op) of each operator's result */
    const struct cd_place_link *link; /* (n_link) between devices as numbered by the rules */
    uint32_t n_link;
} cd_offload_options;

typedef struct cd_offload_plan {
    cd_arena arena;
    uint32_t *where; /* (n_op) device */
    uint32_t *match; /* (n_op) the match that it is run by; UINT32_MAX: alone */
    /* this plan; all of (1) and all support lines taken whatever it costs; all on the host */
    double sum_s, byoc_s, host_s;
    bool exact; /* every cover was tried */
} cd_offload_plan;
/* The least sum of seconds and copies (placement.h) over covers by matches that do not overlap:
 * every cover where there are at most 4096 of them, else from (1) by adding, dropping and swapping
 * single matches. Never above byoc_s or host_s. A match runs as one on its device or not at all.
 * Errors: those of placement.h. */
cdmpp_status cd_offload_choose(const cd_offload_rules *r, const cd_offload_graph *g,
                               const cd_offload *o, const cd_offload_options *a,
                               cd_offload_plan *out, cdmpp_err *err);
void cd_offload_plan_free(cd_offload_plan *p);
#endif
