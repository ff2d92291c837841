/* selection_bias -- how wrong a model is about the fastest program of each task.
 *
 *   programs of a task on a device ─> the one measured fastest ─> ln(measured / predicted median)
 *                                                                 ─> mean, width over tasks
 *
 * Who runs a network takes of each task the program that was measured fastest. That choice is not
 * blind: among many it finds those whose error flatters the prediction least, so a model without
 * bias on programs is too slow on the best of them, by 13 % on programs it was trained on and by
 * about half on others (docs/results/replay-accuracy.md).
 *
 *   (1) where the others of the task are known, too, their predictions say by how much
 *       (base/core/order_stat.h): `within` is what errors of programs of one task differ by,
 *       `among` is what is left of measured over that mean;
 *   (2) where they are not, `ratio` is all that is known: the same over the prediction alone, for
 *       as many programs as the tasks of the training have.
 * Learned from the train part (the whole model, which saw them) and out of fold (members that did
 * not); the test part has no say. No state. */
#ifndef CD_SELECTION_BIAS_H
#define CD_SELECTION_BIAS_H
#include <stddef.h>
#include <stdint.h>

#include "learner/train/training_set.h"

enum { CD_SELECTION_BIAS_MIN = 4 }; /* programs that a task must have */

typedef struct cd_selection_bias {
    size_t n;      /* tasks */
    double ratio;  /* measured over predicted median, geometric mean; 1 when n is 0 */
    double spread; /* standard deviation of its logarithm; 0 when n is below 2 */
    /* standard deviation of ln(measured/predicted) inside a task, by the median of its absolute
     * values */
    double within;
    /* ratio and spread over the mean of the least of the task's programs */
    double among, among_spread;
} cd_selection_bias;

/* All (n). Errors: ENOMEM. */
cdmpp_status cd_selection_bias_of(const double *measured_s, const double *median_s,
                                  const uint32_t *group, size_t n, cd_selection_bias *out,
                                  cdmpp_err *err);
/* The same of each device apart, since one was measured on the best of searches and another on
 * drawn programs: "NAME":{..},"NAME":{..} of those of at least CD_SELECTION_BIAS_FEW tasks. device
 * (n): below n_device, numbers of name. Errors: ENOMEM. */
enum { CD_SELECTION_BIAS_FEW = 8 };
cdmpp_status cd_selection_bias_by_device(const double *measured_s, const double *median_s,
                                         const uint32_t *group, const uint32_t *device, size_t n,
                                         const char *const *name, size_t n_device, cd_buf *json,
                                         cdmpp_err *err);
/* Names of what was trained on: the first 64 bits of SHA-256 of "task\ndevice", 16 hex digits each,
 * sorted, as a JSON list. Errors: ENOMEM. */
cdmpp_status cd_selection_bias_tasks(const cd_training_set *t, cd_buf *json, cdmpp_err *err);
/* "best":{"train":{"n","ratio","spread","within","among","among_spread"},"validation":{..},
 * "train_of":{"DEVICE":{..}},"validation_of":{..},"tasks":[..]}. of: what
 * cd_selection_bias_by_device wrote for both parts. */
void cd_selection_bias_json(cd_buf *b, const cd_selection_bias *train,
                            const cd_selection_bias *valid, const cd_buf *train_of,
                            const cd_buf *valid_of, const cd_buf *tasks);
#endif
