/* safetensors: the bytes of a file as the format's text says, and what is refused. */
#include <string.h>

#include "check.h"
#include "learner/tensor/tensor.h"

static cdmpp_err err;
static float a[6] = {1, 2, 3, 4, 5, 6}, b[2] = {-1, 0.5f};
static const cd_tensor tensor[] = {{"a", 2, {2, 3}, a}, {"b", 1, {2, 1}, b}};

/* Length of the header, the header padded to eight bytes, the values one behind the other. */
static void test_bytes(void **state) {
    static const char header[] =
        "{\"__metadata__\":{\"k\":\"v\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":"
        "[0,24]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}}";
    cd_buf out = {0};
    uint64_t size;
    (void)state;
    cd_safetensors_write(&out, tensor, 2, "{\"k\":\"v\"}");
    memcpy(&size, out.p, 8);
    assert_int_equal(size, (sizeof header - 1 + 7) / 8 * 8);
    assert_memory_equal(out.p + 8, header, sizeof header - 1);
    for (size_t k = sizeof header - 1; k < size; k++) assert_int_equal(out.p[8 + k], ' ');
    assert_int_equal(out.n, 8 + size + 32);
    assert_memory_equal(out.p + 8 + size, a, 24);
    assert_memory_equal(out.p + 8 + size + 24, b, 8);
    cd_buf_free(&out);
}

static void test_read_again(void **state) {
    cd_buf out = {0};
    cd_arena mem = {0};
    cd_safetensors f;
    float got[6];
    static const size_t d23[] = {2, 3};
    static const size_t d32[] = {3, 2};
    static const size_t d2[] = {2};
    static const size_t d6[] = {6};
    static const size_t d231[] = {2, 3, 1};
    static const size_t d22[] = {2, 2};
    (void)state;
    cd_safetensors_write(&out, tensor, 2, NULL);
    assert_ok(cd_safetensors_open(&mem, out.p, out.n, &f, &err));
    assert_int_equal(cd_safetensors_count(&f), 2);
    assert_ok(cd_safetensors_get(&f, "a", 2, d23, got, &err));
    assert_memory_equal(got, a, sizeof a);
    assert_ok(cd_safetensors_get(&f, "b", 1, d2, got, &err));
    assert_memory_equal(got, b, sizeof b);
    assert_null(cd_safetensors_meta(&f, "k"));
    assert_status(cd_safetensors_get(&f, "c", 1, d2, got, &err), CDMPP_EMODEL);
    assert_status(cd_safetensors_get(&f, "a", 2, d32, got, &err), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "[3,2]"));
    assert_status(cd_safetensors_get(&f, "a", 2, d22, got, &err), CDMPP_EMODEL);
    assert_status(cd_safetensors_get(&f, "a", 1, d6, got, &err), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "[6]"));
    assert_status(cd_safetensors_get(&f, "a", 3, d231, got, &err), CDMPP_EMODEL);
    cd_arena_free(&mem);
    cd_buf_free(&out);
}

/* A header of text, padded, before 8 bytes of data. */
static cdmpp_status get(const char *header, size_t n_data) {
    static const size_t dim[] = {2};
    cd_buf file = {0};
    cd_arena mem = {0};
    cd_safetensors f;
    float got[2];
    const uint64_t size = strlen(header);
    cd_buf_put(&file, (const char *)&size, 8);
    cd_buf_puts(&file, header);
    cd_buf_put(&file, (const char *)a, n_data);
    cdmpp_status st = cd_safetensors_open(&mem, file.p, file.n, &f, &err);
    if (!st) st = cd_safetensors_get(&f, "t", 1, dim, got, &err);
    if (!st) assert_memory_equal(got, a, 8);
    cd_arena_free(&mem);
    cd_buf_free(&file);
    return st;
}

static void test_refused(void **state) {
    cd_arena mem = {0};
    cd_safetensors f;
    (void)state;
#define T(type, shape, offsets)                                                                    \
    "{\"t\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
    assert_ok(get(T("F32", "[2]", "[0,8]"), 8));
    assert_ok(get(T("F32", "[2]", "[0,8]"), 12));
    assert_status(get(T("F16", "[2]", "[0,8]"), 8), CDMPP_EMODEL);
    assert_status(get(T("F32", "[-2]", "[0,8]"), 8), CDMPP_EMODEL);
    assert_status(get(T("F32", "[2.0]", "[0,8]"), 8), CDMPP_EMODEL);
    assert_status(get(T("F32", "2", "[0,8]"), 8), CDMPP_EMODEL);
    assert_status(get(T("F32", "[2]", "[0,8]"), 7), CDMPP_EPARSE);
    assert_status(get(T("F32", "[2]", "[1,8]"), 8), CDMPP_EPARSE);
    assert_status(get(T("F32", "[2]", "[8,0]"), 8), CDMPP_EPARSE);
    assert_status(get(T("F32", "[2]", "[4,12]"), 8), CDMPP_EPARSE);
    assert_status(get(T("F32", "[2]", "[-8,0]"), 8), CDMPP_ERANGE);
    assert_status(get(T("F32", "[2]", "[0]"), 8), CDMPP_ESCHEMA);
    assert_status(get("{}", 8), CDMPP_EMODEL);
    assert_status(get("[]", 8), CDMPP_EPARSE);
    assert_status(get("{", 8), CDMPP_EPARSE);
    assert_status(cd_safetensors_open(&mem, "1234567", 7, &f, &err), CDMPP_EPARSE);
    const uint64_t one_more = 3;
    char bytes[10] = {0};
    memcpy(bytes, &one_more, 8);
    memcpy(bytes + 8, "{}", 2);
    assert_status(cd_safetensors_open(&mem, bytes, sizeof bytes, &f, &err), CDMPP_EPARSE);
    bytes[0] = 2;
    assert_ok(cd_safetensors_open(&mem, bytes, sizeof bytes, &f, &err));
    assert_int_equal(f.n_data, 0);
    cd_arena_free(&mem);
}

TESTS(NULL, NULL, test_bytes, test_read_again, test_refused)
