/* Lines, whole files, writing in one step, folders. Lines are delivered inside a buffer that is
 * refilled behind them, so reading needs no copy. Writing goes to a temporary in the same folder,
 * which is synced and renamed: a reader never sees half a file. */
#include "base/io/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK ((size_t)256 * 1024)
/* Lines of a file, at most: so many, and one for so many of its bytes. Rows of numbers take 2 to
 * 100 bytes each when they are packed, 5 and more when they are not; a million rows take up to 10 s
 * to answer. */
#define LINES_BASE     ((uint64_t)1 << 19)
#define BYTES_PER_LINE ((uint64_t)2)

/* ---- lines ---- */

struct cd_file_lines {
    cd_input_stream *src;
    char *buf;       /* (cap) */
    size_t beg, end; /* bytes read and not yet delivered */
    size_t cap, max;
    long number;
    bool eof;
    bool dead; /* the file failed: nothing more comes */
};

cdmpp_status cd_file_lines_open(const char *path, size_t max_line, cd_file_lines **out,
                                cdmpp_err *err) {
    *out = NULL;
    cd_file_lines *l = cd_mem_zalloc(1, sizeof *l);
    if (!l) return cd_err_at(err, CD_FAIL(err, ENOMEM, "line reader"), path, 0);
    const cdmpp_status st = cd_input_stream_open(path, &l->src, err);
    if (st) {
        cd_mem_free(l);
        return st;
    }
    l->max = max_line ? max_line : CD_FILE_LINE_MAX;
    *out = l;
    return CDMPP_OK;
}

/* Move the rest to the front and read behind it. */
static cdmpp_status refill(cd_file_lines *l, cdmpp_err *err) {
    const size_t rest = l->end - l->beg;
    if (l->beg && rest) memmove(l->buf, l->buf + l->beg, rest);
    l->beg = 0;
    l->end = rest;
    if (l->cap - rest < CHUNK) {
        const size_t cap = l->cap ? l->cap * 2 : 2 * CHUNK;
        char *p = cd_mem_realloc(l->buf, rest, cap);
        if (!p) return CD_FAIL(err, ENOMEM, "line buffer of %zu bytes", cap);
        l->buf = p;
        l->cap = cap;
    }
    size_t got = 0;
    CD_TRY(cd_input_stream_read(l->src, l->buf + rest, l->cap - rest - 1, &got, err));
    l->end += got;
    l->eof = got == 0;
    return CDMPP_OK;
}

static cdmpp_status more(cd_file_lines *l, cdmpp_err *err) {
    const cdmpp_status st = refill(l, err);
    l->dead = st != CDMPP_OK;
    return st;
}

/* Drop what is left of a line that is too long. */
static cdmpp_status skip_line(cd_file_lines *l, cdmpp_err *err) {
    for (;;) {
        char *nl = memchr(l->buf + l->beg, '\n', l->end - l->beg);
        l->beg = nl ? (size_t)(nl - l->buf) + 1 : l->end;
        if (nl || l->eof) break;
        CD_TRY(more(l, err));
    }
    return CD_FAIL(err, ERANGE, "line of more than %zu bytes skipped", l->max);
}

static cdmpp_status too_many(cd_file_lines *l, cdmpp_err *err) {
    uint64_t done, total;
    cd_input_stream_progress(l->src, &done, &total);
    if ((uint64_t)l->number <= LINES_BASE + done / BYTES_PER_LINE) return CDMPP_OK;
    l->dead = true;
    return CD_FAIL(err, ERANGE,
                   "%llu bytes of a file have more than %llu lines (%llu and one for each %d "
                   "bytes): unpack it first where that is right",
                   (unsigned long long)done,
                   (unsigned long long)(LINES_BASE + done / BYTES_PER_LINE),
                   (unsigned long long)LINES_BASE, (int)BYTES_PER_LINE);
}

/* [beg, stop) is a line; `used` bytes more belong to its end. */
static cdmpp_status deliver(cd_file_lines *l, size_t stop, size_t used, char **line, size_t *len,
                            cdmpp_err *err) {
    if (stop - l->beg > l->max) return skip_line(l, err);
    *line = l->buf + l->beg;
    *len = stop - l->beg;
    l->beg = stop + used;
    if (*len && (*line)[*len - 1] == '\r') --*len;
    (*line)[*len] = '\0';
    return CDMPP_OK;
}

static cdmpp_status next(cd_file_lines *l, char **line, size_t *len, cdmpp_err *err) {
    size_t seen = 0; /* bytes of the line known to hold no '\n' */
    for (;;) {
        char *nl = l->end > l->beg + seen
                       ? memchr(l->buf + l->beg + seen, '\n', l->end - l->beg - seen)
                       : NULL;
        if (nl) return deliver(l, (size_t)(nl - l->buf), 1, line, len, err);
        seen = l->end - l->beg;
        if (l->eof) {
            if (!seen) l->number--; /* there was no line */
            return seen ? deliver(l, l->end, 0, line, len, err) : CDMPP_OK;
        }
        if (seen > l->max + 1) return skip_line(l, err); /* one more may be '\r' */
        CD_TRY(more(l, err));
    }
}

cdmpp_status cd_file_lines_next(cd_file_lines *l, char **line, size_t *len, cdmpp_err *err) {
    *line = NULL;
    *len = 0;
    if (l->dead) return CDMPP_OK;
    l->number++;
    if ((uint64_t)l->number > LINES_BASE)
        CD_TRY(cd_err_at(err, too_many(l, err), cd_input_stream_path(l->src), l->number));
    const cdmpp_status st = next(l, line, len, err);
    /* the mark that editors of Windows put in front of UTF-8 */
    if (l->number == 1 && *len >= 3 && !memcmp(*line, "\xef\xbb\xbf", 3)) *line += 3, *len -= 3;
    return cd_err_at(err, st, cd_input_stream_path(l->src), l->number);
}

long cd_file_lines_number(const cd_file_lines *l) { return l->number; }

void cd_file_lines_progress(const cd_file_lines *l, uint64_t *done, uint64_t *total) {
    cd_input_stream_progress(l->src, done, total);
}

void cd_file_lines_close(cd_file_lines *l) {
    if (!l) return;
    cd_input_stream_close(l->src);
    cd_mem_free(l->buf);
    cd_mem_free(l);
}

/* ---- whole files ---- */

/* What a file that is not packed takes, so that it is not moved as it grows; at most 1 GiB on its
 * word alone. */
static size_t expected(const cd_input_stream *src, size_t max) {
    uint64_t done, total;
    cd_input_stream_progress(src, &done, &total);
    const size_t most = max < (1U << 30) ? max : 1U << 30;
    return total < most ? (size_t)total : most;
}

/* `max` bounds what a small packed file may unpack to. One byte stays free for the NUL. */
static cdmpp_status slurp(cd_input_stream *src, size_t max, char **data, size_t *n,
                          cdmpp_err *err) {
    size_t cap = 0, got = 0;
    const size_t first = expected(src, max) + 2 * CHUNK;
    do {
        if (cap - *n < CHUNK) {
            char *p = cd_mem_realloc(*data, *n, cap ? cap * 2 : first);
            if (!p) return CD_FAIL(err, ENOMEM, "file of more than %zu bytes", *n);
            cap = cap ? cap * 2 : first;
            *data = p;
        }
        CD_TRY(cd_input_stream_read(src, *data + *n, cap - *n - 1, &got, err));
        *n += got;
        if (*n > max) return CD_FAIL(err, ERANGE, "file of more than %zu bytes", max);
    } while (got);
    (*data)[*n] = '\0';
    return CDMPP_OK;
}

cdmpp_status cd_file_read(const char *path, size_t max, char **data, size_t *n, cdmpp_err *err) {
    cd_input_stream *src = NULL;
    *data = NULL;
    *n = 0;
    CD_TRY(cd_input_stream_open(path, &src, err));
    const cdmpp_status st = cd_err_at(err, slurp(src, max ? max : CD_FILE_WHOLE_MAX, data, n, err),
                                      cd_input_stream_path(src), 0);
    cd_input_stream_close(src);
    if (st) {
        cd_mem_free(*data);
        *data = NULL;
        *n = 0;
    }
    return st;
}

#define IO_FAIL(err, what, path)                                                                   \
    cd_err_at((err), CD_FAIL((err), EIO, "cannot %s: %s", (what), strerror(errno)), (path), 0)

/* Reads the file itself, not through cd_input_stream, which would unpack it. */
cdmpp_status cd_file_digest(const char *path, char hex[65], cdmpp_err *err) {
    unsigned char buf[16 * 1024];
    cd_sha256 sum;
    ssize_t got = -1;
    cdmpp_status st = CDMPP_OK;
    cd_sha256_init(&sum);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        while ((got = read(fd, buf, sizeof buf)) > 0 || (got < 0 && errno == EINTR))
            if (got > 0) cd_sha256_add(&sum, buf, (size_t)got);
    if (got < 0) st = IO_FAIL(err, "read", path);
    if (fd >= 0) close(fd);
    cd_sha256_hex(&sum, hex);
    return st;
}

/* ---- writing ---- */

/* The name is new, so two writers never share a temporary. */
static int create_new(char *name, size_t cap, const char *path, mode_t mode) {
    for (int k = 0; k < 1000; k++) {
        snprintf(name, cap, "%s.tmp%ld.%d", path, (long)getpid(), k);
        const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

cdmpp_status cd_file_replaceable(const char *path, cdmpp_err *err) {
    struct stat st;
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode)) return CDMPP_OK;
    return cd_err_at(err,
                     CD_FAIL(err, EIO, "this is %s and no file: it is not replaced",
                             S_ISDIR(st.st_mode) ? "a folder" : "a device or a pipe"),
                     path, 0);
}

bool cd_file_same(const char *a, const char *b) {
    struct stat x, y;
    if (!strcmp(a, b)) return true;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* Temporaries that are there now, for a command that a signal ends. Copies of the names: a handler
 * may run while one is freed. */
static struct {
    atomic_int state; /* FREE, TAKEN while the name is written, THERE */
    char name[PATH_MAX];
} temps[64];
enum { FREE, TAKEN, THERE };

/* One more than there are places for is not removed; that leaves a file of a few kilobytes
 * behind. */
static void note_temp(const char *name) {
    for (size_t k = 0; k < sizeof temps / sizeof *temps; k++) {
        int is_free = FREE;
        if (strlen(name) >= PATH_MAX ||
            !atomic_compare_exchange_strong(&temps[k].state, &is_free, TAKEN))
            continue;
        memcpy(temps[k].name, name, strlen(name) + 1);
        atomic_store(&temps[k].state, THERE);
        return;
    }
}

static void forget_temp(const char *name) {
    for (size_t k = 0; k < sizeof temps / sizeof *temps; k++)
        if (atomic_load(&temps[k].state) == THERE && !strcmp(temps[k].name, name)) {
            atomic_store(&temps[k].state, FREE);
            return;
        }
}

void cd_file_remove_temps(void) {
    for (size_t k = 0; k < sizeof temps / sizeof *temps; k++)
        if (atomic_load(&temps[k].state) == THERE) unlink(temps[k].name);
}

/* An empty file with the usual permissions; create_new() has found a name that nobody else uses. */
cdmpp_status cd_file_temp(const char *path, char **temp, cdmpp_err *err) {
    const size_t cap = strlen(path) + 48;
    char *name = cd_mem_alloc(cap);
    *temp = NULL;
    if (!name) return cd_err_at(err, CD_FAIL(err, ENOMEM, "path"), path, 0);
    const cdmpp_status can = cd_file_replaceable(path, err);
    if (can) {
        cd_mem_free(name);
        return can;
    }
    const int fd = create_new(name, cap, path, 0666);
    if (fd < 0) {
        const cdmpp_status st = IO_FAIL(err, "create a file in this folder", path);
        cd_mem_free(name);
        return st;
    }
    close(fd);
    note_temp(name);
    *temp = name;
    return CDMPP_OK;
}

void cd_file_discard(char *temp) {
    if (!temp) return;
    unlink(temp);
    forget_temp(temp);
    cd_mem_free(temp);
}

/* A link keeps pointing where it points: its target is replaced. */
static int rename_over(const char *temp, const char *path) {
    char target[PATH_MAX];
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && realpath(path, target)) path = target;
    return rename(temp, path);
}

cdmpp_status cd_file_publish(char *temp, const char *path, cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    struct stat old;
    const int fd = open(temp, O_RDONLY | O_CLOEXEC);
    /* not ours: fine */
    if (fd >= 0 && stat(path, &old) == 0 && fchmod(fd, old.st_mode & 07777) != 0) errno = 0;
    if (fd < 0 || fsync(fd) != 0) st = IO_FAIL(err, "write", path);
    else if (rename_over(temp, path) != 0) st = IO_FAIL(err, "replace", path);
    if (fd >= 0) close(fd);
    if (st) unlink(temp);
    forget_temp(temp);
    cd_mem_free(temp);
    return st;
}

static cdmpp_status write_to(const char *file, const char *path, const void *data, size_t n,
                             cdmpp_err *err) {
    const int fd = open(file, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0) return IO_FAIL(err, "open for writing", path);
    const bool ok = cd_fd_put(fd, data, n);
    cdmpp_status st = CDMPP_OK;
    if (!ok) st = IO_FAIL(err, "write", path);
    if (close(fd) != 0 && ok) st = IO_FAIL(err, "write", path);
    return st;
}

cdmpp_status cd_file_write(const char *path, const void *data, size_t n, cdmpp_err *err) {
    struct stat st;
    char *temp = NULL;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) return write_to(path, path, data, n, err);
    CD_TRY(cd_file_temp(path, &temp, err));
    const cdmpp_status rc = write_to(temp, path, data, n, err);
    if (rc) {
        cd_file_discard(temp);
        return rc;
    }
    return cd_file_publish(temp, path, err);
}

/* ---- folders ---- */

typedef struct found {
    const char *path;
    struct found *next;
} found;

typedef struct walk {
    cd_arena *arena;
    cd_file_filter_fn *keep;
    void *ctx;
    found *first;
    size_t n;
    cdmpp_err *err;
} walk;

/* The folders above, to notice a link that leads back to one of them. */
typedef struct above {
    const struct above *up;
    dev_t dev;
    ino_t ino;
} above;

static cdmpp_status visit(walk *w, const char *path, const above *up);

static char *join(cd_arena *a, const char *folder, const char *name) {
    const size_t nf = strlen(folder), nn = strlen(name), slash = nf && folder[nf - 1] != '/';
    char *p = cd_arena_alloc(a, nf + slash + nn + 1, 1);
    if (!p) return NULL;
    memcpy(p, folder, nf);
    if (slash) p[nf] = '/';
    memcpy(p + nf + slash, name, nn + 1);
    return p;
}

/* A folder that is one of those above it was reached through a link: it is left out. */
static cdmpp_status visit_folder(walk *w, const char *path, const above *here) {
    for (const above *u = here->up; u; u = u->up)
        if (u->dev == here->dev && u->ino == here->ino) return CDMPP_OK;
    DIR *dir = opendir(path);
    if (!dir) return IO_FAIL(w->err, "open this folder", path);
    cdmpp_status st = CDMPP_OK;
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(dir);
        if (!e && errno) st = IO_FAIL(w->err, "read this folder", path);
        if (!e || st) break;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        const char *sub = join(w->arena, path, e->d_name);
        if (sub) st = visit(w, sub, here);
        else st = CD_FAIL(w->err, ENOMEM, "list of files");
    }
    closedir(dir);
    return st;
}

static cdmpp_status visit(walk *w, const char *path, const above *up) {
    struct stat st;
    if (stat(path, &st) != 0) {
        if (up && errno == ENOENT) return CDMPP_OK; /* gone meanwhile, or a dangling link */
        return IO_FAIL(w->err, "open", path);
    }
    if (S_ISDIR(st.st_mode)) return visit_folder(w, path, &(above){up, st.st_dev, st.st_ino});
    if (!S_ISREG(st.st_mode) || (w->keep && !w->keep(path, w->ctx))) return CDMPP_OK;
    found *f = CD_NEW(w->arena, found);
    if (!f) return CD_FAIL(w->err, ENOMEM, "list of files");
    f->path = path;
    f->next = w->first;
    w->first = f;
    w->n++;
    return CDMPP_OK;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

cdmpp_status cd_file_list(cd_arena *a, const char *root, cd_file_filter_fn *keep, void *ctx,
                          const char *const **out, size_t *n, cdmpp_err *err) {
    walk w = {a, keep, ctx, NULL, 0, err};
    const char *own = join(a, "", root); /* the caller's string may go */
    if (!own) return CD_FAIL(err, ENOMEM, "list of files");
    CD_TRY(visit(&w, own, NULL));
    const char **list = cd_arena_alloc(a, w.n, sizeof *list);
    if (!list) return CD_FAIL(err, ENOMEM, "list of %zu files", w.n);
    size_t k = 0;
    for (const found *f = w.first; f; f = f->next) list[k++] = f->path;
    qsort(list, w.n, sizeof *list, by_bytes);
    *out = list;
    *n = w.n;
    return CDMPP_OK;
}

cdmpp_status cd_file_make_folder(const char *path, cdmpp_err *err) {
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return CDMPP_OK;
    return cd_err_at(err, CD_FAIL(err, EIO, "cannot make the folder: %s", strerror(errno)), path,
                     0);
}
