/* store_measured -- what this process measures goes into a store: with all its statistics, and the machine that it was measured on. */
#ifndef CD_STORE_MEASURED_H
#define CD_STORE_MEASURED_H
#include "profiler/measure/measure.h"

typedef struct cd_store_measured_options {
    const char *path;           /* of the store; made where it is not there */
    const char *device;         /* name of a GPU, as its back end was asked for it; NULL: "" */
    const char *compiler;       /* flags of the compiler; NULL: "" */
    bool cold;                  /* the times are of cold caches */
} cd_store_measured_options;

typedef struct cd_store_measured cd_store_measured;

/* `o` is borrowed until close. Errors: those of cd_store_open, ENOMEM. */
cdmpp_status cd_store_measured_open(CD_KEEP const cd_store_measured_options *o, CD_GIVE cd_store_measured **out, cdmpp_err *err);
/* A record with its result; `line`: where it stands in the record log. The device is the processor by its name, or o->device where
 * the record's target is a GPU's. Errors: those of cd_store_add_record. */
cdmpp_status cd_store_measured_add(cd_store_measured *k, const cd_record *r, const cd_task *t, const cd_measure_result *m, long line, cdmpp_err *err);
/* What is added from now on was measured on that host with that processor, in place of this machine. Both are borrowed until the
 * next call. */
void cd_store_measured_host(cd_store_measured *k, CD_KEEP const char *host, CD_KEEP const char *cpu);
/* Commits. Errors: EIO. NULL is fine. */
cdmpp_status cd_store_measured_close(CD_TAKE cd_store_measured *k, cdmpp_err *err);
#endif
