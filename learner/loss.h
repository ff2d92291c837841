/* loss -- how wrong a prediction is, as a function of r = log(predicted/measured).
 *
 *   SQUARED   r^2/2            g = r            h = 1
 *   HUBER     |r| > 0.5 linear g = clip(r, 0.5) h = 1
 *   ABSOLUTE  |r| > 0.05 linear, scaled to slope 1: g = clip(r/0.05, 1), h = 1
 *   MAPE      |e^r - 1|, smooth within 0.05; its curvature is replaced by 1, the
 *             gradient is cut at 4: one program predicted 100 times too slow must
 *             not move a leaf alone
 *
 * Gradients are rounded to multiples of 2^-20: their sums in double precision are
 * then exact in any order, which makes trees equal for any number of threads. */
#ifndef CD_LOSS_H
#define CD_LOSS_H

#define CD_LOSSES "squared|huber|absolute|mape"
typedef enum { CD_LOSS_SQUARED, CD_LOSS_HUBER, CD_LOSS_ABSOLUTE, CD_LOSS_MAPE } cd_loss;

double cd_loss_value(cd_loss l, double r);
/* d value / d r; always within -31..31. */
double cd_loss_gradient(cd_loss l, double r);
/* Round to a multiple of 2^-20. */
float cd_loss_round(double g);
#endif
