/* trained_on -- which kinds of programs a model was trained on, and what a new program has that they lack.
 *
 *   signatures of the training programs (features/task/signature.h) ──> marks, and which device saw which
 *   signature of a new program, device ──> reasons, text
 *
 * Rows of features do not show a type of numbers, and a column inside its range says nothing about an operator that never
 * occurred: this is held beside the ranges of calibration.h, which stay as they are.
 *   (1) operators, their types and intrinsics: seen on any device, because devices share what they learn;
 *   (2) types of buffers, threads, width of vectors, features: seen on the device itself. Where its targets never said
 *       threads or a processor, these are not compared.
 *   (3) the interval of a program with any reason is at least that of programs whose operators were left out of training, `low`
 *       and `high` (learner/train/unlike_fit.h); nothing is known of how far off other reasons are.
 * Immutable once made: any thread. */
#ifndef CD_TRAINED_ON_H
#define CD_TRAINED_ON_H
#include "base/core/core.h"
#include "base/text/text.h"
#include "features/task/task.h"

/* X(bit, name): why a program is unlike what the model was trained on. cdmpp.h has the same as CDMPP_REASON_*. */
#define CD_UNLIKE_MAP(X)                                                                                             \
    X(RANGE, "range of features") X(DTYPE, "dtype") X(OPERATOR, "operator kind") X(INTRINSIC, "intrinsic")            \
    X(THREADS, "threads") X(FEATURE, "target feature") X(DEVICE, "device")
enum {
#define CD_X(id, name) CD_UNLIKE_BIT_##id,
    CD_UNLIKE_MAP(CD_X)
#undef CD_X
    CD_N_UNLIKE
};
enum {
#define CD_X(id, name) CD_UNLIKE_##id = 1 << CD_UNLIKE_BIT_##id,
    CD_UNLIKE_MAP(CD_X)
#undef CD_X
    CD_UNLIKE_TEXT = 96
};
/* "dtype" of CD_UNLIKE_BIT_DTYPE; bit < CD_N_UNLIKE. */
const char *cd_trained_on_reason(uint32_t bit);

typedef struct cd_unlike {
    uint32_t reason;           /* CD_UNLIKE_*, 0: like */
    char text[CD_UNLIKE_TEXT]; /* "dtype float16, operator kind sum 4+3", one entry a reason, cut where it is too long; "" where reason is 0 */
} cd_unlike;
/* Adds a reason with its text, "" for the name alone. */
void cd_trained_on_add(cd_unlike *u, uint32_t bit, const char *detail, size_t n);

typedef struct cd_trained_on {
    size_t n, n_device;
    const char **mark;    /* (n) rising */
    uint8_t *seen;        /* (n_device, n) */
    double range;         /* a program of known kind is out of range only beyond this distance (learner/train/unlike_range.h); 0: the range's own limit */
    double low, high;     /* ln(measured/answer) of programs whose operators were left out: the interval's level; 0, 0: not known */
} cd_trained_on;

/* Of n pairs of a signature's text and a device; *out NULL where one is "": then it is not known what was trained on. Errors: ENOMEM. */
cdmpp_status cd_trained_on_make(cd_arena *a, const char *const *text, const uint32_t *device, size_t n, size_t n_device,
                                cd_trained_on **out, cdmpp_err *err);
/* What of the signature is new to the device of the model, added to *out. */
void cd_trained_on_check(const cd_trained_on *t, uint32_t device, const cd_signature *s, cd_unlike *out);
/* Widens an interval of seconds around the answer; t NULL: nothing. */
void cd_trained_on_widen(const cd_trained_on *t, double latency_s, double *low_s, double *high_s, double *rel_std);

/* Key "trained_on" of a model's header: as JSON, and back. Errors: ESCHEMA, ERANGE, ENOMEM. */
void cd_trained_on_write(const cd_trained_on *t, cd_buf *b);
cdmpp_status cd_trained_on_read(const cd_json *v, size_t n_device, cd_arena *a, cd_trained_on **out, cdmpp_err *err);
#endif
