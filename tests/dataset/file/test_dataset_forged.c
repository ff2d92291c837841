/* Data sets that somebody made by hand: numbers of one array are others, and its checksum agrees.
 * Each is refused with the array, or what it holds lies within its bounds. */
#include "forge.h"

#include <hdf5.h>
#include <math.h>
#include <zlib.h>

#include "base/io/io.h"
#include "dataset/file/file.h"
#include "made_items.h"
#include "tmp.h"

static tmp_dir dir;
static char good[256];

static int up(void **state) {
    cdmpp_err err = {0};
    (void)state;
    dir = tmp_make();
    snprintf(good, sizeof good, "%s", tmp_path(&dir, "good.h5"));
    assert_ok(make_file(good, 0, 60, &err));
    return 0;
}

static int down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

/* Some numbers of the array of this width become odd ones. */
static void spoil(forge_dice *d, char *p, size_t n, size_t width) {
    static const uint64_t odd[] = {
        UINT64_MAX, 0,          1,          0x7fffffff, 0x80000000,         0xfffffffe,
        1ull << 40, 1ull << 62, 0x7fc00000, 0x7f800000, 0x7ff8000000000000, 0x7ff0000000000000,
        200,        65536};
    for (size_t k = 1 + forge_draw(d, 3); n && k; k--) {
        const size_t i = forge_draw(d, n);
        uint64_t v = odd[forge_draw(d, sizeof odd / sizeof *odd)];
        /* that of another place */
        if (forge_draw(d, 3) == 0) memcpy(&v, p + forge_draw(d, n) * width, width);
        memcpy(p + i * width, &v, width);
    }
}

/* One array of the file in place; false: it is not there, or empty. */
static bool forge_array(const char *path, forge_dice *d) {
    const cd_layout_array a = (cd_layout_array)forge_draw(d, CD_LAYOUT_ARRAY_COUNT);
    const hid_t f = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(f >= 0);
    const bool is = H5Lexists(f, cd_layout[a].path, H5P_DEFAULT) > 0;
    const hid_t set = is ? H5Dopen2(f, cd_layout[a].path, H5P_DEFAULT) : -1;
    bool done = false;
    if (set >= 0) {
        const hid_t space = H5Dget_space(set), type = H5Dget_type(set),
                    attr = H5Aopen(set, CD_LAYOUT_ATTR_CRC, H5P_DEFAULT);
        const size_t n = (size_t)H5Sget_simple_extent_npoints(space), width = H5Tget_size(type);
        char *p = malloc(n * width + 1);
        assert_non_null(p);
        assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, p) >= 0);
        spoil(d, p, n, width);
        const uint32_t crc = (uint32_t)crc32_z(crc32(0, NULL, 0), (const Bytef *)p, n * width);
        assert_true(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, p) >= 0 &&
                    H5Awrite(attr, H5T_NATIVE_UINT32, &crc) >= 0);
        done = n > 0;
        free(p);
        H5Aclose(attr);
        H5Tclose(type);
        H5Sclose(space);
        H5Dclose(set);
    }
    H5Fclose(f);
    return done;
}

/* Every number that a training reads, where it says it is. */
static double look(const cd_dataset *d) {
    double sum = 0;
    for (size_t i = 0; i < d->n; i++) {
        sum += isnan(d->latency_s[i]) ? 0 : d->latency_s[i];
        for (int64_t r = d->row_ptr[i]; r < d->row_ptr[i + 1]; r++)
            for (int c = 0; c < 164; c++) sum += (double)d->row[r * 164 + c];
        for (int64_t l = d->leaf_ptr[i]; l < d->leaf_ptr[i + 1]; l++) {
            sum += d->leaf_pos[l] + d->tree[d->tree_ptr[i] + d->leaf_pos[l]];
            for (int64_t k = d->path_ptr[l]; k < d->path_ptr[l + 1]; k++)
                sum += (double)d->path_extent[k] + d->path_kind[k];
        }
        sum += (double)(strlen(d->task_name[d->task[i]]) + strlen(d->device_name[d->device[i]]));
    }
    return sum;
}

TEST(numbers_with_a_right_checksum) {
    cdmpp_err err = {0};
    char *bytes;
    size_t n, taken = 0, tried = 0;
    assert_ok(cd_file_read(good, 0, &bytes, &n, &err));
    for (size_t i = 0; i < forge_rounds(60); i++) {
        forge_dice d = {cd_rng_at(i, 5), 0};
        cd_dataset *set = NULL;
        const char *path = tmp_put(&dir, "f.h5", bytes, n);
        if (!forge_array(path, &d)) continue;
        tried++;
        const cdmpp_status st = cd_dataset_load_ast(&path, 1, &set, &err);
        if (st && (st == CDMPP_ENOMEM || !err.msg[0])) fail_msg("refused with %s", err.msg);
        if (st) continue;
        taken++;
        (void)look(set);
        cd_dataset_free(set);
    }
    cd_mem_free(bytes);
    assert_true(tried > 10);
    if (getenv("FORGE_SAYS")) printf("forged: %zu of %zu taken\n", taken, tried);
}

TESTS(up, down, numbers_with_a_right_checksum)
