/* remote_records -- the programs of records, measured by workers on other machines, and the worker that measures them.
 *
 *   logs ──> records that the output lacks ──> cd_remote_run: one JSON line each ──> workers ──> the same outputs as a local run
 *
 * The program's code is not sent: a worker lowers and compiles the record itself, for its own processor. */
#ifndef CD_REMOTE_RECORDS_H
#define CD_REMOTE_RECORDS_H

#include "profiler/records/records.h"

typedef struct cd_remote_records_options {
    const char *const *host;    /* (n_host) "user@board" */
    size_t n_host;
    int port;                   /* of ssh; 0: its default */
    const char *transport;      /* as for cd_remote_reach */
    cd_measure_options measure; /* how workers measure: what is not 0 of its budget, limits, memory, isa, flags, device, cold, cool, pin */
    int lease_s;                /* 0: the policy's default */
    const char *const *path;    /* (n_path) the logs, to read them again for later rounds */
    size_t n_path;
    size_t limit;               /* records of a round; 0: all */
    int rounds;                 /* 0: 1 */
    int threads;                /* of a program; 0: the record's */
    const cd_record_listener *listener; /* lines that cannot be used, jobs that no worker answered; notes: programs and workers that failed */
} cd_remote_records_options;

typedef struct cd_remote_records_tally {
    size_t read, measured, failed, lost, known; /* lost: without an answer; known: the output has them already */
} cd_remote_records_tally;

/* Measure what `file` gives; maker->reference: workers check results. Errors: those of cd_remote_run and cd_remote_reach, EIO, ENOMEM. */
cdmpp_status cd_remote_records_run(const cd_remote_records_options *o, cd_record_maker *maker, cd_record_reader *file,
                                   cd_record_output *out, cd_remote_records_tally *t, cdmpp_err *err);

/* The counts as a line for people, or as a JSON object with "bad", all items that failed. */
void cd_remote_records_put(cd_buf *b, const cd_remote_records_tally *t, size_t bad, bool json);

typedef struct cd_remote_worker_options {
    cd_measure_options measure;
    int dialect;                /* as for cd_record_maker */
    int threads;                /* of a program; 0: the record's, at most all processors */
} cd_remote_worker_options;

/* Be a worker: serve jobs of standard input until it ends, answers go to standard output. Call it before other threads are begun.
 * Errors: those of cd_measure_open and cd_remote_serve. */
cdmpp_status cd_remote_worker_run(const cd_remote_worker_options *o, cdmpp_err *err);
#endif
