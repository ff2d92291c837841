/* A cache of files: found, damaged, too many, shared by two, not to be written. */
#include "check.h"
#include "tmp.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "profiler/backend/backend.h"
#include "profiler/backend/backend_internal.h"

static cd_object_cache *open_ok(const char *dir, uint64_t max) {
    cd_object_cache *c = NULL;
    cdmpp_err err = {0};
    assert_ok(cd_object_cache_open(dir, max, &c, &err));
    return c;
}

static void key_of(char key[CD_OBJCACHE_KEY], unsigned k) {
    snprintf(key, CD_OBJCACHE_KEY, "%02x%062u", k, k);
}

/* A sealed file of n bytes in the work folder, entered under key number k. */
static bool enter(cd_object_cache *c, unsigned k, size_t n) {
    char file[CD_OBJCACHE_PATH], key[CD_OBJCACHE_KEY];
    cdmpp_err err = {0};
    snprintf(file, sizeof file, "%s/new%u", cd_object_cache_work(c), k);
    FILE *f = fopen(file, "wb");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) fputc((int)(k + i) & 255, f);
    fclose(f);
    assert_ok(cd_object_cache_seal(file, &err));
    key_of(key, k);
    return cd_object_cache_put(c, key, file);
}

static bool finds(cd_object_cache *c, unsigned k, char path[CD_OBJCACHE_PATH]) {
    char key[CD_OBJCACHE_KEY];
    key_of(key, k);
    return cd_object_cache_find(c, key, path);
}

TEST(test_found_again) {
    tmp_dir d = tmp_make();
    char path[CD_OBJCACHE_PATH], work[CD_OBJCACHE_PATH];
    cd_object_cache *c = open_ok(d.path, 0);
    assert_false(finds(c, 1, path));
    assert_true(enter(c, 1, 100));
    assert_true(finds(c, 1, path));
    assert_true(cd_object_signature_good(path));
    snprintf(work, sizeof work, "%s", cd_object_cache_work(c));
    cd_object_cache_close(c);
    assert_int_equal(access(work, F_OK), -1); /* nothing is left of it */
    c = open_ok(d.path, 0);
    assert_true(finds(c, 1, path));
    assert_false(finds(c, 2, path));
    cd_object_cache_close(c);
    tmp_remove(&d);
}

/* One bit, one byte less, one more, nothing at all: not found, and gone. */
TEST(test_damaged) {
    for (int kind = 0; kind < 4; kind++) {
        tmp_dir d = tmp_make();
        char path[CD_OBJCACHE_PATH], file[CD_OBJCACHE_PATH], key[CD_OBJCACHE_KEY];
        cd_object_cache *c = open_ok(d.path, 0);
        assert_true(enter(c, 7, 1000));
        cd_object_cache_close(c);
        key_of(key, 7);
        snprintf(file, sizeof file, "%s/objects/%.2s/%s.so", d.path, key, key);
        const int fd = open(file, O_RDWR);
        assert_true(fd >= 0);
        if (kind == 0) assert_int_equal(pwrite(fd, "x", 1, 500), 1);
        if (kind == 1) assert_int_equal(ftruncate(fd, 1074), 0);
        if (kind == 2) assert_int_equal(pwrite(fd, "x", 1, 1075), 1);
        if (kind == 3) assert_int_equal(ftruncate(fd, 0), 0);
        close(fd);
        c = open_ok(d.path, 0);
        assert_false(finds(c, 7, path));
        assert_int_equal(access(file, F_OK), -1);
        assert_true(enter(c, 7, 1000)); /* made again */
        assert_true(finds(c, 7, path));
        cd_object_cache_close(c);
        tmp_remove(&d);
    }
}

/* The least recently used go first; what this run uses stays. */
TEST(test_bound) {
    tmp_dir d = tmp_make();
    char path[CD_OBJCACHE_PATH], entry[CD_OBJCACHE_PATH], key[CD_OBJCACHE_KEY];
    cd_object_cache *c = open_ok(d.path, 5 * 8192);
    for (unsigned k = 0; k < 10; k++) {
        assert_true(enter(c, k, 8000)); /* two blocks with its seal */
        key_of(key, k);
        snprintf(entry, sizeof entry, "%s/objects/%.2s/%s.so", d.path, key, key);
        const struct timespec t[2] = {{1000 + k, 0}, {1000 + k, 0}};
        assert_int_equal(utimensat(AT_FDCWD, entry, t, 0), 0);
    }
    assert_true(finds(c, 0, path)); /* used now */
    assert_true(cd_object_cache_evict(c) <= 5 * 8192);
    assert_int_equal(access(path, F_OK), 0);
    cd_object_cache_close(c);
    c = open_ok(d.path, 0);
    assert_true(finds(c, 0, path));
    assert_true(finds(c, 9, path));
    for (unsigned k = 1; k < 5; k++) assert_false(finds(c, k, path));
    cd_object_cache_close(c);
    tmp_remove(&d);
}

/* Two processes enter and find the same keys with a bound that evicts all the time. */
TEST(test_two) {
    tmp_dir d = tmp_make();
    pid_t pid[2];
    for (int i = 0; i < 2; i++) {
        pid[i] = fork();
        if (pid[i]) continue;
        char path[CD_OBJCACHE_PATH];
        cd_object_cache *c = NULL;
        bool good = cd_object_cache_open(d.path, 64 << 10, &c, NULL) == CDMPP_OK;
        for (unsigned k = 0; good && k < 200; k++) {
            const unsigned key = k * 7 % 40;
            if (!finds(c, key, path)) (void)enter(c, key, 5000);
            if (k % 20 == 0) (void)cd_object_cache_evict(c);
            if (finds(c, key, path)) good = cd_object_signature_good(path);
        }
        cd_object_cache_close(c);
        _exit(good ? 0 : 1);
    }
    for (int i = 0; i < 2; i++) {
        int w;
        assert_int_equal(waitpid(pid[i], &w, 0), pid[i]);
        assert_int_equal(w, 0);
    }
    tmp_remove(&d);
}

TEST(test_none) {
    char path[CD_OBJCACHE_PATH];
    cd_object_cache *c = open_ok("", 0);
    assert_false(enter(c, 3, 10));
    assert_false(finds(c, 3, path));
    assert_int_equal(access(cd_object_cache_work(c), W_OK), 0);
    cd_object_cache_close(c);
    c = open_ok("/proc/nosuch/folder", 0); /* cannot be made: the run goes on without */
    assert_false(enter(c, 3, 10));
    cd_object_cache_close(c);
}

/* The work folder of a run that was killed long ago goes, one of today's stays. */
TEST(test_stale) {
    tmp_dir d = tmp_make();
    char old[128], young[128], file[160];
    snprintf(old, sizeof old, "%s/work.999999999.abcdef", d.path);
    snprintf(young, sizeof young, "%s/work.999999998.abcdef", d.path);
    snprintf(file, sizeof file, "%s/x.so", old);
    mkdir(old, 0700);
    mkdir(young, 0700);
    fclose(fopen(file, "w"));
    const struct timespec t[2] = {{1000, 0}, {1000, 0}};
    assert_int_equal(utimensat(AT_FDCWD, old, t, 0), 0);
    cd_object_cache_close(open_ok(d.path, 0));
    assert_int_equal(access(old, F_OK), -1);
    assert_int_equal(access(young, F_OK), 0);
    tmp_remove(&d);
}

TESTS(NULL, NULL, test_found_again, test_damaged, test_bound, test_two, test_none, test_stale)
