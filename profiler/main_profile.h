/* main_profile -- what the parts of cdmpp-profile share. Not in the library.
 *
 *   argv -> options (one struct, one table in main_profile.c) -> mode -> its part
 *
 * A mode is a first word ("records") or a flag of its own ("--list-tasks"); a new one is a member
 * and a row in the table of options, a row in the table of modes, and a main_profile_<x>.c. */
#ifndef CD_MAIN_PROFILE_H
#define CD_MAIN_PROFILE_H
#include <signal.h>

#include "base/face.h"

typedef struct cd_main_profile {
    /* what */
    cd_texts operand;           /* behind the mode's word */
    cd_texts task;
    bool dry_run;
    /* how */
    int jobs;
    /* store (main_profile_store.c) */
    const char *store, *device, *target, *operator_name, *workload, *shape, *dtype, *layout, *out;
    int form, as, limit, each;
    bool errors, strict, steps;
    /* every command */
    bool json;
    cd_log *log;
    const volatile sig_atomic_t *stop; /* not 0: end before the next program */
    size_t bad;                 /* items that failed: exit code 3 */
} cd_main_profile;

/* ---- main_profile_records.c ---- */
cdmpp_status cd_main_profile_records_check(const cd_main_profile *o, cdmpp_err *err);
cdmpp_status cd_main_profile_records(cd_main_profile *o, cdmpp_err *err);
/* ---- main_profile_store.c ---- */
#define CD_MAIN_PROFILE_AS "records|csv|json"
cdmpp_status cd_main_profile_store_check(const cd_main_profile *o, cdmpp_err *err);
cdmpp_status cd_main_profile_store(cd_main_profile *o, cdmpp_err *err);
#endif
