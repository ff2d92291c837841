/* Attributes, and whatever else is small. */
#include <string.h>

#include "dataset/file/file.h"

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
