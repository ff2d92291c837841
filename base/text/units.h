/* units -- numbers with a unit for people: three digits and the prefix that suits them. */
#ifndef CD_UNITS_H
#define CD_UNITS_H
#include "base/core/core.h"

/* "1.23 us", "456 ms", "0.00 us" for 0; "-" where it is not finite. The second form is right-aligned in nine characters, for tables. */
void cd_units_put_seconds(cd_buf *b, double s);
void cd_units_put_seconds_wide(cd_buf *b, double s);
/* "64 B", "1 MiB": powers of 1024, at most four digits. */
void cd_units_put_bytes(cd_buf *b, double bytes);
#endif
