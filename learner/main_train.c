/* cdmpp-train -- train a latency model from a configuration. */
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "learner/learner.h"

static const char usage[] =
    "usage: cdmpp-train [options] CONFIG.yaml\n"
    "  --out FILE        the model file (default: output.model of the configuration)\n"
    "  --set KEY=VALUE   override a key; may be given many times\n"
    "  --print-config    print the merged configuration as YAML and stop\n"
    "  --doc-config      print all keys as a Markdown table and stop\n"
    "  -j, --jobs N      threads (default: one per CPU); the result is the same\n"
    "  --json            print the figures as one JSON object\n"
    "  --quiet           nothing but errors on standard error\n"
    "  --help, --version\n";

static volatile sig_atomic_t stop;
static void on_signal(int sig) { stop = sig; }

typedef struct {
    const char *out;
    int jobs;
    bool json, quiet, print, doc, done;
    cd_log log;
    bool tty;
} options;

static bool tick(void *ctx, const cd_tick *t) {
    const options *o = ctx;
    if (!o->quiet && (o->tty || t->step % 50 == 0))
        fprintf(stderr, "%scdmpp-train: %s: %s %llu, loss %.5f train, %.5f validation%s", o->tty ? "\r" : "", t->member, t->unit,
                (unsigned long long)t->step, t->train, t->valid, o->tty ? "\033[K" : "\n");
    return !stop;
}

/* The list of a configuration's errors; `err` alone when it is about no key. */
static cdmpp_status config_failed(const cd_config *c, options *o, cdmpp_status st, const cdmpp_err *err) {
    if (c->diag.n) fprintf(stderr, "%s", c->diag.text.p);
    else cd_log_err(&o->log, CD_LOG_ERROR, err);
    if (c->diag.n > 1) fprintf(stderr, "cdmpp-train: %zu errors in the configuration\n", c->diag.n);
    return st;
}

enum { OPT_OUT = 256, OPT_SET, OPT_PRINT, OPT_DOC, OPT_JSON, OPT_QUIET, OPT_HELP, OPT_VERSION };
static const struct option long_options[] = {
    {"out", 1, 0, OPT_OUT},     {"set", 1, 0, OPT_SET},   {"print-config", 0, 0, OPT_PRINT}, {"doc-config", 0, 0, OPT_DOC},
    {"jobs", 1, 0, 'j'},        {"json", 0, 0, OPT_JSON}, {"quiet", 0, 0, OPT_QUIET},        {"help", 0, 0, OPT_HELP},
    {"version", 0, 0, OPT_VERSION}, {0, 0, 0, 0}};

static cdmpp_status bad_usage(const char *why) {
    fprintf(stderr, "cdmpp-train: %s\n%s", why, usage);
    return CDMPP_EUSAGE;
}

/* First pass: everything but --set, which must come after the file. */
static cdmpp_status read_options(int argc, char **argv, options *o) {
    for (int c; (c = getopt_long(argc, argv, "j:", long_options, NULL)) != -1;) {
        char *end = NULL;
        switch (c) {
        case OPT_OUT: o->out = optarg; break;
        case OPT_SET: break;
        case OPT_PRINT: o->print = true; break;
        case OPT_DOC: o->doc = true; break;
        case OPT_JSON: o->json = true; break;
        case OPT_QUIET: o->quiet = true; break;
        case 'j':
            o->jobs = (int)strtol(optarg, &end, 10);
            if (*end || end == optarg || o->jobs < 1 || o->jobs > 1024) return bad_usage("-j: expected an integer in 1..1024");
            break;
        case OPT_HELP: printf("%s", usage); o->done = true; return CDMPP_OK;
        case OPT_VERSION: printf("cdmpp-train (cdmpp) %s\n", cdmpp_version()); o->done = true; return CDMPP_OK;
        default: return bad_usage("unknown option");
        }
    }
    if (!o->doc && optind != argc - 1) return bad_usage(optind < argc ? "expected one configuration" : "expected a configuration");
    return CDMPP_OK;
}

static cdmpp_status read_config(int argc, char **argv, options *o, cd_config *c, cdmpp_err *err) {
    const char *path = argv[optind];
    cdmpp_status st = cd_config_load(c, path, err);
    optind = 1;
    for (int k; (k = getopt_long(argc, argv, "j:", long_options, NULL)) != -1;) {
        if (k != OPT_SET) continue;
        const cdmpp_status set = cd_config_set(c, optarg, err);
        if (!st) st = set;
    }
    if (!st && !o->print) st = cd_config_check(c, path, err);
    return st;
}

static void print_text(const cd_learned *l, const char *path) {
    cd_buf b = {0};
    for (int k = 0; k < CD_N_DROP; k++)
        if (l->filter.drop[k]) printf("dropped %zu of %zu programs: %s\n", l->filter.drop[k], l->filter.in, cd_drop_text((cd_drop)k));
    printf("%s", l->notes.p ? l->notes.p : "");
    for (int p = 0; p < CD_N_PART; p++) cd_metrics_text(&b, cd_part_name((cd_part)p), cd_split_name(l->kind), &l->metrics[p]);
    printf("%smodel %s, %zu bytes\n", b.p ? b.p : "", path, l->file.n);
    cd_buf_free(&b);
}

static void print_json(const cd_learned *l, const char *path) {
    cd_buf b = {0};
    cd_buf_puts(&b, "{\"schema\":\"cdmpp.train\",\"command\":\"cdmpp-train\",\"model_file\":");
    cd_buf_put_json_str(&b, path, strlen(path));
    cd_buf_putf(&b, ",\"result\":%s}\n", cd_model_header(l->model));
    if (!b.oom) fputs(b.p, stdout);
    cd_buf_free(&b);
}

/* What was written is what a predictor will read: report from the file's bytes. */
static cdmpp_status reload(cd_learned *l, cdmpp_err *err) {
    cd_model *m;
    CD_TRY(cd_model_from_bytes(l->file.p, l->file.n, &m, err));
    cd_model_free(l->model);
    l->model = m;
    return CDMPP_OK;
}

static cdmpp_status train(const cd_config *c, options *o, cdmpp_err *err) {
    const char *path = o->out ? o->out : c->output_model;
    cd_threads *pool = NULL;
    cd_learned l = {0};
    cdmpp_status st = cd_threads_new(o->jobs, &pool, err);
    if (!st) st = cd_learner_train(c, NULL, pool, tick, o, &l, err);
    if (o->tty && !o->quiet) fprintf(stderr, "\r\033[K");
    if (!st) st = reload(&l, err);
    if (!st) st = cd_file_write(path, l.file.p, l.file.n, err);
    if (!st && o->json) print_json(&l, path);
    else if (!st) print_text(&l, path);
    cd_learned_free(&l);
    cd_threads_free(pool);
    return st;
}

static cdmpp_status with_config(int argc, char **argv, options *o, cd_config *c, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_config_init(c, err);
    if (!st && o->doc) {
        size_t n;
        const cd_conf_key *key = cd_config_keys(&n);
        cd_conf_doc(&b, key, n);
    } else {
        if (!st) st = read_config(argc, argv, o, c, err);
        if (st) return config_failed(c, o, st, err);
        if (o->print) cd_config_print(&b, c);
    }
    if (b.p) fputs(b.p, stdout);
    cd_buf_free(&b);
    if (st || o->doc || o->print) return st;
    st = train(c, o, err);
    if (st) cd_log_err(&o->log, CD_LOG_ERROR, err);
    return st;
}

int main(int argc, char **argv) {
    options o = {.tty = isatty(STDERR_FILENO) == 1};
    cd_config c;
    cdmpp_err err = {0};
    const struct sigaction sa = {.sa_handler = on_signal};
    cd_log_init(&o.log, "cdmpp-train", stderr);
    cdmpp_status st = read_options(argc, argv, &o);
    if (!st && !o.done) {
        sigaction(SIGINT, &sa, NULL);
        sigaction(SIGTERM, &sa, NULL);
        st = with_config(argc, argv, &o, &c, &err);
        cd_config_free(&c);
    }
    cd_log_done(&o.log);
    return cdmpp_exit_code(st);
}
