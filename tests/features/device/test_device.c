/* device: configs/devices.yaml is consistent, every vector is finite, mistakes
 * are told with their place, the file is found. */
#include "features/device/device.h"
#include "check.h"
#include "fault.h"
#include "tmp.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"

typedef struct {
    cd_diag diag;
    cd_device_table *l;
    cdmpp_err err;
} fixture;

static cdmpp_status read_text(fixture *f, const char *text) {
    *f = (fixture){0};
    return cd_device_table_read("d.yaml", text, strlen(text), &f->diag, &f->l, &f->err);
}

static void stop(fixture *f) {
    cd_device_table_free(f->l);
    cd_diag_free(&f->diag);
}

static int up(void **state) {
    static fixture f;
    f = (fixture){0};
    if (cd_device_table_load("configs/devices.yaml", &f.diag, &f.l, &f.err))
        print_error("%s", f.diag.text.p);
    *state = &f;
    return f.l == NULL;
}

static int down(void **state) {
    stop(*state);
    return 0;
}

/* ---- the file that we carry ---- */
static void all_devices_are_there(void **state) {
    static const char *const want[] = {"t4",
                                       "v100",
                                       "a100",
                                       "k80",
                                       "p100",
                                       "a10",
                                       "hl-100",
                                       "e5-2673",
                                       "epyc-7452",
                                       "graviton2",
                                       "platinum-8272",
                                       "p4",
                                       "a30",
                                       "l4",
                                       "h100",
                                       "mi50",
                                       "mi100",
                                       "mi210",
                                       "mi250",
                                       "zen5-avx512",
                                       "zen5-avx2",
                                       "Tesla_V100-PCIE-32GB",
                                       "Tesla V100-PCIE-32GB",
                                       "NVIDIA A100 80GB PCIe",
                                       "NVIDIA_A100-SXM4-40GB",
                                       "NVIDIA H100 80GB HBM3",
                                       "NVIDIA L4",
                                       "Tesla P4",
                                       "Tesla T4",
                                       "Tesla P100-PCIE-16GB",
                                       "NVIDIA A100-PCIE-40GB",
                                       "AMD Instinct MI210",
                                       "AMD Instinct MI100",
                                       "GeForce RTX 3060",
                                       "rtx3070",
                                       "rtx3080",
                                       "NVIDIA GeForce RTX 3090",
                                       "rtx4060",
                                       "rtx4070",
                                       "rtx4080",
                                       "rtx5080",
                                       "NVIDIA GeForce RTX 5090",
                                       "h100-nvl",
                                       "NVIDIA H100 PCIe",
                                       "gh200",
                                       "gb10",
                                       "Jetson AGX Orin",
                                       "zen2-server",
                                       "zen3-server",
                                       "skylake-sp",
                                       "cascade-lake-sp",
                                       "ice-lake-sp",
                                       "sapphire-rapids-sp",
                                       "alder-lake",
                                       "neoverse-n1",
                                       "neoverse-v1",
                                       "neoverse-v2",
                                       "cortex-a76",
                                       "cortex-x1"};
    fixture *f = *state;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const cd_device *d;
        cdmpp_err err = {0};
        assert_ok(cd_device_table_find(f->l, want[i], &d, &err));
    }
}

static void vectors_are_finite_and_moderate(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < cd_device_table_count(f->l); i++) {
        const cd_device *d = cd_device_table_at(f->l, i);
        float v[CD_N_DEVICE_COL];
        cd_device_vector(d, v);
        for (size_t k = 0; k < CD_N_DEVICE_COL; k++) {
            if (!isfinite(v[k]) || fabsf(v[k]) > 3)
                fail_msg("%s: %s = %g", d->name, cd_device_col_name(k), (double)v[k]);
            /* a flag */
            if (k >= CD_N_DEVICE_KIND + CD_N_DEVICE_RATIO) assert_true(v[k] == 0 || v[k] == 1);
        }
    }
}

/* Known GPUs and CPUs: the stated peak is that of lanes, cores and clock. */
static void peaks_agree(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < cd_device_table_count(f->l); i++) {
        const cd_device *d = cd_device_table_at(f->l, i);
        if (d->fp32_gflops < 0) continue;
        const double peak = 2 * d->lanes * d->cores * d->clock_mhz / 1000;
        if (fabs(peak / d->fp32_gflops - 1) > 0.005)
            fail_msg("%s: %g by its lanes, %g stated", d->name, peak, d->fp32_gflops);
    }
}

static void assert_in(const char *device, const char *what, double v, double low, double high) {
    if (!(v >= low && v <= high)) fail_msg("%s: %s: %g", device, what, v);
}

/* What the bandwidth is of: bits of the memory's bus and Gbit/s of each, from data sheets; 0 bits:
 * no memory bus but a link to it, or a measurement. */
static const struct {
    const char *name;
    double bits, rate;
} bus[] = {{"p4", 256, 6},
           {"p100", 4096, 1.43},
           {"k80", 384, 5.01},
           {"k40", 384, 6},
           {"m60", 256, 5.01},
           {"v100", 4096, 1.754},
           {"v100-pcie", 4096, 1.754},
           {"t4", 256, 10},
           {"rtx2080ti", 352, 14},
           {"a100", 5120, 2.43},
           {"a100-sxm4", 5120, 2.43},
           {"a100-80gb", 5120, 3.024},
           {"a100-sxm4-80gb", 5120, 3.186},
           {"a10", 384, 12.5},
           {"a30", 3072, 2.43},
           {"l4", 192, 12.5},
           {"l40s", 384, 18},
           {"l40", 384, 18},
           {"rtx-pro-6000-server", 512, 28},
           {"h100", 5120, 5.24},
           {"h200", 6144, 6.25},
           {"h100-pcie", 5120, 3.186},
           {"h100-nvl", 6016, 5.24},
           {"gh200", 6144, 5.2},
           {"h800", 5120, 5.24},
           {"h20", 6144, 5.2},
           {"b200", 8192, 7.52},
           {"gb200", 8192, 7.8},
           {"b300", 8192, 7.52},
           {"gb300", 8192, 7.8},
           {"rtx4090", 384, 21},
           {"rtx4080", 256, 22.4},
           {"rtx4070", 192, 21},
           {"rtx4060", 128, 17},
           {"rtx5090", 512, 28},
           {"rtx5080", 256, 30},
           {"gb10", 256, 8.533},
           {"jetson-orin", 256, 6.4},
           {"rtx6000-ada", 384, 20},
           {"l20", 384, 18},
           {"a40", 384, 14.5},
           {"rtx3090", 384, 19.5},
           {"rtx3080", 320, 19},
           {"rtx3070", 256, 14},
           {"rtx3060", 192, 15},
           {"a6000", 384, 16},
           {"mi50", 4096, 2},
           {"mi100", 4096, 2.4},
           {"mi210", 4096, 3.2},
           {"mi250", 4096, 3.2},
           {"mi300x", 8192, 5.2},
           {"hl-100", 0, 0},
           {"e5-2673", 256, 2.4},
           {"epyc-7452", 512, 3.2},
           {"graviton2", 512, 3.2},
           {"platinum-8272", 384, 2.933},
           {"zen5-avx512", 0, 0},
           {"zen5-cdmpp", 0, 0},
           {"zen5-avx2", 0, 0},
           {"zen4", 0, 0},
           {"granite-rapids", 0, 0},
           {"zen2-server", 256, 1.467},
           {"zen3-cdmpp", 256, 1.6},
           {"zen3-server", 256, 1.6},
           {"skylake-sp", 384, 2.666},
           {"cascade-lake-sp", 384, 2.933},
           {"ice-lake-sp", 512, 3.2},
           {"sapphire-rapids-sp", 512, 4.8},
           {"alder-lake", 128, 4.8},
           {"graviton3", 512, 4.8},
           {"graviton4", 768, 5.6},
           {"cortex-a76", 32, 4.267},
           {"cortex-x1", 64, 6.4}};

/* A device without a line here fails: whoever adds one looks its bus up. */
static void bandwidth_is_bus_times_rate(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < cd_device_table_count(f->l); i++) {
        const cd_device *d = cd_device_table_at(f->l, i);
        size_t k = 0;
        while (k < sizeof bus / sizeof *bus && strcmp(bus[k].name, d->name) != 0) k++;
        if (k == sizeof bus / sizeof *bus) fail_msg("%s: which bus has its memory?", d->name);
        const double peak = bus[k].bits * bus[k].rate / 8;
        if (peak > 0 && fabs(d->bandwidth_gb_s / peak - 1) > 0.02)
            fail_msg("%s: %g GB/s by its bus, %g stated", d->name, peak, d->bandwidth_gb_s);
    }
}

/* Operations of a multiprocessor in a clock are a power of two; sheets give Hopper's at a lower
 * clock than those of fp32, by up to 14 %. */
static void matrix_units_are_a_power_of_two(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < cd_device_table_count(f->l); i++) {
        const cd_device *d = cd_device_table_at(f->l, i);
        if (!(d->tensor_tflops > 0)) continue;
        const double per = log2(d->tensor_tflops * 1e6 / (2 * d->cores * d->clock_mhz)),
                     off = per - ceil(per - 0.04),
                     least = d->arch && strstr(d->arch, "sm_9") ? 0.22 : 0.09;
        if (off < -least || off > 0.04)
            fail_msg("%s: %g operations of a matrix unit in a clock", d->name, 2 * exp2(per));
    }
}

/* The values that are known, each at least the one before; a number below 0 or 0 is left out. */
static void rising(const char *device, const char *what, const double *v, size_t n) {
    double last = 0;
    for (size_t k = 0; k < n; k++) {
        if (!(v[k] > 0)) continue;
        if (v[k] < last * 0.999) fail_msg("%s: %s: %g behind %g", device, what, v[k], last);
        last = v[k];
    }
}

/* Caches grow, and memory is larger; a narrower type is as fast or faster; a second peak of the
 * same units is its half or the same. */
static void sizes_are_in_order(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < cd_device_table_count(f->l); i++) {
        const cd_device *d = cd_device_table_at(f->l, i);
        const bool amd = d->arch && !strncmp(d->arch, "gfx", 3); /* fp64 of its matrix units */
        rising(d->name, "caches", (double[]){d->l1_kb, d->l2_kb, d->l3_kb, d->mem_gb * 1048576}, 4);
        rising(d->name, "narrower types", (double[]){d->bf16_tflops, d->fp8_tflops, d->fp4_tflops},
               3);
        rising(d->name, "fp16", (double[]){d->fp16_tflops, d->tensor_tflops}, 2);
        if (!amd) rising(d->name, "fp64 and fp32", (double[]){d->fp64_gflops, d->fp32_gflops}, 2);
        if (d->bf16_tflops > 0 && d->tensor_tflops > 0)
            assert_in(d->name, "bf16 of fp16", d->bf16_tflops / d->tensor_tflops, 0.49, 1.01);
        if (d->fp8_tflops > 0 && d->bf16_tflops > 0)
            assert_in(d->name, "fp8 of bf16", d->fp8_tflops / d->bf16_tflops, 1.98, 2.03);
        if (d->cores_used > 0) assert_true(d->cores_used <= d->cores);
        if (d->warp > 1 && d->kind == CD_DEVICE_GPU) assert_true(d->warp < 33 || amd);
    }
}

/* Names that a processor has by its family and model (profiler/describe): a machine that no model
 * knows is described by what it says of itself, and not by a part of its generation. */
static void machines_keep_their_names(void **state) {
    static const char *const march[] = {"zen1",
                                        "zen2",
                                        "zen3",
                                        "emerald-rapids",
                                        "sapphire-rapids",
                                        "ice-lake-server",
                                        "skylake-server",
                                        "broadwell-server",
                                        "haswell-server"};
    fixture *f = *state;
    const cd_device *d;
    for (size_t k = 0; k < sizeof march / sizeof *march; k++)
        if (!cd_device_table_find(f->l, march[k], &d, NULL))
            fail_msg("%s is %s", march[k], d->name);
}

static void t4_is_the_reference(void **state) {
    fixture *f = *state;
    float v[CD_N_DEVICE_COL];
    cdmpp_err err = {0};
    assert_ok(cd_device_table_vector(f->l, "Tesla-T4", v, &err));
    assert_true(v[0] == 1 && v[1] == 0);
    for (size_t k = 0; k < CD_DEVICE_COL_shared; k++)
        assert_close(v[CD_N_DEVICE_KIND + k], 0, 0, 1e-4);
    assert_close(v[CD_N_DEVICE_KIND + CD_DEVICE_COL_power], 0, 0, 1e-4);
    assert_close(v[CD_N_DEVICE_KIND + CD_DEVICE_COL_process], 0, 0, 1e-6);
    assert_close(v[CD_N_DEVICE_KIND + CD_DEVICE_COL_tensor], log10(1 + 65000.0 / 8141), 1e-6, 0);
}

static void cores_in_use_count(void **state) {
    fixture *f = *state;
    const cd_device *d;
    cdmpp_err err = {0};
    assert_ok(cd_device_table_find(f->l, "EPYC-7452", &d, &err));
    assert_close(cd_device_cores(d), 4, 0, 0);
    assert_close(cd_device_gflops(d), d->fp32_gflops / 8, 1e-12, 0);
    assert_ok(cd_device_table_find(f->l, "A100", &d, &err));
    assert_close(cd_device_cores(d), 108, 0, 0);
}

static void unknown_values_are_flagged(void **state) {
    fixture *f = *state;
    float v[CD_N_DEVICE_COL];
    cdmpp_err err = {0};
    const float *ratio = v + CD_N_DEVICE_KIND, *flag = ratio + CD_N_DEVICE_RATIO;
    assert_ok(cd_device_table_vector(f->l, "hl-100", v, &err));
    assert_true(v[0] == 0 && v[1] == 1);
    assert_true(flag[CD_DEVICE_COL_l2] == 1 && ratio[CD_DEVICE_COL_l2] == 0);
    assert_true(flag[CD_DEVICE_COL_clock] == 0 && flag[CD_DEVICE_COL_flops] == 1);
    /* no tensor cores is not the same as unknown */
    assert_ok(cd_device_table_vector(f->l, "k80", v, &err));
    assert_true(flag[CD_DEVICE_COL_tensor] == 0 && ratio[CD_DEVICE_COL_tensor] == 0);
}

/* By spelling: "nearest" would be read as the most similar hardware. */
static void unknown_device_names_what_is_spelt_alike(void **state) {
    fixture *f = *state;
    float v[CD_N_DEVICE_COL];
    cdmpp_err err = {0};
    static const char *const near[][2] = {
        {"epyc-7542", "; did you mean 'epyc-7452'?"},
        {"rtx9999", "'rtx4090'"},
        {"mi300", "; did you mean 'mi300x'?"},
        {"a100x", "; did you mean 'a100'?"},
        {"zen7", "'zen5'"},
        {"h300", "did you mean 'h100', 'h200' or 'h800'?"},
        {"nothing-alike", " devices are described, cdmpp-replay --list-devices names them"}};
    for (size_t k = 0; k < sizeof near / sizeof *near; k++) {
        char want[40];
        assert_status(cd_device_table_vector(f->l, near[k][0], v, &err), CDMPP_ESCHEMA);
        (void)snprintf(want, sizeof want, "no device '%s'; ", near[k][0]);
        if (!strstr(err.msg, want) || !strstr(err.msg, near[k][1]) || strstr(err.msg, "nearest"))
            fail_msg("%s: %s", near[k][0], err.msg);
    }
}

TEST(manual) {
    char *doc;
    size_t n;
    cd_buf b = {0};
    cdmpp_err err = {0};
    cd_device_doc(&b);
    assert_int_equal(strncmp(b.p, "| key | range |", 15), 0);
    assert_ok(cd_file_read("docs/reference/devices.md", 0, &doc, &n, &err));
    if (!strstr(doc, b.p)) fail_msg("docs/reference/devices.md: its end should be\n%s", b.p);
    cd_mem_free(doc);
    cd_buf_free(&b);
}

/* ---- files of others ---- */
TEST(a_device_of_two_keys) {
    fixture f;
    float v[CD_N_DEVICE_COL];
    const cd_device *d;
    cdmpp_err err = {0};
    assert_ok(read_text(&f, "- {name: My Chip, kind: cpu}\n"));
    assert_ok(cd_device_table_find(f.l, "my-chip", &d, &err));
    assert_close(d->clock_mhz, CD_DEVICE_UNKNOWN, 0, 0);
    cd_device_vector(d, v);
    for (size_t i = 0; i < CD_N_DEVICE_COL; i++)
        assert_true(v[i] == (i >= CD_N_DEVICE_KIND + CD_N_DEVICE_RATIO ? 1 : 0));
    stop(&f);
}

/* Without a peak it is computed where the three are there, and then it counts as described. */
TEST(a_peak_is_computed) {
    fixture f;
    cdmpp_err err = {0};
    assert_ok(read_text(
        &f, "- {name: a, kind: gpu, cores: 10, lanes: 100, clock_mhz: 1000}\n- {name: b, kind: "
            "gpu, cores: 10, lanes: 100}\n"
            "- {name: c, kind: gpu, cores: 10, lanes: 100, clock_mhz: 1000, fp32_gflops: 5999}\n"));
    const cd_device *a = cd_device_table_at(f.l, 0), *b = cd_device_table_at(f.l, 1),
                    *c = cd_device_table_at(f.l, 2);
    assert_true(a->peak_computed && !b->peak_computed && !c->peak_computed);
    assert_close(a->fp32_gflops, 2000, 1e-12, 0);
    assert_true(b->fp32_gflops < 0);
    assert_close(c->fp32_gflops, 5999, 1e-12, 0);
    stop(&f);
}

/* The descriptor: what is known as a logarithm, what is not as a flag; 0 is not known. The data
 * sheet's vector is as it was. */
TEST(a_descriptor) {
    fixture f;
    cdmpp_err err = {0};
    float both[CD_N_DEVICE_WIDEST], own[CD_N_DEVICE_WIDEST], sheet[CD_N_DEVICE_COL];
    assert_ok(read_text(&f, "- {name: a, kind: cpu, clock_mhz: 1590, probe_memory: 100, "
                            "rank_dense_small: 0.1, count_l2_cycles: 0}\n"));
    const cd_device *d = cd_device_table_at(f.l, 0);
    assert_int_equal(cd_device_probe_count(d), 2);
    assert_string_equal(cd_device_probe_name(CD_DEVICE_PROBE_probe_memory), "probe_memory");
    assert_int_equal(cd_device_features_width(CD_DEVICE_SHEET), CD_N_DEVICE_COL);
    assert_int_equal(cd_device_features_width(CD_DEVICE_DESCRIPTOR), 2 * CD_N_DEVICE_PROBE);
    assert_int_equal(cd_device_features_width(CD_DEVICE_BOTH), CD_N_DEVICE_WIDEST);
    cd_device_features_fill(CD_DEVICE_DESCRIPTOR, d, own);
    for (int i = 0; i < CD_N_DEVICE_PROBE; i++) {
        const bool known =
            i == CD_DEVICE_PROBE_probe_memory || i == CD_DEVICE_PROBE_rank_dense_small;
        assert_close((double)own[i],
                     i == CD_DEVICE_PROBE_probe_memory ? 1
                     : known                           ? -1
                                                       : 0,
                     1e-6, 0);
        assert_true(own[CD_N_DEVICE_PROBE + i] == (known ? 0 : 1));
    }
    cd_device_vector(d, sheet);
    cd_device_features_fill(CD_DEVICE_BOTH, d, both);
    assert_memory_equal(both, sheet, sizeof sheet);
    assert_memory_equal(both + CD_N_DEVICE_COL, own, 2 * CD_N_DEVICE_PROBE * sizeof *own);
    stop(&f);
    assert_int_equal(read_text(&f, "- {name: a, kind: cpu, probe_memory: -1}\n"), CDMPP_ERANGE);
    stop(&f);
}

/* Mean squared difference, in decades, of the columns that both know. The kind is no part of it,
 * nor is what only one knows. */
TEST(distances) {
    static const struct {
        const char *a, *b;
        double want; /* below 0: infinity */
    } tab[] = {
        {"cores: 10, l1_kb: 64", "cores: 1000, l1_kb: 64", 4.0 / 2},
        {"cores: 10", "cores: 1000", 4},
        {"cores: 10", "cores: 10", 0},
        {"cores: 10", "clock_mhz: 100", -1},
        {"cores: 10, clock_mhz: 100", "cores: 100, l1_kb: 7", 1},
        {"l1_kb: 64, clock_mhz: 100", "cores: 8, l1_kb: 640, clock_mhz: 1000, process_nm: 7", 1},
        {"tdp_w: 100", "tdp_w: 200", -1},
        {"l1_kb: 1, clock_mhz: 1000, process_nm: 10", "l1_kb: 10, clock_mhz: 10, process_nm: 10",
         5.0 / 3}};
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++)
        for (int gpu = 0; gpu < 2; gpu++) {
            fixture f;
            char text[300];
            /* nothing behind the two that could pass for a column */
            float v[3][CD_N_DEVICE_COL] = {{0}};
            snprintf(text, sizeof text, "- {name: a, kind: cpu, %s}\n- {name: b, kind: %s, %s}\n",
                     tab[k].a, gpu ? "gpu" : "cpu", tab[k].b);
            assert_int_equal(read_text(&f, text), CDMPP_OK);
            assert_int_equal(cd_device_table_vector(f.l, "a", v[0], &f.err), CDMPP_OK);
            assert_int_equal(cd_device_table_vector(f.l, "b", v[1], &f.err), CDMPP_OK);
            for (int turned = 0; turned < 2; turned++) {
                const double d = cd_device_distance(v[turned], v[!turned]);
                if (tab[k].want < 0) assert_true(isinf(d));
                else assert_close(d, tab[k].want, 1e-5, 1e-12);
            }
            stop(&f);
        }
}

/* The farther GPU of the same lockstep width stands before a near one of another width; processors
 * have no such width. */
TEST(lockstep_comes_before_distance) {
    fixture f;
    float v[5][CD_N_DEVICE_COL];
    assert_int_equal(
        read_text(&f, "- {name: a, kind: gpu, cores: 10, warp: 32}\n- {name: b, kind: gpu, cores: "
                      "100, warp: 32}\n- {name: c, kind: gpu, cores: 10, warp: 64}\n"
                      "- {name: d, kind: gpu, cores: 10}\n- {name: e, kind: cpu, cores: 10, "
                      "simd_bits: 512}\n"),
        CDMPP_OK);
    for (size_t k = 0; k < 5; k++)
        assert_int_equal(
            cd_device_table_vector(f.l, (const char[]){(char)('a' + k), 0}, v[k], &f.err),
            CDMPP_OK);
    assert_true(cd_device_distance(v[0], v[2]) < cd_device_distance(v[0], v[1]));
    assert_true(cd_device_unlike(v[0], v[1]) < cd_device_unlike(v[0], v[2]) &&
                isfinite(cd_device_unlike(v[0], v[2])));
    assert_true(!cd_device_same_width(v[0], v[2]) && !cd_device_same_width(v[2], v[0]) &&
                cd_device_same_width(v[0], v[1]));
    /* not known; no GPU */
    assert_true(cd_device_same_width(v[0], v[3]) && cd_device_same_width(v[2], v[3]) &&
                cd_device_same_width(v[2], v[4]));
    assert_close(cd_device_unlike(v[0], v[1]), cd_device_distance(v[0], v[1]), 1e-12, 0);
    stop(&f);
}

/* By the list where it has both, else by letters and digits alone. */
TEST(names_of_one_device) {
    static const struct {
        const char *a, *b;
        bool listed, spelt; /* with the list; without */
    } tab[] = {{"one-gpu", "One GPU", true, true},  {"one-gpu", "uno", true, false},
               {"uno", "UNO", true, true},          {"one-gpu", "two", false, false},
               {"uno", "two", false, false},        {"nobody", "No-Body", true, true},
               {"nobody", "one-gpu", false, false}, {"uno", "u.n.o", true, true},
               {"nobody", "somebody", false, false}};
    fixture f;
    assert_int_equal(read_text(&f, "- {name: one-gpu, aliases: [uno], kind: gpu, cores: 1}\n- "
                                   "{name: two, kind: gpu, cores: 1}\n"),
                     CDMPP_OK);
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++)
        for (int turned = 0; turned < 2; turned++) {
            const char *a = turned ? tab[k].b : tab[k].a, *b = turned ? tab[k].a : tab[k].b;
            if (cd_device_table_same(f.l, a, b) != tab[k].listed ||
                cd_device_table_same(NULL, a, b) != tab[k].spelt)
                fail_msg("%s, %s", a, b);
        }
    stop(&f);
}

/* An alias may be the name in another spelling. Of one device there is none that is near. */
TEST(one_device_alone) {
    fixture f;
    const cd_device *d;
    cdmpp_err err = {0};
    assert_int_equal(
        read_text(&f,
                  "- {name: half9000, aliases: [Half 9000, HALF-9000, h9], kind: gpu, cores: 1}\n"),
        CDMPP_OK);
    assert_int_equal(cd_device_table_find(f.l, "H9", &d, &err), CDMPP_OK);
    assert_string_equal(d->name, "half9000");
    assert_int_equal(cd_device_table_find(f.l, "h100", &d, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.msg, "no device 'h100'; the only one that is described is 'half9000'");
    stop(&f);
}

/* Of a processor: its L3, where it has one, however small; else the L2 of its cores. Of others the
 * L2. */
TEST(the_last_cache) {
    static const struct {
        const char *text;
        double kb; /* 0: unknown */
    } tab[] = {{"- {name: a, kind: cpu, cores: 4, l2_kb: 512, l3_kb: 8192}\n", 8192},
               {"- {name: a, kind: cpu, cores: 4, l2_kb: 512, l3_kb: 1}\n", 1},
               {"- {name: a, kind: cpu, cores: 4, l2_kb: 512, l3_kb: 0}\n", 2048},
               {"- {name: a, kind: cpu, cores: 4, l3_kb: 0}\n", 0},
               {"- {name: a, kind: cpu, l2_kb: 512, l3_kb: 0}\n", 0},
               {"- {name: a, kind: gpu, cores: 4, l2_kb: 512, l3_kb: 0}\n", 512}};
    for (size_t i = 0; i < sizeof tab / sizeof *tab; i++) {
        fixture f;
        float v[CD_N_DEVICE_COL];
        cdmpp_err err = {0};
        assert_ok(read_text(&f, tab[i].text));
        cd_device_vector(cd_device_table_at(f.l, 0), v);
        const float *ratio = v + CD_N_DEVICE_KIND, *flag = ratio + CD_N_DEVICE_RATIO;
        assert_true(flag[CD_DEVICE_COL_last_cache] == (tab[i].kb > 0 ? 0 : 1));
        assert_close((double)ratio[CD_DEVICE_COL_last_cache],
                     tab[i].kb > 0 ? log10(tab[i].kb / 4096) : 0, 1e-6, 0);
        stop(&f);
    }
}

TEST(mistakes_have_a_place) {
    static const struct {
        const char *text;
        cdmpp_status st;
        const char *say;
    } bad[] = {
        {"- name: a\n  kind: gpu\n  clok_mhz: 5\n", CDMPP_ESCHEMA,
         "d.yaml:3:3: error: unknown key 'clok_mhz', did you mean 'clock_mhz'?\n"},
        {"- name: a\n  kind: gpu\n  clock_mhz: -5\n", CDMPP_ERANGE,
         "d.yaml:3:14: error: clock_mhz: expected a number in 1..100000 (MHz), found '-5'\n"},
        {"- {name: a, kind: gpu, bandwidth_gb_s: 0}\n", CDMPP_ERANGE,
         "d.yaml:1:40: error: bandwidth_gb_s: expected a number in 0.001..1e+06 (GB/s), found "
         "'0'\n"},
        {"- name: a\n  kind: gpu\n  cores: '5'\n", CDMPP_ESCHEMA,
         "d.yaml:3:10: error: cores: expected a number or null, found text '5'\n"},
        {"- name: a\n  kind: gpu\n  cores: .nan\n  warp: 1e999\n", CDMPP_ESCHEMA,
         "d.yaml:3:10: error: cores: expected a number or null, found '.nan'\n"
         "d.yaml:4:9: error: warp: expected a number or null, found '1e999'\n"},
        {"- {name: a, kind: tpu}\n", CDMPP_ESCHEMA,
         "d.yaml:1:19: error: kind: expected one of cpu|gpu|npu, found 'tpu'\n"},
        {"- {name: a, kind: gpu}\n- {name: b, aliases: [x, A], kind: gpu}\n", CDMPP_ESCHEMA,
         "d.yaml:2:26: error: 'A' is already a name of a, line 1\n"},
        {"- {kind: gpu}\n- {name: b}\n", CDMPP_ESCHEMA,
         "d.yaml:1:3: error: name: expected the name of the device, found nothing\n"
         "d.yaml:2:3: error: kind: expected one of cpu|gpu|npu, found nothing\n"},
        {"- {name: a, kind: gpu, cores: 4, cores_used: 5}\n", CDMPP_ERANGE,
         "d.yaml:1:46: error: cores_used: expected at most cores, 4, found 5\n"},
        /* TFLOP/s */
        {"- {name: a, kind: gpu, cores: 10, lanes: 100, clock_mhz: 1000, fp32_gflops: 2}\n",
         CDMPP_ERANGE,
         "d.yaml:1:77: error: fp32_gflops: 2 * cores * lanes * clock_mhz / 1000 is 2000 GFLOP/s, "
         "found 2: one of the four is wrong\n"},
        /* GHz */
        {"- {name: a, kind: gpu, cores: 10, lanes: 100, clock_mhz: 1, fp32_gflops: 2000}\n",
         CDMPP_ERANGE,
         "d.yaml:1:74: error: fp32_gflops: 2 * cores * lanes * clock_mhz / 1000 is 2 GFLOP/s, "
         "found 2000: one of the four is wrong\n"},
        /* GFLOP/s */
        {"- {name: a, kind: gpu, fp32_gflops: 2000, tensor_tflops: 8000}\n", CDMPP_ERANGE,
         "d.yaml:1:58: error: tensor_tflops: expected at most 100 times fp32_gflops, 2000 GFLOP/s, "
         "found 8e+06\n"},
        {"- {name: a, kind: gpu, fp32_gflops: 2000, fp16_tflops: 25, bf16_tflops: 201}\n",
         CDMPP_ERANGE,
         "d.yaml:1:56: error: fp16_tflops: expected at most 12 times fp32_gflops, 2000 GFLOP/s, "
         "found 2.5e+04\n"
         "d.yaml:1:73: error: bf16_tflops: expected at most 100 times fp32_gflops, 2000 GFLOP/s, "
         "found 2.01e+05\n"},
        {"- {name: a, kind: cpu, fp32_gflops: 200, fp64_gflops: 1300, fp32_matrix_gflops: 20001}\n",
         CDMPP_ERANGE,
         "d.yaml:1:81: error: fp32_matrix_gflops: expected at most 100 times fp32_gflops, 200 "
         "GFLOP/s, found 2e+04\n"
         "d.yaml:1:55: error: fp64_gflops: expected at most 6 times fp32_gflops, 200 GFLOP/s, "
         "found 1300\n"},
        {"t4: {kind: gpu}\n", CDMPP_ESCHEMA,
         "d.yaml:1:1: error: expected a list of 1 to 4096 devices, found a mapping\n"},
        {"", CDMPP_ESCHEMA, "d.yaml: error: expected a list of 1 to 4096 devices, found nothing\n"},
        {"- {name: '--', kind: gpu}\n", CDMPP_ESCHEMA,
         "d.yaml:1:10: error: name: expected a name, found text '--'\n"},
        {"- a\n", CDMPP_ESCHEMA, "d.yaml:1:3: error: expected the keys of a device, found 'a'\n"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fixture f;
        cdmpp_err err = {0};
        assert_status(read_text(&f, bad[i].text), bad[i].st);
        assert_string_equal(f.diag.text.p, bad[i].say);
        assert_true(f.err.code == bad[i].st && !strcmp(f.err.path, "d.yaml"));
        stop(&f);
    }
}

TEST(any_allocation_may_fail) {
    char *text;
    size_t n;
    cdmpp_err err = {0};
    assert_ok(cd_file_read("configs/devices.yaml", 0, &text, &n, &err));
    FAULT_SWEEP(w, 1) {
        fixture f = {0};
        w.st = cd_device_table_read("d.yaml", text, n, &f.diag, &f.l, &f.err);
        stop(&f);
    }
    cd_mem_free(text);
}

TEST(the_file_is_found) {
    tmp_dir t = tmp_make();
    cd_arena a = {0};
    const char *p;
    cdmpp_err err = {0};
    const char *config = tmp_put(&t, "train.yaml", "", 0), *own = tmp_put(&t, "own.yaml", "", 0);
    assert_ok(cd_device_table_path(&a, "", config, &p, &err));
    assert_string_equal(p, "configs/devices.yaml"); /* of the working directory */
    assert_ok(cd_device_table_path(&a, "own.yaml", config, &p, &err));
    assert_string_equal(p, own);
    const char *beside = tmp_put(&t, CD_DEVICE_FILE, "", 0);
    assert_ok(cd_device_table_path(&a, "", config, &p, &err));
    assert_string_equal(p, beside);
    assert_status(cd_device_table_path(&a, "nothing.yaml", config, &p, &err), CDMPP_EIO);
    assert_string_equal(err.key, "device.file");
    cd_arena_free(&a);
    tmp_remove(&t);
}

TESTS(up, down, all_devices_are_there, vectors_are_finite_and_moderate, peaks_agree,
      bandwidth_is_bus_times_rate, matrix_units_are_a_power_of_two, sizes_are_in_order,
      machines_keep_their_names, t4_is_the_reference, cores_in_use_count,
      unknown_values_are_flagged, unknown_device_names_what_is_spelt_alike, manual,
      a_device_of_two_keys, a_peak_is_computed, a_descriptor, distances,
      lockstep_comes_before_distance, names_of_one_device, one_device_alone, the_last_cache,
      mistakes_have_a_place, any_allocation_may_fail, the_file_is_found)
