/* Everything that is read from a target string. TVM's own parser is not needed: three questions are
 * asked of these strings, and each is answered by words of the text. */
#include "features/task/task.h"

#include <string.h>

#include "base/cli/cli.h"

bool cd_target_is_gpu(cd_str target) {
    static const char *const gpu[] = {"cuda",  "nvptx", "opencl", "vulkan",
                                      "metal", "rocm",  "opengl"};
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

static bool has_any(cd_str text, const char *const *word, size_t n) {
    for (size_t k = 0; k < n; k++)
        if (has_word(text, word[k])) return true;
    return false;
}

static bool is_any(cd_str text, const char *const *word, size_t n) {
    for (size_t k = 0; k < n; k++)
        if (cd_str_is(text, word[k])) return true;
    return false;
}

static bool starts(cd_str text, const char *with) {
    return text.n >= strlen(with) && !memcmp(text.p, with, strlen(with));
}

/* What code is for says -mcpu, -mattr or the triple. -model is a name that somebody gave. */
uint32_t cd_target_vector_bytes(cd_str target) {
    /* LLVM's names of processors that have AVX-512, of its features, and of what has registers of
     * 128 bits */
    static const char *const wide[] = {
        "avx512",        "znver4",        "znver5",        "icelake",    "cannonlake",
        "cascadelake",   "cooperlake",    "tigerlake",     "rocketlake", "sapphirerapids",
        "emeraldrapids", "graniterapids", "diamondrapids", "knl",        "knm",
        "x86-64-v4"};
    static const char *const narrow[] = {"aarch64", "arm64", "armv"};
    static const char *const sse[] = {"-mcpu=x86-64",  "-mcpu=x86-64-v2", "-mcpu=generic",
                                      "-mcpu=nehalem", "-mcpu=westmere",  "-mcpu=corei7"};
    bool triple = false, said = false;
    uint32_t bytes = 32;
    for (size_t at = 0, end; at < target.n; at = end + 1) {
        for (end = at; end < target.n && target.p[end] != ' ';) end++;
        const cd_str w = {target.p + at, end - at};
        const bool without = starts(w, "-mattr=-avx512") ||
                             (starts(w, "-mattr=") && has_word(w, ",-avx512f")),
                   of = starts(w, "-mcpu=") || starts(w, "-mattr=");
        if (starts(w, "-mtriple=") && has_any(w, narrow, sizeof narrow / sizeof *narrow)) return 16;
        triple = triple || starts(w, "-mtriple=x86_64");
        said = said || of;
        if (without) bytes = 32;
        else if (of && has_any(w, wide, sizeof wide / sizeof *wide)) bytes = 64;
        else if (is_any(w, sse, sizeof sse / sizeof *sse)) bytes = 16;
        else if (starts(w, "-mattr=+avx") || (starts(w, "-mattr=") && has_word(w, ",+avx")))
            bytes = bytes > 32 ? bytes : 32;
    }
    if (triple && !said) return 16; /* code of any such processor: SSE */
    return bytes;
}

cd_hardware cd_target_hardware(bool gpu, int64_t num_cores, int64_t vector_bytes) {
    if (!gpu)
        return (cd_hardware){
            .num_cores = num_cores, .vector_unit_bytes = vector_bytes, .cache_line_bytes = 64};
    return (cd_hardware){.num_cores = -1,
                         .vector_unit_bytes = 16,
                         .cache_line_bytes = 64,
                         .max_shared_memory_per_block = 49152,
                         .max_local_memory_per_block = INT32_MAX,
                         .max_threads_per_block = 1024,
                         .max_vthread_extent = 8,
                         .warp_size = 32};
}

/* TVM's. Which of them has programs here, back ends say. */
static const char *const kind[] = {"llvm",    "c",     "cuda",    "nvptx",   "rocm",
                                   "opencl",  "metal", "vulkan",  "opengl",  "webgpu",
                                   "hexagon", "aocl",  "sdaccel", "stackvm", "ext_dev"};
/* Attributes that are often there. Of the others nobody here knows whether they are right, so only
 * a word that is near one of these is doubted. */
static const char *const attribute[] = {"-num-cores",
                                        "-mcpu",
                                        "-mattr",
                                        "-model",
                                        "-mtriple",
                                        "-keys",
                                        "-libs",
                                        "-device",
                                        "-host",
                                        "-arch",
                                        "-march",
                                        "-mabi",
                                        "-mfloat-abi",
                                        "-tag",
                                        "-max_num_threads",
                                        "-max_threads_per_block",
                                        "-max_shared_memory_per_block",
                                        "-max_local_memory_per_block",
                                        "-thread_warp_size",
                                        "-registers_per_block",
                                        "-opt-level",
                                        "-vector-width"};
enum {
    N_KIND = sizeof kind / sizeof *kind,
    N_ATTRIBUTE = sizeof attribute / sizeof *attribute,
    WORD = 64
};

/* The first n letters as a text of its own, cut where they are too long to be near anything. */
static const char *word_of(const char *p, size_t n, char out[WORD]) {
    n = n < WORD ? n : WORD - 1;
    memcpy(out, p, n);
    out[n] = 0;
    return out;
}

cdmpp_status cd_target_check(const char *target, cd_log *log, cdmpp_err *err) {
    char word[WORD];
    const char *near =
        cd_did_you_mean_nearest(word_of(target, strcspn(target, " "), word), kind, N_KIND);
    if (!near || strcmp(near, word) != 0)
        return CD_FAIL(err, EUSAGE,
                       "--target: a target begins with its kind (llvm, c, cuda, opencl ...), found "
                       "'%.60s'%s%s%s",
                       word, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
    for (const char *p = strchr(target, ' '); p && *p; p = strchr(p, ' ')) {
        p += strspn(p, " ");
        if (*p != '-') continue;
        near = cd_did_you_mean_nearest(word_of(p, strcspn(p, " ="), word), attribute, N_ATTRIBUTE);
        if (near && strcmp(near, word) != 0)
            cd_log_put(log, CD_LOG_WARNING,
                       "--target: nothing is read from '%.60s', did you mean '%s'?", word, near);
    }
    return CDMPP_OK;
}

const char *cd_target_of_device(const char *text, cd_str *device) {
    const char *eq = strchr(text, '='), *blank = strchr(text, ' ');
    const bool own = eq && (!blank || eq < blank) && text[0] != '-';
    *device = (cd_str){text, own ? (size_t)(eq - text) : 0};
    return own ? eq + 1 : text;
}
