/* Tables of answers as aligned columns, out of the Markdown that predictor/serving writes.
 *
 *   | GPU | tp |        GPU   tp
 *   | --- | --: |  ->   h100   1
 *   | h100 | 1 |
 *
 * A column is as wide as its widest cell; "--:" sets it to the right. The last cell of a row that
 * is shorter than the table is a message, which may run over the columns behind it. Other lines
 * stay as they are. */
#include <string.h>

#include "predictor/cmd/replay/main_replay_llm.h"

enum { COLUMNS = 32, GAP = 2 };

typedef struct {
    size_t width[COLUMNS];
    bool right[COLUMNS];
} layout;

/* The cells of a line "| a | b |", without blanks around them; those that are empty at its end do
 *   not count. */
static size_t cells_of(cd_str line, cd_str cell[COLUMNS]) {
    size_t n = 0, used = 0;
    const char *p = line.p + 1, *end = line.p + line.n;
    while (p < end && n < COLUMNS) {
        const char *bar = memchr(p, '|', (size_t)(end - p)), *q = bar ? bar : end;
        const char *next = q + 1;
        while (p < q && *p == ' ') p++;
        while (q > p && q[-1] == ' ') q--;
        cell[n++] = (cd_str){p, (size_t)(q - p)};
        if (q > p) used = n;
        p = next;
    }
    return used;
}

static size_t letters(cd_str s) {
    size_t n = 0;
    for (size_t k = 0; k < s.n; k++) n += ((unsigned char)s.p[k] & 0xc0) != 0x80;
    return n;
}

static bool is_rule(cd_str line) { return line.n > 5 && !memcmp(line.p, "| --", 4); }

static cd_str line_at(const char *p) { return (cd_str){p, strcspn(p, "\n")}; }

static const char *behind(cd_str line) { return line.p + line.n + (line.p[line.n] == '\n'); }

/* The lines that begin with a bar. */
static layout measure(const char *table) {
    layout l = {{0}, {false}};
    cd_str cell[COLUMNS];
    size_t all = 0;
    for (cd_str line = line_at(table); *line.p == '|'; line = line_at(behind(line))) {
        const size_t n = cells_of(line, cell);
        if (n > all) all = n;
        for (size_t k = 0; k < n; k++) {
            if (is_rule(line)) l.right[k] = cell[k].p[cell[k].n - 1] == ':';
            else if ((k + 1 < n || n == all) && letters(cell[k]) > l.width[k])
                l.width[k] = letters(cell[k]);
        }
    }
    return l;
}

static void put_row(cd_buf *b, cd_str line, const layout *l) {
    cd_str cell[COLUMNS];
    const size_t n = cells_of(line, cell);
    for (size_t k = 0; k < n; k++) {
        const size_t wide = letters(cell[k]), room = wide < l->width[k] ? l->width[k] - wide : 0;
        const bool last = k + 1 == n;
        if (l->right[k]) cd_buf_putf(b, "%*s", (int)room, "");
        cd_buf_put(b, cell[k].p, cell[k].n);
        if (!last) cd_buf_putf(b, "%*s", (int)(l->right[k] ? GAP : room + GAP), "");
    }
    cd_buf_puts(b, "\n");
}

void cd_replay_llm_columns(cd_buf *b, const char *markdown) {
    for (const char *p = markdown; *p;) {
        cd_str line = line_at(p);
        if (*p != '|') {
            cd_buf_putf(b, "%.*s\n", (int)line.n, line.p);
            p = behind(line);
            continue;
        }
        const layout l = measure(p);
        for (; *line.p == '|'; line = line_at(behind(line)))
            if (!is_rule(line)) put_row(b, line, &l);
        p = line.p;
    }
}
