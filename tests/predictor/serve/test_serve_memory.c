/* Streams of all formats without memory, with lines that are too long, with an output that is gone;
 * the reader of lines alone. */
#include "check.h"
#include "fault.h"
#include "made_serve.h"

#include <pthread.h>
#include <signal.h>

static void put_head(cd_buf *b, const char *words) {
    cd_buf_puts(b, words);
    for (int c = 0; c < CD_N_COL; c++) cd_buf_putf(b, ",%s", cd_cols()[c].name);
    cd_buf_puts(b, "\n");
}

static void put_program(cd_buf *b, size_t i, const char *words) {
    for (int64_t r = all.row_ptr[i]; r < all.row_ptr[i + 1]; r++) {
        cd_buf_puts(b, words);
        for (int64_t c = 0; c < CD_N_COL; c++)
            cd_buf_putf(b, ",%.9g", (double)all.rows[r * CD_N_COL + c]);
        cd_buf_puts(b, "\n");
    }
}

static void put_schedule(cd_buf *b, size_t i) {
    const char *const part[] = {key, all.steps[i].p};
    const size_t n[] = {strlen(key), all.steps[i].n};
    cd_buf_putf(b, "%zu," MADE_TARGET, i);
    for (int k = 0; k < 2; k++) {
        cd_buf_puts(b, ",\"");
        for (size_t j = 0; j < n[k]; j++)
            cd_buf_put(b, part[k][j] == '"' ? "\"\"" : part[k] + j, part[k][j] == '"' ? 2 : 1);
        cd_buf_puts(b, "\"");
    }
    cd_buf_puts(b, "\n");
}

enum { CSV_ROWS, CSV_STEPS, LINES, FRAMES, N_STREAM };

static cd_buf stream_of(int which) {
    cd_buf b = {0};
    if (which == CSV_ROWS) {
        put_head(&b, "id,device,flop");
        for (size_t i = 0; i < 3; i++)
            put_program(&b, i, i ? "b,zen5-avx512,2e9" : "a,zen5-avx512,");
    } else if (which == CSV_STEPS) {
        cd_buf_puts(&b, "id,target,task,steps\n");
        for (size_t i = 0; i < 3; i++) put_schedule(&b, i);
    } else if (which == LINES) {
        cd_buf_puts(&b, "{\"cmd\":\"hello\"}\n");
        for (size_t i = 0; i < 6; i++) put_request(&b, i, (int)(i % N_KIND));
        cd_buf_puts(&b, "\n{\"cmd\":\"stats\"}\n{\"id\":{\"a\":[1,\"x\"]},\"task\":3}\n");
    } else {
        for (int k = 0; k < 2; k++) {
            const uint32_t n = (uint32_t)all.packed.n;
            cd_buf_put(
                &b, (const char[]){(char)n, (char)(n >> 8), (char)(n >> 16), (char)(n >> 24)}, 4);
            cd_buf_put(&b, all.packed.p, n);
        }
        cd_buf_put(&b, "\4\0\0\0\5\0\0\0", 8);
    }
    return b;
}
static const cd_serve_format format_of[N_STREAM] = {CD_SERVE_CSV, CD_SERVE_CSV, CD_SERVE_NDJSON,
                                                    CD_SERVE_PACKED};

TEST(without_memory) {
    for (int which = 0; which < N_STREAM; which++) {
        cd_buf in = stream_of(which);
        FAULT_SWEEP(f, 1) {
            const cdmpp_options o = {
                .size = sizeof o, .device = which == FRAMES ? "zen5-avx512" : NULL, .cache = 10};
            cdmpp_context *c = NULL;
            cd_serve_stats stats;
            fault_off();
            const int from = open(tmp_put(&api.dir, "in", in.p, in.n), O_RDONLY),
                      to = open("/dev/null", O_WRONLY);
            const cd_serve_options so = {
                .in = from, .out = to, .format = format_of[which], .batch = 2, .max_delay_ms = -1};
            assert_int_equal(cdmpp_context_new(api.model[MADE_TREES], api.tasks, &o, &c, &f.err),
                             CDMPP_OK);
            fault_at(f.k);
            f.st = cd_serve(c, api.model[MADE_TREES], api.tasks, &so, &stats, &f.err);
            fault_off();
            cdmpp_context_free(c);
            close(from);
            close(to);
        }
        cd_buf_free(&in);
    }
}

/* The reader of answers is gone: the stream ends with an error. */
TEST(output_is_gone) {
    for (int which = 0; which < N_STREAM; which++) {
        cd_buf in = stream_of(which);
        const int from = open(tmp_put(&api.dir, "in", in.p, in.n), O_RDONLY),
                  to = open("/dev/full", O_WRONLY);
        run r = {.format = format_of[which],
                 .device = which == FRAMES ? "zen5-avx512" : NULL,
                 .batch = 1};
        serve(&r, from, to);
        assert_int_equal(r.st, CDMPP_EIO);
        assert_string_equal(r.err.msg, "cannot write to standard output");
        close(from);
        close(to);
        cd_buf_free(&in);
    }
}

/* A folder cannot be read from. */
TEST(input_is_no_file) {
    for (int which = 0; which < N_STREAM; which++) {
        const int from = open(api.dir.path, O_RDONLY), to = open("/dev/null", O_WRONLY);
        run r = {.format = format_of[which], .device = which == FRAMES ? "zen5-avx512" : NULL};
        serve(&r, from, to);
        assert_int_equal(r.st, CDMPP_EIO);
        assert_non_null(strstr(r.err.msg, "cannot read standard input: Is a directory"));
        close(from);
        close(to);
    }
}

/* Columns of a table: flop, tasks, what no program has. */
TEST(columns) {
    static const struct {
        const char *words, *value, *want;
    } of[] = {
        {"id,device,flop", "1,zen5-avx512,2e9", "\n1,"},
        {"id,device,flop", "1,zen5-avx512,", "\n1,"},
        {"id,device,flop", "1,zen5-avx512,0", "\"flop: expected a number above 0, found '0'\""},
        {"id,device,flop", "1,zen5-avx512,-1", "found '-1'"},
        {"id,device,flop", "1,zen5-avx512,1e301", "found '1e301'"},
        {"id,device,flop", "1,zen5-avx512,nan", "found 'nan'"},
        {"id,device,flop", "1,zen5-avx512,2x", "found '2x'"},
        {"id,device,flop", "1,zen5-avx512,123456789012345678901234567890x",
         "found '12345678901234567890'"},
        {"id,device,task", "1,zen5-avx512,nosuch", "\n1,,,,,,,"},
        {"device", "zen5-avx512", "\n2,"}};
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        cd_buf in = {0};
        put_head(&in, of[k].words);
        cd_buf_puts(&in, of[k].value);
        for (int c = 0; c < CD_N_COL; c++) cd_buf_puts(&in, ",1");
        run r = {.format = CD_SERVE_CSV};
        if (k < 2 || of[k].want[1] == '2') { /* scored: a number, and no error */
            char *got = answers(&r, in.p, in.n, NULL);
            assert_true(r.st == CDMPP_OK && r.stats.scored == 1 && !r.stats.bad);
            assert_memory_equal(strchr(got, '\n'), of[k].want, 3);
            cd_mem_free(got);
        } else {
            expect_part(&r, in.p, of[k].want);
            assert_true(!r.stats.scored && r.stats.bad == 1);
        }
        cd_buf_free(&in);
    }
}

TEST(long_lines) {
    cd_buf in = {0};
    run r = {.format = CD_SERVE_CSV, .max_bytes = 1 << 20, .device = "zen5-avx512"}, head = r;
    put_head(&in, "id");
    put_program(&in, 0, "a");
    cd_buf_puts(&in, "a,");
    for (int i = 0; i < 3000000; i++) cd_buf_put(&in, "1", 1);
    cd_buf_puts(&in, "\n");
    put_program(&in, 1, "b");
    expect_part(&r, in.p, "\na,,,,,,,ERANGE,the line is longer than 1048576 bytes,\nb,0.");
    assert_true(r.stats.scored == 1 && r.stats.bad == 1);
    cd_buf_clear(&in);
    for (int i = 0; i < 3000000; i++) cd_buf_put(&in, "i", 1);
    expect(&head, in.p, "");
    assert_int_equal(head.st, CDMPP_ERANGE);
    assert_string_equal(head.err.msg, "the line is longer than 1048576 bytes");
    cd_buf_free(&in);
}

TEST(heads) {
    cd_buf many = {0};
    cd_buf_puts(&many, "id");
    for (int i = 0; i < 170; i++) cd_buf_puts(&many, ",x");
    const struct {
        const char *head, *want;
        cdmpp_status st;
    } of[] = {{many.p, "expected at most 170 columns, found more", CDMPP_ERANGE},
              {"id,a_very_long_name_of_a_column_that_no_table_has_in_it",
               "found 'a_very_long_name_of_a_column_that_no_tab'", CDMPP_ESCHEMA}};
    for (size_t k = 0; k < 2; k++) {
        run r = {.format = CD_SERVE_CSV};
        expect(&r, of[k].head, "");
        assert_int_equal(r.st, of[k].st);
        if (!strstr(r.err.msg, of[k].want)) fail_msg("%s", r.err.msg);
    }
    cd_buf_free(&many);
}

/* Programs without an id: each line is one, and a bad line of a table of schedules is a program of
 * its own. */
TEST(lines_alone) {
    cd_buf in = {0};
    put_head(&in, "device");
    put_program(&in, 0, "zen5-avx512");
    cd_buf_puts(&in, "zen5-avx512,1\n");
    const long n = all.row_ptr[1];
    char want[100];
    run r = {.format = CD_SERVE_CSV}, s = r;
    snprintf(want, sizeof want, "\n%ld,,,,,,,ESCHEMA,\"expected 165 fields, found 2\",\n", n + 2);
    expect_part(&r, in.p, want);
    assert_true(r.stats.scored == (size_t)n && r.stats.bad == 1);
    cd_buf_clear(&in);
    cd_buf_puts(&in, "id,target,task,steps\n");
    put_schedule(&in, 0);
    cd_buf_puts(&in, "a,b\n");
    put_schedule(&in, 1);
    expect_part(&s, in.p, "\n3,,,,,,,ESCHEMA,\"expected 4 fields, found 2\",\n1,0.");
    assert_true(s.stats.scored == 2 && s.stats.bad == 1);
    cd_buf_free(&in);
}

/* ---- the reader of lines alone ---- */
typedef struct {
    int from, to;
    cd_line_reader *in;
} source;

static source source_of(size_t most) {
    int end[2];
    source s = {0};
    cdmpp_err err = {0};
    assert_int_equal(pipe(end), 0);
    s.from = end[0], s.to = end[1];
    assert_int_equal(fcntl(s.from, F_SETFL, O_NONBLOCK), 0);
    assert_ok(cd_line_reader_new(s.from, most, &s.in, &err));
    return s;
}

static void done(source *s) {
    cd_line_reader_free(s->in);
    close(s->from);
    if (s->to >= 0) close(s->to);
}

static void put(source *s, const char *text, size_t n) {
    assert_int_equal(write(s->to, text, n), n);
}

static cd_line_reader_kind next(source *s, cd_str *line) {
    cd_line_reader_kind kind;
    cdmpp_err err = {0};
    assert_ok(cd_line_reader_next(s->in, cd_line_reader_now(), &kind, line, &err));
    return kind;
}

TEST(lines_as_they_come) {
    static char many[60000];
    cd_str line, first;
    source s = source_of((size_t)3 << 20);
    memset(many, 'x', sizeof many);
    assert_int_equal(next(&s, &line), CD_INTAKE_LATE);
    put(&s, "one\r\ntw", 7);
    assert_int_equal(next(&s, &first), CD_INTAKE_LINE);
    assert_true(cd_str_is(first, "one") && cd_line_reader_whole(s.in));
    assert_int_equal(next(&s, &line), CD_INTAKE_LATE);
    /* the first line is held: nothing moves, and the room is used up */
    cd_line_reader_kind kind = CD_INTAKE_LATE;
    for (int i = 0; i < 40 && kind == CD_INTAKE_LATE; i++) {
        put(&s, many, sizeof many);
        kind = next(&s, &line);
    }
    assert_int_equal(kind, CD_INTAKE_FULL);
    assert_true(cd_str_is(first, "one"));
    cd_line_reader_release(s.in);
    assert_int_equal(next(&s, &line), CD_INTAKE_LATE);
    /* and then it grows to the longest line */
    for (int i = 0; i < 30; i++) {
        put(&s, many, sizeof many);
        assert_int_equal(next(&s, &line), CD_INTAKE_LATE);
    }
    put(&s, "\nlast", 5);
    assert_int_equal(next(&s, &line), CD_INTAKE_LINE);
    assert_true(line.n > (size_t)1 << 20 && line.p[0] == 't' && line.p[line.n - 1] == 'x');
    assert_int_equal(cd_line_reader_number(s.in), 2);
    close(s.to);
    s.to = -1;
    assert_int_equal(next(&s, &line), CD_INTAKE_LINE);
    assert_true(cd_str_is(line, "last") && !cd_line_reader_whole(s.in));
    assert_int_equal(next(&s, &line), CD_INTAKE_END);
    done(&s);
    cd_line_reader_free(NULL);
}

/* A line that is too long is skipped as it comes, whether an end or the end of the input comes
 * behind it. */
TEST(too_long) {
    cd_str line;
    source s = source_of(5);
    put(&s, "123456\n12345\n1234567", 20);
    assert_int_equal(next(&s, &line), CD_INTAKE_LONG);
    assert_int_equal(next(&s, &line), CD_INTAKE_LINE);
    assert_true(cd_str_is(line, "12345"));
    cd_line_reader_release(s.in);
    assert_int_equal(next(&s, &line), CD_INTAKE_LATE);
    put(&s, "89", 2);
    assert_int_equal(next(&s, &line), CD_INTAKE_LATE);
    put(&s, "0\nab\n1234567", 12);
    assert_int_equal(next(&s, &line), CD_INTAKE_LONG);
    assert_int_equal(next(&s, &line), CD_INTAKE_LINE);
    assert_true(cd_str_is(line, "ab"));
    cd_line_reader_release(s.in);
    assert_int_equal(next(&s, &line), CD_INTAKE_LATE);
    close(s.to);
    s.to = -1;
    assert_int_equal(next(&s, &line), CD_INTAKE_LONG);
    assert_int_equal(next(&s, &line), CD_INTAKE_END);
    assert_int_equal(cd_line_reader_number(s.in), 5);
    done(&s);
}

TEST(no_room_for_lines) {
    static char many[60000];
    memset(many, 'x', sizeof many);
    FAULT_SWEEP(f, 1) {
        fault_off();
        source s = {0};
        int end[2];
        cd_line_reader_kind kind = CD_INTAKE_LATE;
        cd_str line;
        assert_int_equal(pipe(end), 0);
        assert_int_equal(fcntl(end[0], F_SETFL, O_NONBLOCK), 0);
        fault_at(f.k);
        f.st = cd_line_reader_new(end[0], (size_t)3 << 20, &s.in, &f.err);
        for (int i = 0; !f.st && i < 40; i++) {
            assert_int_equal(write(end[1], many, sizeof many), sizeof many);
            f.st = cd_line_reader_next(s.in, cd_line_reader_now(), &kind, &line, &f.err);
        }
        fault_off();
        cd_line_reader_free(s.in);
        close(end[0]);
        close(end[1]);
    }
}

/* Bytes of a frame: what waits is waited for, what is skipped is not kept, a flag and the end cut
 * it short. */
static void *later(void *arg) {
    const int *to = arg;
    usleep(20000);
    assert_int_equal(write(to[0], "abc", 3), 3);
    return NULL;
}

TEST(bytes) {
    char got[8];
    int end[2];
    size_t n;
    volatile sig_atomic_t stop = 1;
    pthread_t t;
    cdmpp_err err = {0};
    assert_int_equal(pipe(end), 0);
    assert_int_equal(fcntl(end[0], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(pthread_create(&t, NULL, later, &end[1]), 0);
    assert_ok(cd_line_reader_bytes(end[0], got, 3, NULL, &n, &err)); /* EAGAIN at first */
    pthread_join(t, NULL);
    assert_true(n == 3 && !memcmp(got, "abc", 3));
    assert_ok(cd_line_reader_bytes(end[0], got, 3, &stop, &n, &err));
    assert_int_equal(n, 0);
    stop = 0;
    assert_int_equal(write(end[1], "defgh", 5), 5);
    assert_ok(cd_line_reader_bytes(end[0], NULL, 3, &stop, &n, &err));
    assert_int_equal(n, 3);
    close(end[1]);
    assert_ok(cd_line_reader_bytes(end[0], got, 3, &stop, &n, &err));
    assert_int_equal(n, 2);
    close(end[0]);
    assert_status(cd_line_reader_bytes(end[0], got, 3, NULL, &n, &err), CDMPP_EIO);
    assert_status(cd_line_reader_send(end[1], got, 3, &err), CDMPP_EIO);
}

/* A pipe that is full is waited for. */
static void *reading(void *arg) {
    const int *from = arg;
    char part[1 << 14];
    usleep(20000);
    for (size_t n = 0; n < 300000;) {
        const ssize_t k = read(from[0], part, sizeof part);
        if (k <= 0) break;
        n += (size_t)k;
    }
    return NULL;
}

TEST(sent_when_there_is_room) {
    static char text[300000];
    int end[2];
    pthread_t t;
    cdmpp_err err = {0};
    assert_int_equal(pipe(end), 0);
    assert_int_equal(fcntl(end[1], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(pthread_create(&t, NULL, reading, end), 0);
    assert_ok(cd_line_reader_send(end[1], text, sizeof text, &err));
    pthread_join(t, NULL);
    close(end[0]);
    close(end[1]);
}

TESTS(setup, teardown, without_memory, output_is_gone, input_is_no_file, columns, long_lines, heads,
      lines_alone, lines_as_they_come, too_long, no_room_for_lines, bytes, sent_when_there_is_room)
