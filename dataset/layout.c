#include "dataset/layout.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/sha256.h"

const cd_array_info cd_layout[CD_ARRAY_COUNT] = {
#define X(ID, path, type, n_col, len, units, meaning) {path, CD_##type, n_col, CD_LEN_##len, units, meaning},
#include "dataset/layout.def"
};

const char *const cd_dict_path[CD_DICT_COUNT] = {
#define CD_X(ID, path) path,
    CD_DICT_MAP(CD_X)
#undef CD_X
};

size_t cd_array_bytes(cd_array a) {
    return cd_h5_type_bytes(cd_layout[a].type) * (cd_layout[a].n_col ? cd_layout[a].n_col : 1);
}

uint32_t cd_array_chunk(cd_array a) { return cd_layout[a].n_col ? CD_CHUNK_ROWS : CD_CHUNK_ITEMS; }

static void add_line(cd_sha256 *h, const char *path, uint64_t n, uint32_t crc) {
    char line[128];
    const int len = snprintf(line, sizeof line, "%s %llu %08x\n", path, (unsigned long long)n, (unsigned)crc);
    cd_sha256_add(h, line, (size_t)len);
}

void cd_layout_content_digest(const uint64_t n[CD_ARRAY_COUNT], const uint32_t crc[CD_ARRAY_COUNT],
                              const uint32_t dict_crc[CD_DICT_COUNT], char out[65]) {
    cd_sha256 h;
    cd_sha256_init(&h);
    for (int a = 0; a < CD_ARRAY_COUNT; a++) add_line(&h, cd_layout[a].path, n[a], crc[a]);
    for (int d = 0; d < CD_DICT_COUNT; d++)
        if (d != CD_DICT_SOURCE) add_line(&h, cd_dict_path[d], 0, dict_crc[d]);
    cd_sha256_hex(&h, out);
}

uint32_t cd_text_crc(size_t n, const char *const *text) {
    uLong crc = crc32(0, NULL, 0);
    for (size_t i = 0; i < n; i++) crc = crc32_z(crc, (const Bytef *)text[i], strlen(text[i]) + 1);
    return (uint32_t)crc;
}
