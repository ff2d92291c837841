/* The journal of a writer: what was appended is read back; what is no journal is refused, whatever
 * byte says so. */
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/io/io.h"
#include "check.h"
#include "dataset/extract/extract.h"
#include "tmp.h"

/* chunks of the journal below; bytes of a head: magic, array, n, crc, then 8 of the length */
enum { N = 3, HEAD = 24 };

static cdmpp_err err;
static tmp_dir dir;
static char path[256];
static uint64_t begin[N + 1]; /* of each chunk's head, and the end */

static const cd_layout_array array_of[N] = {CD_LAYOUT_ARRAY_ROW_PTR, CD_LAYOUT_ARRAY_ROWS,
                                            CD_LAYOUT_ARRAY_ROW_PTR};

static uint32_t count_of(int k) {
    return k == 0 ? cd_layout_array_chunk(array_of[0]) : k == 1 ? 5 : 1;
}

static cd_journal_chunk *made(int k) {
    cd_journal_chunk *c = cd_journal_chunk_new(array_of[k]);
    assert_non_null(c);
    c->n = count_of(k);
    for (size_t i = 0; i < c->n * cd_layout_array_bytes(c->array); i++)
        c->raw[i] = (uint8_t)(7 * i + (size_t)k);
    cd_journal_chunk_compress(c);
    assert_false(c->failed);
    return c;
}

static int set_up(void **state) {
    (void)state;
    cd_journal j;
    dir = tmp_make();
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "journal"));
    assert_ok(cd_journal_open(&j, path, 0, &err));
    for (int k = 0; k < N; k++) {
        cd_journal_chunk *c = made(k);
        assert_ok(cd_journal_append(&j, c, &err));
        begin[k + 1] = j.length;
        cd_journal_chunk_free(c);
    }
    assert_ok(cd_journal_sync(&j, &err));
    cd_journal_close(&j);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

/* Valid until the next call. */
__attribute__((format(printf, 1, 2))) static const char *says(const char *format, ...) {
    static char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return text;
}

static long size_of(const char *file) {
    struct stat s;
    return stat(file, &s) == 0 ? (long)s.st_size : -1;
}

/* The bytes come back; uncompressed they are a whole chunk, zero behind what was filled. */
TEST(read_back) {
    cd_journal j;
    assert_ok(cd_journal_open(&j, path, begin[N], &err));
    assert_int_equal(j.n, N);
    assert_int_equal(j.length, size_of(path));
    for (int k = 0; k < N; k++) {
        cd_journal_chunk *c = made(k);
        const cd_journal_entry *e = &j.entry[k];
        const size_t item = cd_layout_array_bytes(c->array), used = c->n * item;
        uLongf full = cd_layout_array_chunk(c->array) * item;
        uint8_t *zip = cd_mem_zalloc(e->n_zip, 1), *raw = cd_mem_zalloc(full + 1, 1);
        assert_int_equal(e->array, array_of[k]);
        assert_int_equal(e->n, count_of(k));
        assert_int_equal(e->offset, begin[k] + HEAD);
        assert_int_equal(e->n_zip, c->n_zip);
        assert_ok(cd_journal_read(&j, (size_t)k, zip, &err));
        assert_memory_equal(zip, c->zip, c->n_zip);
        const uLongf want = full++;
        assert_int_equal(uncompress(raw, &full, zip, e->n_zip), Z_OK);
        assert_int_equal(full, want);
        for (size_t i = 0; i < full; i++)
            assert_int_equal(raw[i], i < used ? (uint8_t)(7 * i + (size_t)k) : 0);
        assert_int_equal(c->crc, crc32(0, raw, (uInt)used));
        cd_mem_free(zip), cd_mem_free(raw), cd_journal_chunk_free(c);
    }
    cd_journal_close(&j);
}

static const char *copied(const char *name, uint64_t at, const void *with, size_t n) {
    char *text;
    size_t len;
    const char *p = tmp_path(&dir, name);
    assert_ok(cd_file_read(path, 0, &text, &len, &err));
    if (n) memcpy(text + at, with, n);
    assert_ok(cd_file_write(p, text, len, &err));
    cd_mem_free(text);
    return p;
}

/* What lies behind the length is cut off, and the next chunk comes in its place. */
TEST(cut_and_go_on) {
    cd_journal j;
    const char *p = copied("cut", 0, NULL, 0);
    assert_ok(cd_journal_open(&j, p, begin[1], &err));
    assert_int_equal(j.n, 1);
    assert_int_equal(size_of(p), begin[1]);
    cd_journal_chunk *c = made(2);
    assert_ok(cd_journal_append(&j, c, &err));
    cd_journal_chunk_free(c);
    assert_int_equal(j.n, 2);
    assert_int_equal(j.entry[1].offset, begin[1] + HEAD);
    assert_int_equal(j.length, begin[1] + begin[3] - begin[2]);
    assert_int_equal(size_of(p), j.length);
    cd_journal_close(&j);
}

/* One writer. The lock goes with it. */
TEST(locked) {
    cd_journal j, k;
    const char *p = copied("locked", 0, NULL, 0);
    assert_ok(cd_journal_open(&j, p, begin[N], &err));
    assert_error(cd_journal_open(&k, p, 0, &err),
                 says("%s: another process is writing here [EIO]", p));
    assert_int_equal(size_of(p), begin[N]); /* it was not cut */
    cd_journal_close(&j);
    assert_ok(cd_journal_open(&k, p, begin[N], &err));
    cd_journal_close(&k);
    p = tmp_path(&dir, "no/such");
    assert_error(cd_journal_open(&k, p, 0, &err),
                 says("%s: cannot open the file: No such file or directory [EIO]", p));
}

/* A value in the head of the second or third chunk that cannot be: the journal is refused at that
 * chunk's byte, and may be closed again. */
TEST(damaged) {
    const uint32_t magic = 0x4a444362, arrays = CD_LAYOUT_ARRAY_COUNT,
                   full = cd_layout_array_chunk(array_of[1]), over = full + 1, none = UINT32_MAX,
                   rest = (uint32_t)(begin[3] - begin[2] - HEAD), more = rest + 1, fewer = rest - 1;
    const struct {
        int chunk, at;
        const uint32_t *with;
        bool fine;
    } t[] = {{1, 0, &magic, false}, {1, 4, &arrays, false}, {1, 4, &none, false},
             {1, 8, &over, false},  {1, 8, &full, true},    {1, 20, &(uint32_t){1}, false},
             {2, 16, &more, false}, {2, 16, &rest, true},   {2, 16, &fewer, false},
             {0, 0, &magic, false}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        cd_journal j;
        const char *p =
            copied("bad", begin[t[i].chunk] + (uint64_t)t[i].at, t[i].with, sizeof *t[i].with);
        /* one byte fewer than there are: what follows is not a head */
        const unsigned long long at = t[i].with == &fewer ? begin[N] - 1 : begin[t[i].chunk];
        const cdmpp_status st = cd_journal_open(&j, p, begin[N], &err);
        if (t[i].fine) assert_ok(st);
        else {
            assert_error(st, says("%s: not a chunk at byte %llu [ESCHEMA]", p, at));
            assert_int_equal(j.fd, -1);
            assert_int_equal(j.n, 0);
        }
        cd_journal_close(&j);
    }
}

/* A length that the file does not have, or that ends within a chunk. */
TEST(length) {
    cd_journal j;
    const char *p = copied("length", 0, NULL, 0);
    const unsigned long long end = begin[N];
    assert_error(cd_journal_open(&j, p, end + 1, &err),
                 says("%s: expected %llu bytes, found %llu [ESCHEMA]", p, end + 1, end));
    assert_int_equal(size_of(p), begin[N]);
    for (uint64_t n = begin[N] - 1; n > begin[2]; n -= n > begin[2] + 30 ? 17 : 1) {
        assert_status(cd_journal_open(&j, p, n, &err), CDMPP_ESCHEMA);
        assert_int_equal(j.n, 0);
    }
    assert_ok(cd_journal_open(&j, p, begin[2], &err));
    assert_int_equal(j.n, 2);
    cd_journal_close(&j);
}

TESTS(set_up, tear_down, read_back, cut_and_go_on, locked, damaged, length)
