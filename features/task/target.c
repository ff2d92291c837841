/* Everything that is read from a target string. TVM's own parser is not needed: three questions are asked of these strings,
 * and each is answered by words of the text. */
#include "features/task/task.h"

#include <string.h>

bool cd_target_is_gpu(cd_str target) {
    static const char *const gpu[] = {"cuda", "nvptx", "opencl", "vulkan", "metal", "rocm", "opengl"};
    size_t n = 0;
    while (n < target.n && target.p[n] != ' ') n++;
    for (size_t k = 0; k < sizeof gpu / sizeof *gpu; k++)
        if (cd_str_is((cd_str){target.p, n}, gpu[k])) return true;
    return false;
}

cd_str cd_target_option(const char *target, const char *name) {
    const size_t n = strlen(name);
    cd_str last = {"", 0};
    for (const char *p = target; p && *p; p += strspn(p, " ")) {
        const size_t len = strcspn(p, " ");
        if (len > n && !memcmp(p, name, n) && p[n] == '=') last = (cd_str){p + n + 1, len - n - 1};
        p += len;
    }
    return last;
}

static bool has_word(cd_str target, const char *word) {
    const size_t n = strlen(word);
    for (size_t k = 0; k + n <= target.n; k++)
        if (!memcmp(target.p + k, word, n)) return true;
    return false;
}

uint32_t cd_target_vector_bytes(cd_str target) {
    /* LLVM's names of processors that have AVX-512 */
    static const char *const word[] = {"avx512", "znver4", "znver5", "icelake", "cascadelake", "cooperlake", "sapphirerapids", "x86-64-v4"};
    for (size_t k = 0; k < sizeof word / sizeof *word; k++)
        if (has_word(target, word[k])) return 64;
    return 32;
}

cd_hardware cd_target_hardware(bool gpu, int64_t num_cores, int64_t vector_bytes) {
    if (!gpu) return (cd_hardware){.num_cores = num_cores, .vector_unit_bytes = vector_bytes, .cache_line_bytes = 64};
    return (cd_hardware){.num_cores = -1, .vector_unit_bytes = 16, .cache_line_bytes = 64, .max_shared_memory_per_block = 49152,
                         .max_local_memory_per_block = INT32_MAX, .max_threads_per_block = 1024, .max_vthread_extent = 8,
                         .warp_size = 32};
}
