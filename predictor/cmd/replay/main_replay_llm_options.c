/* cdmpp-replay --llm: options as text become a configuration, before anything is read. */
#include <math.h>

#include "predictor/cmd/replay/main_replay_llm.h"

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
