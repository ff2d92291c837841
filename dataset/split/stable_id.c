/* A number for a name that is the same on every machine and in every run: splits and samples are
 * drawn by it. */
#include "dataset/split/split.h"

#include <stdlib.h>
#include <string.h>

static uint64_t first_64(const cd_sha256 *s) {
    char hex[65];
    cd_sha256_hex(s, hex);
    hex[16] = '\0';
    return strtoull(hex, NULL, 16);
}

uint64_t cd_stable_id_name(const char *name) {
    cd_sha256 s;
    cd_sha256_init(&s);
    cd_sha256_add(&s, name, strlen(name));
    return first_64(&s);
}

/* The folder above says where the file lies today, not what was measured. */
static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

uint64_t cd_stable_id_program(const cd_dataset *d, size_t i) {
    const char *part[] = {d->task_name[d->task[i]], d->device_name[d->device[i]],
                          base_name(d->source_name[d->source_file[i]])};
    uint8_t line[8];
    cd_sha256 s;
    cd_sha256_init(&s);
    for (size_t k = 0; k < 3; k++) cd_sha256_add(&s, part[k], strlen(part[k]) + 1);
    for (size_t k = 0; k < 8; k++) line[k] = (uint8_t)(d->source_line[i] >> (8 * k));
    cd_sha256_add(&s, line, sizeof line);
    return first_64(&s);
}
