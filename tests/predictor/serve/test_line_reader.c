/* Pipes: an answer comes in time while the pipe stays open, who does not read is not read from, a
 * stop answers what was read whole, and a warm stream asks the heap for nothing. */
#include "fault.h"
#include "made_serve.h"

#include <poll.h>
#include <pthread.h>

#include "predictor/serve/serve_internal.h"

typedef struct {
    run r;
    int in[2], to[2];
    const volatile sig_atomic_t *stop;
    pthread_t thread;
} piped;

static void *serving(void *arg) {
    piped *p = arg;
    const cdmpp_options o = {.size = sizeof o, .device = p->r.device, .cache = p->r.cache};
    cdmpp_context *c = NULL;
    p->r.st = cdmpp_context_new(api.model[p->r.model], api.tasks, &o, &c, &p->r.err);
    const cd_serve_options so = {.in = p->in[0],
                                 .out = p->to[1],
                                 .batch = p->r.batch,
                                 .max_delay_ms = p->r.threads,
                                 .stop = p->stop};
    if (!p->r.st)
        p->r.st = cd_serve(c, api.model[p->r.model], api.tasks, &so, &p->r.stats, &p->r.err);
    cdmpp_context_free(c);
    close(p->to[1]);
    return NULL;
}

/* threads of the run: here the delay in ms. */
static void begin(piped *p, run r, const volatile sig_atomic_t *stop) {
    *p = (piped){.r = r, .stop = stop};
    assert_int_equal(pipe(p->in), 0);
    assert_int_equal(pipe(p->to), 0);
    assert_int_equal(pthread_create(&p->thread, NULL, serving, p), 0);
}

static void end(piped *p) {
    close(p->in[1]);
    pthread_join(p->thread, NULL);
    close(p->in[0]);
    close(p->to[0]);
}

/* Lines that came within ms; what was read goes on in `text` (cap). */
static size_t lines_within(piped *p, size_t want, int ms, char *text, size_t cap) {
    const int64_t until = cd_line_reader_now() + (int64_t)ms * 1000000;
    size_t n = 0, lines = 0;
    while (lines < want && n < cap - 1) {
        struct pollfd f = {.fd = p->to[0], .events = POLLIN};
        const int64_t left = (until - cd_line_reader_now()) / 1000000;
        if (left < 0 || poll(&f, 1, (int)left) <= 0) break;
        const ssize_t k = read(p->to[0], text + n, cap - 1 - n);
        if (k <= 0) break;
        for (ssize_t i = 0; i < k; i++) lines += text[n + (size_t)i] == '\n';
        n += (size_t)k;
    }
    text[n] = '\0';
    return lines;
}

static void say(piped *p, const char *text) {
    assert_int_equal(write(p->in[1], text, strlen(text)), strlen(text));
}

static void answers_in_time(void **state) {
    (void)state;
    char text[4096];
    piped p;
    begin(&p, (run){.threads = 20, .batch = 100}, NULL);
    for (int i = 0; i < 3; i++) { /* nobody ends the batch: time does */
        say(&p, "{\"id\":1}\n{\"id\":");
        assert_int_equal(lines_within(&p, 1, 10000, text, sizeof text), 1);
        assert_non_null(strstr(text, "{\"id\":1,\"error\""));
        say(&p, "2}\n");
        assert_int_equal(lines_within(&p, 1, 10000, text, sizeof text), 1);
        assert_non_null(strstr(text, "{\"id\":2,\"error\""));
    }
    end(&p);
    assert_int_equal(p.r.st, CDMPP_OK);
    assert_int_equal(p.r.stats.batches, 6);
}

/* With an hour to wait an empty line, a full batch and a command make answers come. */
static void flushes(void **state) {
    (void)state;
    static const char *const end_of[] = {"\n", "{\"id\":3}\n", "{\"cmd\":\"stats\"}\n"};
    char text[4096];
    for (size_t k = 0; k < 3; k++) {
        piped p;
        begin(&p, (run){.threads = 60000, .batch = 3}, NULL);
        say(&p, "{\"id\":1}\n{\"id\":2}\n");
        assert_int_equal(lines_within(&p, 1, 50, text, sizeof text), 0);
        say(&p, end_of[k]);
        assert_int_equal(lines_within(&p, k ? 3 : 2, 10000, text, sizeof text), k ? 3 : 2);
        end(&p);
    }
}

/* The input that is taken while nobody reads stays below what pipes and one batch hold. */
static void slow_reader(void **state) {
    (void)state;
    static char text[1 << 16];
    static const char line[] = "{\"id\":123456789}\n";
    piped p;
    size_t taken = 0, lines = 0, sent = 0;
    begin(&p, (run){.threads = 1, .batch = 64}, NULL);
    assert_int_equal(fcntl(p.in[1], F_SETFL, O_NONBLOCK), 0);
    for (int idle = 0; idle < 20;) {
        /* below PIPE_BUF: whole or not at all */
        const ssize_t k = write(p.in[1], line, sizeof line - 1);
        if (k > 0) idle = 0, taken += (size_t)k, sent++;
        else idle++, usleep(10000);
        assert_true(taken < (size_t)8 << 20);
    }
    if (taken > CD_INTAKE_ROOM + (1 << 18)) fail_msg("%zu bytes taken", taken);
    close(p.in[1]);
    for (size_t got; lines < sent; lines += got)
        if (!(got = lines_within(&p, 1, 10000, text, sizeof text))) break;
    assert_int_equal(lines, sent);
    p.in[1] = open("/dev/null", O_WRONLY);
    end(&p);
    assert_int_equal(p.r.stats.bad, sent);
}

/* A signal's flag: whole lines are answered, the half one is not. */
static void stops(void **state) {
    (void)state;
    static volatile sig_atomic_t stop;
    char text[4096];
    piped p;
    stop = 0;
    begin(&p, (run){.threads = 60000, .batch = 10}, &stop);
    say(&p, "{\"id\":1}\n{\"id\":2}\n{\"id\":");
    assert_int_equal(lines_within(&p, 1, 100, text, sizeof text), 0);
    stop = 1;
    close(p.in[1]); /* as the handler of the command ends its reads */
    assert_int_equal(lines_within(&p, 3, 10000, text, sizeof text), 2);
    p.in[1] = open("/dev/null", O_WRONLY);
    end(&p);
    assert_int_equal(p.r.st, CDMPP_EINTERRUPTED);
}

/* ---- the heap ---- */
static void warm_asks_nothing(void **state) {
    (void)state;
    static char text[1 << 17];
    cd_buf in = {0};
    piped p;
    for (size_t i = 0; i < 60; i++) put_request(&in, i % 20, (int)(i % N_KIND));
    begin(&p, (run){.threads = 60000, .batch = 60, .cache = 16}, NULL);
    for (int round = 0; round < 4; round++) {
        if (round == 2) fault_all();
        assert_int_equal(write(p.in[1], in.p, in.n), in.n);
        const size_t got = lines_within(&p, 60, 10000, text, sizeof text);
        if (round == 3) fault_off();
        assert_int_equal(got, 60);
        assert_null(strstr(text, "error"));
    }
    fault_off();
    end(&p);
    assert_int_equal(p.r.st, CDMPP_OK);
    cd_buf_free(&in);
}

static void refused_memory(void **state) {
    (void)state;
    cd_buf in = {0};
    for (size_t i = 0; i < 6; i++) put_request(&in, i, (int)(i % N_KIND));
    FAULT_SWEEP(f, 1) {
        const int from = open(tmp_put(&api.dir, "in", in.p, in.n), O_RDONLY),
                  to = open("/dev/null", O_WRONLY);
        const cdmpp_options o = {.size = sizeof o, .cache = 10};
        cd_serve_options so = {.in = from, .out = to, .batch = 4, .max_delay_ms = -1};
        cd_serve_stats stats;
        cdmpp_context *c = NULL;
        f.st = cdmpp_context_new(api.model[MADE_TREES], api.tasks, &o, &c, &f.err);
        if (!f.st) f.st = cd_serve(c, api.model[MADE_TREES], api.tasks, &so, &stats, &f.err);
        cdmpp_context_free(c);
        close(from);
        close(to);
    }
    cd_buf_free(&in);
}

TESTS(setup, teardown, answers_in_time, flushes, slow_reader, stops, warm_asks_nothing,
      refused_memory)
