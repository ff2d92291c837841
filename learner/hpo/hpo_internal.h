/* What the files of learner/hpo share among themselves. */
#ifndef CD_LEARNER_HPO_INTERNAL_H
#define CD_LEARNER_HPO_INTERNAL_H
#include <stdint.h>

#include "base/core/core.h"

/* hpo_journal -- the finished trainings of a search, on disk as they finish.
 *
 *   {"schema":"cdmpp.search","schema_version":1,"digest":"SHA-256 of what is searched"}
 *   {"trial":7,"rung":1,"budget":200,"state":"done","valid_error":0.21,"seconds":3.1,
 *    "params":{...}}
 *   {"trial":9,"rung":0,"budget":67,"state":"failed","valid_error":null,"reason":"...",
 *    "seconds":0.1,"params":{}}
 *
 * In the file each of these objects is one line.
 *
 *   (1) a line is written with one call and is on the disk before its result counts;
 *   (2) a kill or a power cut can only damage the last line: it is cut off when the
 *       search goes on, and `torn` tells how many bytes that were. Damage elsewhere is
 *       an error;
 *   (3) a file belongs to one search (digest) and one process at a time (locked);
 *   (4) the order of lines is the order of finishing and means nothing.
 * One thread at a time. */

typedef struct cd_hpo_journal_entry {
    size_t trial;
    unsigned rung;
    double budget, error; /* INFINITY: failed */
    double seconds;
    const char *reason; /* of the failure, else "" */
    const char *params; /* JSON object */
} cd_hpo_journal_entry;

typedef struct cd_hpo_journal {
    int fd;
    char path[4096];
    size_t n, torn;
    cd_hpo_journal_entry *entry; /* (n) what was there when it was opened, by trial and rung */
    cd_arena arena;
} cd_hpo_journal;

/* Open or create. Errors: EIO (also: locked by another process), EPARSE, ESCHEMA
 * (another search), ENOMEM; nothing is left open then. */
cdmpp_status cd_hpo_journal_open(cd_hpo_journal *l, const char *path, const char *digest,
                                 cdmpp_err *err);
/* What was there for this trial and rung; NULL: nothing. */
const cd_hpo_journal_entry *cd_hpo_journal_find(const cd_hpo_journal *l, size_t trial,
                                                unsigned rung);
cdmpp_status cd_hpo_journal_append(cd_hpo_journal *l, const cd_hpo_journal_entry *e,
                                   cdmpp_err *err);
void cd_hpo_journal_close(cd_hpo_journal *l);

/* hpo_sobol -- points that fill the unit cube evenly, from the first one on.
 *
 *   coordinate d of point i = XOR over the set bits k of i of v[d][k], as a binary
 *   fraction, then Owen-scrambled: each digit is flipped or not by a coin that
 *   depends on the seed, d and the digits before it
 *
 *   (1) of the first 2^k points each of the 2^k equal intervals of each axis holds
 *       exactly one; so does every later run of 2^k points that starts at a
 *       multiple of 2^k;
 *   (2) axes 0 and 1 together: the same for every box of 2^-a x 2^-b, a + b = k;
 *   (3) scrambling keeps (1) and (2), and makes each point uniform over the seeds.
 *
 * Direction numbers are our own: axis 0 is the bit-reversed index, axis d > 0
 * follows the d-th primitive polynomial over GF(2) (by degree, then as a number),
 * and its free initial numbers are draws of base/rng, chosen by a search over 256
 * draws for evenness of all pairs with the axes before (`pick` in hpo_space_sample.c).
 * Sobol 1967 (the recurrence); Owen 1995 (nested scrambling). Any thread. */

#define CD_HPO_SOBOL_DIMS 40

typedef struct cd_hpo_sobol {
    uint32_t v[CD_HPO_SOBOL_DIMS][32];
} cd_hpo_sobol;

/* Fills in the direction numbers. */
void cd_hpo_sobol_init(cd_hpo_sobol *s);
/* Coordinate d < CD_HPO_SOBOL_DIMS of point i, without scrambling: 32 binary digits. */
uint32_t cd_hpo_sobol_digits(const cd_hpo_sobol *s, uint32_t i, unsigned d);
/* The same, scrambled, in [0, 1). */
double cd_hpo_sobol_unit(const cd_hpo_sobol *s, uint64_t seed, uint32_t i, unsigned d);
#endif
