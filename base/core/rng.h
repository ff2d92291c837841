/* Counter-based random numbers: value i of stream `seed`, no state.
 *
 * The number drawn for a thing depends on the seed and on the thing's own key
 * only, so the order of visiting and the number of threads cannot change it.
 * Mixing as in splitmix64 (Steele, Lea, Flood 2014), applied to both words. */
#ifndef CD_RNG_H
#define CD_RNG_H
#include <stdint.h>

/* One step of splitmix64: a bijection of 64 bits that spreads every input bit. */
static inline uint64_t cd_rng_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* 64 random bits: value i of stream `seed`. */
static inline uint64_t cd_rng_at(uint64_t seed, uint64_t i) { return cd_rng_mix(cd_rng_mix(seed) ^ cd_rng_mix(~i)); }

/* Uniform in [0, 1), 53 bits. */
static inline double cd_rng_unit(uint64_t seed, uint64_t i) { return (double)(cd_rng_at(seed, i) >> 11) * 0x1p-53; }
#endif
