/* What of a network's programs the models have not seen, said for each device of a plan.
 *
 *   reasons of the whole operators' programs, by their times ─> share of the time ─> a warning, unlike_share in JSON
 *
 * A stand-in has its own warning: none of its programs ran there. Here it is about the programs, so that both may be said. */
#include "predictor/partition/plan/partition_internal.h"

/* Share of the time above which there is a message, as of cdmpp-replay: less changes the total by less than its error. */
static const double UNLIKE = 0.1;

static void say(const cd_partition *p, uint32_t device, const double of_s[CD_N_UNLIKE]) {
    char why[CD_UNLIKE_SHARES];
    cd_trained_on_shares(of_s, 1, why);
    cd_log_put(p->o->log, CD_LOG_WARNING, "%s: %.0f %% of the time on %s is of programs unlike those that the model was trained on (%s): do not rely on it",
               p->net.name, 100 * p->unlike[device], p->machine.device[device].name, why);
}

cdmpp_status cd_partition_unlike(cd_partition *p, cdmpp_err *err) {
    for (uint32_t k = 0; k < p->machine.n; k++) {
        double of_s[CD_N_UNLIKE];
        if (!p->by[k].model) continue;
        CD_TRY(cd_shard_cost_unlike(p->cost, k, of_s, &p->unlike[k], err));
        if (p->unlike[k] > UNLIKE) say(p, k, of_s);
    }
    return CDMPP_OK;
}
