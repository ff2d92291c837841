/* Columns of a data set under way: open chunks in memory, full ones compressed and appended to the
 * journal in the order in which they filled up. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/io/io.h"
#include "dataset/extract/extract.h"
#include "dataset/extract/extract_internal.h"

/* The journal of a data set under way: compressed chunks one after another, each with its length
 * and checksum, so that a kill loses at most the last one. */

#define MAGIC 0x4a444363u /* "cCDJ" */

typedef struct head {
    uint32_t magic, array, n, crc;
    uint64_t n_zip;
} head;

cd_journal_chunk *cd_journal_chunk_new(cd_layout_array a) {
    cd_journal_chunk *c = cd_mem_zalloc(1, sizeof *c);
    if (!c) return NULL;
    c->array = a;
    c->raw = cd_mem_alloc(cd_layout_array_chunk(a) * cd_layout_array_bytes(a));
    if (c->raw) return c;
    cd_mem_free(c);
    return NULL;
}

void cd_journal_chunk_free(cd_journal_chunk *c) {
    if (!c) return;
    cd_mem_free(c->raw);
    cd_mem_free(c->zip);
    cd_mem_free(c);
}

/* HDF5 stores whole chunks: what is missing at the end is zero. */
void cd_journal_chunk_compress(cd_journal_chunk *c) {
    const size_t item = cd_layout_array_bytes(c->array),
                 full = cd_layout_array_chunk(c->array) * item, used = c->n * item;
    uLongf n = compressBound(full);
    memset(c->raw + used, 0, full - used);
    c->crc = (uint32_t)crc32_z(0, c->raw, used);
    c->zip = cd_mem_alloc(n);
    c->failed = !c->zip || compress2(c->zip, &n, c->raw, full, 1) != Z_OK;
    c->n_zip = n;
}

static cdmpp_status fail_io_journal(const cd_journal *j, const char *what, cdmpp_err *err) {
    const cdmpp_status st = CD_FAIL(err, EIO, "cannot %s: %s", what, strerror(errno));
    return cd_err_at(err, st, j->path, 0);
}

static cdmpp_status add_entry(cd_journal *j, cd_journal_entry e, cdmpp_err *err) {
    if (CD_GROW(j->entry, j->n, j->cap)) return CD_FAIL(err, ENOMEM, "index of %zu chunks", j->n);
    j->entry[j->n++] = e;
    return CDMPP_OK;
}

static cdmpp_status scan(cd_journal *j, cdmpp_err *err) {
    head h;
    for (uint64_t at = 0; at < j->length; at += sizeof h + h.n_zip) {
        const bool whole = pread(j->fd, &h, sizeof h, (off_t)at) == (ssize_t)sizeof h;
        if (!whole || h.magic != MAGIC || h.array >= CD_LAYOUT_ARRAY_COUNT ||
            h.n > cd_layout_array_chunk(h.array) || h.n_zip > UINT32_MAX ||
            at + sizeof h + h.n_zip > j->length)
            return cd_err_at(
                err, CD_FAIL(err, ESCHEMA, "not a chunk at byte %llu", (unsigned long long)at),
                j->path, 0);
        CD_TRY(add_entry(
            j, (cd_journal_entry){at + sizeof h, (uint32_t)h.n_zip, h.n, (cd_layout_array)h.array},
            err));
    }
    return CDMPP_OK;
}

static cdmpp_status open_locked(cd_journal *j, uint64_t length, cdmpp_err *err) {
    struct stat s;
    j->fd = open(j->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (j->fd < 0) return fail_io_journal(j, "open the file", err);
    if (flock(j->fd, LOCK_EX | LOCK_NB) != 0)
        return cd_err_at(err, CD_FAIL(err, EIO, "another process is writing here"), j->path, 0);
    if (fstat(j->fd, &s) != 0) return fail_io_journal(j, "read the size", err);
    if ((uint64_t)s.st_size < length)
        return cd_err_at(err,
                         CD_FAIL(err, ESCHEMA, "expected %llu bytes, found %llu",
                                 (unsigned long long)length, (unsigned long long)s.st_size),
                         j->path, 0);
    if (ftruncate(j->fd, (off_t)length) != 0) return fail_io_journal(j, "cut the file", err);
    j->length = length;
    return scan(j, err);
}

cdmpp_status cd_journal_open(cd_journal *j, const char *path, uint64_t length, cdmpp_err *err) {
    memset(j, 0, sizeof *j);
    snprintf(j->path, sizeof j->path, "%s", path);
    const cdmpp_status st = open_locked(j, length, err);
    if (st) cd_journal_close(j);
    return st;
}

static bool write_all(int fd, const void *data, size_t n, uint64_t at) {
    const uint8_t *p = data;
    while (n) {
        const ssize_t m = pwrite(fd, p, n, (off_t)at);
        if (m < 0 && errno == EINTR) continue;
        if (m <= 0) return false;
        p += m, at += (uint64_t)m, n -= (size_t)m;
    }
    return true;
}

cdmpp_status cd_journal_append(cd_journal *j, const cd_journal_chunk *c, cdmpp_err *err) {
    const head h = {MAGIC, c->array, c->n, c->crc, c->n_zip};
    if (!write_all(j->fd, &h, sizeof h, j->length) ||
        !write_all(j->fd, c->zip, c->n_zip, j->length + sizeof h))
        return fail_io_journal(j, "write", err);
    CD_TRY(add_entry(
        j, (cd_journal_entry){j->length + sizeof h, (uint32_t)c->n_zip, c->n, c->array}, err));
    j->length += sizeof h + c->n_zip;
    return CDMPP_OK;
}

cdmpp_status cd_journal_sync(cd_journal *j, cdmpp_err *err) {
    return fdatasync(j->fd) == 0 ? CDMPP_OK : fail_io_journal(j, "write", err);
}

cdmpp_status cd_journal_read(const cd_journal *j, size_t i, void *buf, cdmpp_err *err) {
    const cd_journal_entry *e = &j->entry[i];
    uint8_t *p = buf;
    for (size_t have = 0; have < e->n_zip;) {
        const ssize_t m = pread(j->fd, p + have, e->n_zip - have, (off_t)(e->offset + have));
        if (m < 0 && errno == EINTR) continue;
        if (m <= 0) return fail_io_journal(j, "read", err);
        have += (size_t)m;
    }
    return CDMPP_OK;
}

void cd_journal_close(cd_journal *j) {
    if (j->fd >= 0) close(j->fd);
    cd_mem_free(j->entry);
    j->fd = -1;
    j->entry = NULL;
    j->n = j->cap = 0;
}

/* The checkpoint file OUT.partial/state, little endian, replaced whole:
 *   1. "cdmpp.state 5\n"            4. each array: n u64, crc u32, open elements u32 + bytes
 *   2. fingerprint, 64 bytes        5. each dictionary: n u64, then length u64 + bytes of each
 *   3. journal bytes u64,           6. the caller's place: length u64 + bytes
 *      skipped.tsv bytes u64        7. CRC-32 of all of the above, u32 */

static const char magic[] = "cdmpp.state 5\n";

static cdmpp_status fail_io(const char *path, const char *what, cdmpp_err *err) {
    return cd_err_at(err, CD_FAIL(err, EIO, "cannot %s: %s", what, strerror(errno)), path, 0);
}

/* fdatasync before the rename that publishes the file. */
static bool write_file(const char *path, const void *data, size_t n) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    const char *p = data;
    bool ok = fd >= 0;
    while (ok && n) {
        const ssize_t m = write(fd, p, n);
        if (m < 0 && errno == EINTR) continue;
        ok = m > 0;
        if (ok) p += m, n -= (size_t)m;
    }
    ok = ok && fdatasync(fd) == 0;
    const int saved = errno;
    if (fd >= 0 && close(fd) != 0) ok = false;
    else errno = saved;
    return ok;
}

/* Write path.new, sync, rename to path. */
static cdmpp_status writer_replace_file(const char *path, const void *data, size_t n,
                                        cdmpp_err *err) {
    char tmp[4200];
    snprintf(tmp, sizeof tmp, "%s.new", path);
    if (!write_file(tmp, data, n)) {
        const cdmpp_status st = fail_io(tmp, "write", err);
        (void)unlink(tmp);
        return st;
    }
    return rename(tmp, path) == 0 ? CDMPP_OK : fail_io(path, "replace the file", err);
}

/* --- writing -------------------------------------------------------------- */

static void put(cd_buf *b, const void *p, size_t n) { cd_buf_put(b, p, n); }
static void put_u64(cd_buf *b, uint64_t v) { put(b, &v, sizeof v); }

static void put_columns(cd_buf *b, const cd_writer *w) {
    for (int a = 0; a < CD_LAYOUT_ARRAY_COUNT; a++) {
        const cd_column *c = &w->col[a];
        const uint32_t n_open = c->open ? c->open->n : 0;
        put_u64(b, c->n);
        put(b, &c->crc, sizeof c->crc);
        put(b, &n_open, sizeof n_open);
        if (n_open) put(b, c->open->raw, n_open * cd_layout_array_bytes((cd_layout_array)a));
    }
}

static void put_dicts(cd_buf *b, const cd_writer *w) {
    for (int d = 0; d < CD_LAYOUT_DICT_COUNT; d++) {
        put_u64(b, w->dict[d].n);
        for (size_t i = 0; i < w->dict[d].n; i++) {
            const size_t len = strlen(w->dict[d].text[i]);
            put_u64(b, len);
            put(b, w->dict[d].text[i], len);
        }
    }
}

/* state: false when there is none that fits. */
static cdmpp_status writer_save(const cd_writer *w, const void *place, size_t n, cdmpp_err *err) {
    char path[4096];
    cd_buf b = {0};
    put(&b, magic, sizeof magic - 1);
    put(&b, w->fingerprint, 64);
    put_u64(&b, w->journal.length);
    put_u64(&b, w->n_skip_bytes);
    put_columns(&b, w);
    put_dicts(&b, w);
    put_u64(&b, n);
    put(&b, place, n);
    const uint32_t crc = b.oom ? 0 : (uint32_t)crc32_z(0, (const Bytef *)b.p, b.n);
    put(&b, &crc, sizeof crc);
    cd_writer_path(w, "state", path);
    cdmpp_status st;
    if (b.oom) st = CD_FAIL(err, ENOMEM, "checkpoint");
    else st = writer_replace_file(path, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

/* --- reading -------------------------------------------------------------- */

typedef struct cursor {
    const char *p;
    size_t n;
    bool bad;
} cursor;

static const char *take(cursor *c, size_t n) {
    if (c->bad || n > c->n) {
        c->bad = true;
        return NULL;
    }
    const char *p = c->p;
    c->p += n;
    c->n -= n;
    return p;
}

static void get(cursor *c, void *out, size_t n) {
    const char *p = take(c, n);
    if (p) memcpy(out, p, n);
    else memset(out, 0, n);
}

static uint64_t get_u64(cursor *c) {
    uint64_t v;
    get(c, &v, sizeof v);
    return v;
}

static cdmpp_status get_columns(cursor *c, cd_writer *w, cdmpp_err *err) {
    for (int a = 0; a < CD_LAYOUT_ARRAY_COUNT && !c->bad; a++) {
        cd_column *col = &w->col[a];
        uint32_t n_open = 0;
        col->n = get_u64(c);
        get(c, &col->crc, sizeof col->crc);
        get(c, &n_open, sizeof n_open);
        if (n_open >= cd_layout_array_chunk((cd_layout_array)a)) c->bad = true;
        if (c->bad || n_open == 0) continue;
        col->open = cd_journal_chunk_new((cd_layout_array)a);
        if (!col->open) return CD_FAIL(err, ENOMEM, "checkpoint");
        col->open->n = n_open;
        get(c, col->open->raw, n_open * cd_layout_array_bytes((cd_layout_array)a));
    }
    return CDMPP_OK;
}

static cdmpp_status get_dicts(cursor *c, cd_writer *w, cdmpp_err *err) {
    for (int d = 0; d < CD_LAYOUT_DICT_COUNT; d++) {
        const uint64_t n = get_u64(c);
        for (uint64_t i = 0; i < n && !c->bad; i++) {
            uint32_t id = 0;
            const size_t len = (size_t)get_u64(c);
            const char *p = take(c, len);
            if (p) CD_TRY(cd_dict_add(&w->dict[d], (cd_str){p, len}, &id, err));
        }
    }
    return CDMPP_OK;
}

/* The fields in the order of writer_save. */
static cdmpp_status parse(cursor *c, cd_writer *w, uint64_t *journal_length, cd_buf *place,
                          cdmpp_err *err) {
    const char *m = take(c, sizeof magic - 1), *f = take(c, 64);
    if (!m || !f || memcmp(m, magic, sizeof magic - 1) != 0 || memcmp(f, w->fingerprint, 64) != 0) {
        c->bad = true;
        return CDMPP_OK;
    }
    *journal_length = get_u64(c);
    w->n_skip_bytes = get_u64(c);
    CD_TRY(get_columns(c, w, err));
    CD_TRY(get_dicts(c, w, err));
    const size_t n = (size_t)get_u64(c);
    const char *p = take(c, n);
    if (p) cd_buf_put(place, p, n);
    return place->oom ? CD_FAIL(err, ENOMEM, "checkpoint") : CDMPP_OK;
}

/* NULL: absent or unreadable, which is the same to us: start afresh. */
static char *slurp(const char *path, size_t *n) {
    struct stat s;
    char *p = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    if (fstat(fd, &s) == 0 && s.st_size > 4 && (p = cd_mem_alloc((size_t)s.st_size)) != NULL) {
        *n = (size_t)s.st_size;
        for (size_t have = 0; have < *n;) {
            const ssize_t m = read(fd, p + have, *n - have);
            if (m <= 0) {
                cd_mem_free(p);
                p = NULL;
                break;
            }
            have += (size_t)m;
        }
    }
    close(fd);
    return p;
}

/* A state that is damaged or of another run counts as none: then the run starts afresh. */
static cdmpp_status writer_load(cd_writer *w, uint64_t *journal_length, cd_buf *place, bool *found,
                                cdmpp_err *err) {
    char path[4096];
    size_t n = 0;
    uint32_t crc = 0;
    cdmpp_status st = CDMPP_OK;
    cd_writer_path(w, "state", path);
    char *text = slurp(path, &n);
    *found = false;
    if (!text) return CDMPP_OK;
    cursor c = {text, n - sizeof crc, false};
    memcpy(&crc, text + n - sizeof crc, sizeof crc);
    if (crc == (uint32_t)crc32_z(0, (const Bytef *)text, n - sizeof crc)) {
        st = parse(&c, w, journal_length, place, err);
        *found = st == CDMPP_OK && !c.bad;
    }
    cd_mem_free(text);
    return st;
}

void cd_writer_path(const cd_writer *w, const char *name, char out[4096]) {
    snprintf(out, 4096, "%s/%s", w->dir, name);
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

/* Wait for all chunks under way and put them into the journal. */
static cdmpp_status writer_drain(cd_writer *w, cdmpp_err *err) {
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
    return writer_drain(w, err);
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
    CD_TRY(writer_drain(w, err));
    CD_TRY(cd_journal_sync(&w->journal, err));
    if (fdatasync(w->skip_fd) != 0) return fail_io(w->dir, "write skipped.tsv", err);
    return writer_save(w, place, n, err);
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
    if (!restart) CD_TRY(writer_load(w, &length, place, &found, err));
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
