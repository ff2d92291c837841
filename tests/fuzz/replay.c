/* replay TARGET FOLDER... -- runs a fuzz target over the files of folders, without an engine.
 *
 * In a build for coverage (CD_FAULT=2) each file is then read again and again, and each time a
 * later allocation is the first that is refused. Targets take it for granted that what was accepted
 * can be written and read again, and stop where it cannot: there that only ends the run. Nothing is
 * freed then, so this finds crashes, not leaks. */
#include <dirent.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each target's LLVMFuzzerTestOneInput is compiled under the name fuzz_<target> (Makefile). */
typedef int (*fuzz_target)(const uint8_t *data, size_t size);
#define TARGET(name) int fuzz_##name(const uint8_t *data, size_t size);
#include "fuzz_targets.def"
#undef TARGET
#define TARGET(name) {#name, fuzz_##name},
static const struct {
    const char *name;
    fuzz_target run;
} target[] = {
#include "fuzz_targets.def"
};

static fuzz_target find_target(const char *name) {
    for (size_t k = 0; k < sizeof target / sizeof *target; k++)
        if (!strcmp(target[k].name, name)) return target[k].run;
    return NULL;
}

#if CD_FAULT + 0 > 1
#include "base/core/mem.h"

static jmp_buf stopped;

/* What abort() is in targets. */
_Noreturn void fuzz_stop(void);
void fuzz_stop(void) {
    if (cd_mem_refused()) longjmp(stopped, 1);
    abort();
}

/* Every allocation at first, then about each twentieth. */
static void refuse(fuzz_target run, const uint8_t *data, size_t n) {
    bool refused = true;
    for (volatile long k = 0; refused; k += 1 + k / 20) {
        cd_mem_fail_at_piece(k);
        if (!setjmp(stopped)) run(data, n);
        refused = cd_mem_refused();
        cd_mem_fail_at(-1);
    }
}
#else
static void refuse(fuzz_target run, const uint8_t *data, size_t n) {
    (void)run, (void)data, (void)n;
}
#endif

static int replay_file(fuzz_target run, const char *path) {
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t n = 0, cap = 1 << 16, got = 1;
    if (!f) return 0;
    if (!(data = malloc(cap))) abort();
    while (got) {
        if (n == cap && !(data = realloc(data, cap *= 2))) abort();
        got = fread(data + n, 1, cap - n, f);
        n += got;
    }
    fclose(f);
    /* exactly n bytes on the heap, so that a read past the end is seen */
    uint8_t *exact = malloc(n ? n : 1);
    if (!exact) abort();
    for (size_t i = 0; i < n; i++) exact[i] = data[i];
    free(data);
    run(exact, n);
    refuse(run, exact, n);
    free(exact);
    return 1;
}

int main(int argc, char **argv) {
    int passed = 0, failed = 0;
    const fuzz_target run = argc > 1 ? find_target(argv[1]) : NULL;
    if (!run) {
        fprintf(stderr,
                "usage: replay TARGET FOLDER...; a target is a file tests/fuzz/fuzz_TARGET.c\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        char path[4096];
        if (!dir) {
            fprintf(stderr, "%s: no such folder\n", argv[i]);
            failed++;
            continue;
        }
        for (struct dirent *e; (e = readdir(dir));) {
            if (e->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            if (replay_file(run, path)) passed++;
            else failed++;
        }
        closedir(dir);
    }
    printf("%s: %d passed, %d failed\n", argv[1], passed, failed);
    return failed > 0 || passed == 0;
}
