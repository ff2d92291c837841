/* Measures one core and the memory.
 *
 * The clock: additions that wait for each other take one cycle each on every processor of today.
 * The peak: as many multiply-adds as hide each other's latency. Both in turn, the smallest time of
 * each: another process on the core makes a run longer, never shorter. */
#include <math.h>

#include "profiler/describe/describe.h"

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
