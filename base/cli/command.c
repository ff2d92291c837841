/* What all commands do alike: read the options, answer --help, --usage and --version, set up the
 * log, run, report an error once, end with the exit code of its status. */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "base/cli/library_versions.h"
#include "base/io/io.h"

/* Versions of the libraries that this program is linked with. Symbols are looked up by name with
 * dlsym(): a direct call would make every command load every library. */

/* How a library returns its version: as a text, as three numbers, or into a buffer. */
typedef enum { TEXT, THREE, BUFFER } how;

static const struct {
    const char *name, *symbol;
    how how;
} known[] = {
    {"XGBoost", "XGBoostVersion", THREE}, {"OpenBLAS", "openblas_get_config", TEXT},
    {"HDF5", "H5get_libversion", THREE},  {"libyaml", "yaml_get_version_string", TEXT},
    {"zstd", "ZSTD_versionString", TEXT}, {"liblzma", "lzma_version_string", TEXT},
    {"zlib", "zlibVersion", TEXT},        {"Open MPI", "MPI_Get_library_version", BUFFER},
};

/* The first word that begins with a digit, or with v and a digit: of "Open MPI v4.1.4, ...". */
static void put_number(const char *text, char *out, size_t n) {
    for (const char *p = text; *p; p += strspn(p, " ")) {
        const size_t len = strcspn(p, " ,");
        const char *digit = p + (*p == 'v');
        if (*digit >= '0' && *digit <= '9') {
            snprintf(out, n, "%.*s", (int)(len - (size_t)(digit - p)), digit);
            return;
        }
        p += strcspn(p, " ");
    }
}

static void ask(void *symbol, how form, cd_library_versions *out) {
    /* POSIX: what dlsym gives may be a function; ISO C has no cast for it. */
    union {
        void *object;
        const char *(*text)(void);
        void (*three)(int *, int *, int *);
        int (*buffer)(char *, int *);
    } call = {symbol};
    char text[1024] = "";
    int v[3] = {0}, n = 0;
    if (form == TEXT) {
        put_number(call.text(), out->version, sizeof out->version);
    } else if (form == THREE) {
        call.three(&v[0], &v[1], &v[2]);
        snprintf(out->version, sizeof out->version, "%d.%d.%d", v[0], v[1], v[2]);
    } else {
        call.buffer(text, &n);
        text[sizeof text - 1] = 0;
        put_number(text, out->version, sizeof out->version);
    }
}

/* Library k of all we know, 0, 1, ...; false after the last. version "": not in this program. */
static bool library_versions_at(size_t k, cd_library_versions *out) {
    if (k >= sizeof known / sizeof *known) return false;
    out->name = known[k].name;
    out->version[0] = 0;
    void *symbol = dlsym(RTLD_DEFAULT, known[k].symbol);
    if (symbol) ask(symbol, known[k].how, out);
    return true;
}

/* One handler of SIGINT and SIGTERM for all commands. It stores the number, which loops look at,
 * and sets a timer for work that looks too rarely: a handler may do no more than that. */

static volatile sig_atomic_t stop, seen, kill_at = 2;
/* the command itself: a process that it forked has no temporaries of its own, and must not remove
 * those */
static pid_t owner;

/* The command did not end in order in time. Files of results are renamed into place when they are
 * whole, so none is cut. */
static void on_overdue(int sig) {
    static const char text[] = "stopped: what was not written yet is lost\n";
    (void)sig;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    cd_file_remove_temps();
    _exit(cdmpp_exit_code(CDMPP_EINTERRUPTED));
}

static void on_signal(int sig) {
    const struct sigaction overdue = {.sa_handler = on_overdue};
    const struct itimerval grace = {.it_value = {.tv_sec = CD_SIGNALS_GRACE_MS / 1000,
                                                 .tv_usec = CD_SIGNALS_GRACE_MS % 1000 * 1000}};
    if (!stop && getpid() == owner) {
        sigaction(SIGALRM, &overdue, NULL);
        setitimer(ITIMER_REAL, &grace, NULL);
    }
    stop = sig;
    if (!kill_at || ++seen < kill_at) return;
    signal(sig, SIG_DFL);
    raise(sig);
}

volatile sig_atomic_t *cd_signals_stop(void) { return &stop; }

void cd_signals_kill_at(int n) { kill_at = n; }

/* From now on the first SIGINT or SIGTERM stores its number in *cd_signals_stop() and interrupts
 * system calls; the command ends CD_SIGNALS_GRACE_MS later at the latest, its temporary files
 * removed (cd_file_temp). The second signal kills. SIGPIPE is ignored, because a remote host that
 * goes away is an error of write() and not the end. One command a process. */
static void signals_take(void) {
    owner = getpid();
    /* without SA_RESTART: a blocking read returns */
    const struct sigaction act = {.sa_handler = on_signal};
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Standard output could not be written and is a pipe that nobody reads any more, as that of "|
 *   head": the process ends by
 * SIGPIPE, without a word. Else nothing happens: a full disk is the caller's error.
 *
 * poll() tells a pipe without a reader from a full disk: errno of the failed write is gone by
 * then. */
static void signals_end_unread(void) {
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    sigset_t set;
    if (!ferror(stdout) || poll(&out, 1, 0) != 1 || !(out.revents & POLLERR)) return;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(SIGPIPE);
}

/* Names of files may hold what a terminal takes for commands. Of texts without such characters
 * nothing is copied. */
static void harmless(cd_buf *b) {
    cd_buf clean = {0};
    bool any = false;
    for (size_t i = 0; i < b->n && !any; i++)
        any = ((unsigned char)b->p[i] < ' ' && b->p[i] != '\n') || (unsigned char)b->p[i] >= 0x7F;
    if (!any) return;
    cd_escape_terminal(&clean, (cd_str){b->p, b->n});
    cd_buf_free(b);
    *b = clean;
}

cdmpp_status cd_command_print(cd_buf *b, cdmpp_err *err) {
    harmless(b);
    cdmpp_status st = b->oom ? CD_FAIL(err, ENOMEM, "text of %zu bytes", b->n) : CDMPP_OK;
    if (!st && ((b->n && fwrite(b->p, 1, b->n, stdout) != b->n) || fflush(stdout) != 0))
        st = CD_FAIL(err, EIO, "cannot write to standard output");
    cd_buf_free(b);
    return st;
}

void cd_command_json(cd_buf *b, const char *schema, const char *command, const cd_log *log,
                     cd_buf *result) {
    cd_buf_putf(b, "{\"schema\":\"%s\",\"command\":\"%s\",\"result\":", schema, command);
    cd_buf_put(b, result->p ? result->p : "null", result->p ? result->n : 4);
    cd_buf_puts(b, ",\"warnings\":");
    cd_log_put_kept(log, b);
    cd_buf_puts(b, "}\n");
    b->oom |= result->oom;
    cd_buf_free(result);
}

void cd_command_quote(cd_buf *b, cd_buf *text) {
    cd_buf_put_json_str(b, text->p ? text->p : "", text->n);
    b->oom |= text->oom;
    cd_buf_free(text);
}

static void version_json(cd_buf *b, const char *name) {
    cd_library_versions l;
    const char *sep = "";
    cd_buf_putf(
        b, "{\"schema\":\"cdmpp.version\",\"command\":\"%s\",\"version\":\"%s\",\"libraries\":{",
        name, cdmpp_version());
    for (size_t k = 0; library_versions_at(k, &l); k++) {
        if (!l.version[0]) continue;
        cd_buf_putf(b, "%s\"%s\":", sep, l.name);
        cd_buf_put_json_str(b, l.version, strlen(l.version));
        sep = ",";
    }
    cd_buf_puts(b, "}}\n");
}

/* The version and the libraries in use, as lines or as one JSON object. */
static void command_version(cd_buf *b, const char *name, bool json) {
    cd_library_versions l;
    if (json) {
        version_json(b, name);
        return;
    }
    cd_buf_putf(b, "%s (cdmpp) %s\n", name, cdmpp_version());
    for (size_t k = 0; library_versions_at(k, &l); k++)
        if (l.version[0]) cd_buf_putf(b, "%s %s\n", l.name, l.version);
}

/* --help, --usage, --version: false when none was asked for. */
static bool answer(const cd_command_run *f, cd_buf *b) {
    static void (*const form[])(cd_buf *, const cd_command *) = {
        cd_option_help, cd_option_help_all, cd_option_man, cd_option_bash, cd_option_zsh};
    const cd_cli_args *s = &f->said;
    if (s->help_asked) form[s->help](b, f->command);
    else if (s->usage) cd_option_usage(b, f->command);
    else if (s->version) command_version(b, f->command->name, s->json);
    else return false;
    return true;
}

int cd_command_usage(cd_command_run *f, const cdmpp_err *err) {
    if (f->log.json) {
        cd_log_err(&f->log, CD_LOG_ERROR, err);
    } else {
        cd_buf b = {0};
        cd_escape_terminal(&b, cd_str_of(err->key));
        cd_buf_puts(&b, err->key[0] ? ": " : "");
        cd_escape_terminal(&b, cd_str_of(err->msg));
        fprintf(stderr, "%s: %s\nTry '%s --help'.\n", f->command->name,
                b.oom ? "out of memory" : b.p, f->command->name);
        cd_buf_free(&b);
    }
    return cdmpp_exit_code(err->code);
}

/* Where nobody reads the output there is nobody to tell either. */
static void report(cd_command_run *f, const cdmpp_err *err) {
    signals_end_unread();
    cd_log_err(&f->log, CD_LOG_ERROR, err);
}

/* --quiet and --log-format hold even for a mistake later in the same line: they are read before it
 * is reported. */
bool cd_command_begin(cd_command_run *f, const cd_command *c, int argc, char **argv, void *to,
                      int *code) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    *f = (cd_command_run){.command = c, .argc = argc, .argv = argv, .stop = cd_signals_stop()};
    cd_log_init(&f->log, c->name, stderr);
    cdmpp_status st = cd_option_read(c, argc, argv, to, &f->said, &err);
    f->log.json = f->said.log_format == 1;
    f->log.keep = f->said.json;
    if (f->said.quiet) f->log.level = CD_LOG_ERROR;
    *code = 0;
    if (st) {
        *code = cd_command_usage(f, &err);
    } else if (answer(f, &b)) {
        st = cd_command_print(&b, &err);
        if (st) report(f, &err);
        *code = cdmpp_exit_code(st);
    } else {
        return true;
    }
    cd_command_end(f);
    return false;
}

void cd_command_end(cd_command_run *f) {
    cd_cli_args_free(&f->said);
    cd_log_done(&f->log);
}

void cd_command_verbose(cd_command_run *r, bool verbose) {
    if (verbose && !r->said.quiet) r->log.level = CD_LOG_DEBUG;
}

cdmpp_status cd_command_reported(cdmpp_status st, cdmpp_err *err) {
    *err = (cdmpp_err){0};
    return st;
}

/* A full disk shows only when the buffer of standard output is flushed: a command that could not
 * write must not end with 0. */
int cd_command_main(const cd_command *c, int argc, char **argv, void *options, cd_command_fn *run) {
    cdmpp_err err = {0};
    cd_command_run r;
    int code;
    if (!cd_command_begin(&r, c, argc, argv, options, &code)) return code;
    signals_take();
    cdmpp_status st = run(&r, options, &err);
    if ((fflush(stdout) != 0 || ferror(stdout)) && !st)
        st = CD_FAIL(&err, EIO, "cannot write to standard output");
    if (st && err.code) report(&r, &err);
    code = st ? cdmpp_exit_code(st) : r.exit_code;
    cd_command_end(&r);
    return code;
}

int cd_command_finish(cd_command_run *f, cdmpp_status st, const cdmpp_err *err, bool left_out) {
    if (st) report(f, err);
    cd_command_end(f);
    return st ? cdmpp_exit_code(st) : left_out ? 3 : 0;
}

cdmpp_status cd_command_result(bool json, const char *schema, const char *command,
                               const cd_log *log, cd_buf *b, cdmpp_err *err) {
    cd_buf all = {0};
    if (!json) return cd_command_print(b, err);
    cd_command_json(&all, schema, command, log, b);
    return cd_command_print(&all, err);
}
