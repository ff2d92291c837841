/* Targets made from descriptions: what records of such a device have. */
#include <string.h>

#include "predictor/estimate/estimate.h"
#include "profiler/host/host.h"

enum { AMD_WARP = 64 };

static void put_vectors(cd_buf *b, const cd_device *d) {
    if (d && d->simd_bits >= 512) cd_buf_puts(b, " -mcpu=skylake-avx512");
    else if (d && d->simd_bits >= 256) cd_buf_puts(b, " -mcpu=core-avx2");
}

static void put_cpu(cd_buf *b, const cd_device *d, int cores) {
    cd_buf_puts(b, "llvm -keys=cpu");
    put_vectors(b, d);
    if (cores) cd_buf_putf(b, " -num-cores=%d", cores);
}

const char *cd_usual_target_make(cd_arena *a, const char *name, const cd_device *d, bool gpu,
                                 int cores) {
    cd_buf b = {0};
    if (gpu && d && d->warp == AMD_WARP)
        cd_buf_puts(&b, "rocm -keys=rocm,gpu -max_num_threads=256 -thread_warp_size=64");
    else if (gpu) cd_buf_puts(&b, "cuda -keys=cuda,gpu -max_num_threads=1024 -thread_warp_size=32");
    else put_cpu(&b, d, cores);
    if (name) cd_buf_putf(&b, " -model=%s", name);
    const char *s = b.oom ? NULL : cd_str_dup(a, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    return s;
}

const char *cd_usual_target_here(cd_arena *a, const char *name, int cores) {
    const cd_device here = {.simd_bits = 8.0 * cd_isa_vector_bytes(NULL, "llvm")};
    const char *target = cd_usual_target_make(a, name, &here, false, cores);
    return target ? cd_isa_target_of(a, NULL, target) : NULL;
}

const char *cd_usual_target_vectors(cd_arena *a, const char *target, const cd_device *d) {
    const cd_str all = {target, strlen(target)};
    cd_buf b = {0};
    if (!d || d->kind != CD_DEVICE_CPU || cd_target_is_gpu(all) ||
        cd_target_option(target, "-mcpu").n || cd_target_option(target, "-mattr").n)
        return target;
    cd_buf_puts(&b, target);
    put_vectors(&b, d);
    const char *s = b.oom ? NULL : cd_str_dup(a, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    return s;
}
