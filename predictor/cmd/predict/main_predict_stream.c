/* main_predict_stream -- cdmpp-predict --stream. */
#include <signal.h>
#include <unistd.h>

#include "predictor/cmd/predict/main_predict.h"

enum { CACHE = 65536 };

/* A reader that goes away ends us without a word, even where whoever started us ignores that signal. */
static void mind_the_reader(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void tell(const cd_main_stream *o, const cd_serve_stats *n) {
    cd_buf b = {0};
    if (o->json) {
        cd_buf_putf(&b, "{\"schema\":\"cdmpp.stream\",\"command\":\"cdmpp-predict\",\"requests\":%zu,\"scored\":%zu,\"bad\":%zu,\"batches\":%zu,"
                    "\"cache\":{\"asked\":%llu,\"found\":%llu},\"reasons\":{", n->asked, n->scored, n->bad, n->batches,
                    (unsigned long long)n->cache_asked, (unsigned long long)n->cache_found);
        for (int k = 1, any = 0; k < CDMPP_STATUS_COUNT; k++)
            if (n->reason[k]) cd_buf_putf(&b, "%s\"%s\":%zu", any++ ? "," : "", cdmpp_status_name((cdmpp_status)k), n->reason[k]);
        cd_buf_puts(&b, "}}\n");
        if (b.p) fputs(b.p, stderr);
    } else {
        cd_log_put(o->log, CD_LOG_INFO, "%zu requests in %zu batches, %zu scored, %zu bad; cache: %llu of %llu found", n->asked, n->batches, n->scored,
                   n->bad, (unsigned long long)n->cache_found, (unsigned long long)n->cache_asked);
        for (int k = 1; k < CDMPP_STATUS_COUNT; k++)
            if (n->reason[k]) cd_log_put(o->log, CD_LOG_INFO, "%10zu  %s", n->reason[k], cdmpp_status_name((cdmpp_status)k));
    }
    cd_buf_free(&b);
}

static cdmpp_status load_tasks(const cd_main_stream *o, cdmpp_tasks **out, cdmpp_err *err) {
    if (!o->task.n) return CDMPP_OK;
    CD_TRY(cdmpp_tasks_new(out, err));
    for (size_t i = 0; i < o->task.n; i++) CD_TRY(cdmpp_tasks_load(*out, o->task.v[i], err));
    return CDMPP_OK;
}

static cdmpp_status serve(const cd_main_stream *o, const cdmpp_model *m, const cdmpp_tasks *tasks, size_t *bad, cdmpp_err *err) {
    const cdmpp_options opt = {.size = sizeof opt, .device = o->device, .profile = o->profile, .nearest_device = o->nearest,
                               .devices_file = o->devices, .nthreads = o->jobs > 0 ? o->jobs : 1, .cache = o->cache < 0 ? CACHE : (size_t)o->cache};
    const cd_serve_options so = {.in = STDIN_FILENO, .out = STDOUT_FILENO, .format = o->format < 0 ? CD_SERVE_NDJSON : (cd_serve_format)o->format,
                                 .batch = o->batch < 0 ? 0 : (size_t)o->batch, .max_delay_ms = o->max_delay_ms, .costs = o->eval,
                                 .profile = o->profile, .stop = o->stop};
    cdmpp_context *c = NULL;
    cd_serve_stats stats;
    CD_TRY(cdmpp_context_new(m, tasks, &opt, &c, err));
    const cdmpp_status st = cd_serve(c, m, tasks, &so, &stats, err);
    if (o->verbose || o->json) tell(o, &stats);
    *bad = stats.bad;
    cdmpp_context_free(c);
    return st;
}

cdmpp_status cd_main_predict_stream(const cd_main_stream *o, size_t *bad, cdmpp_err *err) {
    cdmpp_model *m = NULL;
    cdmpp_tasks *tasks = NULL;
    mind_the_reader();
    cdmpp_status st = cdmpp_model_load(o->model, &m, err);
    if (!st) st = load_tasks(o, &tasks, err);
    if (!st) st = serve(o, m, tasks, bad, err);
    cdmpp_tasks_free(tasks);
    cdmpp_model_free(m);
    return st;
}
