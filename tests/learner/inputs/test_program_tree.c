/* tree: the header's example by hand; its invariants over random trees in many tiles;
 * what is no tree is refused. */
#include "learner/inputs/program_tree.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "learner/tensor/tensor.h"
#include "made_batch.h"

/* ---- the drawing ---- */
static const int32_t p0[] = {0, 1, -1, 2, 3, -1, 4, 5, -1, -1, -1, -1}, at0[] = {1, 4, 7};
static const int32_t p1[] = {0, 1, -1, -1}, at1[] = {1};

static void open_tree(cd_program_tree *t, cd_slab *s, size_t n, size_t n_tok, size_t n_node) {
    cdmpp_err err = {0};
    memset(t, 0, sizeof *t);
    memset(s, 0, sizeof *s);
    cd_program_tree_plan(t, s, n, n_tok, n_node);
    assert_ok(cd_slab_alloc(s, &err));
    cd_program_tree_plan(t, s, n, n_tok, n_node);
    cd_program_tree_clear(t);
}

static void same(const uint32_t *got, const uint32_t *want, size_t n) {
    for (size_t i = 0; i < n; i++) assert_int_equal(got[i], want[i]);
}

static void drawing(void **state) {
    cd_program_tree t;
    cd_slab s;
    cdmpp_err err = {0};
    (void)state;
    open_tree(&t, &s, 2, 4, 4);
    assert_ok(cd_program_tree_check(p0, 12, at0, 3, &err));
    assert_ok(cd_program_tree_add(&t, p0, 12, at0, 3, &err));
    assert_ok(cd_program_tree_add(&t, p1, 4, at1, 1, &err));
    assert_status(cd_program_tree_add(&t, p1, 4, at1, 1, &err), CDMPP_ERANGE);
    cd_program_tree_close(&t);
    assert_true(t.n == 2 && t.n_tok == 4 && t.n_node == 4 && t.n_tile == 1 && t.n_level == 3);
    same(t.level, (const uint32_t[]){0, 1, 2, 4}, 4);
    same(t.root, (const uint32_t[]){2, 3}, 2);
    same(t.child.first, (const uint32_t[]){0, 1, 3, 5}, 4);
    same(t.child.width, (const uint32_t[]){1, 1, 1, 2, 1}, 5);
    same(t.child.at, (const uint32_t[]){0, 1, 4, 2, 5}, 5);
    same(t.child.row, (const uint32_t[]){2, 1, 0, 3, 4 + 0, 4 + 1}, 6);
    assert_true(t.child.n == 5 && t.child.n_row == 6 && t.child.n_first == 4);
    same(t.own, (const uint32_t[]){0, 1, 2, 3}, 4);
    same(t.leaf.row, (const uint32_t[]){2, 1, 0, 3}, 4);
    assert_true(t.leaf.n == 1 && t.leaf.n_row == 4 && t.leaf.n_first == 4 && t.tile_own[1] == 4);
    cd_slab_free(&s);
}

/* ---- random trees ---- */
enum { N = 150, MOST = 9, TOK = N * MOST, NODE = N * MADE_NODES(MOST), ALL = TOK + NODE };

/* Slow truth: parent and place of everything, from the lists themselves. */
typedef struct {
    size_t n_tok, n_node, program[ALL];
    size_t parent[ALL], place[ALL], own_place[ALL], depth[ALL], kids[ALL], leaves[ALL];
} truth; /* leaves first, then nodes in pre-order from TOK on; SIZE_MAX: root */

static void read_list(truth *r, size_t program, const int32_t *list, size_t n,
                      const int32_t *leaf_pos) {
    size_t stack[MADE_NODES(MOST) + 1], open = 0, leaf = 0;
    for (size_t i = 0; i < n; i++) {
        if (list[i] < 0) {
            open--;
            continue;
        }
        const bool is_leaf = i + 1 < n && list[i + 1] < 0 && leaf_pos[leaf] == (int32_t)i;
        const size_t k = is_leaf ? r->n_tok++ : TOK + r->n_node++,
                     up = open ? stack[open - 1] : SIZE_MAX;
        r->program[k] = program;
        r->parent[k] = up;
        r->depth[k] = open;
        if (open) {
            r->place[k] = r->kids[up]++;
            if (is_leaf) r->own_place[k] = r->leaves[up]++;
        }
        if (is_leaf && leaf + 1 < MOST) leaf++;
        stack[open++] = k;
    }
}

static truth slow;
static size_t where[ALL]; /* row of the tree -> item of the truth */

/* Which node is which: roots first, then children through the steps. */
static void name_nodes(const cd_program_tree *t) {
    for (size_t k = 0; k < t->n_tok; k++) where[k] = k;
    for (size_t k = t->n_tok; k < t->n_tok + t->n_node; k++) where[k] = SIZE_MAX;
    for (size_t k = TOK; k < TOK + slow.n_node; k++)
        if (slow.parent[k] == SIZE_MAX) where[t->n_tok + t->root[slow.program[k]]] = k;
    for (size_t l = t->n_level; l-- > 0;)
        for (size_t s = t->child.first[l]; s < t->child.first[l + 1]; s++)
            for (size_t i = 0; i < t->child.width[s]; i++) {
                const size_t row = t->child.row[t->child.at[s] + i],
                             up = where[t->n_tok + t->level[l] + i];
                assert_true(up != SIZE_MAX);
                for (size_t k = TOK; row >= t->n_tok && k < TOK + slow.n_node; k++)
                    if (slow.parent[k] == up && slow.place[k] == s - t->child.first[l])
                        where[row] = k;
            }
}

static void check_levels(const cd_program_tree *t) {
    for (size_t tile = 0; tile < t->n_tile; tile++)
        for (size_t l = t->tile_level[tile]; l < t->tile_level[tile + 1]; l++)
            for (size_t k = t->level[l]; k < t->level[l + 1]; k++) {
                const size_t node = where[t->n_tok + k], p = slow.program[node];
                assert_int_equal(slow.depth[node], t->tile_level[tile + 1] - 1 - l);
                assert_true(p >= cd_ops_tile_at(N, t->n_tile, tile) &&
                            p < cd_ops_tile_at(N, t->n_tile, tile + 1));
                if (k > t->level[l])
                    assert_true(slow.kids[node] <= slow.kids[where[t->n_tok + k - 1]]);
            }
}

/* Each shown once, by the right node, in its place; first steps before all others. */
static void check_children(const cd_program_tree *t) {
    static int seen[ALL];
    memset(seen, 0, sizeof seen);
    for (size_t l = 0; l < t->n_level; l++)
        for (size_t s = t->child.first[l]; s < t->child.first[l + 1]; s++)
            for (size_t i = 0; i < t->child.width[s]; i++) {
                const size_t at = t->child.at[s] + i, row = t->child.row[at], item = where[row];
                assert_int_equal(seen[row]++, 0);
                assert_true(row < t->n_tok || row - t->n_tok < t->level[l]); /* earlier */
                assert_int_equal(slow.parent[item], where[t->n_tok + t->level[l] + i]);
                assert_int_equal(slow.place[item], s - t->child.first[l]);
                assert_true((at < t->child.n_first) == (s == t->child.first[l]));
            }
    for (size_t k = 0; k < t->n_tok + t->n_node; k++)
        assert_int_equal(seen[k], slow.parent[where[k]] != SIZE_MAX);
}

static void check_own(const cd_program_tree *t) {
    size_t shown = 0;
    for (size_t tile = 0; tile < t->n_tile; tile++)
        for (size_t s = t->leaf.first[tile]; s < t->leaf.first[tile + 1]; s++)
            for (size_t i = 0; i < t->leaf.width[s]; i++, shown++) {
                const size_t at = t->leaf.at[s] + i, row = t->leaf.row[at];
                assert_true(row < t->n_tok);
                assert_int_equal(slow.parent[row], where[t->n_tok + t->own[t->tile_own[tile] + i]]);
                assert_int_equal(slow.own_place[row], s - t->leaf.first[tile]);
                assert_true((at < t->leaf.n_first) == (s == t->leaf.first[tile]));
            }
    assert_true(shown == t->n_tok && t->leaf.n_row == t->n_tok);
}

static void laws(void **state) {
    cd_program_tree t;
    cd_slab s;
    cdmpp_err err = {0};
    (void)state;
    open_tree(&t, &s, N, TOK, NODE);
    for (uint64_t seed = 0; seed < 3; seed++) {
        cd_program_tree_clear(&t); /* used again */
        memset(&slow, 0, sizeof slow);
        for (size_t p = 0; p < N; p++) {
            int32_t list[2 * (MADE_NODES(MADE_LEAVES) + MADE_LEAVES)], leaf_pos[MADE_LEAVES] = {0};
            const uint64_t key = cd_rng_at(seed, p);
            const size_t leaves = 1 + key % MOST, n = made_tree(key, leaves, list, leaf_pos);
            assert_ok(cd_program_tree_check(list, n, leaf_pos, leaves, &err));
            assert_ok(cd_program_tree_add(&t, list, n, leaf_pos, leaves, &err));
            read_list(&slow, p, list, n, leaf_pos);
        }
        cd_program_tree_close(&t);
        assert_true(t.n_tok == slow.n_tok && t.n_node == slow.n_node && t.n_tile == 4);
        name_nodes(&t);
        check_levels(&t);
        check_children(&t);
        check_own(&t);
    }
    cd_program_tree_clear(&t);
    cd_program_tree_close(&t); /* no programs */
    assert_true(t.n_tile == 0 && t.child.n_row == 0 && t.leaf.n_row == 0);
    cd_slab_free(&s);
}

/* ---- no trees ---- */
static void broken(void **state) {
    cdmpp_err err = {0};
    (void)state;
    static const struct {
        int32_t list[8];
        size_t n;
        int32_t leaf_pos[2];
        size_t n_leaf;
    } bad[] = {
        {{0}, 0, {0}, 0},                      /* nothing */
        {{0, -1}, 2, {0}, 1},                  /* a leaf as root */
        {{-1, 0, -1}, 3, {1}, 1},              /* closes nothing */
        {{0, 1, -1}, 3, {1}, 1},               /* stays open */
        {{0, 1, -1, -1, -1}, 5, {1}, 1},       /* closed twice */
        {{0, 1, -1, -1, 2, -1}, 6, {1}, 1},    /* two roots */
        {{0, 1, 2, -1, -1, -1}, 6, {1}, 1},    /* a leaf with a child */
        {{0, 1}, 2, {1}, 1},                   /* cut off behind a leaf */
        {{0, 1, -1, -1}, 4, {2}, 1},           /* a leaf where none is */
        {{0, 1, -1, -1}, 4, {9}, 1},           /* nor here */
        {{0, 1, -1, -1}, 4, {-3}, 1},          /* nor here */
        {{0, 1, -1, 2, -1, -1}, 6, {3, 1}, 2}, /* leaves out of order */
    };
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        assert_status(
            cd_program_tree_check(bad[k].list, bad[k].n, bad[k].leaf_pos, bad[k].n_leaf, &err),
            CDMPP_EMODEL);
    /* a node that never got a leaf is one */
    assert_ok(cd_program_tree_check((const int32_t[]){0, 1, -1, 2, -1, -1}, 6, (const int32_t[]){3},
                                    1, &err));
}

static void no_room(void **state) {
    cd_program_tree t;
    cd_slab s;
    cdmpp_err err = {0};
    (void)state;
    for (int k = 0; k < 3; k++) {
        open_tree(&t, &s, k == 0 ? 1 : 2, k == 1 ? 3 : 4, k == 2 ? 3 : 4);
        assert_ok(cd_program_tree_add(&t, p0, 12, at0, 3, &err));
        assert_status(cd_program_tree_add(&t, p1, 4, at1, 1, &err), CDMPP_ERANGE);
        cd_slab_free(&s);
    }
}

TESTS(NULL, NULL, drawing, laws, broken, no_room)
