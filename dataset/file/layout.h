/* layout -- what a data set file contains: arrays, dictionaries, attributes. */
#ifndef CD_LAYOUT_H
#define CD_LAYOUT_H
#include "dataset/file/h5.h"

#define CD_LAYOUT_SCHEMA "cdmpp.dataset"
#define CD_LAYOUT_SCHEMA_VERSION 1u
#define CD_LAYOUT_CHUNK_ROWS 1024u   /* rows of a chunk of a 2-D array: 656 KiB   */
#define CD_LAYOUT_CHUNK_ITEMS 8192u  /* elements of a chunk of a 1-D array        */

typedef enum cd_layout_array {
#define X(ID, path, type, n_col, len, units, meaning) CD_LAYOUT_ARRAY_##ID,
#include "dataset/file/layout.def"
    CD_LAYOUT_ARRAY_COUNT
} cd_layout_array;

/* What an array has one element of; the *1 kinds have one more. */
typedef enum cd_layout_len { CD_LAYOUT_LEN_PROGRAM, CD_LAYOUT_LEN_PROGRAM1, CD_LAYOUT_LEN_ROW, CD_LAYOUT_LEN_LEAF, CD_LAYOUT_LEN_LEAF1, CD_LAYOUT_LEN_OWN,
                      CD_LAYOUT_LEN_TREE, CD_LAYOUT_LEN_PATH, CD_LAYOUT_LEN_COUNT } cd_layout_len;

typedef struct cd_layout_array_info {
    const char *path;
    cd_h5_type type;
    uint32_t n_col;       /* 0: 1-D */
    cd_layout_len len;
    const char *units, *meaning;
} cd_layout_array_info;

extern const cd_layout_array_info cd_layout[CD_LAYOUT_ARRAY_COUNT];

/* Bytes of one element: a whole row when 2-D. */
size_t cd_layout_array_bytes(cd_layout_array a);
/* Elements of one chunk. */
uint32_t cd_layout_array_chunk(cd_layout_array a);

/* X(ID, path): text tables that /key/... points into. */
#define CD_LAYOUT_DICT_MAP(X)                                                                        \
    X(TASK, "/dict/task") X(DEVICE, "/dict/device") X(TARGET, "/dict/target") X(SOURCE, "/dict/source_file") \
    X(KIND, "/dict/kind")
typedef enum cd_layout_dict {
#define CD_X(ID, path) CD_LAYOUT_DICT_##ID,
    CD_LAYOUT_DICT_MAP(CD_X)
#undef CD_X
    CD_LAYOUT_DICT_COUNT
} cd_layout_dict;
extern const char *const cd_layout_dict_path[CD_LAYOUT_DICT_COUNT];

/* Attribute of every array: CRC-32 of its bytes, little endian, in order.
 * zlib.crc32(ds[:].tobytes()) in Python. */
#define CD_LAYOUT_ATTR_CRC "crc32"
uint32_t cd_layout_text_crc(size_t n, const char *const *text); /* of text: each string and a NUL */
/* Digest of what the file says about programs: all arrays and dictionaries but
 * the paths of the sources, so that it does not depend on the folder, and the kinds,
 * which follow from tasks and targets, so that files without them are the same data. */
void cd_layout_content_digest(const uint64_t n[CD_LAYOUT_ARRAY_COUNT], const uint32_t crc[CD_LAYOUT_ARRAY_COUNT],
                              const uint32_t dict_crc[CD_LAYOUT_DICT_COUNT], char out[65]);

/* Is this a data set of this version with these columns? Gives its content
 * digest. Errors: ESCHEMA. */
cdmpp_status cd_layout_check(const cd_h5 *h, char content_digest[65], cdmpp_err *err);
/* ESCHEMA unless the object's crc32 attribute is `crc`. */
cdmpp_status cd_layout_check_crc(const cd_h5 *h, const char *object, uint32_t crc, cdmpp_err *err);
/* Files of earlier versions lack this array and its dictionary. */
bool cd_layout_optional(cd_layout_array a);
/* What an offset array points into, CD_LAYOUT_ARRAY_COUNT for other arrays. */
cd_layout_array cd_layout_array_of_ptr(cd_layout_array a);
/* The dictionary that an array's numbers belong to, CD_LAYOUT_DICT_COUNT for other arrays. */
cd_layout_dict cd_layout_array_dict(cd_layout_array a);
#endif
