/* HDF5 behind our errors: typed arrays, texts and chunks that are compressed already. HDF5's own
 * error printing is off. */
#include "dataset/file/file.h"

#include <stdio.h>
#include <string.h>

#define H5_TEXT_MAX (1u << 20) /* longest string of a dictionary: more is damage */

/* deflate shrinks at most 1032 times; twice that, as the division rounds */
#define H5_DEFLATE_MAX 2064u

size_t cd_h5_type_bytes(cd_h5_type t) {
    static const uint8_t bytes[] = {
#define CD_X(id, type, n) n,
        CD_H5_TYPE_MAP(CD_X)
#undef CD_X
    };
    return bytes[t];
}

/* HDF5's types are run-time values, so no table. */
static hid_t type_id(cd_h5_type t) {
    switch (t) {
#define CD_X(id, type, n)                                                                          \
    case CD_H5_##id: return type;
        CD_H5_TYPE_MAP(CD_X)
#undef CD_X
    default: return -1;
    }
}

static herr_t innermost(unsigned i, const H5E_error2_t *e, void *to) {
    if (i == 0 && e->desc) *(const char **)to = e->desc;
    return 0;
}

/* The innermost line of HDF5's own error stack tells the cause; where the
 * system said why, among times and descriptors, that is all we want of it. */
static void take_cause(char *text, size_t n) {
    static const char mark[] = "error message = '";
    const char *cause = "no reason given";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, &cause);
    const char *said = strstr(cause, mark);
    if (said) cause = said + sizeof mark - 1;
    snprintf(text, n, "%.*s", (int)strcspn(cause, said ? "'" : "\n"), cause);
    H5Eclear2(H5E_DEFAULT);
}

static cdmpp_status fail(cdmpp_status st, const cd_h5 *h, const char *object, const char *what,
                         cdmpp_err *err) {
    char text[120];
    take_cause(text, sizeof text);
    cd_err_raise(err, st, __FILE__, __LINE__, "cannot %s: %s", what, text);
    return cd_err_at(err, cd_err_key(err, st, object), h->path, 0);
}

/* HDF5 prints errors unless told otherwise, for each thread, hence before every
 * entry. Its clean-up at exit crashes when a file could not be written to its
 * end (1.10.8); all our files are closed by then, so it is not needed. */
static void quiet(void) {
    (void)H5dont_atexit(); /* no effect once HDF5 has started */
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static hid_t access_list(void) {
    const hid_t p = H5Pcreate(H5P_FILE_ACCESS);
    if (p >= 0) H5Pset_libver_bounds(p, H5F_LIBVER_V110, H5F_LIBVER_V110);
    return p;
}

cdmpp_status cd_h5_create(cd_h5 *h, const char *path, cdmpp_err *err) {
    quiet();
    const hid_t p = access_list(), c = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_obj_track_times(c, false); /* of the root group */
    *h = (cd_h5){.file = H5Fcreate(path, H5F_ACC_TRUNC, c, p), .path = path};
    H5Pclose(c);
    H5Pclose(p);
    return h->file < 0 ? fail(CDMPP_EIO, h, "/", "create the file", err) : CDMPP_OK;
}

cdmpp_status cd_h5_open(cd_h5 *h, const char *path, cdmpp_err *err) {
    FILE *f = fopen(path, "rb"); /* tells "no such file" from "not HDF5" */
    quiet();
    *h = (cd_h5){.file = -1, .path = path};
    if (!f) return cd_err_at(err, CD_FAIL(err, EIO, "cannot open the file"), path, 0);
    fclose(f);
    h->file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    return h->file < 0 ? fail(CDMPP_ESCHEMA, h, "/", "read it as HDF5", err) : CDMPP_OK;
}

cdmpp_status cd_h5_close(cd_h5 *h, cdmpp_err *err) {
    const hid_t file = h->file;
    h->file = -1;
    quiet();
    if (file >= 0 && H5Fclose(file) < 0)
        return fail(CDMPP_EIO, h, "/", "write and close the file", err);
    return CDMPP_OK;
}

/* "/group" of "/group/array". HDF5 would make it by itself, but with the time in it. */
static void create_group(const cd_h5 *h, const char *object) {
    char group[64];
    const char *end = strchr(object + 1, '/');
    if (!end || (size_t)(end - object) >= sizeof group) return;
    memcpy(group, object, (size_t)(end - object));
    group[end - object] = 0;
    if (H5Lexists(h->file, group, H5P_DEFAULT) > 0) return;
    const hid_t p = H5Pcreate(H5P_GROUP_CREATE);
    H5Pset_obj_track_times(p, false);
    const hid_t g = H5Gcreate2(h->file, group, H5P_DEFAULT, p, H5P_DEFAULT);
    if (g >= 0) H5Gclose(g);
    H5Pclose(p);
}

static hid_t create_array(const cd_h5 *h, const char *object, hid_t type, hid_t space, hid_t dcpl) {
    create_group(h, object);
    H5Pset_obj_track_times(dcpl, false);
    return H5Dcreate2(h->file, object, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
}

cdmpp_status cd_h5_create_chunked(const cd_h5 *h, const char *object, cd_h5_shape s, uint32_t chunk,
                                  hid_t *out, cdmpp_err *err) {
    const int rank = s.n_col ? 2 : 1;
    const hsize_t dim[] = {s.n, s.n_col};
    const hsize_t max[] = {H5S_UNLIMITED, s.n_col};
    const hsize_t cut[] = {chunk, s.n_col};
    quiet();
    const hid_t space = H5Screate_simple(rank, dim, max), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(dcpl, rank, cut);
    H5Pset_deflate(dcpl, 1);
    *out = create_array(h, object, type_id(s.type), space, dcpl);
    H5Pclose(dcpl);
    H5Sclose(space);
    return *out < 0 ? fail(CDMPP_EIO, h, object, "create the array", err) : CDMPP_OK;
}

cdmpp_status cd_h5_write_chunk(const cd_h5 *h, const char *object, hid_t array, uint64_t first,
                               uint32_t n_col, const void *zip, size_t n_zip, cdmpp_err *err) {
    const hsize_t at[] = {first, 0};
    (void)n_col;
    if (H5Dwrite_chunk(array, H5P_DEFAULT, 0, at, n_zip, zip) < 0)
        return fail(CDMPP_EIO, h, object, "write", err);
    return CDMPP_OK;
}

cdmpp_status cd_h5_close_array(const cd_h5 *h, const char *object, hid_t array, cdmpp_err *err) {
    return array >= 0 && H5Dclose(array) < 0 ? fail(CDMPP_EIO, h, object, "close the array", err)
                                             : CDMPP_OK;
}

static cdmpp_status write_whole(const cd_h5 *h, const char *object, hid_t type, int rank,
                                const hsize_t *dim, const void *data, cdmpp_err *err) {
    quiet();
    const hid_t space = H5Screate_simple(rank, dim, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    const hid_t d = create_array(h, object, type, space, dcpl);
    H5Pclose(dcpl);
    H5Sclose(space);
    if (d < 0) return fail(CDMPP_EIO, h, object, "create the array", err);
    cdmpp_status st = CDMPP_OK;
    if (dim[0] > 0 && H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
        st = fail(CDMPP_EIO, h, object, "write", err); /* before the next call clears the cause */
    if (H5Dclose(d) < 0 && st == CDMPP_OK) st = fail(CDMPP_EIO, h, object, "write", err);
    return st;
}

cdmpp_status cd_h5_write(const cd_h5 *h, const char *object, cd_h5_shape s, const void *data,
                         cdmpp_err *err) {
    const hsize_t dim[] = {s.n, s.n_col};
    return write_whole(h, object, type_id(s.type), s.n_col ? 2 : 1, dim, data, err);
}

static hid_t text_type(size_t width) {
    const hid_t t = H5Tcopy(H5T_C_S1);
    H5Tset_size(t, width ? width : 1); /* HDF5 has no empty type */
    H5Tset_cset(t, H5T_CSET_UTF8);
    H5Tset_strpad(t, H5T_STR_NULLPAD);
    return t;
}

/* Texts of one width, padded with zeros, as h5py reads them. */
cdmpp_status cd_h5_write_text(const cd_h5 *h, const char *object, size_t n, const char *const *text,
                              cdmpp_err *err) {
    const hsize_t dim[] = {n};
    size_t width = 1;
    for (size_t i = 0; i < n; i++) {
        const size_t len = strlen(text[i]);
        if (len > width) width = len;
    }
    if (n > SIZE_MAX / width) return CD_FAIL(err, ENOMEM, "%zu strings of %zu bytes", n, width);
    char *flat = cd_mem_zalloc(n ? n : 1, width);
    if (!flat) return CD_FAIL(err, ENOMEM, "%zu strings of %zu bytes", n, width);
    for (size_t i = 0; i < n; i++) memcpy(flat + i * width, text[i], strlen(text[i]));
    const hid_t t = text_type(width);
    const cdmpp_status st = write_whole(h, object, t, 1, dim, flat, err);
    H5Tclose(t);
    cd_mem_free(flat);
    return st;
}

/* Open and check rank and columns; n_col -1: text. */
static cdmpp_status open_array(const cd_h5 *h, const char *object, long n_col, hid_t *out,
                               uint64_t *n, cdmpp_err *err) {
    hsize_t dim[2] = {0, 0};
    const int rank = n_col > 0 ? 2 : 1;
    quiet();
    *out = H5Dopen2(h->file, object, H5P_DEFAULT);
    if (*out < 0) return fail(CDMPP_ESCHEMA, h, object, "open the array", err);
    const hid_t space = H5Dget_space(*out);
    const int have = H5Sget_simple_extent_ndims(space);
    if (have == rank) H5Sget_simple_extent_dims(space, dim, NULL);
    H5Sclose(space);
    if (have == rank && (rank == 1 || dim[1] == (hsize_t)n_col)) {
        *n = dim[0];
        return CDMPP_OK;
    }
    H5Dclose(*out);
    cd_err_raise(err, CDMPP_ESCHEMA, __FILE__, __LINE__,
                 "expected %d dimension(s) of %ld columns, found %d of %llu", rank, n_col, have,
                 (unsigned long long)dim[1]);
    return cd_err_at(err, cd_err_key(err, CDMPP_ESCHEMA, object), h->path, 0);
}

bool cd_h5_has(const cd_h5 *h, const char *object) {
    quiet();
    return H5Lexists(h->file, object, H5P_DEFAULT) > 0;
}

static bool same_type(hid_t array, cd_h5_type type) {
    const hid_t t = H5Dget_type(array);
    const bool same = t >= 0 && H5Tequal(t, type_id(type)) > 0;
    if (t >= 0) H5Tclose(t);
    return same;
}

static cdmpp_status wrong_type(const cd_h5 *h, const char *object, cdmpp_err *err) {
    const cdmpp_status st =
        CD_FAIL(err, ESCHEMA, "the array has another element type than this version writes");
    return cd_err_at(err, cd_err_key(err, st, object), h->path, 0);
}

cdmpp_status cd_h5_size(const cd_h5 *h, const char *object, cd_h5_type type, uint32_t n_col,
                        uint64_t *n, cdmpp_err *err) {
    hid_t d = -1;
    CD_TRY(open_array(h, object, (long)n_col, &d, n, err));
    const bool ok = same_type(d, type);
    const uint64_t row = cd_h5_type_bytes(type) * (n_col ? n_col : 1);
    const bool full = *n / H5_DEFLATE_MAX <= H5Dget_storage_size(d) / row + 1;
    H5Dclose(d);
    if (ok && !full) {
        const cdmpp_status st =
            CD_FAIL(err, ESCHEMA, "the file is too small for %llu rows", (unsigned long long)*n);
        return cd_err_at(err, cd_err_key(err, st, object), h->path, 0);
    }
    return ok ? CDMPP_OK : wrong_type(h, object, err);
}

static bool read_slab(hid_t d, hid_t type, cd_h5_shape s, uint64_t first, void *out) {
    const int rank = s.n_col ? 2 : 1;
    const hsize_t at[] = {first, 0}, dim[] = {s.n, s.n_col};
    const hid_t file = H5Dget_space(d), mem = H5Screate_simple(rank, dim, NULL);
    const bool ok = file >= 0 && mem >= 0 &&
                    H5Sselect_hyperslab(file, H5S_SELECT_SET, at, NULL, dim, NULL) >= 0 &&
                    H5Dread(d, type, mem, file, H5P_DEFAULT, out) >= 0;
    if (mem >= 0) H5Sclose(mem);
    if (file >= 0) H5Sclose(file);
    return ok;
}

/* The stored type must be exactly the wanted one: silent conversions would hide damage. */
cdmpp_status cd_h5_read(const cd_h5 *h, const char *object, cd_h5_shape s, uint64_t first,
                        void *out, cdmpp_err *err) {
    hid_t d = -1;
    uint64_t n = 0;
    cdmpp_status st = CDMPP_OK;
    CD_TRY(open_array(h, object, (long)s.n_col, &d, &n, err));
    if (!same_type(d, s.type)) st = wrong_type(h, object, err);
    else if (first > n || s.n > n - first) {
        st = CD_FAIL(err, ESCHEMA, "expected at least %llu rows, found %llu",
                     (unsigned long long)(first + s.n), (unsigned long long)n);
        st = cd_err_at(err, cd_err_key(err, st, object), h->path, 0);
    } else if (s.n && !read_slab(d, type_id(s.type), s, first, out))
        st = fail(CDMPP_EIO, h, object, "read", err);
    H5Dclose(d);
    return st;
}

/* (n) pointers and then n strings of width+1 bytes, in one block. */
static char **text_block(size_t n, size_t width) {
    if (n > SIZE_MAX / 2 / (sizeof(char *) + width + 1)) return NULL;
    char **v = cd_mem_zalloc(n ? n : 1, sizeof(char *) + width + 1);
    for (size_t i = 0; v && i < n; i++) v[i] = (char *)(v + n) + i * (width + 1);
    return v;
}

static cdmpp_status read_text(const cd_h5 *h, const char *object, hid_t d, size_t n, char ***out,
                              cdmpp_err *err) {
    const hid_t ft = H5Dget_type(d);
    const bool fixed = ft >= 0 && H5Tget_class(ft) == H5T_STRING && H5Tis_variable_str(ft) <= 0;
    const size_t width = fixed ? H5Tget_size(ft) : 0;
    const uint64_t stored = H5Dget_storage_size(d);
    if (ft >= 0) H5Tclose(ft);
    if (width == 0 || width > H5_TEXT_MAX) return wrong_type(h, object, err);
    /* Text is stored uncompressed: a size that the file cannot hold is damage, not a reason to
     * allocate. */
    if (n > stored / width) return wrong_type(h, object, err);
    char **v = text_block(n, width), *flat = cd_mem_zalloc(n ? n : 1, width);
    const hid_t t = text_type(width);
    cdmpp_status st = CDMPP_OK;
    if (!v || !flat) st = CD_FAIL(err, ENOMEM, "%zu strings of %zu bytes", n, width);
    else if (n && H5Dread(d, t, H5S_ALL, H5S_ALL, H5P_DEFAULT, flat) < 0)
        st = fail(CDMPP_EIO, h, object, "read", err);
    for (size_t i = 0; st == CDMPP_OK && i < n; i++) memcpy(v[i], flat + i * width, width);
    H5Tclose(t);
    cd_mem_free(flat);
    if (st) cd_mem_free(v);
    else *out = v;
    return st;
}

cdmpp_status cd_h5_read_text(const cd_h5 *h, const char *object, size_t *n, char ***out,
                             cdmpp_err *err) {
    hid_t d = -1;
    uint64_t count = 0;
    CD_TRY(open_array(h, object, -1, &d, &count, err));
    const cdmpp_status st = read_text(h, object, d, (size_t)count, out, err);
    H5Dclose(d);
    if (st == CDMPP_OK) *n = (size_t)count;
    return st;
}
