/* affinity -- which processors work on what: programs that are timed on the last ones, the rest on the others.
 *
 * Both are about the calling thread and what it begins from now on, and do nothing where there
 * are not more than n processors. `all` is asked for by who wants to undo it. Any thread. */
#ifndef CD_AFFINITY_H
#define CD_AFFINITY_H
#include <stdbool.h>

/* Processors that this thread may use. */
int cd_affinity_count(void);
/* Stay on the last n; false: all stay allowed. */
bool cd_affinity_last(int n);
/* Stay on one: number k, from 0, of the last n; false: there are not n, all stay allowed. */
bool cd_affinity_one(unsigned n, unsigned k);
/* Stay on processor number `cpu` of the machine, whatever was allowed; false: it is not to be had. */
bool cd_affinity_at(int cpu);
/* What this thread may use now, remembered to be given back, or narrowed to all but the last n. */
typedef struct cd_affinity {
    unsigned long mask[16];     /* as cpu_set_t has it */
} cd_affinity;
void cd_affinity_get(cd_affinity *a);
/* But the last n of `all`; n 0: all of them. */
void cd_affinity_set(const cd_affinity *all, int but_last);
#endif
