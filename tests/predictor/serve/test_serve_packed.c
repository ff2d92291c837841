/* The stream of TVM's packed features: the library's scores, and frames that make no sense among
 * good ones. */
#include "check.h"
#include "made_serve.h"

static void put_u32(cd_buf *b, uint32_t v) {
    const char byte[4] = {(char)v, (char)(v >> 8), (char)(v >> 16), (char)(v >> 24)};
    cd_buf_put(b, byte, 4);
}

static void put_frame(cd_buf *b, const char *p, size_t n) {
    put_u32(b, (uint32_t)n);
    cd_buf_put(b, p, n);
}

static uint32_t get_u32(const char *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v); /* the tests run where the model file's numbers are native */
    return v;
}

/* One answer at *p: the scores of the library, or an error that says `want`. */
static void assert_scores(const char **p) {
    assert_int_equal(get_u32(*p), all.n);
    assert_memory_equal(*p + 4, out.score_f32, all.n * sizeof(float));
    *p += 4 * (1 + all.n);
}

static void assert_error_frame(const char **p, const char *want) {
    assert_true(get_u32(*p) == UINT32_MAX);
    const size_t n = get_u32(*p + 4);
    char text[400] = "";
    assert_true(n < sizeof text);
    memcpy(text, *p + 8, n);
    if (!strstr(text, want)) fail_msg("%s, expected %s", text, want);
    *p += 8 + n;
}

static void frames(void **state) {
    (void)state;
    cd_buf in = {0};
    size_t n;
    const char zero[12] = {0};
    score(MADE_TREES);
    put_frame(&in, all.packed.p, all.packed.n);
    put_frame(&in, "", 0);
    put_frame(&in, "\x05\0\0\0", 4);
    put_frame(&in, all.packed.p, all.packed.n - 1);
    put_frame(&in, "\xff\xff\xff\x7f\0\0\0\0\0\0\0\0", 12);
    put_frame(&in, zero, sizeof zero);
    put_u32(&in, 3000000); /* longer than allowed, but there */
    for (int i = 0; i < 3000000; i++) cd_buf_put(&in, "z", 1);
    put_frame(&in, all.packed.p, all.packed.n);
    put_u32(&in, 100);
    cd_buf_put(&in, "half", 4);
    run r = {
        .format = CD_SERVE_PACKED, .device = "zen5-avx512", .max_bytes = 2000000, .cache = 1000};
    char *got = answers(&r, in.p, in.n, &n);
    const char *p = got;
    assert_scores(&p);
    assert_error_frame(&p, "{\"code\":\"EPARSE\",\"message\":\"packed features: expected at least "
                           "12 bytes, found 0\"}");
    assert_error_frame(&p, "4 bytes end inside the sizes of 5 candidates");
    assert_error_frame(&p, "EPARSE");
    assert_error_frame(&p, "end inside the sizes of 2147483647 candidates");
    assert_true(get_u32(p) == 0);
    p += 4;
    assert_error_frame(
        &p, "\"ERANGE\",\"message\":\"frame: expected at most 2000000 bytes, found 3000000\"");
    assert_scores(&p);
    assert_error_frame(&p, "the input ends inside a frame");
    assert_int_equal(p - got, n);
    assert_int_equal(r.st, CDMPP_OK);
    assert_true(r.stats.scored == 2 * all.n && r.stats.bad == 6 && r.stats.cache_found == all.n);
    cd_mem_free(got);
    cd_buf_free(&in);
}

/* A candidate that TVM could not lower gets 0 and counts as bad; its neighbours are scored. */
static void not_lowered(void **state) {
    (void)state;
    cd_buf b = {0}, in = {0};
    const size_t n_row = (size_t)all.row_ptr[1];
    const float k = (float)n_row;
    score(MADE_TREES);
    put_u32(&b, 2);
    put_u32(&b, 0);
    put_u32(&b, 1 + CD_N_COL * (uint32_t)n_row);
    put_u32(&b, 0);
    put_u32(&b, 0);
    cd_buf_put(&b, (const char *)&k, sizeof k);
    cd_buf_put(&b, (const char *)all.rows, n_row * CD_N_COL * sizeof k);
    put_frame(&in, b.p, b.n);
    run r = {.format = CD_SERVE_PACKED, .device = "zen5-avx512"};
    size_t n;
    char *got = answers(&r, in.p, in.n, &n);
    assert_int_equal(n, 12);
    assert_true(get_u32(got) == 2 && get_u32(got + 4) == 0);
    assert_memory_equal(got + 8, out.score_f32, sizeof(float));
    assert_true(r.stats.bad == 1 && r.stats.reason[CDMPP_EREJECTED] == 1 && r.stats.scored == 1);
    cd_mem_free(got);
    cd_buf_free(&b);
    cd_buf_free(&in);
}

TESTS(setup, teardown, frames, not_lowered)
