/* MD5 against the examples of RFC 1321, and lengths around a block. */
#include <string.h>

#include "base/core/core.h"
#include "check.h"

/* RFC 1321, A.5, and lengths around a block's end against coreutils' md5sum. */
TEST(test_vectors) {
    static const struct {
        const char *text, *hash;
    } rfc[] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"},
    };
    char h[33], xs[200];
    for (size_t i = 0; i < sizeof rfc / sizeof *rfc; i++) {
        cd_md5_hex(rfc[i].text, strlen(rfc[i].text), h);
        assert_string_equal(h, rfc[i].hash);
    }
    memset(xs, 'x', sizeof xs);
    cd_md5_hex(xs, 55, h);
    assert_string_equal(h, "04364420e25c512fd958a70738aa8f72");
    cd_md5_hex(xs, 56, h);
    assert_string_equal(h, "668a72d5ba17f08e62dabcafad6db14b");
    cd_md5_hex(xs, 64, h);
    assert_string_equal(h, "c1bb4f81d892b2d57947682aeb252456");
    cd_md5_hex(xs, 119, h);
    assert_string_equal(h, "ab347a5f68c8a443cfcddc633f12c24f");
}

TESTS(NULL, NULL, test_vectors)
