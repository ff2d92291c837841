/* Messages as text and as JSON, their levels, and what a progress bar shows. */
#include "check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/text.h"
#include "base/cli/cli.h"
#include "base/core/core.h"

typedef struct captured {
    FILE *f;
    char *text;
    size_t n;
    cd_log log;
} captured;

static void begin(captured *c, const char *command) {
    c->f = open_memstream(&c->text, &c->n);
    cd_log_init(&c->log, command, c->f);
}

static void end(captured *c) {
    cd_log_done(&c->log);
    fclose(c->f);
    free(c->text);
}

TEST(levels) {
    static const char *const want[] = {"x: error: e\n", "x: error: e\nx: warning: w\n",
                                       "x: error: e\nx: warning: w\nx: i 7\n",
                                       "x: error: e\nx: warning: w\nx: i 7\nx: debug: d\n"};
    for (int k = 0; k < 4; k++) {
        captured c;
        begin(&c, "x");
        assert_int_equal(c.log.level, CD_LOG_INFO);
        c.log.level = (cd_log_level)k;
        cd_log_put(&c.log, CD_LOG_ERROR, "e");
        cd_log_put(&c.log, CD_LOG_WARNING, "w");
        cd_log_put(&c.log, CD_LOG_INFO, "i %d", 7);
        cd_log_put(&c.log, CD_LOG_DEBUG, "d");
        assert_string_equal(c.text, want[k]);
        end(&c);
    }
}

TEST(errors) {
    captured c;
    cdmpp_err err = {0};
    begin(&c, "cdmpp-predict");
    (void)CD_FAIL(&err, EUNSUPPORTED, "step \"SPX\"");
    cd_err_add_index(&err, 4);
    cd_err_add_key(&err, "i");
    cd_err_add_place(&err, "a b.json", 3);
    cd_log_err(&c.log, CD_LOG_ERROR, &err);
    assert_string_equal(c.text,
                        "cdmpp-predict: error: a b.json:3: i[4]: step \"SPX\" [EUNSUPPORTED]\n");
    end(&c);
    begin(&c, "p");
    c.log.json = true;
    cd_log_err(&c.log, CD_LOG_WARNING, &err);
    cd_arena a = {0};
    const cd_json *j = NULL;
    cdmpp_err e2 = {0};
    check_status(cd_json_parse(&a, c.text, c.n, &j, &e2), CDMPP_OK, &e2, "json", __FILE__,
                 __LINE__);
    assert_true(cd_str_is(cd_json_get(j, "level")->u.s, "warning"));
    assert_true(cd_str_is(cd_json_get(j, "command")->u.s, "p"));
    assert_true(cd_str_is(cd_json_get(j, "status")->u.s, "EUNSUPPORTED"));
    assert_true(cd_str_is(cd_json_get(j, "path")->u.s, "a b.json"));
    assert_int_equal(cd_json_get(j, "line")->u.i, 3);
    assert_true(cd_str_is(cd_json_get(j, "key")->u.s, "i[4]"));
    assert_non_null(cd_json_get(j, "text"));
    cd_arena_free(&a);
    end(&c);
}

/* Warnings, and no other level, also those that the level drops or that nobody prints. */
TEST(warnings_are_kept) {
    captured c;
    cd_buf b = {0};
    cdmpp_err err = {0};
    (void)CD_FAIL(&err, EPARSE, "a \"b\"");
    begin(&c, "x");
    cd_log_put(&c.log, CD_LOG_WARNING, "not kept");
    cd_log_put_kept(&c.log, &b);
    assert_string_equal(b.p, "[]");
    c.log.keep = true;
    c.log.level = CD_LOG_ERROR;
    cd_log_put(&c.log, CD_LOG_WARNING, "w %d", 1);
    cd_log_put(&c.log, CD_LOG_ERROR, "e");
    cd_log_put(&c.log, CD_LOG_INFO, "i");
    cd_log_err(&c.log, CD_LOG_WARNING, &err);
    b.n = 0;
    cd_log_put_kept(&c.log, &b);
    assert_string_equal(b.p, "[\"w 1\",\"a \\\"b\\\" [EPARSE]\"]");
    assert_string_equal(c.text, "x: warning: not kept\nx: error: e\n");
    end(&c);
    cd_log silent;
    cd_log_init(&silent, "", NULL);
    silent.keep = true;
    for (int k = 0; k < CD_LOG_KEPT + 2; k++) cd_log_put(&silent, CD_LOG_WARNING, "w");
    cd_log_put(&silent, CD_LOG_ERROR, "nobody prints it");
    cd_log_lines(&silent, CD_LOG_ERROR, "nor these\n");
    b.n = 0;
    cd_log_put_kept(&silent, &b);
    assert_non_null(strstr(b.p, ",\"and 2 more\"]"));
    cd_log_done(&silent);
    cd_buf_free(&b);
}

/* A path of Linux is longer than the buffer, and what is wrong stands behind it. */
TEST(long_text_is_whole) {
    captured c;
    char big[5000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    begin(&c, "");
    cd_log_put(&c.log, CD_LOG_INFO, "%s: %s", big, "the reason");
    assert_int_equal(c.n, sizeof big - 1 + strlen(": the reason\n"));
    assert_string_equal(c.text + sizeof big - 1, ": the reason\n");
    end(&c);
}

static cdmpp_status shout(void *ctx, size_t beg, size_t stop, int w, cdmpp_err *err) {
    (void)w, (void)err;
    for (size_t i = beg; i < stop; i++)
        cd_log_put(ctx, CD_LOG_INFO, "0123456789012345678901234567890123456789");
    return CDMPP_OK;
}

TEST(lines_do_not_mix) {
    captured c;
    cdmpp_err err = {0};
    cd_threads *t = NULL;
    begin(&c, "x");
    assert_ok(cd_threads_new(4, &t, &err));
    assert_ok(cd_threads_run(t, 400, 3, shout, &c.log, &err));
    cd_threads_free(t);
    assert_int_equal(c.n, 400 * 44);
    for (size_t i = 0; i < 400; i++)
        assert_memory_equal(c.text + 44 * i, "x: 0123456789012345678901234567890123456789\n", 44);
    end(&c);
}

TEST(progress_text) {
    captured c;
    cd_progress p;
    char text[256];
    begin(&c, "x");
    FILE *f = tmpfile(); /* isatty needs a descriptor */
    assert_non_null(f);
    c.log.out = f;
    cd_progress_begin(&p, &c.log, "read", "files", 200);
    assert_false(p.tty);
    cd_progress_step(&p, 50);
    cd_progress_step(&p, 20); /* a late thread */
    cd_progress_text(&p, 10, text, sizeof text);
    assert_string_equal(
        text, "read: [#######.......................]  25 %  50/200 files  5 files/s  ETA 0:30");
    cd_progress_step(&p, 300);
    cd_progress_text(&p, 7200, text, sizeof text);
    assert_non_null(strstr(text, "100 %  200/200"));
    assert_non_null(strstr(text, "ETA 0:00"));
    p.total = 1000000;
    cd_progress_text(&p, 3600, text, sizeof text);
    assert_non_null(strstr(text, "ETA 3332:20:00"));
    p.total = 0;
    cd_progress_text(&p, 2, text, sizeof text);
    assert_string_equal(text, "read: 300 files, 150 files/s");
    p.done = 0, p.total = 5;
    cd_progress_text(&p, 0, text, sizeof text);
    assert_non_null(strstr(text, "0 %"));
    assert_non_null(strstr(text, "ETA ?"));
    cd_progress_end(&p);
    fclose(f);
    end(&c);
}

/* A bar is for a terminal that can redraw and for people: none in JSON, none on a dumb terminal. */
TEST(progress_on_a_terminal) {
    static const struct {
        const char *term;
        bool json, bar;
    } tab[] = {{"xterm", false, true}, {"xterm", true, false}, {"dumb", false, false},
               {"", false, false},     {NULL, false, false},   {"dumb", true, false}};
    const char *had = getenv("TERM");
    char *keep = had ? strdup(had) : NULL;
    const int at = posix_openpt(O_RDWR | O_NOCTTY);
    if (at < 0 || grantpt(at) || unlockpt(at)) skip();
    FILE *f = fopen(ptsname(at), "w");
    if (!f) skip();
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        cd_log lg;
        cd_progress p;
        if (tab[k].term) setenv("TERM", tab[k].term, 1);
        else unsetenv("TERM");
        cd_log_init(&lg, "x", f);
        lg.json = tab[k].json;
        cd_progress_begin(&p, &lg, "read", "files", 200);
        assert_int_equal(p.tty, tab[k].bar);
        assert_true(p.tty ? p.every_s < 1 : p.every_s > 0);
        pthread_mutex_destroy(&p.lock);
        cd_log_done(&lg);
    }
    if (keep) setenv("TERM", keep, 1);
    else unsetenv("TERM");
    free(keep);
    fclose(f);
    close(at);
}

/* No terminal: lines, when they are asked for as often as every_s; nothing at all when quiet. */
TEST(progress_lines) {
    for (int quiet = 0; quiet < 2; quiet++) {
        captured c;
        cd_progress p;
        char text[4096];
        begin(&c, "x");
        FILE *f = tmpfile();
        assert_non_null(f);
        c.log.out = f;
        if (quiet) c.log.level = CD_LOG_ERROR;
        cd_progress_begin(&p, &c.log, "read", "lines", 4);
        assert_true(isinf(p.every_s)); /* off a terminal: never by itself */
        c.log.json = true;
        assert_true(cd_log_every_s(&c.log) == 10);
        c.log.json = false;
        cd_progress_step(&p, 1); /* too early */
        p.every_s = 0;
        cd_progress_step(&p, 2);
        cd_progress_step(&p, 3);
        cd_progress_end(&p);
        rewind(f);
        text[fread(text, 1, sizeof text - 1, f)] = '\0';
        int n = 0;
        for (const char *s = text; (s = strchr(s, '\n')); s++) n++;
        assert_int_equal(n, quiet ? 0 : 3);
        if (!quiet) assert_non_null(strstr(text, "x: read: 3 lines in 0.0"));
        fclose(f);
        end(&c);
    }
}

/* The bar goes, and nothing takes its place. */
TEST(progress_cleared) {
    cd_log log;
    cd_progress p;
    char text[4096];
    FILE *f = tmpfile();
    assert_non_null(f);
    cd_log_init(&log, "x", f);
    cd_progress_begin(&p, &log, "ask", "networks", 5);
    cd_progress_clear(&p); /* none was drawn */
    assert_int_equal(ftell(f), 0);
    cd_progress_begin(&p, &log, "ask", "networks", 5);
    p.tty = true;
    p.every_s = 0;
    cd_progress_step(&p, 3);
    cd_progress_clear(&p);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    assert_non_null(strstr(text, "3/5 networks"));
    assert_string_equal(text + strlen(text) - strlen("\r\033[K"), "\r\033[K");
    assert_null(strchr(text, '\n'));
    cd_log_done(&log);
    fclose(f);
}

/* A library's log: nobody hears it. */
TEST(nobody_hears) {
    cd_log log;
    cd_progress p;
    cd_log_init(&log, "x", NULL);
    assert_false(cd_log_redraws(NULL) || cd_log_colours(NULL));
    cd_log_redraw(&log, "text", 4);
    cd_progress_begin(&p, &log, "work", "items", 10);
    assert_false(p.tty);
    p.every_s = 0;
    cd_progress_step(&p, 5);
    cd_progress_end(&p);
    cd_log_put(&log, CD_LOG_ERROR, "e");
    cd_log_done(&log);
}

TESTS(NULL, NULL, nobody_hears, levels, errors, warnings_are_kept, long_text_is_whole,
      lines_do_not_mix, progress_text, progress_on_a_terminal, progress_lines, progress_cleared)
