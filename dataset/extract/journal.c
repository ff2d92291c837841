/* The journal of a data set under way: compressed chunks one after another, each with its length
 * and checksum, so that a kill loses at most the last one. */
#include "dataset/extract/extract.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

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

static cdmpp_status fail_io(const cd_journal *j, const char *what, cdmpp_err *err) {
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
    if (j->fd < 0) return fail_io(j, "open the file", err);
    if (flock(j->fd, LOCK_EX | LOCK_NB) != 0)
        return cd_err_at(err, CD_FAIL(err, EIO, "another process is writing here"), j->path, 0);
    if (fstat(j->fd, &s) != 0) return fail_io(j, "read the size", err);
    if ((uint64_t)s.st_size < length)
        return cd_err_at(err,
                         CD_FAIL(err, ESCHEMA, "expected %llu bytes, found %llu",
                                 (unsigned long long)length, (unsigned long long)s.st_size),
                         j->path, 0);
    if (ftruncate(j->fd, (off_t)length) != 0) return fail_io(j, "cut the file", err);
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
        return fail_io(j, "write", err);
    CD_TRY(add_entry(
        j, (cd_journal_entry){j->length + sizeof h, (uint32_t)c->n_zip, c->n, c->array}, err));
    j->length += sizeof h + c->n_zip;
    return CDMPP_OK;
}

cdmpp_status cd_journal_sync(cd_journal *j, cdmpp_err *err) {
    return fdatasync(j->fd) == 0 ? CDMPP_OK : fail_io(j, "write", err);
}

cdmpp_status cd_journal_read(const cd_journal *j, size_t i, void *buf, cdmpp_err *err) {
    const cd_journal_entry *e = &j->entry[i];
    uint8_t *p = buf;
    for (size_t have = 0; have < e->n_zip;) {
        const ssize_t m = pread(j->fd, p + have, e->n_zip - have, (off_t)(e->offset + have));
        if (m < 0 && errno == EINTR) continue;
        if (m <= 0) return fail_io(j, "read", err);
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
