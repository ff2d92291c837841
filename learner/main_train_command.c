/* cdmpp-train -- train a latency model from a configuration. */
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "learner/main_train.h"
#include "learner/space.h"
#include "learner/trainprogress.h"

static const char usage[] =
    "usage: cdmpp-train [options] CONFIG.yaml\n"
    "       cdmpp-train --autotune SPACE.yaml [options] [CONFIG.yaml]\n"
    "  --out FILE        the model file (default: output.model of the configuration)\n"
    "  --finetune MODEL  networks go on from those of that model file; trees are trained anew\n"
    "  --autotune FILE   search that space over the configuration, write the best one to --out\n"
    "                    (default: best.yaml), then train it; docs/autotune.md\n"
    "  --checkpoint DIR  keep trained members and networks under way there; the same command goes on from\n"
    "                    them after a kill, to the same bytes\n"
    "  --journal FILE    of the search, so that it can go on (default: OUT.journal.jsonl)\n"
    "  --trial           train, print the validation figures, write nothing; the test part is not read\n"
    "  --set KEY=VALUE   override a key; may be given many times\n"
    "  --print-config    print the merged configuration as YAML and stop\n"
    "  --doc-config      print all keys (with --autotune: those of a search) as a Markdown table and stop\n"
    "  -j, --jobs N      threads (default: one per CPU); the result is the same\n"
    "  --json            print the figures as one JSON object\n"
    "  --report FILE     write a page (.html) about the training, with .json and .csv beside it\n"
    "                    (default: output.report of the configuration)\n"
    "  -q, --quiet       nothing but errors on standard error\n"
    "  -v, --verbose     a line for every round on standard error\n"
    "  --help, --version\n";

static volatile sig_atomic_t stop;
static void on_signal(int sig) { stop = sig; }

bool cd_main_go_on(void) { return !stop; }

static bool tick(void *ctx, const cd_tick *t) {
    cd_trainprogress_step(ctx, t);
    return cd_main_go_on();
}

cdmpp_status cd_main_config_failed(const cd_config *c, cd_main_options *o, cdmpp_status st, const cdmpp_err *err) {
    if (c->diag.n) fprintf(stderr, "%s", c->diag.text.p);
    else cd_log_err(&o->log, CD_LOG_ERROR, err);
    if (c->diag.n > 1) fprintf(stderr, "%s: %zu errors in the configuration\n", o->name, c->diag.n);
    return st;
}

enum { OPT_OUT = 256, OPT_FINETUNE, OPT_FOLDER, OPT_REPORT, OPT_SET, OPT_PRINT, OPT_DOC, OPT_JSON, OPT_SPACE, OPT_JOURNAL, OPT_TRIAL, OPT_HELP, OPT_VERSION };
static const char short_options[] = "j:qv";
static const struct option long_options[] = {
    {"out", 1, 0, OPT_OUT},     {"set", 1, 0, OPT_SET},   {"print-config", 0, 0, OPT_PRINT}, {"doc-config", 0, 0, OPT_DOC},
    {"jobs", 1, 0, 'j'},        {"json", 0, 0, OPT_JSON}, {"quiet", 0, 0, 'q'},              {"verbose", 0, 0, 'v'},
    {"help", 0, 0, OPT_HELP},   {"version", 0, 0, OPT_VERSION}, {"report", 1, 0, OPT_REPORT},
    {"finetune", 1, 0, OPT_FINETUNE}, {"checkpoint", 1, 0, OPT_FOLDER},
    {"autotune", 1, 0, OPT_SPACE}, {"journal", 1, 0, OPT_JOURNAL}, {"trial", 0, 0, OPT_TRIAL},
    {0, 0, 0, 0}};

static cdmpp_status bad_usage(const cd_main_options *o, const char *why) {
    fprintf(stderr, "%s: %s\n%s", o->name, why, usage);
    return CDMPP_EUSAGE;
}

static cdmpp_status read_options(int argc, char **argv, cd_main_options *o) {
    for (int c; (c = getopt_long(argc, argv, short_options, long_options, NULL)) != -1;) {
        char *end = NULL;
        switch (c) {
        case OPT_OUT: o->out = optarg; break;
        case OPT_SET: o->set[o->n_set++] = optarg; break;
        case OPT_SPACE: o->space = optarg; break;
        case OPT_JOURNAL: o->journal = optarg; break;
        case OPT_TRIAL: o->trial = true; break;
        case OPT_PRINT: o->print = true; break;
        case OPT_DOC: o->doc = true; break;
        case OPT_JSON: o->json = true; break;
        case OPT_REPORT: o->report = optarg; break;
        case OPT_FOLDER: o->folder = optarg; break;
        case OPT_FINETUNE: o->finetune = optarg; break;
        case 'q': o->log.level = CD_LOG_ERROR; break;
        case 'v': o->log.level = CD_LOG_DEBUG; break;
        case 'j':
            o->jobs = (int)strtol(optarg, &end, 10);
            if (*end || end == optarg || o->jobs < 1 || o->jobs > 1024) return bad_usage(o, "-j: expected an integer in 1..1024");
            break;
        case OPT_HELP: printf("%s", usage); o->done = true; return CDMPP_OK;
        case OPT_VERSION: printf("%s (cdmpp) %s\n", o->name, cdmpp_version()); o->done = true; return CDMPP_OK;
        default: return bad_usage(o, "unknown option");
        }
    }
    if (o->space && o->trial) return bad_usage(o, "expected --autotune or --trial, not both");
    if ((o->space || o->trial) && o->finetune) return bad_usage(o, "--finetune goes with neither --autotune nor --trial");
    if (o->crew && (o->space || o->trial)) return bad_usage(o, "--autotune and --trial are for cdmpp-train");
    if (o->space && optind == argc) return CDMPP_OK;
    if (!o->doc && optind != argc - 1) return bad_usage(o, optind < argc ? "expected one configuration" : "expected a configuration");
    return CDMPP_OK;
}

static cdmpp_status read_config(const char *path, cd_main_options *o, cd_config *c, cdmpp_err *err) {
    cdmpp_status st = cd_config_load(c, path, err);
    for (size_t i = 0; i < o->n_set; i++) {
        const cdmpp_status set = cd_config_set(c, o->set[i], err);
        if (!st) st = set;
    }
    if (o->report) c->output_report = o->report;
    if (!st && !o->print) st = cd_config_check(c, path, err);
    return st;
}

static void print_text(const cd_learned *l, const char *path, const char *report, double level) {
    cd_buf b = {0};
    for (int k = 0; k < CD_N_DROP; k++)
        if (l->filter.drop[k]) printf("dropped %zu of %zu programs: %s\n", l->filter.drop[k], l->filter.in, cd_drop_text((cd_drop)k));
    printf("%s", l->notes.p ? l->notes.p : "");
    for (int p = 0; p < CD_N_PART; p++) cd_metrics_text(&b, cd_part_name((cd_part)p), cd_split_name(l->kind), &l->metrics[p]);
    for (int p = 0; p < CD_N_PART; p++) cd_unsure_text(&b, cd_part_name((cd_part)p), level, &l->unsure[p]);
    printf("%smodel %s, %zu bytes\n", b.p ? b.p : "", path, l->file.n);
    if (report[0]) printf("report %s\n", report);
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

/* A folder that is missing is told now, not after hours of training. */
static cdmpp_status can_write(const char *path, cdmpp_err *err) {
    struct stat s;
    char *temp;
    if (!path[0] || (stat(path, &s) == 0 && !S_ISREG(s.st_mode))) return CDMPP_OK; /* a device: see when it is written */
    CD_TRY(cd_file_temp(path, &temp, err));
    cd_file_discard(temp);
    return CDMPP_OK;
}

static cdmpp_status write_out(const cd_config *c, const cd_main_options *o, cd_learned *l, const char *path, cdmpp_err *err) {
    CD_TRY(reload(l, err));
    CD_TRY(cd_file_write(path, l->file.p, l->file.n, err));
    CD_TRY(cd_trainkeep_write(l->keep, c->output_report, o->command ? o->command : "", err));
    if (o->json) print_json(l, path);
    else print_text(l, path, c->output_report, c->predict_level);
    return CDMPP_OK;
}

cdmpp_status cd_main_fit(const cd_config *c, cd_main_options *o, cdmpp_err *err) {
    const char *path = o->out ? o->out : c->output_model;
    cd_threads *pool = NULL;
    cd_learned l = {0};
    cd_model *start = NULL;
    cd_trainprogress progress;
    CD_TRY(can_write(path, err));
    CD_TRY(can_write(c->output_report, err));
    cdmpp_status st = cd_threads_new(o->jobs, &pool, err);
    cd_trainprogress_begin(&progress, &o->log);
    if (!st && o->finetune) st = cd_model_load(o->finetune, &start, err);
    const cd_learner_how how = {.pool = pool, .tick = tick, .ctx = &progress, .start = start, .folder = o->folder, .crew = o->crew};
    if (!st) st = cd_learner_run(c, NULL, &how, &l, err);
    cd_model_free(start);
    cd_trainprogress_end(&progress);
    if (!st && l.model) st = write_out(c, o, &l, path, err);
    cd_learned_free(&l);
    cd_threads_free(pool);
    return st;
}

static cdmpp_status with_config(const char *path, cd_main_options *o, cd_config *c, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_config_init(c, err);
    if (!st && o->doc) {
        size_t n;
        const cd_conf_key *key = o->space ? cd_space_keys(&n) : cd_config_keys(&n);
        cd_conf_doc(&b, key, n);
    } else {
        if (!st) st = read_config(path, o, c, err);
        if (st) return cd_main_config_failed(c, o, st, err);
        if (o->print) cd_config_print(&b, c);
    }
    if (b.p) fputs(b.p, stdout);
    cd_buf_free(&b);
    if (st || o->doc || o->print) return st;
    if (o->trial) st = cd_main_try(c, o, err);
    else st = c->data_kind ? cd_main_operators(c, path, o, err) : cd_main_fit(c, o, err);
    if (st) cd_log_err(&o->log, CD_LOG_ERROR, err);
    return st;
}

/* The words of the call as a shell would read them back. */
static char *shell_line(const char *name, int argc, char **argv) {
    cd_buf b = {0};
    cd_buf_puts(&b, name);
    for (int i = 1; i < argc; i++) {
        const char *s = argv[i];
        const size_t plain = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-");
        cd_buf_puts(&b, " ");
        if (*s && !s[plain]) {
            cd_buf_puts(&b, s);
            continue;
        }
        cd_buf_puts(&b, "'");
        for (; *s; s++) cd_buf_putf(&b, *s == '\'' ? "'\\''" : "%c", *s);
        cd_buf_puts(&b, "'");
    }
    if (b.oom) cd_buf_free(&b);
    return b.p;
}

static cdmpp_status run(const char *path, cd_main_options *o, cdmpp_err *err) {
    cd_config c;
    if (o->space && !o->doc) return cd_main_search(path, o, err);
    const cdmpp_status st = with_config(path, o, &c, err);
    cd_config_free(&c);
    return st;
}

int cd_main_train(int argc, char **argv, const char *name, const cd_crew *crew) {
    cd_main_options o = {.name = name, .crew = crew, .command = shell_line(name, argc, argv), /* before getopt sorts the words */
                         .set = calloc((size_t)argc + 1, sizeof *o.set)};
    cdmpp_err err = {0};
    const struct sigaction sa = {.sa_handler = on_signal};
    cd_log_init(&o.log, name, stderr);
    cdmpp_status st = o.set ? read_options(argc, argv, &o) : CDMPP_ENOMEM;
    if (!st && !o.done) {
        sigaction(SIGINT, &sa, NULL);
        sigaction(SIGTERM, &sa, NULL);
        st = run(optind < argc ? argv[optind] : NULL, &o, &err);
    }
    free(o.set);
    cd_log_done(&o.log);
    cd_free(o.command);
    return !st && o.skipped ? 3 : cdmpp_exit_code(st);
}
