/* report -- what cdmpp-extract says at its end. */
#ifndef CD_EXTRACT_REPORT_H
#define CD_EXTRACT_REPORT_H
#include "base/cli/cli.h"
#include "dataset/extract/extract.h"

/* Counts, and a table of reasons when lines were skipped. */
void cd_extract_report_text(cd_log *log, const char *out, const cd_extract_stats *s);
/* One JSON object with '\n', schema "cdmpp.extract/1". */
void cd_extract_report_json(cd_buf *b, const char *out, const cd_extract_stats *s, double seconds);
#endif
