/* Times that files of graphs have: on which device they were measured, and what is said about that.
 *
 *   the file's or the node's "device", else the folder's name where that is a described device ─>
 *   of that device alone
 *   nothing ─> taken for the asked device's, with a warning */
#include <math.h>
#include <string.h>

#include "predictor/network_estimate/network_estimate_internal.h"

/* Measured networks lie in a folder of their device's name, as logs do. Only a name that is
 * described counts. */
static const char *of_folder(const cd_network_estimate *e, const char *path) {
    const char *end = strrchr(path, '/'), *name = end;
    char text[80];
    if (!end) return NULL;
    while (name > path && name[-1] != '/') name--;
    const size_t n = (size_t)(end - name);
    if (!n || n >= sizeof text) return NULL;
    memcpy(text, name, n);
    text[n] = 0;
    const cd_device *d = cd_model_set_device(&e->models, text);
    return d ? d->name : NULL;
}

static bool has_times(const cd_network_graph *g) {
    bool any = !isnan(g->measured_s);
    for (uint32_t k = 0; !any && k < g->n_node; k++) any = g->node[k].given_s > 0;
    return any;
}

void cd_network_estimate_times_of(const cd_network_estimate *e, const char *path,
                                  cd_network_graph *g) {
    if (!g->device && has_times(g)) g->device = of_folder(e, path);
}

void cd_network_estimate_measured(const cd_network_estimate *e, cd_network_estimate_case *c) {
    const cd_network_graph *g = c->source->graph;
    const bool here = !g->device || c->device->unnamed ||
                      cd_device_table_same(e->models.devices, g->device, c->device->name);
    c->measured_s = here ? g->measured_s : (double)NAN;
    c->measured_median_s = here ? g->measured_median_s : (double)NAN;
    if (!here && !isnan(g->measured_s))
        cd_log_put(e->o->log, CD_LOG_WARNING,
                   "%s on %s: its measured time is of %s and is not compared", c->source->name,
                   c->device->name, g->device);
}

/* Whether a time was used of which the file does not say the device. */
static bool is_unsaid(const cd_network_estimate_case *c) {
    const cd_network_graph *g = c->source->graph;
    bool any = !g->device && !isnan(c->measured_s);
    for (uint32_t k = 0; !any && k < g->n_node; k++) {
        const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, k);
        any = n->source == CD_COST_GIVEN && n->seconds > 0 && g->node[k].repeat &&
              !cd_node_cost_times_of(g, k);
    }
    return any;
}

/* Once a file and device: a file may have many networks. */
void cd_network_estimate_warn_times(const cd_network_estimate *e, cd_network_estimate_case *c) {
    if (c->device->unnamed || !(c->unsaid = is_unsaid(c))) return;
    for (const cd_network_estimate_case *p = e->item; p < c; p++)
        if (p->unsaid && p->device == c->device && !strcmp(p->source->given, c->source->given))
            return;
    cd_log_put(e->o->log, CD_LOG_WARNING,
               "%s: %s does not say on which device its times were measured (\"device\"): "
               "they are taken for those of %s",
               c->source->given, c->source->name, c->device->name);
}
