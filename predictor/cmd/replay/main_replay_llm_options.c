/* cdmpp-replay --llm: options as text become a configuration, before anything is read. */
#include <math.h>

#include "predictor/cmd/replay/main_replay_llm.h"

/* cdmpp-replay --llm: what was asked and is done otherwise, or not at all. Nothing of it is
 * silent. */

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

static cdmpp_status type_of(const char *option, const char *name, int *out, cdmpp_err *err) {
    if (!name) return CDMPP_OK;
    if ((*out = cd_serving_type(name)) >= 0) return CDMPP_OK;
    return CD_FAIL(
        err, EUSAGE,
        "--%s: expected a number type of docs/reference/llm-operators.md, found \"%.40s\"", option,
        name);
}

typedef struct {
    const char *name, *text;
    double lo, hi, *to;
} value;

static cdmpp_status whole(const value *f, size_t n, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        CD_TRY(cd_option_number(f[i].name, f[i].text, f[i].lo, f[i].hi, f[i].to, err));
        if (f[i].text && floor(*f[i].to) < *f[i].to)
            return CD_FAIL(err, EUSAGE, "--%s: expected a whole number, found '%.60s'", f[i].name,
                           f[i].text);
    }
    return CDMPP_OK;
}

cdmpp_status cd_replay_llm_config(const cd_replay_llm *o, cd_serving_config *c, cdmpp_err *err) {
    const value n[] = {{"isl", o->isl, 1, 1e7, &c->isl},
                       {"osl", o->osl, 1, 1e7, &c->osl},
                       {"requests", o->requests, 1, 1e6, &c->requests},
                       {"max-tokens", o->tokens, 1, 1e9, &c->tokens},
                       {"graph-tokens", o->graph, 1, 1e9, &c->graph_tokens},
                       {"max-sequences", o->sequences, 1, 1e6, &c->worker.batch},
                       {"node-gpus", o->node, 1, 1024, &c->node},
                       {"engines", o->engines, 1, 1e6, &c->worker.count},
                       {"decode-workers", o->decode_workers, 1, 1e6, &c->decode.count},
                       {"decode-tp", o->decode_tp, 1, 1024, &c->decode.tp},
                       {"decode-pp", o->decode_pp, 1, 1024, &c->decode.pp},
                       {"decode-dp", o->decode_dp, 1, 1024, &c->decode.dp},
                       {"decode-ep", o->decode_ep, 1, 1024, &c->decode.ep},
                       {"decode-max-sequences", o->decode_sequences, 1, 1e6, &c->decode.batch}},
                f[] = {{"rate", o->rate, 1e-6, 1e6, &c->rate},
                       {"length-spread", o->spread, 0, 1, &c->spread},
                       {"memory-share", o->share, 0.01, 1, &c->memory_share},
                       {"node-gbs", o->node_gbs, 1e-3, 1e5, &c->node_gb_s}};
    cd_serving_kernels words;
    cdmpp_err why = {0};
    *c = cd_serving_config_defaults();
    CD_TRY(whole(n, sizeof n / sizeof *n, err));
    for (size_t i = 0; i < sizeof f / sizeof *f; i++)
        CD_TRY(cd_option_number(f[i].name, f[i].text, f[i].lo, f[i].hi, f[i].to, err));
    if (o->rate) c->concurrency = 0;
    c->prompts = o->prompts;
    c->stack = o->stack ? o->stack : "vllm";
    c->gpu = "";
    c->kernels = o->kernels ? o->kernels : "";
    if (cd_serving_kernels_read(c->kernels, &words, &why))
        return CD_FAIL(err, EUSAGE, "--%.200s", why.msg);
    CD_TRY(type_of("dtype", o->dtype, &c->linear, err));
    CD_TRY(type_of("experts-dtype", o->experts_dtype, &c->expert, err));
    CD_TRY(type_of("kv-dtype", o->kv_dtype, &c->kv, err));
    return c->kv < 0 || cd_serving_kv_type(c->kv)
               ? CDMPP_OK
               : CD_FAIL(err, EUSAGE,
                         "--kv-dtype: expected " CD_SERVING_KV_TYPES ", found \"%.40s\"",
                         o->kv_dtype);
}

cdmpp_status cd_replay_llm_check(const cd_replay_llm *o, cdmpp_err *err) {
    cd_serving_config c;
    double v;
    CD_TRY(cd_replay_llm_config(o, &c, err));
    CD_TRY(cd_option_number("ttft", o->ttft, 1e-3, 1e9, &v, err));
    CD_TRY(cd_option_number("tpot", o->tpot, 1e-3, 1e9, &v, err));
    if (!o->cost_model)
        return CD_FAIL(err, EUSAGE,
                       "--llm: no model of operators of language models is installed: --cost-model "
                       "FILE names one, "
                       "which cdmpp-train makes (docs/reference/llm-operators.md)");
    if (!o->list.gpu && !o->runs) return CD_FAIL(err, EUSAGE, "--llm: expected --gpu, as h100");
    if (o->rate && o->list.concurrency)
        return CD_FAIL(err, EUSAGE, "--rate and --concurrency are two loads");
    if (o->load && (o->isl || o->osl || o->spread))
        return CD_FAIL(err, EUSAGE,
                       "--load has the lengths in place of --isl, --osl and --length-spread");
    if (o->load && o->runs)
        return CD_FAIL(err, EUSAGE, "--load and --runs: a row of --runs has lengths of its own");
    if (!o->decode_workers && !o->runs &&
        (o->decode_tp || o->decode_pp || o->decode_dp || o->decode_ep || o->decode_sequences))
        return CD_FAIL(err, EUSAGE,
                       "--decode-tp, --decode-pp, --decode-dp, --decode-ep and "
                       "--decode-max-sequences go with --decode-workers");
    if (!o->sweep && (o->ttft || o->tpot || o->picture || o->prices))
        return CD_FAIL(err, EUSAGE, "--ttft, --tpot, --picture and --prices go with --sweep");
    if (o->node_gbs && !o->node && !o->runs)
        return CD_FAIL(err, EUSAGE,
                       "--node-gbs goes with --node-gpus: without nodes nothing goes between them");
    if (o->jobs && !o->sweep) return CD_FAIL(err, EUSAGE, "--llm: --jobs goes with --sweep");
    if (o->stream && (o->sweep || o->runs || o->list.concurrency || o->rate || o->requests ||
                      o->load || o->spread || o->decode_workers || o->engines || o->sequences ||
                      o->level_given || o->prompts >= 0))
        return CD_FAIL(err, EUSAGE,
                       "--stream has steps on standard input: it goes without --sweep, --runs, "
                       "--concurrency, --rate, --requests, --load, --length-spread, --engines, "
                       "--decode-workers, --max-sequences, --level and --prompts");
    return o->sweep && o->runs
               ? CD_FAIL(err, EUSAGE, "--sweep and --runs are two lists of configurations")
               : CDMPP_OK;
}
