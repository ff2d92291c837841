/* Columns of a data set under way: open chunks in memory, full ones compressed and appended to the
 * journal in the order in which they filled up. */

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/io/io.h"
#include "dataset/extract/extract_internal.h"

void cd_writer_path(const cd_writer *w, const char *name, char out[4096]) {
    snprintf(out, 4096, "%s/%s", w->dir, name);
}

static cdmpp_status fail_io(const char *path, const char *what, cdmpp_err *err) {
    return cd_err_at(err, CD_FAIL(err, EIO, "cannot %s: %s", what, strerror(errno)), path, 0);
}

/* --- chunks ------------------------------------------------------------- */

static void submit(cd_writer *w, cd_journal_chunk *c) {
    c->next = NULL;
    *w->last = c;
    w->last = &c->next;
    w->n_pending++;
    if (w->zip.submit) w->zip.submit(w->zip.ctx, c);
    else cd_journal_chunk_compress(c);
}

/* The oldest chunk goes into the journal; it is ready. */
static cdmpp_status store_first(cd_writer *w, cdmpp_err *err) {
    cd_journal_chunk *c = w->first;
    cd_column *col = &w->col[c->array];
    cdmpp_status st;
    if (c->failed) st = CD_FAIL(err, ENOMEM, "compressing %s", cd_layout[c->array].path);
    else st = cd_journal_append(&w->journal, c, err);
    const z_off_t bytes = (z_off_t)(c->n * cd_layout_array_bytes(c->array));
    col->crc = (uint32_t)crc32_combine(col->crc, c->crc, bytes);
    w->first = c->next;
    if (!w->first) w->last = &w->first;
    w->n_pending--;
    cd_journal_chunk_free(c);
    return st;
}

static bool first_ready(cd_writer *w, bool wait) {
    return w->first && (!w->zip.ready || w->zip.ready(w->zip.ctx, w->first, wait));
}

cdmpp_status cd_writer_poll(cd_writer *w, cdmpp_err *err) {
    while (first_ready(w, false)) CD_TRY(store_first(w, err));
    return CDMPP_OK;
}

cdmpp_status cd_writer_drain(cd_writer *w, cdmpp_err *err) {
    while (first_ready(w, true)) CD_TRY(store_first(w, err));
    return CDMPP_OK;
}

static cdmpp_status close_chunk(cd_writer *w, cd_column *col, cdmpp_err *err) {
    while (w->n_pending >= w->zip.max_pending && first_ready(w, true)) CD_TRY(store_first(w, err));
    submit(w, col->open);
    col->open = NULL;
    return w->zip.submit ? CDMPP_OK : cd_writer_poll(w, err);
}

cdmpp_status cd_writer_flush(cd_writer *w, cdmpp_err *err) {
    for (int a = 0; a < CD_LAYOUT_ARRAY_COUNT; a++)
        if (w->col[a].open && w->col[a].open->n) CD_TRY(close_chunk(w, &w->col[a], err));
    return cd_writer_drain(w, err);
}

/* Elements fill the open chunk; a full one leaves for compression and a new one is opened. */
cdmpp_status cd_writer_push(cd_writer *w, cd_layout_array a, const void *data, size_t n,
                            cdmpp_err *err) {
    cd_column *col = &w->col[a];
    const size_t item = cd_layout_array_bytes(a);
    const uint8_t *p = data;
    while (n) {
        if (!col->open && !(col->open = cd_journal_chunk_new(a)))
            return CD_FAIL(err, ENOMEM, "chunk of %s", cd_layout[a].path);
        const size_t room = cd_layout_array_chunk(a) - col->open->n, m = n < room ? n : room;
        memcpy(col->open->raw + col->open->n * item, p, m * item);
        col->open->n += (uint32_t)m;
        col->n += m;
        p += m * item, n -= m;
        if (m == room) CD_TRY(close_chunk(w, col, err));
    }
    return CDMPP_OK;
}

uint64_t cd_writer_count(const cd_writer *w, cd_layout_array a) { return w->col[a].n; }

cdmpp_status cd_writer_intern(cd_writer *w, cd_layout_dict d, cd_str text, uint32_t *out,
                              cdmpp_err *err) {
    return cd_dict_add(&w->dict[d], text, out, err);
}

/* --- programs ------------------------------------------------------------ */

static cdmpp_status push_end(cd_writer *w, cd_layout_array ptr, cdmpp_err *err) {
    const int64_t end = (int64_t)w->col[cd_layout_array_of_ptr(ptr)].n;
    return cd_writer_push(w, ptr, &end, 1, err);
}

/* Offsets in the file count from its beginning, those of an item from 0. */
static cdmpp_status add_ast(cd_writer *w, const cd_item *it, cdmpp_err *err) {
    const int64_t base = (int64_t)w->col[CD_LAYOUT_ARRAY_PATH_EXTENT].n;
    const size_t n_path = it->n_leaf ? (size_t)it->path_ptr[it->n_leaf] : 0;
    for (uint32_t i = 0; i < it->n_leaf; i++) {
        const int64_t end = base + it->path_ptr[i + 1];
        CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_PATH_PTR, &end, 1, err));
    }
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_PATH_EXTENT, it->path_extent, n_path, err));
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_PATH_KIND, it->path_kind, n_path, err));
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_LEAF_NODE, it->leaf_node, it->n_leaf, err));
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_LEAF_POS, it->leaf_pos, it->n_leaf, err));
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_LEAF_ROW, it->leaf_row, it->n_leaf, err));
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_LEAF_OWN, it->leaf_own, it->n_leaf, err));
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_LEAF_ROWS, it->own, it->n_own, err));
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_TREE, it->tree, it->n_tree, err));
    CD_TRY(push_end(w, CD_LAYOUT_ARRAY_LEAF_PTR, err));
    CD_TRY(push_end(w, CD_LAYOUT_ARRAY_OWN_PTR, err));
    return push_end(w, CD_LAYOUT_ARRAY_TREE_PTR, err);
}

static cdmpp_status add_steps(cd_writer *w, const cd_item *it, cdmpp_err *err) {
    if (!it->step) return CDMPP_OK;
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_STEP, it->step, it->n_step, err));
    return push_end(w, CD_LAYOUT_ARRAY_STEP_PTR, err);
}

static cdmpp_status add_facts(cd_writer *w, const cd_item *it, cdmpp_err *err) {
    float none[CD_N_FACTS];
    const uint8_t state =
        !it->facts && cd_facts_are_there(it->facts_state) ? CD_FACTS_ABSENT : it->facts_state;
    for (size_t c = 0; c < CD_N_FACTS; c++) none[c] = NAN;
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_FACTS, it->facts ? it->facts : none, 1, err));
    return cd_writer_push(w, CD_LAYOUT_ARRAY_FACTS_STATE, &state, 1, err);
}

static cdmpp_status add_label(cd_writer *w, const cd_item *it, cdmpp_err *err) {
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_LATENCY, &it->latency_s, 1, err));
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_LATENCY_MEAN, &it->latency_mean_s, 1, err));
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_LATENCY_STD, &it->latency_std_s, 1, err));
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_LATENCY_MIN, &it->latency_min_s, 1, err));
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_REPEATS, &it->repeats, 1, err));
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_ERROR, &it->error, 1, err));
    return cd_writer_push(w, CD_LAYOUT_ARRAY_FLOP, &it->flop, 1, err);
}

static cdmpp_status add_key(cd_writer *w, const cd_item *it, cdmpp_err *err) {
    for (int a = 0; a < CD_LAYOUT_ARRAY_COUNT; a++) {
        const cd_layout_dict d = cd_layout_array_dict((cd_layout_array)a);
        uint32_t id = 0;
        if (d == CD_LAYOUT_DICT_COUNT) continue;
        CD_TRY(cd_dict_add(&w->dict[d], it->text[d].p ? it->text[d] : (cd_str){"", 0}, &id, err));
        CD_TRY(cd_writer_push(w, (cd_layout_array)a, &id, 1, err));
    }
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_SOURCE_LINE, &it->source_line, 1, err));
    if (it->id) CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_ID, it->id, 1, err));
    return cd_writer_push(w, CD_LAYOUT_ARRAY_IS_GPU, &it->is_gpu, 1, err);
}

cdmpp_status cd_writer_add(cd_writer *w, const cd_item *it, cdmpp_err *err) {
    CD_TRY(cd_writer_push(w, CD_LAYOUT_ARRAY_ROWS, it->row, it->n_row, err));
    CD_TRY(push_end(w, CD_LAYOUT_ARRAY_ROW_PTR, err));
    CD_TRY(add_ast(w, it, err));
    CD_TRY(add_steps(w, it, err));
    CD_TRY(add_facts(w, it, err));
    CD_TRY(add_label(w, it, err));
    return add_key(w, it, err);
}

cdmpp_status cd_writer_skip(cd_writer *w, const char *line, size_t n, cdmpp_err *err) {
    while (n) {
        const ssize_t m = pwrite(w->skip_fd, line, n, (off_t)w->n_skip_bytes);
        if (m < 0 && errno == EINTR) continue;
        if (m <= 0) return fail_io(w->dir, "write skipped.tsv", err);
        w->n_skip_bytes += (uint64_t)m;
        line += m, n -= (size_t)m;
    }
    return CDMPP_OK;
}

/* --- life ---------------------------------------------------------------- */

cdmpp_status cd_writer_checkpoint(cd_writer *w, const void *place, size_t n, cdmpp_err *err) {
    CD_TRY(cd_writer_drain(w, err));
    CD_TRY(cd_journal_sync(&w->journal, err));
    if (fdatasync(w->skip_fd) != 0) return fail_io(w->dir, "write skipped.tsv", err);
    return cd_writer_save(w, place, n, err);
}

static void clear(cd_writer *w) {
    for (int a = 0; a < CD_LAYOUT_ARRAY_COUNT; a++) {
        cd_journal_chunk_free(w->col[a].open);
        w->col[a] = (cd_column){0};
    }
    for (int d = 0; d < CD_LAYOUT_DICT_COUNT; d++) cd_dict_free(&w->dict[d]);
    w->n_skip_bytes = 0;
}

/* Offsets start with a 0 that belongs to no program. */
static cdmpp_status push_zeros(cd_writer *w, cdmpp_err *err) {
    const int64_t zero = 0;
    for (int a = 0; a < CD_LAYOUT_ARRAY_COUNT; a++)
        if (cd_layout_array_of_ptr((cd_layout_array)a) != CD_LAYOUT_ARRAY_COUNT)
            CD_TRY(cd_writer_push(w, (cd_layout_array)a, &zero, 1, err));
    return CDMPP_OK;
}

static cdmpp_status open_skips(cd_writer *w, cdmpp_err *err) {
    char path[4096];
    struct stat s;
    cd_writer_path(w, "skipped.tsv", path);
    w->skip_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (w->skip_fd < 0 || fstat(w->skip_fd, &s) != 0) return fail_io(path, "open the file", err);
    if ((uint64_t)s.st_size < w->n_skip_bytes)
        return cd_err_at(err, CD_FAIL(err, ESCHEMA, "shorter than at the checkpoint"), path, 0);
    return ftruncate(w->skip_fd, (off_t)w->n_skip_bytes) == 0 ? CDMPP_OK
                                                              : fail_io(path, "cut the file", err);
}

/* A checkpoint that does not fit the journal beside it is not used. */
static cdmpp_status open_parts(cd_writer *w, bool restart, cd_buf *place, cdmpp_err *err) {
    char path[4096];
    uint64_t length = 0;
    bool found = false;
    cdmpp_status st = CDMPP_OK;
    if (mkdir(w->dir, 0777) != 0 && errno != EEXIST) return fail_io(w->dir, "make the folder", err);
    if (!restart) CD_TRY(cd_writer_load(w, &length, place, &found, err));
    cd_writer_path(w, "journal", path);
    if (found) st = cd_journal_open(&w->journal, path, length, err);
    if (found && st == CDMPP_OK) st = open_skips(w, err);
    if (found && st == CDMPP_OK) return CDMPP_OK;
    if (st != CDMPP_OK && st != CDMPP_ESCHEMA) return st;
    if (w->skip_fd >= 0) close(w->skip_fd);
    cd_journal_close(&w->journal);
    clear(w);
    cd_buf_clear(place);
    CD_TRY(cd_journal_open(&w->journal, path, 0, err));
    cd_writer_path(w, "state", path);
    if (unlink(path) != 0 && errno != ENOENT) return fail_io(path, "remove the old state", err);
    CD_TRY(open_skips(w, err));
    return push_zeros(w, err);
}

/* A checkpoint is used only if the fingerprint agrees. */
cdmpp_status cd_writer_open(cd_writer **out, const char *path, const char *fingerprint,
                            bool restart, const cd_compressor *z, cd_buf *place, cdmpp_err *err) {
    cd_writer *w = cd_mem_zalloc(1, sizeof *w);
    if (!w) return CD_FAIL(err, ENOMEM, "writer");
    w->last = &w->first;
    w->skip_fd = w->journal.fd = -1;
    if (z) w->zip = *z;
    if (w->zip.max_pending == 0) w->zip.max_pending = 1;
    snprintf(w->fingerprint, sizeof w->fingerprint, "%s", fingerprint);
    cdmpp_status st = CDMPP_OK;
    if (strlen(path) >= sizeof w->path) st = CD_FAIL(err, EIO, "the path is too long");
    else if (!(st = cd_file_replaceable(path, err))) {
        snprintf(w->path, sizeof w->path, "%s", path);
        snprintf(w->dir, sizeof w->dir, "%s.partial", path);
        st = open_parts(w, restart, place, err);
    }
    if (st) cd_writer_free(w);
    else *out = w;
    return cd_err_at(err, st, path, 0);
}

void cd_writer_free(cd_writer *w) {
    if (!w) return;
    while (first_ready(w, true)) {
        cd_journal_chunk *c = w->first;
        w->first = c->next;
        cd_journal_chunk_free(c);
    }
    clear(w);
    if (w->skip_fd >= 0) close(w->skip_fd);
    cd_journal_close(&w->journal);
    cd_mem_free(w);
}

/* `state` first: without it the rest is known to be waste. */
void cd_writer_remove_parts(cd_writer *w) {
    static const char *const part[] = {"state", "state.new", "journal", "skipped.tsv", "data.h5"};
    char path[4096];
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        cd_writer_path(w, part[i], path);
        (void)unlink(path);
    }
    (void)rmdir(w->dir);
}

void cd_writer_discard(cd_writer *w) {
    if (w) cd_writer_remove_parts(w);
    cd_writer_free(w);
}
