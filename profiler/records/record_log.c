/* The file of records. Identities are kept as 128 bits of a SHA-256 in an open-addressed table, so
 * that a log of millions of records costs a few dozen bytes each. */
#include "profiler/records/record_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/io.h"

#define SYNC_S 1.0

typedef struct {
    cd_record_id id;
    unsigned count; /* 0: free */
} slot;

struct cd_record_log {
    char path[512];
    int fd;
    bool regular;        /* else a pipe or device: it is only written */
    slot *slot;          /* (n_slot) open addressing */
    size_t n_slot, used; /* n_slot: a power of two */
    long lines;
    off_t size; /* whole lines */
    double synced_s;
};

/* ---- identities ---- */
/* The hash covers the record's line with its measurement set to 0, so that equal programs have
 * equal identities whatever came out. */
cdmpp_status cd_record_id_of(const cd_record *r, cd_record_id *out, cdmpp_err *err) {
    cd_record plain = *r;
    static const double none = 0;
    cd_buf b = {0};
    cd_sha256 h;
    char hex[65], half[17] = "";
    plain.n_cost = 1;
    plain.cost_s = &none;
    plain.error_no = plain.timestamp = 0;
    plain.total_s = 0;
    cdmpp_status st = cd_record_write(&b, &plain, err);
    cd_sha256_init(&h);
    if (!st) cd_sha256_add(&h, b.p, b.n);
    cd_sha256_hex(&h, hex);
    memcpy(half, hex, 16);
    out->a = strtoull(half, NULL, 16);
    memcpy(half, hex + 16, 16);
    out->b = strtoull(half, NULL, 16);
    cd_buf_free(&b);
    return st;
}

static slot *find(slot *s, size_t n, cd_record_id id) {
    size_t i = (size_t)id.a & (n - 1);
    while (s[i].count && (s[i].id.a != id.a || s[i].id.b != id.b)) i = (i + 1) & (n - 1);
    return &s[i];
}

static cdmpp_status grow(cd_record_log *l, cdmpp_err *err) {
    const size_t n = l->n_slot ? 2 * l->n_slot : 1024;
    slot *s = cd_mem_zalloc(n, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "%zu records", n);
    for (size_t i = 0; i < l->n_slot; i++)
        if (l->slot[i].count) *find(s, n, l->slot[i].id) = l->slot[i];
    cd_mem_free(l->slot);
    l->slot = s;
    l->n_slot = n;
    return CDMPP_OK;
}

static cdmpp_status learn(cd_record_log *l, cd_record_id id, cdmpp_err *err) {
    if (2 * l->used >= l->n_slot) CD_TRY(grow(l, err));
    slot *s = find(l->slot, l->n_slot, id);
    if (!s->count) {
        s->id = id;
        l->used++;
    }
    s->count++;
    return CDMPP_OK;
}

cdmpp_status cd_record_log_claim(cd_record_log *l, cd_record_id id, unsigned limit, bool *mine,
                                 cdmpp_err *err) {
    *mine = !l->n_slot || find(l->slot, l->n_slot, id)->count < limit;
    return *mine ? learn(l, id, err) : CDMPP_OK;
}

size_t cd_record_log_programs(const cd_record_log *l) { return l->used; }

/* ---- opening ---- */
/* Where the last whole line ends. */
static cdmpp_status whole_lines(cd_record_log *l, cdmpp_err *err) {
    char b[65536];
    off_t at = 0;
    for (ssize_t n; (n = pread(l->fd, b, sizeof b, at)) != 0; at += n) {
        if (n < 0 && errno == EINTR) n = 0;
        if (n < 0) return CD_FAIL(err, EIO, "cannot read: %s", strerror(errno));
        for (ssize_t i = 0; i < n; i++)
            if (b[i] == '\n') l->size = at + i + 1, l->lines++;
    }
    if (at > l->size && ftruncate(l->fd, l->size) != 0)
        return CD_FAIL(err, EIO, "cannot cut off half a line: %s", strerror(errno));
    return lseek(l->fd, l->size, SEEK_SET) < 0
               ? CD_FAIL(err, EIO, "cannot seek: %s", strerror(errno))
               : CDMPP_OK;
}

static cdmpp_status learn_line(cd_record_log *l, cd_arena *a, const char *p, size_t n, bool retry,
                               cdmpp_err *err) {
    cd_record r;
    cd_record_id id;
    if (cd_record_is_comment(p, n) || cd_record_read(a, p, n, &r, NULL) || (retry && r.error_no))
        return CDMPP_OK;
    return cd_record_id_of(&r, &id, NULL) ? CDMPP_OK : learn(l, id, err);
}

static cdmpp_status learn_all(cd_record_log *l, bool retry, cdmpp_err *err) {
    cd_file_lines *f = NULL;
    cd_arena a = {0};
    char *p = NULL;
    size_t n;
    if (!l->lines) return CDMPP_OK;
    cdmpp_status st = cd_file_lines_open(l->path, CD_RECORD_LINE_MAX, &f, err);
    while (!st) {
        st = cd_file_lines_next(f, &p, &n, err);
        if (st == CDMPP_ERANGE) st = CDMPP_OK; /* no record of ours */
        else if (!st && !p) break;
        else if (!st) st = learn_line(l, &a, p, n, retry, err);
        cd_arena_reset(&a);
    }
    cd_file_lines_close(f);
    cd_arena_free(&a);
    return st;
}

static cdmpp_status open_file(cd_record_log *l, bool retry, cdmpp_err *err) {
    struct stat s;
    l->fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    /* a pipe, /dev/stdout */
    if (l->fd < 0 && (errno == EACCES || errno == ENXIO || errno == EINVAL))
        l->fd = open(l->path, O_WRONLY | O_CLOEXEC);
    if (l->fd < 0 || fstat(l->fd, &s) != 0)
        return CD_FAIL(err, EIO, "cannot open: %s", strerror(errno));
    l->regular = S_ISREG(s.st_mode);
    if (!l->regular) return CDMPP_OK;
    if (flock(l->fd, LOCK_EX | LOCK_NB) != 0)
        return CD_FAIL(err, EIO,
                       errno == EWOULDBLOCK ? "another run writes this file"
                                            : "cannot lock the file");
    CD_TRY(whole_lines(l, err));
    return learn_all(l, retry, err);
}

cdmpp_status cd_record_log_open(const char *path, bool retry, cd_record_log **out, cdmpp_err *err) {
    cd_record_log *l = cd_mem_zalloc(1, sizeof *l);
    if (!l) return CD_FAIL(err, ENOMEM, "output");
    l->fd = -1;
    l->synced_s = cd_clock_wall();
    cdmpp_status st =
        strlen(path) < sizeof l->path
            ? CDMPP_OK
            : CD_FAIL(err, EIO, "expected a path of fewer than %zu letters", sizeof l->path);
    if (!st) {
        memcpy(l->path, path, strlen(path) + 1);
        st = open_file(l, retry, err);
    }
    if (st) (void)cd_record_log_close(l, NULL);
    else *out = l;
    return cd_err_at(err, st, path, 0);
}

cdmpp_status cd_record_log_close(cd_record_log *l, cdmpp_err *err) {
    if (!l) return CDMPP_OK;
    cdmpp_status st = CDMPP_OK;
    if (l->fd >= 0) {
        const bool bad = l->regular && fsync(l->fd) != 0;
        if (close(l->fd) != 0 || bad)
            st = cd_err_at(err, CD_FAIL(err, EIO, "cannot write: %s", strerror(errno)), l->path, 0);
    }
    cd_mem_free(l->slot);
    cd_mem_free(l);
    return st;
}

/* ---- adding ---- */
/* The whole line, or nothing of it where the disk is full: half a line would damage the next
 * one. */
static cdmpp_status put_line(cd_record_log *l, const char *p, size_t n, cdmpp_err *err) {
    if (!cd_fd_put(l->fd, p, n)) {
        const int e = errno;
        if (l->regular && ftruncate(l->fd, l->size) == 0) (void)lseek(l->fd, l->size, SEEK_SET);
        return CD_FAIL(err, EIO, "cannot write: %s", strerror(e));
    }
    l->size += (off_t)n;
    return CDMPP_OK;
}

cdmpp_status cd_record_log_add(cd_record_log *l, const cd_record *r, long *line, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_record_write(&b, r, err);
    if (!st) st = cd_err_at(err, put_line(l, b.p, b.n, err), l->path, 0);
    cd_buf_free(&b);
    if (st) return st;
    l->lines++;
    if (line) *line = l->lines;
    if (l->regular && cd_clock_wall() - l->synced_s > SYNC_S) {
        (void)fdatasync(l->fd); /* a failure shows again at close */
        l->synced_s = cd_clock_wall();
    }
    return CDMPP_OK;
}
