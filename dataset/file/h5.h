/* h5 -- the few HDF5 calls this project needs, with errors that name the file
 * and the object ("zen5.h5: /label/latency_s: cannot read ... [EIO]").
 *
 * Files are written in the 1.10 format: every piece of metadata has a checksum,
 * so that a damaged file is an error and not a crash. No times are stored: the
 * same contents give the same bytes. One file is for one thread at a time. */
#ifndef CD_H5_H
#define CD_H5_H
#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"

/* X(id, HDF5 type in memory and on disk, bytes) */
#define CD_H5_TYPE_MAP(X)                                                           \
    X(F32, H5T_IEEE_F32LE, 4) X(F64, H5T_IEEE_F64LE, 8) X(I32, H5T_STD_I32LE, 4)    \
    X(I64, H5T_STD_I64LE, 8) X(U8, H5T_STD_U8LE, 1) X(U32, H5T_STD_U32LE, 4)        \
    X(U64, H5T_STD_U64LE, 8)

typedef enum cd_h5_type {
#define CD_X(id, type, bytes) CD_H5_##id,
    CD_H5_TYPE_MAP(CD_X)
#undef CD_X
    CD_H5_TYPE_COUNT
} cd_h5_type;
/* Bytes of one element. */
size_t cd_h5_type_bytes(cd_h5_type t);

typedef struct cd_h5 {
    hid_t file;
    const char *path; /* borrowed from the caller */
} cd_h5;

/* Create replaces what is there. Errors: EIO, ENOMEM. */
cdmpp_status cd_h5_create(cd_h5 *h, CD_KEEP const char *path, cdmpp_err *err);
/* Errors: EIO, or ESCHEMA when it is not an HDF5 file. */
cdmpp_status cd_h5_open(cd_h5 *h, CD_KEEP const char *path, cdmpp_err *err);
/* Flush and close; safe to call again. Errors: EIO (a full disk shows here). */
cdmpp_status cd_h5_close(cd_h5 *h, cdmpp_err *err);

/* Arrays are 1-D (n) when n_col == 0, else 2-D (n, n_col). */
typedef struct cd_h5_shape {
    cd_h5_type type;
    uint64_t n;
    uint32_t n_col;
} cd_h5_shape;

/* A chunked array, deflate level 1, to be filled by cd_h5_write_chunk with
 * chunks that are compressed already. Missing groups are made. *out: to be
 * closed with cd_h5_close_array. */
cdmpp_status cd_h5_create_chunked(const cd_h5 *h, const char *object, cd_h5_shape s, uint32_t chunk, hid_t *out,
                                  cdmpp_err *err);
cdmpp_status cd_h5_write_chunk(const cd_h5 *h, const char *object, hid_t array, uint64_t first, uint32_t n_col,
                               const void *zip, size_t n_zip, cdmpp_err *err);
cdmpp_status cd_h5_close_array(const cd_h5 *h, const char *object, hid_t array, cdmpp_err *err);

/* A small array, contiguous and uncompressed. */
cdmpp_status cd_h5_write(const cd_h5 *h, const char *object, cd_h5_shape s, const void *data, cdmpp_err *err);
/* Text (n) of one length: the longest, zero padded, UTF-8. */
cdmpp_status cd_h5_write_text(const cd_h5 *h, const char *object, size_t n, const char *const *text, cdmpp_err *err);

/* Is there such an object? */
bool cd_h5_has(const cd_h5 *h, const char *object);
/* Size of an array; ESCHEMA when it is absent, of another type or rank. */
cdmpp_status cd_h5_size(const cd_h5 *h, const char *object, cd_h5_type type, uint32_t n_col, uint64_t *n,
                        cdmpp_err *err);
/* Rows first .. first+n of an array into `out`. */
cdmpp_status cd_h5_read(const cd_h5 *h, const char *object, cd_h5_shape s, uint64_t first, void *out, cdmpp_err *err);
/* All strings, in one block to be freed with cd_mem_free: (n) pointers, then the text. */
cdmpp_status cd_h5_read_text(const cd_h5 *h, const char *object, size_t *n, CD_GIVE char ***out, cdmpp_err *err);

/* Attributes of an object; "/" is the file. Reading a string: at most n-1
 * bytes, ESCHEMA when absent, longer or of another type. */
cdmpp_status cd_h5_set_text(const cd_h5 *h, const char *object, const char *name, const char *value, cdmpp_err *err);
cdmpp_status cd_h5_set_u32(const cd_h5 *h, const char *object, const char *name, uint32_t value, cdmpp_err *err);
cdmpp_status cd_h5_get_text(const cd_h5 *h, const char *object, const char *name, char *buf, size_t n, cdmpp_err *err);
cdmpp_status cd_h5_get_u32(const cd_h5 *h, const char *object, const char *name, uint32_t *out, cdmpp_err *err);
#endif
