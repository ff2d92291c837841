/* record_output -- where measured programs are written: the log of records, a file of statistics, and what the caller adds.
 *
 *   program + result ──> one line of the record log │ one JSON line of statistics │ more(), a schedule database for one
 *
 * One thread may claim while another one puts, as with the record log. */
#ifndef CD_RECORD_OUTPUT_H
#define CD_RECORD_OUTPUT_H
#include "profiler/records/record_program.h"

/* One measured program. */
typedef struct cd_record_measured {
    const cd_record_program *job;
    const cd_record *record;    /* with its costs, as written */
    const cd_task *task;
    const cd_measure_result *result;
    const char *host, *device;  /* another machine that measured it, and what that says it is; NULL: this machine */
    long line;                  /* of the record log */
} cd_record_measured;

typedef struct cd_record_output_options {
    const char *path;           /* the record log */
    bool retry;                 /* as for cd_record_log_open */
    const char *stats;          /* file of statistics, appended to; NULL: none */
    /* Called after the record was written; NULL: nothing more. An error ends the run. */
    cdmpp_status (*more)(void *ctx, const cd_record_measured *m, cdmpp_err *err);
    void *ctx;
} cd_record_output_options;

typedef struct cd_record_output cd_record_output;

/* `o` and its texts are borrowed until close. Errors: those of cd_record_log_open. */
cdmpp_status cd_record_output_open(CD_KEEP const cd_record_output_options *o, CD_GIVE cd_record_output **out, cdmpp_err *err);
/* Open the file of statistics, where there is one, and write its first line. Errors: EIO. */
cdmpp_status cd_record_output_begin(cd_record_output *o, const cd_buf *head, cdmpp_err *err);
/* As cd_record_log_claim. */
cdmpp_status cd_record_output_claim(cd_record_output *o, cd_record_id id, unsigned limit, bool *mine, cdmpp_err *err);
/* Write one program to all three; m->line is set here. Errors: EIO, ENOMEM, those of more(). */
cdmpp_status cd_record_output_put(cd_record_output *o, cd_record_measured *m, cdmpp_err *err);
/* All is on disk after OK. Errors: EIO. NULL is fine. */
cdmpp_status cd_record_output_close(CD_TAKE cd_record_output *o, cdmpp_err *err);
#endif
