/* cdmpp -- `cdmpp VERB ...` becomes `cdmpp-VERB ...`; without a verb it answers about this machine
 * (predictor/overview). */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "predictor/overview/overview.h"

/* A program of its own each: what it takes, its own help says. */
#define VERB(v, brief)                                                                             \
    { "cdmpp " v, brief, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }
static const cd_command program[] = {
    VERB("replay", "latency of a network or a language model on a device"),
    VERB("tune", "search for fast schedules here; calibrate the model for this machine"),
    VERB("partition", "divide a network over devices"),
    VERB("predict", "latency of programs of measure records"),
    VERB("train", "train a cost model"),
    VERB("extract", "make a data set of measure records"),
    VERB("profile", "measure programs, describe devices, read traces"),
    VERB("mpi", "extract and train with several processes, where it was built with Open MPI"),
};
enum { N_PROGRAM = sizeof program / sizeof *program };
static const cd_command *const verb[] = {&program[0], &program[1], &program[2], &program[3],
                                         &program[4], &program[5], &program[6], &program[7],
                                         NULL,        NULL};

static const char *const use[] = {"[--json]", "COMMAND [ARGUMENT...]", NULL};
static const char *const example[] = {"This machine, and the latency of five networks on it",
                                      "cdmpp",
                                      "The latency of your network",
                                      "cdmpp replay my.onnx",
                                      "Better answers for this machine",
                                      "cdmpp tune calibrate",
                                      NULL};
static const char *const see[] = {
    "cdmpp-replay(1)", "cdmpp-tune(1)",    "cdmpp-partition(1)", "cdmpp-predict(1)",
    "cdmpp-train(1)",  "cdmpp-extract(1)", "cdmpp-profile(1)",   NULL};
static const cd_command self = {
    "cdmpp",
    "predict how long networks and tensor programs take",
    use,
    "Without a command: this machine, the cost model that answers for it and how far off it may "
    "be, and the latency of five well-known networks. Nothing is measured.\n\n"
    "`cdmpp COMMAND ...` is `cdmpp-COMMAND ...`: the program beside this one, else the first in "
    "$PATH. Its exit status is that of cdmpp. `cdmpp COMMAND --help` is its help.",
    NULL,
    0,
    NULL,
    NULL,
    example,
    NULL,
    see,
    verb,
    NULL,
    NULL};

static const char *name_of(size_t k) { return strrchr(program[k].name, ' ') + 1; }

/* ---- verbs ---- */
/* Only where the program cannot be started. */
static void start(const char *name, char **argv) {
    char self_path[PATH_MAX], path[PATH_MAX + 80], bare[80];
    const ssize_t n = readlink("/proc/self/exe", self_path, sizeof self_path - 1);
    self_path[n > 0 ? n : 0] = 0;
    char *slash = strrchr(self_path, '/');
    (void)snprintf(bare, sizeof bare, "cdmpp-%s", name);
    if (slash) {
        (void)snprintf(path, sizeof path, "%.*s/%s", (int)(slash - self_path), self_path, bare);
        argv[0] = path;
        (void)execv(path, argv);
        if (errno != ENOENT) return;
    }
    argv[0] = bare;
    (void)execvp(bare, argv);
}

static void put_verbs(cd_buf *b) {
    for (size_t k = 0; k < N_PROGRAM; k++) cd_buf_putf(b, "%s%s", k ? ", " : "", name_of(k));
}

static cdmpp_status unknown(const char *word, cdmpp_err *err) {
    const char *names[N_PROGRAM], *near;
    struct stat st;
    cd_buf all = {0};
    for (size_t k = 0; k < N_PROGRAM; k++) names[k] = name_of(k);
    if (!stat(word, &st))
        return CD_FAIL(err, EUSAGE,
                       "'%.80s' is a file, not a command. Its latency: cdmpp replay %.80s", word,
                       word);
    if (!strcmp(word, "calibrate"))
        return CD_FAIL(err, EUSAGE, "calibrate is a verb of tune: cdmpp tune calibrate");
    near = cd_did_you_mean_nearest(word, names, N_PROGRAM);
    put_verbs(&all);
    const cdmpp_status bad = CD_FAIL(err, EUSAGE, "no command '%.60s'%s%s%s Commands: %s", word,
                                     near ? ", did you mean '" : ".", near ? near : "",
                                     near ? "'?" : "", all.p ? all.p : "");
    cd_buf_free(&all);
    return bad;
}

static int refuse(char **argv, const cdmpp_err *err) {
    cd_command_run f;
    int code;
    if (!cd_command_begin(&f, &self, 1, argv, NULL, &code)) return code;
    code = cd_command_usage(&f, err);
    cd_command_end(&f);
    return code;
}

static int run_verb(char **argv) {
    cdmpp_err err = {0};
    for (size_t k = 0; k < N_PROGRAM && !err.code; k++) {
        if (strcmp(argv[1], name_of(k)) != 0) continue;
        start(name_of(k), argv + 1);
        (void)CD_FAIL(&err, EBACKEND,
                      "cannot start cdmpp-%s, neither beside this program nor in $PATH: %s",
                      name_of(k), strerror(errno));
    }
    if (!err.code) (void)unknown(argv[1], &err);
    return refuse(argv, &err);
}

/* ---- this machine ---- */
/* Messages below a warning would say again what stands in the answer. */
static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    (void)to;
    cd_overview o = {0};
    cd_log log;
    cd_buf b = {0};
    if (r->said.operand.n) return unknown(r->said.operand.v[0], err);
    cd_log_init(&log, self.name, stderr);
    log.json = r->log.json, log.keep = r->log.keep,
    log.level = r->said.quiet ? CD_LOG_ERROR : CD_LOG_WARNING;
    cdmpp_status st = cd_overview_ask(&log, r->said.json ? NULL : &r->log, r->stop, &o, err);
    if (!st) (r->said.json ? cd_overview_json : cd_overview_text)(&o, &b);
    else if (!r->said.json) cd_overview_machine_text(&o.machine, &b);
    if (!st) st = cd_command_result(r->said.json, "cdmpp.overview", self.name, &log, &b, err);
    else (void)cd_command_print(&b, NULL);
    cd_overview_free(&o);
    cd_log_done(&log);
    return st;
}

/* A word that is no option is a command, and what follows is the command's. `help COMMAND` is
 * `COMMAND --help`. */
int main(int argc, char **argv) {
    char none, help[] = "--help";
    if (argc > 1 && !strcmp(argv[1], "help")) {
        argv[1] = argc > 2 ? argv[2] : help;
        if (argc > 2) argv[2] = help;
        argc = argc > 2 ? 3 : 2;
        argv[argc] = NULL;
    }
    if (argc > 1 && argv[1][0] != '-') return run_verb(argv);
    return cd_command_main(&self, argc, argv, &none, run);
}
