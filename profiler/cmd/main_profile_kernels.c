/* "kernels": predictors of groups of operators by adaptive sampling on our executor, and networks
 * predicted with them. */
#include <math.h>
#include <string.h>

#include "base/text/text.h"
#include "features/sketch/sketch.h"
#include "learner/kernels/kernels.h"
#include "profiler/cmd/main_profile.h"
#include "profiler/network/source/source.h"

enum { MAX_NETWORK = 128 };

/* What both verbs work on. */
typedef struct work {
    cd_main_profile *o;
    cd_arena arena;
    size_t n;
    cd_graph *graph[MAX_NETWORK];
    cd_hardware hardware;
    cd_workload_options wo;
    cd_kernel_executor x;
    cd_fusion_rules rules;
    cdmpp_err *err;
} work;

static const char *target_of(const cd_main_profile *o) { return o->target ? o->target : "llvm"; }
static bool is_sample(const cd_main_profile *o) {
    return o->operand.n && !strcmp(o->operand.v[0], "sample");
}

cdmpp_status cd_main_profile_kernels_check(const cd_main_profile *o, cdmpp_err *err) {
    const bool predict = o->operand.n && !strcmp(o->operand.v[0], "predict");
    if (!predict && !is_sample(o))
        return CD_FAIL(err, EUSAGE, "kernels: expected sample or predict, found '%.40s'",
                       o->operand.n ? o->operand.v[0] : "");
    if (!o->network) return CD_FAIL(err, EUSAGE, "--network is missing");
    if (predict && o->operand.n != 2)
        return CD_FAIL(err, EUSAGE, "kernels predict: expected one file of samples, found %zu",
                       o->operand.n - 1);
    if (!predict && o->operand.n != 1)
        return CD_FAIL(err, EUSAGE, "kernels sample: unexpected '%.60s'", o->operand.v[1]);
    if (!predict && !o->out) return CD_FAIL(err, EUSAGE, "--out is missing");
    if (cd_backend_for_target((cd_str){target_of(o), strlen(target_of(o))}) !=
        cd_backend_find("cpu"))
        return CD_FAIL(err, EUSAGE,
                       "kernels are measured on this machine's processor: expected --target "
                       "llvm..., found '%.60s'",
                       target_of(o));
    return CDMPP_OK;
}

/* ---- networks: names with commas between, or one ONNX file ---- */

static cdmpp_status read_one(work *k, const char *name) {
    const cd_main_profile *o = k->o;
    const cd_network_source s = {.kind = cd_main_profile_source(o),
                                 .name = name,
                                 .batch = o->batch,
                                 .size = o->input_size,
                                 .dim = o->dim.v,
                                 .input = o->input.v,
                                 .n_dim = (uint32_t)o->dim.n,
                                 .n_input = (uint32_t)o->input.n};
    const cd_onnx_miss *miss;
    uint32_t n_miss;
    if (k->n == MAX_NETWORK)
        return CD_FAIL(k->err, EUSAGE, "--network: more than %d networks", MAX_NETWORK);
    CD_TRY(cd_network_source_read(&s, &k->graph[k->n], &miss, &n_miss, k->err));
    cd_network_source_say(k->graph[k->n], o->log);
    k->n++;
    for (uint32_t i = 0; i < n_miss; i++)
        cd_log_put(o->log, CD_LOG_WARNING, "%.60s: %.60s is left out: %s", name, miss[i].op,
                   miss[i].reason);
    k->o->bad += n_miss;
    return CDMPP_OK;
}

static cdmpp_status read_rules(work *k) {
    cdmpp_status st = cd_fusion_rules_read(k->o->fusion_rules, &k->rules, k->err);
    for (size_t i = 0; !st && i < k->n; i++) {
        cd_workload *w;
        st = cd_workload_build(k->graph[i], &k->wo, &w, k->err);
        if (st) break;
        cd_main_profile_open_rules(k->o, w);
        cd_workload_free(w);
    }
    return st;
}

static cdmpp_status read_networks(work *k) {
    const char *at = k->o->network;
    while (*at && cd_main_profile_source(k->o) == CD_NETWORK_SOURCE_ZOO) {
        const size_t n = strcspn(at, ",");
        const char *name = cd_str_dup(&k->arena, (cd_str){at, n});
        if (!name) return CD_FAIL(k->err, ENOMEM, "networks");
        CD_TRY(read_one(k, name));
        at += n + (at[n] == ',');
    }
    return k->n ? CDMPP_OK : read_one(k, k->o->network);
}

/* A sample that cannot be used is told and counted like a bad record. */
static cdmpp_status read_samples(work *k, const char *path, bool grow, cd_kernel_samples *s) {
    const cd_record_listener l = cd_main_profile_listener(k->o);
    return cd_kernel_samples_open(path, grow, l.bad, l.ctx, s, k->err);
}

/* ---- sample ---- */

/* ", mean error 12.3 %"; nothing where no sample that is held out has an answer. */
static void put_error(cd_buf *b, const cd_kernel_score *s) {
    if (s->unknown < s->n) cd_buf_putf(b, ", mean error %.1f %%", s->error * 100);
}

static void told(void *ctx, uint32_t round, size_t samples, const cd_kernel_score *s) {
    const cd_main_profile *o = ctx;
    cd_buf b = {0};
    put_error(&b, s);
    cd_log_put(o->log, CD_LOG_INFO,
               "round %u: %zu samples, %zu of %zu held out within the target%.*s", round, samples,
               s->within, s->n, (int)b.n, b.p ? b.p : "");
    cd_buf_free(&b);
}

static cdmpp_status print_sampled(work *k, const cd_kernel_samples *s, const cd_kernel_sampled *r) {
    static const char *const end[] = {"target", "limit", "seconds", "nothing_new"};
    cd_buf b = {0};
    cd_json_writer w = {.out = &b};
    if (r->failed)
        cd_log_put(k->o->log, CD_LOG_WARNING, "%zu draws could not be measured; the last one: %s",
                   r->failed, r->why.msg);
    if (!k->o->json) {
        cd_buf_putf(&b, "%zu samples, %u rounds, ended by: %s\n", s->n, r->rounds, end[r->end]);
        cd_buf_putf(&b, "held out: %zu of %zu within %d %% (%zu without an answer)",
                    r->score.within, r->score.n, k->o->target_error ? k->o->target_error : 10,
                    r->score.unknown);
        put_error(&b, &r->score);
        cd_buf_puts(&b, "\n");
        return cd_main_profile_print(k->o, "", &b, k->err);
    }
    cd_json_write_open(&w, '{');
    cd_json_write_member_int(&w, "samples", (int64_t)s->n);
    cd_json_write_member_int(&w, "rounds", r->rounds);
    cd_json_write_member_str(&w, "end", end[r->end]);
    cd_json_write_member_int(&w, "failed", (int64_t)r->failed);
    cd_json_write_member_int(&w, "held", (int64_t)r->score.n);
    cd_json_write_member_int(&w, "within", (int64_t)r->score.within);
    cd_json_write_member_int(&w, "unknown", (int64_t)r->score.unknown);
    cd_json_write_member_real(&w, "error", r->score.error);
    cd_json_write_close(&w, '}');
    return cd_main_profile_print(k->o, "cdmpp.profile_kernels", &b, k->err);
}

static cdmpp_status sample(work *k) {
    const cd_main_profile *o = k->o;
    const cd_kernel_sampler_options so = {.target = o->target_error * 0.01,
                                          .within = o->within * 0.01,
                                          .limit = (size_t)o->limit,
                                          .seconds = o->seconds,
                                          .first = (size_t)o->first,
                                          .plain = o->plain,
                                          .seed = (uint64_t)o->seed,
                                          .stop = o->stop,
                                          .told = told,
                                          .ctx = k->o};
    const cd_kernel_clock c = cd_kernel_executor_clock(&k->x);
    cd_kernel_samples s;
    cd_kernel_sampled r;
    cd_kernel_prior *p = NULL;
    cdmpp_status st = read_samples(k, o->out, true, &s);
    if (!st) st = cd_kernel_prior_new((const cd_graph *const *)k->graph, k->n, &k->wo, &p, k->err);
    if (!st) st = cd_kernel_sample_run(p, &c, &so, &s, &r, k->err);
    if (!st) st = print_sampled(k, &s, &r);
    cd_kernel_prior_free(p);
    cd_kernel_samples_free(&s);
    return st;
}

/* ---- predict ---- */

typedef struct answer {
    double predicted_s, measured_s; /* NaN: none */
} answer;

/* Does an earlier group have this type? */
static cdmpp_status is_told(work *k, const cd_workload *w, uint32_t group, const char *type,
                            bool *out) {
    cd_arena a = {0};
    cdmpp_status st = CDMPP_OK;
    *out = false;
    for (uint32_t g = 0; !st && g < group && !*out; g++) {
        cd_kernel x;
        if (w->group[g].task == CD_GRAPH_NONE) continue;
        st = cd_kernel_of(w, g, &a, &x, k->err);
        *out = !st && !strcmp(x.type, type);
    }
    cd_arena_free(&a);
    return st;
}

/* Each type that the model does not know, and each operator without a definition, is told once for
 * each network. */
static cdmpp_status tell_unknown(work *k, const cd_kernel_model *m, const cd_workload *w,
                                 const double *each) {
    cd_arena a = {0};
    cdmpp_status st = CDMPP_OK;
    for (uint32_t i = 0; i < w->n_unsupported; i++)
        cd_log_put(k->o->log, CD_LOG_WARNING, "%.60s: %.60s: %s", w->graph->name,
                   w->unsupported[i].op, w->unsupported[i].reason);
    for (uint32_t g = 0; !st && g < w->n_group; g++) {
        cd_kernel x;
        bool told;
        if (w->group[g].task == CD_GRAPH_NONE) continue;
        st = cd_kernel_of(w, g, &a, &x, k->err);
        if (st || cd_kernel_model_knows(m, x.type)) continue;
        st = is_told(k, w, g, x.type, &told);
        if (!st && !told)
            cd_log_put(k->o->log, CD_LOG_WARNING, "%.60s: too few samples of %.200s%s",
                       w->graph->name, x.type, isnan(each[g]) ? "" : ", all types answer for it");
    }
    cd_arena_free(&a);
    return st;
}

/* Runs the network. */
static cdmpp_status measure_one(work *k, const cd_workload *w, double *pass_s) {
    cd_kernel_time *t = cd_mem_alloc((w->n_group + 1) * sizeof *t);
    if (!t) return CD_FAIL(k->err, ENOMEM, "networks");
    const cdmpp_status st = cd_kernel_executor_time(&k->x, w, t, pass_s, k->err);
    cd_mem_free(t);
    return st;
}

static cdmpp_status predict_one(work *k, const cd_kernel_model *m, const cd_graph *g, answer *out) {
    cd_workload *w = NULL;
    double *each = NULL, *analytic;
    *out = (answer){(double)NAN, (double)NAN};
    CD_TRY(cd_workload_build(g, &k->wo, &w, k->err));
    cdmpp_status st = (each = cd_mem_zalloc(w->n_group + w->n_task + 1, sizeof *each))
                          ? CDMPP_OK
                          : CD_FAIL(k->err, ENOMEM, "networks");
    analytic = each ? each + w->n_group : NULL;
    if (!st && k->x.device) st = cd_kernel_executor_estimate(&k->x, w, analytic, k->err);
    if (!st)
        st = cd_kernel_model_network(m, w, k->x.device ? analytic : NULL, each, &out->predicted_s,
                                     k->err);
    if (!st && isnan(out->predicted_s)) k->o->bad++;
    if (!st) st = tell_unknown(k, m, w, each);
    if (!st && k->o->measure) st = measure_one(k, w, &out->measured_s);
    cd_mem_free(each);
    cd_workload_free(w);
    return st;
}

static void put_row(cd_buf *b, const char *name, const answer *a) {
    cd_buf_putf(b, "%-24s", name);
    if (isnan(a->predicted_s)) cd_buf_putf(b, " %12s", "-");
    else cd_buf_putf(b, " %12.4f", a->predicted_s * 1e3);
    if (!isnan(a->measured_s)) cd_buf_putf(b, " %12.4f", a->measured_s * 1e3);
    if (!isnan(a->measured_s) && !isnan(a->predicted_s))
        cd_buf_putf(b, " %+8.1f %%", (a->predicted_s / a->measured_s - 1) * 100);
    cd_buf_puts(b, "\n");
}

static cdmpp_status print_predicted(work *k, const answer *a) {
    const double target = k->o->target_error ? k->o->target_error * 0.01 : 0.1;
    size_t within = 0;
    cd_buf b = {0};
    cd_json_writer w = {.out = &b};
    for (size_t i = 0; i < k->n; i++)
        within += fabs(a[i].predicted_s / a[i].measured_s - 1) <= target;
    if (!k->o->json) {
        cd_buf_putf(&b, "%-24s %12s%s\n", "network", "predicted ms",
                    k->o->measure ? "  measured ms      error" : "");
        for (size_t i = 0; i < k->n; i++) put_row(&b, k->graph[i]->name, &a[i]);
        if (k->o->measure)
            cd_buf_putf(&b, "within %.0f %%: %zu of %zu networks\n", target * 100, within, k->n);
        return cd_main_profile_print(k->o, "", &b, k->err);
    }
    cd_json_write_open(&w, '{');
    cd_json_write_key(&w, "networks");
    cd_json_write_open(&w, '[');
    for (size_t i = 0; i < k->n; i++) {
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "network", k->graph[i]->name);
        cd_json_write_member_real(&w, "predicted_s", a[i].predicted_s);
        cd_json_write_member_real(&w, "measured_s", a[i].measured_s);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    if (k->o->measure) cd_json_write_member_int(&w, "within", (int64_t)within);
    cd_json_write_close(&w, '}');
    return cd_main_profile_print(k->o, "cdmpp.profile_kernels", &b, k->err);
}

static cdmpp_status predict(work *k) {
    cd_kernel_samples s;
    cd_kernel_model *m = NULL;
    answer a[MAX_NETWORK];
    cdmpp_status st = read_samples(k, k->o->operand.v[1], false, &s);
    if (!st) st = cd_kernel_model_train(&s, -1, &m, k->err);
    for (size_t i = 0; !st && i < k->n; i++) st = predict_one(k, m, k->graph[i], &a[i]);
    if (!st) st = print_predicted(k, a);
    cd_kernel_model_free(m);
    cd_kernel_samples_free(&s);
    return st;
}

/* One thread, if nothing else is said: its own time is read. The measurer forks, so it is opened
 * first of all. */
cdmpp_status cd_main_profile_kernels(cd_main_profile *o, cdmpp_err *err) {
    cd_measure_options mo = cd_main_profile_measure_options(o);
    work k = {.o = o, .err = err};
    cd_describe_entry here;
    mo.threads = o->threads > 0 ? o->threads : 1;
    mo.jobs = o->jobs;
    k.hardware = cd_target_hardware(false, mo.threads, 64);
    k.wo = (cd_workload_options){.target = target_of(o),
                                 .hardware = &k.hardware,
                                 .rules = o->fusion_rules ? &k.rules : NULL};
    k.x = (cd_kernel_executor){.target = target_of(o),
                               .hardware = k.hardware,
                               .threads = mo.threads,
                               .trials = (uint32_t)o->trials,
                               .pool = cd_main_profile_pool(o),
                               .seed = (uint64_t)o->seed,
                               .budget_s = o->budget_ms * 1e-3,
                               .stop = o->stop};
    cdmpp_status st = cd_measure_open(&mo, &k.x.measure, err);
    if (!st) k.x.device = cd_main_profile_pool_device(o, mo.threads, &here);
    if (!st) st = read_networks(&k);
    if (!st && o->fusion_rules) st = read_rules(&k);
    if (!st) st = is_sample(o) ? sample(&k) : predict(&k);
    for (size_t i = 0; i < k.n; i++) cd_graph_free(k.graph[i]);
    cd_fusion_rules_free(&k.rules);
    cd_arena_free(&k.arena);
    cd_measure_close(k.x.measure);
    return st;
}
