/* cdmpp-replay --llm: what was asked and is done otherwise, or not at all. Nothing of it is
 * silent. */
#include "predictor/cmd/replay/main_replay_llm.h"

/* How many of the list are so, and the first of them. */
typedef struct {
    size_t n;
    const cd_serving_config *first;
} many;

static void count(many *m, bool is, const cd_serving_config *c) {
    if (is && !m->n++) m->first = c;
}

void cd_replay_llm_say_asked(const cd_serving_config *c, size_t n, const cd_serving_stacks *stacks,
                             cd_log *log) {
    many few = {0}, graph = {0}, little = {0};
    for (size_t i = 0; i < n; i++) {
        const cd_serving_stack *s;
        count(&few, cd_serving_in_flight(&c[i]) < c[i].concurrency, &c[i]);
        count(&graph,
              c[i].graph_tokens > 0 && !cd_serving_stack_find(stacks, c[i].stack, &s, NULL) &&
                  !(s->layer_s > 0),
              &c[i]);
        count(&little, cd_serving_too_short(&c[i]), &c[i]);
    }
    if (few.n)
        cd_log_put(log, CD_LOG_WARNING,
                   "in %zu of %zu configurations there are fewer requests (%g) than are asked to "
                   "be in flight (%g): no more than these are ever in flight",
                   few.n, n, few.first->requests, few.first->concurrency);
    if (graph.n)
        cd_log_put(log, CD_LOG_WARNING,
                   "--graph-tokens changes nothing in %zu of %zu configurations: the host's part "
                   "of a layer (layer_s) of %s is 0",
                   graph.n, n, graph.first->stack);
    if (little.n)
        cd_log_put(log, CD_LOG_WARNING,
                   "in %zu of %zu configurations --length-spread %g allows lengths below 1 token: "
                   "they are taken for 1",
                   little.n, n, little.first->spread);
}

/* Configurations whose requests come faster than they are answered. */
static void say_overload(const cd_serving_said *v, size_t n, cd_log *log) {
    size_t all = 0;
    const cd_serving_said *first = NULL;
    for (size_t i = 0; i < n; i++)
        if (v[i].a && cd_serving_overload(v[i].c, v[i].a) > 0 && !all++) first = &v[i];
    if (first)
        cd_log_put(log, CD_LOG_WARNING,
                   "%zu of %zu configurations get requests faster (%g/s) than they answer them "
                   "(%.3g/s): the longer they come, the longer each waits",
                   all, n, first->c->rate, cd_serving_overload(first->c, first->a));
}

static void say_crowded(const cd_serving_said *v, size_t n, cd_log *log) {
    size_t all = 0;
    const cd_serving_said *worst = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!v[i].a || !cd_serving_crowded(v[i].a)) continue;
        all++;
        if (!worst || v[i].a->r.crowded > worst->a->r.crowded) worst = &v[i];
    }
    if (worst)
        cd_log_put(
            log, CD_LOG_WARNING,
            "in %zu of %zu configurations prompts wait for room in a step, up to %.0f %% of the "
            "time: it takes %g tokens, those of whole prompts (%g %s) and one of each sequence "
            "that decodes; --max-tokens makes it larger, --prompts chunked divides prompts",
            all, n, 100 * worst->a->r.crowded, worst->a->limit.tokens, worst->c->isl,
            worst->c->spread > 0 || worst->c->given ? "in the mean" : "each");
}

void cd_replay_llm_say_done(const cd_serving_said *v, size_t n, cd_log *log) {
    many other = {0}, idle = {0}, cut = {0};
    double done = 0, alone = 0;
    for (size_t i = 0; i < n; i++) {
        if (!v[i].a) continue;
        const cd_serving_result *r = &v[i].a->r;
        const bool not_asked = v[i].c->requests > 0 &&
                               (r->requests < v[i].c->requests || r->requests > v[i].c->requests);
        if (not_asked && !other.n) done = r->requests;
        if (r->idle > 0 && !idle.n) alone = r->idle;
        count(&other, not_asked, v[i].c), count(&idle, r->idle > 0, v[i].c),
            count(&cut, r->cut, v[i].c);
    }
    say_overload(v, n, log);
    say_crowded(v, n, log);
    if (other.n)
        cd_log_put(log, CD_LOG_WARNING,
                   "in %zu of %zu configurations %g requests are simulated in place of %g: each "
                   "scheduler has as many as the others like it",
                   other.n, n, done, other.first->requests);
    if (idle.n)
        cd_log_put(log, CD_LOG_WARNING,
                   "in %zu of %zu configurations there are fewer requests in flight (%g) than "
                   "schedulers (engines x pp, without experts x dp): %g of them get none",
                   idle.n, n, cd_serving_in_flight(idle.first), alone);
    if (cut.n)
        cd_log_put(log, CD_LOG_WARNING,
                   "in %zu of %zu configurations the simulation ends before the requests in flight "
                   "are a small part of all: --requests says how many there are",
                   cut.n, n);
}
