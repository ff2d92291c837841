/* forge.h -- files that somebody made by hand: what is inside is changed, and the lengths and the
 * checksum are made anew, as whoever means harm does. Readers that believe a file because its
 * checksum agrees are met by these.
 *
 *   good file ─seed─> bytes or numbers of header or weights changed ─> lengths, checksum ─> a file
 *     whose frame is in order
 *
 * The same seed gives the same file. CDMPP_ROUNDS asks for more files of each kind. */
#ifndef FORGE_H
#define FORGE_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/core/core.h"
#include "check.h"

/* A container (base/io) or a safetensors file: a frame, a JSON header, weights. */
typedef enum { FORGE_CONTAINER, FORGE_SAFETENSORS } forge_kind;

static inline size_t forge_rounds(size_t few) {
    return getenv("CDMPP_ROUNDS") ? (size_t)atol(getenv("CDMPP_ROUNDS")) : few;
}

static inline uint64_t forge_le(const char *p) {
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--) v = v << 8 | (unsigned char)p[i];
    return v;
}

static inline void forge_put_le(char *p, uint64_t v) {
    for (int i = 0; i < 8; i++) p[i] = (char)(v >> (8 * i));
}

/* A frame of this version around header and weights. */
static inline void forge_frame(forge_kind kind, const char *magic12, const cd_buf *header,
                               const cd_buf *weights, cd_buf *out) {
    char n[16] = {0}, hex[65];
    cd_sha256 h;
    cd_buf_clear(out);
    forge_put_le(n, header->n);
    forge_put_le(n + 8, weights->n);
    if (kind == FORGE_CONTAINER) cd_buf_put(out, magic12, 12), cd_buf_put(out, "\0\0\0\0", 4);
    cd_buf_put(out, n, kind == FORGE_CONTAINER ? 16 : 8);
    cd_buf_put(out, header->p ? header->p : "", header->n);
    cd_buf_put(out, weights->p ? weights->p : "", weights->n);
    if (kind == FORGE_SAFETENSORS) return;
    cd_sha256_init(&h);
    cd_sha256_add(&h, out->p, out->n);
    cd_sha256_hex(&h, hex);
    cd_buf_put(out, hex, 64);
}

typedef struct {
    uint64_t seed, at;
} forge_dice;

static inline uint64_t forge_draw(forge_dice *d, uint64_t below) {
    return cd_rng_at(d->seed, d->at++) % (below ? below : 1);
}

/* Bytes of weights: bits, whole numbers of four and eight bytes in both orders, runs that are
 * moved. */
static inline void forge_weights(forge_dice *d, char *p, size_t n) {
    static const uint64_t odd[] = {UINT64_MAX, 0x7fffffff, 0x80000000, 1000000,    0,
                                   65536,      1ull << 62, 1ull << 40, 0x7fc00000, 0x7f800000,
                                   0xff800000, 1,          255};
    static const size_t times[] = {1, 1, 2, 4, 16, 64};
    const uint64_t how = forge_draw(d, 6);
    for (size_t k = times[forge_draw(d, 6)]; n >= 16 && k; k--) {
        const size_t i = forge_draw(d, n - 8), width = how == 4 ? 8 : 4;
        const uint64_t v = odd[forge_draw(d, sizeof odd / sizeof *odd)];
        if (how == 0) p[i] ^= (char)(1 << forge_draw(d, 8));
        else if (how == 1) p[i] = (char)forge_draw(d, 256);
        else if (how == 2) memmove(p + i, p + forge_draw(d, n - 8), 8);
        else if (how == 3) memcpy(p + i, &v, 4);
        else
            for (size_t b = 0; b < width; b++) p[i + b] = (char)(v >> 8 * (width - 1 - b));
    }
}

/* One number, text or word of the JSON is another one. */
static inline void forge_token(forge_dice *d, const char *p, size_t n, cd_buf *out) {
    static const char *const other[] = {"-1",
                                        "0",
                                        "1",
                                        "2147483647",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "1e308",
                                        "-1e308",
                                        "1e-300",
                                        "0.5",
                                        "null",
                                        "true",
                                        "[]",
                                        "{}",
                                        "\"\"",
                                        "1e999",
                                        "18446744073709551616",
                                        "[[[]]]",
                                        "1000000",
                                        "65537",
                                        "\"x\"",
                                        "[-1]"};
    size_t beg = n ? forge_draw(d, n) : 0, end;
    while (beg < n && !strchr("-0123456789\"tfn", p[beg])) beg++;
    while (beg > 0 && beg < n && strchr("-+.eE0123456789", p[beg]) &&
           strchr("-+.eE0123456789", p[beg - 1]))
        beg--;
    for (end = beg; end < n && !strchr(",:]}", p[end]);) end++;
    const char *with = other[forge_draw(d, sizeof other / sizeof *other)];
    cd_buf_put(out, p, beg);
    cd_buf_puts(out, with);
    cd_buf_put(out, p + end, n - end);
}

/* A piece of the JSON is gone, or there twice. */
static inline void forge_piece(forge_dice *d, const char *p, size_t n, cd_buf *out) {
    size_t beg = n ? forge_draw(d, n) : 0, end;
    while (beg < n && p[beg] != ',') beg++;
    for (end = beg + (beg < n); end < n && p[end] != ',';) end++;
    const bool twice = forge_draw(d, 2);
    cd_buf_put(out, p, twice ? end : beg);
    cd_buf_put(out, p + (twice ? beg : end), n - (twice ? beg : end));
}

/* File number `seed` from a good one. */
static inline void forge(forge_kind kind, const char *file, size_t n, uint64_t seed, cd_buf *out) {
    const size_t fixed = kind == FORGE_CONTAINER ? 32 : 8, sum = kind == FORGE_CONTAINER ? 64 : 0;
    const size_t h = (size_t)forge_le(file + (kind == FORGE_CONTAINER ? 16 : 0)),
                 b = n - fixed - sum - h;
    cd_buf header = {0}, weights = {0};
    forge_dice d = {cd_rng_at(seed, 77), 0};
    const uint64_t how = forge_draw(&d, 10);
    if (how == 5) forge_token(&d, file + fixed, h, &header);
    else if (how == 6) forge_piece(&d, file + fixed, h, &header);
    else cd_buf_put(&header, file + fixed, h);
    cd_buf_put(&weights, file + fixed + h, how == 7 ? forge_draw(&d, b) : b);
    if (how < 5 && weights.n) forge_weights(&d, weights.p, weights.n);
    if (how == 8) cd_buf_put(&weights, file, forge_draw(&d, 200));
    if (how == 9 && header.n) header.p[forge_draw(&d, header.n)] = (char)forge_draw(&d, 256);
    forge_frame(kind, file, &header, &weights, out);
    cd_buf_free(&header);
    cd_buf_free(&weights);
}

/* No reader asks for a gigabyte more than there is: then it gets ENOMEM, which the callers of these
 * do not accept. Not under sanitizers, which map terabytes. */
static inline rlim_t forge_limit_memory(void) {
    struct rlimit now = {RLIM_INFINITY, RLIM_INFINITY};
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    const bool known = f && fscanf(f, "%lu", &pages) == 1;
    if (f) fclose(f);
    if (getrlimit(RLIMIT_AS, &now) || !known) return now.rlim_cur;
    const struct rlimit most = {(rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)1 << 30),
                                now.rlim_max};
    (void)setrlimit(RLIMIT_AS, &most);
#endif
    return now.rlim_cur;
}

static inline void forge_unlimit_memory(rlim_t was) {
    struct rlimit r;
    if (!getrlimit(RLIMIT_AS, &r)) r.rlim_cur = was, (void)setrlimit(RLIMIT_AS, &r);
}

/* Calls `use` with many forged files at addresses that end where the file ends; it returns whether
 * the file was taken. Some must be: else the forging breaks every file, and nothing behind the
 * frame is tried. */
typedef bool forge_use(const char *p, size_t n);
static inline void forge_all(forge_kind kind, const char *file, size_t n, size_t few,
                             forge_use *use) {
    size_t taken = 0;
    cd_buf b = {0};
    const rlim_t was = forge_limit_memory(); /* other tests of the program have theirs */
    for (size_t i = 0; i < forge_rounds(few); i++) {
        forge(kind, file, n, i, &b);
        char *exact = malloc(b.n);
        assert_non_null(exact);
        memcpy(exact, b.p, b.n);
        taken += use(exact, b.n);
        free(exact);
    }
    forge_unlimit_memory(was);
    cd_buf_free(&b);
    if (getenv("FORGE_SAYS")) printf("forged: %zu of %zu taken\n", taken, forge_rounds(few));
}
#endif
