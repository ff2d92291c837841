/* Describes this machine's processor. hwloc gives cores and caches, /proc and /sys the rest; what
 * they lack is measured only on request, since that takes a second and a quiet machine. */
#include <hwloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/describe/describe.h"
#include "profiler/host/host.h"

/* Measures one core and the memory.
 *
 * The clock: additions that wait for each other take one cycle each on every processor of today.
 * The peak: as many multiply-adds as hide each other's latency. Both in turn, the smallest time of
 * each: another process on the core makes a run longer, never shorter. */

#if defined(__x86_64__)
#include <immintrin.h>
#define HAS_LOOPS 1
#elif defined(__aarch64__)
#include <arm_neon.h>
#define HAS_LOOPS 1
#else
#define HAS_LOOPS 0
#endif

enum { ROUNDS = 25, TRIAD_ROUNDS = 6 };

#if HAS_LOOPS
enum { CHAIN = 100000, ADDS = 16, BLOCK = 20000 };

static uint64_t chain(void) {
    uint64_t a = 1, b = 3;
    for (int i = 0; i < CHAIN; i++)
#if defined(__x86_64__)
        __asm__ volatile(".rept 16\n\tadd %1, %0\n\t.endr" : "+r"(a) : "r"(b));
#else
        __asm__ volatile(".rept 16\n\tadd %0, %0, %1\n\t.endr" : "+r"(a) : "r"(b));
#endif
    return a;
}

/* One loop for each width: ten accumulators, which is what hides 5 cycles of two units; returns the
 * numbers that one call multiplies and adds. The barrier keeps the accumulators in registers. */
#define KEEP(x) __asm__ volatile("" : "+x"(x))
#define TEN(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9)
#endif

#if defined(__x86_64__)
#define STEP512(k) a[k] = _mm512_fmadd_ps(a[k], x, y);
__attribute__((target("avx512f"))) static double fma_512(void) {
    __m512 a[10], x = _mm512_set1_ps(0.5F), y = _mm512_set1_ps(1.0F);
    for (int k = 0; k < 10; k++) a[k] = _mm512_set1_ps((float)k);
    for (int i = 0; i < BLOCK; i++) {
        TEN(STEP512)
        __asm__ volatile(""
                         : "+v"(a[0]), "+v"(a[1]), "+v"(a[2]), "+v"(a[3]), "+v"(a[4]), "+v"(a[5]),
                           "+v"(a[6]), "+v"(a[7]), "+v"(a[8]), "+v"(a[9]));
    }
    return 16.0 * 10 * BLOCK;
}
#define STEP256(k) a[k] = _mm256_fmadd_ps(a[k], x, y);
__attribute__((target("avx2,fma"))) static double fma_256(void) {
    __m256 a[10], x = _mm256_set1_ps(0.5F), y = _mm256_set1_ps(1.0F);
    for (int k = 0; k < 10; k++) a[k] = _mm256_set1_ps((float)k);
    for (int i = 0; i < BLOCK; i++) {
        TEN(STEP256)
        __asm__ volatile(""
                         : "+x"(a[0]), "+x"(a[1]), "+x"(a[2]), "+x"(a[3]), "+x"(a[4]), "+x"(a[5]),
                           "+x"(a[6]), "+x"(a[7]), "+x"(a[8]), "+x"(a[9]));
    }
    return 8.0 * 10 * BLOCK;
}

typedef double loop(void);
static loop *loop_for(int bits) {
    if (bits >= 512 && __builtin_cpu_supports("avx512f")) return fma_512;
    if (bits >= 256 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return fma_256;
    return NULL; /* no multiply-add before */
}
#elif defined(__aarch64__)
#define STEP128(k) a[k] = vfmaq_f32(y, a[k], x);
static double fma_128(void) {
    float32x4_t a[10], x = vdupq_n_f32(0.5F), y = vdupq_n_f32(1.0F);
    for (int k = 0; k < 10; k++) a[k] = vdupq_n_f32((float)k);
    for (int i = 0; i < BLOCK; i++) {
        TEN(STEP128)
        __asm__ volatile(""
                         : "+w"(a[0]), "+w"(a[1]), "+w"(a[2]), "+w"(a[3]), "+w"(a[4]), "+w"(a[5]),
                           "+w"(a[6]), "+w"(a[7]), "+w"(a[8]), "+w"(a[9]));
    }
    return 4.0 * 10 * BLOCK;
}
typedef double loop(void);
static loop *loop_for(int bits) { return bits == 128 ? fma_128 : NULL; }
#endif

double cd_describe_fma(int simd_bits) {
#if HAS_LOOPS
    loop *f = loop_for(simd_bits);
    return f ? f() : 0;
#else
    (void)simd_bits;
    return 0;
#endif
}

/* The two loops alternate, so that a change of frequency hits both; the ratio is per clock in any
 * case. */
void cd_describe_core_speed(int simd_bits, double *fma_per_clock, double *clock_mhz,
                            cd_noise *noise) {
    *fma_per_clock = *clock_mhz = -1;
#if HAS_LOOPS
    loop *f = loop_for(simd_bits);
    double chain_s[ROUNDS], fma_s[ROUNDS], work = 0;
    if (!f) return;
    for (int i = 0; i < ROUNDS; i++) {
        const double t0 = cd_clock_wall();
        (void)chain();
        const double t1 = cd_clock_wall();
        work = f();
        const double t2 = cd_clock_wall();
        chain_s[i] = t1 - t0;
        fma_s[i] = t2 - t1;
    }
    cd_sort_doubles(chain_s, ROUNDS);
    cd_sort_doubles(fma_s, ROUNDS);
    cd_noise_repeats(noise, "clock_mhz", chain_s, ROUNDS);
    cd_noise_repeats(noise, "lanes", fma_s, ROUNDS);
    *clock_mhz = 1e-6 * CHAIN * ADDS / chain_s[0];
    *fma_per_clock = work / fma_s[0] / (1e6 * *clock_mhz);
#else
    (void)simd_bits;
    (void)noise;
#endif
}

/* ---- memory ---- */
typedef struct arrays {
    double *a, *b, *c;
    int step;
} arrays;

static cdmpp_status part(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const arrays *x = ctx;
    (void)w, (void)err;
    if (x->step == 0) {
        /* pages where their thread is */
        for (size_t i = beg; i < end; i++) x->a[i] = 0, x->b[i] = 1, x->c[i] = 2;
    } else {
        for (size_t i = beg; i < end; i++) x->a[i] = x->b[i] + 3 * x->c[i];
    }
    return CDMPP_OK;
}

static cdmpp_status triad(cd_threads *t, arrays *x, size_t n, int threads,
                          double seconds[TRIAD_ROUNDS], cdmpp_err *err) {
    const size_t chunk = (n + (size_t)threads - 1) / (size_t)threads;
    for (x->step = 0; x->step <= TRIAD_ROUNDS; x->step++) {
        const double t0 = cd_clock_wall();
        CD_TRY(cd_threads_run(t, n, chunk, part, x, err));
        if (x->step) seconds[x->step - 1] = cd_clock_wall() - t0;
    }
    cd_sort_doubles(seconds, TRIAD_ROUNDS);
    return CDMPP_OK;
}

cdmpp_status cd_describe_triad(size_t bytes, int threads, double *gb_s, cd_noise *noise,
                               cdmpp_err *err) {
    const size_t n = bytes / sizeof(double);
    double seconds[TRIAD_ROUNDS];
    cd_threads *t = NULL;
    if (threads < 1) threads = 1;
    arrays x = {cd_mem_alloc(bytes), cd_mem_alloc(bytes), cd_mem_alloc(bytes), 0};
    cdmpp_status st =
        x.a && x.b && x.c ? CDMPP_OK : CD_FAIL(err, ENOMEM, "arrays of %zu MB", bytes >> 20);
    if (!st) st = cd_threads_new(threads, &t, err);
    if (!st) st = triad(t, &x, n, threads, seconds, err);
    if (!st) {
        *gb_s = 1e-9 * 3 * sizeof(double) * (double)n / seconds[0];
        cd_noise_repeats(noise, "bandwidth_gb_s", seconds, TRIAD_ROUNDS);
    }
    cd_threads_free(t);
    cd_mem_free(x.a);
    cd_mem_free(x.b);
    cd_mem_free(x.c);
    return st;
}

enum { TEXT = 1 << 16, KIB = 1024 };
#define TRIAD_MIN ((size_t)64 << 20)
#define TRIAD_MAX ((size_t)512 << 20)

typedef struct machine {
    const char *root;
    char cpuinfo[TEXT];
    cd_describe_entry *d;
    const char *core; /* only cores of this type, on which this thread is; NULL: any */
    int first;        /* a processor of them */
    /* of the first package; processors that we may use on the whole machine */
    int packages, cores, usable;
    bool here; /* it is this machine: it can be measured */
    uint64_t last_cache, memory;
} machine;

/* All of an open file, which is closed; "" when there is none. */
static void take_text(FILE *f, char *out, size_t n) {
    const size_t got = f ? fread(out, 1, n - 1, f) : 0;
    out[got] = 0;
    if (f) fclose(f);
}

static void read_text(const char *root, const char *path, char *out, size_t n) {
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    take_text(fopen(full, "rb"), out, n);
}

static double read_number(const char *root, const char *path) {
    char text[64], *end;
    read_text(root, path, text, sizeof text);
    const double x = strtod(text, &end);
    return end > text ? x : -1;
}

/* ---- /proc/cpuinfo ---- */

/* Value of the first line "key : value"; "" when there is none. */
static void field(const machine *m, const char *key, char *out, size_t n) {
    const size_t len = strlen(key);
    out[0] = 0;
    for (const char *line = m->cpuinfo; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *at = line + len;
        if (strncmp(line, key, len) != 0) continue;
        at += strspn(at, " \t");
        if (*at != ':') continue;
        at += 1 + strspn(at + 1, " \t");
        snprintf(out, n, "%.*s", (int)strcspn(at, "\n"), at);
        return;
    }
}

static bool has_flag(const machine *m, const char *word) {
    return cd_cpuinfo_has(m->cpuinfo, word);
}

static void set_isa(machine *m) {
    cd_describe_entry *d = m->d;
    const bool arm = has_flag(m, "asimd"), x86 = has_flag(m, "sse");
    if (has_flag(m, "avx512f")) cd_describe_entry_set(d, CD_DESCRIBE_KEY_simd_bits, 512, "AVX-512");
    else if (has_flag(m, "avx"))
        cd_describe_entry_set(d, CD_DESCRIBE_KEY_simd_bits, 256,
                              has_flag(m, "avx2") ? "AVX2" : "AVX");
    else if (x86) cd_describe_entry_set(d, CD_DESCRIBE_KEY_simd_bits, 128, "SSE");
    else if (has_flag(m, "sve"))
        snprintf(d->note[CD_DESCRIBE_KEY_simd_bits], sizeof d->note[0], "SVE");
    else if (arm) cd_describe_entry_set(d, CD_DESCRIBE_KEY_simd_bits, 128, "NEON");
    if (!x86 && !arm) return; /* nothing is known of other units */
    if (!has_flag(m, "sme")) cd_describe_entry_set(d, CD_DESCRIBE_KEY_fp32_matrix_gflops, 0, NULL);
    if (!has_flag(m, "avx512_fp16") && !has_flag(m, "asimdhp"))
        cd_describe_entry_set(d, CD_DESCRIBE_KEY_fp16_tflops, 0, NULL);
    if (!has_flag(m, "amx_fp16") && !has_flag(m, "amx_bf16") && !has_flag(m, "sme"))
        cd_describe_entry_set(d, CD_DESCRIBE_KEY_tensor_tflops, 0, NULL);
    cd_describe_entry_set(d, CD_DESCRIBE_KEY_warp, 1, NULL);
    cd_describe_entry_set(d, CD_DESCRIBE_KEY_shared_kb, 0, NULL);
}

static const char of_counter[] = "of the time-stamp counter";

/* The base clock, by whoever knows it best. */
static void set_clock(machine *m) {
    char text[256], path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/base_frequency", m->first);
    const double base = read_number(m->root, path);
    if (base > 0) {
        cd_describe_entry_set(m->d, CD_DESCRIBE_KEY_clock_mhz, base / 1000, NULL);
        return;
    }
    field(m, "model name", text, sizeof text);
    const char *at = strchr(text, '@');
    const double ghz = at ? strtod(at + 1, NULL) : 0;
    if (ghz > 0 && strstr(at, "GHz")) {
        cd_describe_entry_set(m->d, CD_DESCRIBE_KEY_clock_mhz, round(1000 * ghz), NULL);
        return;
    }
    field(m, "bogomips", text, sizeof text);
    const double bogo = strtod(text, NULL);
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq", m->first);
    const double most = read_number(m->root, path);
    if (bogo > 0 && has_flag(m, "constant_tsc"))
        cd_describe_entry_set(m->d, CD_DESCRIBE_KEY_clock_mhz, round(bogo / 2), of_counter);
    else if (most > 0 && !has_flag(m, "constant_tsc"))
        cd_describe_entry_set(m->d, CD_DESCRIBE_KEY_clock_mhz, most / 1000, "highest");
}

static void add_core(machine *m) {
    const size_t at = strlen(m->d->name);
    if (m->core) snprintf(m->d->name + at, sizeof m->d->name - at, "-%s", m->core);
    if (m->core) m->d->alias[0] = 0; /* that is the processor's */
}

static void set_name(machine *m) {
    static const char *const key[] = {"model name", "Processor", "Hardware", "cpu model", "cpu"};
    char text[256] = "";
    for (size_t i = 0; i < sizeof key / sizeof *key && !text[0]; i++)
        field(m, key[i], text, sizeof text);
    if (!text[0]) read_text(m->root, "/proc/device-tree/model", text, sizeof text);
    if (text[0]) cd_describe_entry_set_name(m->d, text);
    add_core(m);
}

static void set_power(machine *m) {
    const double uw =
        read_number(m->root, "/sys/class/powercap/intel-rapl:0/constraint_0_max_power_uw");
    if (uw > 0) cd_describe_entry_set(m->d, CD_DESCRIBE_KEY_tdp_w, round(uw * 1e-6), "by RAPL");
}

/* ---- hwloc ---- */

/* Size of the first data or unified cache of a level, or of that of our core, and how many cores
 * share it. */
static uint64_t cache_of(const machine *m, hwloc_topology_t t, hwloc_obj_type_t type,
                         unsigned *sharing) {
    const hwloc_obj_t pu = m->core ? hwloc_get_pu_obj_by_os_index(t, (unsigned)m->first) : NULL;
    const hwloc_obj_t c =
        pu ? hwloc_get_ancestor_obj_by_type(t, type, pu) : hwloc_get_obj_by_type(t, type, 0);
    if (!c || !c->attr) return 0;
    const int n = hwloc_get_nbobjs_inside_cpuset_by_type(t, c->cpuset, HWLOC_OBJ_CORE);
    *sharing = n > 0 ? (unsigned)n : 1;
    return c->attr->cache.size;
}

/* l1 and l2: what one core has; a cache that several cores share is divided among them. l3: all of
 * the package. */
static void set_caches(machine *m, hwloc_topology_t t, hwloc_const_cpuset_t package) {
    unsigned sharing = 1;
    const uint64_t l1 = cache_of(m, t, HWLOC_OBJ_L1CACHE, &sharing),
                   l2 = cache_of(m, t, HWLOC_OBJ_L2CACHE, &sharing);
    char note[64] = "";
    uint64_t l3 = 0;
    const int n = hwloc_get_nbobjs_inside_cpuset_by_type(t, package, HWLOC_OBJ_L3CACHE);
    for (int i = 0; i < n; i++) {
        const hwloc_obj_t c =
            hwloc_get_obj_inside_cpuset_by_type(t, package, HWLOC_OBJ_L3CACHE, (unsigned)i);
        if (c && c->attr) l3 += c->attr->cache.size;
    }
    if (sharing > 1)
        snprintf(note, sizeof note, "of %.0f KB that %u cores share", (double)l2 / KIB, sharing);
    if (l1) cd_describe_entry_set(m->d, CD_DESCRIBE_KEY_l1_kb, (double)l1 / KIB, NULL);
    if (l2) cd_describe_entry_set(m->d, CD_DESCRIBE_KEY_l2_kb, (double)l2 / KIB / sharing, note);
    snprintf(note, sizeof note, "in %d parts", n);
    if (l3 || l2)
        cd_describe_entry_set(m->d, CD_DESCRIBE_KEY_l3_kb, (double)l3 / KIB, n > 1 ? note : NULL);
    m->last_cache = l3 ? l3 : l2;
}

static void set_cores(machine *m, hwloc_topology_t t, hwloc_const_cpuset_t package) {
    const hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(t);
    int used = 0;
    m->cores = hwloc_get_nbobjs_inside_cpuset_by_type(t, package, HWLOC_OBJ_CORE);
    for (int i = 0; i < m->cores; i++) {
        const hwloc_obj_t c =
            hwloc_get_obj_inside_cpuset_by_type(t, package, HWLOC_OBJ_CORE, (unsigned)i);
        used += c && hwloc_bitmap_intersects(c->cpuset, allowed);
    }
    m->usable = hwloc_bitmap_weight(allowed);
    cd_describe_entry_set(m->d, CD_DESCRIBE_KEY_cores, m->cores, NULL);
    if (used > 0 && used < m->cores)
        cd_describe_entry_set(m->d, CD_DESCRIBE_KEY_cores_used, used, "that this process may use");
}

/* The cores that this thread was put on, in place of all. */
static void set_cores_of_type(machine *m, hwloc_topology_t t) {
    const hwloc_cpuset_t mine = hwloc_bitmap_alloc();
    int n = 0;
    if (!mine || hwloc_get_cpubind(t, mine, HWLOC_CPUBIND_THREAD)) {
        hwloc_bitmap_free(mine);
        return;
    }
    m->first = hwloc_bitmap_first(mine);
    m->usable = hwloc_bitmap_weight(mine);
    for (hwloc_obj_t c = NULL; (c = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_CORE, c));)
        n += hwloc_bitmap_intersects(c->cpuset, mine);
    hwloc_bitmap_free(mine);
    m->cores = n;
    cd_describe_entry_set(m->d, CD_DESCRIBE_KEY_cores, n, "of this type");
    m->d->device.cores_used = -1;
    m->d->note[CD_DESCRIBE_KEY_cores_used][0] = 0;
}

static void set_memory(machine *m, hwloc_topology_t t) {
    char text[512];
    m->memory = hwloc_get_root_obj(t)->total_memory;
    read_text(m->root, "/proc/meminfo", text, sizeof text);
    const char *at = strstr(text, "MemTotal:");
    const double kb = m->here && at ? strtod(at + 9, NULL) : 0;
    /* memory added later is in no node of some machines */
    if (kb * KIB > (double)m->memory) m->memory = (uint64_t)(kb * KIB);
    if (m->memory)
        cd_describe_entry_set(m->d, CD_DESCRIBE_KEY_mem_gb,
                              round(10 * (double)m->memory / (1 << 30) / m->packages) / 10,
                              "installed, for each socket");
}

/* hwloc obeys HWLOC_XMLFILE and HWLOC_SYNTHETIC: the topology may be another machine's, which
 * cannot be measured. */
static cdmpp_status read_topology(machine *m, cdmpp_err *err) {
    hwloc_topology_t t;
    if (hwloc_topology_init(&t)) return CD_FAIL(err, ENOMEM, "topology");
    hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (hwloc_topology_load(t)) {
        hwloc_topology_destroy(t);
        return CD_FAIL(err, EBACKEND, "hwloc cannot tell this machine's topology%s",
                       getenv("HWLOC_XMLFILE") ? " from $HWLOC_XMLFILE" : "");
    }
    const int n = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PACKAGE);
    const hwloc_obj_t package =
        n > 0 ? hwloc_get_obj_by_type(t, HWLOC_OBJ_PACKAGE, 0) : hwloc_get_root_obj(t);
    m->packages = n > 0 ? n : 1;
    m->here = hwloc_topology_is_thissystem(t) && !m->root[0];
    set_cores(m, t, package->cpuset);
    if (m->core) set_cores_of_type(m, t);
    set_caches(m, t, package->cpuset);
    set_memory(m, t);
    hwloc_topology_destroy(t);
    return CDMPP_OK;
}

/* ---- measured ---- */
/* Of what a clock of the scalar loop can do at best: the clock is lower while long vectors are
 * computed, and never higher. */
static const double lanes_from = 0.8, lanes_to = 1.1;

/* The counter of a virtual machine runs at the clock that the host was sold with; programs run at
 * that of the core. */
static bool by_counter(const cd_describe_entry *d) {
    return !strcmp(d->note[CD_DESCRIBE_KEY_clock_mhz], of_counter);
}

static void set_lanes(cd_describe_entry *d, cd_noise *noise) {
    static const double usual[] = {1, 2, 4, 8, 16, 32, 64};
    double per_clock, mhz;
    char note[96];
    cd_describe_core_speed((int)d->device.simd_bits, &per_clock, &mhz, noise);
    if (per_clock < 0) {
        snprintf(d->note[CD_DESCRIBE_KEY_lanes], sizeof d->note[0],
                 "no loop for this kind of processor");
        return;
    }
    snprintf(note, sizeof note, "measured %.2f at %.0f MHz", per_clock, mhz);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (per_clock > usual[i] * lanes_from && per_clock < usual[i] * lanes_to)
            cd_describe_entry_set(d, CD_DESCRIBE_KEY_lanes, usual[i], note);
    if (d->device.lanes < 0)
        snprintf(d->note[CD_DESCRIBE_KEY_lanes], sizeof d->note[0],
                 "measured %.2f at %.0f MHz, near no power of 2", per_clock, mhz);
    if (by_counter(d))
        cd_describe_entry_set(d, CD_DESCRIBE_KEY_clock_mhz, round(mhz),
                              "measured; the time-stamp counter has another one");
}

static cdmpp_status measure_it(machine *m, cdmpp_err *err) {
    double gb_s;
    char note[96];
    if (!m->here)
        return CD_FAIL(err, EBACKEND, "only the machine that this runs on can be measured");
    m->d->measured = true;
    cd_noise_begin(&m->d->noise);
    set_lanes(m->d, &m->d->noise);
    size_t bytes = 4 * (size_t)m->last_cache;
    if (bytes < TRIAD_MIN) bytes = TRIAD_MIN;
    if (bytes > TRIAD_MAX) bytes = TRIAD_MAX;
    if (m->memory && bytes > m->memory / 16) bytes = m->memory / 16;
    /* tests alone, which measure a machine again and again and look at no figure */
    const char *mb = getenv("CDMPP_TEST_TRIAD_MB");
    if (mb && atoi(mb) > 0) bytes = (size_t)atoi(mb) << 20;
    CD_TRY(cd_describe_triad(bytes, m->usable, &gb_s, &m->d->noise, err));
    snprintf(note, sizeof note, "measured: triad of %d threads, %zu MB an array", m->usable,
             bytes >> 20);
    cd_describe_entry_set(m->d, CD_DESCRIBE_KEY_bandwidth_gb_s, round(10 * gb_s / m->packages) / 10,
                          note);
    CD_TRY(cd_describe_probes(m->d, err));
    cd_noise_end(&m->d->noise);
    return CDMPP_OK;
}

/* 2 * lanes * cores * clock, where all are known. */
static void set_peak(cd_describe_entry *d) {
    const cd_device *v = &d->device;
    if (v->lanes > 0 && v->cores > 0 && v->clock_mhz > 0)
        cd_describe_entry_set(d, CD_DESCRIBE_KEY_fp32_gflops,
                              2 * v->lanes * v->cores * v->clock_mhz / 1000, NULL);
}

/* The peak is set last: it follows from lanes and clock, which may be measured. */
cdmpp_status cd_describe_cores(const char *root, bool measure, const char *core,
                               cd_describe_entry *out, cdmpp_err *err) {
    machine *m = cd_mem_zalloc(1, sizeof *m);
    if (!m) return CD_FAIL(err, ENOMEM, "description");
    m->root = root;
    m->core = core;
    m->d = out;
    cd_describe_entry_init(out, CD_DEVICE_CPU);
    take_text(cd_cpuinfo_open(root), m->cpuinfo, sizeof m->cpuinfo);
    cdmpp_status st = read_topology(m, err);
    if (!st) {
        set_name(m);
        set_isa(m);
        set_clock(m);
        set_power(m);
        if (m->packages > 1)
            snprintf(out->head, sizeof out->head, "One of %d sockets.", m->packages);
        if (!measure) {
            snprintf(out->note[CD_DESCRIBE_KEY_lanes], sizeof out->note[0], "--measure finds out");
            snprintf(out->note[CD_DESCRIBE_KEY_bandwidth_gb_s], sizeof out->note[0],
                     "--measure finds out");
        }
    }
    if (!st && measure) st = measure_it(m, err);
    if (!st) set_peak(out);
    cd_mem_free(m);
    return st;
}

cdmpp_status cd_describe_cpu(const char *root, bool measure, cd_describe_entry *out,
                             cdmpp_err *err) {
    return cd_describe_cores(root, measure, NULL, out, err);
}

/* Numbers that do not depend on the vectors stay: caches and memory are probed without any. */
void cd_describe_narrow(cd_describe_entry *d, uint32_t vector_bytes) {
    const double bits = 8 * (double)vector_bytes;
    if (!(d->device.simd_bits > bits)) return;
    cd_describe_entry_set(d, CD_DESCRIBE_KEY_simd_bits, bits, NULL);
    if (!(d->device.lanes > 0)) return;
    d->device.lanes = d->device.fp32_gflops = CD_DEVICE_UNKNOWN;
    set_lanes(d, NULL);
    set_peak(d);
}
