/* cdmpp-replay --llm: what of an answer no training row has. */
#include <math.h>

#include "predictor/cmd/replay/main_replay_llm.h"

void cd_replay_llm_novel_add(cd_replay_llm_novel *x, const cd_serving_rows *step, size_t n) {
    bool unknown = false;
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < CD_LLM_OP_N_NEWS; k++)
            if (step[i].new_s[k] > 0)
                x->most[k] =
                    fmax(x->most[k], step[i].new_s[k] / (step[i].total_s - step[i].host_s));
        unknown |= step[i].unknown_s > 0;
    }
    x->unknown += unknown;
}

/* New GPUs and sizes have words of their own. */
void cd_replay_llm_novel_say(const cd_replay_llm *o, const cd_replay_llm_novel *x, size_t n,
                             cd_log *log) {
    cd_buf b = {0};
    for (int k = 0; k < CD_LLM_OP_N_NEWS; k++) {
        const cd_str w = cd_enum_names_at(CD_LLM_OP_NEWS, k);
        if (!(x->most[k] > 0) ||
            1u << k & (CD_LLM_OP_NEW_DEVICE | CD_LLM_OP_NEW_VENDOR | CD_LLM_OP_NEW_SIZE))
            continue;
        cd_buf_putf(&b, "%s%.3g %% %s a new %.*s", b.n ? ", " : "", 100 * x->most[k],
                    b.n ? "with" : "is of operators with", (int)w.n, w.p);
    }
    if (b.n && !b.oom)
        cd_log_put(log, CD_LOG_WARNING, "%s: of a step's time up to %s (not in the training rows)",
                   o->cost_model, b.p);
    if (x->unknown)
        cd_log_put(log, CD_LOG_WARNING,
                   "%zu of %zu configurations have no interval: no experiment tells how far off "
                   "such operators are",
                   x->unknown, n);
    cd_buf_free(&b);
}
