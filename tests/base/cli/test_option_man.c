/* The manual page of a command, whole: what is bold, what is escaped, which sections there are. */
#include "base/cli/cli.h"
#include "check.h"

static const cd_option rows[] = {
    {"out", 'o', "FILE", CD_OPTION_FILE, 0, NULL, 0, "The file's name: a\\b, ~, ^, `"},
    {"form", 0, "FORM", CD_OPTION_WORD, 0, "plain|rich", 1, ".form"},
    {"force", 'f', NULL, CD_OPTION_FLAG, 0, NULL, 1, "Write"},
};
static const char *const use[] = {"[OPTION...] FILE", "--form FORM", NULL};
static const char *const titles[] = {"First", "Second"};
static const char *const example[] = {"One", "x --out a", "Two", ".y", NULL};
static const char *const see[] = {"y(1)", "z(5)", NULL};
static const cd_command one = {.name = "de-mo",
                               .brief = "do nothing",
                               .use = use,
                               .about = "First.\n\n'Second'.",
                               .row = rows,
                               .n_row = 3,
                               .group = titles,
                               .example = example,
                               .see = see};
static const cd_command part = {.name = "up do", .brief = "a verb", .use = use, .about = "Text."};
static const cd_command *const verbs[] = {&part, NULL};
static const cd_command up = {
    .name = "up", .brief = "has verbs", .use = use, .about = "Text.", .verb = verbs};

TEST(whole_pages) {
    cd_buf b = {0};
    cd_option_man(&b, &one);
    assert_string_equal(
        b.p,
        ".\\\" Made from the command's table of options: --help=man.\n"
        ".TH DE\\-MO 1 \"\" \"cdmpp " CDMPP_VERSION "\" \"cdmpp manual\"\n"
        ".SH NAME\n"
        "de\\-mo \\- do nothing\n"
        ".SH SYNOPSIS\n"
        "\\fBde\\-mo\\fR [OPTION...] FILE\n"
        ".br\n"
        "\\fBde\\-mo\\fR \\-\\-form FORM\n"
        ".SH DESCRIPTION\n"
        "First.\n"
        ".PP\n"
        "\\&\\(aqSecond\\(aq.\n"
        ".SH OPTIONS\n"
        ".SS First\n"
        ".TP\n"
        "\\fB\\-o\\fR, \\fB\\-\\-out\\fR=\\fIFILE\\fR\n"
        "The file\\(aqs name: a\\eb, \\(ti, \\(ha, \\(ga.\n"
        ".SS Second\n"
        ".TP\n"
        "\\fB\\-\\-form\\fR=\\fIFORM\\fR\n"
        "\\&.form. One of plain|rich.\n"
        ".TP\n"
        "\\fB\\-f\\fR, \\fB\\-\\-force\\fR\n"
        "Write.\n"
        ".SS Output and help\n"
        ".TP\n"
        "\\fB\\-\\-json\\fR\n"
        "Print the summary as one JSON object on standard output.\n"
        ".TP\n"
        "\\fB\\-q\\fR, \\fB\\-\\-quiet\\fR\n"
        "Nothing but errors on standard error.\n"
        ".TP\n"
        "\\fB\\-\\-log\\-format\\fR=\\fIFORM\\fR\n"
        "Messages on standard error as text or as one JSON object a line. One of text|json.\n"
        ".TP\n"
        "\\fB\\-h\\fR, \\fB\\-\\-help\\fR[=\\fIFORM\\fR]\n"
        "Print help and stop; all: every option, man: the manual page, bash and zsh: a completion "
        "script. One of text|all|man|bash|zsh.\n"
        ".TP\n"
        "\\fB\\-\\-usage\\fR\n"
        "Print the synopsis and stop.\n"
        ".TP\n"
        "\\fB\\-V\\fR, \\fB\\-\\-version\\fR\n"
        "Print the version, also of the libraries in use, and stop.\n"
        ".SH EXIT STATUS\n"
        ".TP\n"
        "\\fB0\\fR\n"
        "Done.\n"
        ".TP\n"
        "\\fB1\\fR\n"
        "Failure: a file cannot be read or written, memory is short, a number is not finite.\n"
        ".TP\n"
        "\\fB2\\fR\n"
        "Bad command line.\n"
        ".TP\n"
        "\\fB3\\fR\n"
        "Done, but some lines or records could not be used; they are counted and named.\n"
        ".TP\n"
        "\\fB4\\fR\n"
        "Bad input: malformed, out of range, unknown or missing.\n"
        ".TP\n"
        "\\fB5\\fR\n"
        "Model and input do not fit each other.\n"
        ".TP\n"
        "\\fB6\\fR\n"
        "A library or device that is needed is missing or fails.\n"
        ".TP\n"
        "\\fB130\\fR\n"
        "Interrupted by a signal. What was finished is kept where the command keeps anything.\n"
        ".SH ENVIRONMENT\n"
        ".TP\n"
        "\\fBNO_COLOR\\fR\n"
        "If set and not empty: no colours. There are none off a terminal anyway.\n"
        ".TP\n"
        "\\fBTERM\\fR\n"
        "If unset or \"dumb\": neither colours nor a bar that redraws itself.\n"
        ".SH EXAMPLES\n"
        "One:\n"
        ".PP\n"
        ".RS 4\n"
        ".nf\n"
        "x \\-\\-out a\n"
        ".fi\n"
        ".RE\n"
        ".PP\n"
        "Two:\n"
        ".PP\n"
        ".RS 4\n"
        ".nf\n"
        "\\&.y\n"
        ".fi\n"
        ".RE\n"
        ".SH SEE ALSO\n"
        "y(1),\n"
        "z(5)\n");
    cd_buf_clear(&b);
    cd_option_man(&b, &up);
    assert_string_equal(
        b.p,
        ".\\\" Made from the command's table of options: --help=man.\n"
        ".TH UP 1 \"\" \"cdmpp " CDMPP_VERSION "\" \"cdmpp manual\"\n"
        ".SH NAME\n"
        "up \\- has verbs\n"
        ".SH SYNOPSIS\n"
        "\\fBup\\fR [OPTION...] FILE\n"
        ".br\n"
        "\\fBup\\fR \\-\\-form FORM\n"
        ".SH DESCRIPTION\n"
        "Text.\n"
        ".SH OPTIONS\n"
        ".SS Output and help\n"
        ".TP\n"
        "\\fB\\-\\-json\\fR\n"
        "Print the summary as one JSON object on standard output.\n"
        ".TP\n"
        "\\fB\\-q\\fR, \\fB\\-\\-quiet\\fR\n"
        "Nothing but errors on standard error.\n"
        ".TP\n"
        "\\fB\\-\\-log\\-format\\fR=\\fIFORM\\fR\n"
        "Messages on standard error as text or as one JSON object a line. One of text|json.\n"
        ".TP\n"
        "\\fB\\-h\\fR, \\fB\\-\\-help\\fR[=\\fIFORM\\fR]\n"
        "Print help and stop; all: every option, man: the manual page, bash and zsh: a completion "
        "script. One of text|all|man|bash|zsh.\n"
        ".TP\n"
        "\\fB\\-\\-usage\\fR\n"
        "Print the synopsis and stop.\n"
        ".TP\n"
        "\\fB\\-V\\fR, \\fB\\-\\-version\\fR\n"
        "Print the version, also of the libraries in use, and stop.\n"
        ".SH COMMAND DO\n"
        "Text.\n"
        ".SH EXIT STATUS\n"
        ".TP\n"
        "\\fB0\\fR\n"
        "Done.\n"
        ".TP\n"
        "\\fB1\\fR\n"
        "Failure: a file cannot be read or written, memory is short, a number is not finite.\n"
        ".TP\n"
        "\\fB2\\fR\n"
        "Bad command line.\n"
        ".TP\n"
        "\\fB3\\fR\n"
        "Done, but some lines or records could not be used; they are counted and named.\n"
        ".TP\n"
        "\\fB4\\fR\n"
        "Bad input: malformed, out of range, unknown or missing.\n"
        ".TP\n"
        "\\fB5\\fR\n"
        "Model and input do not fit each other.\n"
        ".TP\n"
        "\\fB6\\fR\n"
        "A library or device that is needed is missing or fails.\n"
        ".TP\n"
        "\\fB130\\fR\n"
        "Interrupted by a signal. What was finished is kept where the command keeps anything.\n"
        ".SH ENVIRONMENT\n"
        ".TP\n"
        "\\fBNO_COLOR\\fR\n"
        "If set and not empty: no colours. There are none off a terminal anyway.\n"
        ".TP\n"
        "\\fBTERM\\fR\n"
        "If unset or \"dumb\": neither colours nor a bar that redraws itself.\n");
    cd_buf_free(&b);
}

/* A verb without a synopsis is a program: it has a line in the page, and its own completion. */
TEST(verbs_that_are_programs) {
    static const cd_command run = {.name = "up run", .brief = "starts up-run"};
    static const cd_command *const programs[] = {&run, NULL};
    static const cd_command top = {
        .name = "up", .brief = "starts others", .use = use, .about = "Text.", .verb = programs};
    cd_buf b = {0};
    cd_option_man(&b, &top);
    cd_buf_put(&b, "", 1);
    assert_non_null(strstr(b.p, ".SH COMMANDS\n.TP\n\\fBrun\\fR\nstarts up\\-run\n"));
    assert_null(strstr(b.p, ".SH COMMAND RUN"));
    cd_buf_clear(&b);
    cd_option_bash(&b, &top);
    cd_buf_put(&b, "", 1);
    assert_non_null(
        strstr(b.p, "${COMP_WORDS[1]} == run ]]; then _cdmpp_program up-run; return; fi\n"));
    assert_null(strstr(b.p, "_up_run()"));
    cd_buf_clear(&b);
    cd_option_zsh(&b, &top);
    cd_buf_put(&b, "", 1);
    assert_non_null(strstr(b.p, "run) _cdmpp_program up-run ;;\n"));
    cd_buf_free(&b);
}

TESTS(NULL, NULL, whole_pages, verbs_that_are_programs)
