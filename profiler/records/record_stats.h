/* record_stats -- what a run has measured, beside its records: statistics as JSON lines, counts.
 *
 *   {"schema":"cdmpp.profile_stats","host":{..},"warnings":"..","policy":{..}}          once a run
 *   {"file":..,"line":3,"record":17,"workload_key":..,"error_no":0,"n":12,"median_s":..,...}   each program
 *
 * "record" is the line of the record in the file of records. Times in seconds. One thread. */
#ifndef CD_RECORD_STATS_H
#define CD_RECORD_STATS_H
#include "profiler/host/host.h"
#include "profiler/records/record_program.h"

typedef struct cd_record_stats {
    size_t lines, measured, failed, known, bad, noisy, wide, cached, wrong; /* known: were in the output already */
    size_t error_no[CD_ERROR_NO_MAX + 1], reason[CDMPP_STATUS_COUNT];
    double begin_s, build_s, run_s;
    cd_host_time begin;
} cd_record_stats;

/* Zero the counts and note the time; add one result. */
void cd_record_stats_begin(cd_record_stats *s, double now_s);
void cd_record_stats_add(cd_record_stats *s, const cd_measure_result *m);
/* The first line. */
void cd_record_stats_head(cd_buf *b, const cd_host_info *h, const char *warnings, const cd_timing_policy *p, int threads);
/* `host` measured it; NULL: this machine. */
void cd_record_stats_line(cd_buf *b, const cd_record_program *j, long record, const cd_measure_result *m, const char *host);
/* {"records":..,"measured":..,...} */
void cd_record_stats_json(cd_buf *b, const cd_record_stats *s, double now_s);
/* For people, lines with their ends. */
void cd_record_stats_text(cd_buf *b, const cd_record_stats *s, double now_s);
/* "compile error" of 2; TVM's numbers. */
const char *cd_record_stats_error(int error_no);
#endif
