/* bench_split CPU.csv DEVICE.csv [...] -- EOP's tables of a network on two devices (op_name,
 * op_time in ns, a share), pair by pair: gains over the better device of each type on its better
 * device, split in half, split at the best ratio (cd_shard_ratio_best, 1,000 granules).
 *
 * As the spec counts (1.9): copies ignored, types below 1 % on both devices stay whole on their
 * better one, no cost of moving data. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/partition/shard/shard_ratio.h"

enum { MOST = 256, GRANULES = 1000 };

typedef struct {
    char name[MOST][64];
    double ms[MOST], sum;
    size_t n;
} profile;

static void read_profile(const char *path, profile *p) {
    char line[512];
    FILE *f = fopen(path, "r");
    memset(p, 0, sizeof *p);
    if (!f || !fgets(line, sizeof line, f)) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    while (p->n < MOST && fgets(line, sizeof line, f)) {
        char *comma = strchr(line, ',');
        if (!comma || strstr(line, "copy")) continue;
        *comma = 0;
        snprintf(p->name[p->n], sizeof *p->name, "%.63s", line);
        p->ms[p->n] = strtod(comma + 1, NULL) * 1e-6;
        p->sum += p->ms[p->n++];
    }
    fclose(f);
}

static bool both(const profile *a, const profile *b, size_t i, size_t *j) {
    for (*j = 0; *j < b->n; ++*j)
        if (!strcmp(a->name[i], b->name[*j])) return a->ms[i] > 0 && b->ms[*j] > 0;
    return false;
}

static double affine(const void *ms, double granules) {
    return *(const double *)ms * granules / GRANULES;
}

int main(int argc, char **argv) {
    static profile c, g;
    printf("| table | CPU ms | other ms | ceiling of the sums | placed | halves | best ratio |\n| "
           "--- | --- | --- | --- | --- | --- | --- |\n");
    for (int k = 1; k + 1 < argc; k += 2) {
        double placed = 0, half = 0, best = 0;
        read_profile(argv[k], &c);
        read_profile(argv[k + 1], &g);
        for (size_t i = 0, j; i < c.n; i++) {
            if (!both(&c, &g, i, &j)) continue;
            const double ms[2] = {c.ms[i], g.ms[j]}, whole = fmin(ms[0], ms[1]);
            const cd_shard_ratio_device d[2] = {{affine, &ms[0]}, {affine, &ms[1]}};
            uint32_t share[2];
            if (cd_shard_ratio_best(d, 2, GRANULES, share, NULL)) return 1;
            const bool key = ms[0] >= 0.01 * c.sum || ms[1] >= 0.01 * g.sum;
            placed += whole;
            half += key ? fmax(ms[0], ms[1]) / 2 : whole;
            best += key ? fmax(affine(&ms[0], share[0]), affine(&ms[1], share[1])) : whole;
        }
        const double alone = fmin(c.sum, g.sum);
        const char *name = strrchr(argv[k], '/');
        printf("| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", name ? name + 1 : argv[k],
               c.sum, g.sum, 1 + alone / fmax(c.sum, g.sum), alone / placed, alone / half,
               alone / best);
    }
    return 0;
}
