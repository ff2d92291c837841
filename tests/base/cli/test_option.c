/* option: spellings that mean the same, mistakes that are told; every row of a table is
 * in the help, in the manual page and in both completions. */
#include "base/cli/cli.h"
#include "check.h"
#include "fault.h"
#include "tmp.h"

#include <unistd.h>

typedef struct {
    const char *out, *model, *dir, *words_text;
    cd_texts set, tasks;
    int jobs, form;
    bool verbose, strict;
} opts;

#define AT(m) offsetof(opts, m)
static const cd_option rows[] = {
    {"out", 'o', "FILE", CD_OPTION_OUTPUT, AT(out), NULL, 0,
     "The file to write, which is a sentence of a length that needs more than one line of eighty"},
    {"model", 0, "FILE", CD_OPTION_FILE, AT(model), "*.cdmpp|*.mod", 0,
     "It's the \"model\" [really]: a\\b"},
    {"dir", 0, "DIR", CD_OPTION_FOLDER, AT(dir), NULL, 0, ".starts with a dot"},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(jobs), "1..1024", 1, "Threads"},
    {"form", 0, "FORM", CD_OPTION_WORD, AT(form), "plain|rich|richer", 1, "Form"},
    {"set", 0, "KEY=VALUE", CD_OPTION_TEXTS, AT(set), NULL, 1, "Override"},
    {"tasks", 't', "FILE", CD_OPTION_FILES, AT(tasks), NULL, 1, "Tasks"},
    {"verbose", 'v', NULL, CD_OPTION_FLAG, AT(verbose), NULL, 1, "More"},
    {"strict", 's', NULL, CD_OPTION_FLAG, AT(strict), NULL, 1, "Stop"},
    {"an-option-with-a-very-long-name", 0, "ARGUMENT", CD_OPTION_TEXT, AT(words_text), NULL, 1,
     "Long"},
};
static cdmpp_status no_strict_form(void *to, const cd_cli_args *said, cdmpp_err *err) {
    const opts *o = to;
    (void)said;
    return o->strict && o->form ? CD_FAIL(err, EUSAGE, "not both") : CDMPP_OK;
}
static const char *const use[] = {"[OPTION...] FILE...", "--dir DIR", NULL};
static const char *const titles[] = {"First", "Second"};
static const char *const example[] = {"One", "x --out a\n.b 'c' \\d", NULL};
static const char *const see[] = {"y(1)", "z(5)", NULL};
static const cd_command demo = {"de-mo",
                                "do nothing",
                                use,
                                "First paragraph.\n\n'Second' paragraph.",
                                rows,
                                sizeof rows / sizeof *rows,
                                titles,
                                "*.json",
                                example,
                                example,
                                see,
                                NULL,
                                no_strict_form,
                                NULL};
static const cd_command sub = {"up do", "a verb", use,  "Text.", rows, 3,    NULL,
                               "",      NULL,     NULL, NULL,    NULL, NULL, NULL};
static const cd_command *const verbs[] = {&sub, NULL};
static const cd_command up = {"up", "has verbs", use,  "Text.", NULL,  0,    NULL,
                              NULL, NULL,        NULL, see,     verbs, NULL, NULL};

/* ---- parsing ---- */
typedef struct {
    opts o;
    cd_cli_args said;
    cdmpp_err err;
    cdmpp_status st;
} result;

/* `line` is cut at spaces. */
static char *word[32];
static char text_[512];
static result parse(const char *line) {
    result r = {0};
    int n = 0;
    snprintf(text_, sizeof text_, "%s", line);
    word[n++] = text_;
    for (char *p = strchr(text_, ' '); p; p = strchr(p, ' ')) {
        *p++ = 0;
        word[n++] = p;
    }
    r.st = cd_option_read(&demo, n, word, &r.o, &r.said, &r.err);
    return r;
}

TEST(spellings) {
    static const char *const same[] = {"x -v -j 4 -o f a b",
                                       "x -vj4 -of a b",
                                       "x --verbose --jobs=4 --out=f a b",
                                       "x --jobs 4 --out f --verbose a b",
                                       "x a -vj 4 b --out f",
                                       "x -j3 -j4 -o g a -o f -v -- b"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        result r = parse(same[i]);
        check_status(r.st, CDMPP_OK, &r.err, same[i], __FILE__, __LINE__);
        assert_true(r.o.verbose && !r.o.strict);
        assert_int_equal(r.o.jobs, 4);
        assert_string_equal(r.o.out, "f");
        assert_int_equal(r.said.operand.n, 2);
        assert_string_equal(r.said.operand.v[0], "a");
        assert_string_equal(r.said.operand.v[1], "b");
        cd_cli_args_free(&r.said);
    }
}

TEST(operands_and_lists) {
    result r = parse("x - --set a=b --set=c=d --set= --tasks - -t-v -- --out -v --");
    check_status(r.st, CDMPP_OK, &r.err, "lists", __FILE__, __LINE__);
    assert_int_equal(r.said.operand.n, 4);
    assert_string_equal(r.said.operand.v[0], "-");
    assert_string_equal(r.said.operand.v[1], "--out");
    assert_string_equal(r.said.operand.v[3], "--");
    assert_int_equal(r.o.set.n, 3);
    assert_string_equal(r.o.set.v[1], "c=d");
    assert_string_equal(r.o.set.v[2], "");
    assert_int_equal(r.o.tasks.n, 2);
    assert_string_equal(r.o.tasks.v[0], "-");
    assert_string_equal(r.o.tasks.v[1], "-v");
    assert_false(r.o.verbose);
    cd_cli_args_free(&r.said);
}

/* Which rows stood in the line, with whatever value: also with that of the default. */
TEST(what_was_given) {
    result r = parse("x -vj4 --form plain --set a=b --json --set c");
    const char *want = "0001110100"; /* in the order of the rows; --json is none of them */
    assert_int_equal(r.st, CDMPP_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (r.said.given[i] != (want[i] == '1')) fail_msg("--%s", rows[i].name);
    cd_cli_args_free(&r.said);
    r = parse("x --json");
    assert_int_equal(r.st, CDMPP_OK);
    assert_null(r.said.given);
    cd_cli_args_free(&r.said);
}

TEST(any_allocation_may_fail) {
    FAULT_SWEEP(f, 1) {
        result r = parse("x a --set b=c -t d e");
        f.st = r.st;
        cd_cli_args_free(&r.said);
    }
}

TEST(common_rows) {
    result r = parse("x --json -q --log-format json --form richer");
    assert_true(r.st == CDMPP_OK && r.said.json && r.said.quiet && r.said.log_format == 1 &&
                r.o.form == 2);
    assert_false(r.said.help_asked || r.said.version || r.said.usage);
    cd_cli_args_free(&r.said);
    static const char *const help[] = {"x -h",
                                       "x -?",
                                       "x --help",
                                       "x --help=text",
                                       "x -vh --frobnicate",
                                       "x --strict --form=rich --help"};
    for (size_t i = 0; i < sizeof help / sizeof *help; i++) {
        r = parse(help[i]);
        assert_true(r.st == CDMPP_OK && r.said.help_asked && r.said.help == CD_CLI_HELP_TEXT);
        cd_cli_args_free(&r.said);
    }
    r = parse("x --help=zsh");
    assert_true(r.st == CDMPP_OK && r.said.help_asked && r.said.help == CD_CLI_HELP_ZSH);
    r = parse("x --version --json");
    assert_true(r.st == CDMPP_OK && r.said.version && r.said.json);
}

TEST(mistakes) {
    static const char *const bad[][2] = {
        {"x --mod f", "unknown option '--mod', did you mean '--model'?"}, /* no abbreviations */
        {"x --quite", "unknown option '--quite', did you mean '--quiet'?"},
        {"x --jbos=3", "unknown option '--jbos', did you mean '--jobs'?"},
        {"x --xyzzy-plugh", "unknown option '--xyzzy-plugh'"},
        {"x -vy", "unknown option '-y'"},
        {"x --out", "--out: expected a value, FILE, found none"},
        {"x -vj", "--jobs: expected a value, N, found none"},
        {"x --verbose=1", "--verbose: takes no value, found '1'"},
        {"x -j 0", "--jobs: expected an integer in 1..1024, found '0'"},
        {"x -j 1025", "--jobs: expected an integer in 1..1024, found '1025'"},
        {"x -j4x", "--jobs: expected an integer in 1..1024, found '4x'"},
        {"x --jobs=", "--jobs: expected an integer in 1..1024, found ''"},
        {"x --jobs=99999999999999999999",
         "--jobs: expected an integer in 1..1024, found '99999999999999999999'"},
        {"x --form=ric", "--form: expected one of plain|rich|richer, found 'ric'"},
        {"x --help=pdf", "--help: expected one of text|all|man|bash|zsh, found 'pdf'"},
        {"x --strict --form=rich", "not both"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        result r = parse(bad[i][0]);
        check_status(r.st, CDMPP_EUSAGE, &r.err, bad[i][0], __FILE__, __LINE__);
        assert_string_equal(r.err.msg, bad[i][1]);
        cd_cli_args_free(&r.said);
    }
}

/* ---- texts ---- */
static bool holds(const cd_buf *b, const char *before, const char *name, const char *after) {
    char want[200];
    snprintf(want, sizeof want, "%s%s%s", before, name, after);
    return strstr(b->p, want) != NULL;
}

/* A row without help is an older name: read like the others, shown nowhere. */
/* What is written may be named by nothing else: by the same text, or by another name of a file that
 * is there. */
TEST(outputs_are_no_inputs) {
    static const char *const bad[][2] = {{"x -o f --model f", "--out would overwrite --model f"},
                                         {"x -o f f", "--out would overwrite f"},
                                         {"x -o f a -- f", "--out would overwrite f"},
                                         {"x -t a -t f -o f", "--out would overwrite --tasks f"},
                                         {"x --set k=f -o f", "--out would overwrite --set f"},
                                         {"x --dir f -o f", "--out would overwrite --dir f"}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        result r = parse(bad[k][0]);
        assert_int_equal(r.st, CDMPP_EUSAGE);
        assert_string_equal(r.err.msg, bad[k][1]);
        cd_cli_args_free(&r.said);
    }
    static const char *const good[] = {"x -o f -o f a", "x -o - -", "x -o f --form=rich a ff",
                                       "x --model f f --dir f", "x -o f --model f --version"};
    for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
        result r = parse(good[k]);
        assert_int_equal(r.st, CDMPP_OK);
        cd_cli_args_free(&r.said);
    }
    tmp_dir d = tmp_make();
    char line[700], path[300];
    snprintf(path, sizeof path, "%s", tmp_put(&d, "f", "", 0));
    snprintf(line, sizeof line, "x -o %s/link %s", d.path, path);
    result r = parse(line); /* nothing is there */
    assert_int_equal(r.st, CDMPP_OK);
    cd_cli_args_free(&r.said);
    assert_int_equal(symlink(path, tmp_path(&d, "link")), 0);
    r = parse(line);
    assert_int_equal(r.st, CDMPP_EUSAGE);
    cd_cli_args_free(&r.said);
    static const cd_option two[] = {{"out", 0, "FILE", CD_OPTION_OUTPUT, AT(out), NULL, 0, "A"},
                                    {"page", 0, "FILE", CD_OPTION_OUTPUT, AT(model), NULL, 0, "B"}};
    const cd_command c = {.name = "x", .row = two, .n_row = 2};
    const opts o = {.out = "f", .model = "f"};
    cdmpp_err err;
    assert_status(cd_option_outputs_apart(&c, &o, &(cd_cli_args){0}, &err), CDMPP_EUSAGE);
    assert_string_equal(err.msg, "--out and --page name one file, f");
    tmp_remove(&d);
}

TEST(older_names_are_read_and_not_shown) {
    static const cd_option row[] = {
        {"network", 0, "FILE", CD_OPTION_TEXT, AT(out), NULL, 0, "A network"},
        {"net-file", 'n', "FILE", CD_OPTION_TEXT, AT(out), NULL, 0, NULL}};
    static const char *const older_use[] = {"--network FILE", NULL};
    const cd_command c = {.name = "older",
                          .brief = "has an older name",
                          .use = older_use,
                          .about = "",
                          .row = row,
                          .n_row = 2};
    void (*const text[])(cd_buf *, const cd_command *) = {cd_option_help_all, cd_option_man,
                                                          cd_option_bash, cd_option_zsh};
    char *words[] = {"older", "--net-file=a", NULL}, *wrong[] = {"older", "--net-fil=a", NULL};
    cd_cli_args said = {0};
    cdmpp_err err = {0};
    opts o = {0};
    assert_ok(cd_option_read(&c, 2, words, &o, &said, &err));
    assert_string_equal(o.out, "a");
    cd_cli_args_free(&said);
    assert_status(cd_option_read(&c, 2, wrong, &o, &said, &err), CDMPP_EUSAGE);
    assert_null(strstr(err.msg, "net-file"));
    cd_cli_args_free(&said);
    for (size_t k = 0; k < 4; k++) {
        cd_buf b = {0};
        text[k](&b, &c);
        assert_non_null(strstr(b.p, "network"));
        assert_null(strstr(b.p, "net-file"));
        assert_null(strstr(b.p, "net\\-file"));
        cd_buf_free(&b);
    }
}

static void help_has_all_and_fits(void **s) {
    cd_buf b = {0};
    (void)s;
    cd_option_help(&b, &demo);
    for (size_t i = 0; cd_option_row(&demo, i, NULL); i++)
        assert_true(holds(&b, " --", cd_option_row(&demo, i, NULL)->name, ""));
    for (const char *p = b.p; *p; p += strcspn(p, "\n") + 1) {
        const size_t n = strcspn(p, "\n");
        if (n >= 80) fail_msg("a line of %zu columns: %.*s", n, (int)n, p);
        if (n) assert_true(p[n - 1] != ' ');
    }
    assert_non_null(strstr(b.p, "First:\n"));
    assert_non_null(strstr(b.p, "Override (repeatable)\n"));
    assert_non_null(strstr(b.p, "-h, --help[=FORM]"));
    cd_buf_free(&b);
    cd_option_help(&b, &up);
    assert_non_null(strstr(b.p, "  do  "));
    cd_buf_free(&b);
}

/* Two hundred options: all of them in --help=all, a screen in --help. */
TEST(help_of_many_options_is_a_screen) {
    enum { MANY = 200 };
    static char name[MANY][24];
    cd_option row[MANY];
    for (int k = 0; k < MANY; k++) {
        snprintf(name[k], sizeof name[k], "option-%d", k);
        row[k] = (cd_option){
            name[k], 0,    "N", CD_OPTION_TEXT,
            AT(out), NULL, 0,   "Some words of a longer text, more than a line of the help holds"};
    }
    static const cd_option_usual usual[] = {
        {"option-7", "Seven"}, {"option-150", "Other"}, {NULL, NULL}};
    static const char *const forms[] = {"A", "B", "C", NULL};
    static const char *const examples[] = {"First",  "many a", "Second", "many b", "Third",
                                           "many c", "Fourth", "many d", NULL};
    cd_command c = {.name = "many",
                    .brief = "has many",
                    .use = forms,
                    .about = "One.\n\nTwo.",
                    .row = row,
                    .n_row = MANY,
                    .example = examples,
                    .usual = usual};
    cd_buf b = {0};
    cd_option_help(&b, &c);
    assert_string_equal(b.p, "usage: many A\n"
                             "   or: many B\n"
                             "   and 1 more: --usage\n"
                             "\n"
                             "One.\n"
                             "\n"
                             "  # First\n"
                             "  many a\n"
                             "  # Second\n"
                             "  many b\n"
                             "  # Third\n"
                             "  many c\n"
                             "\n"
                             "The usual options:\n"
                             "      --option-7=N        Seven\n"
                             "      --option-150=N      Other\n"
                             "\n"
                             "All 206 options and the exit statuses: many --help=all\n");
    cd_buf_clear(&b);
    cd_option_help_all(&b, &c);
    for (int k = 0; k < MANY; k++) assert_true(holds(&b, "--", name[k], "=N"));
    c.usual = NULL; /* each option is a line then, its text cut at a word */
    c.n_row = 30;
    cd_buf_clear(&b);
    cd_option_help(&b, &c);
    assert_non_null(strstr(
        b.p, "      --option-29=N       Some words of a longer text, more than a line of...\n"));
    cd_buf_free(&b);
}

TEST(help_is_laid_out) {
    cd_buf b = {0};
    cd_option_help(&b, &demo);
    assert_string_equal(
        b.p, "usage: de-mo [OPTION...] FILE...\n"
             "   or: de-mo --dir DIR\n"
             "\n"
             "First paragraph.\n"
             "\n"
             "'Second' paragraph.\n"
             "\n"
             "First:\n"
             "  -o, --out=FILE          The file to write, which is a sentence of a length\n"
             "                          that needs more than one line of eighty\n"
             "      --model=FILE        It's the \"model\" [really]: a\\b\n"
             "      --dir=DIR           .starts with a dot\n"
             "\n"
             "Second:\n"
             "  -j, --jobs=N            Threads\n"
             "      --form=FORM         Form\n"
             "      --set=KEY=VALUE     Override (repeatable)\n"
             "  -t, --tasks=FILE        Tasks (repeatable)\n"
             "  -v, --verbose           More\n"
             "  -s, --strict            Stop\n"
             "      --an-option-with-a-very-long-name=ARGUMENT\n"
             "                          Long\n"
             "\n"
             "Output and help:\n"
             "      --json              Print the summary as one JSON object on standard\n"
             "                          output\n"
             "  -q, --quiet             Nothing but errors on standard error\n"
             "      --log-format=FORM   Messages on standard error as text or as one JSON\n"
             "                          object a line\n"
             "  -h, --help[=FORM]       Print help and stop; all: every option, man: the\n"
             "                          manual page, bash and zsh: a completion script\n"
             "      --usage             Print the synopsis and stop\n"
             "  -V, --version           Print the version, also of the libraries in use, and\n"
             "                          stop\n"
             "\n"
             "Exit status: 0 done, 1 failure, 2 usage, 3 some items skipped, 4 bad input, 5\n"
             "mismatch, 6 backend missing, 130 interrupted\n");
    cd_buf_clear(&b);
    cd_option_help(&b, &up);
    assert_string_equal(
        b.p, "usage: up [OPTION...] FILE...\n"
             "   or: up --dir DIR\n"
             "\n"
             "Text.\n"
             "\n"
             "Commands:\n"
             "  do                      a verb\n"
             "\n"
             "Output and help:\n"
             "      --json              Print the summary as one JSON object on standard\n"
             "                          output\n"
             "  -q, --quiet             Nothing but errors on standard error\n"
             "      --log-format=FORM   Messages on standard error as text or as one JSON\n"
             "                          object a line\n"
             "  -h, --help[=FORM]       Print help and stop; all: every option, man: the\n"
             "                          manual page, bash and zsh: a completion script\n"
             "      --usage             Print the synopsis and stop\n"
             "  -V, --version           Print the version, also of the libraries in use, and\n"
             "                          stop\n"
             "\n"
             "Exit status: 0 done, 1 failure, 2 usage, 3 some items skipped, 4 bad input, 5\n"
             "mismatch, 6 backend missing, 130 interrupted\n");
    cd_buf_free(&b);
}

/* Status of a shell command over a file with that text; what it printed in `out`. */
static int shell(const cd_buf *b, const char *command, char *out, size_t n) {
    tmp_dir t = tmp_make();
    char line[1500];
    tmp_put(&t, "f", b->p, b->n);
    snprintf(line, sizeof line, "cd %s && { %s; } 2>&1", t.path, command);
    FILE *f = popen(line, "r");
    assert_non_null(f);
    out[fread(out, 1, n - 1, f)] = 0;
    const int st = pclose(f);
    tmp_remove(&t);
    return st;
}

static bool has(const char *program) {
    char line[100], out[10];
    const cd_buf none = {.p = line};
    snprintf(line, sizeof line, "command -v %s >/dev/null", program);
    return shell(&none, line, out, sizeof out) == 0;
}

TEST(man_has_all_and_is_roff) {
    const cd_command *const all[] = {&demo, &up};
    char out[8000];
    for (size_t k = 0; k < 2; k++) {
        cd_buf b = {0};
        cd_option_man(&b, all[k]);
        if (has("groff")) {
            assert_int_equal(shell(&b, "groff -ww -man -Tutf8 f >/dev/null", out, sizeof out), 0);
            assert_string_equal(out, "");
            assert_int_equal(shell(&b, "groff -ww -man -P-c -P-b -P-u -Tascii f | tr -d '\\n '",
                                   out, sizeof out),
                             0);
            for (size_t i = 0; cd_option_row(&demo, i, NULL) && k == 0; i++) {
                const cd_buf page = {.p = out};
                assert_true(holds(&page, "--", cd_option_row(&demo, i, NULL)->name, ""));
            }
            if (k == 0) assert_non_null(strstr(out, "It'sthe\"model\"[really]:a\\b"));
            if (k == 0) assert_non_null(strstr(out, ".b'c'\\d"));
        }
        assert_non_null(strstr(b.p, "\n\\fB130\\fR\n"));
        cd_buf_free(&b);
    }
}

/* What bash offers when TAB is pressed after `words` ("de-mo" "--mo"), sorted, on one line. */
static void offers(const cd_command *c, const char *function, const char *words, const char *want) {
    char line[1000], out[4000];
    cd_buf b = {0};
    cd_option_bash(&b, c);
    snprintf(line, sizeof line,
             "mkdir -p sub; touch a.json b.txt m.cdmpp 'with space.json'; bash --norc -c '. ./f; "
             "COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]}-1));"
             "%s; printf \"%%s\\n\" \"${COMPREPLY[@]}\"' | LC_ALL=C sort -u | tr '\\n' ' '",
             words, function);
    assert_int_equal(shell(&b, line, out, sizeof out), 0);
    if (strcmp(out, want)) fail_msg("%s: offered '%s', expected '%s'", words, out, want);
    cd_buf_free(&b);
}

static void bash_completes(void **s) {
    (void)s;
    if (!has("bash")) skip();
    for (size_t i = 0; cd_option_row(&demo, i, NULL); i++) {
        char words[100], want[100];
        snprintf(words, sizeof words, "de-mo a --%s", cd_option_row(&demo, i, NULL)->name);
        snprintf(want, sizeof want, "--%s ", cd_option_row(&demo, i, NULL)->name);
        offers(&demo, "_de_mo", words, want);
    }
    offers(&demo, "_de_mo", "de-mo --mo", "--model ");
    offers(&demo, "_de_mo", "de-mo --s", "--set --strict ");
    offers(&demo, "_de_mo", "de-mo --form r", "rich richer ");
    offers(&demo, "_de_mo", "de-mo --form = p", "plain ");
    offers(&demo, "_de_mo", "de-mo --help =", "all bash man text zsh ");
    offers(&demo, "_de_mo", "de-mo --jobs \"\"", " ");
    offers(&demo, "_de_mo", "de-mo --verbose =", " ");
    offers(&demo, "_de_mo", "de-mo --model \"\"", "m.cdmpp sub ");
    offers(&demo, "_de_mo", "de-mo --dir \"\"", "sub ");
    offers(&demo, "_de_mo", "de-mo -o b", "b.txt ");
    offers(&demo, "_de_mo", "de-mo \"\"", "a.json sub with space.json ");
    offers(&up, "_up", "up \"\"", "do ");
    offers(&up, "_up", "up do --mo", "--model ");
    offers(&up, "_up", "up do x --dir \"\"", "sub ");
}

TEST(zsh_reads_it) {
    const cd_command *const all[] = {&demo, &up};
    char out[4000];
    for (size_t k = 0; k < 2; k++) {
        cd_buf b = {0};
        cd_option_zsh(&b, all[k]);
        for (size_t i = 0; cd_option_row(&demo, i, NULL) && k == 0; i++)
            assert_true(holds(&b, "--", cd_option_row(&demo, i, NULL)->name, ""));
        if (has("zsh")) {
            assert_int_equal(shell(&b, "zsh -n f", out, sizeof out), 0);
            assert_string_equal(out, "");
        }
        cd_buf_free(&b);
    }
}

/* Every command reads its table so: one with such a row can do nothing. */
TEST(names_are_of_one_row) {
    static const cd_option name[] = {{"jobs", 0, "N", CD_OPTION_INT, AT(jobs), "1..8", 0, "A"},
                                     {"out", 0, "F", CD_OPTION_FILE, AT(out), NULL, 0, "B"},
                                     {"jobs", 0, "N", CD_OPTION_TEXT, AT(dir), NULL, 0, "C"}},
                           letter[] = {{"jobs", 'x', "N", CD_OPTION_INT, AT(jobs), "1..8", 0, "A"},
                                       {"out", 'x', "F", CD_OPTION_FILE, AT(out), NULL, 0, "B"}},
                           common[] = {{"json", 0, NULL, CD_OPTION_FLAG, AT(strict), NULL, 0, "A"}};
    const cd_command bad[] = {{.name = "x", .row = name, .n_row = 3},
                              {.name = "x", .row = letter, .n_row = 2},
                              {.name = "x", .row = common, .n_row = 1}};
    static char *line[] = {"x", "--help"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        result r = {0};
        assert_int_equal(cd_option_read(&bad[i], 2, line, &r.o, &r.said, &r.err), CDMPP_EUSAGE);
        cd_cli_args_free(&r.said);
    }
}

TEST(exits_are_all_told) {
    size_t n;
    const cd_cli_exit_row *e = cd_cli_exit_rows(&n);
    for (int st = 0; st < CDMPP_STATUS_COUNT; st++) {
        bool found = false;
        for (size_t i = 0; i < n; i++)
            found = found || e[i].code == cdmpp_exit_code((cdmpp_status)st);
        assert_true(found);
    }
    assert_int_equal(cdmpp_exit_code(CDMPP_EBACKEND), 6);
    for (size_t i = 1; i < n; i++) assert_true(e[i - 1].code < e[i].code);
}

TESTS(NULL, NULL, spellings, operands_and_lists, what_was_given, any_allocation_may_fail,
      common_rows, mistakes, outputs_are_no_inputs, older_names_are_read_and_not_shown,
      help_has_all_and_fits, help_of_many_options_is_a_screen, help_is_laid_out,
      man_has_all_and_is_roff, bash_completes, zsh_reads_it, names_are_of_one_row,
      exits_are_all_told)
