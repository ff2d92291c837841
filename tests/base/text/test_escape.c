/* Texts of strangers in other languages: one law for each. What is written is read back, by the
 * language's own reader where this machine has one. */
#include "base/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "check.h"
#include "tmp.h"

static char longest[10001];

/* A name of each kind of trouble. */
static const char *const hostile[] = {"",
                                      "plain",
                                      "\"><script>alert(1)</script>",
                                      "</script><img src=x onerror=alert(1)>",
                                      "*/ #include </etc/passwd>\nint evil; /*",
                                      "**//",
                                      "/*/",
                                      "*\\\n/ int x;",
                                      "a\\",
                                      "'; rm -rf ~; '",
                                      "\"; rm -rf ~; \"",
                                      "$(touch x) `touch y` ${HOME}",
                                      "../../x",
                                      "/etc/passwd",
                                      "-rf",
                                      ".",
                                      "a\nb\r\nc\td",
                                      "\033[2J\033]0;x\a",
                                      "\xc2\x9b"
                                      "2J \x9b"
                                      "2J",
                                      "%s%n%1$s",
                                      "\xff\xfe \xc3 \xe2\x82 \xed\xa0\x80 \xf4\x90\x80\x80",
                                      "\xe2\x80\xae"
                                      "txt.exe \xe2\x80\xa8",
                                      "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
                                      "=cmd|' /C calc'!A0",
                                      "a,b;\"c\"",
                                      "&lt;&#39;&",
                                      "\?\?/ \?\?' \?\?<",
                                      "\x7f\x01\x1f",
                                      "# - : {} [] | > !x &a *b",
                                      longest};
enum { N = sizeof hostile / sizeof *hostile };

static void set_up(void) { memset(longest, '<', sizeof longest - 1); }

/* The text with a replacement for each byte that is no UTF-8, as a reader of text gets it. */
static char *as_text(const char *s) {
    cd_buf b = {0};
    cd_str rest = cd_str_of(s);
    for (size_t n; rest.n; rest.p += n, rest.n -= n) {
        n = cd_str_utf8_len(rest);
        if (n) cd_buf_put(&b, rest.p, n);
        else cd_buf_puts(&b, "\xef\xbf\xbd"), n = 1;
    }
    cd_buf_puts(&b, "");
    return b.p ? b.p : calloc(1, 1);
}

static bool has_control(const char *s) {
    for (const char *c = s; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) return true;
    return strstr(s, "\xc2\x9b") || strstr(s, "\xe2\x80\xa8");
}

/* ---- readers ---- */
static char *run(const char *command, size_t *n) {
    char *out = calloc(1, 1 << 20);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    *n = fread(out, 1, (1 << 20) - 1, f);
    assert_int_equal(pclose(f), 0);
    return out;
}

static char *unxml(const char *s) {
    static const struct {
        const char *name, *is;
    } entity[] = {{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}, {"&quot;", "\""}, {"&#39;", "'"}};
    cd_buf b = {0};
    while (*s) {
        size_t k = 0;
        while (*s == '&' && k < 5 && strncmp(s, entity[k].name, strlen(entity[k].name)) != 0) k++;
        assert_true(*s != '&' || k < 5);
        cd_buf_puts(&b, (char[]){*s == '&' ? *entity[k].is : *s, 0});
        s += *s == '&' ? strlen(entity[k].name) : 1;
    }
    return b.p ? b.p : calloc(1, 1);
}

/* ---- the laws ---- */
TEST(xml) {
    set_up();
    for (int k = 0; k < N; k++) {
        cd_buf b = {0};
        cd_escape_xml(&b, cd_str_of(hostile[k]));
        const char *p = b.p ? b.p : "";
        assert_null(strpbrk(p, "<>\"'"));
        assert_true(cd_str_is_utf8(cd_str_of(p)));
        char *back = unxml(p), *want = as_text(hostile[k]);
        if (!has_control(hostile[k])) assert_string_equal(back, want);
        free(back);
        cd_mem_free(want);
        cd_buf_free(&b);
    }
}

static void reads_as_json(const cd_buf *b, const char *text) {
    cd_arena a = {0};
    const cd_json *v = NULL;
    char *want = as_text(text);
    cdmpp_err err = {0};
    assert_ok(cd_json_parse(&a, b->p, b->n, &v, &err));
    assert_int_equal(v->kind, CD_JSON_STR);
    assert_true(cd_str_is(v->u.s, want));
    cd_mem_free(want);
    cd_arena_free(&a);
}

TEST(json_and_scripts) {
    set_up();
    for (int k = 0; k < N; k++) {
        cd_buf b = {0};
        cd_buf_put_json_str(&b, hostile[k], strlen(hostile[k]));
        reads_as_json(&b, hostile[k]);
        cd_buf_clear(&b);
        cd_escape_script(&b, cd_str_of(hostile[k]));
        assert_null(strchr(b.p, '<'));
        reads_as_json(&b, hostile[k]);
        cd_buf_free(&b);
    }
}

TEST(csv) {
    set_up();
    for (int k = 0; k < N; k++)
        for (int bare = 0; bare < 2; bare++) {
            cd_buf b = {0};
            cd_str field[2];
            size_t n = 0;
            cdmpp_err err = {0};
            (bare ? cd_csv_fields_put_bare : cd_csv_fields_put)(&b, hostile[k], strlen(hostile[k]));
            cd_buf_puts(&b, ",end");
            assert_ok(cd_csv_fields_split(b.p, b.n, field, 2, &n, &err));
            assert_int_equal(n, 2);
            assert_true(cd_str_is(field[0], hostile[k]) && cd_str_is(field[1], "end"));
            cd_buf_free(&b);
        }
}

TEST(yaml) {
    set_up();
    for (int k = 0; k < N; k++) {
        cd_buf b = {0};
        cd_arena a = {0};
        cd_diag d = {0};
        const cd_yaml *v = NULL;
        cdmpp_err err = {0};
        char *want = as_text(hostile[k]);
        cd_buf_puts(&b, "key: ");
        cd_escape_yaml(&b, cd_str_of(hostile[k]));
        cd_buf_puts(&b, "\nend: 1\n");
        assert_ok(cd_yaml_parse(&a, "x", b.p, b.n, &v, &d, &err));
        assert_int_equal(v->n, 2);
        assert_string_equal(v->child->text, want);
        cd_mem_free(want);
        cd_diag_free(&d);
        cd_arena_free(&a);
        cd_buf_free(&b);
    }
}

/* A compiler reads them: each string is printed again, and between two comments a variable
 * counts. */
TEST(c) {
    tmp_dir d = tmp_make();
    cd_buf b = {0}, command = {0}, want = {0};
    size_t n = 0;
    set_up();
    cd_buf_puts(&b, "#include <stdio.h>\n#include <string.h>\nint main(void) {\n    int n = 0;\n");
    for (int k = 0; k < N; k++) {
        cd_buf_puts(&b, "    n++; /* ");
        cd_escape_c_comment(&b, cd_str_of(hostile[k]));
        cd_buf_puts(&b, " */ n++;\n    { static const char s[] = ");
        cd_escape_c_string(&b, cd_str_of(hostile[k]));
        cd_buf_puts(&b, "; fwrite(s, 1, sizeof s, stdout); }\n");
        cd_buf_put(&want, hostile[k], strlen(hostile[k]) + 1);
    }
    cd_buf_putf(&b, "    return n != %d;\n}\n", 2 * N);
    tmp_put(&d, "e.c", b.p, b.n);
    cd_buf_putf(
        &command,
        "cc -std=c11 -trigraphs -Wall -Werror -Wno-overlength-strings -o %s/e %s/e.c && %s/e",
        d.path, d.path, d.path);
    char *got = run(command.p, &n);
    assert_int_equal(n, want.n);
    assert_memory_equal(got, want.p, n);
    free(got);
    cd_buf_free(&b);
    cd_buf_free(&command);
    cd_buf_free(&want);
    tmp_remove(&d);
}

/* All words in one line of a shell; also "-rf" stays a word. */
TEST(shell) {
    cd_buf b = {0}, want = {0};
    size_t n = 0;
    set_up();
    cd_buf_puts(&b, "printf '%s\\0'");
    for (int k = 0; k < N; k++) {
        cd_buf_puts(&b, " ");
        cd_escape_shell(&b, cd_str_of(hostile[k]));
        cd_buf_put(&want, hostile[k], strlen(hostile[k]) + 1);
    }
    char *got = run(b.p, &n);
    assert_int_equal(n, want.n);
    assert_memory_equal(got, want.p, n);
    free(got);
    cd_buf_free(&b);
    cd_buf_free(&want);
}

/* Within quotes only \" and \\ are more than themselves. */
TEST(dot) {
    set_up();
    for (int k = 0; k < N; k++) {
        cd_buf b = {0}, back = {0};
        char *want = as_text(hostile[k]);
        cd_escape_dot(&b, cd_str_of(hostile[k]));
        for (const char *s = b.p ? b.p : ""; *s; s++) {
            assert_true(*s != '"');
            if (*s == '\\') assert_true(*++s == '"' || *s == '\\');
            assert_true((unsigned char)*s >= ' ');
            cd_buf_put(&back, s, 1);
        }
        if (!has_control(hostile[k])) assert_string_equal(back.p ? back.p : "", want);
        cd_mem_free(want);
        cd_buf_free(&b);
        cd_buf_free(&back);
    }
}

TEST(terminal) {
    set_up();
    for (int k = 0; k < N; k++) {
        cd_buf b = {0};
        cd_escape_terminal(&b, cd_str_of(hostile[k]));
        const cd_str all = {b.p ? b.p : "", b.n};
        for (size_t i = 0; i < all.n; i++) {
            const unsigned char c = (unsigned char)all.p[i];
            assert_true((c >= ' ' && c != 0x7f) || c == '\n' || c == '\t' ||
                        (c == '\r' && all.p[i + 1] == '\n'));
            /* 0x80 to 0x9f only within a character, and that character is no control */
            const size_t len = cd_str_utf8_len((cd_str){all.p + i, all.n - i});
            assert_true(len || c >= 0xa0);
            assert_false(len == 2 && c == 0xc2 && (unsigned char)all.p[i + 1] < 0xa0);
            i += len ? len - 1 : 0;
        }
        cd_buf_free(&b);
    }
    cd_buf b = {0};
    cd_escape_terminal(&b, cd_str_of("\xc3\xa4 a\tb\r\nc\rd\033[2J"));
    assert_string_equal(b.p, "\xc3\xa4 a\tb\r\nc?d?[2J");
    cd_buf_free(&b);
}

/* A name of one folder, never hidden, never an option, of bounded length. */
TEST(file_name) {
    set_up();
    for (int k = 0; k < N; k++) {
        cd_buf b = {0};
        cd_escape_file_name(&b, cd_str_of(hostile[k]));
        assert_true(b.n && b.n <= CD_ESCAPE_FILE_NAME_MAX && b.n == strlen(b.p));
        assert_null(strpbrk(b.p, "/\\ ()[]*?$`'\"<>|&;\n"));
        assert_true(b.p[0] != '.' && b.p[0] != '-');
        cd_buf_free(&b);
    }
    cd_buf b = {0};
    cd_escape_file_name(&b, cd_str_of("bert-base@seq=16,v1.5"));
    assert_string_equal(b.p, "bert-base@seq=16,v1.5");
    cd_buf_free(&b);
}

TESTS(NULL, NULL, xml, json_and_scripts, csv, yaml, c, shell, dot, terminal, file_name)
