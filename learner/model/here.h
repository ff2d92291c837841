/* here -- a model that programs measured on one machine have corrected. learner/model/model.h
 * includes it.
 *
 *   model's answer for the device that stands for the machine ─┐
 *   facts of the loop nest, program vector ────────────────────┴─> trees ─> ln(measured / median)
 *     ─> answer of the machine
 *
 *   model file + trees of a machine ─cd_here_add─> the same file, with key "here" in its header,
 *                                                  the trees behind its weights, version 4
 *
 *   "here": {"device", "name", "cpu", "programs", "marks", "widen", "most", "measured_noise",
 *   "picks", "chooses", "bias", "share", "at", "numbers", ...}       docs/reference/calibrate.md
 *
 *   (1) the machine is one more device of the model, by the name that its records have: read as the
 *       last one, unless the model knows that name. What was measured there counts as seen. One of
 *       the others stands for it: its answers are corrected for the machine, and stay as they were
 *       for itself;
 *   (2) the trees (here.c) learn what the model is off by. The ends of an interval then move
 *       away from the median by a factor `widen` (on the logarithm), but by that no further than
 *       `most`, where nine in ten of all programs lie: what was wide already needs no factor. Both
 *       were found on programs that the correction had not seen; What the measurements themselves
 *       were off by (`noise`) comes on top, as the error of a second cause does: a factor that was
 *       found on few noisy times may be small by chance;
 *   (3) the members and their weights are the bytes of the model that was corrected. The small
 *       model for schedule search is not corrected.
 * Immutable once read: any thread, no heap. */
#ifndef CD_HERE_H
#define CD_HERE_H
#include "learner/model/model.h"

typedef struct cd_here_trees {
    /* ln: what all programs have in common; what of the trees' answer is believed, 0 to 1 */
    double bias, share;
    cd_xgb *gbt; /* owned; NULL: there are none */
} cd_here_trees;

typedef struct cd_here {
    /* of the model: the machine; who answers for it, before the correction */
    uint32_t device, stands;
    /* of the measured programs what `stands` had not seen: their types, threads, vectors, features,
     * as the text of a signature; NULL: none */
    const char *marks;
    const char *name, *cpu; /* what records call the machine; what its processor says */
    uint32_t programs;      /* that the correction is made of */
    double widen;           /* above 0 */
    /* ln: so far from the median an end may move away by `widen`; infinite: without limit */
    double most;
    /* ln: half of the second measurements of a program were further away from the first; 0: not
     * known */
    double noise;
    /* measured over predicted median of the program of a task that is predicted fastest, the mean
     * of tasks: networks are made of such. 0: not known */
    double picks;
    /* what analytic times of the machine are computed with; NULL: with those of `stands` */
    CD_KEEP const cd_device_numbers *numbers;
    /* schedules are chosen as for `stands`, by its numbers: as before the correction, whatever
     * `numbers` prefer */
    bool stands_chooses;
    cd_here_trees trees; /* without: this part of the model is not corrected */
} cd_here;

/* The device whose answer is that of device i before a correction: i itself, but for the
 * machine. */
uint32_t cd_model_stands_for(const cd_model *m, uint32_t i);
/* NULL: it is not corrected. */
CD_KEEP const cd_here *cd_model_here(const cd_model *m);

/* Columns that the trees of a correction of m see, at most CD_HERE_WIDTH. */
enum { CD_HERE_WIDTH = 1024 };
size_t cd_here_width(const cd_model *m);
/* x (cd_here_width) of program p of a view that m has answered. */
void cd_here_see(const cd_model *m, const cd_program_view *v, size_t p,
                 const cd_model_prediction *answer, float *x);
/* Trees from n programs: x (n, width), off (n) ln(measured / median). `share` is 1. The seed
 * decides the bytes. Errors: ENODATA, EBACKEND, ENOMEM; *out is empty then. */
cdmpp_status cd_here_fit(const float *x, const double *off, size_t n, size_t width, uint64_t seed,
                         CD_GIVE cd_here_trees *out, cdmpp_err *err);
/* What one program is off by, ln. Errors: EBACKEND, EMODEL. */
cdmpp_status cd_here_off(const cd_here_trees *t, const float *x, size_t width, double *off,
                         cdmpp_err *err);
/* How far from a time that is known exactly nine in ten measured ones are, ln, where half of the
 * pairs of measurements lie further apart than `noise`: both are of a normal distribution. */
static inline double cd_here_noise_log(double noise) { return 1.645 / (0.6745 * 1.4142) * noise; }
/* The answer times exp(off), with ends that lie `widen` times as far away, but not further than
 * `most` by that; and then by the noise, as the root of the sum of both squares. */
void cd_here_move(double off, double widen, double most, double noise, cd_model_prediction *p);
/* How many times as far as its end of the interval the measured time lies from the median: 1 at the
 * end. Infinite: no factor reaches it, for it lies beyond its end and beyond `most`. */
double cd_here_beyond(const cd_model_prediction *p, double most, double measured_s);

/* cd_here.picks from the ratios of n tasks: their mean, none with less than a half or more than
 * twice. 0: fewer than CD_HERE_PICKS. */
enum { CD_HERE_PICKS = 30 };
double cd_here_picks(const double *ratio, size_t n);

/* Corrects *answer, that of program p of the view; nothing where m is not corrected, or not for the
 * device of the program. Errors: those of cd_here_off. */
cdmpp_status cd_here_apply(const cd_model *m, const cd_program_view *v, size_t p,
                           cd_model_prediction *answer, cdmpp_err *err);

/* The (n) bytes of a model file with the correction of the machine for which h->stands answers.
 * `more`: further members of "here", `"a":1,"b":2`, "" for none. Errors: EUSAGE (it is corrected
 * already), EMODEL (no such device), those of cd_model_load. */
cdmpp_status cd_here_add(const void *file, size_t n, const cd_here *h, const char *more,
                         cd_buf *out, cdmpp_err *err);
/* What a file's header says in its key "here", without its members and unchecked: to be told before
 * the model is loaded. *out NULL: it has none, or it is no model. Texts live in `a`. *fits (NULL:
 * not wanted): its form and feature columns are those that this program reads. */
void cd_here_look(const char *path, cd_arena *a, CD_KEEP const cd_json **out, bool *fits);

/* For model_read.c and model.c: key "here" of the header and its weights into m->here, whose trees
 * the model then owns. */
cdmpp_status cd_here_read(cd_model *m, const cd_json *root, cd_str weights, cdmpp_err *err);
#endif
