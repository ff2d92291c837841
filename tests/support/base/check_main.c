/* The program of a room's suites of tests.
 *
 *   units           all suites, each in a process of its own: one that crashes does not end the
 *                   others
 *   units SUITE     the tests of one file, by its name without .c
 *   units --list    the names of the suites
 *   units WORD ...  a program that a suite starts as its child (check_suite.word) */
#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static check_suite *all;

/* Suites stay in the order of their names, whatever order the linker calls their constructors
 * in. */
void check_register(check_suite *suite) {
    check_suite **at = &all;
    while (*at && strcmp((*at)->file, suite->file) < 0) at = &(*at)->next;
    suite->next = *at;
    *at = suite;
}

/* The file's name without folder and .c. */
static const char *suite_name(const check_suite *s, char name[static NAME_MAX]) {
    const char *slash = strrchr(s->file, '/');
    snprintf(name, NAME_MAX, "%s", slash ? slash + 1 : s->file);
    name[strcspn(name, ".")] = 0;
    return name;
}

static int run_all(char *self) {
    int bad = 0;
    for (const check_suite *s = all; s; s = s->next) {
        char name[NAME_MAX];
        int status = 0;
        char *const argv[] = {self, (char[NAME_MAX]){0}, NULL};
        snprintf(argv[1], NAME_MAX, "%s", suite_name(s, name));
        fflush(NULL);
        const pid_t child = fork();
        if (!child) execv("/proc/self/exe", argv);
        if (child < 0 || waitpid(child, &status, 0) != child) return 1;
        if (!WIFEXITED(status) || WEXITSTATUS(status)) {
            print_error("%s: %s %d\n", name,
                        WIFSIGNALED(status) ? "ended by signal" : "exit status",
                        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            bad++;
        }
    }
    return bad != 0;
}

int main(int argc, char **argv) {
    char name[NAME_MAX];
    /* no test depends on models of who runs it */
    if (setenv("XDG_DATA_HOME", "/nonexistent", 1)) return 1;
    if (argc < 2) return run_all(argv[0]);
    for (const check_suite *s = all; s; s = s->next) {
        if (s->word && !strcmp(argv[1], s->word)) return s->program(argc, argv);
        if (!strcmp(argv[1], "--list")) puts(suite_name(s, name));
        else if (!strcmp(argv[1], suite_name(s, name))) return s->run();
    }
    if (!strcmp(argv[1], "--list")) return 0;
    print_error("no suite %s here; --list names them\n", argv[1]);
    return 2;
}
