/* describe_identity -- which processor or GPU something was measured on, and whether that is this
 * one. profiler/describe/describe.h includes it.
 *
 *   /proc/cpuinfo, hwloc, driver ──> cd_describe_identity ──> in a file:
 *     "machine": {"says": "AMD EPYC", "maker": "AuthenticAMD", "family": 25, "model": 1, ...}
 *   identity in a file x identity of this machine ──> what differs, in words;
 *                                                     nothing: it is the same
 *
 * (1) The name that a processor says is not enough: "AMD EPYC" is what virtual machines of four
 *     generations say, and a name of a GPU is sold with different numbers of units and memory.
 * (2) What must be known is compared also where one side does not know it: an unknown core count is
 *     not any core count. Sizes of caches and memory, which systems report less reliably, differ
 *     only where both are known.
 * Plain data: any thread. */
#ifndef CD_DESCRIBE_IDENTITY_H
#define CD_DESCRIBE_IDENTITY_H
#include "base/text/text.h"

enum {
    CD_IDENTITY_CORES,
    CD_IDENTITY_VECTOR_BITS,
    CD_IDENTITY_L1_KB,
    CD_IDENTITY_L2_KB,
    CD_IDENTITY_L3_KB,
    CD_IDENTITY_MEMORY_GB,
    CD_N_IDENTITY
};

typedef struct cd_describe_identity {
    char says[128];                /* what processor or driver call themselves */
    char maker[32], microarch[24]; /* "AuthenticAMD", "zen3"; "": not reported, not listed */
    int family, model;             /* as the maker numbers them; -1: not reported */
    char isa[16];                  /* "AVX-512", "NEON"; "": none is known */
    double number[CD_N_IDENTITY];  /* below 0: not known */
} cd_describe_identity;

struct cd_describe_entry;
/* Of this machine's processor; `root` stands before /proc ("": this machine). Errors: EBACKEND (no
 * topology), ENOMEM. */
cdmpp_status cd_describe_identity_cpu(const char *root, cd_describe_identity *out, cdmpp_err *err);
/* Of a GPU that is described already. */
void cd_describe_identity_gpu(const struct cd_describe_entry *e, cd_describe_identity *out);
/* One of which nothing but the name is known: no machine is that. */
cd_describe_identity cd_describe_identity_named(const char *says);
/* Appends the object. */
void cd_describe_identity_put(cd_buf *b, const cd_describe_identity *i);
/* Out of an object that cd_describe_identity_put wrote. Errors: ESCHEMA, ERANGE; texts are cut at
 * their room. */
cdmpp_status cd_describe_identity_read(const cd_json *v, cd_describe_identity *out, cdmpp_err *err);
/* False: they are the same, and out is "". True: what differs, "microarchitecture zen3 (here zen5),
 * cores 8 (here 16)". */
enum { CD_DESCRIBE_DIFFERS = 320 };
bool cd_describe_identity_differs(const cd_describe_identity *file,
                                  const cd_describe_identity *here, char out[CD_DESCRIBE_DIFFERS]);
#endif
