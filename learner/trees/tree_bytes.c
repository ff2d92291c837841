/* Trees for 64 rows at a time, where the processor has AVX-512 (BW). What they answer is equal, bit by bit, to the walk of tree_inference.c.
 *
 *   byte      of a value: how many of its column's cuts (255 at most, of all trees together) are no more than the value; a missing value is 0 or 255 by its side.
 *             value < cut number j   is   byte <= j
 *   node      64 bytes are compared at once; of the rows that reach it a mask says which go to the first kid
 *   leaf      leaves of a tree are numbered from the left: a row's number grows by the leaves of the first kid wherever it goes to the second
 *
 * All nodes of a tree are computed, without a branch. Leaves are added in float, tree after tree, as ever. */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "learner/trees/tree_inference_internal.h"

enum { ROWS = 64, CUTS = 256, PART = 16, MOST_SLOT = 128, MOST_LEAF = 256, TABLE = 32 };

typedef struct {
    uint32_t column;
    int16_t slot[2]; /* of bytes where missing goes left, right; -1: no node asks so */
} column;

typedef struct {
    uint32_t cut, skip;  /* four times the byte: number of the cut; leaves below the first kid */
    uint16_t slot, from; /* which bytes; where the mask of its rows is: the kids of node i have masks 2i + 1 and 2i + 2 */
} node;

struct cd_tree_bytes {
    size_t n_column, n_slot, n_node, n_leaf;
    column *column;       /* (n_column) */
    float *cut;           /* (n_column, CUTS) ascending, then infinity */
    float *last;          /* (n_column, PART) of each PART of these the last */
    uint32_t *node_of, *leaf_of; /* (n_tree + 1) first ones of a tree */
    node *node;           /* (n_node) */
    float *leaf;          /* (n_leaf) */
};

void cd_tree_bytes_free(cd_tree_bytes *b) {
    if (!b) return;
    cd_mem_free(b->column);
    cd_mem_free(b->cut);
    cd_mem_free(b->last);
    cd_mem_free(b->node_of);
    cd_mem_free(b->node);
    cd_mem_free(b->leaf);
    cd_mem_free(b);
}

/* ---- making it ---- */
typedef struct {
    const cd_tree_inference *f;
    cd_tree_bytes *b;
    uint32_t *at;   /* (width) number of a column + 1; 0: no node asks for it */
    uint16_t *cuts; /* (n_column) */
} making;

static uint32_t plain(uint32_t c) { return c & ~CD_TREE_INFERENCE_MISSING_RIGHT; }

static bool is_leaf(const cd_tree_inference *f, uint32_t i) { return f->node[i].kid[0] == i; }

/* How many of `n` ascending values are no more than v. */
static size_t rank(const float *cut, size_t n, float v) {
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (cut[mid] <= v) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

/* The cut has its place among those of its column; false: there are too many. */
static bool add_cut(making *m, size_t c, float v) {
    float *cut = m->b->cut + c * CUTS;
    const size_t n = m->cuts[c], k = rank(cut, n, v);
    if (k && !(cut[k - 1] < v)) return true;
    if (n == CUTS - 1) return false;
    memmove(cut + k + 1, cut + k, (n - k) * sizeof *cut);
    cut[k] = v;
    m->cuts[c]++;
    return true;
}

/* Columns, their cuts and slots; false: they do not fit into bytes. */
static bool columns(making *m) {
    cd_tree_bytes *b = m->b;
    for (size_t i = 0; i < b->n_column * CUTS; i++) b->cut[i] = INFINITY;
    for (uint32_t i = 0; i < m->f->n_node; i++) {
        const cd_tree_inference_node *n = &m->f->node[i];
        if (is_leaf(m->f, i)) continue;
        const size_t c = m->at[plain(n->column)] - 1;
        int16_t *slot = &b->column[c].slot[n->column >> 31];
        if (!isfinite(n->cut) || !add_cut(m, c, n->cut) || (*slot < 0 && b->n_slot == MOST_SLOT)) return false;
        if (*slot < 0) *slot = (int16_t)b->n_slot++;
    }
    for (size_t i = 0; i < b->n_column * PART; i++) b->last[i] = b->cut[i * PART + PART - 1];
    return true;
}

/* The node and what is below it; `from`: where its mask is. */
static void lay(const making *m, size_t tree, uint32_t at, size_t from) {
    cd_tree_bytes *b = m->b;
    const cd_tree_inference_node *n = &m->f->node[at];
    if (is_leaf(m->f, at)) {
        b->leaf[b->n_leaf++] = n->cut;
        return;
    }
    const size_t i = b->n_node++, own = i - b->node_of[tree], before = b->n_leaf, c = m->at[plain(n->column)] - 1;
    const uint32_t j = (uint32_t)rank(b->cut + c * CUTS, m->cuts[c], n->cut) - 1;
    lay(m, tree, n->kid[0], 2 * own + 1);
    b->node[i] = (node){j * 0x01010101U, (uint32_t)(b->n_leaf - before) * 0x01010101U, (uint16_t)b->column[c].slot[n->column >> 31], (uint16_t)from};
    lay(m, tree, n->kid[1], 2 * own + 2);
}

/* false: a tree has too many leaves. */
static bool lay_all(const making *m) {
    const cd_tree_inference *f = m->f;
    cd_tree_bytes *b = m->b;
    for (size_t t = 0; t < f->n_tree; t++) {
        b->node_of[t] = (uint32_t)b->n_node, b->leaf_of[t] = (uint32_t)b->n_leaf;
        const size_t end = t + 1 < f->n_tree ? f->root[t + 1] : f->n_node;
        if ((end - f->root[t] + 1) / 2 > MOST_LEAF) return false;
        lay(m, t, f->root[t], 0);
    }
    b->node_of[f->n_tree] = (uint32_t)b->n_node, b->leaf_of[f->n_tree] = (uint32_t)b->n_leaf;
    return true;
}

/* Columns have numbers in the order of nodes. false: out of memory. */
static bool room(making *m, size_t width) {
    const cd_tree_inference *f = m->f;
    cd_tree_bytes *b = m->b;
    size_t inner = 0;
    if (!(m->at = cd_mem_zalloc(width + 1, sizeof *m->at)) || !(b->column = cd_mem_zalloc(width + 1, sizeof *b->column))) return false;
    for (uint32_t i = 0; i < f->n_node; i++) {
        const uint32_t c = plain(f->node[i].column);
        if (is_leaf(f, i)) continue;
        if (!m->at[c]) b->column[b->n_column++] = (column){c, {-1, -1}}, m->at[c] = (uint32_t)b->n_column;
        inner++;
    }
    m->cuts = cd_mem_zalloc(b->n_column + 1, sizeof *m->cuts);
    b->cut = cd_mem_zalloc(b->n_column * CUTS + 1, sizeof *b->cut);
    b->last = cd_mem_zalloc(b->n_column * PART + 1, sizeof *b->last);
    b->node_of = cd_mem_zalloc(2 * (f->n_tree + 1), sizeof *b->node_of);
    b->node = cd_mem_zalloc(inner + 1, sizeof *b->node);
    b->leaf = cd_mem_zalloc(f->n_node - inner + TABLE, sizeof *b->leaf); /* tables are read whole */
    if (!m->cuts || !b->cut || !b->last || !b->node_of || !b->node || !b->leaf) return false;
    b->leaf_of = b->node_of + f->n_tree + 1;
    return true;
}

bool cd_tree_bytes_here(void) { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"); }

cdmpp_status cd_tree_bytes_new(const cd_tree_inference *f, size_t width, cd_tree_bytes **out, cdmpp_err *err) {
    *out = NULL;
    if (!cd_tree_bytes_here()) return CDMPP_OK;
    making m = {f, cd_mem_zalloc(1, sizeof *m.b), NULL, NULL};
    const bool made = m.b && room(&m, width), fits = made && columns(&m) && lay_all(&m);
    cd_mem_free(m.at);
    cd_mem_free(m.cuts);
    if (fits) return *out = m.b, CDMPP_OK;
    cd_tree_bytes_free(m.b);
    return made ? CDMPP_OK : CD_FAIL(err, ENOMEM, "trees");
}

/* ---- 64 rows ---- */
#define WIDE __attribute__((target("avx512f,avx512bw,popcnt")))

/* Of 16 values that are each the last of 16 those that are no more tell the sixteen, and there the values again. */
WIDE static uint8_t byte_of(const float *cut, __m512 last, float v) {
    const __m512 x = _mm512_set1_ps(v);
    int part = __builtin_popcount(_mm512_cmp_ps_mask(last, x, _CMP_LE_OQ));
    if (part == PART) part--;
    const int n = PART * part + __builtin_popcount(_mm512_cmp_ps_mask(_mm512_loadu_ps(cut + PART * part), x, _CMP_LE_OQ));
    return (uint8_t)(n < CUTS ? n : CUTS - 1);
}

WIDE static void bytes_of(const cd_tree_bytes *b, const float *x, size_t n, size_t width, uint8_t (*v)[ROWS]) {
    for (size_t c = 0; c < b->n_column; c++) {
        const column *k = &b->column[c];
        const float *cut = b->cut + c * CUTS;
        const __m512 last = _mm512_loadu_ps(b->last + c * PART);
        for (size_t i = 0; i < ROWS; i++) {
            const float value = x[(i < n ? i : n - 1) * width + k->column];
            const bool missing = value != value;
            const uint8_t byte = missing ? 0 : byte_of(cut, last, value);
            if (k->slot[0] >= 0) v[k->slot[0]][i] = byte;
            if (k->slot[1] >= 0) v[k->slot[1]][i] = missing ? CUTS - 1 : byte;
        }
    }
}

/* Numbers of the leaves of 64 rows. */
WIDE static __m512i leaves(const node *tree, size_t n, uint8_t (*v)[ROWS]) {
    __mmask64 reach[2 * MOST_LEAF];
    __m512i at = _mm512_setzero_si512();
    reach[0] = ~(__mmask64)0;
    for (size_t i = 0; i < n; i++) {
        const node *k = &tree[i];
        const __mmask64 here = _load_mask64(&reach[k->from]), left = _mm512_mask_cmple_epu8_mask(here, _mm512_load_si512(v[k->slot]), _mm512_set1_epi32((int)k->cut));
        const __mmask64 right = _kxor_mask64(here, left);
        _store_mask64(&reach[2 * i + 1], left), _store_mask64(&reach[2 * i + 2], right);
        at = _mm512_mask_add_epi8(at, right, at, _mm512_set1_epi32((int)k->skip));
    }
    return at;
}

/* Values of leaves by their numbers, from n tables of 32: a processor gathers slower than it permutes. */
WIDE static __m512 values(const float *leaf, size_t n, __m128i number) {
    const __m512i at = _mm512_cvtepu8_epi32(number), table = _mm512_srli_epi32(at, 5);
    __m512 v = _mm512_permutex2var_ps(_mm512_loadu_ps(leaf), at, _mm512_loadu_ps(leaf + 16));
    for (size_t k = 1; k < n; k++) {
        const __m512 other = _mm512_permutex2var_ps(_mm512_loadu_ps(leaf + TABLE * k), at, _mm512_loadu_ps(leaf + TABLE * k + 16));
        v = _mm512_mask_mov_ps(v, _mm512_cmpeq_epi32_mask(table, _mm512_set1_epi32((int)k)), other);
    }
    return v;
}

WIDE void cd_tree_bytes_score(const cd_tree_inference *f, const float *x, size_t n, size_t width, size_t n_tree, float *out) {
    const cd_tree_bytes *b = f->bytes;
    _Alignas(64) uint8_t v[MOST_SLOT][ROWS];
    _Alignas(64) float all[ROWS];
    __m512 sum[4];
    bytes_of(b, x, n, width, v);
    for (int q = 0; q < 4; q++) sum[q] = _mm512_set1_ps(f->base);
    for (size_t t = 0; t < n_tree; t++) {
        const __m512i at = leaves(b->node + b->node_of[t], b->node_of[t + 1] - b->node_of[t], v);
        const float *leaf = b->leaf + b->leaf_of[t];
        const size_t n_table = (b->leaf_of[t + 1] - b->leaf_of[t] + TABLE - 1) / TABLE;
        sum[0] = _mm512_add_ps(sum[0], values(leaf, n_table, _mm512_extracti32x4_epi32(at, 0)));
        sum[1] = _mm512_add_ps(sum[1], values(leaf, n_table, _mm512_extracti32x4_epi32(at, 1)));
        sum[2] = _mm512_add_ps(sum[2], values(leaf, n_table, _mm512_extracti32x4_epi32(at, 2)));
        sum[3] = _mm512_add_ps(sum[3], values(leaf, n_table, _mm512_extracti32x4_epi32(at, 3)));
    }
    for (int q = 0; q < 4; q++) _mm512_store_ps(all + 16 * q, sum[q]);
    memcpy(out, all, n * sizeof *out);
}
