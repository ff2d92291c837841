/* Graphs of a few nodes: which inputs are data, what branches and loops become, and what of them is
 * refused. */
#include "fault.h"
#include "read_onnx.h"
#include "text_onnx.h"

static long refused_from = -1; /* the allocation of the reader that is the first to be refused */

/* dim: options with ";" between; input: names of the data inputs. */
static onnx parsed(const char *text, const char *dim, const char *input, cdmpp_status *st) {
    const char *dims[8], *inputs[8];
    char of_dim[200], of_input[200], *save = NULL;
    cd_onnx_options o = {.dim = dims, .input = inputs};
    onnx r = {0};
    cd_buf b = text_onnx(text);
    snprintf(of_dim, sizeof of_dim, "%s", dim);
    snprintf(of_input, sizeof of_input, "%s", input);
    for (char *w = strtok_r(of_dim, ";", &save); w; w = strtok_r(NULL, ";", &save)) {
        if (!strncmp(w, "batch ", 6)) o.batch = atoi(w + 6);
        else dims[o.n_dim++] = w;
    }
    save = NULL;
    for (char *w = strtok_r(of_input, ";", &save); w; w = strtok_r(NULL, ";", &save))
        inputs[o.n_input++] = w;
    fault_at(refused_from);
    *st = cd_onnx_parse(b.p, b.n, "made", NULL, &o, &r.g, &r.miss, &r.n_miss, &r.err);
    cd_buf_free(&b);
    return r;
}

/* Names of the inputs that are data. */
static void list(const cd_graph *g, char text[200]) {
    *text = 0;
    for (uint32_t k = 0; k < g->n_input; k++)
        snprintf(text + strlen(text), 200 - strlen(text), "%s%s", k ? " " : "",
                 g->tensor[g->input[k]].name);
}

typedef struct row {
    const char *text, *dim, *input;
    cdmpp_status st;
    /* refused: words of the message, with "|" between. Else "data NAMES", "NAME SHAPE", "note
     *WORDS", "miss WORDS", with "|" between */
    const char *want;
} row;

static bool has(const onnx *r, char *want, char *got, size_t cap) {
    bool found = false;
    char *words = strchr(want, ' ');
    *words++ = 0;
    got[0] = 0;
    if (!strcmp(want, "data")) {
        list(r->g, got);
        return !strcmp(got, words);
    }
    if (!strcmp(want, "note"))
        for (uint32_t i = 0; i < r->g->n_note; i++)
            found |= strstr(r->g->note[i], words) != NULL,
                snprintf(got + strlen(got), cap - strlen(got), "%s. ", r->g->note[i]);
    else if (!strcmp(want, "miss"))
        for (uint32_t i = 0; i < r->n_miss; i++)
            found |= strstr(r->miss[i].reason, words) != NULL,
                snprintf(got + strlen(got), cap - strlen(got), "%s. ", r->miss[i].reason);
    else
        for (uint32_t i = 0; i < r->g->n_tensor; i++)
            if (!strcmp(r->g->tensor[i].name, want)) {
                const cd_graph_shape *s = &r->g->tensor[i].shape;
                got[0] = 0;
                for (uint32_t d = 0; d < s->rank; d++)
                    snprintf(got + strlen(got), cap - strlen(got), d ? ",%lld" : "%lld",
                             (long long)s->dim[d]);
                found = !strcmp(got, *words == '-' ? "" : words);
            }
    return found;
}

static void check(const row *of, size_t n) {
    unsigned bad = 0;
    for (size_t k = 0; k < n; k++) {
        char want[300], got[1000] = "", *save = NULL;
        cdmpp_status st;
        onnx r = parsed(of[k].text, of[k].dim, of[k].input, &st);
        bool ok = st == of[k].st;
        snprintf(want, sizeof want, "%s", of[k].want);
        for (char *w = strtok_r(want, "|", &save); ok && w; w = strtok_r(NULL, "|", &save))
            ok = st ? strstr(r.err.msg, w) || strstr(r.err.key, w) : has(&r, w, got, sizeof got);
        if (!ok) {
            char text[600];
            print_error("%s [%s] [%s]\n  wanted %d %s\n  found  %d %s\n", of[k].text, of[k].dim,
                        of[k].input, (int)of[k].st, of[k].want, (int)st,
                        st ? cdmpp_err_format(&r.err, text, sizeof text) : got);
            bad++;
        }
        if (!st) cd_graph_free(r.g);
    }
    assert_int_equal(bad, 0);
}
#define CHECK(of) check(of, sizeof(of) / sizeof *(of))

#define SCORES "in q f2,4,8; in k f2,8,4; in v f2,4,8; "
#define THEN   " then_branch={Relu a(x)->t; out t} else_branch={Neg b(x)->e; out e}"

/* Rules a to e of onnx.h. */
TEST(roles) {
    static const row of[] = {
        {"in x f2,4; in w f4,3; MatMul -(x,w)->y; out y", "", "", 0,
         "data x|note taken for weights: w; for data: x"},
        {"in x f2,4; in w f4,3; MatMul -(x,w)->y; out y", "", "w", 0, "data w"},
        {"in x f2,4; in w f4,3; MatMul -(x,w)->y; out y", "", "x;w", 0, "data x w"},
        {"in x f2,4; in w f4,3; MatMul -(x,w)->y; out y", "", "x;z", CDMPP_EUSAGE,
         "no input is called \"z\""},
        {"in x f2,4; in w f4,3; init w f4,3; MatMul -(x,w)->y; out y", "", "", 0, "data x"},
        {"in x f2,4; in w f4,3; sparse w f4,3; MatMul -(x,w)->y; out y", "", "", 0, "data x"},
        {"in x f2,4; in w f4,3; sparse - f4,3; MatMul -(x,w)->y; out y", "", "", 0, "data x w"},
        {"in x f2,4; in w f4,3; sparse s f4,3; MatMul -(x,w)->y; out y", "", "", 0, "data x w"},
        {"in x l2,4; in w f9,3; Gather -(w,x)->y; out y", "", "", 0, "data x"},
        {"in x f2,4; in b f4; Add -(x,b)->y; out y", "", "", 0,
         "data x b|note all its inputs are taken for data: x, b"},
        {"in x f2,4; in w f4,3; Relu -(x)->h; MatMul -(h,w)->y; out y", "", "", 0, "data x"},
        {"in x f2,4; in w f4,3; Identity -(w)->h; MatMul -(x,h)->y; out y", "", "", 0, "data x"},
        /* nothing is known of any */
        {"in x f2,4; in z f2,4; in w f4,3; Add -(x,z)->h; MatMul -(h,w)->y; out y", "", "", 0,
         "data x z w"},
        {"in x f2,4; in w f4,3; Shape -(w)->s; MatMul -(x,w)->y; out y; out s", "", "", 0,
         "data x"},
        {"in x f2,4; in w f4,3; Size -(w)->s; MatMul -(x,w)->y; out y; out s", "", "", 0, "data x"},
        {"in x f2,4; Relu -(x)->y; out y", "", "", 0, "data x"},
        {"in x f2,4; in z f2,4; Relu -(x)->y; Neg -(z)->u; out y", "", "", 0, "data x"},
        /* products by shape */
        {SCORES "MatMul -(q,k)->y; out y", "", "", 0, "data q k"},
        {"in q f2,4,8; in k f3,8,4; MatMul -(q,k)->y; out y", "", "", CDMPP_ESCHEMA, ""},
        {"in q f1,4,8; in k f3,8,4; MatMul -(q,k)->y; out y", "", "", 0, "data q"},
        {"in q f8; in k f3,8,4; MatMul -(q,k)->y; out y", "", "", 0, "data q"},
        {"in q f2,2,4,8; in k f2,2,8,4; MatMul -(q,k)->y; out y", "", "", 0, "data q k"},
        {"init q f1,2,4,8; in k f2,2,8,4; MatMul -(q,k)->y; out y", "", "", 0, "data k"},
        {"Constant -()->q value=<f1,4,8>; in k f2,8,4; in z f3; MatMul -(q,k)->y; Relu -(z)->u; "
         "out y; out u",
         "", "", 0, "data z"},
        {"Constant -()->q value=<f1,1,4,8>; in k f2,2,8,4; in z f3; MatMul -(q,k)->y; Relu "
         "-(z)->u; out y; out u",
         "", "", 0, "data k z"},
        /* and by equation */
        {"in x f2,4,8; in w f8,5; Einsum -(x,w)->y equation=\"bsd,de->bse\"; out y", "", "", 0,
         "data x"},
        {SCORES "Einsum -(q,k)->y equation=\" bsd , bdt -> bst \"; out y", "", "", 0, "data q k"},
        {SCORES "Einsum -(q,k)->y equation=\"bsd,bdt->bst\"; out y", "", "", 0, "data q k"},
        {"in x f2,4; in w f4,5; Einsum -(x,w)->y equation=\"ij,jk->ik\" other=\"a,a\"; out y", "",
         "", 0, "data x"},
        {"in x f2,4; in w f4,5; Einsum -(x,w)->y equation=\"\"; out y", "", "", CDMPP_ESCHEMA,
         "0 letters"},
        {"in x f2,4; in w f4,5; Einsum -(x,w)->y equation=\"ij\"; out y", "", "", CDMPP_ESCHEMA,
         ""},
        {"in x f2,4; in w f4,5; Einsum -(x,w)->y equation=3; out y", "", "", CDMPP_ESCHEMA,
         "expected a text"},
        /* attention as products around a Softmax */
        {SCORES "MatMul -(q,k)->s; Softmax -(s)->p; MatMul -(p,v)->y; out y", "", "", 0,
         "data q k v"},
        {"in q f4,8; in k f8,4; in v f4,8; MatMul -(q,k)->s; Div -(s,c)->t; Softmax -(t)->p; "
         "Dropout -(p)->d; MatMul -(d,v)->y; Constant -()->c value=<f=2>; out y",
         "", "", 0, "data q k v"},
        {"in q f4,8; in k f8,4; in v f4,8; MatMul -(q,k)->s; Relu -(s)->t; Softmax -(t)->p; MatMul "
         "-(p,v)->y; out y",
         "", "", 0, "data q"},
        {"in x f2,4,8; in w f2,8,8; com.microsoft.FusedMatMul -(x,w)->y; out y", "", "", 0,
         "data x w"},
        /* a branch reads more than its operands */
        {"in c b; in x f2,4; If - (c)->y" THEN "; out y", "-=then", "", CDMPP_EUSAGE, "-=then"},
        {"in c b; in x f2,4; in w f4,3; If n(c)->h" THEN "; MatMul -(h,w)->y; out y", "n=then", "",
         0, "data c|note taken for weights: x, w"},
        /* types that a graph does not have */
        {"in x seq; in y f2; Relu -(y)->z; out z", "", "", 0, "data y|note "},
        {"in x t2; in y f2; Relu -(y)->z; out z", "", "", 0, "data y"},
        {"in x f2; in y ; Relu -(x)->z; out z", "", "", 0, "data x"},
        {"in a f2; in b f2; in c f2; in d f2; in e f2; in f f2; in g f2; in h f2; in i f2; in j "
         "f2; in k f2; in l f2; in m f2; in n f2; in x f2; Relu -(x)->z; Sum "
         "-(a,b,c,d,e,f,g,h,i,j,k,l,m,n)->s; out z; out s",
         "", "", 0, "data x|note a, b, c, d, e, f, g, h, i, j, k, l and 2 more; for data: x"},
    };
    CHECK(of);
}

/* Values of dimensions: options by place and name, the batch, the file. */
TEST(dimensions) {
    static const row of[] = {
        {"in x fB,4; Relu -(x)->y; out y", "B=3", "", 0, "y 3,4"},
        {"in x fB,4; Relu -(x)->y; out y", "batch 5", "", 0, "y 5,4"},
        {"in x fB,4; Relu -(x)->y; out y", "batch 5;B=5", "", 0, "y 5,4"},
        {"in x fB,4; Relu -(x)->y; out y", "batch 5;B=6", "", CDMPP_EUSAGE,
         "\"B\" is the batch size: expected 5, found 6"},
        {"in x f2,4; Relu -(x)->y; out y", "batch 5;x[0]=6", "", CDMPP_EUSAGE,
         "\"x[0]\" is the batch size: expected 5, found 6"},
        {"in x f2,4; Relu -(x)->y; out y", "batch 5;x[1]=6", "", 0, "y 5,6"},
        {"in x fB,4; Relu -(x)->y; out y", "x[0]=6;B=7", "", 0, "y 6,4"},
        {"in x fB,4; Relu -(x)->y; out y", "", "", CDMPP_ESCHEMA,
         "dimension 0, \"B\", of input \"x\" has no value|a batch size or --dim 'B=N'"},
        {"in x f2,S; Relu -(x)->y; out y", "", "", CDMPP_ESCHEMA,
         "dimension 1, \"S\", of input \"x\" has no value (--dim 'S=N'"},
        {"in x f2,?; Relu -(x)->y; out y", "", "", CDMPP_ESCHEMA,
         "dimension 1 of input \"x\" has no value (--dim 'x[1]=N'"},
        {"in x f?,4; Relu -(x)->y; out y", "batch 2", "", 0, "y 2,4"},
        {"in x f2,?; Relu -(x)->y; out y", "x[1]=7", "", 0, "y 2,7"},
        {"in x f-1,4; Relu -(x)->y; out y", "", "", CDMPP_ERANGE,
         "dimension 0 of input \"x\" is -1 (a batch size or --dim 'x[0]=N'"},
        {"in x f2,-1; Relu -(x)->y; out y", "", "", CDMPP_ERANGE,
         "dimension 1 of input \"x\" is -1 (--dim 'x[1]=N'"},
        {"in x f2,-1; Relu -(x)->y; out y", "x[1]=3", "", 0, "y 2,3"},
        {"in x fB,4; Relu -(x)->y; out y", "B=", "", CDMPP_EUSAGE, "\"B=\": expected NAME=NUMBER"},
        {"in x fB,4; Relu -(x)->y; out y", "B=4x", "", CDMPP_EUSAGE,
         "\"B=4x\": expected NAME=NUMBER"},
        {"in x fB,4; Relu -(x)->y; out y", "B=-1", "", CDMPP_EUSAGE,
         "\"B=-1\": expected NAME=NUMBER"},
        {"in x fB,4; Relu -(x)->y; out y", "x[0]=y", "", CDMPP_EUSAGE,
         "\"x[0]=y\": expected NAME=NUMBER"},
        {"in x fB,4; Relu -(x)->y; out y", "B=99999999999999999999", "", CDMPP_ERANGE, ""},
        {"in x fB,4; Relu -(x)->y; out y", "B=2;C=3", "", CDMPP_EUSAGE, "C=3"},
        {"in x f*; Relu -(x)->y; out y", "", "", CDMPP_ESCHEMA, "input \"x\" has no shape"},
        {"in x f1,1,1,1,1,1,1,1,1,1,1,1,1; Relu -(x)->y; out y", "", "", CDMPP_ERANGE,
         "input \"x\": expected at most"},
        {"in x f2,4; in z f2,3; in u f3,2; Relu -(x)->y; Relu -(z)->v; Relu -(u)->t; out y; out v; "
         "out t",
         "batch 7", "", 0, "y 7,4|v 7,3|t 3,2"},
        {"in x seq; in z f2,3; Relu -(z)->v; out v", "batch 7", "", 0, "v 7,3"},
        {"in x f; in z f2,3; Relu -(z)->v; out v; Neg -(x)->n; out n", "batch 7", "", 0, "v 7,3"},
        {"in x f*; in z f2,3; Relu -(z)->v; out v", "batch 7", "z", CDMPP_ESCHEMA,
         "input \"x\" has no shape"},
        /* weights by option, of types that are not known */
        {"in x f2,4; sparse w x4,3; Relu -(x)->y; out y", "", "", 0, "y 2,4"},
        {"in x f2,4; sparse w f4,3; MatMul -(x,w)->y; out y", "", "", 0, "y 2,3"},
        {"in x f2,4; sparse w f1,1,1,1,1,1,1,1,1,1,1,1,1,1; Relu -(x)->y; out y", "", "",
         CDMPP_ERANGE, ""},
        {"in x f2,4; init w f4,3; init w f4,3; MatMul -(x,w)->y; out y", "", "", CDMPP_ESCHEMA,
         "\"w\" is defined twice"},
        {"in x f2,4; init w f4,3; sparse w f4,3; MatMul -(x,w)->y; out y", "", "", CDMPP_ESCHEMA,
         "\"w\" is defined twice"},
        {"in x f2,4; in x f2,4; Relu -(x)->y; out y", "", "", CDMPP_ESCHEMA,
         "\"x\" is defined twice"},
        {"in x f2,4; in w f4,3; init w f4,3; MatMul -(x,w)->y; out y", "", "w;x", 0,
         "data x w|y 2,3"},
    };
    CHECK(of);
}

#define COUNTED(head)                                                                              \
    "in x f2,4; " head "; Loop n(t,c,x)->y,z body={in i l; in go b; in a f2,4; Relu r(a)->b; "     \
    "Identity j(go)->on; out on; out b; out b}; out y; out z"

TEST(control) {
    static const row of[] = {
        {"in x f2,4; init c b=1; If n(c)->y" THEN "; out y", "", "", 0, "y 2,4"},
        {"in x f2,4; init c b=1; If n(c)->y" THEN "; out y", "n=then", "", 0, "y 2,4"},
        {"in x f2,4; init c b=0; If n(c)->y" THEN "; out y", "n=then", "", CDMPP_EUSAGE,
         "\"n=then\": its condition is a constant"},
        {"in x f2,4; init c b1=0; If n(c)->y" THEN "; out y", "", "", 0, "y 2,4"},
        {"in x f2,4; init c b2=0 1; If n(c)->y" THEN "; out y", "", "", 0, "miss (--dim 'n=then"},
        {"in x f2,4; in c b; If n(c)->y" THEN "; out y", "n=both", "", CDMPP_EUSAGE,
         "\"n=both\": expected then or else"},
        {"in x f2,4; in c b; If n(c)->y" THEN "; out y", "nn=then", "", CDMPP_EUSAGE, "nn=then"},
        {"in x f2,4; in c b; If -(c)->y" THEN "; out y", "y=else", "", 0, "y 2,4"},
        {"in x f2,4; in c b; If n(c,x)->y" THEN "; out y", "", "", CDMPP_ESCHEMA,
         "If: expected one operand"},
        {"in x f2,4; If n(c)->y" THEN "; out y", "", "", CDMPP_ESCHEMA, "c"},
        {"in x f2,4; in c b; If n(c)->y then_branch={Relu a(x)->t; out t}; out y", "n=else", "",
         CDMPP_ESCHEMA, "expected then_branch and else_branch"},
        {"in x f2,4; in c b; If n(c)->y then_branch=3 else_branch=4; out y", "n=then", "",
         CDMPP_ESCHEMA, "expected then_branch and else_branch"},
        {"in x f2,4; in c b; If n(c)->y then_branch={Relu a(x)->t; out nowhere} else_branch={out "
         "x}; out y",
         "n=then", "", CDMPP_ESCHEMA, "nowhere"},
        {"in x f2,4; in c b; If n(c)->y,z" THEN "; out y", "n=then", "", CDMPP_ESCHEMA, ""},
        /* loops */
        {COUNTED("init t l=3; init c b=1"), "", "", 0, "y 2,4|z 3,2,4"},
        {COUNTED("init t l=3; init c b=1"), "n=2", "", 0, "z 2,2,4"},
        {COUNTED("init t l=3; init c b=1"), "n=x", "", CDMPP_EUSAGE, "\"n=x\": expected how often"},
        {COUNTED("init t l=3; init c b=1"), "n=2x", "", CDMPP_EUSAGE,
         "\"n=2x\": expected how often"},
        {COUNTED("init t l=3; init c b=1"), "n=4", "", CDMPP_EUSAGE, "\"n=4\": its limit is 3"},
        {COUNTED("init t l=3; init c b=0"), "", "", 0, "miss runs 0 times"},
        {COUNTED("init t l=-3; init c b=1"), "", "", 0, "miss runs 0 times"},
        {COUNTED("in t l; init c b=1"), "", "", 0, "miss (--dim 'n=N'"},
        {COUNTED("in t l; init c b=1"), "n=1000000000", "", CDMPP_ERANGE, "runs 1000000000 times"},
        {COUNTED("init t l=3; in c b"), "", "", 0, "miss (--dim 'n=N'"},
        {COUNTED("init t l=3; in c b"), "n=1", "", 0, "z 1,2,4"},
        {COUNTED("init t l=3"), "", "", CDMPP_ESCHEMA, ""},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y body={in i l; in go b; in a f2,4; Relu r(a)->b; "
         "out go; out b}; out y",
         "", "", 0, "y 2,4"},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y body={in i l; in go b; in a f2,4; init k b=1; "
         "Relu r(a)->b; out k; out b}; out y",
         "", "", 0, "y 2,4"},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y body={in i l; in go b; in a f2,4; init k b=0; "
         "Relu r(a)->b; out k; out b}; out y",
         "", "", 0, "miss (--dim 'n=N'"},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y body={in i l; in go b; in a f2,4; init k b2=1 1; "
         "Relu r(a)->b; out k; out b}; out y",
         "", "", 0, "miss (--dim 'n=N'"},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y body={in i l; in go b; in a f2,4; Constant "
         "k()->on value=<b=1>; Relu r(a)->b; out on; out b}; out y",
         "", "", 0, "y 2,4"},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y body={in i l; in go b; in a f2,4; Constant "
         "k()->on value=<b=0>; Relu r(a)->b; out on; out b}; out y",
         "", "", 0, "miss (--dim 'n=N'"},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y body={in i l; in go b; in a f2,4; Constant "
         "k()->on other=<b=0>; Relu r(a)->b; out on; out b}; out y",
         "", "", 0, "miss (--dim 'n=N'"},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y body={in i l; in go b; in a f2,4; Constant "
         "k()->on value=3; Relu r(a)->b; out on; out b}; out y",
         "", "", 0, "miss (--dim 'n=N'"},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y body={in i l; in go b; in a f2,4; Identity "
         "j(i)->on; Relu r(a)->b; out on; out b}; out y",
         "", "", 0, "miss (--dim 'n=N'"},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y body={in i l; in go b; in a f2,4; Not j(go)->on; "
         "Relu r(a)->b; out on; out b}; out y",
         "", "", 0, "miss (--dim 'n=N'"},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y body={in i l; in go b; in a f2,4; Relu r(a)->b; "
         "out nowhere; out b}; out y",
         "", "", 0, "miss (--dim 'n=N'"},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y body={in i l; in go b; in a f2,4; Relu r(a)->b; "
         "out go; out nowhere}; out y",
         "", "", CDMPP_ESCHEMA, "result \"nowhere\" is not defined"},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y body={in i l; in go b; Relu r(x)->b; out go; out "
         "b}; out y",
         "", "", CDMPP_ESCHEMA, "expected a body that takes and gives"},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y body={in i l; in go b; in a f2,4; out go}; out y",
         "", "", CDMPP_ESCHEMA, "expected a body that takes and gives"},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y body=3; out y", "", "", CDMPP_ESCHEMA,
         "expected a body that takes and gives"},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y; out y", "", "", CDMPP_ESCHEMA,
         "expected a body that takes and gives"},
        {"in x f2,4; init t l=2; Loop n(t,,x)->y,z,u body={in i l; in go b; in a f2,4; Relu "
         "r(a)->b; out go; out b}; out y",
         "", "", CDMPP_ESCHEMA, "expected at most 1 results, found 3"},
        {"in x f2,4; init t l=2; Loop n(t,,nowhere)->y body={in i l; in go b; in a f2,4; Relu "
         "r(a)->b; out go; out b}; out y",
         "", "", CDMPP_ESCHEMA, "nowhere"},
        {"in x f2,4; init t l=2; Loop n(t)->,y body={in i l; in go b; Relu r(x)->b; Neg u(x)->d; "
         "out go; out b; out d}; out y",
         "", "", 0, "y 2,2,4"},
        {"in x f2,4; init t l=0; Loop n(t,,x)->y body={in i l; in go b; in a f2,4; Relu r(a)->b; "
         "out go; out b}; Neg m(y)->z; out z",
         "", "", 0, "z 2,4"},
        {"in x f1,1,1,1,1,1,1,1; init t l=2; Loop n(t)->y body={in i l; in go b; Relu r(x)->b; out "
         "go; out b}; out y",
         "", "", CDMPP_ERANGE, "results of a loop: expected at most"},
        {"in x f2,4; init t l=2; Loop n(t)->y body={in i l; in go b; x.Odd r(x)->b; out go; out "
         "b}; out y",
         "", "", 0, "miss "},
        {"in x f2,4; Loop n()->y body={in i l; in go b; Relu r(x)->b; out go; out b}; out y", "n=2",
         "", 0, "y 2,2,4"},
        {"in x f2,4; Loop n(,)->y body={in i l; in go b; Relu r(x)->b; out go; out b}; out y", "",
         "", 0, "miss (--dim 'n=N'"},
        /* results whose size depends on the data */
        {"in x f3,4; NonZero n(x)->y; out y", "n=12", "", 0, "y 2,12"},
        {"in x f3,4; NonZero n(x)->y; out y", "n=13", "", CDMPP_EUSAGE, "more than there are"},
        {"in x f3,4; NonZero n(x)->y; out y", "n=1.5", "", CDMPP_EUSAGE, "expected a size"},
        {"in x f3,4; NonZero n(x)->y; out y", "n=", "", CDMPP_EUSAGE, "expected a size"},
        {"in x f3,4; in c b3; Compress n(x,c)->y axis=0; out y", "n=2", "", 0, "y 2,4"},
        {"in x f3,4; in c b3; Compress n(x,c)->y axis=-1; out y", "n=2", "", 0, "y 3,2"},
        {"in x f3,4; in c b3; Compress n(x,c)->y axis=2; out y", "n=2", "", CDMPP_ESCHEMA,
         "no such axis"},
        {"in x f3,4; in c b3; Compress n(x,c)->y axis=-3; out y", "n=2", "", CDMPP_ESCHEMA,
         "no such axis"},
        {"in x f3,4; in c b3; Compress n(x,c)->y axis=0; out y", "n=4", "", CDMPP_EUSAGE,
         "more than there are"},
        {"in x f3,4; Unique n(x)->y,a,b,c; out y; out a; out b; out c", "n=5", "", 0,
         "y 5|a 5|b 12|c 5"},
        {"in x f3,4; Unique n(x)->y,a axis=1; out y; out a", "n=2", "", 0, "y 3,2|a 2"},
        {"in x f1,9,4; in s f1,2,9; NonMaxSuppression n(x,s)->y; out y", "n=9223372036854775807",
         "", CDMPP_ERANGE, ""},
        {"in x f3,4; NonZero n()->y; out y", "", "", CDMPP_ESCHEMA,
         "expected 1 to 1 operands, found 0"},
        {"x.Odd o()->x; NonZero n(x)->y; out y", "", "", 0, "miss "},
    };
    CHECK(of);
}

/* Nothing is lost where memory is refused. */
TEST(without_memory) {
    static const char *const text[] = {
        "in q f2,4,8; in k f2,8,4; in v f2,4,8; in u l2; MatMul -(q,k)->s; Softmax -(s)->p; "
        "Attention -(q,q,v)->t; MatMul -(p,v)->y; out y; out t",
        "in x fB,4; in w f4,3; sparse v f2,2; in w f4,3; init w f4,3; MatMul -(x,w)->y; out y",
        COUNTED("init t l=3; init c b=1"), COUNTED("in t l; init c b=1"),
        "in x f2,4; init c b=1; in d b; If n(c)->y" THEN "; If m(d)->z" THEN
        "; in u f3,4; Unique o(u)->v,a axis=1; NonZero k(u)->f; out y; out z; out v; out f"};
    for (size_t k = 0; k < sizeof text / sizeof *text; k++) FAULT_SWEEP(f, 0) {
            fault_off();
            refused_from = f.k;
            onnx r = parsed(text[k],
                            k == 1   ? "batch 5"
                            : k == 4 ? "o=2;k=2;m=then"
                                     : "",
                            "", &f.st);
            fault_off();
            refused_from = -1;
            f.err = r.err;
            if (!f.st) cd_graph_free(r.g);
            if (f.st == CDMPP_ESCHEMA) f.st = CDMPP_OK; /* refused for what it is, in the end */
        }
}

TESTS(NULL, NULL, roles, dimensions, control, without_memory)
