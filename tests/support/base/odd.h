/* odd.h -- a valid text with one thing odd about it: each such text is taken, or refused with a
 * status and a reason, and nothing is lost.
 *
 *   static cdmpp_status read(void *ctx, const char *text, size_t n, cdmpp_err *err);
 *   odd_all("{\"name\": \"a\", \"seconds\": 1}", read, NULL);
 *
 * For text forms of any kind (JSON, YAML, CSV, TSV): each word, number and quoted text becomes each
 * of odd[]; each list and object becomes something else or comes twice; each bracket, comma, colon,
 * tab and line's end goes or comes twice; each line goes or comes twice; the text ends anywhere.
 * The valid text itself must be taken, and is read with each allocation refused. read() frees what
 * it got. Exact errors are for tables of their own: this finds crashes, leaks, states without a
 * reason, and reaches the arms that no table thinks of. */
#ifndef ODD_H
#define ODD_H
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io/io.h"
#include "check.h"
#include "fault.h"

typedef cdmpp_status odd_read(void *ctx, const char *text, size_t n, cdmpp_err *err);

typedef struct odd_texts {
    const char *text;
    size_t n, taken, refused;
    odd_read *read;
    void *ctx;
} odd_texts;

/* The text with [at, at + n) replaced by `with`. */
static inline void odd_one(odd_texts *o, size_t at, size_t n, const char *with, size_t n_with) {
    const size_t rest = o->n - at - n, all = at + n_with + rest;
    const long live = fault_live();
    cdmpp_err err = {0};
    /* ends where the text ends, for sanitizers; a NUL behind it as files have */
    char *exact = malloc(all + 1);
    if (!exact) fail();
    memcpy(exact, o->text, at);
    memcpy(exact + at, with, n_with);
    memcpy(exact + at + n_with, o->text + at + n, rest);
    exact[all] = 0;
    const cdmpp_status st = o->read(o->ctx, exact, all, &err);
    st ? o->refused++ : o->taken++;
    if ((st && (err.code != st || !err.msg[0])) || st == CDMPP_ENOMEM || fault_live() != live) {
        print_error("status %d, error %d \"%s\", %ld blocks more, of: %s\n", (int)st, (int)err.code,
                    err.msg, fault_live() - live, exact);
        fail();
    }
    free(exact);
}

static inline bool odd_is_word(char c) {
    return isalnum((unsigned char)c) || (c && strchr("_.+-", c)) || c & 0x80;
}

typedef struct odd_range {
    size_t from, to;
} odd_range;

/* The end of the list or object that begins at `at`, behind its bracket; 0: it has none. */
static inline size_t odd_end(const char *text, size_t n, size_t at) {
    size_t depth = 0;
    for (size_t i = at; i < n; i++) {
        if (text[i] == '"')
            for (i++; i < n && text[i] != '"'; i++) i += text[i] == '\\';
        else if (text[i] == '[' || text[i] == '{') depth++;
        else if ((text[i] == ']' || text[i] == '}') && --depth == 0) return i + 1;
    }
    return 0;
}

/* A whole list or object becomes something else, or is there twice, one behind the other. */
static inline void odd_whole(odd_texts *o, size_t at) {
    static const char *const odd[] = {"0", "\"x\"", "[]", "{}", "[1]", "[[]]", "[{}]"};
    const size_t end = odd_end(o->text, o->n, at);
    if (!end) return;
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++)
        odd_one(o, at, end - at, odd[k], strlen(odd[k]));
    if (end - at > 5000) return;
    char *twice = malloc(end - at + 1);
    if (!twice) fail();
    memcpy(twice + 1, o->text + at, end - at);
    *twice = ',';
    odd_one(o, end, 0, twice, end - at + 1);
    free(twice);
}

/* valid: the text itself must be taken. range: where something is odd; NULL: anywhere, in a long
 * text here and there. */
static inline void odd_within(const char *text, size_t size, bool valid, const odd_range *range,
                              odd_read *read, void *ctx) {
    static const char *const odd[] = {
        "",
        "null",
        "true",
        "\"x\"",
        "\"\"",
        "x",
        "-1",
        "0",
        "1",
        "2.5",
        "1e300",
        "99999999999999999999",
        "[]",
        "[1]",
        "{}",
        "\"a\\u0000b\"",
        "\xff",
        "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl"
        "mnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"};
    odd_texts o = {.text = text, .n = size, .read = read, .ctx = ctx};
    odd_one(&o, 0, 0, "", 0);
    if (valid && !o.taken) {
        cdmpp_err err = {0};
        char said[512];
        (void)read(ctx, text, size, &err);
        fail_msg("the valid text is refused: %s", cdmpp_err_format(&err, said, sizeof said));
    }
    if (o.taken) FAULT_SWEEP(f, 0) f.st = read(ctx, text, o.n, &f.err);
    const size_t every = range ? 1 : 1 + size / 1500; /* of a long text some */
    for (size_t i = 0, seen = 0; i < o.n; seen++) {
        size_t n = 1;
        if (text[i] == '"') {
            while (i + n < o.n && text[i + n] != '"' && text[i + n] != '\n')
                n += text[i + n] == '\\' && i + n + 1 < o.n ? 2 : 1;
            n += i + n < o.n;
        } else {
            while (odd_is_word(text[i]) && i + n < o.n && odd_is_word(text[i + n])) n++;
        }
        const bool value = n > 1 || odd_is_word(text[i]);
        if (seen % every || (range && (i < range->from || i >= range->to))) {
            i += n;
            continue;
        }
        for (size_t k = 0; value && k < sizeof odd / sizeof *odd; k++)
            odd_one(&o, i, n, odd[k], strlen(odd[k]));
        if (!value && text[i] != ' ') {
            odd_one(&o, i, 1, "", 0);
            odd_one(&o, i, 0, text + i, 1);
        }
        if (text[i] == '[' || text[i] == '{') odd_whole(&o, i);
        odd_one(&o, i, o.n - i, "", 0);
        i += n;
    }
    for (size_t i = 0, n; i < o.n && !range; i += n) {
        const char *end = memchr(text + i, '\n', o.n - i);
        n = end ? (size_t)(end - text) + 1 - i : o.n - i;
        if (n > 5000) continue;
        odd_one(&o, i, n, "", 0);
        odd_one(&o, i, 0, text + i, n);
    }
    if (valid && !o.refused) fail_msg("whatever is odd is taken");
}
static inline void odd_of(const char *text, size_t size, bool valid, odd_read *read, void *ctx) {
    odd_within(text, size, valid, NULL, read, ctx);
}
static inline void odd_all(const char *text, odd_read *read, void *ctx) {
    odd_of(text, strlen(text), true, read, ctx);
}

/* Around each file of a folder of seeds, which may be odd already; those of more than `most` bytes
 * are left out. */
static inline void odd_all_of_seeds(const char *folder, size_t most, odd_read *read, void *ctx) {
    DIR *d = opendir(folder);
    size_t seen = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[512], *text;
        size_t n;
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        assert_int_equal(cd_file_read(path, 0, &text, &n, NULL), CDMPP_OK);
        if (n <= most) odd_of(text, n, false, read, ctx), seen++;
        cd_mem_free(text);
    }
    closedir(d);
    assert_true(seen > 0);
}

/* The same for what reads a file: ctx is what to call with its path. */
typedef struct odd_file {
    const char *path;
    cdmpp_status (*read)(const char *path, cdmpp_err *err);
} odd_file;

static inline cdmpp_status odd_read_file(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    const odd_file *f = ctx;
    unlink(f->path); /* a file that is written anew may wait for the disk */
    FILE *to = fopen(f->path, "wb");
    if (!to || fwrite(text, 1, n, to) != n || fclose(to) != 0) abort();
    return f->read(f->path, err);
}

static inline void odd_all_of_file(const char *path, const char *text,
                                   cdmpp_status (*read)(const char *path, cdmpp_err *err)) {
    odd_file f = {path, read};
    odd_all(text, odd_read_file, &f);
}
#endif
