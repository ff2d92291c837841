/* Asks for the latency of five networks here, as cdmpp-replay would answer each of them. How far
 * off that may be is what the widest of their intervals says: it comes from programs, networks and
 * devices that the training left out. */
#include "predictor/overview/overview.h"

#include <math.h>
#include <string.h>

#include "predictor/score/score.h"

static const char *const networks[CD_OVERVIEW_NETWORKS] = {"mobilenet-v2", "resnet-50", "yolov5s",
                                                           "vit", "bert-base"};

static const char *vectors_here(void) {
    switch (cd_isa_here()) {
    case CD_ISA_AVX512: return "AVX-512";
    case CD_ISA_AVX2: return "AVX2";
    case CD_ISA_SSE2: return "SSE";
    case CD_ISA_AARCH64:
    case CD_ISA_ARMV7: return "NEON";
    case CD_ISA_NATIVE: break;
    }
    return NULL;
}

void cd_overview_machine_read(const char *root, cd_overview_machine *out) {
    cd_host_info_read(root, &out->host);
    out->vectors = vectors_here();
    out->n_gpu = cd_host_gpus_read(root, out->gpu, CD_OVERVIEW_GPUS);
}

static void step(void *ctx, size_t done, size_t all) {
    (void)all;
    cd_progress_step(ctx, done);
}

static cdmpp_status estimate(cd_overview *o, cd_log *progress, cdmpp_err *err) {
    cd_progress p;
    cdmpp_status st = cd_network_estimate_open(&o->ask, &o->e, err);
    if (st || !progress) return st ? st : cd_network_estimate_run(&o->e, err);
    cd_progress_begin(&p, progress, "latency of well-known networks", "networks",
                      CD_OVERVIEW_NETWORKS);
    o->ask.step = step;
    o->ask.step_ctx = &p;
    st = cd_network_estimate_run(&o->e, err);
    o->ask.step = NULL;
    cd_progress_clear(&p);
    return st;
}

/* The larger of both sides of the interval, of the network where it is largest. */
static double widest(const cd_network_estimate *e) {
    double off = (double)NAN;
    for (size_t k = 0; k < e->n_item; k++) {
        const cd_network_estimate_case *c = &e->item[k];
        if (c->st || !(c->interval.low_s > 0)) continue;
        off = fmax(off, fmax(c->interval.high_s / c->replay.makespan_s,
                             c->replay.makespan_s / c->interval.low_s));
    }
    return off;
}

static cdmpp_status about_model(cd_overview *o, cdmpp_err *err) {
    const cd_network_estimate_device *d = &o->e.device[0];
    char what[CD_DEFAULT_MODEL_SAID];
    o->model = cd_model_set_path(&o->e.models, d->model);
    o->device = d->stands ? d->stands : d->name;
    o->known = !d->stands;
    o->calibrated = o->model && cd_default_model_is_here(o->model);
    if (!o->model) return CD_FAIL(err, EMODEL, "no model answers for this machine");
    cd_default_model_what(o->model, what);
    o->what = cd_str_dup(&o->arena, cd_str_of(what));
    return o->what ? CDMPP_OK : CD_FAIL(err, ENOMEM, "texts");
}

cdmpp_status cd_overview_ask(cd_log *log, cd_log *progress, const volatile sig_atomic_t *stop,
                             cd_overview *o, cdmpp_err *err) {
    const double begin_s = cd_clock_wall();
    cd_overview_machine_read("", &o->machine);
    o->ask = cd_network_estimate_defaults();
    if (!(o->ask.network.v = CD_NEWN(&o->arena, const char *, CD_OVERVIEW_NETWORKS)))
        return CD_FAIL(err, ENOMEM, "names");
    memcpy(o->ask.network.v, networks, sizeof networks);
    o->ask.network.n = CD_OVERVIEW_NETWORKS;
    o->ask.log = log;
    o->ask.stop = stop;
    o->ask.says_device = true;
    CD_TRY(estimate(o, progress, err));
    CD_TRY(about_model(o, err));
    o->off = widest(&o->e);
    o->seconds = cd_clock_wall() - begin_s;
    return CDMPP_OK;
}

void cd_overview_free(cd_overview *o) {
    cd_network_estimate_free(&o->e);
    cd_arena_free(&o->arena);
}
