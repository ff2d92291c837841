/* Run a fuzz target over the files of the given folders, without an engine. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path) {
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
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    return 1;
}

int main(int argc, char **argv) {
    int passed = 0, failed = 0;
    for (int i = 1; i < argc; i++) {
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
            if (replay_file(path)) passed++;
            else failed++;
        }
        closedir(dir);
    }
    printf("%s: %d passed, %d failed\n", argc > 1 ? argv[1] : "replay", passed, failed);
    return failed > 0 || passed == 0;
}
