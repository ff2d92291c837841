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

/* The shell line that extracts the same contents: those options of x that change them. */
void cd_extract_report_command(cd_buf *b, const cd_extract *x);

/* For cd_extract.progress; `bar` is a cd_progress that has begun. */
void cd_extract_report_progress(void *bar, const cd_extract_stats *s);
#endif
