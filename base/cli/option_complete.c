/* Completion scripts for bash and zsh from a command's table of options. They need nothing but the
 * shell, so they work without the bash-completion package. */
#include <ctype.h>

#include "base/cli/cli.h"

/* The manual page of a command in roff, from its table of options: help and manual cannot
 * disagree. */

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

/* "cdmpp-mpi train" as a name in a shell: "_cdmpp_mpi_train". */
static void function(cd_buf *b, const char *name) {
    cd_buf_puts(b, "_");
    for (; *name; name++) cd_buf_put(b, *name == '-' || *name == ' ' ? "_" : name, 1);
}

static const char *verb_name(const cd_command *c) { return strrchr(c->name, ' ') + 1; }

/* "cdmpp train" is cdmpp-train, which has a completion of its own. */
static bool is_program(const cd_command *c) { return !c->use; }

static void call_verb(cd_buf *b, const cd_command *c) {
    if (is_program(c))
        cd_buf_putf(b, "_cdmpp_program %.*s-%s", (int)(verb_name(c) - 1 - c->name), c->name,
                    verb_name(c));
    else function(b, c->name);
}

/* Every part of "a|b" in quotes, `sep` between. */
static void parts(cd_buf *b, const char *values, const char *quote, const char *sep) {
    for (const char *v = values; v; v = strchr(v, '|'), v = v ? v + 1 : NULL)
        cd_buf_putf(b, "%s%s%.*s%s", v == values ? "" : sep, quote, (int)strcspn(v, "|"), v, quote);
}

/* ---- bash ---- */
static void bash_files(cd_buf *b, const char *patterns) {
    cd_buf_puts(b, "_cdmpp_files \"$cur\" ");
    parts(b, patterns && *patterns ? patterns : "*", "'", " ");
}

static void bash_words(cd_buf *b, const char *values) {
    cd_buf_puts(b, "mapfile -t COMPREPLY < <(compgen -W '");
    parts(b, values, "", " ");
    cd_buf_puts(b, "' -- \"$cur\")");
}

/* What follows an option that takes a value. */
static void bash_value(cd_buf *b, const cd_option *o) {
    const bool may = o->arg[0] == '[';
    cd_buf_putf(b, "    --%s%s", o->name, may ? "=" : "|--");
    if (!may) cd_buf_putf(b, "%s=", o->name);
    if (o->letter && !may) cd_buf_putf(b, "|-%c", o->letter);
    cd_buf_puts(b, ") ");
    if (cd_option_is_file(o)) bash_files(b, o->values);
    else if (o->kind == CD_OPTION_FOLDER) cd_buf_puts(b, "_cdmpp_files \"$cur\"");
    else if (o->kind == CD_OPTION_WORD) bash_words(b, o->values);
    else cd_buf_puts(b, ":"); /* a number or a text: nothing to offer */
    cd_buf_puts(b, "; return ;;\n");
}

static void bash_names(cd_buf *b, const cd_command *c) {
    const cd_option *o;
    cd_buf_puts(b, "        mapfile -t COMPREPLY < <(compgen -W '");
    for (size_t i = 0; (o = cd_option_row(c, i, NULL)); i++)
        if (o->help) cd_buf_putf(b, "%s--%s", i ? " " : "", o->name);
    cd_buf_puts(b, "' -- \"$cur\")\n");
}

static void bash_operands(cd_buf *b, const cd_command *c) {
    cd_buf_puts(b, "        ");
    if (c->verb) {
        cd_buf_puts(b, "mapfile -t COMPREPLY < <(compgen -W '");
        for (size_t i = 0; c->verb[i]; i++)
            cd_buf_putf(b, "%s%s", i ? " " : "", verb_name(c->verb[i]));
        cd_buf_puts(b, "' -- \"$cur\")");
    } else if (c->operand) {
        bash_files(b, c->operand);
    } else {
        cd_buf_puts(b, ":");
    }
    cd_buf_puts(b, "\n");
}

/* One function a command and a verb. bash splits --name=value at the =, so the function joins the
 * words again before it looks. */
static void bash_function(cd_buf *b, const cd_command *c) {
    const cd_option *o;
    function(b, c->name);
    cd_buf_puts(b, "() {\n"
                   "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                   "    COMPREPLY=()\n");
    for (size_t i = 0; c->verb && c->verb[i]; i++) {
        cd_buf_putf(b, "    if [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} == %s ]]; then ",
                    verb_name(c->verb[i]));
        call_verb(b, c->verb[i]);
        cd_buf_puts(b, "; return; fi\n");
    }
    cd_buf_puts(
        b,
        "    # bash cuts --name=value at the =\n"
        "    if [[ $cur == = ]]; then cur='' prev+='='\n"
        "    elif [[ $prev == = && $COMP_CWORD -gt 2 ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}=\n"
        "    fi\n"
        "    case $prev in\n");
    for (size_t i = 0; (o = cd_option_row(c, i, NULL)); i++)
        if (o->arg && o->help) bash_value(b, o);
    cd_buf_puts(b, "    --*=) return ;;\n    esac\n    if [[ $cur == -* ]]; then\n");
    bash_names(b, c);
    cd_buf_puts(b, "    else\n");
    bash_operands(b, c);
    cd_buf_puts(b, "    fi\n}\n");
}

/* Its script lies beside this one. */
static const char bash_program[] =
    "# PROGRAM: completes as for that one, with the words behind the first\n"
    "_cdmpp_program() {\n"
    "    local f=_${1//-/_} here=${BASH_SOURCE[0]%/*}\n"
    "    declare -F \"$f\" >/dev/null || { [[ -r $here/$1 ]] && . \"$here/$1\"; } || return 0\n"
    "    COMP_WORDS=(\"$1\" \"${COMP_WORDS[@]:2}\") COMP_CWORD=$((COMP_CWORD - 1))\n"
    "    \"$f\"\n"
    "}\n";

void cd_option_bash(cd_buf *b, const cd_command *c) {
    cd_buf_putf(b, "# bash completion of %s, made from its table of options: --help=bash\n",
                c->name);
    cd_buf_puts(b, "# CUR PATTERN...: folders, and files that fit\n"
                   "_cdmpp_files() {\n"
                   "    local cur=$1 p; shift\n"
                   "    mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"; for p; do compgen -f -X "
                   "\"!$p\" -- \"$cur\"; done)\n"
                   "    compopt -o filenames 2>/dev/null || :\n"
                   "}\n");
    if (c->verb && is_program(c->verb[0])) cd_buf_puts(b, bash_program);
    for (size_t i = 0; c->verb && c->verb[i]; i++)
        if (!is_program(c->verb[i])) bash_function(b, c->verb[i]);
    bash_function(b, c);
    cd_buf_puts(b, "complete -F ");
    function(b, c->name);
    cd_buf_putf(b, " %s\n", c->name);
}

/* ---- zsh ---- */

/* Inside '...[here]': quotes and brackets kept apart. */
static void zsh_text(cd_buf *b, const char *s) {
    for (; *s; s++) {
        if (*s == '\'') cd_buf_puts(b, "'\\''");
        else if (strchr("[]:\\", *s)) cd_buf_putf(b, "\\%c", *s);
        else cd_buf_put(b, s, 1);
    }
}

static void zsh_files(cd_buf *b, const char *patterns) {
    cd_buf_puts(b, "_files");
    if (!patterns || !*patterns) return;
    cd_buf_puts(b, " -g \"(");
    cd_buf_puts(b, patterns);
    cd_buf_puts(b, ")\"");
}

static void zsh_value(cd_buf *b, const cd_option *o) {
    const bool may = o->arg[0] == '[';
    cd_buf_putf(b, "%s%.*s:", may ? "::" : ":", (int)strcspn(o->arg + may, "]"), o->arg + may);
    if (cd_option_is_file(o)) zsh_files(b, o->values);
    else if (o->kind == CD_OPTION_FOLDER) cd_buf_puts(b, "_files -/");
    else if (o->kind == CD_OPTION_WORD)
        cd_buf_puts(b, "("), parts(b, o->values, "", " "), cd_buf_puts(b, ")");
    else cd_buf_puts(b, " ");
}

/* '*--tasks=[help]:FILE:_files' */
static void zsh_row(cd_buf *b, const cd_option *o, bool with_letter) {
    cd_buf_putf(b, " \\\n        '%s-", cd_option_is_list(o) ? "*" : "");
    if (with_letter) cd_buf_putf(b, "%c", o->letter);
    else cd_buf_putf(b, "-%s%s", o->name, !o->arg ? "" : o->arg[0] == '[' ? "=-" : "=");
    if (with_letter && o->arg && o->arg[0] != '[') cd_buf_puts(b, "+");
    cd_buf_puts(b, "[");
    zsh_text(b, o->help);
    cd_buf_puts(b, "]");
    if (o->arg && !(with_letter && o->arg[0] == '[')) zsh_value(b, o);
    cd_buf_puts(b, "'");
}

/* _arguments of zsh does the work; verbs are a state that calls the verb's own function. */
static void zsh_function(cd_buf *b, const cd_command *c) {
    const cd_option *o;
    function(b, c->name);
    cd_buf_puts(b, "() {\n    local curcontext=$curcontext state line\n    _arguments -s -C");
    for (size_t i = 0; (o = cd_option_row(c, i, NULL)); i++) {
        if (!o->help) continue;
        zsh_row(b, o, false);
        if (o->letter) zsh_row(b, o, true);
    }
    if (c->verb) {
        cd_buf_puts(b, " \\\n        '1:command:(");
        for (size_t i = 0; c->verb[i]; i++)
            cd_buf_putf(b, "%s%s", i ? " " : "", verb_name(c->verb[i]));
        cd_buf_puts(b,
                    ")' \\\n        '*:: :->rest'\n    [[ $state == rest ]] && case $line[1] in\n");
        for (size_t i = 0; c->verb[i]; i++) {
            cd_buf_putf(b, "    %s) ", verb_name(c->verb[i]));
            call_verb(b, c->verb[i]);
            cd_buf_puts(b, " ;;\n");
        }
        cd_buf_puts(b, "    esac");
    } else if (c->operand) {
        cd_buf_puts(b, " \\\n        '*:file:");
        zsh_files(b, c->operand);
        cd_buf_puts(b, "'");
    }
    cd_buf_puts(b, "\n}\n");
}

void cd_option_zsh(cd_buf *b, const cd_command *c) {
    cd_buf_putf(b,
                "#compdef %s\n# zsh completion of %s, made from its table of options: --help=zsh\n",
                c->name, c->name);
    if (c->verb && is_program(c->verb[0]))
        cd_buf_puts(b, "_cdmpp_program() { words[1]=$1; (( $+functions[_$1] )) && _$1 }\n");
    for (size_t i = 0; c->verb && c->verb[i]; i++)
        if (!is_program(c->verb[i])) zsh_function(b, c->verb[i]);
    zsh_function(b, c);
    cd_buf_putf(b, "if [[ $funcstack[1] == _%s ]]; then ", c->name);
    function(b, c->name);
    cd_buf_puts(b, " \"$@\"; else compdef ");
    function(b, c->name);
    cd_buf_putf(b, " %s; fi\n", c->name);
}
