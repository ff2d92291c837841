/* The table of columns as C, as a digest, as the manual and as JSON; all of them from
 * leaf_cols.def. Models and data sets store the digest, so one with other columns is refused. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "features/rows/rows.h"

/* One order for the rows of a program and for the buffers of a row. TVM keeps both in tables by
 * address, so the same program has other rows from run to run. What it leaves to chance is put in
 * order here, or taken away where the rows do not hold it (docs/internals/ansor.md, Order of
 * rows). */

/* Columns of a block, and the steps of a reuse distance in its logarithm: about 1 % of the
 * bytes. */
enum {
    BYTES = CD_COL_B0_BYTES - CD_COL_B0_READ,
    LINES = CD_COL_B0_LINES - CD_COL_B0_READ,
    REUSE_BYTES = CD_COL_B0_REUSE_DIS_BYTES - CD_COL_B0_READ,
    STEPS = 64
};

/* The larger one as a sequence of numbers comes first. */
static int compare(const float *a, const float *b, size_t n) {
    for (size_t c = 0; c < n; c++)
        if (a[c] != b[c]) return a[c] > b[c] ? -1 : 1;
    return 0;
}

static bool same_key(const float *a, const float *b) {
    return a[LINES] == b[LINES] && a[BYTES] == b[BYTES];
}

/* TVM's own order, (lines, bytes) falling, then the numbers. */
static int compare_blocks(const float *a, const float *b) {
    if (a[LINES] != b[LINES]) return a[LINES] > b[LINES] ? -1 : 1;
    if (a[BYTES] != b[BYTES]) return a[BYTES] > b[BYTES] ? -1 : 1;
    return compare(a, b, CD_BLOCK);
}

/* A store may touch more buffers than there are blocks. Which of those with the key of the last
 * block are shown is chance, so only their keys are kept: how many there are is the same whichever
 * were taken. */
static void blur_last(float *block) {
    const float *last = block + (CD_MAX_BUFFERS - 1) * CD_BLOCK;
    const float key[] = {last[BYTES], last[LINES]};
    if (key[0] == 0.0F && key[1] == 0.0F) return;
    for (float *b = block; b <= last; b += CD_BLOCK) {
        if (b != last && !same_key(b, last)) continue;
        memset(b, 0, CD_BLOCK * sizeof *b);
        b[BYTES] = key[0];
        b[LINES] = key[1];
    }
}

void cd_rows_order_blocks(float *row) {
    float *block = row + CD_COL_B0_READ, moved[CD_BLOCK];
    /* TVM adds the distance up as floats, in the order of its table */
    for (int b = 0; b < CD_MAX_BUFFERS; b++) {
        float *x = &block[b * CD_BLOCK + REUSE_BYTES];
        *x = rintf(*x * STEPS) / STEPS;
    }
    for (int b = 1; b < CD_MAX_BUFFERS; b++) {
        int to = b;
        while (to > 0 && compare_blocks(block + b * CD_BLOCK, block + (to - 1) * CD_BLOCK) < 0)
            to--;
        if (to == b) continue;
        memcpy(moved, block + b * CD_BLOCK, sizeof moved);
        memmove(block + (to + 1) * CD_BLOCK, block + to * CD_BLOCK,
                (size_t)(b - to) * sizeof moved);
        memcpy(block + to * CD_BLOCK, moved, sizeof moved);
    }
    blur_last(block);
}

/* ---- rows ---- */

static int compare_rows(const float *a, const float *b) {
    if (a[CD_COL_OUTER_PROD] != b[CD_COL_OUTER_PROD])
        return a[CD_COL_OUTER_PROD] > b[CD_COL_OUTER_PROD] ? -1 : 1;
    return compare(a, b, CD_N_COL);
}

static void swap_rows(float *row, uint32_t *from, size_t i, size_t j) {
    float x[CD_N_COL];
    memcpy(x, row + i * CD_N_COL, sizeof x);
    memcpy(row + i * CD_N_COL, row + j * CD_N_COL, sizeof x);
    memcpy(row + j * CD_N_COL, x, sizeof x);
    if (!from) return;
    const uint32_t k = from[i];
    from[i] = from[j];
    from[j] = k;
}

/* Row k of a heap whose first is the one that comes last. */
static void sink(float *row, uint32_t *from, size_t k, size_t n) {
    for (size_t child; (child = 2 * k + 1) < n; k = child) {
        if (child + 1 < n && compare_rows(row + child * CD_N_COL, row + (child + 1) * CD_N_COL) < 0)
            child++;
        if (compare_rows(row + k * CD_N_COL, row + child * CD_N_COL) >= 0) return;
        swap_rows(row, from, k, child);
    }
}

/* In place and without heap; a program may have thousands of rows. */
void cd_rows_order(float *row, size_t n, uint32_t *from) {
    bool sorted = true;
    for (size_t k = 0; k < n; k++) {
        cd_rows_order_blocks(row + k * CD_N_COL);
        if (from) from[k] = (uint32_t)k;
        sorted = sorted && (!k || compare_rows(row + (k - 1) * CD_N_COL, row + k * CD_N_COL) <= 0);
    }
    if (sorted) return;
    for (size_t k = n / 2; k-- > 0;) sink(row, from, k, n);
    for (size_t end = n; end-- > 1;) {
        swap_rows(row, from, 0, end);
        sink(row, from, 0, end);
    }
}

static_assert(CD_COL_COUNT == CD_N_COL, "leaf_cols.def has not 164 columns");
static_assert(CD_COL_B0_READ == 57 && CD_COL_CURVE_0 == 147 && CD_COL_ALLOC_SIZE == 157,
              "a group of leaf_cols.def has the wrong length");

static const cd_col cols[CD_N_COL] = {
#define X(ID, name, unit, group, meaning) {name, unit, group, meaning},
#include "features/rows/leaf_cols.def"
};

const cd_col *cd_cols(void) { return cols; }

void cd_cols_digest(char out[65]) {
    cd_sha256 h;
    const char version[] = {'0' + CD_COLS_VERSION, '\n'};
    cd_sha256_init(&h);
    cd_sha256_add(&h, version, sizeof version);
    for (size_t i = 0; i < CD_N_COL; i++) {
        cd_sha256_add(&h, cols[i].name, strlen(cols[i].name));
        cd_sha256_add(&h, "\n", 1);
    }
    cd_sha256_hex(&h, out);
}

static void print_head(cd_buf *out) {
    char digest[65];
    cd_cols_digest(digest);
    cd_buf_puts(
        out,
        "# Columns of a feature row\n\n"
        "Generated by `cdmpp-extract --list-columns > docs/reference/columns.md` from "
        "`features/rows/leaf_cols.def`; do not edit.\n\n"
        "A program has one row of 164 numbers (float32) for each buffer that it writes. Names, "
        "order and values are\n"
        "those of TVM v0.9's auto_scheduler per-store features. \"slog u\" is sign(x) * log2(|x| + "
        "1) of a quantity x\n"
        "counted in u. P is the product of the extents of all loops around the store. B0 to B4 are "
        "the buffers that\n"
        "the store touches, most cache lines first; a missing buffer is a block of zeros.\n\n");
    cd_buf_putf(out, "Feature digest: `%s`\n\n", digest);
    cd_buf_puts(out, "| # | name | unit | group | meaning |\n| --: | --- | --- | --- | --- |\n");
}

void cd_cols_print(cd_buf *out) {
    print_head(out);
    for (size_t i = 0; i < CD_N_COL; i++)
        cd_buf_putf(out, "| %zu | `%s` | %s | %s | %s |\n", i, cols[i].name, cols[i].unit,
                    cols[i].group, cols[i].meaning);
}

void cd_cols_json(cd_buf *out) {
    char digest[65];
    cd_cols_digest(digest);
    cd_buf_putf(out, "{\"digest\":\"%s\",\"columns\":[", digest);
    for (size_t i = 0; i < CD_N_COL; i++) {
        const char *const member[][2] = {{"name", cols[i].name},
                                         {"unit", cols[i].unit},
                                         {"group", cols[i].group},
                                         {"meaning", cols[i].meaning}};
        for (size_t k = 0; k < 4; k++) {
            cd_buf_putf(out, "%s\"%s\":", k ? "," : i ? ",{" : "{", member[k][0]);
            cd_buf_put_json_str(out, member[k][1], strlen(member[k][1]));
        }
        cd_buf_puts(out, "}");
    }
    cd_buf_puts(out, "]}");
}
