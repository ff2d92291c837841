/* The way from a record to rows that commands use. Tests have their own, so
 * this file stands alone. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/io/io.h"
#include "dataset/extract/extract.h"
#include "dataset/extract/extract_internal.h"

/* The workers of an extraction: batches of lines to convert and chunks to compress, with a bound on
 * how many are under way. */

/* --- workers ------------------------------------------------------------------ */

static void convert_batch(cd_convert_state *c, cd_pipe_batch *b) {
    b->crc = (uint32_t)crc32_z(0, (const Bytef *)b->text.p, b->text.n);
    for (size_t i = 0; i < b->n_line; i++) {
        cd_pipe_line *l = &b->line[i];
        if (l->out.st == CDMPP_OK)
            l->out = cd_convert(c, &b->arena, b->text.p + l->at, l->n, b->source, l->number);
    }
}

/* Called and left with the lock held. */
static void do_chunk(cd_pipe *p) {
    cd_journal_chunk *c = p->chunk[p->chunk_first];
    p->chunk_first = (p->chunk_first + 1) % p->max_chunk;
    p->n_chunk--;
    pthread_mutex_unlock(&p->lock);
    cd_journal_chunk_compress(c);
    pthread_mutex_lock(&p->lock);
    c->done = true;
    pthread_cond_broadcast(&p->done);
}

static void do_batch(cd_pipe *p, cd_convert_state *c) {
    cd_pipe_batch *b = &p->slot[p->n_taken++ % p->n_slot];
    b->state = CD_SLOT_BUSY;
    pthread_mutex_unlock(&p->lock);
    convert_batch(c, b);
    pthread_mutex_lock(&p->lock);
    b->state = CD_SLOT_DONE;
    pthread_cond_broadcast(&p->done);
}

typedef struct start {
    cd_pipe *pipe;
    cd_convert_state *conv;
} start;

static void *worker_pipe(void *arg) {
    const start s = *(start *)arg;
    cd_pipe *p = s.pipe;
    cd_mem_free(arg);
    pthread_mutex_lock(&p->lock);
    while (!p->quit) {
        if (p->n_chunk) do_chunk(p);
        else if (p->n_taken < p->n_read && !p->abort) do_batch(p, s.conv);
        else pthread_cond_wait(&p->work, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* --- life --------------------------------------------------------------------- */

static cdmpp_status start_worker(cd_pipe *p, const cd_feature_engine *e, cd_convert_extra extra,
                                 cdmpp_err *err) {
    cd_convert_state *c = &p->conv[p->n_thread];
    start *s = cd_mem_alloc(sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "worker");
    *s = (start){p, c};
    cdmpp_status st = cd_convert_open(c, e, extra, err);
    if (st == CDMPP_OK && pthread_create(&p->thread[p->n_thread], NULL, worker_pipe, s) != 0) {
        st = CD_FAIL(err, EBACKEND, "cannot start thread %d", p->n_thread + 1);
        cd_convert_close(c);
    }
    if (st) cd_mem_free(s);
    else p->n_thread++;
    return st;
}

static void pipe_close(cd_pipe *p);

/* n workers, each with its own program. Errors: ENOMEM, EBACKEND, what `open` gives.
 *
 * Two batches and chunks a worker and two more: enough that nobody waits, and memory does not grow
 * with the input. */
static cdmpp_status pipe_open(cd_pipe *p, int n, const cd_feature_engine *e, cd_convert_extra extra,
                              cdmpp_err *err) {
    const size_t k = (size_t)n;
    memset(p, 0, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->space, NULL);
    pthread_cond_init(&p->done, NULL);
    p->n_slot = 2 * k + 2;
    p->max_chunk = 2 * k + 2;
    p->slot = cd_mem_zalloc(p->n_slot, sizeof *p->slot);
    p->chunk = cd_mem_zalloc(p->max_chunk, sizeof(cd_journal_chunk *));
    p->thread = cd_mem_zalloc(k, sizeof *p->thread);
    p->conv = cd_mem_zalloc(k, sizeof *p->conv);
    cdmpp_status st = CDMPP_OK;
    if (!p->slot || !p->chunk || !p->thread || !p->conv) st = CD_FAIL(err, ENOMEM, "%d workers", n);
    for (int i = 0; i < n && st == CDMPP_OK; i++) st = start_worker(p, e, extra, err);
    if (st) pipe_close(p);
    return st;
}

/* Also after pipe_open failed half way. */
static void pipe_close(cd_pipe *p) {
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_thread; i++) pthread_join(p->thread[i], NULL);
    for (int i = 0; i < p->n_thread; i++) cd_convert_close(&p->conv[i]);
    for (size_t i = 0; p->slot && i < p->n_slot; i++) {
        cd_buf_free(&p->slot[i].text);
        cd_arena_free(&p->slot[i].arena);
    }
    cd_mem_free(p->slot);
    cd_mem_free(p->chunk);
    cd_mem_free(p->thread);
    cd_mem_free(p->conv);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->space);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
}

/* Reader: the next slot, empty, or NULL when the run was aborted; then hand it on.
 *
 * --- reader ------------------------------------------------------------------- */
static cd_pipe_batch *pipe_blank(cd_pipe *p) {
    cd_pipe_batch *b = &p->slot[p->n_read % p->n_slot];
    pthread_mutex_lock(&p->lock);
    while (b->state != CD_SLOT_FREE && !p->abort) pthread_cond_wait(&p->space, &p->lock);
    const bool stop = p->abort;
    pthread_mutex_unlock(&p->lock);
    if (stop) return NULL;
    cd_buf_clear(&b->text);
    cd_arena_reset(&b->arena);
    b->n_line = 0;
    b->file_ends = false;
    return b;
}

static void pipe_put(cd_pipe *p) {
    pthread_mutex_lock(&p->lock);
    p->slot[p->n_read++ % p->n_slot].state = CD_SLOT_FULL;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}

static void pipe_end(cd_pipe *p) {
    pthread_mutex_lock(&p->lock);
    p->no_more = true;
    pthread_cond_broadcast(&p->done);
    pthread_mutex_unlock(&p->lock);
}

/* Writer: the next batch in order, or NULL at the end; then give it back.
 *
 * --- writer ------------------------------------------------------------------- */
static cd_pipe_batch *pipe_get(cd_pipe *p) {
    cd_pipe_batch *b = &p->slot[p->n_written % p->n_slot];
    pthread_mutex_lock(&p->lock);
    while (b->state != CD_SLOT_DONE && !(p->no_more && p->n_written == p->n_read))
        pthread_cond_wait(&p->done, &p->lock);
    const bool end = b->state != CD_SLOT_DONE;
    pthread_mutex_unlock(&p->lock);
    return end ? NULL : b;
}

static void pipe_back(cd_pipe *p) {
    pthread_mutex_lock(&p->lock);
    p->slot[p->n_written++ % p->n_slot].state = CD_SLOT_FREE;
    pthread_cond_signal(&p->space);
    pthread_mutex_unlock(&p->lock);
}

static void pipe_abort(cd_pipe *p) {
    pthread_mutex_lock(&p->lock);
    p->abort = true;
    pthread_cond_broadcast(&p->space);
    pthread_mutex_unlock(&p->lock);
}

/* The writer keeps at most max_chunk under way, so the ring has room. */
static void submit(void *ctx, cd_journal_chunk *c) {
    cd_pipe *p = ctx;
    pthread_mutex_lock(&p->lock);
    p->chunk[(p->chunk_first + p->n_chunk++) % p->max_chunk] = c;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}

static bool ready(void *ctx, cd_journal_chunk *c, bool wait) {
    cd_pipe *p = ctx;
    pthread_mutex_lock(&p->lock);
    while (wait && !c->done) pthread_cond_wait(&p->done, &p->lock);
    const bool done = c->done;
    pthread_mutex_unlock(&p->lock);
    return done;
}

static cd_compressor pipe_compressor(cd_pipe *p) {
    return (cd_compressor){.ctx = p, .submit = submit, .ready = ready, .max_pending = p->max_chunk};
}

/* The run of an extraction: one thread reads, workers convert, one thread writes in the order of
 * reading. */

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
    for (const cd_pipe_batch *b; (b = pipe_get(&r->pipe)) != NULL;) {
        CD_TRY(write_batch(r, b, err));
        pipe_back(&r->pipe);
        if (every < 0 || cd_clock_wall() - last < every) continue;
        CD_TRY(cd_writer_checkpoint(r->w, &r->at, sizeof r->at, err));
        last = cd_clock_wall();
    }
    return CDMPP_OK;
}

static void *writer(void *arg) {
    run *r = arg;
    r->st = write_all(r, &r->err);
    if (r->st) pipe_abort(&r->pipe);
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
        cd_pipe_batch *b = pipe_blank(&r->pipe);
        if (!b) return CDMPP_OK;
        b->file = file;
        b->source = r->in.path[file];
        fill(l, b, done);
        if (b->text.oom) return CD_FAIL(err, ENOMEM, "batch of lines");
        ends = b->file_ends;
        r->n_read += b->n_line;
        tell(r, l, bytes_before);
        pipe_put(&r->pipe);
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
    pipe_end(&r->pipe);
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
    const cd_compressor z = pipe_compressor(&r->pipe);
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
    cdmpp_status st =
        pipe_open(&r.pipe, jobs, &x->engine, (cd_convert_extra){x->steps, x->ids, x->device}, err);
    if (st == CDMPP_OK) {
        st = run_all(&r, err);
        pipe_close(&r.pipe);
    }
    report(&r, stats);
    cd_inputs_free(&r.in);
    return st;
}

static const cd_task *find(void *tasks, cd_str key) { return cd_task_registry_find(tasks, key); }

/* What one worker keeps. */
typedef struct worker {
    cd_program *program;
    cd_facts *facts;
} worker;

static void close_program(void *p) {
    worker *w = p;
    cd_facts_free(w->facts);
    cd_program_free(w->program);
    cd_mem_free(w);
}

static cdmpp_status open_program(void *tasks, void **out, cdmpp_err *err) {
    worker *w = cd_mem_zalloc(1, sizeof *w);
    (void)tasks;
    if (!w) return CD_FAIL(err, ENOMEM, "program");
    cdmpp_status st = cd_program_new(&w->program, err);
    if (!st) st = cd_facts_new(&w->facts, err);
    if (st) close_program(w);
    else *out = w;
    return st;
}

static cdmpp_status build(void *p, const cd_task *t, const cd_record *r, cd_rows *out,
                          cdmpp_err *err) {
    return cd_program_build(((worker *)p)->program, t, r, out, err);
}

static cdmpp_status choose(void *p, const cd_record *r, const cd_task **task, cdmpp_err *err) {
    return cd_program_choose(((worker *)p)->program, r, task, err);
}

static cdmpp_status facts(void *p, cd_facts_set set, float *out, cdmpp_err *err) {
    const worker *w = p;
    cd_nest nest;
    CD_TRY(cd_program_nest(w->program, &nest, err));
    return cd_facts_of(w->facts, set, &nest, out, err);
}

/* TVM's lowering and feature extraction, for the tasks of that registry. */
static cd_feature_engine feature_engine_default(const cd_task_registry *tasks) {
    union {
        const cd_task_registry *c;
        void *p;
    } ctx = {.c = tasks}; /* only read from */
    return (cd_feature_engine){ctx.p, find, open_program, build, close_program, facts, choose};
}

static cdmpp_status net_entries(const cd_task_registry *t, cd_net_entry **out, size_t *n,
                                cdmpp_err *err) {
    size_t total = 0, m = 0;
    for (size_t i = 0; i < cd_task_registry_network_count(t); i++)
        total += cd_task_registry_network(t, i)->n;
    cd_net_entry *e = cd_mem_zalloc(total ? total : 1, sizeof *e);
    if (!e) return CD_FAIL(err, ENOMEM, "%zu network entries", total);
    for (size_t i = 0; i < cd_task_registry_network_count(t); i++) {
        const cd_network *w = cd_task_registry_network(t, i);
        for (uint32_t k = 0; k < w->n; k++)
            e[m++] = (cd_net_entry){w->name, cd_task_registry_at(t, w->task[k])->workload_key,
                                    w->weight[k]};
    }
    *out = e;
    *n = total;
    return CDMPP_OK;
}

static cdmpp_status with_tasks(const cd_extract *x, const cd_task_registry *tasks,
                               cd_extract_stats *stats, cdmpp_err *err) {
    cd_extract y = *x;
    cd_net_entry *net = NULL;
    CD_TRY(net_entries(tasks, &net, &y.n_net, err));
    y.net = net;
    y.engine = feature_engine_default(tasks);
    const cdmpp_status st = cd_extract_run(&y, stats, err);
    cd_mem_free(net);
    return st;
}

cdmpp_status cd_extract_logs(const cd_extract *x, cd_extract_stats *stats, cdmpp_err *err) {
    cd_task_registry *tasks = NULL;
    CD_TRY(cd_task_registry_new(&tasks, err));
    cd_task_registry_assume(tasks, x->assume);
    cdmpp_status st = cd_task_registry_load_all(tasks, x->task_file, x->n_task_file, x->log, err);
    if (st == CDMPP_OK) st = with_tasks(x, tasks, stats, err);
    cd_task_registry_free(tasks);
    return st;
}
