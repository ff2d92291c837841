/* The schema of a data set file: names and types of the arrays, digests, checks when one is
 * opened. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "dataset/file/file.h"
#include "features/rows/rows.h"

/* Attributes, and whatever else is small. */

static cdmpp_status fail_attr(const cd_h5 *h, const char *object, const char *name, cdmpp_status st,
                              const char *what, cdmpp_err *err) {
    H5Eclear2(H5E_DEFAULT);
    cd_err_raise(err, st, __FILE__, __LINE__, "attribute \"%s\": %s", name, what);
    return cd_err_at(err, cd_err_key(err, st, object), h->path, 0);
}

static cdmpp_status set(const cd_h5 *h, const char *object, const char *name, hid_t type,
                        const void *value, cdmpp_err *err) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t a = H5Acreate_by_name(h->file, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT,
                                      H5P_DEFAULT);
    const bool ok = a >= 0 && H5Awrite(a, type, value) >= 0;
    if (a >= 0) H5Aclose(a);
    H5Sclose(space);
    return ok ? CDMPP_OK : fail_attr(h, object, name, CDMPP_EIO, "cannot write it", err);
}

/* A fixed-length string holds at least one byte; 64 KiB is HDF5's limit for an attribute. */
cdmpp_status cd_h5_set_text(const cd_h5 *h, const char *object, const char *name, const char *value,
                            cdmpp_err *err) {
    static const char none[1];
    const size_t n = strlen(value);
    const size_t width = n > 60000 ? 60000 : n ? n : 1;
    const hid_t t = H5Tcopy(H5T_C_S1);
    H5Tset_size(t, width);
    H5Tset_cset(t, H5T_CSET_UTF8);
    H5Tset_strpad(t, H5T_STR_NULLPAD);
    const cdmpp_status st = set(h, object, name, t, n ? value : none, err);
    H5Tclose(t);
    return st;
}

cdmpp_status cd_h5_set_u32(const cd_h5 *h, const char *object, const char *name, uint32_t value,
                           cdmpp_err *err) {
    return set(h, object, name, H5T_STD_U32LE, &value, err);
}

/* Open, check that it is a scalar and hand out its type. */
static cdmpp_status open_attr(const cd_h5 *h, const char *object, const char *name, hid_t *a,
                              hid_t *type, cdmpp_err *err) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    *a = H5Aopen_by_name(h->file, object, name, H5P_DEFAULT, H5P_DEFAULT);
    if (*a < 0) return fail_attr(h, object, name, CDMPP_ESCHEMA, "missing", err);
    const hid_t space = H5Aget_space(*a);
    const bool one = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
    if (space >= 0) H5Sclose(space);
    *type = one ? H5Aget_type(*a) : -1;
    if (*type >= 0) return CDMPP_OK;
    H5Aclose(*a);
    return fail_attr(h, object, name, CDMPP_ESCHEMA, "not one value", err);
}

cdmpp_status cd_h5_get_text(const cd_h5 *h, const char *object, const char *name, char *buf,
                            size_t n, cdmpp_err *err) {
    hid_t a = -1, t = -1;
    CD_TRY(open_attr(h, object, name, &a, &t, err));
    const bool fixed = H5Tget_class(t) == H5T_STRING && H5Tis_variable_str(t) <= 0;
    const size_t width = fixed ? H5Tget_size(t) : 0;
    const bool fits = width > 0 && width < n;
    memset(buf, 0, n);
    const bool ok = fits && H5Aread(a, t, buf) >= 0;
    H5Tclose(t);
    H5Aclose(a);
    return ok ? CDMPP_OK
              : fail_attr(h, object, name, CDMPP_ESCHEMA, "expected a short string of fixed length",
                          err);
}

cdmpp_status cd_h5_get_u32(const cd_h5 *h, const char *object, const char *name, uint32_t *out,
                           cdmpp_err *err) {
    hid_t a = -1, t = -1;
    CD_TRY(open_attr(h, object, name, &a, &t, err));
    const bool ok = H5Tget_class(t) == H5T_INTEGER && H5Aread(a, H5T_NATIVE_UINT32, out) >= 0;
    H5Tclose(t);
    H5Aclose(a);
    return ok ? CDMPP_OK : fail_attr(h, object, name, CDMPP_ESCHEMA, "expected an integer", err);
}

const cd_layout_array_info cd_layout[CD_LAYOUT_ARRAY_COUNT] = {
#define X(ID, path, type, n_col, len, units, meaning)                                              \
    {path, CD_H5_##type, n_col, CD_LAYOUT_LEN_##len, units, meaning},
#include "dataset/file/layout.def"
};

const char *const cd_layout_dict_path[CD_LAYOUT_DICT_COUNT] = {
#define CD_X(ID, path) path,
    CD_LAYOUT_DICT_MAP(CD_X)
#undef CD_X
};

size_t cd_layout_array_bytes(cd_layout_array a) {
    return cd_h5_type_bytes(cd_layout[a].type) * (cd_layout[a].n_col ? cd_layout[a].n_col : 1);
}

uint32_t cd_layout_array_chunk(cd_layout_array a) {
    return cd_layout[a].n_col ? CD_LAYOUT_CHUNK_ROWS : CD_LAYOUT_CHUNK_ITEMS;
}

static void add_line(cd_sha256 *h, const char *path, uint64_t n, uint32_t crc) {
    char line[128];
    const int len =
        snprintf(line, sizeof line, "%s %llu %08x\n", path, (unsigned long long)n, (unsigned)crc);
    cd_sha256_add(h, line, (size_t)len);
}

void cd_layout_content_digest(const uint64_t n[CD_LAYOUT_ARRAY_COUNT],
                              const uint32_t crc[CD_LAYOUT_ARRAY_COUNT],
                              const uint32_t dict_crc[CD_LAYOUT_DICT_COUNT], char out[65]) {
    cd_sha256 h;
    cd_sha256_init(&h);
    for (int a = 0; a < CD_LAYOUT_ARRAY_COUNT; a++)
        if (!cd_layout_optional((cd_layout_array)a)) add_line(&h, cd_layout[a].path, n[a], crc[a]);
    for (int d = 0; d < CD_LAYOUT_DICT_COUNT; d++)
        if (d != CD_LAYOUT_DICT_SOURCE && d != CD_LAYOUT_DICT_KIND)
            add_line(&h, cd_layout_dict_path[d], 0, dict_crc[d]);
    cd_sha256_hex(&h, out);
}

uint32_t cd_layout_text_crc(size_t n, const char *const *text) {
    uLong crc = crc32(0, NULL, 0);
    for (size_t i = 0; i < n; i++) crc = crc32_z(crc, (const Bytef *)text[i], strlen(text[i]) + 1);
    return (uint32_t)crc;
}

static cdmpp_status fail(const cd_h5 *h, const char *object, cdmpp_status st, cdmpp_err *err) {
    return cd_err_at(err, cd_err_key(err, st, object), h->path, 0);
}

/* Another version or other feature columns are refused with both values in the message. */
cdmpp_status cd_layout_check(const cd_h5 *h, char content_digest[65], cdmpp_err *err) {
    char schema[32], want[65], have[65];
    uint32_t version = 0;
    CD_TRY(cd_h5_get_text(h, "/", "schema", schema, sizeof schema, err));
    if (strcmp(schema, CD_LAYOUT_SCHEMA) != 0)
        return fail(h, "/",
                    CD_FAIL(err, ESCHEMA, "schema: expected \"%s\", found \"%s\"", CD_LAYOUT_SCHEMA,
                            schema),
                    err);
    CD_TRY(cd_h5_get_u32(h, "/", "schema_version", &version, err));
    if (version != CD_LAYOUT_SCHEMA_VERSION)
        return fail(h, "/",
                    CD_FAIL(err, ESCHEMA, "schema_version: expected %u, found %u",
                            CD_LAYOUT_SCHEMA_VERSION, version),
                    err);
    cd_cols_digest(want);
    CD_TRY(cd_h5_get_text(h, "/", "feature_digest", have, sizeof have, err));
    if (strcmp(want, have) != 0)
        return fail(h, "/",
                    CD_FAIL(err, ESCHEMA,
                            "feature columns: expected digest %.12s..., found %.12s...", want,
                            have),
                    err);
    return cd_h5_get_text(h, "/", "content_digest", content_digest, 65, err);
}

cdmpp_status cd_layout_check_crc(const cd_h5 *h, const char *object, uint32_t crc, cdmpp_err *err) {
    uint32_t want = 0;
    CD_TRY(cd_h5_get_u32(h, object, CD_LAYOUT_ATTR_CRC, &want, err));
    if (crc == want) return CDMPP_OK;
    return fail(h, object,
                CD_FAIL(err, ESCHEMA, "damaged: expected checksum %08x, found %08x", want, crc),
                err);
}

cd_layout_array cd_layout_array_of_ptr(cd_layout_array a) {
    switch (a) {
    case CD_LAYOUT_ARRAY_ROW_PTR: return CD_LAYOUT_ARRAY_ROWS;
    case CD_LAYOUT_ARRAY_LEAF_PTR: return CD_LAYOUT_ARRAY_LEAF_NODE;
    case CD_LAYOUT_ARRAY_OWN_PTR: return CD_LAYOUT_ARRAY_LEAF_ROWS;
    case CD_LAYOUT_ARRAY_TREE_PTR: return CD_LAYOUT_ARRAY_TREE;
    case CD_LAYOUT_ARRAY_PATH_PTR: return CD_LAYOUT_ARRAY_PATH_EXTENT;
    case CD_LAYOUT_ARRAY_STEP_PTR: return CD_LAYOUT_ARRAY_STEP;
    default: return CD_LAYOUT_ARRAY_COUNT;
    }
}

/* Is it one of the two arrays of steps, of facts, one of the three of copies? */
static bool layout_of_steps(cd_layout_array a) {
    return a == CD_LAYOUT_ARRAY_STEP || a == CD_LAYOUT_ARRAY_STEP_PTR;
}
bool cd_layout_of_facts(cd_layout_array a) {
    return a == CD_LAYOUT_ARRAY_FACTS || a == CD_LAYOUT_ARRAY_FACTS_STATE;
}
bool cd_layout_of_copies(cd_layout_array a) {
    return a == CD_LAYOUT_ARRAY_COPIES || a == CD_LAYOUT_ARRAY_COPY_MIN ||
           a == CD_LAYOUT_ARRAY_COPY_MAX;
}

cd_layout_array cd_layout_asked_for(cd_layout_array a) {
    if (layout_of_steps(a)) return CD_LAYOUT_ARRAY_STEP_PTR;
    if (cd_layout_of_copies(a)) return CD_LAYOUT_ARRAY_COPIES;
    return a == CD_LAYOUT_ARRAY_ID ? a : CD_LAYOUT_ARRAY_COUNT;
}

bool cd_layout_optional(cd_layout_array a) {
    return a == CD_LAYOUT_ARRAY_KIND || cd_layout_of_facts(a) ||
           cd_layout_asked_for(a) != CD_LAYOUT_ARRAY_COUNT;
}

const char *cd_layout_facts_attr(cd_facts_set set, bool digest) {
    static const char *const attr[CD_N_FACTS_SET][2] = {{"names", "digest"},
                                                        {"gpu_names", "gpu_digest"}};
    return attr[set][digest];
}

void cd_layout_facts_names(cd_facts_set set, char out[CD_LAYOUT_NAMES]) {
    size_t at = 0;
    for (size_t i = 0; i < cd_facts_count(set); i++) {
        const int n = snprintf(out + at, CD_LAYOUT_NAMES - at, "%s%s", i ? "\n" : "",
                               cd_facts_cols(set)[i].name);
        /* a table of this size has shorter names */
        assert(n > 0 && at + (size_t)n < CD_LAYOUT_NAMES);
        at += (size_t)n;
    }
}

cdmpp_status cd_layout_check_facts(const cd_h5 *h, cd_facts_set set, cdmpp_err *err) {
    const char *path = cd_layout[CD_LAYOUT_ARRAY_FACTS].path;
    char want[65], have[65];
    cd_facts_cols_digest(set, want);
    CD_TRY(cd_h5_get_text(h, path, cd_layout_facts_attr(set, true), have, sizeof have, err));
    if (!strcmp(want, have)) return CDMPP_OK;
    return fail(h, path,
                CD_FAIL(err, ESCHEMA,
                        "facts of loop nests of %s programs: expected columns of digest %.12s..., "
                        "found %.12s...: extract the logs again",
                        set == CD_FACTS_OF_GPU ? "GPU" : "CPU", want, have),
                err);
}

const char *cd_layout_facts_text(uint8_t state) {
    static const char *const text[] = {
        "it has facts", "a GPU program of an earlier version",
        "extents or addresses that are not constants",
        "rejected by its target, or from a file of an earlier version",
        "it has facts of GPU programs"};
    return state < sizeof text / sizeof *text ? text[state] : "of an unknown state";
}

cd_layout_dict cd_layout_array_dict(cd_layout_array a) {
    switch (a) {
    case CD_LAYOUT_ARRAY_TASK: return CD_LAYOUT_DICT_TASK;
    case CD_LAYOUT_ARRAY_DEVICE: return CD_LAYOUT_DICT_DEVICE;
    case CD_LAYOUT_ARRAY_TARGET: return CD_LAYOUT_DICT_TARGET;
    case CD_LAYOUT_ARRAY_SOURCE_FILE: return CD_LAYOUT_DICT_SOURCE;
    case CD_LAYOUT_ARRAY_KIND: return CD_LAYOUT_DICT_KIND;
    default: return CD_LAYOUT_DICT_COUNT;
    }
}
