/* The manual page of a command in roff, from its table of options: help and manual cannot
 * disagree. */
#include <ctype.h>

#include "base/cli/cli.h"

/* Text that roff prints as it is: dashes stay dashes, no line is a request. */
static void plain(cd_buf *b, const char *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const bool start = !b->n || b->p[b->n - 1] == '\n';
        if (start && (s[i] == '.' || s[i] == '\'')) cd_buf_puts(b, "\\&");
        if (s[i] == '\\') cd_buf_puts(b, "\\e");
        else if (s[i] == '-') cd_buf_puts(b, "\\-");
        else if (s[i] == '\'') cd_buf_puts(b, "\\(aq");
        else if (s[i] == '^') cd_buf_puts(b, "\\(ha");
        else if (s[i] == '~') cd_buf_puts(b, "\\(ti");
        else if (s[i] == '`') cd_buf_puts(b, "\\(ga");
        else cd_buf_put(b, s + i, 1);
    }
}

static void text(cd_buf *b, const char *s) { plain(b, s, strlen(s)); }

/* A line of its own that stands in bold. */
static void bold(cd_buf *b, const char *s) {
    cd_buf_puts(b, "\\fB");
    text(b, s);
    cd_buf_puts(b, "\\fR");
}

static void paragraphs(cd_buf *b, const char *s) {
    for (const char *end; s; s = end ? end + 2 : NULL) {
        end = strstr(s, "\n\n");
        plain(b, s, end ? (size_t)(end - s) : strlen(s));
        cd_buf_puts(b, end ? "\n.PP\n" : "\n");
    }
}

static void head(cd_buf *b, const cd_command *c) {
    cd_buf_puts(b, ".\\\" Made from the command's table of options: --help=man.\n.TH ");
    for (const char *s = c->name; *s; s++) {
        const char upper = (char)toupper((unsigned char)*s);
        if (*s == '-' || *s == ' ') cd_buf_puts(b, "\\-");
        else cd_buf_put(b, &upper, 1);
    }
    cd_buf_putf(b, " 1 \"\" \"cdmpp %s\" \"cdmpp manual\"\n.SH NAME\n", CDMPP_VERSION);
    text(b, c->name);
    cd_buf_puts(b, " \\- ");
    text(b, c->brief);
    cd_buf_puts(b, "\n");
}

static void synopsis(cd_buf *b, const cd_command *c) {
    for (size_t i = 0; c->use[i]; i++) {
        if (i) cd_buf_puts(b, ".br\n");
        bold(b, c->name);
        cd_buf_puts(b, " ");
        text(b, c->use[i]);
        cd_buf_puts(b, "\n");
    }
}

/* "a|b|c"; what does not fit a line has words that it can be broken at. */
static void alternatives(cd_buf *b, const char *s) {
    const bool apart = strlen(s) > 60;
    for (size_t n; *s; s += n) {
        n = strcspn(s, "|");
        plain(b, s, n);
        if (s[n]) cd_buf_puts(b, apart ? ", " : "|"), n++;
    }
}

/* The option in bold, its argument in italics, then the help with the values that are allowed. */
static void put_option(cd_buf *b, const cd_option *o) {
    const bool may = o->arg && o->arg[0] == '[';
    cd_buf_puts(b, ".TP\n");
    if (o->letter) cd_buf_putf(b, "\\fB\\-%c\\fR, ", o->letter);
    cd_buf_puts(b, "\\fB\\-\\-");
    text(b, o->name);
    cd_buf_puts(b, "\\fR");
    if (o->arg) {
        cd_buf_puts(b, may ? "[=\\fI" : "=\\fI");
        plain(b, o->arg + may, strcspn(o->arg + may, "]"));
        cd_buf_puts(b, may ? "\\fR]" : "\\fR");
    }
    cd_buf_puts(b, "\n");
    text(b, o->help);
    cd_buf_puts(b, ".");
    if (o->kind == CD_OPTION_WORD || o->kind == CD_OPTION_INT) {
        cd_buf_puts(b, o->kind == CD_OPTION_WORD ? " One of " : " Range: ");
        alternatives(b, o->values);
        cd_buf_puts(b, ".");
    }
    if (cd_option_is_list(o)) cd_buf_puts(b, " May be given many times.");
    cd_buf_puts(b, "\n");
}

/* Own rows with `own`, those of every command without. */
static void rows(cd_buf *b, const cd_command *c, bool own) {
    const char *last = "";
    const cd_option *o;
    for (size_t i = own ? 0 : c->n_row;
         (o = cd_option_row(c, cd_option_shown(c, i), NULL)) && (!own || i < c->n_row); i++) {
        if (!o->help) continue;
        const char *group = cd_option_group(c, cd_option_shown(c, i));
        if (group && strcmp(group, last)) {
            cd_buf_puts(b, ".SS ");
            text(b, group);
            cd_buf_puts(b, "\n");
            last = group;
        }
        put_option(b, o);
    }
}

static void pairs(cd_buf *b, const char *title, const char *const *pair) {
    if (!pair) return;
    cd_buf_putf(b, ".SH %s\n", title);
    for (; pair[0]; pair += 2) {
        cd_buf_puts(b, ".TP\n");
        bold(b, pair[0]);
        cd_buf_puts(b, "\n");
        text(b, pair[1]);
        cd_buf_puts(b, "\n");
    }
}

static void examples(cd_buf *b, const char *const *pair) {
    for (size_t i = 0; pair && pair[0]; pair += 2) {
        if (i++) cd_buf_puts(b, ".PP\n");
        text(b, pair[0]);
        cd_buf_puts(b, ":\n.PP\n.RS 4\n.nf\n");
        text(b, pair[1]);
        cd_buf_puts(b, "\n.fi\n.RE\n");
    }
}

/* What is the same for every command (exit status, environment), and the command's files, examples
 * and references. */
static void last_sections(cd_buf *b, const cd_command *c) {
    static const char *const environment[] = {
        "NO_COLOR", "If set and not empty: no colours. There are none off a terminal anyway.",
        "TERM", "If unset or \"dumb\": neither colours nor a bar that redraws itself.", NULL};
    size_t n;
    const cd_cli_exit_row *e = cd_cli_exit_rows(&n);
    cd_buf_puts(b, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < n; i++) {
        cd_buf_putf(b, ".TP\n\\fB%d\\fR\n", e[i].code);
        text(b, e[i].help);
        cd_buf_puts(b, "\n");
    }
    pairs(b, "ENVIRONMENT", environment);
    pairs(b, "FILES", c->file);
    if (c->example) cd_buf_puts(b, ".SH EXAMPLES\n");
    examples(b, c->example);
    if (c->see) cd_buf_puts(b, ".SH SEE ALSO\n");
    for (size_t i = 0; c->see && c->see[i]; i++) {
        if (i) cd_buf_puts(b, ",\n");
        text(b, c->see[i]);
    }
    if (c->see) cd_buf_puts(b, "\n");
}

/* Verbs that are programs of their own have pages of their own. */
static void programs(cd_buf *b, const cd_command *c) {
    bool any = false;
    for (size_t i = 0; c->verb && c->verb[i]; i++) {
        if (c->verb[i]->use) continue;
        cd_buf_puts(b, any ? "" : ".SH COMMANDS\n");
        any = true;
        cd_buf_putf(b, ".TP\n\\fB%s\\fR\n", strrchr(c->verb[i]->name, ' ') + 1);
        text(b, c->verb[i]->brief);
        cd_buf_puts(b, "\n");
    }
}

/* Options of the command first, those that all commands have after them; a section per verb. */
void cd_option_man(cd_buf *b, const cd_command *c) {
    head(b, c);
    cd_buf_puts(b, ".SH SYNOPSIS\n");
    synopsis(b, c);
    cd_buf_puts(b, ".SH DESCRIPTION\n");
    paragraphs(b, c->about);
    cd_buf_puts(b, ".SH OPTIONS\n");
    rows(b, c, true);
    rows(b, c, false);
    programs(b, c);
    for (size_t i = 0; c->verb && c->verb[i]; i++) {
        if (!c->verb[i]->use) continue;
        cd_buf_puts(b, ".SH COMMAND ");
        for (const char *s = strrchr(c->verb[i]->name, ' ') + 1; *s; s++)
            cd_buf_putf(b, "%c", toupper((unsigned char)*s));
        cd_buf_puts(b, "\n");
        paragraphs(b, c->verb[i]->about);
        rows(b, c->verb[i], true);
    }
    last_sections(b, c);
}
