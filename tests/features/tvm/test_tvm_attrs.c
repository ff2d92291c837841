/* A node graph with every kind of node, one attribute of it damaged at a time: refused at the node
 * that has it. */
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "features/tvm/tvm.h"
#include "fault.h"

/* "@name" is the number of that node, other values are texts; "~" in front of a text: any text is
 * one. data: names of nodes. */
typedef struct row {
    const char *name, *type, *attrs, *data;
} row;

/* argmax of a matrix along its rows, and a call on the second result. */
static const row argmax[] = {
    {"null", "", "", ""},
    {"root", "Array", "", "t_in t_at t_most t_out"},
    {"t_in", "Tensor", "op=@in value_index=0", ""},
    {"t_at", "Tensor", "op=@most value_index=0", ""},
    {"t_most", "Tensor", "op=@most value_index=1", ""},
    {"t_out", "Tensor", "op=@out value_index=0", ""},
    {"in", "PlaceholderOp", "name=~x tag=~ shape=@shape dtype=float32", ""},
    {"shape", "Array", "", "four three"},
    {"zero", "IntImm", "dtype=int32 value=0", ""},
    {"three", "IntImm", "dtype=int32 value=3", ""},
    {"four", "IntImm", "dtype=int32 value=4", ""},
    {"true", "IntImm", "dtype=bool value=1", ""},
    {"low", "FloatImm", "dtype=float32 value=-3e38", ""},
    {"most", "ComputeOp", "name=~most tag=~ attrs=@map axis=@axes reduce_axis=@sums body=@pair",
     ""},
    {"map", "Map", "", "key list"},
    {"key", "runtime.String", "", ""},
    {"list", "Array", "", "t_in"},
    {"axes", "Array", "", "i"},
    {"i", "tir.IterVar", "dom=@four_i var=@vi", ""},
    {"four_i", "Range", "min=@zero extent=@four", ""},
    {"vi", "tir.Var", "name=@text dtype=int32", ""},
    {"text", "runtime.String", "", ""},
    {"sums", "Array", "", "k"},
    {"k", "tir.IterVar", "dom=@three_k var=@vk", ""},
    {"three_k", "Range", "min=@zero extent=@three", ""},
    {"vk", "tir.SizeVar", "name=@text dtype=int32", ""},
    {"pair", "Array", "", "first second"},
    {"first", "tir.Reduce",
     "axis=@sums combiner=@larger source=@source init=@init condition=@true value_index=0", ""},
    {"second", "tir.Reduce",
     "axis=@sums combiner=@larger source=@source init=@init condition=@true value_index=1", ""},
    {"none", "Array", "", ""},
    {"init", "Array", "", ""},
    {"larger", "tir.CommReducer", "lhs=@left rhs=@right result=@larger_of identity_element=@least",
     ""},
    {"left", "Array", "", "l_at l_most"},
    {"l_at", "tir.Var", "dtype=int32", ""},
    {"l_most", "tir.Var", "dtype=float32", ""},
    {"right", "Array", "", "r_at r_most"},
    {"r_at", "tir.Var", "dtype=int32", ""},
    {"r_most", "tir.Var", "dtype=float32", ""},
    {"larger_of", "Array", "", "the_at the_most"},
    {"the_at", "tir.Select", "condition=@not_less true_value=@l_at false_value=@r_at", ""},
    {"the_most", "tir.Max", "a=@l_most b=@r_most", ""},
    {"not_less", "tir.Not", "a=@less", ""},
    {"less", "tir.LT", "a=@l_most b=@r_most", ""},
    {"least", "Array", "", "zero low"},
    {"source", "Array", "", "vk element"},
    {"element", "tir.ProducerLoad", "indices=@place producer=@t_in dtype=float32", ""},
    {"place", "Array", "", "vi vk"},
    {"out", "ComputeOp", "name=~out tag=~ attrs=@null axis=@axes_o reduce_axis=@none body=@bodies",
     ""},
    {"axes_o", "Array", "", "o"},
    {"o", "tir.IterVar", "dom=@four_i var=@vo", ""},
    {"vo", "tir.Var", "name=@text dtype=int32", ""},
    {"bodies", "Array", "", "cast"},
    {"cast", "tir.Cast", "value=@call dtype=float16", ""},
    {"call", "tir.Call", "op=@pow args=@args dtype=float32", ""},
    {"pow", "Op", "", ""},
    {"args", "Array", "", "taken low word"},
    {"word", "tir.StringImm", "value=~relaxed", ""},
    {"taken", "tir.ProducerLoad", "indices=@place_o producer=@t_most dtype=float32", ""},
    {"place_o", "Array", "", "vo"},
    /* What nothing refers to as long as nothing is changed. */
    {"sums_b", "Array", "", "k"},
    {"init_b", "Array", "", ""},
    {"source_b", "Array", "", "vk element"},
    {"true_b", "IntImm", "dtype=bool value=1", ""},
    {"larger_b", "tir.CommReducer",
     "lhs=@left rhs=@right result=@larger_of identity_element=@least", ""},
    {"hidden", "PlaceholderOp", "name=~h tag=~ shape=@shape dtype=float32", ""},
    {"t_hidden", "Tensor", "op=@hidden value_index=0", ""},
    {"unseen", "tir.ProducerLoad", "indices=@place_h producer=@t_hidden dtype=float32", ""},
    {"place_h", "Array", "", "zero zero"},
    {"flop", "runtime.String", "", ""},
};
enum { SPARE = 10 };
enum { N = sizeof argmax / sizeof *argmax };

static unsigned number(const char *name, size_t n) {
    for (unsigned i = 0; i < N; i++)
        if (strlen(argmax[i].name) == n && !memcmp(argmax[i].name, name, n)) return i;
    fail_msg("no node %.*s", (int)n, name);
    return 0;
}

/* Attribute `name` of node `node` has this JSON value; NULL: it is not there. item: that of "data";
 * ALL: value is a new list of names. */
enum { ALL = -1 };
typedef struct damage {
    unsigned node;
    const char *name, *value;
    int item;
} damage;

static void put_attrs(cd_buf *b, unsigned node, const damage *d) {
    const char *sep = "";
    cd_buf_puts(b, ",\"attrs\":{");
    for (const char *at = argmax[node].attrs; *at; at += *at == ' ') {
        const int n = (int)strcspn(at, "=");
        const char *value = at + n + 1;
        const size_t len = strcspn(value, " ");
        const bool this_one =
            d && d->node == node && strlen(d->name) == (size_t)n && !memcmp(d->name, at, (size_t)n);
        if (this_one && d->value) cd_buf_putf(b, "%s\"%.*s\":%s", sep, n, at, d->value);
        else if (!this_one && *value == '@')
            cd_buf_putf(b, "%s\"%.*s\":\"%u\"", sep, n, at, number(value + 1, len - 1));
        else if (!this_one)
            cd_buf_putf(b, "%s\"%.*s\":\"%.*s\"", sep, n, at, (int)len - (*value == '~'),
                        value + (*value == '~'));
        if (!this_one || d->value) sep = ",";
        at = value + len;
    }
    cd_buf_puts(b, "}");
}

static void put_data(cd_buf *b, unsigned node, const damage *d) {
    const char *sep = "";
    const bool all = d && d->node == node && d->item == ALL;
    int k = 0;
    if (!*argmax[node].data && !all) return; /* TVM writes no empty list */
    cd_buf_puts(b, ",\"data\":[");
    for (const char *at = all ? d->value : argmax[node].data; *at; at += *at == ' ', k++) {
        const size_t n = strcspn(at, " ");
        if (d && d->node == node && k == d->item) cd_buf_putf(b, "%s%s", sep, d->value);
        else cd_buf_putf(b, "%s%u", sep, number(at, n));
        sep = ",";
        at += n;
    }
    cd_buf_puts(b, "]");
}

static cd_buf graph(const damage *d) {
    const bool data = d && !strcmp(d->name, "data");
    cd_buf b = {0};
    cd_buf_puts(&b, "{\"root\":1,\"nodes\":[");
    for (unsigned i = 0; i < N; i++) {
        const char *type = argmax[i].type, *text = !strcmp(argmax[i].name, "pow")    ? "tir.pow"
                                                   : !strcmp(argmax[i].name, "flop") ? "FLOP"
                                                   : !strcmp(argmax[i].name, "key")
                                                       ? "layout_free_placeholders"
                                                       : "i";
        cd_buf_putf(&b, "%s{\"type_key\":\"%s\"", i ? "," : "", type);
        if (*argmax[i].attrs) put_attrs(&b, i, data ? NULL : d);
        put_data(&b, i, data ? d : NULL);
        if (!strcmp(type, "Op") || !strcmp(type, "runtime.String"))
            cd_buf_putf(&b, ",\"repr_str\":\"%s\"", text);
        cd_buf_puts(&b, "}");
    }
    cd_buf_puts(&b, "]}");
    assert_false(b.oom);
    return b;
}

static cdmpp_status read_graph(const damage *d, cd_te_dag **dag, cdmpp_err *err) {
    cd_arena a = {0};
    cd_buf b = graph(d);
    *err = (cdmpp_err){0};
    const cdmpp_status st = cd_tvm_graph_dag(&a, b.p, b.n, dag, err);
    cd_arena_free(&a);
    cd_buf_free(&b);
    return st;
}

TEST(whole) {
    cdmpp_err err;
    cd_te_dag *dag;
    cd_buf out = {0};
    assert_ok(read_graph(NULL, &dag, &err));
    cd_te_dag_print(&out, dag);
    /* as TVM prints it: the second result's line shows the first one's source */
    assert_string_equal(out.p, "x = PLACEHOLDER [4, 3]\n"
                               "most(i).v0 select(!(x1 < y1), x0, y0)= (i,x[i, i])\n"
                               "most(i).v1 max= i\n"
                               "out(i) = float16(tir.pow(most.v1[i], -3e+38f, \"relaxed\"))\n");
    assert_true(dag->op[0].layout_free && !dag->op[1].layout_free && !dag->op[2].layout_free);
    cd_te_dag_free(dag);
    cd_buf_free(&out);
    cd_buf b = graph(NULL);
    FAULT_SWEEP(f, 0) {
        cd_arena a = {0};
        f.st = cd_tvm_graph_dag(&a, b.p, b.n, &dag, &f.err);
        if (!f.st) cd_te_dag_free(dag);
        cd_arena_free(&a);
    }
    cd_buf_free(&b);
}

/* The key names the node and the attribute for what is wrong in itself; a reference to a node of
 * another kind may be noticed there. */
static void refused(const damage *d, bool here) {
    cdmpp_err err;
    cd_te_dag *dag;
    char want[80], text[600];
    const cdmpp_status st = read_graph(d, &dag, &err);
    snprintf(want, sizeof want, !strcmp(d->name, "data") ? "nodes[%u].%s" : "nodes[%u].attrs.%s",
             d->node, d->name);
    if ((st == CDMPP_ESCHEMA || st == CDMPP_EUNSUPPORTED || st == CDMPP_ERANGE) && err.msg[0] &&
        (!here || !strncmp(err.key, want, strlen(want))))
        return;
    fail_msg("%s.%s = %s: %s", argmax[d->node].name, d->name, d->value ? d->value : "nothing",
             st ? cdmpp_err_format(&err, text, sizeof text) : "taken");
}

/* A list of operator attributes may be null; what a variable is called is a text, which null is
 * not. */
TEST(each_attribute) {
    for (unsigned i = 0; i < N - SPARE; i++)
        for (const char *at = argmax[i].attrs; *at; at += *at == ' ') {
            char name[40];
            const int n = (int)strcspn(at, "=");
            const char *value = at + n + 1;
            snprintf(name, sizeof name, "%.*s", n, at);
            refused(&(damage){i, name, NULL, 0}, true);
            refused(&(damage){i, name, "5", 0}, true);
            refused(&(damage){i, name, "[\"1\"]", 0}, true);
            if (*value != '~') refused(&(damage){i, name, "\"1x\"", 0}, true);
            if (*value != '~') refused(&(damage){i, name, "\"\"", 0}, true);
            if (*value == '@') refused(&(damage){i, name, "\"9999\"", 0}, true);
            if (*value == '@') refused(&(damage){i, name, "\"-1\"", 0}, true);
            if (*value == '@' && strcmp(name, "attrs") != 0)
                refused(&(damage){i, name, "\"0\"", 0}, false);
            at = value + strcspn(value, " ");
        }
}

TEST(each_item) {
    static const char *const other[] = {"\"1\"", "1.5", "-1", "9999", "null", "[1]"};
    for (unsigned i = 0; i < N - SPARE; i++) {
        int item = 0;
        for (const char *at = argmax[i].data; *at; at += *at == ' ', item++) {
            for (size_t k = 0; k < sizeof other / sizeof *other; k++)
                refused(&(damage){i, "data", other[k], item}, true);
            if (strcmp(argmax[i].name, "map") != 0) refused(&(damage){i, "data", "0", item}, false);
            at += strcspn(at, " ");
        }
    }
}

/* Parts that contradict each other. value: the name of a node, of several for "data", or a text. */
static const struct {
    const char *node, *name, *value;
    cdmpp_status want;
    const char *where, *key, *msg; /* key: behind nodes[where] */
} wrong[] = {
    {"second", "axis", "@sums_b", CDMPP_EUNSUPPORTED, "second", ".attrs.axis",
     "outputs of different reductions"},
    {"second", "combiner", "@larger_b", CDMPP_EUNSUPPORTED, "second", ".attrs.combiner",
     "outputs of different reductions"},
    {"second", "source", "@source_b", CDMPP_EUNSUPPORTED, "second", ".attrs.source",
     "outputs of different reductions"},
    {"second", "init", "@init_b", CDMPP_EUNSUPPORTED, "second", ".attrs.init",
     "outputs of different reductions"},
    {"second", "condition", "@true_b", CDMPP_EUNSUPPORTED, "second", ".attrs.condition",
     "outputs of different reductions"},
    {"second", "value_index", "0", CDMPP_EUNSUPPORTED, "second", ".attrs.value_index",
     "expected 1, found 0"},
    {"pair", "data", "first zero", CDMPP_ESCHEMA, "zero", "",
     "expected a node of type tir.Reduce, found \"IntImm\""},
    {"pair", "data", "first", CDMPP_ESCHEMA, "t_most", ".attrs.value_index",
     "output 1 of an operator with 1"},
    {"most", "reduce_axis", "@axes", CDMPP_ESCHEMA, "most", ".attrs.reduce_axis",
     "differs from the axes"},
    {"most", "reduce_axis", "@none", CDMPP_ESCHEMA, "most", ".attrs.reduce_axis",
     "differs from the axes"},
    {"most", "reduce_axis", "@sums_b", CDMPP_OK, "", "", ""}, /* another list of the same */
    {"axes", "data", "zero", CDMPP_ESCHEMA, "zero", "", "expected a node of type tir.IterVar"},
    {"init", "data", "zero", CDMPP_ESCHEMA, "first", ".attrs.init", "expected 2 items, found 1"},
    {"init", "data", "zero low", CDMPP_OK, "", "", ""},
    {"left", "data", "l_at", CDMPP_ESCHEMA, "larger", ".attrs.lhs",
     "expected 2 variables, found 1"},
    {"right", "data", "r_at r_most l_at", CDMPP_ESCHEMA, "larger", ".attrs.rhs",
     "expected 2 variables, found 3"},
    {"left", "data", "l_at zero", CDMPP_ESCHEMA, "zero", "", "expected a node of type tir.Var"},
    {"larger_of", "data", "the_at", CDMPP_ESCHEMA, "larger", ".attrs.result",
     "expected 2 items, found 1"},
    {"least", "data", "low", CDMPP_ESCHEMA, "larger", ".attrs.identity_element",
     "expected 2 items, found 1"},
    {"source", "data", "vk", CDMPP_ESCHEMA, "first", ".attrs.source", "expected 2 items, found 1"},
    {"source", "data", "vk second", CDMPP_ESCHEMA, "second", "", "part of itself"},
    {"the_most", "a", "@unseen", CDMPP_ESCHEMA, "unseen", ".attrs.producer",
     "outside an operator's body"},
    {"the_most", "a", "@first", CDMPP_EUNSUPPORTED, "first", "",
     "a reduction inside another expression"},
    {"the_most", "a", "@less", CDMPP_ESCHEMA, "", "", ""},
    {"bodies", "data", "cast first", CDMPP_EUNSUPPORTED, "first", "",
     "a reduction inside another expression"},
    {"shape", "data", "vi three", CDMPP_EUNSUPPORTED, "in", ".attrs.shape",
     "dimension 0 is not a number"},
    {"zero", "dtype", "float32", CDMPP_ESCHEMA, "zero", ".attrs.dtype",
     "a literal of another type"},
    {"low", "dtype", "int32", CDMPP_ESCHEMA, "low", ".attrs.dtype", "a literal of another type"},
    {"true", "dtype", "handle", CDMPP_ESCHEMA, "true", ".attrs.dtype", "a literal of another type"},
    {"low", "value", "1234567890123456789012345678901234567890123456789012345678901234567890",
     CDMPP_ESCHEMA, "low", ".attrs.value", "expected a number"},
    {"low", "value", "-inf", CDMPP_OK, "", "", ""},
    {"true", "value", "0", CDMPP_OK, "", "", ""}, /* a condition that is never true stays */
    {"call", "op", "@zero", CDMPP_EUNSUPPORTED, "zero", "", "\"IntImm\" is not an expression"},
    {"call", "op", "@null", CDMPP_EUNSUPPORTED, "null", "", "\"\" is not an expression"},
    {"call", "dtype", "string", CDMPP_EUNSUPPORTED, "call", ".attrs.dtype", "type \"string\""},
    {"map", "data", "key", CDMPP_ESCHEMA, "map", "", "a map with a key but no value"},
    {"map", "data", "zero list", CDMPP_OK, "", "", ""}, /* a key that is no text is none of ours */
    {"map", "data", "key zero", CDMPP_OK, "", "", ""},  /* no list: none are free */
    {"map", "data", "flop low", CDMPP_ERANGE, "low", ".attrs.value", "a negative flop count"},
    {"map", "data", "flop list", CDMPP_ESCHEMA, "list", ".attrs.value", ""},
    {"list", "data", "four", CDMPP_ESCHEMA, "four", "", "expected a node of type Tensor"},
    {"list", "data", "t_hidden", CDMPP_OK, "", "", ""}, /* a tensor of no operator of the task */
    {"out", "attrs", "@list", CDMPP_ESCHEMA, "list", "", "expected a node of type Map"},
    /* an input that nothing reads */
    {"root", "data", "t_at t_most t_out t_hidden", CDMPP_OK, "", "", ""},
};

TEST(contradictions) {
    unsigned bad = 0;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        const char *v = wrong[k].value;
        const bool data = !strcmp(wrong[k].name, "data");
        char value[100], want[100] = "", text[600];
        cdmpp_err err;
        cd_te_dag *dag;
        if (*v == '@') snprintf(value, sizeof value, "\"%u\"", number(v + 1, strlen(v + 1)));
        else snprintf(value, sizeof value, data ? "%s" : "\"%s\"", v);
        if (*wrong[k].where)
            snprintf(want, sizeof want, "nodes[%u]%s",
                     number(wrong[k].where, strlen(wrong[k].where)), wrong[k].key);
        const cdmpp_status st = read_graph(
            &(damage){number(wrong[k].node, strlen(wrong[k].node)), wrong[k].name, value, ALL},
            &dag, &err);
        if (st != wrong[k].want || (st && *want && strcmp(err.key, want) != 0) ||
            (st && !strstr(err.msg, wrong[k].msg)))
            print_error("%s.%s = %s: wanted %s, found %s", wrong[k].node, wrong[k].name, v, want,
                        st ? cdmpp_err_format(&err, text, sizeof text) : "taken"),
                bad++;
        if (!st) cd_te_dag_free(dag);
    }
    assert_int_equal(bad, 0);
}

TESTS(NULL, NULL, whole, each_attribute, each_item, contradictions)
