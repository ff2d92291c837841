/* The cache of compiled programs: a folder of files named by their key. Entries and uses are hard
 * links, so that storing, using and evicting are atomic and need no lock. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "profiler/backend/backend_internal.h"

/* A digest at the end of a file. A process that is killed while it writes an object, or a full
 * disk, leaves a file that would crash the loader; the digest finds it. */

enum { SEAL = CD_OBJSEAL_BYTES };
static const char mark[] = "cdmpp-obj ";

/* The digest line that the first n bytes must have. */
static bool seal_of(FILE *f, size_t n, char seal[SEAL + 1]) {
    cd_sha256 s;
    char hex[65], b[16384];
    cd_sha256_init(&s);
    for (size_t k; n; n -= k) {
        k = fread(b, 1, n < sizeof b ? n : sizeof b, f);
        if (!k) return false;
        cd_sha256_add(&s, b, k);
    }
    cd_sha256_hex(&s, hex);
    snprintf(seal, SEAL + 1, "%s%s\n", mark, hex);
    return true;
}

static bool size_of(FILE *f, size_t *n) {
    struct stat t;
    if (fstat(fileno(f), &t) != 0 || t.st_size < 0) return false;
    *n = (size_t)t.st_size;
    return true;
}

/* Append the digest. Errors: EIO. */
static cdmpp_status object_signature_put(const char *path, cdmpp_err *err) {
    char seal[SEAL + 1];
    size_t n = 0;
    FILE *f = fopen(path, "r+b");
    bool good = f && size_of(f, &n) && seal_of(f, n, seal) && fseek(f, 0, SEEK_END) == 0 &&
                fwrite(seal, 1, SEAL, f) == SEAL;
    const int e = errno;
    if (f && fclose(f) != 0) good = false;
    return good ? CDMPP_OK
                : cd_err_at(err, CD_FAIL(err, EIO, "cannot seal the file: %s", strerror(e)), path,
                            0);
}

bool cd_object_signature_good(const char *path) {
    char seal[SEAL + 1], found[SEAL + 1] = "";
    size_t n = 0;
    FILE *f = fopen(path, "rb");
    const bool good = f && size_of(f, &n) && n > SEAL && seal_of(f, n - SEAL, seal) &&
                      fread(found, 1, SEAL, f) == SEAL && memcmp(seal, found, SEAL) == 0;
    if (f) fclose(f);
    return good;
}

struct cd_object_cache {
    char dir[256]; /* "": nothing is kept */
    char work[320];
    uint64_t max_bytes;
    unsigned puts; /* since the last eviction */
};

enum { PUTS = 512, STALE_S = 3600 };

/* ---- folders ---- */
/* Every folder of the path that is not there yet. */
static bool make_folders(const char *path) {
    char p[CD_OBJCACHE_PATH];
    if ((size_t)snprintf(p, sizeof p, "%s", path) >= sizeof p) return false;
    for (char *s = p + 1; *s; s++) {
        if (*s != '/') continue;
        *s = 0;
        if (mkdir(p, 0777) != 0 && errno != EEXIST) return false;
        *s = '/';
    }
    return mkdir(p, 0777) == 0 || errno == EEXIST;
}

static bool default_dir(char *to, size_t n) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (xdg && xdg[0] == '/') return (size_t)snprintf(to, n, "%s/cdmpp", xdg) < n;
    if (home && home[0]) return (size_t)snprintf(to, n, "%s/.cache/cdmpp", home) < n;
    return (*to = 0, true);
}

static bool work_below(cd_object_cache *c, const char *dir) {
    const int n = snprintf(c->work, sizeof c->work, "%s/work.%ld.XXXXXX", dir, (long)getpid());
    if (n > 0 && (size_t)n < sizeof c->work && mkdtemp(c->work)) return true;
    c->work[0] = 0;
    return false;
}

static void remove_folder(const char *path) {
    DIR *d = opendir(path);
    if (!d) return;
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    rmdir(path);
}

/* Removes work folders of killed processes: no process here has that number, and nobody has written
 * there for an hour (the folder may be shared with another machine). */
static void remove_stale(const char *dir) {
    DIR *d = opendir(dir);
    if (!d) return;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[CD_OBJCACHE_PATH];
        const long pid = strncmp(e->d_name, "work.", 5) ? 0 : strtol(e->d_name + 5, NULL, 10);
        struct stat t;
        if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH) continue;
        if (snprintf(path, sizeof path, "%s/%s", dir, e->d_name) >= (int)sizeof path) continue;
        if (stat(path, &t) == 0 && t.st_mtim.tv_sec + STALE_S < time(NULL)) remove_folder(path);
    }
    closedir(d);
}

cdmpp_status cd_object_cache_open(const char *dir, uint64_t max_bytes, cd_object_cache **out,
                                  cdmpp_err *err) {
    cd_object_cache *c = cd_mem_zalloc(1, sizeof *c);
    if (!c) return CD_FAIL(err, ENOMEM, "cache of programs");
    c->max_bytes = max_bytes ? max_bytes : CD_OBJCACHE_BYTES;
    if (dir ? (size_t)snprintf(c->dir, sizeof c->dir, "%s", dir) >= sizeof c->dir
            : !default_dir(c->dir, sizeof c->dir)) {
        cd_mem_free(c);
        return CD_FAIL(err, ERANGE, "cache folder: expected fewer than %zu letters", sizeof c->dir);
    }
    const char *tmp = getenv("TMPDIR");
    if (c->dir[0] && make_folders(c->dir)) remove_stale(c->dir);
    else c->dir[0] = 0;
    if (c->dir[0] && !work_below(c, c->dir)) c->dir[0] = 0; /* it cannot be written */
    if (!c->work[0] && !work_below(c, tmp && tmp[0] ? tmp : "/tmp")) {
        cd_mem_free(c);
        return CD_FAIL(err, EIO, "no folder to compile in: %s", strerror(errno));
    }
    *out = c;
    return CDMPP_OK;
}

void cd_object_cache_close(cd_object_cache *c) {
    if (!c) return;
    if (c->puts) (void)cd_object_cache_evict(c);
    remove_folder(c->work);
    cd_mem_free(c);
}

const char *cd_object_cache_work(const cd_object_cache *c) { return c->work; }

/* ---- entries ---- */
static bool entry_path(const cd_object_cache *c, const char *key, char path[CD_OBJCACHE_PATH]) {
    return snprintf(path, CD_OBJCACHE_PATH, "%s/objects/%.2s/%s.so", c->dir, key, key) <
           CD_OBJCACHE_PATH;
}

/* It becomes a part of this process: only what this user or root put there. */
static bool is_ours(const char *path) {
    struct stat t;
    return stat(path, &t) == 0 && (t.st_uid == geteuid() || t.st_uid == 0);
}

bool cd_object_cache_find(cd_object_cache *c, const char *key, char path[CD_OBJCACHE_PATH]) {
    char entry[CD_OBJCACHE_PATH];
    if (snprintf(path, CD_OBJCACHE_PATH, "%s/%s.so", c->work, key) >= CD_OBJCACHE_PATH)
        return false;
    if (access(path, R_OK) == 0) return true; /* used before by this run */
    if (!c->dir[0] || !entry_path(c, key, entry) || link(entry, path) != 0) return false;
    if (is_ours(path) && cd_object_signature_good(path)) {
        utimensat(AT_FDCWD, entry, NULL, 0); /* used now */
        return true;
    }
    unlink(path);
    unlink(entry);
    return false;
}

cdmpp_status cd_object_cache_seal(const char *file, cdmpp_err *err) {
    return object_signature_put(file, err);
}

bool cd_object_cache_put(cd_object_cache *c, const char *key, const char *file) {
    char entry[CD_OBJCACHE_PATH], folder[CD_OBJCACHE_PATH];
    if (!c->dir[0] || !entry_path(c, key, entry)) return false;
    if (link(file, entry) == 0) return ++c->puts < PUTS || (cd_object_cache_evict(c), true);
    if (errno == EEXIST) return true; /* another run was first */
    if (errno != ENOENT) return false;
    if (snprintf(folder, sizeof folder, "%s/objects/%.2s", c->dir, key) >= (int)sizeof folder ||
        !make_folders(folder))
        return false;
    if (link(file, entry) != 0 && errno != EEXIST) return false;
    c->puts++;
    return true;
}

/* Remove the entry of a key. */
static void object_cache_drop(cd_object_cache *c, const char *key) {
    char entry[CD_OBJCACHE_PATH];
    if (c->dir[0] && entry_path(c, key, entry)) unlink(entry);
}

/* ---- eviction ---- */
typedef struct {
    char path[CD_OBJCACHE_PATH];
    struct timespec used;
    ino_t inode;
    uint64_t bytes; /* of the file, on the first of its entries in `used` order */
} entry;

typedef struct {
    entry *v;
    size_t n, cap;
    bool oom;
} entries;

/* The size is that of the blocks on disk. */
static void add_entry(entries *s, const char *path) {
    struct stat t;
    if (stat(path, &t) != 0 || !S_ISREG(t.st_mode)) return;
    if (CD_GROW(s->v, s->n, s->cap)) {
        s->oom = true;
        return;
    }
    entry *e = &s->v[s->n++];
    snprintf(e->path, sizeof e->path, "%s", path);
    e->used = t.st_mtim;
    e->inode = t.st_ino;
    e->bytes = (uint64_t)t.st_blocks * 512;
}

static void add_folder(entries *s, const char *path) {
    DIR *d = opendir(path);
    if (!d) return;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char p[CD_OBJCACHE_PATH];
        if (e->d_name[0] == '.' || snprintf(p, sizeof p, "%s/%s", path, e->d_name) >= (int)sizeof p)
            continue;
        if (strlen(e->d_name) == 2) add_folder(s, p);
        else add_entry(s, p);
    }
    closedir(d);
}

static int by_use(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* Entries of one file share its time, so they stand together: all but the first count nothing. */
static uint64_t total_of(entries *s) {
    uint64_t sum = 0;
    qsort(s->v, s->n, sizeof *s->v, by_use);
    for (size_t i = 0; i < s->n; i++) {
        if (i && s->v[i].inode == s->v[i - 1].inode) s->v[i].bytes = 0;
        sum += s->v[i].bytes;
    }
    return sum;
}

/* Oldest use first, down to 90 % of the limit, so that not every put evicts. */
uint64_t cd_object_cache_evict(cd_object_cache *c) {
    entries s = {0};
    char path[CD_OBJCACHE_PATH];
    c->puts = 0;
    if (!c->dir[0] || snprintf(path, sizeof path, "%s/objects", c->dir) >= (int)sizeof path)
        return 0;
    add_folder(&s, path);
    uint64_t left = s.n ? total_of(&s) : 0;
    const uint64_t aim = c->max_bytes - c->max_bytes / 10;
    if (left > c->max_bytes)
        for (size_t i = 0; i < s.n && (left > aim || !s.v[i].bytes); i++) {
            unlink(s.v[i].path);
            left -= s.v[i].bytes;
        }
    cd_mem_free(s.v);
    return left;
}

/* Keeps binaries of GPU programs in the object cache. The binaries carry the cache's digest at
 * their end, which is cut off when they are read. */

void cd_object_binary_key(cd_str identity, const cd_codegen_code *code, char key[CD_OBJCACHE_KEY]) {
    const char *prelude = cd_codegen_prelude(code->dialect);
    cd_sha256 h;
    cd_sha256_init(&h);
    cd_sha256_add(&h, "binary", sizeof "binary");
    cd_sha256_add(&h, identity.p, identity.n);
    cd_sha256_add(&h, "", 1);
    cd_sha256_add(&h, prelude, strlen(prelude) + 1);
    cd_sha256_add(&h, code->text.p, code->text.n);
    cd_sha256_hex(&h, key);
}

/* All bytes but the digest, with a 0 byte after them: PTX is a text. */
static void *read_all(const char *path, size_t *n) {
    struct stat s;
    FILE *f = fopen(path, "rb");
    char *p = NULL;
    if (f && fstat(fileno(f), &s) == 0 && s.st_size > CD_OBJSEAL_BYTES) {
        *n = (size_t)s.st_size - CD_OBJSEAL_BYTES;
        p = cd_mem_zalloc(*n + 1, 1);
        if (p && fread(p, 1, *n, f) != *n) cd_mem_free(p), p = NULL;
    }
    if (f) fclose(f);
    return p;
}

bool cd_object_binary_get(const char *dir, uint64_t max_bytes, const char *key, void **bytes,
                          size_t *n) {
    cd_object_cache *c = NULL;
    char path[CD_OBJCACHE_PATH];
    *bytes = NULL;
    if ((dir && !dir[0]) || cd_object_cache_open(dir, max_bytes, &c, NULL)) return false;
    if (cd_object_cache_find(c, key, path)) *bytes = read_all(path, n);
    cd_object_cache_close(c);
    return *bytes != NULL;
}

static bool write_all(const char *path, const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(bytes, 1, n, f) == n;
    if (f && fclose(f) != 0) good = false;
    return good;
}

bool cd_object_binary_put(const char *dir, uint64_t max_bytes, const char *key, const void *bytes,
                          size_t n) {
    cd_object_cache *c = NULL;
    char path[CD_OBJCACHE_PATH];
    if ((dir && !dir[0]) || cd_object_cache_open(dir, max_bytes, &c, NULL)) return false;
    bool good =
        snprintf(path, sizeof path, "%s/new.bin", cd_object_cache_work(c)) < (int)sizeof path &&
        write_all(path, bytes, n);
    if (good) object_cache_drop(c, key);
    good = good && !cd_object_cache_seal(path, NULL) && cd_object_cache_put(c, key, path);
    cd_object_cache_close(c);
    return good;
}
