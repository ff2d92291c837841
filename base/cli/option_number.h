/* option_number -- options whose value is a real number: kept as text in the table of options, read by the command's check. */
#ifndef CD_OPTION_NUMBER_H
#define CD_OPTION_NUMBER_H
#include "base/core/core.h"

/* A number in lo .. hi; text NULL (the option was not given): *out stays as it is. Errors: EUSAGE, names the option. */
cdmpp_status cd_option_number(const char *option, const char *text, double lo, double hi, double *out, cdmpp_err *err);
#endif
