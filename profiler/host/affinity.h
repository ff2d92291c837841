/* affinity -- which processors a thread uses: measured programs the last ones, everything else the others.
 *
 * All of it is about the calling thread and the threads and processes that it begins from now on. cd_affinity_last and cd_affinity_set
 * do nothing where there are not more than n processors. Any thread. */
#ifndef CD_AFFINITY_H
#define CD_AFFINITY_H
#include <stdbool.h>

/* Processors that this thread may use. */
int cd_affinity_count(void);
/* Stay on the last n; false: all stay allowed. */
bool cd_affinity_last(int n);
/* Stay on one: number k, from 0, of the last n; false: there are not n, all stay allowed. */
bool cd_affinity_one(unsigned n, unsigned k);
/* Stay on processor number `cpu` of the machine, whatever was allowed; false: the system refuses it. */
bool cd_affinity_at(int cpu);
/* What a thread may use, to restore it later or to exclude the last n. */
typedef struct cd_affinity {
    unsigned long mask[16];     /* as cpu_set_t has it */
} cd_affinity;
/* What this thread may use now. */
void cd_affinity_get(cd_affinity *a);
/* Use `all` but its last n processors; n 0: all of them. */
void cd_affinity_set(const cd_affinity *all, int but_last);
#endif
