/* cdmpp-replay my.onnx: what an operand is decides which option it is as if it were given by. */
#include "predictor/cmd/replay/main_replay_operands.h"

#include <string.h>

#include "predictor/network/network.h"
#include "profiler/network/source/source.h"

/* The list with room for n more. */
static cdmpp_status grow(cd_arena *a, cd_texts *l, size_t n, cdmpp_err *err) {
    const char **v = CD_NEWN(a, const char *, l->n + n + 1);
    if (!v) return CD_FAIL(err, ENOMEM, "%zu names", l->n + n);
    for (size_t k = 0; k < l->n; k++) v[k] = l->v[k];
    l->v = v;
    return CDMPP_OK;
}

static cdmpp_status find_language(cd_arena *a, const cd_texts *operand,
                                  const cd_network_estimate_options *ask, cd_replay_operands *out,
                                  cdmpp_err *err) {
    if (ask->network.n == 1 &&
        cd_network_operand_of(ask->network.v[0]) == CD_NETWORK_OPERAND_LANGUAGE) {
        out->language = ask->network.v[0];
        out->by_network = true;
        out->rest = *operand;
        return CDMPP_OK;
    }
    CD_TRY(grow(a, &out->rest, operand->n, err));
    for (size_t k = 0; k < operand->n; k++) {
        const bool is = cd_network_operand_of(operand->v[k]) == CD_NETWORK_OPERAND_LANGUAGE;
        if (is && out->language)
            return CD_FAIL(err, EUSAGE,
                           "%.80s and %.80s are two language models: one is answered at a time",
                           out->language, operand->v[k]);
        if (is) out->language = operand->v[k];
        else out->rest.v[out->rest.n++] = operand->v[k];
    }
    if (out->language && (ask->network.n || ask->graph.n))
        return CD_FAIL(
            err, EUSAGE,
            "%.80s is a language model, which is answered alone, without --network and --graph",
            out->language);
    return CDMPP_OK;
}

static cdmpp_status add(const char *name, cd_network_estimate_options *ask, cdmpp_err *err) {
    switch (cd_network_operand_of(name)) {
    case CD_NETWORK_OPERAND_GRAPH: ask->graph.v[ask->graph.n++] = name; break;
    case CD_NETWORK_OPERAND_TASKS: ask->tasks.v[ask->tasks.n++] = name; break;
    case CD_NETWORK_OPERAND_MODEL:
        return CD_FAIL(err, EUSAGE, "%.80s is a cost model: --cost-model names it", name);
    case CD_NETWORK_OPERAND_LANGUAGE:
    case CD_NETWORK_OPERAND_NETWORK: ask->network.v[ask->network.n++] = name; break;
    }
    return CDMPP_OK;
}

/* Before anything is read: else the error would come below messages about models. */
static cdmpp_status check_foreign(const cd_texts *network, cdmpp_err *err) {
    for (size_t k = 0; k < network->n; k++)
        if (!strchr(network->v[k], '@')) CD_TRY(cd_network_source_foreign(network->v[k], err));
    return CDMPP_OK;
}

cdmpp_status cd_replay_operands_sort(cd_arena *a, const cd_texts *operand,
                                     cd_network_estimate_options *ask, cd_replay_operands *out,
                                     cdmpp_err *err) {
    cd_texts *const list[] = {&ask->network, &ask->graph, &ask->tasks};
    CD_TRY(find_language(a, operand, ask, out, err));
    if (out->language) return CDMPP_OK;
    for (size_t i = 0; operand->n && i < sizeof list / sizeof *list; i++)
        CD_TRY(grow(a, list[i], operand->n, err));
    for (size_t k = 0; k < operand->n; k++) CD_TRY(add(operand->v[k], ask, err));
    return check_foreign(&ask->network, err);
}
