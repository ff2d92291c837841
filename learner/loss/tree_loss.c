/* Losses on r = ln(predicted/measured) for trees. Gradients are clipped and rounded, for the
 * reasons in the header. */
#include "learner/loss/loss.h"

#include <math.h>

static double clip(double x, double limit) { return fmax(-limit, fmin(x, limit)); }

/* Quadratic up to d, then linear. */
static double huber(double r, double d) {
    return fabs(r) <= d ? 0.5 * r * r : d * (fabs(r) - 0.5 * d);
}

double cd_tree_loss_value(cd_tree_loss l, double r) {
    switch (l) {
    case CD_TREE_LOSS_SQUARED: return 0.5 * r * r;
    case CD_TREE_LOSS_HUBER: return huber(r, 0.5);
    case CD_TREE_LOSS_ABSOLUTE: return huber(r, 0.05) / 0.05;
    case CD_TREE_LOSS_MAPE: break;
    }
    return fabs(expm1(fmin(r, 50)));
}

double cd_tree_loss_gradient(cd_tree_loss l, double r, double spread) {
    switch (l) {
    case CD_TREE_LOSS_SQUARED: return clip(r, 31);
    case CD_TREE_LOSS_HUBER: return clip(r, fmin(fmax(0.5, spread), 31));
    case CD_TREE_LOSS_ABSOLUTE:
    case CD_TREE_LOSS_MAPE: break;
    }
    const double g = clip(r, fmin(fmax(0.05, 0.5 * spread), 7));
    return l == CD_TREE_LOSS_ABSOLUTE ? g : g * fmin(exp(fmin(r, 50)), 4);
}

float cd_tree_loss_round(double g) { return (float)(rint(g * 0x1p20) * 0x1p-20); }
