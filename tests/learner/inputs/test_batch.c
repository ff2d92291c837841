/* batch, scaler: columns of a small program written out by hand; packing; bounds; laws
 * of scaling. */
#include "learner/inputs/inputs.h"

#include <string.h>

#include "check.h"
#include "finite.h"

enum { N_PROG = 3, N_LEAF = 4, N_ROW = 4, W_DEV = 2 };

/* Program 0: root 0 { 1 { 2 leaf, 3 { 4 leaf } } }, program 1: root { leaf }, program 2:
 * like it, on device 1. */
static const int32_t tree[] = {0, 1, 2, -1, 3, 4, -1, -1, -1, -1, 0, 1, -1, -1, 0, 1, -1, -1};
static const int64_t tree_ptr[] = {0, 10, 14, 18};
static const int64_t leaf_ptr[] = {0, 2, 3, 4};
static const int64_t row_ptr[] = {0, 2, 3, 4};
static const int32_t leaf_pos[] = {2, 5, 1, 1}, leaf_node[] = {2, 4, 1, 1};
static const int64_t path_ptr[] = {0, 1, 3, 3, 13};
static const int64_t path_extent[] = {8, 8, 32, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const uint8_t path_kind[] = {1, 1, 0, 4, 4, 0, 0, 0, 0, 0, 0, 3, 2};
static const uint32_t device[] = {0, 0, 1};
static const double flop[] = {1023, -1, 0};
static float row[N_ROW * 164];
static const float *leaf_x[N_LEAF] = {row, row + 164, row + 2 * 164, row + 3 * 164};
static const float vectors[2 * W_DEV] = {1, 2, 3, 4};

static cd_program_view view(void) {
    finite_values(row, NULL, N_ROW * 164, 1);
    for (size_t i = 0; i < N_ROW * 164; i++) row[i] = 5 + 5 * row[i];
    return (cd_program_view){.n = N_PROG,
                             .row = row,
                             .row_ptr = row_ptr,
                             .leaf_ptr = leaf_ptr,
                             .leaf_x = leaf_x,
                             .leaf_pos = leaf_pos,
                             .leaf_node = leaf_node,
                             .path_ptr = path_ptr,
                             .path_extent = path_extent,
                             .path_kind = path_kind,
                             .tree_ptr = tree_ptr,
                             .tree = tree,
                             .device = device,
                             .flop = flop};
}

static const cd_batch_spec full = {.tokens = true,
                                   .context = true,
                                   .derived = true,
                                   .program = true,
                                   .n_device = 2,
                                   .w_dev = W_DEV,
                                   .device = vectors};

typedef struct {
    cd_batch b;
    cd_scalers s;
} rig;

static void open_rig(rig *r, const cd_batch_spec *spec, size_t n, size_t tok, size_t leaf) {
    cdmpp_err err = {0};
    const cd_batch_dims dims = {.n = n, .n_tok = tok, .max_leaf = leaf};
    assert_ok(cd_batch_init(&r->b, spec, &dims, &err));
    assert_ok(cd_scalers_init(&r->s, spec, &err));
}

static void close_rig(rig *r) {
    cd_batch_free(&r->b);
    cd_scalers_free(&r->s);
}

/* What follows the columns of token 2 and 1: loops around the leaf, place in the tree, sums and
 * ratios. */
static void check_context(const cd_batch *b) {
    const float *x = b->tok + 2 * b->w_tok + 164; /* loops 8 (parallel), 32 (serial) */
    float want[CD_BATCH_CONTEXT] = {0};
    want[0] = want[54] = 5; /* innermost; second from outside */
    want[1] = want[55] = 1;
    want[6] = want[48] = 3;
    want[6 + 2] = want[48 + 2] = 1;
    want[72] = 5; /* products: serial, parallel */
    want[73] = 3;
    want[77] = log2f(6);
    want[78] = 1; /* second leaf of two, depth 3, shares node 1 at depth 2 */
    want[79] = 2;
    want[80] = 3;
    want[81] = 2;
    for (size_t c = 0; c < CD_BATCH_CONTEXT; c++)
        assert_close((double)x[c], (double)want[c], 1e-6, 1e-6);
    float sums[CD_N_DERIVED];
    cd_tree_input_derived(row + 164, sums);
    for (size_t c = 0; c < CD_N_DERIVED; c++)
        assert_true(x[82 + c] == fmaxf(fminf(sums[c], CD_SCALER_CLIP), -CD_SCALER_CLIP));
    x = b->tok + 164; /* ten loops: 11 is innermost, then vectors; 2 is outermost */
    assert_close((double)x[0], log2(11), 1e-6, 0);
    assert_true(x[3] == 1 && x[6 + 4] == 1);
    assert_true(x[48] == 1 && x[48 + 5] == 1);
    assert_close((double)x[72 + 4], log2(6), 1e-6, 0);
}

static void columns(void **state) {
    const cd_program_view v = view();
    const uint32_t index[] = {2, 0};
    cdmpp_err err = {0};
    rig r;
    (void)state;
    open_rig(&r, &full, 2, 3, 2);
    assert_int_equal(r.b.w_tok, 164 + CD_BATCH_CONTEXT + CD_N_DERIVED);
    assert_int_equal(CD_BATCH_CONTEXT, 82);
    assert_ok(cd_batch_fill(&r.b, &full, &r.s, &v, index, 2, &err));
    assert_true(r.b.n == 2 && r.b.n_tok == 3 && r.b.max_leaf == 2);
    assert_true(r.b.tok_ptr[0] == 0 && r.b.tok_ptr[1] == 1 && r.b.tok_ptr[2] == 3);
    assert_true(r.b.pos[0] == 1 && r.b.pos[1] == 2 && r.b.pos[2] == 5);
    assert_true(r.b.dev[0] == 3 && r.b.dev[1] == 4 && r.b.dev[2] == 1 && r.b.dev[3] == 2);
    assert_true(r.b.flop[0] == 0 && r.b.flop[1] == 1023);
    for (size_t c = 0; c < 164; c++)
        assert_true(r.b.tok[2 * r.b.w_tok + c] == fminf(row[164 + c], CD_SCALER_CLIP));
    check_context(&r.b);
    const float *p = r.b.prog; /* operations: known 0, known 1023 */
    assert_true(p[r.b.w_prog - 2] == 0 && p[r.b.w_prog - 1] == 0);
    assert_true(p[2 * r.b.w_prog - 2] == 10 && p[2 * r.b.w_prog - 1] == 1);
    close_rig(&r);
}

static void refusals(void **state) {
    cd_program_view v = view();
    const uint32_t wrong[] = {0, 0, 7};
    cdmpp_err err = {0};
    rig r;
    (void)state;
    open_rig(&r, &full, 2, 3, 2);
    assert_status(cd_batch_fill(&r.b, &full, &r.s, &v, NULL, 3, &err), CDMPP_ERANGE);
    const uint32_t twice[] = {0, 0};
    assert_status(cd_batch_fill(&r.b, &full, &r.s, &v, twice, 2, &err), CDMPP_ERANGE);
    v.device = wrong;
    const uint32_t last = 2;
    assert_status(cd_batch_fill(&r.b, &full, &r.s, &v, &last, 1, &err), CDMPP_EMODEL);
    v.device = device;
    v.leaf_ptr = NULL;
    assert_status(cd_batch_fill(&r.b, &full, &r.s, &v, &last, 1, &err), CDMPP_EMODEL);
    close_rig(&r);
    const cd_batch_spec rows = {.program = true};
    open_rig(&r, &rows, 3, 0, 0);
    assert_ok(cd_batch_fill(&r.b, &rows, &r.s, &v, NULL, 3, &err));
    assert_true(r.b.n_tok == 0 && r.b.w_tok == 0 && r.b.w_dev == 0);
    close_rig(&r);
}

/* Facts stand behind the summary of the program, or alone, and a program without them is none for
 * such a network. */
static void facts(void **state) {
    static float fact[N_PROG * CD_N_FACTS], analytic[N_PROG * CD_N_ANALYTIC], want[CD_N_FACTS_COL];
    cd_program_view v = view();
    cdmpp_err err = {0};
    (void)state;
    for (size_t i = 0; i < N_PROG * CD_N_FACTS; i++) fact[i] = (float)(i % 97);
    for (size_t i = 0; i < N_PROG * CD_N_ANALYTIC; i++) analytic[i] = -(float)(i % 13);
    v.facts = fact;
    v.analytic = analytic;
    for (int both = 0; both < 2; both++) {
        const cd_batch_spec spec = {.program = both == 1, .facts = true};
        const cd_batch_spec summary = {.program = both == 1};
        const size_t before = cd_batch_program_width(&summary);
        rig r;
        open_rig(&r, &spec, N_PROG, 0, 0);
        assert_int_equal(r.b.w_prog, before + CD_N_FACTS_COL);
        assert_ok(cd_batch_fill(&r.b, &spec, &r.s, &v, NULL, N_PROG, &err));
        for (size_t i = 0; i < N_PROG; i++) {
            cd_facts_input_fill(&v, i, want);
            for (size_t c = 0; c < CD_N_FACTS_COL; c++)
                assert_true(r.b.prog[i * r.b.w_prog + before + c] ==
                            fmaxf(fminf(want[c], CD_SCALER_CLIP), -CD_SCALER_CLIP));
        }
        analytic[2 * CD_N_ANALYTIC] = NAN;
        assert_status(cd_batch_fill(&r.b, &spec, &r.s, &v, NULL, N_PROG, &err), CDMPP_EMODEL);
        assert_non_null(strstr(err.msg, "program 2 has no facts"));
        analytic[2 * CD_N_ANALYTIC] = -1;
        close_rig(&r);
    }
}

/* Program 0 has two steps, 1 none, 2 one of more values than are looked at. */
static const int64_t step_ptr[] = {0, 8, 8, 14};
static const int32_t step[] = {9, 1, 7, 8, 3, 1, 0, -3, 4, 4, 2, 5, 1023, 6};

/* Tokens of steps, written out by hand: kind one-hot, values; as many of each program, the rest
 * zeros. */
static void steps(void **state) {
    enum { W = 14 + 3 };
    cd_program_view v = view();
    cdmpp_err err = {0};
    (void)state;
    v.step_ptr = step_ptr;
    v.step = step;
    for (int logs = 0; logs < 2; logs++) {
        const cd_batch_spec spec = {
            .tokens = true, .steps = 2, .values = 3, .log_values = logs == 1};
        float want[6 * W] = {0};
        rig r;
        want[9] = 1, want[14] = logs ? 3 : 7;
        /* log2(1 + 1) = 1; the sign stays */
        want[W + 8] = 1, want[W + 14] = 1, want[W + 16] = logs ? -2 : -3;
        want[4 * W + 4] = 1, want[4 * W + 14] = logs ? log2f(3) : 2,
                     want[4 * W + 15] = logs ? log2f(6) : 5, want[4 * W + 16] = logs ? 10 : 1023;
        assert_int_equal(cd_batch_token_width(&spec), W);
        open_rig(&r, &spec, 3, 6, 2);
        for (int c = 0; c < W; c++) r.s.tok.scale[c] = 1;
        assert_ok(cd_batch_fill(&r.b, &spec, &r.s, &v, NULL, 3, &err));
        assert_true(r.b.n == 3 && r.b.n_tok == 6 && r.b.max_leaf == 2 && r.b.tok_ptr[2] == 4);
        /* scalers cut */
        for (size_t k = 0; k < 6 * W; k++)
            assert_close((double)r.b.tok[k], fmax(-10, fmin(10, (double)want[k])), 1e-6, 1e-6);
        assert_true(r.b.trips[0] == 0 && r.b.pos[3] == 1);
        const cd_batch_spec one = {
            .tokens = true, .steps = 1, .values = 3, .log_values = logs == 1};
        /* the second step is cut off */
        assert_ok(cd_batch_fill(&r.b, &one, &r.s, &v, NULL, 1, &err));
        assert_true(r.b.n_tok == 1 && r.b.tok[9] > 0);
        cd_program_view last = cd_program_view_range(&v, 2, 1);
        assert_ok(cd_batch_fill(&r.b, &spec, &r.s, &last, NULL, 1, &err));
        assert_true(r.b.tok[4] > 0);
        assert_ok(cd_scalers_fit(&r.s, CD_SCALE_STANDARD, &spec, &v, NULL, 3, &err));
        assert_true(r.s.trips.shift[0] == 0 && r.s.tok.scale[0] == 0 && r.s.tok.scale[9] > 0);
        v.step_ptr = NULL;
        assert_status(cd_batch_fill(&r.b, &spec, &r.s, &v, NULL, 1, &err), CDMPP_EMODEL);
        v.step_ptr = step_ptr;
        close_rig(&r);
    }
}

/* Trees go where the programs go; what is none, and where none is, is said. */
static void trees(void **state) {
    cd_program_view v = view();
    const uint32_t index[] = {2, 0};
    int32_t bent[18], pos[4];
    const cd_batch_spec spec = {.tokens = true, .tree = true};
    cdmpp_err err = {0};
    rig r;
    (void)state;
    const cd_batch_dims dims = {2, 3, 2, 4};
    assert_ok(cd_batch_init(&r.b, &spec, &dims, &err));
    assert_ok(cd_scalers_init(&r.s, &spec, &err));
    assert_ok(cd_batch_fill(&r.b, &spec, &r.s, &v, index, 2, &err));
    const cd_program_tree *t = &r.b.tree; /* nodes: 3; 1; roots 0 and, with fewer children, ... */
    assert_true(r.b.has_tree && t->n == 2 && t->n_tok == 3 && t->n_node == 4 && t->n_level == 3);
    assert_true(t->level[0] == 0 && t->level[1] == 1 && t->level[2] == 2 && t->level[3] == 4);
    assert_true(t->child.row[t->child.at[0]] == 2); /* the deepest node shows the last leaf */
    assert_ok(cd_batch_fill(&r.b, &spec, &r.s, &v, index, 1, &err));
    assert_true(t->n_node == 1 && t->n_level == 1 && t->child.n_row == 1);
    const uint32_t both[] = {0, 0};
    assert_status(cd_batch_fill(&r.b, &spec, &r.s, &v, both, 2, &err), CDMPP_ERANGE);
    memcpy(bent, tree, sizeof bent);
    memcpy(pos, leaf_pos, sizeof pos);
    v.tree = bent;
    v.leaf_pos = pos;
    bent[3] = 9; /* a leaf with a child */
    assert_status(cd_batch_fill(&r.b, &spec, &r.s, &v, index + 1, 1, &err), CDMPP_EMODEL);
    bent[3] = -1;
    pos[1] = 4;
    assert_status(cd_batch_fill(&r.b, &spec, &r.s, &v, index + 1, 1, &err), CDMPP_EMODEL);
    pos[1] = 5;
    assert_ok(cd_batch_fill(&r.b, &spec, &r.s, &v, index + 1, 1, &err));
    v.tree_ptr = NULL;
    assert_status(cd_batch_fill(&r.b, &spec, &r.s, &v, index, 1, &err), CDMPP_EMODEL);
    close_rig(&r);
}

/* Rows for tokens: the columns of leaves that show them, and no leaf is looked at. */
static void rows(void **state) {
    cd_program_view v = view(), bare = v;
    const cd_batch_spec leaves = {.tokens = true, .derived = true};
    const cd_batch_spec spec = {.tokens = true, .rows = true, .derived = true};
    const uint32_t index[] = {2, 0};
    cd_batch_dims d;
    cdmpp_err err = {0};
    rig r, l;
    (void)state;
    bare.leaf_ptr = bare.tree_ptr = NULL;
    assert_ok(cd_batch_bound(&spec, &bare, index, 2, 2, &d, &err));
    assert_int_equal(d.n_tok, (row_ptr[3] - row_ptr[2]) + (row_ptr[1] - row_ptr[0]));
    open_rig(&r, &spec, 2, d.n_tok, d.max_leaf);
    assert_ok(cd_batch_fill(&r.b, &spec, &r.s, &bare, index, 2, &err));
    const float *x[N_ROW];
    for (size_t i = 0; i < N_ROW; i++) x[i] = row + i * 164;
    const int32_t pos[N_ROW] = {0};
    v.leaf_ptr = row_ptr;
    v.leaf_x = x;
    v.leaf_pos = pos;
    open_rig(&l, &leaves, 2, d.n_tok, d.max_leaf);
    assert_ok(cd_batch_fill(&l.b, &leaves, &l.s, &v, index, 2, &err));
    assert_true(r.b.n_tok == d.n_tok && l.b.n_tok == d.n_tok && r.b.w_tok == l.b.w_tok);
    assert_memory_equal(r.b.tok, l.b.tok, r.b.n_tok * r.b.w_tok * sizeof *r.b.tok);
    assert_memory_equal(r.b.trips, l.b.trips, r.b.n_tok * sizeof *r.b.trips);
    for (size_t k = 0; k < r.b.tok_ptr[1]; k++) assert_int_equal(r.b.pos[k], k);
    close_rig(&r);
    close_rig(&l);
}

static void bound(void **state) {
    const cd_program_view v = view();
    const cd_batch_spec with = {.tokens = true, .tree = true}, alone = {.tokens = true};
    const uint32_t small[] = {1, 2};
    cd_batch_dims d;
    cdmpp_err err = {0};
    (void)state;
    assert_ok(cd_batch_bound(&with, &v, NULL, 3, 2, &d, &err));
    assert_true(d.n == 2 && d.n_tok == 3 && d.max_leaf == 2 && d.n_node == 4);
    assert_ok(cd_batch_bound(&with, &v, NULL, 3, 100, &d, &err));
    assert_true(d.n == 3 && d.n_tok == 4 && d.max_leaf == 2 && d.n_node == 5);
    assert_ok(cd_batch_bound(&with, &v, small, 2, 1, &d, &err));
    assert_true(d.n == 1 && d.n_tok == 1 && d.max_leaf == 1 && d.n_node == 1);
    assert_ok(cd_batch_bound(&with, &v, small, 0, 1, &d, &err));
    assert_true(d.n == 0 && d.n_tok == 0 && d.max_leaf == 0 && d.n_node == 0);
    assert_ok(cd_batch_bound(&alone, &v, NULL, 3, 2, &d, &err));
    assert_true(d.n_tok == 3 && d.n_node == 0);
    cd_program_view none = v;
    none.tree_ptr = NULL;
    assert_ok(cd_batch_bound(&with, &none, NULL, 3, 2, &d, &err));
    assert_true(d.n_tok == 3 && d.n_node == 0);
}

/* ---- scalers ---- */
/* The train part comes out with mean 0 and deviation 1, or within 0..1; a column that
 * is constant as 0. */
static void fitted(void **state) {
    const cd_program_view v = view();
    cdmpp_err err = {0};
    (void)state;
    for (int kind = CD_SCALE_NONE; kind <= CD_SCALE_MINMAX; kind++) {
        rig r;
        open_rig(&r, &full, N_PROG, N_LEAF, 2);
        assert_ok(cd_scalers_fit(&r.s, (cd_scale)kind, &full, &v, NULL, N_PROG, &err));
        assert_ok(cd_batch_fill(&r.b, &full, &r.s, &v, NULL, N_PROG, &err));
        for (size_t c = 0; c < r.b.w_tok; c++) {
            double mean = 0, sq = 0, lo = 1e9, hi = -1e9;
            for (size_t i = 0; i < N_LEAF; i++) {
                const double x = (double)r.b.tok[i * r.b.w_tok + c];
                mean += x / N_LEAF;
                sq += x * x / N_LEAF;
                lo = fmin(lo, x);
                hi = fmax(hi, x);
            }
            if (kind == CD_SCALE_STANDARD) assert_close(mean, 0, 0, 1e-5);
            if (kind == CD_SCALE_STANDARD && hi > lo) assert_close(sq, 1, 1e-4, 0);
            if (kind == CD_SCALE_MINMAX) assert_close(lo, 0, 0, 1e-6);
            if (kind == CD_SCALE_MINMAX && hi > lo) assert_close(hi, 1, 1e-5, 0);
            if (kind == CD_SCALE_NONE && c < 164)
                assert_true(lo >= 0 && hi <= (double)CD_SCALER_CLIP);
        }
        assert_true(r.b.dev[0] == 1 && r.b.dev[1] == 2); /* left alone */
        close_rig(&r);
    }
}

static void corners(void **state) {
    cd_scaler s;
    cd_scaler_fit f;
    cdmpp_err err = {0};
    (void)state;
    assert_ok(cd_scaler_init(&s, 3, &err));
    assert_ok(cd_scaler_fit_init(&f, 3, &err));
    for (int i = 0; i < 5; i++)
        cd_scaler_fit_add(&f, (const float[]){1e6f + (float)i, 4, (float)(i % 2)});
    cd_scaler_fit_end(&f, CD_SCALE_STANDARD, &s);
    float x[6] = {1e6f + 2, 5, NAN, 3e6f, -1e9f, -100};
    cd_scaler_apply(&s, x, 2);
    assert_close((double)x[0], 0, 0, 1e-6); /* a large mean costs no digits */
    assert_close((double)s.scale[0], 1 / sqrt(2), 1e-6, 0);
    assert_true(x[1] == 0 && x[2] == 0); /* constant while fitting; NaN */
    assert_true(x[3] == CD_SCALER_CLIP && x[4] == 0 && x[5] == -CD_SCALER_CLIP);
    cd_scaler_fit_free(&f);
    cd_scaler_free(&s);
}

TESTS(NULL, NULL, columns, refusals, facts, steps, trees, rows, bound, fitted, corners)
