/* scaler -- columns to a common range: (x - shift) * scale, cut at +-CD_SCALER_CLIP.
 *
 *   none      shift 0,    scale 1
 *   standard  shift mean, scale 1 / standard deviation
 *   minmax    shift min,  scale 1 / (max - min + 1e-6)     (CDMPP's)
 *
 * (1) A column that was constant while fitting has scale 0: a later value that
 *     differs says nothing that training could have used.
 * (2) NaN becomes 0; the cut keeps a column far outside its range of training
 *     from deciding alone. Fitting looks at what it is given: the train part.
 * A plain value over borrowed memory once fitted; share it between threads. */
#ifndef CD_SCALER_H
#define CD_SCALER_H
#include "learner/tensor/tensor.h"

#define CD_SCALES "none|standard|minmax"
typedef enum { CD_SCALE_NONE, CD_SCALE_STANDARD, CD_SCALE_MINMAX } cd_scale;

#define CD_SCALER_CLIP 10.0f

typedef struct cd_scaler {
    size_t n;
    float *shift, *scale; /* (n) each, one block owned by shift */
} cd_scaler;

/* shift 0, scale 1. n may be 0. Errors: ENOMEM. */
cdmpp_status cd_scaler_init(cd_scaler *s, size_t n, cdmpp_err *err);
void cd_scaler_free(cd_scaler *s);
/* x (n_row, s->n) in place. */
void cd_scaler_apply(const cd_scaler *s, float *x, size_t n_row);

/* Statistics of rows as they come by. */
typedef struct cd_scaler_fit {
    size_t n, n_row;
    double *mean, *m2, *lo, *hi; /* (n) each, one block owned by mean */
} cd_scaler_fit;
/* Statistics of n columns, then of one row more. Errors: ENOMEM. */
cdmpp_status cd_scaler_fit_init(cd_scaler_fit *f, size_t n, cdmpp_err *err);
void cd_scaler_fit_add(cd_scaler_fit *f, const float *x);
/* Writes shift and scale of s (same n). */
void cd_scaler_fit_end(const cd_scaler_fit *f, cd_scale kind, cd_scaler *s);
void cd_scaler_fit_free(cd_scaler_fit *f);
#endif
