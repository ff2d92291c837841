/* Reads tables of operators from HDF5: each column a data set of the root group, read in blocks of
 * rows. */
#include <hdf5.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "features/operators/operators_internal.h"

enum { BLOCK = 1024, MAX_TEXT = 4096 };

typedef struct {
    hid_t set;
    int is;
    bool text, fixed; /* fixed: texts of one length, else pointers */
    size_t bytes;     /* of a text, with its end; of others 0 */
    char *block;      /* (BLOCK, bytes), (BLOCK) pointers or (BLOCK) doubles */
} column;

struct cd_op_h5 {
    hid_t file, text_type; /* text_type: texts of any length */
    column c[CD_OP_MAX_COLUMN];
    size_t n_column, n_row, next, first, n_block; /* rows first .. first + n_block are in memory */
};

static void forget_block(cd_op_h5 *h) {
    for (size_t i = 0; i < h->n_column; i++)
        for (size_t k = 0; h->c[i].text && !h->c[i].fixed && k < h->n_block; k++) {
            char **p = (char **)(void *)h->c[i].block + k;
            if (*p) H5free_memory(*p);
            *p = NULL;
        }
    h->n_block = 0;
}

void cd_op_h5_close(cd_op_h5 *h) {
    if (!h) return;
    forget_block(h);
    for (size_t i = 0; i < h->n_column; i++) {
        H5Dclose(h->c[i].set);
        cd_mem_free(h->c[i].block);
    }
    if (h->text_type >= 0) H5Tclose(h->text_type);
    if (h->file >= 0) H5Fclose(h->file);
    cd_mem_free(h);
}

/* ---- columns ---- */
static cdmpp_status kind_of(column *c, const char *name, cdmpp_err *err) {
    const hid_t type = H5Dget_type(c->set);
    const H5T_class_t class = H5Tget_class(type);
    c->text = class == H5T_STRING;
    c->fixed = c->text && H5Tis_variable_str(type) <= 0;
    c->bytes = c->fixed ? H5Tget_size(type) + 1 : 0;
    H5Tclose(type);
    if (c->bytes > MAX_TEXT)
        return cd_err_key(
            err, CD_FAIL(err, ERANGE, "expected texts of at most %d bytes", MAX_TEXT - 1), name);
    return c->text || class == H5T_INTEGER || class == H5T_FLOAT
               ? CDMPP_OK
               : cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected numbers or texts"), name);
}

static cdmpp_status add_column(cd_op_h5 *h, const char *name, int is, cdmpp_err *err) {
    column c = {.set = H5Dopen2(h->file, name, H5P_DEFAULT), .is = is};
    hsize_t n = 0;
    if (c.set < 0) return CDMPP_OK; /* a group, or no data set */
    const hid_t space = H5Dget_space(c.set);
    const bool line =
        H5Sget_simple_extent_ndims(space) == 1 && H5Sget_simple_extent_dims(space, &n, NULL) == 1;
    H5Sclose(space);
    cdmpp_status st = line ? kind_of(&c, name, err)
                           : cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected one dimension"), name);
    if (!st && h->n_column && n != h->n_row)
        st = cd_err_key(err,
                        CD_FAIL(err, ESCHEMA,
                                "expected %zu rows as in the columns before, found %llu", h->n_row,
                                (unsigned long long)n),
                        name);
    if (!st && h->n_column == CD_OP_MAX_COLUMN)
        st = CD_FAIL(err, ERANGE, "expected at most %d known columns", CD_OP_MAX_COLUMN);
    if (!st && !(c.block = cd_mem_zalloc(BLOCK, c.fixed ? c.bytes : sizeof(double))))
        st = CD_FAIL(err, ENOMEM, "column");
    if (st) {
        H5Dclose(c.set);
        return st;
    }
    h->n_row = (size_t)n;
    h->c[h->n_column++] = c;
    return CDMPP_OK;
}

static cdmpp_status add_columns(cd_op_h5 *h, const cd_op_columns *columns, bool *has,
                                cdmpp_err *err) {
    H5G_info_t g;
    if (H5Gget_info(h->file, &g) < 0) return CD_FAIL(err, EPARSE, "cannot read the root group");
    for (hsize_t i = 0; i < g.nlinks; i++) {
        char name[128];
        const ssize_t n = H5Lget_name_by_idx(h->file, ".", H5_INDEX_NAME, H5_ITER_INC, i, name,
                                             sizeof name, H5P_DEFAULT);
        const int is = n > 0 && n < (ssize_t)sizeof name ? cd_op_columns_find(columns, name) : -1;
        const size_t before = h->n_column;
        if (is >= 0) CD_TRY(add_column(h, name, is, err));
        if (h->n_column > before) has[is] = true;
    }
    return CDMPP_OK;
}

/* HDF5 prints errors unless told otherwise, for each thread; its clean-up at exit is not needed
 * (dataset/file/h5.c). */
cdmpp_status cd_op_h5_open(const char *path, const cd_op_columns *columns, bool *has,
                           cd_op_h5 **out, cdmpp_err *err) {
    cd_op_h5 *h = cd_mem_zalloc(1, sizeof *h);
    FILE *f = fopen(path, "rb");
    if (h) *h = (cd_op_h5){.file = -1, .text_type = -1};
    cdmpp_status st = h ? CDMPP_OK : CD_FAIL(err, ENOMEM, "table");
    if (!st && !f) st = CD_FAIL(err, EIO, "cannot open: no such file, or it may not be read");
    if (f) (void)fclose(f);
    (void)H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (!st && (h->file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT)) < 0)
        st = CD_FAIL(err, EPARSE, "cannot read it as HDF5");
    if (!st) st = add_columns(h, columns, has, err);
    if (!st && (h->text_type = H5Tcopy(H5T_C_S1)) >= 0) H5Tset_size(h->text_type, H5T_VARIABLE);
    if (st) cd_op_h5_close(h);
    else *out = h;
    return st;
}

/* ---- rows ---- */
static bool read_column(const cd_op_h5 *h, column *c) {
    const hsize_t start = h->first, n = h->n_block;
    hid_t type = h->text_type;
    if (c->fixed) {
        type = H5Tcopy(H5T_C_S1);
        H5Tset_size(type, c->bytes); /* HDF5 ends each text by a NUL */
    }
    const hid_t space = H5Dget_space(c->set), memory = H5Screate_simple(1, &n, NULL),
                file_type = H5Dget_type(c->set);
    if (c->text) H5Tset_cset(type, H5Tget_cset(file_type));
    const bool ok = H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &n, NULL) >= 0 &&
                    H5Dread(c->set, c->text ? type : H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT,
                            c->block) >= 0;
    if (c->fixed) H5Tclose(type);
    H5Tclose(file_type);
    H5Sclose(memory);
    H5Sclose(space);
    return ok;
}

static cdmpp_status read_block(cd_op_h5 *h, cdmpp_err *err) {
    forget_block(h);
    h->first = h->next;
    h->n_block = h->n_row - h->first < BLOCK ? h->n_row - h->first : BLOCK;
    for (size_t i = 0; i < h->n_column; i++)
        if (!read_column(h, &h->c[i]))
            return CD_FAIL(
                err, EPARSE,
                "cannot read rows %zu to %zu: damaged, or packed by a filter that is not there",
                h->first + 1, h->first + h->n_block);
    return CDMPP_OK;
}

long cd_op_h5_row(const cd_op_h5 *h) { return (long)h->next; }

cdmpp_status cd_op_h5_next(cd_op_h5 *h, cd_op_row *row, bool *more, cdmpp_err *err) {
    *more = false; /* an error of reading ends the table */
    if (h->next == h->n_row) return CDMPP_OK;
    if (h->next == h->first + h->n_block) CD_TRY(read_block(h, err));
    const size_t k = h->next++ - h->first;
    *more = true;
    for (size_t i = 0; i < h->n_column; i++) {
        const column *c = &h->c[i];
        cd_op_value v = {NULL, NAN};
        if (c->fixed) v.text = c->block + k * c->bytes;
        else if (c->text) v.text = ((char **)(void *)c->block)[k];
        else v.number = ((const double *)(const void *)c->block)[k];
        if (!cd_op_row_given(row, c->is)) row->value[c->is] = v;
    }
    return CDMPP_OK;
}
