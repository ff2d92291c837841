/* Reads tables of operators line by line (TSV, CSV) into rows of named values. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "features/operators/operators_internal.h"

/* letters of a name that can be misspelt: of shorter ones all are near each other */
enum { LEAST_ODD = 4 };

static char *trim(char *s) {
    while (isspace((unsigned char)*s)) s++;
    size_t n = strlen(s);
    while (n && isspace((unsigned char)s[n - 1])) s[--n] = 0;
    return s;
}

static cdmpp_status split_tabs(char *line, char *out[CD_OP_MAX_FIELD], size_t *n, cdmpp_err *err) {
    for (*n = 0; line; ++*n) {
        char *tab = strchr(line, '\t');
        if (*n == CD_OP_MAX_FIELD)
            return CD_FAIL(err, ERANGE, "expected at most %d fields", CD_OP_MAX_FIELD);
        if (tab) *tab = 0;
        out[*n] = trim(line);
        line = tab ? tab + 1 : NULL;
    }
    return CDMPP_OK;
}

/* The fields of a line without blanks around them, each ended by a NUL. */
static cdmpp_status split(const cd_op_lines *l, char *line, size_t len, char *out[CD_OP_MAX_FIELD],
                          size_t *n, cdmpp_err *err) {
    cd_str f[CD_OP_MAX_FIELD];
    if (l->tabs) return split_tabs(line, out, n, err);
    CD_TRY(cd_csv_fields_split(line, len, f, CD_OP_MAX_FIELD, n, err));
    for (size_t i = 0; i < *n; i++) {
        char *from = line + (f[i].p - line);
        from[f[i].n] = 0;
        out[i] = trim(from);
    }
    return CDMPP_OK;
}

/* A column of another name is nobody's; one whose name is very near a name that the table does not
 * have is most likely misspelt. Tables of other programs have many names that are alike (num_sites,
 * num_heads): no more than three letters may differ. */
static void find_odd(cd_op_lines *l, const cd_op_columns *c, char *const *name) {
    const char *all[CD_OP_MAX_FIELD];
    size_t n = 0;
    for (size_t i = 0; i < c->n && n < CD_OP_MAX_FIELD; i++)
        if (!l->has[c->name[i].is]) all[n++] = c->name[i].name;
    for (size_t i = 0; i < l->n_field && l->n_odd < CD_OP_MAX_ODD; i++) {
        const size_t letters = strlen(name[i]);
        const char *near = l->of[i] < c->n_column || letters < LEAST_ODD
                               ? NULL
                               : cd_did_you_mean_nearest(name[i], all, n);
        /* notes, bytes: the first letter is seldom mistaken */
        if (!near || tolower((unsigned char)*near) != tolower((unsigned char)*name[i])) continue;
        if (cd_did_you_mean_distance(name[i], near) >
            1u + (letters > LEAST_ODD) + (letters > 2 * LEAST_ODD))
            continue;
        snprintf(l->odd[l->n_odd].name, sizeof l->odd->name, "%s", name[i]);
        l->odd[l->n_odd++].near = near;
    }
}

static cdmpp_status read_header(cd_op_lines *l, const cd_op_columns *c, char *line, size_t len,
                                cdmpp_err *err) {
    char *f[CD_OP_MAX_FIELD];
    const size_t mark = strncmp(line, "\xef\xbb\xbf", 3) ? 0 : 3; /* of the byte order */
    l->tabs = memchr(line, '\t', len) != NULL;
    CD_TRY(split(l, line + mark, len - mark, f, &l->n_field, err));
    for (size_t i = 0; i < l->n_field; i++) {
        const int is = cd_op_columns_find(c, f[i]);
        l->of[i] = is < 0 ? c->n_column : is;
        if (is >= 0) l->has[is] = true;
        for (size_t k = 0; k < i; k++)
            if (is >= 0 && !strcasecmp(f[k], f[i]))
                return CD_FAIL(err, ESCHEMA, "column %s is there twice", f[i]);
    }
    find_odd(l, c, f);
    return CDMPP_OK;
}

static bool is_h5(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && (!strcasecmp(dot, ".h5") || !strcasecmp(dot, ".hdf5"));
}

static cdmpp_status open_lines(cd_op_lines *l, const char *path, const cd_op_columns *c,
                               cdmpp_err *err) {
    char *line = NULL;
    size_t len;
    cd_op_row_clear(&l->row, c);
    if (!(l->path = cd_mem_text(path)))
        return cd_err_at(err, CD_FAIL(err, ENOMEM, "path"), path, 1);
    if (is_h5(path)) return cd_err_at(err, cd_op_h5_open(path, c, l->has, &l->h5, err), path, 0);
    cdmpp_status st = cd_file_lines_open(path, 0, &l->lines, err);
    if (!st) st = cd_file_lines_next(l->lines, &line, &len, err);
    if (!st && !line) st = CD_FAIL(err, ESCHEMA, "expected names of columns, found an empty file");
    if (!st) st = read_header(l, c, line, len, err);
    return cd_err_at(err, st, path, 1);
}

static void close_lines(cd_op_lines *l) {
    cd_file_lines_close(l->lines);
    cd_op_h5_close(l->h5);
    cd_mem_free(l->path);
}

static long number(const cd_op_lines *l) {
    return l->h5 ? cd_op_h5_row(l->h5) : cd_file_lines_number(l->lines);
}
cdmpp_status cd_op_lines_at(const cd_op_lines *l, cdmpp_status st, cdmpp_err *err) {
    return cd_err_at(err, st, l->path, number(l));
}

cdmpp_status cd_op_lines_next(cd_op_lines *l, bool *more, cdmpp_err *err) {
    const cd_op_columns *c = l->row.columns;
    char *line, *f[CD_OP_MAX_FIELD];
    size_t len, n;
    cdmpp_status st;
    cd_op_row_clear(&l->row, c);
    if (l->h5) return cd_op_h5_next(l->h5, &l->row, more, err);
    do st = cd_file_lines_next(l->lines, &line, &len, err);
    while (!st && line && line[strspn(line, " \t\r")] == 0);
    *more = st == CDMPP_ERANGE || (!st && line); /* a line too long is a bad line like others */
    if (st || !line) return st;
    CD_TRY(split(l, line, len, f, &n, err));
    /* of two columns of one meaning the one that says something counts */
    for (size_t i = 0; i < n && i < l->n_field; i++)
        if (l->of[i] < c->n_column && (f[i][0] || !cd_op_row_given(&l->row, l->of[i])))
            l->row.value[l->of[i]].text = f[i];
    return n == l->n_field ? CDMPP_OK
                           : CD_FAIL(err, EPARSE, "expected %zu fields, found %zu", l->n_field, n);
}

/* ---- the reader ---- */
/* "a/h100_sxm/gemm.tsv.xz" -> "h100_sxm", "gemm" */
static void name_file(cd_op_reader *r, const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *from = slash;
    size_t n = strcspn(base, ".");
    if (n >= CD_OP_MAX_NAME) n = CD_OP_MAX_NAME - 1;
    memcpy(r->table, base, n);
    while (from && from > path && from[-1] != '/') from--;
    n = from ? (size_t)(slash - from) : 0;
    if (n < CD_OP_MAX_NAME && n) memcpy(r->folder, from, n);
}

cdmpp_status cd_op_reader_new(const char *path, const cd_op_columns *c, cd_dict *names,
                              cd_op_reader **out, cdmpp_err *err) {
    cd_op_reader *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "reader");
    r->names = names;
    name_file(r, path);
    const cdmpp_status st = open_lines(&r->in, path, c, err);
    if (st) cd_op_reader_close(r);
    else *out = r;
    return st;
}

long cd_op_reader_line(const cd_op_reader *r) { return number(&r->in); }

bool cd_op_reader_odd(const cd_op_reader *r, size_t i, cdmpp_err *why) {
    if (i >= r->in.n_odd) return false;
    *why = (cdmpp_err){0};
    /* a column of times in a further unit is renamed too easily */
    const char *near = r->in.odd[i].near;
    const char *unit =
        !strcmp(near, "latency_s") || !strcmp(near, "latency_ms")
            ? " Times are read from 'latency_s' (seconds) or 'latency_ms' (milliseconds)"
            : "";
    (void)cd_err_at(why,
                    CD_FAIL(why, ESCHEMA, "column '%s' is not read: did you mean '%s'?%s",
                            r->in.odd[i].name, near, unit),
                    r->in.path, 1);
    return true;
}

void cd_op_reader_close(cd_op_reader *r) {
    if (!r) return;
    close_lines(&r->in);
    cd_mem_free(r);
}
