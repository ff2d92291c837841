/* --parallel of cdmpp-replay: the iteration on several equal devices. */
#include "predictor/cmd/replay/main_replay.h"

cdmpp_status cd_main_replay_parallel_plan(cd_main_replay *o, cdmpp_err *err) {
    if (!o->parallel) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_parallel_plan_parse(o->parallel, NULL, &o->plan, err), "--parallel"));
    o->plan.link = (cd_parallel_link){o->link_latency_s, o->link_bytes_per_s};
    return CDMPP_OK;
}

cdmpp_status cd_main_replay_parallel(const cd_main_replay_plan *p, cd_main_replay_case *c, cdmpp_err *err) {
    if (!p->o->parallel) return CDMPP_OK;
    if (c->n_place > 1) return CD_FAIL(err, EUSAGE, "--parallel is of a graph on one device, this one names %u", c->n_place);
    return cd_err_key(err, cd_parallel_training_of(c->source->graph, c->cost[0], &p->o->plan, &c->cluster, err), "--parallel");
}

void cd_main_replay_parallel_json(const cd_main_replay_plan *p, const cd_main_replay_case *c, cd_buf *b) {
    const cd_parallel_result *r = &c->cluster;
    if (!p->o->parallel) return;
    cd_buf_puts(b, ",\"parallel\":{\"plan\":");
    cd_buf_put_json_str(b, p->o->parallel, strlen(p->o->parallel));
    const struct { const char *key; double v; } real[] = {{"latency_s", r->replay_s}, {"closed_form_s", r->closed_s}, {"one_device_s", r->one_s}, {"links_s", r->sent_s}};
    for (size_t k = 0; k < sizeof real / sizeof *real; k++) {
        cd_buf_putf(b, ",\"%s\":", real[k].key);
        cd_buf_put_json_real(b, real[k].v);
    }
    cd_buf_putf(b, ",\"sent_bytes\":%lld,\"kept_micro_batches\":%u}", (long long)r->sent_bytes, r->kept);
}
