/* The frame of a command: exit codes, who reports an error, and that a full disk is an error. Each
 * run is a process of its own, as it is for a user: it has its own standard output and signals. */
#include <sys/wait.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "base/io/io.h"
#include "check.h"
#include "tmp.h"

typedef struct {
    const char *mode;
    bool verbose;
} opts;

static const cd_option rows[] = {
    {"mode", 0, "MODE", CD_OPTION_TEXT, offsetof(opts, mode), NULL, 0, "What to do"},
    {"verbose", 'v', NULL, CD_OPTION_FLAG, offsetof(opts, verbose), NULL, 0, "More"},
};
static const char *const use[] = {"[OPTION...] FILE...", NULL};
static const cd_command demo = {.name = "demo",
                                .brief = "do",
                                .use = use,
                                .about = "Text.",
                                .row = rows,
                                .n_row = 2,
                                .operand = ""};

static cdmpp_status work(cd_command_run *r, void *options, cdmpp_err *err) {
    const opts *o = options;
    cd_command_verbose(r, o->verbose);
    cd_log_put(&r->log, CD_LOG_DEBUG, "details");
    if (!strcmp(o->mode, "skip")) r->exit_code = 3;
    if (!strcmp(o->mode, "fail")) return CD_FAIL(err, ERANGE, "too large");
    if (!strcmp(o->mode, "listed"))
        return cd_command_reported(CD_FAIL(err, ESCHEMA, "not shown"), err);
    if (!strcmp(o->mode, "operand")) printf("%s of %d\n", r->said.operand.v[0], r->argc);
    if (!strcmp(o->mode, "print") || !strcmp(o->mode, "finish")) {
        cd_buf b = {0};
        cd_buf_puts(&b, "text");
        const cdmpp_status st = cd_command_print(&b, err);
        /* as the verbs of a command do */
        if (!strcmp(o->mode, "finish")) _exit(cd_command_finish(r, st, err, false));
        return st;
    }
    if (!strcmp(o->mode, "signal")) {
        raise(SIGTERM);
        return *r->stop == SIGTERM ? CD_FAIL(err, EINTERRUPTED, "stopped") : CDMPP_OK;
    }
    if (!strcmp(o->mode, "patient")) { /* the third one would kill, then none does */
        cd_signals_kill_at(3);
        raise(SIGTERM), raise(SIGINT);
        cd_signals_kill_at(0);
        raise(SIGTERM), raise(SIGTERM);
    }
    if (!strcmp(o->mode, "deaf")) { /* looks at no signal, and has a file half written */
        char *temp;
        CD_TRY(cd_file_temp(r->said.operand.v[0], &temp, err));
        raise(SIGTERM);
        for (;;) (void)sleep(60);
    }
    if (!strcmp(o->mode, "twice")) raise(SIGTERM), raise(SIGTERM);
    return CDMPP_OK;
}

static const char UNREAD[] = "a pipe that nobody reads";

/* Standard output as behind "| head", for a command whose parent process ignores SIGPIPE. */
static void leave_unread(void) {
    int fd[2];
    if (pipe(fd)) _exit(99);
    dup2(fd[1], 1), close(fd[0]), close(fd[1]);
    signal(SIGPIPE, SIG_IGN);
}

/* Exit code of a command line; `out` gets what it wrote to standard output and standard error. */
static int run(char **argv, const char *to, char *out, size_t n) {
    int fd[2], status, argc = 0;
    while (argv[argc]) argc++;
    assert_int_equal(pipe(fd), 0);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        opts o = {.mode = "ok"};
        dup2(fd[1], 1), dup2(fd[1], 2), close(fd[0]);
        if (to == UNREAD) leave_unread();
        else if (to && !freopen(to, "w", stdout)) _exit(99);
        _exit(cd_command_main(&demo, argc, argv, &o, work));
    }
    close(fd[1]);
    size_t got = 0;
    for (ssize_t k; (k = read(fd[0], out + got, n - 1 - got)) > 0;) got += (size_t)k;
    out[got] = 0;
    close(fd[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void exit_codes_and_messages(void **s) {
    static const struct {
        const char *word[5];
        int code;
        const char *text;
    } row[] = {
        {{"demo"}, 0, ""},
        {{"demo", "--mode=skip"}, 3, ""},
        {{"demo", "--mode=fail"}, 4, "demo: error: too large [ERANGE]\n"},
        {{"demo", "--mode=fail", "--quiet"}, 4, "demo: error: too large [ERANGE]\n"},
        {{"demo", "--mode=listed"}, 4, ""},
        {{"demo", "--mode=signal"}, 130, "demo: error: stopped [EINTERRUPTED]\n"},
        {{"demo", "--mode=patient"}, 0, ""},
        {{"demo", "--mode=twice"}, -SIGTERM, ""},
        {{"demo", "--mode=operand", "a.json"}, 0, "a.json of 3\n"},
        {{"demo", "-v"}, 0, "demo: debug: details\n"},
        {{"demo", "-v", "--quiet"}, 0, ""},
        {{"demo", "--mod=x"},
         2,
         "demo: unknown option '--mod', did you mean '--mode'?\nTry 'demo --help'.\n"},
        {{"demo", "--usage"}, 0, "usage: demo [OPTION...] FILE...\n"},
    };
    (void)s;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char *argv[6] = {0}, out[2000];
        for (size_t k = 0; k < 5; k++) argv[k] = (char *)(uintptr_t)row[i].word[k];
        const int code = run(argv, NULL, out, sizeof out);
        if (code != row[i].code || strcmp(out, row[i].text))
            fail_msg("line %zu: exit code %d, '%s'", i, code, out);
    }
}

/* A process that is not ended here would wait for ever. */
TEST(work_that_looks_at_no_signal_is_ended) {
    tmp_dir d = tmp_make();
    char *argv[] = {(char[]){"demo"}, (char[]){"--mode=deaf"},
                    (char *)(uintptr_t)tmp_path(&d, "result"), NULL};
    char out[2000];
    assert_int_equal(run(argv, NULL, out, sizeof out), 130);
    assert_string_equal(out, "stopped: what was not written yet is lost\n");
    assert_int_equal(rmdir(d.path), 0); /* nothing is left in it */
}

TEST(a_full_disk_is_an_error) {
    char *argv[] = {(char[]){"demo"}, (char[]){"--mode=operand"}, (char[]){"x"}, NULL}, out[2000];
    assert_int_equal(run(argv, "/dev/full", out, sizeof out), 1);
    assert_non_null(strstr(out, "cannot write to standard output [EIO]"));
}

TEST(a_reader_that_goes_away_ends_a_command_without_a_word) {
    static const char *const line[][3] = {{"--mode=operand", "x", NULL},
                                          {"--mode=print", NULL, NULL},
                                          {"--mode=finish", NULL, NULL},
                                          {"--help", NULL, NULL}};
    for (size_t i = 0; i < sizeof line / sizeof *line; i++) {
        char *argv[] = {(char[]){"demo"}, (char *)(uintptr_t)line[i][0],
                        (char *)(uintptr_t)line[i][1], NULL};
        char out[2000];
        assert_int_equal(run(argv, UNREAD, out, sizeof out), -SIGPIPE);
        assert_string_equal(out, "");
    }
    /* nothing was written: the error is told */
    char *fails[] = {(char[]){"demo"}, (char[]){"--mode=fail"}, NULL}, out[2000];
    assert_int_equal(run(fails, UNREAD, out, sizeof out), 4);
    assert_string_equal(out, "demo: error: too large [ERANGE]\n");
}

TESTS(NULL, NULL, exit_codes_and_messages, work_that_looks_at_no_signal_is_ended,
      a_full_disk_is_an_error, a_reader_that_goes_away_ends_a_command_without_a_word)
