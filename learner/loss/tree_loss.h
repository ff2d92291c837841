/* tree_loss -- how wrong a prediction is, as a function of r = log(predicted/measured).
 *
 *   SQUARED   r^2/2
 *   HUBER     r^2/2 up to d = 0.5, then linear
 *   ABSOLUTE  |r|, r^2 within d = 0.05
 *   MAPE      |e^r - 1|, smooth within d = 0.05
 *
 * For the trees each is a limit on the residual: the gradient is clip(r, d), the
 * Hessian 1 (MAPE: the gradient times e^r, at most 4, so that one program
 * predicted 100 times too slow does not move a leaf alone). While residuals are
 * still large, d is their root mean square (`spread`, half of it for the last
 * two): otherwise the first hundred trees would only creep to the mean.
 *
 * Gradients are rounded to multiples of 2^-20: their sums in double precision are
 * then exact in any order, which makes trees equal for any number of threads. */
#ifndef CD_TREE_LOSS_H
#define CD_TREE_LOSS_H

#define CD_TREE_LOSSES "squared|huber|absolute|mape"
typedef enum { CD_TREE_LOSS_SQUARED, CD_TREE_LOSS_HUBER, CD_TREE_LOSS_ABSOLUTE, CD_TREE_LOSS_MAPE } cd_tree_loss;

/* The loss of one program. */
double cd_tree_loss_value(cd_tree_loss l, double r);
/* What a tree is fitted to, within -31..31; spread: RMS of r over the train part. */
double cd_tree_loss_gradient(cd_tree_loss l, double r, double spread);
/* Round to a multiple of 2^-20. */
float cd_tree_loss_round(double g);
#endif
