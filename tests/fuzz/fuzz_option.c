/* Any words as a command line: no crash; what is refused has a reason; what is taken means
 * the same when every value is written behind its name and the operands behind "--". */
#include <stdio.h>
#include <stdlib.h>

#include "base/cli/cli.h"

typedef struct {
    const char *out;
    cd_texts set;
    int jobs, form;
    bool verbose;
} opts;

#define AT(m) offsetof(opts, m)
static const cd_option rows[] = {
    {"out", 'o', "FILE", CD_OPTION_FILE, AT(out), NULL, 0, ""},
    {"set", 0, "KEY", CD_OPTION_TEXTS, AT(set), NULL, 0, ""},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(jobs), "1..64", 0, ""},
    {"form", 0, "FORM", CD_OPTION_WORD, AT(form), "a|b", 0, ""},
    {"verbose", 'v', NULL, CD_OPTION_FLAG, AT(verbose), NULL, 0, ""},
};
static const cd_command command = {.name = "x", .row = rows, .n_row = sizeof rows / sizeof *rows};
enum { MAX = 64 };

static void add(char **word, int *n, cd_arena *a, const char *name, const char *value) {
    const size_t size = strlen(name) + strlen(value) + 1;
    char *p = cd_arena_alloc(a, size, 1);
    if (!p) abort();
    memcpy(p, name, strlen(name));
    memcpy(p + strlen(name), value, strlen(value) + 1);
    word[(*n)++] = p;
}

static bool same_list(const cd_texts *a, const cd_texts *b) {
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) same = !strcmp(a->v[i], b->v[i]);
    return same;
}

/* The same again, in one spelling. */
static void again(const opts *o, const cd_cli_args *said) {
    char *word[3 * MAX], number[12];
    opts p = {0};
    cd_cli_args told = {0};
    cd_arena a = {0};
    int n = 1;
    snprintf(number, sizeof number, "%d", o->jobs);
    if (o->out) add(word, &n, &a, "--out=", o->out);
    for (size_t i = 0; i < o->set.n; i++) add(word, &n, &a, "--set=", o->set.v[i]);
    if (o->jobs) add(word, &n, &a, "-j", number);
    if (o->form) add(word, &n, &a, "--form=", "b");
    if (o->verbose) add(word, &n, &a, "-v", "");
    add(word, &n, &a, "--", "");
    for (size_t i = 0; i < said->operand.n; i++) add(word, &n, &a, "", said->operand.v[i]);
    if (cd_option_read(&command, n, word, &p, &told, NULL)) abort();
    if (p.jobs != o->jobs || p.form != o->form || p.verbose != o->verbose || !p.out != !o->out)
        abort();
    if (p.out && strcmp(p.out, o->out)) abort();
    if (!same_list(&p.set, &o->set) || !same_list(&told.operand, &said->operand)) abort();
    cd_cli_args_free(&told);
    cd_arena_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[1024], *word[MAX] = {"x"};
    opts o = {0};
    cd_cli_args said = {0};
    cdmpp_err err = {0};
    int n = 1;
    if (size >= sizeof text) size = sizeof text - 1;
    if (size) memcpy(text, data, size);
    text[size] = 0;
    for (char *p = text; n < MAX && *p; n++) { /* a word a line */
        word[n] = p;
        p += strcspn(p, "\n");
        if (*p) *p++ = 0;
    }
    const cdmpp_status st = cd_option_read(&command, n, word, &o, &said, &err);
    if (st && (st != CDMPP_EUSAGE || !err.msg[0])) abort();
    if (!st && !said.help_asked && !said.usage) again(&o, &said);
    cd_cli_args_free(&said);
    return 0;
}
