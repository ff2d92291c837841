/* What is told of programs in number types that the model has not seen: how much of the time they
 * are, and how far off it may be. */
#include <stdio.h>
#include <string.h>

#include "predictor/network_estimate/network_estimate_internal.h"

static const double TOLD = 0.1; /* share of the time */

static bool of_model(const cd_network_estimate_case *c, uint32_t place, uint32_t node) {
    const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, node);
    return (!c->where || c->where[node] == place) && n->source == CD_COST_MODEL &&
           n->reason & CD_UNLIKE_DTYPE;
}

static double seconds(const cd_network_estimate_case *c, uint32_t node) {
    return cd_network_estimate_case_cost(c, node)->seconds *
           (double)c->source->graph->node[node].repeat;
}

/* Seconds on the place of programs in the type, where the model has not seen it. */
static double of_type_s(const cd_network_estimate_case *c, uint32_t place, const char *type) {
    double sum = 0;
    for (uint32_t k = 0; k < c->source->graph->n_node; k++) {
        const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, k);
        const char *at = n->unlike ? strstr(n->unlike, type) : NULL;
        if (of_model(c, place, k) && at && (at == n->unlike || at[-1] == ' ')) sum += seconds(c, k);
    }
    return sum;
}

/* A sum of products of words of four numbers. */
static bool has_words(const cd_network_estimate_case *c, uint32_t node) {
    const char *key = c->source->graph->node[node].key;
    const cd_task *t = key && c->source->tasks
                           ? cd_task_registry_find(c->source->tasks, (cd_str){key, strlen(key)})
                           : NULL;
    for (uint32_t i = 0; t && t->dag && i < t->dag->n_op; i++) {
        const cd_te_op *o = &t->dag->op[i];
        const cd_expr *e = o->is_placeholder ? NULL : o->body[0];
        while (e && e->op == CD_CAST) e = e->a[0];
        if (e && cd_expr_is_dot4(e)) return true;
    }
    return false;
}

/* Their type is int32, as that of indices is. */
static double of_words_s(const cd_network_estimate_case *c, uint32_t place) {
    double sum = 0;
    for (uint32_t k = 0; k < c->source->graph->n_node; k++)
        if (of_model(c, place, k) && has_words(c, k)) sum += seconds(c, k);
    return sum;
}

static bool is_gpu(const cd_network_estimate_device *d) {
    return d->about && d->about->kind == CD_DEVICE_GPU;
}

static void say_words(const cd_network_estimate_device *d, const char *network, double share,
                      cd_log *log) {
    cd_log_put(log, CD_LOG_WARNING,
               "%s on %s: %.0f %% of the time is of sums of products in 8 bits, which the model "
               "was not trained on: it answers as for float32 with a quarter of the products; %s",
               network, d->name, 100 * share,
               is_gpu(d) ? "of matrix products a model of operators of language models knows better"
                         : "--quantize int8 --run measures both on this machine");
}

/* Operators whose type is answered as another one, which is no reason to doubt them. */
static void say_alike(const cd_network_estimate *e, const cd_network_estimate_case *c,
                      uint32_t place, const char *name) {
    const char *as = NULL;
    double sum = 0;
    for (uint32_t k = 0; k < c->source->graph->n_node; k++) {
        const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, k);
        if ((c->where && c->where[k] != place) || !n->alike) continue;
        as = n->alike;
        sum += seconds(c, k);
    }
    if (sum > TOLD * c->ops_s)
        cd_log_put(e->o->log, CD_LOG_INFO,
                   "%s on %s: %.0f %% of the time is answered as in %s, whose numbers have as many "
                   "bytes and run on the same units",
                   name, c->place[place]->name, 100 * sum / c->ops_s, as);
}

/* The model's answer and the roofline of a stand-in are those of float32. */
void cd_network_estimate_warn_types(const cd_network_estimate *e, const cd_network_estimate_case *c,
                                    const char *name) {
    for (uint32_t k = 0; k < c->n_place; k++) {
        const cd_network_estimate_device *d = c->place[k];
        const bool products = d->narrow && is_gpu(d);
        const double bytes = of_type_s(c, k, "int8") + of_type_s(c, k, "uint8"),
                     words = of_words_s(c, k);
        say_alike(e, c, k, name);
        if (words > TOLD * c->ops_s) say_words(d, name, words / c->ops_s, e->o->log);
        if (bytes > TOLD * c->ops_s)
            cd_model_set_say_int8(d->about, products, name, d->name, bytes / c->ops_s, e->o->log);
        for (int t = 0; t < CD_TE_N_LEAST; t++) {
            const double s =
                t == CD_TE_LEAST_F32 ? 0 : of_type_s(c, k, cd_model_set_type((cd_te_least_type)t));
            if (s > TOLD * c->ops_s)
                cd_model_set_say_type(d->about, products, (cd_te_least_type)t, name, d->name,
                                      s / c->ops_s, e->o->log);
        }
    }
}
