/* record_measure -- measures the programs of a stream of records on this machine.
 *
 *   batch k:   read, generate, compile │ measure, write              on the last processors
 *   batch k+1:                         │ read, generate, compile     on the others, at the same time
 *
 *   (1) a record that the output has often enough is not measured again, so a run that was cut off goes on where it ended;
 *   (2) a program that crashes, hangs, does not compile or is wrong becomes a record with its error number (measure.h);
 *   (3) compiling and measuring overlap only where a program leaves processors to the compilers and where overlapping is
 *       faster; else they alternate, which also disturbs the measurements least. */
#ifndef CD_RECORD_MEASURE_H
#define CD_RECORD_MEASURE_H

#include "profiler/records/record_listener.h"
#include "profiler/records/record_output.h"
#include "profiler/records/record_stats.h"

typedef struct cd_record_measure_options {
    cd_measure_options measure; /* how; its `threads` is not used */
    const char *const *path;    /* (n_path) the logs, to read them again for later rounds */
    size_t n_path;
    size_t limit;               /* records of a round; 0: all */
    int rounds;                 /* until each record stands so often in the output, one round after the other; 0: 1 */
    int threads;                /* of a program; 0: the record's, at most all processors */
    int jobs;                   /* compilers at a time; 0: one per processor */
    const cd_record_listener *listener; /* lines that cannot be used, in the first round; notes: programs that failed, an unsteady machine */
} cd_record_measure_options;

/* Measure what `file` gives (it is read to its end) with `m`, opened with o->measure by the caller, because that forks and
 * must come first. `sum` gets the counts but for sum->bad. One call a process at a time: it moves this thread between
 * processors. Errors: EINTERRUPTED (*o->measure.stop), EIO, EBACKEND, ENOMEM. */
cdmpp_status cd_record_measure_run(const cd_record_measure_options *o, cd_measure *m, cd_record_maker *maker, cd_record_reader *file, cd_record_output *out,
                                   cd_record_stats *sum, cdmpp_err *err);
#endif
