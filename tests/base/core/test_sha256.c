/* sha256 against the examples of FIPS 180-4, and against itself in pieces. */
#include "base/core/core.h"

#include <string.h>

#include "check.h"

static void hex_of(const char *s, size_t n, size_t step, char out[65]) {
    cd_sha256 h;
    cd_sha256_init(&h);
    for (size_t i = 0; i < n; i += step) cd_sha256_add(&h, s + i, n - i < step ? n - i : step);
    cd_sha256_hex(&h, out);
}

TEST(known_values) {
    char out[65];
    hex_of("", 0, 1, out);
    assert_string_equal(out, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hex_of("abc", 3, 3, out);
    assert_string_equal(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hex_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, 56, out);
    assert_string_equal(out, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

/* Every length around the block size, in one piece and in pieces of 1..70. */
TEST(pieces) {
    char text[200], whole[65], part[65];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)(i * 7 + 3);
    for (size_t n = 0; n <= sizeof text; n++) {
        hex_of(text, n, n ? n : 1, whole);
        for (size_t step = 1; step < 70; step++) {
            hex_of(text, n, step, part);
            assert_string_equal(part, whole);
        }
    }
}

/* Long texts in one piece and in pieces; lengths around blocks, any alignment, continued. */
TEST(long_pieces) {
    static char text[70000];
    char whole[65], part[65];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)(i * i >> 3);
    for (size_t n = 4000; n < sizeof text - 64; n += n < 4300 ? 1 : 4999) {
        hex_of(text + n % 64, n, n, whole);
        hex_of(text + n % 64, n, 999, part);
        assert_string_equal(part, whole);
        hex_of(text + n % 64, n, 5003, whole);
        assert_string_equal(part, whole);
    }
    hex_of(text, 65536, 65536, whole);
    assert_string_equal(whole, "5866d897a4d8c29d14dde58d68a298381a939c955aff9c50f7078564e4477450");
}

TESTS(NULL, NULL, known_values, pieces, long_pieces)
