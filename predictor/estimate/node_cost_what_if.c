/* "op=conv3,scale=0.5": some nodes' times, changed by hand. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/estimate/estimate_internal.h"

/* Longest text: a name of a node and a number. */
enum { TEXT = 4096, NAMES = 512 };

typedef struct {
    char op[TEXT];
    double scale, seconds; /* one of them; the other NaN */
} change;

/* The last ",scale=" or ",seconds=" ends the name, which may have commas itself. */
static cdmpp_status parse(const char *text, change *out, cdmpp_err *err) {
    static const char form[] = "expected op=NAME,scale=NUMBER or op=NAME,seconds=NUMBER";
    const char *comma = strrchr(text, ',');
    char *end = NULL;
    if (strncmp(text, "op=", 3) || !comma || comma == text + 3 || (size_t)(comma - text) >= TEXT)
        return CD_FAIL(err, EUSAGE, "%s, found \"%.80s\"", form, text);
    const bool scale = !strncmp(comma, ",scale=", 7);
    if (!scale && strncmp(comma, ",seconds=", 9))
        return CD_FAIL(err, EUSAGE, "%s, found \"%.80s\"", form, text);
    const char *number = comma + (scale ? 7 : 9);
    const double v = strtod(number, &end);
    if (end == number || *end || !isfinite(v) || v < 0)
        return CD_FAIL(err, EUSAGE, "%s, found \"%.40s\" for the number", form, number);
    memcpy(out->op, text + 3, (size_t)(comma - text) - 3);
    out->op[comma - text - 3] = 0;
    out->scale = scale ? v : (double)NAN;
    out->seconds = scale ? (double)NAN : v;
    return CDMPP_OK;
}

static void apply(cd_node_cost_entry *n, const change *c) {
    if (!isnan(c->seconds)) {
        cd_node_cost_known(n, c->seconds, CD_COST_SCALED);
        n->like = UINT32_MAX;
        return;
    }
    if (n->source == CD_COST_MISSING) return; /* nothing to scale */
    n->seconds *= c->scale;
    n->low_s *= c->scale;
    n->high_s *= c->scale;
    if (n->source != CD_COST_FREE) n->source = CD_COST_SCALED;
}

static cdmpp_status nothing_fits(const cd_network_graph *g, const char *op, cdmpp_err *err) {
    const char *name[2 * NAMES];
    size_t n = 0;
    for (uint32_t i = 0; i < g->n_node && n + 2 <= 2 * NAMES; i++) {
        name[n++] = g->node[i].name;
        name[n++] = g->node[i].op;
    }
    const char *near = cd_did_you_mean_nearest(op, name, n);
    if (near)
        return CD_FAIL(err, ESCHEMA,
                       "no node or operator \"%.80s\" in network %.80s; did you mean \"%.80s\"?",
                       op, g->name, near);
    return CD_FAIL(err, ESCHEMA, "no node or operator \"%.80s\" in network %.80s", op, g->name);
}

cdmpp_status cd_node_cost_what_if(cd_node_cost *c, const cd_network_graph *g, const char *text,
                                  cdmpp_err *err) {
    change x;
    bool any = false;
    CD_TRY(parse(text, &x, err));
    for (uint32_t i = 0; i < c->n; i++) {
        if (!cd_str_fits(x.op, g->node[i].name) && !cd_str_fits(x.op, g->node[i].op)) continue;
        any = true;
        apply(&c->node[i], &x);
    }
    if (!any) return nothing_fits(g, x.op, err);
    cd_node_cost_tally(c, g);
    return CDMPP_OK;
}
