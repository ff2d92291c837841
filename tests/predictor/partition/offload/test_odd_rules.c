/* Odd rules of devices that run some operators. */
#include "odd.h"
#include "predictor/partition/offload/offload_rules.h"

static cdmpp_status rules(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_offload_rules *r = NULL;
    (void)ctx;
    const cdmpp_status st = cd_offload_parse("r.rules", text, n, &r, err);
    cd_offload_free(r);
    return st;
}

TEST(files) {
    odd_all(
        "# a little npu\nhost cpu\nsupport npu conv2d add|relu where dtype=float32 "
        "groups=1\npattern npu block: conv2d -> bias_add? -> relu|tanh\n"
        "pattern npu two: dense -> add\nrefuse npu conv2d where kernel>=7\nplace stem.bias npu\n",
        rules, NULL);
}

enum { MAX_DEVICE = 8 };
#define HOST "host cpu\n"
/* Line and reason of what is refused. */
static const struct {
    const char *text;
    long line;
    const char *msg;
} refused[] = {
    {"", 1, "no line: the first one must name the host"},
    {"support npu add\n", 1, "the first line must name the host"},
    {HOST "host gpu\n", 2, "host must be the first line, once"},
    {"host cpu gpu\n", 1, "\"gpu\" behind the host's name"},
    {HOST "place stem\n", 2, "place stem: no device"},
    {HOST "place stem npu now\n", 2, "\"now\" behind the device"},
    {HOST "place stem npu\n", 2, "place stem npu: no support or pattern line of npu"},
    {HOST "refuse cpu add\n", 2, "refuse cpu: the host must run everything"},
    {HOST "support npu\n", 2, "no operator"},
    {HOST "support npu where groups=1\n", 2, "no operator"},
    {HOST "support npu add where\n", 2, "no condition behind where"},
    {HOST "pattern npu p: add? -> relu\n", 2, "the first operator of a pattern may not be missing"},
    {HOST "pattern npu p: add relu\n", 2, "\"relu\": expected -> or where"},
    {HOST "pattern npu p: add ->\n", 2, "no operator behind ->"},
    {HOST "pattern npu p add\n", 2, "\"p\": expected a pattern's name and a colon"},
    {HOST "support npu add where groups\n", 2,
     "condition \"groups\": expected key, one of = != < <= > >= %, value"},
    {HOST "support npu add where groups =\n", 2,
     "condition \"groups\": expected key, one of = != < <= > >= %, value"},
    {HOST "support npu add where groups < many \r\n", 2,
     "condition groups: \"many\": expected a number"},
    {HOST "support npu add where groups<nan\n", 2, "condition groups: \"nan\": expected a number"},
    {HOST "support npu add where groups%0\n", 2, "condition groups: \"0\": expected a number"},
    {HOST "pattern npu p: add -> relu where 3.groups=1\n", 2,
     "condition 3.groups: operator 3 of 2"},
    {HOST "pattern npu p: add -> relu where 0.groups=1\n", 2,
     "condition 0.groups: operator 0 of 2"},
    {HOST "format cpu dtype=int8\n", 2,
     "format cpu: the host's values are float32, as the network was loaded"},
    {HOST "format npu\n", 2, "format npu: expected dtype=, layout= or rate="},
    {HOST "format npu dtype\n", 2, "\"dtype\": expected dtype=, layout= or rate="},
    {HOST "format npu size=3\n", 2, "\"size\": expected dtype=, layout= or rate="},
    {HOST "format npu dtype=int8 dtype=int8\n", 2, "dtype twice"},
    {HOST "format npu dtype=int4\n", 2,
     "dtype \"int4\": expected one of int8|float16|bfloat16|float32"},
    {HOST "format npu rate=fast\n", 2, "rate \"fast\": expected bytes a second"},
    {HOST "format npu rate=1GB\n", 2, "rate \"1GB\": expected bytes a second"},
    {HOST "format npu rate=inf\n", 2, "rate \"inf\": expected bytes a second"},
    {HOST "format npu dtype=int8\nformat dsp layout=nhwc\nformat npu rate=1e9\n", 4,
     "format npu: line 2 has one already"},
    {HOST "support npu add relu\nrefuse npu conv2d relu\n", 3,
     "refuse npu relu contradicts line 2, which says the opposite under the same conditions"},
    {HOST "refuse npu relu where groups=1\nsupport npu relu where groups=1\n", 3,
     "support npu relu contradicts line 2, which says the opposite under the same conditions"},
    {HOST "support npu a b c d e f g h i j k l m n o p q\n", 2, "more than 16 operators"},
};

TEST(mistakes) {
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        cdmpp_err err = {0};
        const cdmpp_status st = rules(NULL, refused[i].text, strlen(refused[i].text), &err);
        if (!st || err.line != refused[i].line || strcmp(err.msg, refused[i].msg))
            fail_msg("%s\n%d, line %ld: %s", refused[i].text, (int)st, err.line, err.msg);
        assert_string_equal(err.path, "r.rules");
    }
    cdmpp_err err = {0};
    assert_status(rules(NULL, "host cpu\n\0", 10, &err), CDMPP_EPARSE);
    assert_string_equal(err.msg, "a zero byte");
    cd_buf b = {0};
    cd_buf_puts(&b, HOST);
    for (int i = 1; i <= MAX_DEVICE; i++) cd_buf_putf(&b, "support d%d add\n", i);
    assert_status(rules(NULL, b.p, b.n, &err), CDMPP_EINVALID);
    assert_int_equal(err.line, MAX_DEVICE + 1);
    cd_buf_free(&b);
}

/* Lines that contradict each other only at first sight. */
TEST(taken) {
    static const char *const text[] = {
        HOST "support npu add\nrefuse npu relu\n",
        HOST "support npu add\nrefuse dsp add\n",
        HOST "support npu add where groups=1\nrefuse npu add\n",
        HOST "support npu add\nrefuse npu add where groups=1\n",
        HOST "support npu add where groups = 1\nrefuse npu add where groups = 2\n",
        HOST "pattern npu p: add -> relu? where 2.groups >= 1 , kernel!=3\nplace stem npu\n",
        HOST "format npu dtype=int8 layout=nhwc rate=1e9\n",
    };
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        cdmpp_err err = {0};
        assert_ok(rules(NULL, text[i], strlen(text[i]), &err));
    }
}

TEST(from_a_file) {
    cd_offload_rules *r = NULL;
    cdmpp_err err = {0};
    const char *path = "build/odd.rules";
    assert_status(cd_offload_read("build/none.rules", &r, &err), CDMPP_EIO);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(HOST "format npu layout=nhwc rate=2e9\n", f) >= 0 && !fclose(f));
    assert_ok(cd_offload_read(path, &r, &err));
    assert_string_equal(cd_offload_format(r, 1, "rate"), "2e9");
    assert_null(cd_offload_format(r, 1, "dtype"));
    cd_offload_free(r);
    unlink(path);
}

TESTS(NULL, NULL, files, mistakes, taken, from_a_file)
