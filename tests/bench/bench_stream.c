/* bench_stream TASKS LOG MODEL... -- requests a second of CPU time that cdmpp-predict --stream
 * answers, in this process, one thread, from a file to /dev/null, for each profile: lines of a
 * measure log as they are, the same with the cache warm, requests of task and steps, of rows as
 * JSON, and frames of 256 packed programs. The requests are repeated up to 20,000. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/core/core.h"
#include "bench_log.h"
#include "features/rows/rows.h"
#include "predictor/serve/serve.h"

enum { LEAST = 20000, FRAME = 256, ROUNDS = 3, RECORDS = 0, STEPS, ROWS, PACKED, N_KIND };
static const char *const name[N_KIND] = {"records", "task and steps", "rows as JSON", "packed"};

typedef struct {
    bench_tasks of;
    cd_buf in[N_KIND]; /* requests of one round */
    cd_buf head, body; /* of the frame under way */
    size_t n, in_frame;
} rig;

static void put_u32(cd_buf *b, size_t v) {
    const uint32_t w = (uint32_t)v;
    cd_buf_put(b, (const char *)&w, sizeof w);
}

static void end_frame(rig *r) {
    cd_buf *b = &r->in[PACKED];
    const size_t n = r->in_frame;
    if (!n) return;
    put_u32(b, 4 + r->head.n + 8 + r->body.n);
    put_u32(b, n);
    cd_buf_put(b, r->head.p, r->head.n);
    put_u32(b, 0);
    put_u32(b, 0);
    cd_buf_put(b, r->body.p, r->body.n);
    cd_buf_clear(&r->head);
    cd_buf_clear(&r->body);
    r->in_frame = 0;
}

static void put_rows(rig *r, const char *key, const cd_rows *rows) {
    cd_buf *b = &r->in[ROWS];
    const size_t n = (size_t)rows->n_row * CD_N_COL;
    const float k = (float)rows->n_row;
    cd_buf_puts(b, "{\"id\":7,\"task\":");
    cd_buf_put_json_str(b, key, strlen(key));
    cd_buf_puts(b, ",\"rows\":[");
    for (size_t i = 0; i < n; i++)
        cd_buf_putf(b, "%s%.9g%s",
                    i % CD_N_COL ? ","
                    : i          ? ",["
                                 : "[",
                    (double)rows->row[i], i % CD_N_COL == CD_N_COL - 1 ? "]" : "");
    cd_buf_puts(b, "]}\n");
    put_u32(&r->head, 1 + n);
    cd_buf_put(&r->body, (const char *)&k, sizeof k);
    cd_buf_put(&r->body, (const char *)rows->row, n * sizeof *rows->row);
    if (++r->in_frame == FRAME) end_frame(r);
}

static cdmpp_status keep(void *ctx, const bench_program *in, cdmpp_err *err) {
    rig *r = ctx;
    const cd_record *rec = in->record;
    const cd_hardware *h = &rec->hardware;
    const char *key = in->task->workload_key;
    cd_buf *b = &r->in[STEPS];
    (void)err;
    cd_buf_put(&r->in[RECORDS], in->line, in->len);
    cd_buf_puts(&r->in[RECORDS], "\n");
    cd_buf_puts(b, "{\"id\":7,\"task\":");
    cd_buf_put_json_str(b, key, strlen(key));
    cd_buf_puts(b, ",\"target\":");
    cd_buf_put_json_str(b, rec->target.p, rec->target.n);
    cd_buf_putf(b, ",\"hardware\":[%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld],\"steps\":",
                (long long)h->num_cores, (long long)h->vector_unit_bytes,
                (long long)h->cache_line_bytes, (long long)h->max_shared_memory_per_block,
                (long long)h->max_local_memory_per_block, (long long)h->max_threads_per_block,
                (long long)h->max_vthread_extent, (long long)h->warp_size);
    cd_buf_put(b, in->steps, in->n_steps);
    cd_buf_puts(b, "}\n");
    put_rows(r, key, in->rows);
    r->n++;
    return CDMPP_OK;
}

/* CPU seconds for the requests of one kind, least of ROUNDS. */
static cdmpp_status serve(rig *r, const cdmpp_model *m, const char *profile, int kind, size_t cache,
                          cdmpp_err *err) {
    const size_t times = LEAST / r->n + 1;
    const int in = memfd_create("requests", 0), out = open("/dev/null", O_WRONLY);
    double least = 1e9;
    cd_serve_stats n = {0};
    for (size_t k = 0; k < times; k++)
        if (in < 0 || write(in, r->in[kind].p, r->in[kind].n) != (ssize_t)r->in[kind].n)
            return CD_FAIL(err, EIO, "requests");
    const cdmpp_options o = {
        .size = sizeof o, .device = cdmpp_model_device(m, 0), .profile = profile, .cache = cache};
    const cd_serve_options so = {.in = in,
                                 .out = out,
                                 .format = kind == PACKED ? CD_SERVE_PACKED : CD_SERVE_NDJSON,
                                 .max_delay_ms = -1};
    cdmpp_context *c = NULL;
    CD_TRY(cdmpp_context_new(m, r->of.api, &o, &c, err));
    for (int k = -1; k < ROUNDS; k++) {
        (void)lseek(in, 0, SEEK_SET);
        const double t0 = cd_clock_thread();
        CD_TRY(cd_serve(c, m, r->of.api, &so, &n, err));
        const double took = cd_clock_thread() - t0;
        if (k >= 0 && took < least) least = took;
    }
    cdmpp_context_free(c);
    printf("  %-9s %-14s %s %8.0f a second (n=%zu, %zu bad, %.1f MB)\n", profile, name[kind],
           cache ? "cached" : "      ", (double)n.asked / least, n.asked, n.bad,
           1e-6 * (double)times * (double)r->in[kind].n);
    close(in);
    close(out);
    return CDMPP_OK;
}

static cdmpp_status bench(rig *r, const char *path, cdmpp_err *err) {
    cdmpp_model *m = NULL;
    CD_TRY(cdmpp_model_load(path, &m, err));
    printf("%s:\n", path);
    for (size_t i = 0; i < cdmpp_model_n_profile(m) && i < 2; i++) {
        const char *profile = cdmpp_model_profile(m, i);
        for (int kind = 0; kind < N_KIND; kind++)
            if (cdmpp_model_takes_rows(m) || kind < ROWS)
                CD_TRY(serve(r, m, profile, kind, 0, err));
        CD_TRY(serve(r, m, profile, RECORDS, 4 * r->n, err));
    }
    cdmpp_model_free(m);
    return CDMPP_OK;
}

int main(int argc, char **argv) {
    static rig r;
    cdmpp_err err = {0};
    if (argc < 4) return 2;
    cdmpp_status st = bench_each_program(&r.of, argv[1], argv[2], keep, &r, &err);
    end_frame(&r);
    if (!st) printf("stream: %zu records of %s, one thread, CPU time\n", r.n, argv[2]);
    for (int i = 3; !st && i < argc; i++) st = bench(&r, argv[i], &err);
    return bench_end(st, &err);
}
