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
 * draws for evenness of all pairs with the axes before (`pick` in hpo_sobol.c).
 * Sobol 1967 (the recurrence); Owen 1995 (nested scrambling). Any thread. */
#ifndef CD_HPO_SOBOL_H
#define CD_HPO_SOBOL_H
#include <stdint.h>

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
