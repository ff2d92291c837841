/* oprecord: tables of operators as NeuSight and spreadsheets write them. */
#include "features/operators/operators.h"
#include "check.h"
#include "tmp.h"

#include <string.h>

typedef struct {
    tmp_dir dir;
    cd_op_reader *r;
    cd_library_op_record o;
    const char *device;
    bool more;
    cdmpp_err err;
} fixture;

static cdmpp_status start(fixture *f, const char *text) {
    *f = (fixture){.dir = tmp_make()};
    return cd_library_op_reader_open(tmp_put(&f->dir, "t.csv", text, strlen(text)), &f->r, &f->err);
}

static cdmpp_status next(fixture *f) {
    return cd_library_op_reader_next(f->r, &f->o, &f->device, &f->more, &f->err);
}

static void stop(fixture *f) {
    cd_op_reader_close(f->r);
    tmp_remove(&f->dir);
}

TEST(all_operators) {
    fixture f;
    cdmpp_err err = {0};
    assert_ok(start(&f, "OPName,Latency,Device,B,M,N,K,H,Input_Channel,Output_Channel,Kernel_Szie,"
                        "Input_Size,Stride,Padding\n"
                        "bmm,2.5,Tesla T4,12,64,128,256,,,,,,,\n"
                        "linear,0.1,Tesla T4,,32,768,3072,,,,,,,\n"
                        "Softmax,1e-2,H100,8192,,,,1024,,,,,,\n"
                        "conv,3,H100,2,,,,,16,32,3,56,2,1\n"));
    assert_ok(next(&f));
    assert_int_equal(f.o.kind, CD_LIBRARY_OP_BMM);
    assert_string_equal(f.device, "Tesla T4");
    assert_true(f.o.b == 12 && f.o.m == 64 && f.o.k == 128 && f.o.n == 256);
    assert_close(f.o.latency_s, 2.5e-3, 1e-15, 0);
    assert_ok(next(&f));
    assert_true(f.o.kind == CD_LIBRARY_OP_LINEAR && f.o.b == 1 && f.o.m == 32 && f.o.k == 768 &&
                f.o.n == 3072);
    assert_ok(next(&f));
    assert_true(f.o.kind == CD_LIBRARY_OP_SOFTMAX && f.o.m == 8192 && f.o.n == 1024 && f.o.k == 1);
    assert_ok(next(&f));
    assert_true(f.o.kind == CD_LIBRARY_OP_CONV && f.o.m == 2 * 28 * 28 && f.o.n == 32 &&
                f.o.k == 16 * 9 && f.o.stride == 2);
    assert_ok(next(&f));
    assert_false(f.more);
    assert_ok(next(&f)); /* and stays at the end */
    assert_false(f.more);
    stop(&f);
}

TEST(quotes_and_line_ends) {
    fixture f;
    cdmpp_err err = {0};
    assert_ok(start(&f, "\xef\xbb\xbf \"Kernel Name\" ,opname,H,b,DEVICE\r\n"
                        "\"void f<float, 4>(int, \"\"x\"\")\",add, 768 ,16,\"A, B\"\r\n"
                        "\r\n"
                        "plain,relu,1,1,\n"
                        ",tanh,3,2,x"));
    assert_ok(next(&f));
    assert_true(f.o.kind == CD_LIBRARY_OP_ADD && f.o.m == 16 && f.o.n == 768 && f.o.latency_s == 0);
    assert_string_equal(f.device, "A, B");
    assert_ok(next(&f));
    assert_true(f.o.kind == CD_LIBRARY_OP_RELU && f.device[0] == 0 && cd_op_reader_line(f.r) == 4);
    assert_ok(next(&f)); /* the last line needs no end */
    assert_true(f.more && f.o.kind == CD_LIBRARY_OP_TANH && f.o.m == 2);
    stop(&f);
}

TEST(bad_lines_are_told_and_left) {
    static const struct {
        const char *line;
        cdmpp_status st;
        const char *key;
    } bad[] = {
        {"fft,1,8,8", CDMPP_EUNSUPPORTED, "OPName"},
        {",1,8,8", CDMPP_ESCHEMA, "OPName"},
        {"add,1,8", CDMPP_EPARSE, ""},
        {"add,1,8,8,8", CDMPP_EPARSE, ""},
        {"add,1,8,\"8", CDMPP_EPARSE, ""},
        {"add,-1,8,8", CDMPP_ERANGE, "Latency"},
        {"add,nan,8,8", CDMPP_ERANGE, "Latency"},
        {"add,1x,8,8", CDMPP_ERANGE, "Latency"},
        {"add,1,8.5,8", CDMPP_ERANGE, "B"},
        {"add,1,0,8", CDMPP_ERANGE, "B"},
        {"add,1,8,1e99", CDMPP_ERANGE, "H"},
        {"add,1,8,", CDMPP_ESCHEMA, "H"},
        {"bmm,1,8,8", CDMPP_ESCHEMA, "M"},
        {"add,1,8,eight", CDMPP_ESCHEMA, "H"},
    };
    fixture f;
    cdmpp_err err = {0};
    char text[1024] = "OPName,Latency,B,H\n";
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        strcat(text, bad[i].line);
        strcat(text, "\nmul,1,2,2\n");
    }
    assert_ok(start(&f, text));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err = (cdmpp_err){0};
        assert_status(cd_library_op_reader_next(f.r, &f.o, &f.device, &f.more, &err), bad[i].st);
        assert_true(f.more);
        assert_int_equal(err.line, 2 + 2 * (long)i);
        assert_non_null(strstr(err.path, "t.csv"));
        assert_string_equal(err.key, bad[i].key);
        assert_ok(next(&f));
        assert_int_equal(f.o.kind, CD_LIBRARY_OP_MUL);
    }
    stop(&f);
}

TEST(unknown_words_are_told_with_known_ones) {
    static const struct {
        const char *line, *text;
    } bad[] = {{"sofmax,", "unknown operator 'sofmax', did you mean 'softmax'?"},
               {"LINAER,", "unknown operator 'LINAER', did you mean 'linear'?"},
               {"fft,", "unknown operator 'fft'; known are bmm, linear, add, mul, pow, div, addu, "
                        "mulu, powu, divu, relu, gelu, tanh, softmax, ln, conv"},
               {"add,flaot16", "unknown type 'flaot16', did you mean 'float16'?"},
               {"add,int8", "unknown type 'int8'; known are float32, float16, bfloat16"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fixture f;
        char text[128];
        snprintf(text, sizeof text, "op,dtype,B,H\n%s,8,8\n", bad[i].line);
        cdmpp_err err = {0};
        assert_ok(start(&f, text));
        assert_status(next(&f), CDMPP_EUNSUPPORTED);
        assert_string_equal(f.err.msg, bad[i].text);
        stop(&f);
    }
}

TEST(bad_tables) {
    fixture f;
    cdmpp_err err = {0};
    assert_status(start(&f, ""), CDMPP_ESCHEMA);
    stop(&f);
    assert_status(start(&f, "Latency,B,H\n"), CDMPP_ESCHEMA);
    assert_int_equal(f.err.line, 1);
    stop(&f);
    assert_status(start(&f, "OPName,\"B\n"), CDMPP_EPARSE);
    stop(&f);
    f = (fixture){.dir = tmp_make()};
    assert_status(cd_library_op_reader_open(tmp_path(&f.dir, "none.csv"), &f.r, &err), CDMPP_EIO);
    stop(&f);
}

TEST(a_launch_is_read) {
    fixture f;
    cdmpp_err err = {0};
    assert_ok(start(&f,
                    "OPName,Latency,launch_ms,Grid x,Grid y,Grid z,Block x,Block y,Block z,B,H\n"
                    "add,2,0.5,3,4,5,32,4,1,8,8\n"
                    "add,2,,3,4,,32,4,1,8,8\n"
                    "add,2,3,3,4,5,32,4,1,8,8\n"
                    "add,2,-1,3,4,5,32,4,1,8,8\n"
                    "add,2,0,3,4,x,32,4,1,8,8\n"));
    assert_ok(next(&f));
    assert_true(f.o.blocks == 60 && f.o.block_threads == 128);
    assert_close(f.o.launch_s, 5e-4, 1e-12, 0);
    assert_ok(next(&f)); /* without a z nobody knows the grid */
    assert_true(f.o.blocks == 0 && f.o.block_threads == 128 && f.o.launch_s == 0);
    static const char *const key[] = {"launch_ms", "launch_ms", "Grid z"};
    for (size_t i = 0; i < 3; i++) {
        assert_true(cd_library_op_reader_next(f.r, &f.o, &f.device, &f.more, &err) != CDMPP_OK);
        assert_string_equal(err.key, key[i]);
    }
    stop(&f);
}

TEST(keys_tell_records_apart) {
    const cd_library_op_record a = {
        .kind = CD_LIBRARY_OP_ADD, .b = 1, .m = 4, .n = 8, .k = 1, .latency_s = 1};
    cd_library_op_record c = a;
    c.latency_s = 2;
    assert_true(cd_library_op_record_same(&a, &c) &&
                cd_library_op_record_key(&a, 3) == cd_library_op_record_key(&c, 3));
    assert_true(cd_library_op_record_key(&a, 3) != cd_library_op_record_key(&a, 4));
    c.m = 8, c.n = 4;
    assert_true(!cd_library_op_record_same(&a, &c) &&
                cd_library_op_record_key(&a, 3) != cd_library_op_record_key(&c, 3));
    c = a;
    c.kind = CD_LIBRARY_OP_MUL;
    assert_true(!cd_library_op_record_same(&a, &c) &&
                cd_library_op_record_key(&a, 3) != cd_library_op_record_key(&c, 3));
}

TESTS(NULL, NULL, all_operators, quotes_and_line_ends, bad_lines_are_told_and_left,
      unknown_words_are_told_with_known_ones, bad_tables, a_launch_is_read, keys_tell_records_apart)
