/* Pickles: what TVM writes is read in every protocol; everything else is refused
 * by name, and nothing a file says makes memory grow past its size. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "base/io/io.h"
#include "features/task/task.h"
#include "features/tvm/tvm.h"

#define SEEDS "tests/fuzz/seeds/pickle/"

static cdmpp_status load(const char *p, size_t n, cdmpp_err *err) {
    cd_arena a = {0};
    const cd_unpickle_value *top;
    const cdmpp_status st = cd_unpickle(&a, p, n, &top, err);
    cd_arena_free(&a);
    return st;
}

TEST(protocols_agree) {
    static const char *const path[] = {SEEDS "gru_p4.pkl", SEEDS "fork_p3.pkl",
                                       SEEDS "list_p2.pkl"};
    const cd_te_dag *first = NULL;
    cd_task_registry *t[3];
    cdmpp_err err = {0};
    for (size_t k = 0; k < 3; k++) {
        assert_ok(cd_task_registry_new(&t[k], &err));
        assert_ok(cd_task_registry_load(t[k], path[k], &err));
        assert_int_equal(cd_task_registry_count(t[k]), 1);
        const cd_task *task = cd_task_registry_at(t[k], 0);
        assert_non_null(task->dag);
        assert_string_equal(task->target, "llvm -keys=cpu -link-params=0");
        assert_string_equal(task->target_kind, "llvm");
        assert_int_equal(task->hardware.vector_unit_bytes, 64);
        if (!first) first = task->dag;
        assert_true(cd_te_dag_equal(first, task->dag));
    }
    assert_int_equal(cd_task_registry_network_count(t[0]), 1); /* (tasks, weights) */
    assert_int_equal(cd_task_registry_network(t[0], 0)->weight[0], 7);
    assert_int_equal(cd_task_registry_network_count(t[2]), 0); /* a list alone */
    for (size_t k = 0; k < 3; k++) cd_task_registry_free(t[k]);
}

/* As Python would write it, but long texts by their length. */
static void put(cd_buf *b, const cd_unpickle_value *v) {
    static const char *const open[] = {
        [CD_UNPICKLE_TUPLE] = "(", [CD_UNPICKLE_LIST] = "[", [CD_UNPICKLE_DICT] = "{"};
    switch (v->kind) {
    case CD_UNPICKLE_NONE: cd_buf_puts(b, "None"); break;
    case CD_UNPICKLE_BOOL: cd_buf_puts(b, v->u.i ? "True" : "False"); break;
    case CD_UNPICKLE_INT: cd_buf_putf(b, "%lld", (long long)v->u.i); break;
    case CD_UNPICKLE_REAL: cd_buf_putf(b, "%g", v->u.f); break;
    case CD_UNPICKLE_STR:
    case CD_UNPICKLE_BYTES:
        if (v->u.s.n > 9) cd_buf_putf(b, "%s%zu", v->kind == CD_UNPICKLE_STR ? "" : "b", v->u.s.n);
        else
            cd_buf_putf(b, "%s'%.*s'", v->kind == CD_UNPICKLE_STR ? "" : "b", (int)v->u.s.n,
                        v->u.s.p);
        break;
    case CD_UNPICKLE_TUPLE:
    case CD_UNPICKLE_LIST:
    case CD_UNPICKLE_DICT:
        cd_buf_puts(b, open[v->kind]);
        for (uint32_t k = 0; k < v->n; k++) {
            cd_buf_puts(b, k ? " " : "");
            put(b, v->u.item[k]);
        }
        break;
    default: cd_buf_puts(b, "?");
    }
}

/* Written by Python's pickle: numbers of all lengths, texts, containers, an object that occurs
 * twice. Protocol 2 has no bytes. */
TEST(values_are_pythons) {
    static const char want[] =
        "[1 -1 255 256 65535 70000 -70000 2147483647 1099511627776 -8589934592 9223372036854775807 "
        "-9223372036854775808 1.5 -0.1 True False None 'a' 260 "
        "%s( (1 (1 2 (1 2 3 (1 2 3 4 {'a' 1 'b' [2 [ { ['s' ['s'";
    for (int protocol = 2; protocol <= 4; protocol++) {
        cdmpp_err err = {0};
        cd_arena a = {0};
        const cd_unpickle_value *top;
        cd_buf b = {0};
        char path[80], *text, expected[400];
        size_t n;
        snprintf(path, sizeof path, SEEDS "values_p%d.pkl", protocol);
        snprintf(expected, sizeof expected, want, protocol == 2 ? "" : "b'xy' b300 ");
        assert_ok(cd_file_read(path, 0, &text, &n, &err));
        assert_ok(cd_unpickle(&a, text, n, &top, &err));
        put(&b, top);
        assert_string_equal(b.p, expected);
        assert_int_equal(top->u.item[top->n - 1]->n, 1);
        const cd_unpickle_value *dict = top->u.item[top->n - 5];
        assert_int_equal(cd_unpickle_get(dict, "a")->u.i, 1);
        assert_null(cd_unpickle_get(dict, "c"));
        assert_null(cd_unpickle_get(top, "a"));
        cd_buf_free(&b);
        cd_arena_free(&a);
        cd_mem_free(text);
    }
}

TEST(refuses_calls_by_name) {
    static const char by_global[] = "\x80\x03"
                                    "cos\nsystem\nX\x04\0\0\0true\x85R.";
    static const char class_called[] = "\x80\x03"
                                       "ctvm.runtime.object\nObject\n)R.";
    static const char maker_as_class[] = "\x80\x03"
                                         "ctvm.runtime.object\n_new_object\n)\x81.";
    cdmpp_err err = {0};
    char *text;
    size_t n;
    assert_ok(cd_file_read(SEEDS "system.pkl", 0, &text, &n, &err));
    assert_status(load(text, n, &err), CDMPP_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "posix.system"));
    cd_mem_free(text);
    assert_status(load(by_global, sizeof by_global - 1, &err), CDMPP_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "calls os.system"));
    assert_status(load(class_called, sizeof class_called - 1, &err), CDMPP_EUNSUPPORTED);
    assert_status(load(maker_as_class, sizeof maker_as_class - 1, &err), CDMPP_EUNSUPPORTED);
}

#define OBJECT "ctvm.runtime.object\nObject\n"
#define MAKER  "ctvm.runtime.object\n_new_object\n"

TEST(refuses_broken) {
    static const struct {
        const char *p;
        size_t n;
        cdmpp_status want;
    } bad[] = {
#define B(s, want) {s, sizeof(s) - 1, want}
        B("", CDMPP_EPARSE),
        B("{}", CDMPP_EPARSE),
        B("\x80\x07N.", CDMPP_EUNSUPPORTED),             /* protocol */
        B("\x80\x04N", CDMPP_EPARSE),                    /* no STOP */
        B("\x80\x04.", CDMPP_EPARSE),                    /* empty stack */
        B("\x80\x04NN.", CDMPP_EPARSE),                  /* two results */
        B("\x80\x04(N.", CDMPP_EPARSE),                  /* open mark */
        B("\x80\x04t.", CDMPP_EPARSE),                   /* no mark */
        B("\x80\x04(\x85.", CDMPP_EPARSE),               /* tuple across a mark */
        B("\x80\x04h\x05.", CDMPP_EPARSE),               /* memo */
        B("\x80\x04Nr\xff\xff\xff\xff.", CDMPP_EPARSE),  /* far memo entry */
        B("\x80\x04X\xff\xff\xff\xffzz.", CDMPP_EPARSE), /* long string */
        B("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xffzz.", CDMPP_EPARSE),
        B("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xffN.", CDMPP_EPARSE),
        B("\x80\x04\x8a\x09"
          "123456789.",
          CDMPP_ERANGE),                    /* 9-byte integer */
        B("\x80\x04}(Nu.", CDMPP_EPARSE),   /* key without value */
        B("\x80\x04N(Ne.", CDMPP_EPARSE),   /* append to None */
        B("\x80\x04NNb.", CDMPP_EPARSE),    /* state of None */
        B("\x80\x04NN\x93.", CDMPP_EPARSE), /* class named None */
        B("\x80\x04"
          "ctvm.runtime",
          CDMPP_EPARSE),
        B("\x80\x04P0\n.", CDMPP_EUNSUPPORTED), /* persistent id */
        B("\x80\x04\x97.", CDMPP_EUNSUPPORTED), /* out-of-band buffer */
        /* half a length, a number, an integer, a class, a protocol */
        B("\x80\x04X\x01", CDMPP_EPARSE),
        B("\x80\x04J\x01", CDMPP_EPARSE),
        B("\x80\x04\x8a", CDMPP_EPARSE),
        B("\x80\x04\x8a\x02\x01", CDMPP_EPARSE),
        B("\x80\x04G\0\0", CDMPP_EPARSE),
        B("\x80\x04"
          "cos\nsystem",
          CDMPP_EPARSE),
        B("\x80\x04\x80", CDMPP_EPARSE),
        B("\x80\x01N.", CDMPP_EUNSUPPORTED), /* protocol */
        B("\x80\x04q\0N.", CDMPP_EPARSE),    /* memo of nothing */
        B("\x80\x04N\x93.", CDMPP_EPARSE),   /* too few values */
        B("\x80\x04NR.", CDMPP_EPARSE),
        B("\x80\x04N)R.", CDMPP_EPARSE),          /* a call of None */
        B("\x80\x04" OBJECT "NR.", CDMPP_EPARSE), /* without a tuple */
        /* of no class, of None, of itself, of two */
        B("\x80\x04" MAKER ")R.", CDMPP_EPARSE),
        B("\x80\x04" MAKER "N\x85R.", CDMPP_EPARSE),
        B("\x80\x04" MAKER MAKER "\x85R.", CDMPP_EPARSE),
        B("\x80\x04" MAKER OBJECT OBJECT "\x86R.", CDMPP_EPARSE),
        B("\x80\x04X\x01\0\0\0aN\x93.", CDMPP_EPARSE), /* a class named None */
        /* names that nearly are */
        B("\x80\x04"
          "ctvm.runtime.objecX\nObject\n.",
          CDMPP_EUNSUPPORTED),
        B("\x80\x04"
          "ctvm.runtime.object\nObjecX\n.",
          CDMPP_EUNSUPPORTED),
        B("\x80\x04"
          "ctvm.runtime.objec\nt.Object\n.",
          CDMPP_EUNSUPPORTED),
        B("\x80\x04" MAKER OBJECT "\x85R.", CDMPP_OK),
        /* the memo by a long number, and overwritten */
        B("\x80\x04Nq\0j\0\0\0\0q\0\x86.", CDMPP_OK),
        B("\x80\x04\x8e\x01\0\0\0\0\0\0\0b.", CDMPP_OK),
        B("\x80\x04\x8a\0.", CDMPP_OK),
#undef B
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        cdmpp_err err = {0};
        const cdmpp_status st = load(bad[k].p, bad[k].n, &err);
        if (st != bad[k].want) print_error("case %zu: %s\n", k, err.msg);
        assert_int_equal(st, bad[k].want);
        assert_true(!st || err.msg[0] != '\0');
        assert_int_equal(load(bad[k].p, bad[k].n, NULL), bad[k].want);
    }
}

/* One byte of file must not become a value each: 4 MB of "]" or "h\0". */
TEST(memory_is_bounded) {
    const size_t n = 4 << 20;
    char *p = malloc(n);
    cdmpp_err err = {0};
    assert_non_null(p);
    for (int kind = 0; kind < 4; kind++) {
        memcpy(p, "\x80\x04Nq\0", 5);
        for (size_t i = 5; i + 1 < n; i += 2)
            memcpy(p + i, kind == 0 ? "]]" : kind == 1 ? "h\0" : kind == 2 ? "((" : "\x94\x94", 2);
        assert_status(load(p, n, &err), CDMPP_ERANGE);
    }
    free(p);
}

/* Nor may a value that is named again and again fill lists: 6 times 10,000 of 2 bytes each. */
TEST(items_are_bounded) {
    cd_buf b = {0};
    cdmpp_err err = {0};
    cd_buf_put(&b, "\x80\x04Nq\0", 5);
    cd_buf_puts(&b, "]");
    for (int k = 0; k < 6; k++) {
        cd_buf_puts(&b, "(");
        for (int i = 0; i < 10000; i++) cd_buf_put(&b, "h\0", 2);
        cd_buf_puts(&b, "e");
    }
    cd_buf_puts(&b, ".");
    assert_status(load(b.p, b.n, &err), CDMPP_ERANGE);
    assert_non_null(strstr(err.msg, "values in a file of this size"));
    cd_buf_free(&b);
}

TEST(cut_anywhere) {
    cdmpp_err err = {0};
    char *text;
    size_t n;
    assert_ok(cd_file_read(SEEDS "gru_p4.pkl", 0, &text, &n, &err));
    for (size_t k = 0; k < n; k += 7) {
        char *cut = malloc(k ? k : 1);
        assert_non_null(cut);
        memcpy(cut, text, k);
        assert_status(load(cut, k, &err), CDMPP_EPARSE);
        free(cut);
    }
    cd_mem_free(text);
}

TESTS(NULL, NULL, protocols_agree, values_are_pythons, refuses_calls_by_name, refuses_broken,
      memory_is_bounded, items_are_bounded, cut_anywhere)
