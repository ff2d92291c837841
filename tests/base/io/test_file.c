/* Files by lines and whole, plain and packed; damaged archives; writing in one step. */
#include "check.h"
#include "fault.h"

#include <fcntl.h>
#include <lzma.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/io/io.h"
#include "tmp.h"

typedef size_t packer(const char *p, size_t n, unsigned char *out, size_t cap);

static size_t pack_plain(const char *p, size_t n, unsigned char *out, size_t cap) {
    assert_true(n <= cap);
    memcpy(out, p, n);
    return n;
}

static size_t pack_gz(const char *p, size_t n, unsigned char *out, size_t cap) {
    z_stream z = {0};
    unsigned char *in = malloc(n + 1);
    memcpy(in, p, n);
    deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    z.next_in = in;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    const size_t got = z.total_out;
    deflateEnd(&z);
    free(in);
    return got;
}

static size_t pack_xz(const char *p, size_t n, unsigned char *out, size_t cap) {
    size_t at = 0;
    assert_int_equal(
        lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, (const uint8_t *)p, n, out, &at, cap),
        LZMA_OK);
    return at;
}

static size_t pack_zst(const char *p, size_t n, unsigned char *out, size_t cap) {
    const size_t got = ZSTD_compress(out, cap, p, n, 3);
    assert_false(ZSTD_isError(got));
    return got;
}

static const struct {
    const char *name;
    packer *pack;
} packers[] = {{"plain", pack_plain}, {"gz", pack_gz}, {"xz", pack_xz}, {"zst", pack_zst}};
enum { N_PACKER = 4 };

/* Lines 1..n: "line <k>" and k%50 digits that no packer can predict. */
static char *many_lines(int n, size_t *len) {
    char *text = malloc((size_t)n * 80), *p = text;
    unsigned x = 1;
    for (int k = 1; k <= n; k++) {
        p += sprintf(p, "line %d ", k);
        for (int i = 0; i < k % 50; i++)
            *p++ = (char)('0' + ((x = x * 1664525 + 1013904223) >> 24) % 10);
        *p++ = '\n';
    }
    *len = (size_t)(p - text);
    return text;
}

/* Reads all lines, checks the numbers; returns the first error. */
static cdmpp_status count_lines(const char *path, long *n, cdmpp_err *err) {
    cd_file_lines *l = NULL;
    char *line = NULL;
    size_t len = 0;
    *n = 0;
    cdmpp_status st = cd_file_lines_open(path, 0, &l, err);
    while (!st && !(st = cd_file_lines_next(l, &line, &len, err)) && line) {
        ++*n;
        assert_int_equal(cd_file_lines_number(l), *n);
        assert_int_equal(strlen(line), len);
        assert_int_equal(atol(line + 5), *n);
    }
    if (st && l) { /* a dead file only ends */
        assert_int_equal(cd_file_lines_next(l, &line, &len, NULL), CDMPP_OK);
        assert_null(line);
    }
    cd_file_lines_close(l);
    return st;
}

TEST(lines_of_every_packing) {
    tmp_dir d = tmp_make();
    size_t len;
    char *text = many_lines(40000, &len);
    unsigned char *packed = malloc(3 * len);
    for (int k = 0; k < N_PACKER; k++) {
        cdmpp_err err = {0};
        long n = 0;
        size_t size = packers[k].pack(text, len, packed, 2 * len);
        assert_ok(count_lines(tmp_put(&d, "log", packed, size), &n, &err));
        assert_int_equal(n, 40000);
        /* two members one after another are one file; the name does not matter */
        const char *cut = strchr(text + len / 3, '\n') + 1;
        size = packers[k].pack(text, (size_t)(cut - text), packed, 2 * len);
        size += packers[k].pack(cut, len - (size_t)(cut - text), packed + size, 2 * len);
        assert_ok(count_lines(tmp_put(&d, "log.txt", packed, size), &n, &err));
        assert_int_equal(n, 40000);
    }
    free(packed);
    free(text);
    tmp_remove(&d);
}

/* ---- a pipe that gives single bytes ---- */
enum { SLOW = 16 };
typedef struct {
    const char *path;
    const unsigned char *p;
    size_t n;
} dribble;

/* The first bytes one by one, each when the one before was read. */
static void *write_slowly(void *arg) {
    const dribble *d = arg;
    const int fd = open(d->path, O_WRONLY | O_CLOEXEC);
    for (size_t i = 0; i < SLOW; i++) {
        int left = 1;
        if (write(fd, d->p + i, 1) != 1) break;
        /* a reader that failed does not hang the test */
        for (int k = 0; k < 100000 && left && !ioctl(fd, FIONREAD, &left); k++) usleep(100);
    }
    const bool all = write(fd, d->p + SLOW, d->n - SLOW) == (ssize_t)(d->n - SLOW);
    close(fd);
    return all ? arg : NULL;
}

/* What the first read gives does not tell how a file is packed. */
TEST(byte_by_byte) {
    tmp_dir dir = tmp_make();
    size_t len, n;
    char *text = many_lines(100, &len), *data;
    unsigned char *packed = malloc(2 * len);
    char path[256];
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "pipe"));
    assert_int_equal(mkfifo(path, 0600), 0);
    for (int k = 0; k < N_PACKER; k++) {
        dribble d = {path, packed, packers[k].pack(text, len, packed, 2 * len)};
        cdmpp_err err = {0};
        pthread_t t;
        void *all;
        assert_int_equal(pthread_create(&t, NULL, write_slowly, &d), 0);
        assert_ok(cd_file_read(path, 0, &data, &n, &err));
        assert_int_equal(pthread_join(t, &all), 0);
        assert_non_null(all);
        assert_int_equal(n, len);
        assert_memory_equal(data, text, len);
        cd_mem_free(data);
    }
    free(packed);
    free(text);
    tmp_remove(&dir);
}

/* Wherever a packed file is cut: whole lines first, then one error with the path. */
TEST(cut_off) {
    tmp_dir d = tmp_make();
    size_t len;
    char *text = many_lines(20000, &len);
    unsigned char *packed = malloc(2 * len);
    for (int k = 1; k < N_PACKER; k++) {
        const size_t size = packers[k].pack(text, len, packed, 2 * len);
        long before = 0;
        for (size_t cut = 8; cut < size; cut += size / 23 + 1) {
            cdmpp_err err = {0};
            long n = 0;
            const char *path = tmp_put(&d, "log", packed, cut);
            assert_status(count_lines(path, &n, &err), CDMPP_EPARSE);
            assert_string_equal(err.path, path);
            assert_int_equal(err.line, n + 1);
            assert_non_null(strstr(err.msg, "ends too early"));
            assert_true(n >= before);
            before = n;
        }
        assert_true(before > 1000);
    }
    free(packed);
    free(text);
    tmp_remove(&d);
}

/* gzip and xz carry checksums: a flipped bit cannot go unnoticed. */
TEST(flipped_bit) {
    tmp_dir d = tmp_make();
    size_t len, n;
    char *text = many_lines(2000, &len), *data = NULL;
    unsigned char *packed = malloc(2 * len);
    for (int k = 1; k < 3; k++) {
        const size_t size = packers[k].pack(text, len, packed, 2 * len);
        for (size_t at = 20; at < size; at += size / 13 + 1) {
            cdmpp_err err = {0};
            packed[at] ^= 4;
            const char *path = tmp_put(&d, "f", packed, size);
            const cdmpp_status st = cd_file_read(path, 0, &data, &n, &err);
            assert_status(st, CDMPP_EPARSE);
            assert_non_null(strstr(err.msg, "damaged"));
            assert_string_equal(err.path, path);
            packed[at] ^= 4;
        }
    }
    free(packed);
    free(text);
    tmp_remove(&d);
}

typedef struct expected {
    const char *text;
    const char *line[4];
} expected;

TEST(line_ends) {
    static const expected t[] = {
        {"", {NULL}},
        {"\n", {"", NULL}},
        {"a", {"a", NULL}},
        {"a\r\nb\r\n", {"a", "b", NULL}},
        {"a\n\n#c\n", {"a", "", "#c", NULL}},
        {"a\nb", {"a", "b", NULL}},
        {"\r\n\r", {"", "", NULL}},
        {"a\rb\n", {"a\rb", NULL}},
    };
    tmp_dir d = tmp_make();
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        cdmpp_err err = {0};
        cd_file_lines *l = NULL;
        char *line = NULL;
        size_t len = 0;
        assert_ok(cd_file_lines_open(tmp_put(&d, "f", t[i].text, strlen(t[i].text)), 0, &l, &err));
        for (const char *const *want = t[i].line; *want; want++) {
            assert_ok(cd_file_lines_next(l, &line, &len, &err));
            assert_string_equal(line, *want);
        }
        for (int again = 0; again < 2; again++) {
            assert_ok(cd_file_lines_next(l, &line, &len, &err));
            assert_null(line);
        }
        cd_file_lines_close(l);
    }
    tmp_remove(&d);
}

/* Too long lines, short and longer than the buffer, cost one error each. */
/* The mark that some editors put in front of UTF-8 is no part of the first line, and nothing else
 * is taken away. */
TEST(byte_order_mark) {
    static const struct {
        const char *text, *first, *second;
    } t[] = {{"\xef\xbb\xbf"
              "a,b\nc",
              "a,b", "c"},
             {"\xef\xbb\xbf\nc", "", "c"},
             {"\xef\xbb\n\xef\xbb\xbf"
              "c",
              "\xef\xbb",
              "\xef\xbb\xbf"
              "c"}};
    tmp_dir d = tmp_make();
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        cd_file_lines *l = NULL;
        cdmpp_err err = {0};
        char *line;
        size_t len;
        assert_ok(cd_file_lines_open(tmp_put(&d, "f", t[i].text, strlen(t[i].text)), 0, &l, &err));
        assert_ok(cd_file_lines_next(l, &line, &len, &err));
        assert_string_equal(line, t[i].first);
        assert_int_equal(len, strlen(t[i].first));
        assert_ok(cd_file_lines_next(l, &line, &len, &err));
        assert_string_equal(line, t[i].second);
        cd_file_lines_close(l);
    }
    tmp_remove(&d);
}

TEST(long_lines) {
    static const struct {
        size_t len;
        cdmpp_status want;
    } t[] = {{5, CDMPP_OK},           {100, CDMPP_OK}, {101, CDMPP_ERANGE},   {0, CDMPP_OK},
             {3000000, CDMPP_ERANGE}, {7, CDMPP_OK},   {600000, CDMPP_ERANGE}};
    enum { N = sizeof t / sizeof *t };
    tmp_dir d = tmp_make();
    char *big = malloc(4000000), *p = big;
    for (int i = 0; i < N; i++) {
        memset(p, 'a' + i, t[i].len);
        p += t[i].len;
        if (i + 1 < N) *p++ = '\n';
    }
    cdmpp_err err = {0};
    cd_file_lines *l = NULL;
    const char *path = tmp_put(&d, "f", big, (size_t)(p - big));
    assert_ok(cd_file_lines_open(path, 100, &l, &err));
    char *line = NULL;
    size_t len = 0;
    for (int i = 0; i < N; i++) {
        assert_status(cd_file_lines_next(l, &line, &len, &err), t[i].want);
        assert_int_equal(cd_file_lines_number(l), i + 1);
        if (t[i].want) assert_int_equal(err.line, i + 1);
        if (t[i].want) assert_string_equal(err.path, path);
        else assert_int_equal(len, t[i].len);
        if (len) assert_int_equal(line[0], 'a' + i);
    }
    assert_ok(cd_file_lines_next(l, &line, &len, &err));
    assert_null(line);
    cd_file_lines_close(l);
    free(big);
    tmp_remove(&d);
}

TEST(progress_counts_packed_bytes) {
    tmp_dir d = tmp_make();
    size_t len;
    char *text = many_lines(50000, &len), *line = NULL;
    unsigned char *packed = malloc(2 * len);
    const size_t size = pack_gz(text, len, packed, 2 * len);
    cdmpp_err err = {0};
    cd_file_lines *l = NULL;
    uint64_t done = 0, total = 0, before = 0;
    assert_ok(cd_file_lines_open(tmp_put(&d, "f", packed, size), 0, &l, &err));
    bool halfway = false;
    do {
        assert_ok(cd_file_lines_next(l, &line, &len, &err));
        cd_file_lines_progress(l, &done, &total);
        assert_true(done >= before && done <= total);
        if (done > total / 4 && done < 3 * total / 4) halfway = true;
        before = done;
    } while (line);
    assert_true(halfway);
    assert_int_equal(total, size);
    assert_int_equal(done, size);
    cd_file_lines_close(l);
    free(packed);
    free(text);
    tmp_remove(&d);
}

TEST(standard_input) {
    tmp_dir d = tmp_make();
    const int keep = dup(0), fd = open(tmp_put(&d, "f", "line 1\nline 2", 13), O_RDONLY);
    cdmpp_err err = {0};
    long n = 0;
    assert_true(keep >= 0 && fd >= 0);
    dup2(fd, 0);
    assert_ok(count_lines("-", &n, &err));
    assert_int_equal(n, 2);
    assert_int_equal(fcntl(0, F_GETFD), 0); /* not closed */
    dup2(keep, 0);
    close(keep);
    close(fd);
    tmp_remove(&d);
}

TEST(unreadable) {
    tmp_dir d = tmp_make();
    cdmpp_err err = {0};
    cd_file_lines *l = NULL;
    char *data = NULL, hex[65];
    size_t n;
    const char *none = tmp_path(&d, "none");
    assert_status(cd_file_lines_open(none, 0, &l, &err), CDMPP_EIO);
    assert_string_equal(err.path, none);
    assert_null(l);
    assert_status(cd_file_lines_open(d.path, 0, &l, &err), CDMPP_EIO);
    assert_status(cd_file_read(none, 0, &data, &n, &err), CDMPP_EIO);
    assert_status(cd_file_read(d.path, 0, &data, &n, &err), CDMPP_EIO);
    assert_null(data);
    assert_status(cd_file_digest(d.path, hex, &err), CDMPP_EIO);
    assert_string_equal(err.path, d.path);
    tmp_remove(&d);
}

TEST(read_whole) {
    tmp_dir d = tmp_make();
    size_t len, n;
    char *text = many_lines(40000, &len), *data = NULL;
    unsigned char *packed = malloc(2 * len);
    for (int k = 0; k < N_PACKER; k++) {
        cdmpp_err err = {0};
        const size_t size = packers[k].pack(text, len, packed, 2 * len);
        const char *path = tmp_put(&d, "f", packed, size);
        assert_ok(cd_file_read(path, 0, &data, &n, &err));
        assert_int_equal(n, len);
        assert_memory_equal(data, text, len);
        assert_int_equal(data[n], 0);
        cd_mem_free(data);
        assert_ok(cd_file_read(path, len, &data, &n, &err));
        cd_mem_free(data);
        assert_status(cd_file_read(path, len - 1, &data, &n, &err), CDMPP_ERANGE);
        assert_null(data);
    }
    free(packed);
    free(text);
    tmp_remove(&d);
}

TEST(digest_of_file) {
    tmp_dir d = tmp_make();
    cdmpp_err err = {0};
    char hex[65];
    assert_ok(cd_file_digest(tmp_put(&d, "f", "abc", 3), hex, &err));
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    tmp_remove(&d);
}

/* Reading lines, listing and writing, with every allocation failing in turn. */
static cdmpp_status all_of_it(tmp_dir *d, const char *path, cdmpp_err *err) {
    cd_arena a = {0};
    const char *const *list = NULL;
    size_t n = 0;
    long lines = 0;
    char *data = NULL;
    cdmpp_status st = cd_file_list(&a, d->path, NULL, NULL, &list, &n, err);
    if (!st) st = count_lines(path, &lines, err);
    if (!st) st = cd_file_read(path, 0, &data, &n, err);
    cd_mem_free(data);
    if (!st) st = cd_file_write(tmp_path(d, "out"), "x", 1, err);
    cd_arena_free(&a);
    return st;
}

TEST(failing_at_every_allocation) {
    tmp_dir d = tmp_make();
    size_t len;
    char *text = many_lines(40000, &len);
    const char *path = tmp_put(&d, "f", text, len);
    FAULT_SWEEP(f, 8) {
        f.st = all_of_it(&d, path, &f.err);
        assert_int_equal(f.err.code, f.st);
    }
    free(text);
    tmp_remove(&d);
}

/* One member of 1 MiB, `times` times one after another: 120 MiB of which no packer makes more than
 * 130 kB. */
static const char *put_members(tmp_dir *d, packer *pack, const char *mib, int times) {
    unsigned char *packed = malloc(2 << 20), *all;
    const size_t n = pack(mib, 1 << 20, packed, 2 << 20);
    all = malloc(n * (size_t)times);
    for (int k = 0; k < times; k++) memcpy(all + n * (size_t)k, packed, n);
    const char *path = tmp_put(d, "bomb", all, n * (size_t)times);
    free(all);
    free(packed);
    return path;
}

TEST(expansion) {
    tmp_dir d = tmp_make();
    char *mib = malloc(1 << 20);
    memset(mib, 'a', 1 << 20);
    mib[(1 << 20) - 1] = '\n';
    for (int k = 1; k < N_PACKER; k++) {
        cdmpp_err err = {0};
        char *data = NULL, *line = NULL;
        size_t n = 0, len = 0;
        const char *path = put_members(&d, packers[k].pack, mib, 120);
        assert_status(cd_file_read(path, 0, &data, &n, &err), CDMPP_ERANGE);
        assert_string_equal(err.path, path);
        assert_non_null(strstr(err.msg, "unpack to more than"));
        assert_non_null(strstr(err.msg, "64 MiB and 256 times"));
        /* by lines: whole ones before the bound, then one error */
        cd_file_lines *l = NULL;
        cdmpp_status st = cd_file_lines_open(path, 0, &l, &err);
        long lines = 0;
        while (!st && !(st = cd_file_lines_next(l, &line, &len, &err)) && line) lines++;
        assert_int_equal(st, CDMPP_ERANGE);
        assert_true(lines >= 63 && lines < 100);
        assert_ok(cd_file_lines_next(l, &line, &len, &err));
        assert_null(line);
        cd_file_lines_close(l);
    }
    free(mib);
    tmp_remove(&d);
}

/* Short lines: packed ones end before a reader is busy for minutes; what is not packed is read to
 * its end. */
TEST(lines_that_are_too_many) {
    tmp_dir d = tmp_make();
    char *mib = malloc(1 << 20);
    for (int k = 0; k < N_PACKER; k++) {
        cdmpp_err err = {0};
        cd_file_lines *l = NULL;
        char *line = NULL;
        size_t len = 0;
        long lines = 0;
        memset(mib, '\n', 1 << 20);
        for (int i = 0; i < 1 << 20; i += k ? 4 : 2) mib[i] = 'x';
        cdmpp_status st = cd_file_lines_open(put_members(&d, packers[k].pack, mib, 3), 0, &l, &err);
        while (!st && !(st = cd_file_lines_next(l, &line, &len, &err)) && line) lines++;
        if (k) {
            assert_status(st, CDMPP_ERANGE);
            assert_non_null(strstr(err.msg, "lines (524288 and one for each 2 bytes)"));
            assert_true(lines >= 524288 && lines < 540000);
            assert_ok(cd_file_lines_next(l, &line, &len, &err));
            assert_null(line);
        } else {
            assert_ok(st);
            assert_int_equal(lines, 3 << 19);
        }
        cd_file_lines_close(l);
    }
    free(mib);
    tmp_remove(&d);
}

/* A table of zeros with some digits in it, packed 200:1 and far beyond the base, is read to its
 * end; so is anything that is not packed. */
TEST(expansion_of_a_sparse_table) {
    tmp_dir d = tmp_make();
    char *mib = malloc(1 << 20);
    unsigned x = 1;
    for (size_t i = 0; i < 1 << 20; i++)
        mib[i] = i % 512 == 511  ? '\n'
                 : i % 2         ? ','
                 : i % 4096 < 30 ? (char)('0' + ((x = x * 1664525 + 1013904223) >> 24) % 10)
                                 : '0';
    for (int k = 0; k < N_PACKER; k++) {
        cdmpp_err err = {0};
        cd_file_lines *l = NULL;
        char *line = NULL;
        size_t len = 0;
        long lines = 0;
        const char *path = put_members(&d, packers[k].pack, mib, 100);
        cdmpp_status st = cd_file_lines_open(path, 0, &l, &err);
        while (!st && !(st = cd_file_lines_next(l, &line, &len, &err)) && line) lines++;
        assert_ok(st);
        assert_int_equal(lines, 100 * 2048);
        cd_file_lines_close(l);
    }
    free(mib);
    tmp_remove(&d);
}

/* A decoder that asks for more memory than there may be: a header is enough. */
TEST(memory_of_decoders) {
    tmp_dir d = tmp_make();
    cdmpp_err err = {0};
    char *data = NULL;
    size_t n = 0, at = 0;
    /* a frame with a window of 2 GiB */
    const unsigned char zst[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x03, 0x00, 0x00, 'a'};
    assert_status(cd_file_read(tmp_put(&d, "w.zst", zst, sizeof zst), 0, &data, &n, &err),
                  CDMPP_ERANGE);
    assert_non_null(strstr(err.msg, "a window of more than 128 MiB"));
    unsigned char xz[256];
    lzma_options_lzma o;
    assert_false(lzma_lzma_preset(&o, 0));
    o.dict_size = 1U << 30;
    lzma_filter f[] = {{LZMA_FILTER_LZMA2, &o}, {LZMA_VLI_UNKNOWN, NULL}};
    lzma_block block = {.version = 1,
                        .check = LZMA_CHECK_NONE,
                        .filters = f,
                        .compressed_size = LZMA_VLI_UNKNOWN,
                        .uncompressed_size = LZMA_VLI_UNKNOWN};
    const lzma_stream_flags flags = {.version = 0, .check = LZMA_CHECK_NONE};
    assert_int_equal(lzma_stream_header_encode(&flags, xz), LZMA_OK);
    assert_int_equal(lzma_block_header_size(&block), LZMA_OK);
    assert_int_equal(lzma_block_header_encode(&block, xz + LZMA_STREAM_HEADER_SIZE), LZMA_OK);
    at = LZMA_STREAM_HEADER_SIZE + block.header_size;
    xz[at++] = 0;
    assert_status(cd_file_read(tmp_put(&d, "d.xz", xz, at), 0, &data, &n, &err), CDMPP_ERANGE);
    assert_non_null(strstr(err.msg, "more than 160 MiB"));
    tmp_remove(&d);
}

TESTS(NULL, NULL, lines_of_every_packing, byte_by_byte, cut_off, flipped_bit, line_ends,
      byte_order_mark, long_lines, progress_counts_packed_bytes, standard_input, unreadable,
      read_whole, digest_of_file, failing_at_every_allocation, expansion, lines_that_are_too_many,
      expansion_of_a_sparse_table, memory_of_decoders)
