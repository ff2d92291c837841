/* The word that was probably meant: for "did you mean" in errors.
 * No state, any thread. */
#ifndef CD_DID_YOU_MEAN_H
#define CD_DID_YOU_MEAN_H
#include <stddef.h>

#define CD_DID_YOU_MEAN_MAX 64
/* Letters to insert, delete or replace to get from a to b; CD_DID_YOU_MEAN_MAX when
 * either has CD_DID_YOU_MEAN_MAX letters or more. */
size_t cd_did_you_mean_distance(const char *a, const char *b);
/* The first of (n) names that is nearest to `asked`, when at most a third of the letters
 * of `asked` and one more differ; else NULL. */
const char *cd_did_you_mean_nearest(const char *asked, const char *const *name, size_t n);
/* Of (n) names at most `most` for out[], by letters and digits alone, without case: all that begin with `asked`; else the
 * nearest one; else the longest that `asked` begins with, of 3 letters or more. How many. */
size_t cd_did_you_mean_several(const char *asked, const char *const *name, size_t n, const char **out, size_t most);
#endif
