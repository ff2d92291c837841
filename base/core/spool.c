/* Arrays mapped from a file without a name. What the process has of them in memory is measured by
 * the kernel's count of file pages, and given back by dropping the pages from the map: the file
 * keeps what was written. */
#include "base/core/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/core/core.h"

enum { TMPFS = 0x01021994, RAMFS = (int)0x858458f6 };

typedef struct {
    void *p;
    size_t n;
} piece;

struct cd_spool {
    int file, statm;
    bool on_disk, opened; /* opened: another process made it */
    /* bytes; before: file pages of the process that are not ours */
    size_t most, used, page, before;
    piece *piece;
    size_t n, cap;
    size_t refused; /* bytes that the disk did not hold */
    int why;        /* errno then */
    char folder[4096];
};

/* Bytes of files that this process has in memory, by the third number of statm; SIZE_MAX: not
 * known, and every rest drops all. */
static size_t resident(const cd_spool *s) {
    char text[128];
    unsigned long shared;
    const ssize_t n = s->statm >= 0 ? pread(s->statm, text, sizeof text - 1, 0) : -1;
    if (n <= 0) return SIZE_MAX;
    text[n] = '\0';
    return sscanf(text, "%*s %*s %lu", &shared) == 1 ? shared * s->page : SIZE_MAX;
}

static cdmpp_status fail(const char *folder, const char *what, int why, cdmpp_err *err) {
    return cd_err_at(err, CD_FAIL(err, EIO, "%s: %s", what, strerror(why)), folder, 0);
}

/* On a disk, with room for `need` bytes. */
static cdmpp_status check_folder(const char *folder, size_t need, cdmpp_err *err) {
    struct statfs fs;
    if (statfs(folder, &fs)) return fail(folder, "cannot keep data there", errno, err);
    if ((int)fs.f_type == TMPFS || (int)fs.f_type == RAMFS)
        return cd_err_at(
            err,
            CD_FAIL(err, EUNSUPPORTED,
                    "expected a folder on a disk, found one that is in memory (tmpfs)"),
            folder, 0);
    const uint64_t free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    if (free_bytes >= need) return CDMPP_OK;
    return cd_err_at(err,
                     CD_FAIL(err, EIO, "expected a folder with room for %zu MB, found %llu MB",
                             need >> 20, (unsigned long long)free_bytes >> 20),
                     folder, 0);
}

static cdmpp_status open_file(cd_spool *s, size_t need, cdmpp_err *err) {
    char name[sizeof s->folder + 16];
    CD_TRY(check_folder(s->folder, need, err));
    snprintf(name, sizeof name, "%s/cdmpp-XXXXXX", s->folder);
    s->file = mkostemp(name, O_CLOEXEC);
    if (s->file < 0) return fail(s->folder, "cannot make a file there", errno, err);
    (void)unlink(name);
    return CDMPP_OK;
}

/* Of a folder that nobody named: $TMPDIR is often in memory, /var/tmp is not. */
static cdmpp_status open_default(cd_spool *s, size_t need, cdmpp_err *err) {
    static const char last[] = "/var/tmp";
    const char *own = getenv("TMPDIR");
    const bool has = own && own[0] && strlen(own) < sizeof s->folder;
    if (has) {
        strcpy(s->folder, own);
        if (open_file(s, need, NULL) == CDMPP_OK) return CDMPP_OK;
    }
    strcpy(s->folder, last);
    const cdmpp_status st = open_file(s, need, err);
    if (!st || !err || !has) return st;
    const cdmpp_err why = *err;
    return cd_err_at(err, CD_FAIL(err, EIO, "%s; nor does $TMPDIR do, which is %s", why.msg, own),
                     last, 0);
}

static cd_spool *new_spool(size_t most) {
    cd_spool *s = cd_mem_zalloc(sizeof *s, 1);
    if (!s) return NULL;
    s->file = -1;
    s->most = most;
    s->page = (size_t)sysconf(_SC_PAGESIZE);
    s->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    s->before = resident(s);
    return s;
}

static cdmpp_status open_memory(cd_spool *s, cdmpp_err *err) {
    s->file = memfd_create("cdmpp", MFD_CLOEXEC);
    return s->file < 0 ? CD_FAIL(err, EIO, "cannot make a file in memory: %s", strerror(errno))
                       : CDMPP_OK;
}

static cdmpp_status open_in(cd_spool *s, const char *folder, size_t need, cdmpp_err *err) {
    if (strlen(folder) >= sizeof s->folder)
        return fail(folder, "cannot keep data there", ENAMETOOLONG, err);
    strcpy(s->folder, folder);
    s->on_disk = true;
    return folder[0] ? open_file(s, need, err) : open_default(s, need, err);
}

cdmpp_status cd_spool_new(const char *folder, size_t need, size_t most, cd_spool **out,
                          cdmpp_err *err) {
    cd_spool *s = new_spool(most);
    if (!s) return CD_FAIL(err, ENOMEM, "spool");
    const cdmpp_status st = folder ? open_in(s, folder, need, err) : open_memory(s, err);
    if (st) cd_spool_free(s);
    else *out = s;
    return st;
}

cd_spool_place cd_spool_place_of(const cd_spool *s) {
    return (cd_spool_place){(int)getpid(), s->file};
}

/* The descriptor of the other process, which has no name elsewhere. */
cdmpp_status cd_spool_open(cd_spool_place place, size_t most, cd_spool **out, cdmpp_err *err) {
    char name[64];
    cd_spool *s = new_spool(most);
    if (!s) return CD_FAIL(err, ENOMEM, "spool");
    s->opened = true;
    snprintf(name, sizeof name, "/proc/%d/fd/%d", place.process, place.file);
    s->file = open(name, O_RDONLY | O_CLOEXEC);
    struct statfs fs;
    if (s->file >= 0 && !fstatfs(s->file, &fs)) {
        s->on_disk = (int)fs.f_type != TMPFS;
        *out = s;
        return CDMPP_OK;
    }
    const cdmpp_status st = fail(name, "cannot read what another process keeps", errno, err);
    cd_spool_free(s);
    return st;
}

static void *refuse(cd_spool *s, size_t n, int why) {
    s->refused = n;
    s->why = why;
    return NULL;
}

/* 0, or an errno. A page beyond the end of a file that another made would be a signal. */
static int has_room(const cd_spool *s, size_t bytes) {
    struct stat info;
    int full;
    if (s->opened)
        return fstat(s->file, &info)                       ? errno
               : (uint64_t)info.st_size >= s->used + bytes ? 0
                                                           : ENODATA;
    do full = posix_fallocate(s->file, (off_t)s->used, (off_t)bytes);
    while (full == EINTR); /* a signal */
    return full;
}

void *cd_spool_take(cd_spool *s, size_t n, size_t size) {
    if (size && n > (SIZE_MAX / 4) / size) return refuse(s, SIZE_MAX, ENOMEM);
    const size_t bytes = (n * size / s->page + 1) * s->page;
    if (CD_GROW(s->piece, s->n, s->cap)) return refuse(s, bytes, ENOMEM);
    const int full = has_room(s, bytes);
    if (full) return refuse(s, bytes, full);
    void *p = mmap(NULL, bytes, s->opened ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, s->file,
                   (off_t)s->used);
    if (p == MAP_FAILED) return refuse(s, bytes, errno);
    s->piece[s->n++] = (piece){p, bytes};
    s->used += bytes;
    return p;
}

cdmpp_status cd_spool_failed(const cd_spool *s, cdmpp_err *err) {
    if (!s->refused) return CDMPP_OK;
    if (s->why == ENOMEM || !s->on_disk)
        return CD_FAIL(err, ENOMEM, "%zu MB of %s, after %zu MB", s->refused >> 20,
                       s->on_disk ? "addresses" : "memory", s->used >> 20);
    return cd_err_at(err,
                     CD_FAIL(err, EIO, "cannot keep %zu MB there, after %zu MB: %s",
                             s->refused >> 20, s->used >> 20, strerror(s->why)),
                     s->folder, 0);
}

void cd_spool_rest(cd_spool *s) {
    if (!s) return;
    const size_t now = resident(s);
    if (now != SIZE_MAX && now <= s->before + s->most) return;
    for (size_t i = 0; i < s->n; i++) (void)madvise(s->piece[i].p, s->piece[i].n, MADV_DONTNEED);
}

size_t cd_spool_bytes(const cd_spool *s) { return s->used; }
bool cd_spool_on_disk(const cd_spool *s) { return s && s->on_disk; }
const char *cd_spool_folder(const cd_spool *s) { return s->folder; }

void cd_spool_free(cd_spool *s) {
    if (!s) return;
    for (size_t i = 0; i < s->n; i++) (void)munmap(s->piece[i].p, s->piece[i].n);
    if (s->file >= 0) (void)close(s->file);
    if (s->statm >= 0) (void)close(s->statm);
    cd_mem_free(s->piece);
    cd_mem_free(s);
}
