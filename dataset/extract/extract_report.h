/* extract_report -- what the commands that extract print: progress, counts, reasons, the command that made a file. */
#ifndef CD_EXTRACT_REPORT_H
#define CD_EXTRACT_REPORT_H
#include "base/cli/cli.h"
#include "dataset/extract/extract.h"

/* Counts, and a table of reasons when lines were skipped. */
void cd_extract_report_text(cd_log *log, const char *out, const cd_extract_stats *s);
/* One JSON object with '\n', schema "cdmpp.extract/1". */
void cd_extract_report_json(cd_buf *b, const char *out, const cd_extract_stats *s, double seconds);
/* The end of a command that came to `st`: both reports to the log and to standard output, or the error. Returns the exit code;
 * 3: some lines were skipped. */
int cd_extract_report_end(cd_log *log, const char *out, const cd_extract_stats *s, double seconds, bool json, cdmpp_status st, cdmpp_err *err);

/* An extraction by `extract` with a progress bar on `log`; sets command_line and progress of x. ctx NULL: this process extracts
 * alone; else a rank that had nothing to do says nothing. Errors: those of `extract`, ENOMEM. */
typedef cdmpp_status cd_extract_report_fn(const cd_extract *x, const void *ctx, cd_extract_stats *s, cdmpp_err *err);
cdmpp_status cd_extract_report_run(cd_extract *x, cd_extract_report_fn *extract, const void *ctx, cd_log *log, cd_extract_stats *s, cdmpp_err *err);
/* The shell line that extracts the same contents: those options of x that change them. */
void cd_extract_report_command(cd_buf *b, const cd_extract *x);
#endif
