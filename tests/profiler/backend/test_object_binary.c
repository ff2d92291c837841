/* Binaries by what they were made of: found, another device's not, damaged ones not, replaced. */
#include "check.h"
#include "tmp.h"

#include <fcntl.h>

#include "profiler/backend/backend.h"

static cd_codegen_code code_of(char *text) {
    return (cd_codegen_code){.dialect = CD_DIALECT_OPENCL, .text = {.p = text, .n = strlen(text)}};
}

static bool finds(const tmp_dir *d, const char *key, const char *what, size_t n) {
    void *p = NULL;
    size_t k = 0;
    const bool found = cd_object_binary_get(d->path, 0, key, &p, &k);
    if (found) {
        assert_int_equal(k, n);
        assert_memory_equal(p, what, n);
        assert_int_equal(((char *)p)[n], 0);
    }
    cd_mem_free(p);
    return found;
}

TEST(test_keys) {
    char a[CD_OBJCACHE_KEY], b[CD_OBJCACHE_KEY], one[] = "text one", two[] = "text two";
    cd_codegen_code c = code_of(one), e = code_of(two);
    const cd_str here = {"here|1", 6}, there = {"here|2", 6};
    cd_object_binary_key(here, &c, a);
    cd_object_binary_key(here, &c, b);
    assert_string_equal(a, b);
    cd_object_binary_key(there, &c, b);
    assert_string_not_equal(a, b);
    cd_object_binary_key(here, &e, b);
    assert_string_not_equal(a, b);
    c.dialect = CD_DIALECT_CUDA;
    cd_object_binary_key(here, &c, b);
    assert_string_not_equal(a, b);
}

TEST(test_kept) {
    tmp_dir d = tmp_make();
    char key[CD_OBJCACHE_KEY], other[CD_OBJCACHE_KEY], text[] = "text", more[] = "more";
    const cd_codegen_code c = code_of(text), e = code_of(more);
    cd_object_binary_key((cd_str){"d", 1}, &c, key);
    cd_object_binary_key((cd_str){"d", 1}, &e, other);
    assert_false(finds(&d, key, NULL, 0));
    assert_true(cd_object_binary_put(d.path, 0, key, "a\0bc", 4));
    assert_true(finds(&d, key, "a\0bc", 4));
    assert_true(finds(&d, key, "a\0bc", 4));
    assert_false(finds(&d, other, NULL, 0));
    /* the device refused the other one */
    assert_true(cd_object_binary_put(d.path, 0, key, "xyz", 3));
    assert_true(finds(&d, key, "xyz", 3));
    char file[CD_OBJCACHE_PATH];
    snprintf(file, sizeof file, "%s/objects/%.2s/%s.so", d.path, key, key);
    const int fd = open(file, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "?", 1, 1), 1);
    close(fd);
    assert_false(finds(&d, key, NULL, 0));
    void *p = NULL;
    size_t n;
    assert_false(cd_object_binary_put("", 0, key, "a", 1)); /* no cache is asked for */
    assert_false(cd_object_binary_get("", 0, key, &p, &n));
    assert_null(p);
    tmp_remove(&d);
}

TESTS(NULL, NULL, test_keys, test_kept)
