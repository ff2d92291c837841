/* The names of an enum's values, "rows|program|sums": one text for
 * reading, writing, messages and manuals.
 *
 * (1) The k-th word stands for value k. No word is empty. No state, any thread. */
#ifndef CD_ENUM_NAMES_H
#define CD_ENUM_NAMES_H
#include "base/text/json.h"

/* The k-th word; empty when there are fewer. */
cd_str cd_enum_names_at(const char *words, int k);
/* Position of `s`; -1 when it is none of them. */
int cd_enum_names_find(const char *words, cd_str s);
#endif
