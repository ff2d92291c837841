/* The run of an extraction: one thread reads, workers convert, one thread writes in the order of
 * reading. */
#include "dataset/extract/extract.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/io/io.h"
#include "dataset/extract/extract_internal.h"

/* Where a run stands; kept in checkpoints as these very bytes, which is safe
 * because the fingerprint names the version that wrote them. */
typedef struct place {
    uint64_t file;     /* this many files are done            */
    int64_t line;      /* lines of the next one that are done */
    uint32_t file_crc; /* of these lines                      */
    uint64_t file_bytes;
    cd_sha256 source; /* of a line "crc bytes" for each file */
    uint64_t records, programs, rows, skipped, failed, reason[CDMPP_STATUS_COUNT];
} place;

typedef struct run {
    const cd_extract *x;
    cd_inputs in;
    cd_pipe pipe;
    cd_writer *w;
    place begin;     /* of the reader                       */
    place at;        /* of the writer                       */
    cdmpp_status st; /* of the writer thread                */
    cdmpp_err err;
    bool stopped;    /* by the user                         */
    uint64_t n_read; /* records put into the pipe           */
} run;

/* --- writer thread -------------------------------------------------------------- */

/* Text of an error without what would break a line of the table. */
static void put_clean(cd_buf *b, const char *s) {
    for (; *s; s++) cd_buf_put(b, (unsigned char)*s < ' ' ? " " : s, 1);
}

/* A line that cannot be used: file, line, reason, as tab-separated text. The error itself keeps
 * only the tail of a long path. */
static cdmpp_status write_skip(run *r, const char *source, const cd_pipe_line *l, cdmpp_err *err) {
    const cd_convert_result *o = &l->out;
    cd_buf b = {0};
    put_clean(&b, source);
    cd_buf_putf(&b, "\t%ld\t%s\t", l->number, cdmpp_status_name(o->st));
    if (o->err->key[0]) put_clean(&b, o->err->key), cd_buf_puts(&b, ": ");
    put_clean(&b, o->err->msg);
    cd_buf_puts(&b, "\n");
    cdmpp_status st;
    if (b.oom) st = CD_FAIL(err, ENOMEM, "list of skipped lines");
    else st = cd_writer_skip(r->w, b.p, b.n, err);
    cd_buf_free(&b);
    r->at.skipped++;
    r->at.reason[o->st]++;
    return st;
}

/* Memory is not the line's fault. */
static bool is_fatal(cdmpp_status st) { return st == CDMPP_ENOMEM || st == CDMPP_EBACKEND; }

static cdmpp_status write_program(run *r, const cd_item *it, cdmpp_err *err) {
    r->at.programs++;
    r->at.rows += it->n_row;
    r->at.failed += it->error != 0 && it->error != CD_LABEL_REJECTED;
    return cd_writer_add(r->w, it, err);
}

static cdmpp_status write_line(run *r, const char *source, const cd_pipe_line *l, cdmpp_err *err) {
    const cd_convert_result *o = &l->out;
    r->at.line = l->number;
    r->at.records++;
    if (o->st == CDMPP_OK) return write_program(r, o->item, err);
    if (!o->err) return CD_FAIL(err, ENOMEM, "batch of lines");
    if (r->x->strict || is_fatal(o->st)) {
        *err = *o->err;
        return o->st;
    }
    CD_TRY(write_skip(r, source, l, err));
    return o->item ? write_program(r, o->item, err) : CDMPP_OK;
}

static void end_file(place *at) {
    char text[64];
    const int n = snprintf(text, sizeof text, "%08x %llu\n", (unsigned)at->file_crc,
                           (unsigned long long)at->file_bytes);
    cd_sha256_add(&at->source, text, (size_t)n);
    at->file++;
    at->line = 0;
    at->file_crc = 0;
    at->file_bytes = 0;
}

static cdmpp_status write_batch(run *r, const cd_pipe_batch *b, cdmpp_err *err) {
    for (size_t i = 0; i < b->n_line; i++) CD_TRY(write_line(r, b->source, &b->line[i], err));
    r->at.file_crc = (uint32_t)crc32_combine(r->at.file_crc, b->crc, (z_off_t)b->text.n);
    r->at.file_bytes += b->text.n;
    if (b->file_ends) end_file(&r->at);
    return cd_writer_poll(r->w, err);
}

static cdmpp_status write_all(run *r, cdmpp_err *err) {
    const double every = r->x->checkpoint_s == 0 ? 5 : r->x->checkpoint_s;
    double last = cd_clock_wall();
    for (const cd_pipe_batch *b; (b = cd_pipe_get(&r->pipe)) != NULL;) {
        CD_TRY(write_batch(r, b, err));
        cd_pipe_back(&r->pipe);
        if (every < 0 || cd_clock_wall() - last < every) continue;
        CD_TRY(cd_writer_checkpoint(r->w, &r->at, sizeof r->at, err));
        last = cd_clock_wall();
    }
    return CDMPP_OK;
}

static void *writer(void *arg) {
    run *r = arg;
    r->st = write_all(r, &r->err);
    if (r->st) cd_pipe_abort(&r->pipe);
    return NULL;
}

/* --- reader ---------------------------------------------------------------------- */

static void tell(const run *r, const cd_file_lines *l, uint64_t bytes_before) {
    uint64_t done = 0, total = 0;
    if (!r->x->progress) return;
    cd_file_lines_progress(l, &done, &total);
    const cd_extract_stats s = {
        .records = r->n_read, .bytes = bytes_before + done, .bytes_total = r->in.bytes};
    r->x->progress(r->x->progress_ctx, &s);
}

/* A line that the file did not give; its error goes the way of the others. */
static void add_refused(cd_pipe_batch *b, cdmpp_status st, long number, const cdmpp_err *e) {
    cd_pipe_line *l = &b->line[b->n_line++];
    *l = (cd_pipe_line){.at = b->text.n, .number = number, .out = {.st = st}};
    l->out.err = cd_arena_alloc(&b->arena, 1, sizeof *e);
    if (l->out.err) *l->out.err = *e;
    else l->out.st = CDMPP_ENOMEM;
}

/* Fill a batch; sets file_ends. Lines up to `done` were written by an earlier run. */
static void fill(cd_file_lines *l, cd_pipe_batch *b, int64_t done) {
    while (b->n_line < CD_BATCH_LINES && b->text.n < CD_BATCH_BYTES) {
        char *line = NULL;
        size_t n = 0;
        cdmpp_err e = {0};
        const cdmpp_status st = cd_file_lines_next(l, &line, &n, &e);
        const long number = cd_file_lines_number(l);
        if (st == CDMPP_OK && !line) {
            b->file_ends = true;
            return;
        }
        if (number <= done && st == CDMPP_OK) continue;
        if (st) {
            if (number > done) add_refused(b, st, number, &e);
            continue;
        }
        if (cd_record_is_comment(line, n)) continue;
        b->line[b->n_line++] = (cd_pipe_line){.at = b->text.n, .n = n, .number = number};
        cd_buf_put(&b->text, line, n);
        cd_buf_put(&b->text, "\n", 1);
    }
}

static bool stop_asked(const run *r) {
    return r->x->stop && __atomic_load_n(r->x->stop, __ATOMIC_RELAXED);
}

/* Ends early, and OK, when the writer has failed: its error is the one to tell. */
static cdmpp_status read_file(run *r, cd_file_lines *l, size_t file, int64_t done,
                              uint64_t bytes_before, cdmpp_err *err) {
    for (bool ends = false; !ends && !stop_asked(r);) {
        cd_pipe_batch *b = cd_pipe_blank(&r->pipe);
        if (!b) return CDMPP_OK;
        b->file = file;
        b->source = r->in.path[file];
        fill(l, b, done);
        if (b->text.oom) return CD_FAIL(err, ENOMEM, "batch of lines");
        ends = b->file_ends;
        r->n_read += b->n_line;
        tell(r, l, bytes_before);
        cd_pipe_put(&r->pipe);
    }
    return CDMPP_OK;
}

static cdmpp_status read_all(run *r, cdmpp_err *err) {
    uint64_t bytes = 0;
    r->n_read = r->begin.records;
    for (size_t i = 0; i < r->in.n && !stop_asked(r); bytes += r->in.size[i++]) {
        cd_file_lines *l = NULL;
        if (i < r->begin.file) continue;
        CD_TRY(cd_file_lines_open(r->in.path[i], CD_RECORD_LINE_MAX, &l, err));
        const cdmpp_status st =
            read_file(r, l, i, i == r->begin.file ? r->begin.line : 0, bytes, err);
        cd_file_lines_close(l);
        if (st) return st;
    }
    r->stopped = stop_asked(r);
    return CDMPP_OK;
}

/* --- a run ------------------------------------------------------------------------ */

static void report(const run *r, cd_extract_stats *s) {
    s->records = r->at.records;
    s->programs = r->at.programs;
    s->rows = r->at.rows;
    s->skipped = r->at.skipped;
    s->failed = r->at.failed;
    memcpy(s->reason, r->at.reason, sizeof s->reason);
    s->resumed = r->begin.records;
    s->bytes_total = r->in.bytes;
}

static cdmpp_status read_and_write(run *r, cdmpp_err *err) {
    pthread_t t;
    if (pthread_create(&t, NULL, writer, r) != 0)
        return CD_FAIL(err, EBACKEND, "cannot start the writer thread");
    const cdmpp_status st = read_all(r, err);
    cd_pipe_end(&r->pipe);
    pthread_join(t, NULL);
    if (st == CDMPP_OK && r->st && err) *err = r->err;
    return st ? st : r->st;
}

/* The end of the lines: publish the file, or keep what is needed to go on. */
static cdmpp_status conclude(run *r, cdmpp_err *err) {
    char digest[65];
    if (r->stopped) {
        CD_TRY(cd_writer_checkpoint(r->w, &r->at, sizeof r->at, err));
        return CD_FAIL(err, EINTERRUPTED,
                       "stopped after %llu records; the same command goes on from there",
                       (unsigned long long)r->at.records);
    }
    CD_TRY(cd_writer_checkpoint(r->w, &r->at, sizeof r->at, err));
    /* a shard may be without programs, their merger not */
    if (r->at.skipped == r->at.records && r->x->n_shard < 2) {
        CD_TRY(cd_writer_finish_empty(r->w, err));
        if (!r->at.records)
            return CD_FAIL(err, ENODATA,
                           "there is no record in the input; no data set was written");
        return CD_FAIL(err, ENODATA, "none of %llu lines could be used; no data set was written",
                       (unsigned long long)r->at.records);
    }
    cd_sha256_hex(&r->at.source, digest);
    const cd_finish f = {r->x->n_net, r->x->net, r->x->command_line ? r->x->command_line : "",
                         digest};
    return cd_writer_finish(r->w, &f, err);
}

static cdmpp_status open_writer(run *r, cdmpp_err *err) {
    char print[65];
    cd_buf b = {0};
    const cd_compressor z = cd_pipe_compressor(&r->pipe);
    CD_TRY(cd_inputs_fingerprint(r->x, &r->in, print, err));
    const cdmpp_status st = cd_writer_open(&r->w, r->x->out, print, r->x->restart, &z, &b, err);
    cd_sha256_init(&r->begin.source);
    if (b.n == sizeof r->begin) memcpy(&r->begin, b.p, sizeof r->begin);
    r->at = r->begin;
    cd_buf_free(&b);
    return st;
}

static cdmpp_status run_all(run *r, cdmpp_err *err) {
    CD_TRY(open_writer(r, err));
    cdmpp_status st = read_and_write(r, err);
    if (st == CDMPP_OK) st = conclude(r, err);
    /* A bad line stays bad: nothing to go on from. */
    if (st && r->x->strict && r->st == st && !is_fatal(st) && st != CDMPP_EIO)
        cd_writer_discard(r->w);
    else cd_writer_free(r->w);
    return st;
}

/* The error of the writer comes first; that of the reader is usually its consequence. */
cdmpp_status cd_extract_run(const cd_extract *x, cd_extract_stats *stats, cdmpp_err *err) {
    run r = {.x = x};
    cdmpp_err local = {0};
    if (!err) err = &local;
    memset(stats, 0, sizeof *stats);
    CD_TRY(cd_inputs_list(x, &r.in, err));
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const int jobs = x->jobs > 0 ? x->jobs : cpus > 0 ? (int)cpus : 1;
    cdmpp_status st = cd_pipe_open(&r.pipe, jobs, &x->engine,
                                   (cd_convert_extra){x->steps, x->ids, x->device}, err);
    if (st == CDMPP_OK) {
        st = run_all(&r, err);
        cd_pipe_close(&r.pipe);
    }
    report(&r, stats);
    cd_inputs_free(&r.in);
    return st;
}
