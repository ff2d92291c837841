/* Any bytes as what a client of cdmpp-predict --stream sends, in all three formats, with a model of
 * trees that has profile tuner and a task file. The first byte chooses format, profile, cache and
 * how little fits in a line. The number of answers must be the number of requests. Run in the root
 * of the tree. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "predictor/serve/serve.h"

static cdmpp_model *model;
static cdmpp_tasks *tasks;

static void load(void) {
    cdmpp_err err = {0};
    if (cdmpp_model_load("tests/golden/model_v3.cdmpp", &model, &err) ||
        cdmpp_tasks_new(&tasks, &err) ||
        cdmpp_tasks_load(tasks, "tests/fuzz/seeds/taskfile/matmul.tasks.json", &err))
        abort();
}

static size_t lines_of(int fd) {
    const off_t n = lseek(fd, 0, SEEK_END);
    size_t lines = 0;
    if (n <= 0) return 0;
    const char *p = mmap(NULL, (size_t)n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) abort();
    for (off_t i = 0; i < n; i++) lines += p[i] == '\n';
    if (p[n - 1] != '\n') abort();
    munmap((void *)(uintptr_t)p, (size_t)n);
    return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static cdmpp_context *context[4];
    cdmpp_err err = {0};
    if (!size) return 0;
    if (!model) load();
    const unsigned how = data[0];
    cdmpp_context **c = &context[how >> 2 & 3];
    const cdmpp_options o = {.size = sizeof o,
                             .device = how & 8 ? "zen5-avx512" : NULL,
                             .profile = how & 4 ? "tuner" : NULL,
                             .cache = 8,
                             .max_rows = 50};
    if (!*c && cdmpp_context_new(model, tasks, &o, c, &err)) abort();
    const int in = memfd_create("in", 0), out = memfd_create("out", 0);
    if (in < 0 || out < 0 || write(in, data + 1, size - 1) != (ssize_t)(size - 1) ||
        lseek(in, 0, SEEK_SET))
        abort();
    const cd_serve_options so = {.in = in,
                                 .out = out,
                                 .format = (cd_serve_format)((how & 3) % 3),
                                 .batch = 1 + (how >> 4 & 7),
                                 .max_delay_ms = 0,
                                 .max_bytes = how & 128 ? 200 : 100000,
                                 .costs = (how & 3) == 0};
    cd_serve_stats n;
    const cdmpp_status st = cd_serve(*c, model, tasks, &so, &n, &err);
    if (n.scored + n.bad != n.asked) abort();
    if (so.format == CD_SERVE_NDJSON && (st || lines_of(out) < n.asked)) abort();
    if (so.format == CD_SERVE_CSV && !st &&
        lines_of(out) != n.asked + (lseek(out, 0, SEEK_END) > 0))
        abort();
    close(in);
    close(out);
    return 0;
}
