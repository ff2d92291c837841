/* Trees for many rows at a time, where the processor has AVX-512 (BW). What they answer is equal,
 * bit by bit, to the walk of tree_inference.c.
 *
 *   byte   of a value: how many of its column's cuts (255 at most, of all trees together) are no
 *          more than the value; a missing value is 0 or 255 by its side.
 *          value < cut number j   is   byte <= j
 *   slot   the bytes of a column and of the side that a missing value takes, of all rows
 *   level  a row is at a place of its tree's level, 0 to 127. Two tables of bytes tell the slot and
 *          the cut there. Rows take the slot's byte from each slot
 *          of the level in turn, those that ask for it, and step to place 2p or 2p + 1
 *   leaf   values stand by their place in the last level; a leaf above it has nodes below it that
 *          all lead to the left
 *
 * A tree of 8 levels has up to 255 nodes and some 60 slots in its levels, so this is less than to
 * compare at each node. Four times 64 rows go at a time: a level's tables are read once for all.
 * Leaves are added in float, tree after tree, as ever. */
#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "learner/trees/tree_inference_internal.h"

enum {
    LANES = 64,
    BLOCKS = CD_TREE_BYTES_ROWS / LANES,
    CUTS = 256,
    LINE = 16,
    PART = 32,
    MOST_SLOT = 255,
    MOST_DEPTH = 8,
    TABLE = 32,
    EACH = 0x01010101
};

typedef struct {
    uint32_t column;
    uint32_t parts;  /* of PART cuts that have one that is finite */
    int16_t slot[2]; /* of bytes where missing goes left, right; -1: no node asks so */
} column;

typedef struct {
    size_t table, slot, leaf; /* first ones */
    size_t depth;
} tree;

struct cd_tree_bytes {
    size_t n_column, n_slot, n_table, n_list, n_leaf;
    column *column; /* (n_column) */
    float *cut;     /* (n_column, CUTS) ascending, then infinity */
    tree *tree;     /* (n_tree) */
    uint8_t *table; /* (n_table) of each level the cut of each place, then its slot */
    /* (n_list) of each level how many slots it has, then each, in EACH of its four bytes */
    uint32_t *list;
    float *leaf; /* (n_leaf) */
};

void cd_tree_bytes_free(cd_tree_bytes *b) {
    if (!b) return;
    cd_mem_free(b->column);
    cd_mem_free(b->cut);
    cd_mem_free(b->tree);
    cd_mem_free(b->table);
    cd_mem_free(b->list);
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
        if (!isfinite(n->cut) || !add_cut(m, c, n->cut) || (*slot < 0 && b->n_slot == MOST_SLOT))
            return false;
        if (*slot < 0) *slot = (int16_t)b->n_slot++;
    }
    for (size_t c = 0; c < b->n_column; c++) b->column[c].parts = m->cuts[c] / PART + 1u;
    return true;
}

/* Bytes of a table of a level: a shuffle takes 16 at a time. */
static size_t table_size(size_t level) { return level < 4 ? 16 : (size_t)1 << level; }

/* Where the tables of a level begin. */
static size_t table_at(size_t level) {
    size_t at = 0;
    for (size_t d = 0; d < level; d++) at += 2 * table_size(d);
    return at;
}

/* The node at its place, and what is below it. */
static void lay(const making *m, const tree *t, uint32_t at, size_t level, size_t place) {
    const cd_tree_inference_node *n = &m->f->node[at];
    if (is_leaf(m->f, at)) {
        m->b->leaf[t->leaf + (place << (t->depth - level))] = n->cut;
        return;
    }
    const size_t c = m->at[plain(n->column)] - 1;
    uint8_t *table = m->b->table + t->table + table_at(level);
    table[place] = (uint8_t)(rank(m->b->cut + c * CUTS, m->cuts[c], n->cut) - 1);
    table[table_size(level) + place] = (uint8_t)m->b->column[c].slot[n->column >> 31];
    lay(m, t, n->kid[0], level + 1, 2 * place);
    lay(m, t, n->kid[1], level + 1, 2 * place + 1);
}

/* The slots of a level. Places without a node have cut 255, so all go to the left, and a slot that
 * is there. */
static void list(cd_tree_bytes *b, uint8_t *table, size_t n) {
    uint32_t *count = &b->list[b->n_list++];
    bool seen[CUTS] = {false};
    for (size_t i = 0; i < n; i++) {
        if (table[i] == CUTS - 1 || seen[table[i]]) continue;
        seen[table[i]] = true;
        b->list[b->n_list++] = table[i] * (uint32_t)EACH;
        ++*count;
    }
    for (size_t i = 0; i < n; i++)
        if (table[i] == CUTS - 1) table[i] = (uint8_t)count[1];
}

static void lay_all(const making *m) {
    cd_tree_bytes *b = m->b;
    memset(b->table, CUTS - 1, b->n_table);
    for (size_t k = 0; k < m->f->n_tree; k++) {
        tree *t = &b->tree[k];
        t->slot = b->n_list;
        lay(m, t, m->f->root[k], 0, 0);
        for (size_t d = 0; d < t->depth; d++)
            list(b, b->table + t->table + table_at(d) + table_size(d), table_size(d));
    }
}

/* Where each tree's tables and leaves are. false: out of memory. */
static bool trees(const cd_tree_inference *f, cd_tree_bytes *b) {
    if (!(b->tree = cd_mem_zalloc(f->n_tree + 1, sizeof *b->tree))) return false;
    for (size_t t = 0; t < f->n_tree; t++) {
        b->tree[t] = (tree){.table = b->n_table, .leaf = b->n_leaf, .depth = f->depth[t]};
        b->n_table += table_at(f->depth[t]);
        /* tables of leaves are read whole */
        b->n_leaf += f->depth[t] > 5 ? (size_t)1 << f->depth[t] : TABLE;
    }
    b->table = cd_mem_zalloc(b->n_table + 1, sizeof *b->table);
    b->leaf = cd_mem_zalloc(b->n_leaf + 1, sizeof *b->leaf);
    return b->table && b->leaf;
}

/* Columns have numbers in the order of nodes. false: out of memory. */
static bool room(making *m, size_t width) {
    const cd_tree_inference *f = m->f;
    cd_tree_bytes *b = m->b;
    size_t inner = 0;
    if (!(m->at = cd_mem_zalloc(width + 1, sizeof *m->at)) ||
        !(b->column = cd_mem_zalloc(width + 1, sizeof *b->column)))
        return false;
    for (uint32_t i = 0; i < f->n_node; i++) {
        const uint32_t c = plain(f->node[i].column);
        if (is_leaf(f, i)) continue;
        if (!m->at[c])
            b->column[b->n_column++] = (column){c, 0, {-1, -1}}, m->at[c] = (uint32_t)b->n_column;
        inner++;
    }
    m->cuts = cd_mem_zalloc(b->n_column + 1, sizeof *m->cuts);
    b->cut = cd_mem_zalloc(b->n_column * CUTS + 1, sizeof *b->cut);
    /* a level has no more slots than nodes */
    b->list = cd_mem_zalloc(inner + MOST_DEPTH * f->n_tree + 1, sizeof *b->list);
    return m->cuts && b->cut && b->list && trees(f, b);
}

static bool flat(const cd_tree_inference *f) {
    for (size_t t = 0; t < f->n_tree; t++)
        if (f->depth[t] > MOST_DEPTH) return false;
    return true;
}

bool cd_tree_bytes_here(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
}

cdmpp_status cd_tree_bytes_new(const cd_tree_inference *f, size_t width, cd_tree_bytes **out,
                               cdmpp_err *err) {
    *out = NULL;
    if (!cd_tree_bytes_here() || !flat(f)) return CDMPP_OK;
    making m = {f, cd_mem_zalloc(1, sizeof *m.b), NULL, NULL};
    const bool made = m.b && room(&m, width), fits = made && columns(&m);
    if (fits) lay_all(&m);
    cd_mem_free(m.at);
    cd_mem_free(m.cuts);
    if (fits) return *out = m.b, CDMPP_OK;
    cd_tree_bytes_free(m.b);
    return made ? CDMPP_OK : CD_FAIL(err, ENOMEM, "trees");
}

/* ---- many rows ---- */
#define WIDE      __attribute__((target("avx512f,avx512bw")))
#define BLOCKWISE _Pragma("GCC unroll 4") for (size_t k = 0; k < blocks; k++)

/* How many of PART ascending cuts are no more than each of 16 values. */
WIDE static inline __m512i rank_of(const float *cut, __m512 v) {
    const __m512 low = _mm512_loadu_ps(cut), high = _mm512_loadu_ps(cut + LINE);
    __m512i n = _mm512_setzero_si512();
    _Pragma("GCC unroll 5") for (int half = PART / 2; half; half /= 2) {
        const __m512 at =
            _mm512_permutex2var_ps(low, _mm512_add_epi32(n, _mm512_set1_epi32(half - 1)), high);
        n = _mm512_mask_add_epi32(n, _mm512_cmp_ps_mask(at, v, _CMP_LE_OQ), n,
                                  _mm512_set1_epi32(half));
    }
    return _mm512_mask_add_epi32(n,
                                 _mm512_cmp_ps_mask(_mm512_set1_ps(cut[PART - 1]), v, _CMP_LE_OQ),
                                 n, _mm512_set1_epi32(1));
}

/* The bytes of 16 rows of a column. The last cut of all is infinite, so it counts as more than
 * every value, infinite ones too. */
WIDE static void bytes_16(const column *k, const float *cut, const float *value, uint8_t *left,
                          uint8_t *right) {
    const __m512 x = _mm512_load_ps(value), v = _mm512_min_ps(x, _mm512_set1_ps(FLT_MAX));
    const __mmask16 missing = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    __m512i n = rank_of(cut, v);
    for (size_t p = 1; p < k->parts; p++) n = _mm512_add_epi32(n, rank_of(cut + PART * p, v));
    if (left)
        _mm_storeu_si128((__m128i *)(void *)left, _mm512_cvtepi32_epi8(_mm512_mask_mov_epi32(
                                                      n, missing, _mm512_setzero_si512())));
    if (right)
        _mm_storeu_si128((__m128i *)(void *)right, _mm512_cvtepi32_epi8(_mm512_mask_mov_epi32(
                                                       n, missing, _mm512_set1_epi32(CUTS - 1))));
}

/* Behind the last row it comes again, to a whole number of LANES. */
WIDE static void bytes_of(const cd_tree_bytes *b, const float *x, size_t n, size_t width,
                          uint8_t (*v)[CD_TREE_BYTES_ROWS]) {
    _Alignas(64) float value[MOST_SLOT][LINE];
    const size_t end = (n + LANES - 1) / LANES * LANES;
    for (size_t i = 0; i < end; i += LINE) {
        for (size_t k = 0; k < LINE; k++) {
            const float *row = x + (i + k < n ? i + k : n - 1) * width;
            for (size_t c = 0; c < b->n_column; c++) value[c][k] = row[b->column[c].column];
        }
        for (size_t c = 0; c < b->n_column; c++) {
            const column *k = &b->column[c];
            bytes_16(k, b->cut + c * CUTS, value[c], k->slot[0] < 0 ? NULL : v[k->slot[0]] + i,
                     k->slot[1] < 0 ? NULL : v[k->slot[1]] + i);
        }
    }
}

/* All rows, by `table` of the level from their places to the next ones; returns the end of the
 * level's slots. */
WIDE static inline __attribute__((always_inline)) const uint32_t *
step(const uint8_t *table, size_t size, const uint32_t *slot, uint8_t (*v)[CD_TREE_BYTES_ROWS],
     size_t blocks, __m512i *at) {
    __m512i cut[BLOCKS], of[BLOCKS], value[BLOCKS];
    for (size_t part = 0; part < size; part += 16) {
        const __m512i c =
            _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)(table + part)));
        const __m512i s = _mm512_broadcast_i32x4(
                          _mm_loadu_si128((const __m128i *)(const void *)(table + size + part))),
                      from = _mm512_set1_epi8((char)part);
        BLOCKWISE {
            const __mmask64 here = part ? _mm512_cmpge_epu8_mask(at[k], from) : 0;
            cut[k] = part ? _mm512_mask_shuffle_epi8(cut[k], here, c, at[k])
                          : _mm512_shuffle_epi8(c, at[k]);
            of[k] = part ? _mm512_mask_shuffle_epi8(of[k], here, s, at[k])
                         : _mm512_shuffle_epi8(s, at[k]);
        }
    }
    const uint32_t *const end = slot + 1 + *slot;
    BLOCKWISE value[k] = _mm512_load_si512(v[slot[1] & 0xff] + LANES * k);
    for (slot += 2; slot < end; slot++) {
        const __m512i this = _mm512_set1_epi32((int)*slot);
        BLOCKWISE value[k] = _mm512_mask_mov_epi8(value[k], _mm512_cmpeq_epi8_mask(of[k], this),
                                                  _mm512_load_si512(v[*slot & 0xff] + LANES * k));
    }
    BLOCKWISE at[k] = _mm512_mask_sub_epi8(_mm512_add_epi8(at[k], at[k]),
                                           _mm512_cmpgt_epu8_mask(value[k], cut[k]),
                                           _mm512_add_epi8(at[k], at[k]), _mm512_set1_epi8(-1));
    return end;
}

/* Values of leaves by their numbers, from n tables of 32: a processor gathers slower than it
 * permutes. */
WIDE static __m512 values(const float *leaf, size_t n, __m128i number) {
    const __m512i at = _mm512_cvtepu8_epi32(number), table = _mm512_srli_epi32(at, 5);
    __m512 v = _mm512_permutex2var_ps(_mm512_loadu_ps(leaf), at, _mm512_loadu_ps(leaf + 16));
    for (size_t k = 1; k < n; k++) {
        const __m512 other = _mm512_permutex2var_ps(_mm512_loadu_ps(leaf + TABLE * k), at,
                                                    _mm512_loadu_ps(leaf + TABLE * k + 16));
        v = _mm512_mask_mov_ps(v, _mm512_cmpeq_epi32_mask(table, _mm512_set1_epi32((int)k)), other);
    }
    return v;
}

WIDE static inline __attribute__((always_inline)) void score(const cd_tree_inference *f,
                                                             uint8_t (*v)[CD_TREE_BYTES_ROWS],
                                                             size_t blocks, size_t n_tree,
                                                             float *sum) {
    const cd_tree_bytes *b = f->bytes;
    for (const tree *t = b->tree; t < b->tree + n_tree; t++) {
        const uint8_t *table = b->table + t->table;
        const uint32_t *slot = b->list + t->slot;
        const float *leaf = b->leaf + t->leaf;
        const size_t n_table = t->depth > 5 ? (size_t)1 << (t->depth - 5) : 1;
        __m512i at[BLOCKS];
        BLOCKWISE at[k] = _mm512_setzero_si512();
        for (size_t d = 0; d < t->depth; table += 2 * table_size(d++))
            slot = step(table, table_size(d), slot, v, blocks, at);
        BLOCKWISE {
            float *to = sum + LANES * k;
            _mm512_store_ps(
                to, _mm512_add_ps(_mm512_load_ps(to),
                                  values(leaf, n_table, _mm512_extracti32x4_epi32(at[k], 0))));
            _mm512_store_ps(
                to + 16, _mm512_add_ps(_mm512_load_ps(to + 16),
                                       values(leaf, n_table, _mm512_extracti32x4_epi32(at[k], 1))));
            _mm512_store_ps(
                to + 32, _mm512_add_ps(_mm512_load_ps(to + 32),
                                       values(leaf, n_table, _mm512_extracti32x4_epi32(at[k], 2))));
            _mm512_store_ps(
                to + 48, _mm512_add_ps(_mm512_load_ps(to + 48),
                                       values(leaf, n_table, _mm512_extracti32x4_epi32(at[k], 3))));
        }
    }
}

WIDE void cd_tree_bytes_score(const cd_tree_inference *f, const float *x, size_t n, size_t width,
                              size_t n_tree, float *out) {
    _Alignas(64) uint8_t v[MOST_SLOT][CD_TREE_BYTES_ROWS];
    _Alignas(64) float sum[CD_TREE_BYTES_ROWS];
    bytes_of(f->bytes, x, n, width, v);
    for (size_t i = 0; i < CD_TREE_BYTES_ROWS; i++) sum[i] = f->base;
    if (n > 2 * LANES) score(f, v, BLOCKS, n_tree, sum);
    else if (n > LANES) score(f, v, 2, n_tree, sum);
    else score(f, v, 1, n_tree, sum);
    memcpy(out, sum, n * sizeof *out);
}
