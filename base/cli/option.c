/* Parses a command line over the command's table of options. The rows that every command has
 * (--json, --quiet, --help ...) follow its own rows. Own code instead of getopt, because getopt
 * accepts abbreviations, and because one table must also give help, manual and completion. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/cli.h"
#include "base/io/io.h"

/* Real numbers of options. They are no kind of cd_option: their bounds are open in form ("0.05",
 * "1e-3"), and help shows no range for them. */

cdmpp_status cd_option_number(const char *option, const char *text, double lo, double hi,
                              double *out, cdmpp_err *err) {
    char *end;
    if (!text) return CDMPP_OK;
    const double v = strtod(text, &end);
    if (end == text || *end || !(v >= lo && v <= hi))
        return CD_FAIL(err, EUSAGE, "--%s: expected a number in %g..%g, found '%.60s'", option, lo,
                       hi, text);
    *out = v;
    return CDMPP_OK;
}

/* Files that a command writes are none of those that it reads: whoever mixes two names up keeps the
 * data. */

/* "x.h5", and of "data.files=x.h5" what follows. */
static bool is_named(const char *text, const char *path) {
    const char *is = text ? strrchr(text, '=') : NULL;
    return text && (cd_file_same(text, path) || (is && cd_file_same(is + 1, path)));
}

static bool names(const cd_option *o, const void *to, const char *path) {
    const void *at = (const char *)to + o->offset;
    const cd_texts *all = at;
    if (o->kind == CD_OPTION_FLAG || o->kind == CD_OPTION_INT || o->kind == CD_OPTION_WORD)
        return false;
    if (!cd_option_is_list(o)) return is_named(*(const char *const *)at, path);
    for (size_t k = 0; k < all->n; k++)
        if (is_named(all->v[k], path)) return true;
    return false;
}

static cdmpp_status apart(const cd_command *c, const cd_option *o, const void *to,
                          const cd_cli_args *said, cdmpp_err *err) {
    const char *path = *(const char *const *)((const char *)to + o->offset);
    if (!path || !strcmp(path, "-")) return CDMPP_OK;
    for (size_t k = 0; k < said->operand.n; k++)
        if (cd_file_same(said->operand.v[k], path))
            return CD_FAIL(err, EUSAGE, "--%s would overwrite %s", o->name, path);
    for (size_t k = 0; k < c->n_row; k++) {
        const cd_option *other = &c->row[k];
        if (other->offset == o->offset || !names(other, to, path)) continue;
        if (other->kind == CD_OPTION_OUTPUT)
            return CD_FAIL(err, EUSAGE, "--%s and --%s name one file, %s", o->name, other->name,
                           path);
        return CD_FAIL(err, EUSAGE, "--%s would overwrite --%s %s", o->name, other->name, path);
    }
    return CDMPP_OK;
}

cdmpp_status cd_option_outputs_apart(const cd_command *c, const void *to, const cd_cli_args *said,
                                     cdmpp_err *err) {
    for (size_t k = 0; k < c->n_row; k++)
        if (c->row[k].kind == CD_OPTION_OUTPUT) CD_TRY(apart(c, &c->row[k], to, said, err));
    return CDMPP_OK;
}

enum { MAX_ROWS = 64 };

/* What every command has. */
static const cd_option common[] = {
    {"json", 0, NULL, CD_OPTION_FLAG, offsetof(cd_cli_args, json), NULL, 0,
     "Print the summary as one JSON object on standard output"},
    {"quiet", 'q', NULL, CD_OPTION_FLAG, offsetof(cd_cli_args, quiet), NULL, 0,
     "Nothing but errors on standard error"},
    {"log-format", 0, "FORM", CD_OPTION_WORD, offsetof(cd_cli_args, log_format), "text|json", 0,
     "Messages on standard error as text or as one JSON object a line"},
    {"help", 'h', "[FORM]", CD_OPTION_WORD, offsetof(cd_cli_args, help), "text|all|man|bash|zsh", 0,
     "Print help and stop; all: every option, man: the manual page, bash and zsh: a completion "
     "script"},
    {"usage", 0, NULL, CD_OPTION_FLAG, offsetof(cd_cli_args, usage), NULL, 0,
     "Print the synopsis and stop"},
    {"version", 'V', NULL, CD_OPTION_FLAG, offsetof(cd_cli_args, version), NULL, 0,
     "Print the version, also of the libraries in use, and stop"},
};
enum { N_COMMON = sizeof common / sizeof *common };

const cd_option *cd_option_row(const cd_command *c, size_t i, bool *is_common) {
    const bool own = i < c->n_row;
    if (is_common) *is_common = !own;
    if (own) return &c->row[i];
    return i - c->n_row < N_COMMON ? &common[i - c->n_row] : NULL;
}

size_t cd_option_shown(const cd_command *c, size_t i) {
    size_t before = 0;
    if (!c->group || i >= c->n_row) return i;
    for (int g = 0;; g++)
        for (size_t k = 0; k < c->n_row; k++)
            if (c->row[k].group == g && before++ == i) return k;
}

const char *cd_option_group(const cd_command *c, size_t i) {
    if (i >= c->n_row) return "Output and help";
    return c->group ? c->group[c->row[i].group] : NULL;
}

void cd_cli_args_free(cd_cli_args *said) {
    cd_arena_free(&said->arena);
    memset(said, 0, sizeof *said);
}

typedef struct {
    const cd_command *c;
    char **argv;
    int argc, at; /* the word to read next */
    char *to;
    cd_cli_args *said;
    cdmpp_err *err;
} reader;

typedef struct {
    const cd_option *row;
    char *to; /* the struct that its offset is into */
} found;

static found find(const reader *r, const char *name, size_t n, char letter) {
    const cd_option *o;
    bool own;
    for (size_t i = 0; (o = cd_option_row(r->c, i, &own)); i++)
        if (name ? strlen(o->name) == n && !memcmp(o->name, name, n)
                 : o->letter && o->letter == letter)
            return (found){o, own ? (char *)r->said : r->to};
    return (found){0};
}

/* An option that begins so, else the nearest one. */
static const char *probably(const cd_command *c, const char *name) {
    const char *names[MAX_ROWS];
    const cd_option *o;
    size_t n = 0;
    for (size_t i = 0; n < MAX_ROWS && (o = cd_option_row(c, i, NULL)); i++) {
        if (!o->help) continue;
        if (*name && !strncmp(o->name, name, strlen(name))) return o->name;
        names[n++] = o->name;
    }
    return cd_did_you_mean_nearest(name, names, n);
}

static cdmpp_status unknown(const reader *r, const char *word, size_t n) {
    char name[80];
    snprintf(name, sizeof name, "%.*s", (int)n, word);
    const char *near = probably(r->c, name);
    if (near)
        return CD_FAIL(r->err, EUSAGE, "unknown option '--%s', did you mean '--%s'?", name, near);
    return CD_FAIL(r->err, EUSAGE, "unknown option '--%s'", name);
}

/* ---- values ---- */
static cdmpp_status read_int(const reader *r, const cd_option *o, const char *text, int *to) {
    char *end, *dots;
    const long lo = strtol(o->values, &dots, 10), hi = strtol(dots + 2, NULL, 10),
               v = strtol(text, &end, 10);
    if (end == text || *end || v < lo || v > hi || text[0] == ' ')
        return CD_FAIL(r->err, EUSAGE, "--%s: expected an integer in %s, found '%.60s'", o->name,
                       o->values, text);
    *to = (int)v;
    return CDMPP_OK;
}

static cdmpp_status read_word(const reader *r, const cd_option *o, const char *text, int *to) {
    const int k = cd_enum_names_find(o->values, (cd_str){text, strlen(text)});
    if (k < 0)
        return CD_FAIL(r->err, EUSAGE, "--%s: expected one of %s, found '%.60s'", o->name,
                       o->values, text);
    *to = k;
    return CDMPP_OK;
}

static cdmpp_status append(const reader *r, cd_texts *l, const char *text) {
    if (!l->v && !(l->v = cd_arena_alloc(&r->said->arena, (size_t)r->argc + 1, sizeof *l->v)))
        return CD_FAIL(r->err, ENOMEM, "list of %d words", r->argc);
    l->v[l->n++] = text;
    return CDMPP_OK;
}

static cdmpp_status mark(const reader *r, const cd_option *o) {
    cd_cli_args *s = r->said;
    if (!s->given && !(s->given = cd_arena_zalloc(&s->arena, r->c->n_row, sizeof *s->given)))
        return CD_FAIL(r->err, ENOMEM, "%zu options", r->c->n_row);
    s->given[o - r->c->row] = true;
    return CDMPP_OK;
}

/* A word that was left out is the first one: --help is --help=text. */
static cdmpp_status store(const reader *r, found f, const char *text) {
    void *to = f.to + f.row->offset;
    if (f.to != (char *)r->said) CD_TRY(mark(r, f.row));
    if (f.to == (char *)r->said && f.row->offset == offsetof(cd_cli_args, help))
        r->said->help_asked = true;
    switch (f.row->kind) {
    case CD_OPTION_FLAG: *(bool *)to = true; return CDMPP_OK;
    case CD_OPTION_INT: return read_int(r, f.row, text, to);
    case CD_OPTION_WORD: *(int *)to = 0; return text ? read_word(r, f.row, text, to) : CDMPP_OK;
    case CD_OPTION_TEXTS:
    case CD_OPTION_FILES: return append(r, to, text);
    case CD_OPTION_TEXT:
    case CD_OPTION_FILE:
    case CD_OPTION_OUTPUT:
    case CD_OPTION_FOLDER: break;
    }
    *(const char **)to = text;
    return CDMPP_OK;
}

/* ---- words ---- */

/* `text`: what follows in the same word; NULL: nothing. */
static cdmpp_status with_value(reader *r, found f, const char *text) {
    if (!text && f.row->arg[0] != '[') {
        if (r->at >= r->argc)
            return CD_FAIL(r->err, EUSAGE, "--%s: expected a value, %s, found none", f.row->name,
                           f.row->arg);
        text = r->argv[r->at++];
    }
    return store(r, f, text);
}

static cdmpp_status read_long(reader *r, const char *word) {
    const size_t n = strcspn(word, "=");
    const found f = find(r, word, n, 0);
    if (!f.row) return unknown(r, word, n);
    if (f.row->arg) return with_value(r, f, word[n] ? word + n + 1 : NULL);
    if (word[n])
        return CD_FAIL(r->err, EUSAGE, "--%s: takes no value, found '%.60s'", f.row->name,
                       word + n + 1);
    return store(r, f, NULL);
}

static cdmpp_status read_cluster(reader *r, const char *word) {
    for (; *word; word++) {
        const found f = find(r, NULL, 0, *word == '?' ? 'h' : *word);
        if (!f.row) return CD_FAIL(r->err, EUSAGE, "unknown option '-%c'", *word);
        if (f.row->arg && f.row->arg[0] != '[') return with_value(r, f, word[1] ? word + 1 : NULL);
        CD_TRY(store(r, f, NULL));
    }
    return CDMPP_OK;
}

/* Of two rows of one name the first would take every value, and the other none. */
static cdmpp_status check_names(const cd_command *c, cdmpp_err *err) {
    const cd_option *a, *b;
    for (size_t i = 0; (a = cd_option_row(c, i, NULL)); i++)
        for (size_t k = 0; k < i && (b = cd_option_row(c, k, NULL)); k++)
            if (!strcmp(a->name, b->name) || (a->letter && a->letter == b->letter))
                return CD_FAIL(err, EUSAGE,
                               "rows --%s and --%s of the table of %s have one name or letter: a "
                               "mistake in the program",
                               b->name, a->name, c->name);
    return CDMPP_OK;
}

/* --help and --usage stop the reading: whatever is wrong later in the line, the user gets help. */
cdmpp_status cd_option_read(const cd_command *c, int argc, char **argv, void *to, cd_cli_args *said,
                            cdmpp_err *err) {
    reader r = {c, argv, argc, 1, to, said, err};
    bool only_operands = false;
    CD_TRY(check_names(c, err));
    while (r.at < argc) {
        const char *word = argv[r.at++];
        cdmpp_status st;
        if (only_operands || word[0] != '-' || !word[1]) st = append(&r, &said->operand, word);
        else if (word[1] != '-') st = read_cluster(&r, word + 1);
        else if (word[2]) st = read_long(&r, word + 2);
        else only_operands = true, st = CDMPP_OK;
        if (st) return st;
        if (said->help_asked || said->usage) return CDMPP_OK;
    }
    if (said->version) return CDMPP_OK;
    CD_TRY(cd_option_outputs_apart(c, to, said, err));
    return c->check ? c->check(to, said, err) : CDMPP_OK;
}

/* --help, --help=all and --usage in 80 columns, and the exit codes that all commands share.
 * Paragraphs of `about` are parted by an empty line. */

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

/* At most `most` lines of the synopsis; how many there are. */
static size_t put_usage(cd_buf *b, const cd_command *c, size_t most) {
    size_t n = 0;
    while (c->use[n]) n++;
    for (size_t i = 0; i < n && i < most; i++) {
        const char *lead = i ? "   or: " : "usage: ";
        char line[400];
        snprintf(line, sizeof line, "%s %s", c->name, c->use[i]);
        cd_buf_puts(b, lead);
        wrap(b, line, strlen(lead), strlen(lead) + 4);
    }
    return n;
}

void cd_option_usage(cd_buf *b, const cd_command *c) { (void)put_usage(b, c, SIZE_MAX); }

/* "  -j, --jobs=N" and what follows it, from column LEFT on: `text` in a line, or NULL, the whole
 * help. */
static void put_option(cd_buf *b, const cd_option *o, const char *text) {
    char left[80];
    const char *arg = o->arg ? o->arg : "";
    const char *open = *arg == '[' ? "[=" : *arg ? "=" : "";
    const char dash[] = {'-', o->letter, ',', 0};
    const int n = snprintf(left, sizeof left, "  %-3s --%s%s%s", o->letter ? dash : "", o->name,
                           open, arg + (*arg == '['));
    if (n < LEFT - 1) cd_buf_putf(b, "%-*s", LEFT, left);
    else cd_buf_putf(b, "%s%s%*s", left, text ? " " : "\n", text ? 0 : LEFT, "");
    if (text) {
        cd_buf_putf(b, "%s\n", text);
        return;
    }
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

/* A paragraph; the next one or NULL. */
static const char *put_paragraph(cd_buf *b, const char *p) {
    char text[1200];
    const char *end = strstr(p, "\n\n");
    snprintf(text, sizeof text, "%.*s", end ? (int)(end - p) : (int)strlen(p), p);
    cd_buf_puts(b, "\n");
    wrap(b, text, 0, 0);
    return end ? end + 2 : NULL;
}

/* The beginning of a text that fits from column `left` to the right edge. */
static void cut_text(char *out, size_t size, const char *text, size_t left) {
    const size_t room = WIDTH - 1 - left;
    size_t n = strlen(text);
    if (n > room) {
        for (n = room - 3; n && text[n] != ' '; n--) {
        }
        while (n && strchr(" ,;:(", text[n - 1])) n--;
    }
    snprintf(out, size, "%.*s%s", (int)n, text, text[n] ? "..." : "");
}

/* `whole`: texts of several lines. */
static void put_verbs(cd_buf *b, const cd_command *c, bool whole) {
    for (size_t i = 0; c->verb && c->verb[i]; i++) {
        char text[WIDTH];
        const char *brief = c->verb[i]->brief;
        cut_text(text, sizeof text, brief, LEFT);
        cd_buf_putf(b, "%s  %-*s", i ? "" : "\nCommands:\n", LEFT - 2,
                    strrchr(c->verb[i]->name, ' ') + 1);
        wrap(b, whole ? brief : text, LEFT, LEFT);
    }
}

void cd_option_help_all(cd_buf *b, const cd_command *c) {
    const cd_option *o;
    const char *last = NULL;
    cd_option_usage(b, c);
    for (const char *p = c->about; p; p = put_paragraph(b, p)) {
    }
    put_verbs(b, c, true);
    for (size_t i = 0; (o = cd_option_row(c, cd_option_shown(c, i), NULL)); i++) {
        if (!o->help) continue;
        const char *group = cd_option_group(c, cd_option_shown(c, i));
        if (group != last || !i) cd_buf_putf(b, "\n%s:\n", group ? group : "Options");
        last = group;
        put_option(b, o, NULL);
    }
    put_exits(b);
}

/* ---- --help: what fits a screen ---- */
enum { SHORT_USES = 2, SHORT_EXAMPLES = 3 };

static void put_usual(cd_buf *b, const cd_command *c) {
    for (const cd_option_usual *u = c->usual; u && u->name; u++)
        for (size_t i = 0; i < c->n_row; i++)
            if (!strcmp(c->row[i].name, u->name)) put_option(b, &c->row[i], u->text);
    for (size_t i = 0; !c->usual && i < c->n_row; i++) {
        const cd_option *o = &c->row[cd_option_shown(c, i)];
        char text[WIDTH];
        if (!o->help) continue;
        cut_text(text, sizeof text, o->help, LEFT);
        put_option(b, o, text);
    }
}

static void put_short(cd_buf *b, const cd_command *c) {
    size_t n_own = 0;
    for (size_t i = 0; i < c->n_row; i++) n_own += c->row[i].help != NULL;
    const size_t n = put_usage(b, c, SHORT_USES);
    if (n > SHORT_USES) cd_buf_putf(b, "   and %zu more: --usage\n", n - SHORT_USES);
    if (c->about) (void)put_paragraph(b, c->about);
    put_verbs(b, c, false);
    for (size_t i = 0; c->example && c->example[2 * i] && i < SHORT_EXAMPLES; i++) {
        cd_buf_putf(b, "%s  # %s\n  ", i ? "" : "\n", c->example[2 * i]);
        wrap(b, c->example[2 * i + 1], 2, 6);
    }
    cd_buf_putf(b, c->usual ? "\nThe usual options:\n" : "\nOptions:\n");
    put_usual(b, c);
    cd_buf_putf(b, "\nAll %zu options%s and the exit statuses: %s --help=all\n", n_own + N_COMMON,
                c->group ? ", by topic," : "", c->name);
}

void cd_option_help(cd_buf *b, const cd_command *c) {
    const size_t begin = b->n;
    size_t lines = 0;
    cd_option_help_all(b, c);
    for (size_t i = begin; i < b->n; i++) lines += b->p[i] == '\n';
    if (b->oom || lines <= CD_OPTION_HELP_LINES) return;
    b->n = begin;
    put_short(b, c);
}
