/* Targets made from descriptions: what records of such a device have. */
#include "predictor/estimate/estimate.h"

enum { AMD_WARP = 64 };

static void put_cpu(cd_buf *b, const cd_device *d, int cores) {
    cd_buf_puts(b, "llvm -keys=cpu");
    if (d && d->simd_bits >= 512) cd_buf_puts(b, " -mcpu=skylake-avx512");
    else if (d && d->simd_bits >= 256) cd_buf_puts(b, " -mcpu=core-avx2");
    if (cores) cd_buf_putf(b, " -num-cores=%d", cores);
}

const char *cd_usual_target_make(cd_arena *a, const char *name, const cd_device *d, bool gpu, int cores) {
    cd_buf b = {0};
    if (gpu && d && d->warp == AMD_WARP) cd_buf_puts(&b, "rocm -keys=rocm,gpu -max_num_threads=256 -thread_warp_size=64");
    else if (gpu) cd_buf_puts(&b, "cuda -keys=cuda,gpu -max_num_threads=1024 -thread_warp_size=32");
    else put_cpu(&b, d, cores);
    if (name) cd_buf_putf(&b, " -model=%s", name);
    const char *s = b.oom ? NULL : cd_str_dup(a, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    return s;
}
