/* The workers of an extraction: batches of lines to convert and chunks to compress, with a bound on
 * how many are under way. */
#include "dataset/extract/extract_internal.h"

#include <string.h>
#include <zlib.h>

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

static void *worker(void *arg) {
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
    if (st == CDMPP_OK && pthread_create(&p->thread[p->n_thread], NULL, worker, s) != 0) {
        st = CD_FAIL(err, EBACKEND, "cannot start thread %d", p->n_thread + 1);
        cd_convert_close(c);
    }
    if (st) cd_mem_free(s);
    else p->n_thread++;
    return st;
}

/* Two batches and chunks a worker and two more: enough that nobody waits, and memory does not grow
 * with the input. */
cdmpp_status cd_pipe_open(cd_pipe *p, int n, const cd_feature_engine *e, cd_convert_extra extra,
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
    if (st) cd_pipe_close(p);
    return st;
}

/* Also after cd_pipe_open failed half way. */
void cd_pipe_close(cd_pipe *p) {
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

/* --- reader ------------------------------------------------------------------- */

cd_pipe_batch *cd_pipe_blank(cd_pipe *p) {
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

void cd_pipe_put(cd_pipe *p) {
    pthread_mutex_lock(&p->lock);
    p->slot[p->n_read++ % p->n_slot].state = CD_SLOT_FULL;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}

void cd_pipe_end(cd_pipe *p) {
    pthread_mutex_lock(&p->lock);
    p->no_more = true;
    pthread_cond_broadcast(&p->done);
    pthread_mutex_unlock(&p->lock);
}

/* --- writer ------------------------------------------------------------------- */

cd_pipe_batch *cd_pipe_get(cd_pipe *p) {
    cd_pipe_batch *b = &p->slot[p->n_written % p->n_slot];
    pthread_mutex_lock(&p->lock);
    while (b->state != CD_SLOT_DONE && !(p->no_more && p->n_written == p->n_read))
        pthread_cond_wait(&p->done, &p->lock);
    const bool end = b->state != CD_SLOT_DONE;
    pthread_mutex_unlock(&p->lock);
    return end ? NULL : b;
}

void cd_pipe_back(cd_pipe *p) {
    pthread_mutex_lock(&p->lock);
    p->slot[p->n_written++ % p->n_slot].state = CD_SLOT_FREE;
    pthread_cond_signal(&p->space);
    pthread_mutex_unlock(&p->lock);
}

void cd_pipe_abort(cd_pipe *p) {
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

cd_compressor cd_pipe_compressor(cd_pipe *p) {
    return (cd_compressor){.ctx = p, .submit = submit, .ready = ready, .max_pending = p->max_chunk};
}
