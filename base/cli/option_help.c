/* --help and --usage in 80 columns, and the exit codes that all commands share. Paragraphs of
 * `about` are parted by an empty line. */
#include <stdio.h>

#include "base/cli/cli.h"

enum { WIDTH = 80, LEFT = 26 };

static const cd_cli_exit_row exits[] = {
    {0, "done", "Done."},
    {1, "failure",
     "Failure: a file cannot be read or written, memory is short, a number is not finite."},
    {2, "usage", "Bad command line."},
    {3, "some items skipped",
     "Done, but some lines or records could not be used; they are counted and named."},
    {4, "bad input", "Bad input: malformed, out of range, unknown or missing."},
    {5, "mismatch", "Model and input do not fit each other."},
    {6, "backend missing", "A library or device that is needed is missing or fails."},
    {130, "interrupted",
     "Interrupted by a signal. What was finished is kept where the command keeps anything."},
};

const cd_cli_exit_row *cd_cli_exit_rows(size_t *n) {
    *n = sizeof exits / sizeof *exits;
    return exits;
}

/* Words of `text` from column `at` on, later lines from column `left`; ends the line. */
static void wrap(cd_buf *b, const char *text, size_t at, size_t left) {
    bool first = true;
    while (*(text += strspn(text, " "))) {
        const size_t n = strcspn(text, " ");
        if (!first && at + 1 + n > WIDTH - 1) {
            cd_buf_putf(b, "\n%*s", (int)left, "");
            at = left;
        } else if (!first) {
            cd_buf_puts(b, " ");
            at++;
        }
        cd_buf_put(b, text, n);
        at += n;
        text += n;
        first = false;
    }
    cd_buf_puts(b, "\n");
}

void cd_option_usage(cd_buf *b, const cd_command *c) {
    for (size_t i = 0; c->use[i]; i++) {
        const char *lead = i ? "   or: " : "usage: ";
        char line[400];
        snprintf(line, sizeof line, "%s %s", c->name, c->use[i]);
        cd_buf_puts(b, lead);
        wrap(b, line, strlen(lead), strlen(lead) + 4);
    }
}

/* "  -j, --jobs=N" */
static void put_option(cd_buf *b, const cd_option *o) {
    char left[80];
    const char *arg = o->arg ? o->arg : "";
    const char *open = *arg == '[' ? "[=" : *arg ? "=" : "";
    const char dash[] = {'-', o->letter, ',', 0};
    const int n = snprintf(left, sizeof left, "  %-3s --%s%s%s", o->letter ? dash : "", o->name,
                           open, arg + (*arg == '['));
    if (n < LEFT - 1) cd_buf_putf(b, "%-*s", LEFT, left);
    else cd_buf_putf(b, "%s\n%*s", left, LEFT, "");
    char help[600];
    snprintf(help, sizeof help, "%s%s", o->help, cd_option_is_list(o) ? " (repeatable)" : "");
    wrap(b, help, LEFT, LEFT);
}

static void put_exits(cd_buf *b) {
    char line[400] = "Exit status:";
    for (size_t i = 0, n = strlen(line); i < sizeof exits / sizeof *exits; i++)
        n += (size_t)snprintf(line + n, sizeof line - n, "%s %d %s", i ? "," : "", exits[i].code,
                              exits[i].brief);
    cd_buf_puts(b, "\n");
    wrap(b, line, 0, 0);
}

/* Synopsis, description, verbs, options by group, exit codes. */
void cd_option_help(cd_buf *b, const cd_command *c) {
    const cd_option *o;
    const char *last = NULL;
    cd_option_usage(b, c);
    for (const char *p = c->about; p; p = strstr(p, "\n\n"), p = p ? p + 2 : NULL) {
        char text[1200];
        const char *end = strstr(p, "\n\n");
        snprintf(text, sizeof text, "%.*s", end ? (int)(end - p) : (int)strlen(p), p);
        cd_buf_puts(b, "\n");
        wrap(b, text, 0, 0);
    }
    for (size_t i = 0; c->verb && c->verb[i]; i++) {
        cd_buf_putf(b, "%s  %-*s", i ? "" : "\nCommands:\n", LEFT - 2,
                    strrchr(c->verb[i]->name, ' ') + 1);
        wrap(b, c->verb[i]->brief, LEFT, LEFT);
    }
    for (size_t i = 0; (o = cd_option_row(c, cd_option_shown(c, i), NULL)); i++) {
        if (!o->help) continue;
        const char *group = cd_option_group(c, cd_option_shown(c, i));
        if (group != last || !i) cd_buf_putf(b, "\n%s:\n", group ? group : "Options");
        last = group;
        put_option(b, o);
    }
    put_exits(b);
}
