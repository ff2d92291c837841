/* quantize_internal -- what the files of predictor/quantize share. Private to the room. */
#ifndef CD_QUANTIZE_INTERNAL_H
#define CD_QUANTIZE_INTERNAL_H
#include "predictor/quantize/quantize.h"

/* A network in one form, ready to run. */
typedef struct cd_quantize_net {
    cd_network_values_options o;
    cd_quantize how;
    cd_network_live *live;
} cd_quantize_net;

/* Schedules for the tasks of a workload: of sums of products the first of templates; of what works
 * on weights once none. `ctx`: cd_network_values_options. */
cdmpp_status cd_quantize_schedules(void *ctx, const cd_workload *w, cd_arena *a,
                                   const char *const **line, size_t *n_line, cdmpp_err *err);
/* Input t of a draw. */
cdmpp_status cd_quantize_input(void *ctx, const cd_graph_tensor *t, uint32_t draw, void *to,
                               cdmpp_err *err);
enum { CD_QUANTIZE_MOST_TURNS = 500 };
/* Times of a form in n turns beside those of float in the same turns: medians, and quartiles of
 * float over the form. Sorts s. */
void cd_quantize_settle(cd_quantize_form *f, const double *float_s, double *s, uint32_t n);
#endif
