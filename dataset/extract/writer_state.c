/* The checkpoint file OUT.partial/state, little endian, replaced whole:
 *   1. "cdmpp.state 5\n"            4. each array: n u64, crc u32, open elements u32 + bytes
 *   2. fingerprint, 64 bytes        5. each dictionary: n u64, then length u64 + bytes of each
 *   3. journal bytes u64,           6. the caller's place: length u64 + bytes
 *      skipped.tsv bytes u64        7. CRC-32 of all of the above, u32 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "dataset/extract/extract_internal.h"

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

cdmpp_status cd_writer_replace_file(const char *path, const void *data, size_t n, cdmpp_err *err) {
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

cdmpp_status cd_writer_save(const cd_writer *w, const void *place, size_t n, cdmpp_err *err) {
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
    else st = cd_writer_replace_file(path, b.p, b.n, err);
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

/* The fields in the order of cd_writer_save. */
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
cdmpp_status cd_writer_load(cd_writer *w, uint64_t *journal_length, cd_buf *place, bool *found,
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
