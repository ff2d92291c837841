/* The door of base/core: other rooms include this header and no other of the room.
 *
 * What every file uses. Errors carry status, file, line and key (err). Memory comes from the heap
 * (mem), from an arena that is reset after each record (arena), or grows (grow, buf). Then borrowed
 * strings (str), hashes (hash, md5, sha256), random numbers that do not depend on the order of use
 * (rng), clocks, sorting, a pool of threads, numbers that threads wait for (counter), boxes of
 * tensors, the expected minimum of several normals (order_stat), the nearest word to a misspelt one
 * (did_you_mean). */
#ifndef CD_BASE_CORE_DOOR_H
#define CD_BASE_CORE_DOOR_H
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/core/arena.h"
#include "base/core/counter.h"
#include "base/core/order_stat.h"
#include "base/core/spool.h"
#include "cdmpp.h"

/* A rectangular piece of a tensor.
 *
 *   shape (56, 64)  rows 20..36, all columns  lo (20, 0)  n (16, 64)  1024 elements, one run from
 *     element 1280 on
 *                   all rows, columns 0..8    lo (0, 0)   n (56, 8)   448 elements, 56 runs
 *
 *   (1) 0 <= lo[d], n[d] >= 0, lo[d] + n[d] <= shape[d]; rank 0 is one element;
 *   (2) run: all its elements lie in a row in the row-major tensor.
 * Elements, not bytes. No state, any thread. */

enum { CD_BOX_RANK = 8 };

typedef struct cd_box {
    uint32_t rank;
    int64_t lo[CD_BOX_RANK], n[CD_BOX_RANK];
} cd_box;

cd_box cd_box_whole(uint32_t rank, const int64_t *shape); /* all of a tensor */
int64_t cd_box_elements(const cd_box *b);                 /* number of elements */
/* same rank, place and size; two empty boxes may differ */
bool cd_box_equal(const cd_box *a, const cd_box *b);
bool cd_box_inside(const cd_box *in, const cd_box *out); /* all of `in` is in `out` */
/* False: nothing is in both, *out has no elements. Ranks are equal. */
bool cd_box_meet(const cd_box *a, const cd_box *b, cd_box *out);
/* (2); *first: its first element. An empty box is a run. */
bool cd_box_run(const cd_box *b, const int64_t *shape, int64_t *first);
/* The box of a tensor of another shape with as many elements that has the same elements; false:
 * there is none. */
bool cd_box_reshape(const cd_box *b, const int64_t *shape, uint32_t rank, const int64_t *to,
                    cd_box *out);
/* Copies `n` elements of `size` bytes each way; strides in elements, of both sides; from and to are
 * at the first element. */
void cd_box_copy(void *to, const int64_t *to_stride, const void *from, const int64_t *from_stride,
                 uint32_t rank, const int64_t *n, size_t size);
/* Strides of a row-major tensor, in elements. */
void cd_box_strides(uint32_t rank, const int64_t *shape, int64_t *stride);

/* A growing text buffer with a sticky out-of-memory flag.
 *
 * Append freely, then check `oom` once. Always NUL-terminated when p != NULL. */

typedef struct cd_buf {
    char *p;
    size_t n, cap;
    bool oom;
} cd_buf;

/* Append n bytes, a text, a printf format, a decimal integer. Nothing is added once `oom` is
 * set. */
void cd_buf_put(cd_buf *b, const char *p, size_t n);
void cd_buf_putf(cd_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cd_buf_put_int(cd_buf *b, int64_t v);
static inline void cd_buf_puts(cd_buf *b, const char *s) { cd_buf_put(b, s, strlen(s)); }
/* 6 significant digits and a '.', in any locale: what a default C++ stream prints. */
void cd_buf_put_real6(cd_buf *b, double v);
/* The number that reads back as the same double; null where it is not finite. */
void cd_buf_put_json_real(cd_buf *b, double v);
/* "..." with JSON escapes. */
void cd_buf_put_json_str(cd_buf *b, const char *p, size_t n);
void cd_buf_clear(cd_buf *b); /* keeps the memory */
void cd_buf_free(cd_buf *b);

/* The clocks that measuring code reads. Seconds. */

/* Any clock of clock_gettime(2). */
static inline double cd_clock_read(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Wall time since an arbitrary start; never goes back. */
static inline double cd_clock_wall(void) { return cd_clock_read(CLOCK_MONOTONIC); }
/* Processor time of this process, and of the calling thread. */
static inline double cd_clock_process(void) { return cd_clock_read(CLOCK_PROCESS_CPUTIME_ID); }
static inline double cd_clock_thread(void) { return cd_clock_read(CLOCK_THREAD_CPUTIME_ID); }

/* The word that was probably meant: for "did you mean" in errors.
 * No state, any thread. */

#define CD_DID_YOU_MEAN_MAX 64
/* Letters to insert, delete or replace to get from a to b; CD_DID_YOU_MEAN_MAX when
 * either has CD_DID_YOU_MEAN_MAX letters or more. */
size_t cd_did_you_mean_distance(const char *a, const char *b);
/* The first of (n) names that is nearest to `asked`, when at most a third of the letters
 * of `asked` and one more differ, and fewer than the name has; else NULL. */
const char *cd_did_you_mean_nearest(const char *asked, const char *const *name, size_t n);
/* Of (n) names at most `most` for out[], by letters and digits alone, without case: all that begin
 * with `asked`; else the nearest one; else the longest that `asked` begins with, of 3 letters or
 * more; else those whose beginning is nearest to `asked`. How many. */
size_t cd_did_you_mean_several(const char *asked, const char *const *name, size_t n,
                               const char **out, size_t most);

/* Raise, enrich and forward errors. No state, no allocation.
 *
 * Raise at the point of detection:   return CD_FAIL(err, ESCHEMA, "expected ...");
 * Forward unchanged:                 CD_TRY(cd_record_read(...));
 * Enrich on the way up:              return cd_err_key(err, st, "task");
 * The innermost fact wins: path and line are set once; keys are prefixed, so
 * "shape[2]" raised below becomes "task.shape[2]" above. */

/* The value is the constant itself, so the compiler and the analyzer can see
 * that this path never returns OK. */
#define CD_FAIL(err, name, ...)                                                                    \
    (cd_err_raise((err), CDMPP_##name, __FILE__, __LINE__, __VA_ARGS__), CDMPP_##name)
#define CD_TRY(expr)                                                                               \
    do {                                                                                           \
        const cdmpp_status cd_st_ = (expr);                                                        \
        if (cd_st_ != CDMPP_OK) return cd_st_;                                                     \
    } while (0)

/* What CD_FAIL calls: fills *err (NULL: nothing) with status, place in the sources and a message of
 * printf. */
void cd_err_raise(cdmpp_err *err, cdmpp_status code, const char *src, int src_line, const char *fmt,
                  ...) __attribute__((format(printf, 5, 6)));
/* Put `key.` or `[i]` in front of the key of *err; set path and line unless a function below has
 * set them. The three functions after these do the same for a status that is passed on. */
void cd_err_add_key(cdmpp_err *err, const char *key);
void cd_err_add_index(cdmpp_err *err, size_t i);
void cd_err_add_place(cdmpp_err *err, const char *path, long line);

/* Enrich and pass `st` on; no effect when it is OK or err is NULL. */
static inline cdmpp_status cd_err_key(cdmpp_err *err, cdmpp_status st, const char *key) {
    if (err && st) cd_err_add_key(err, key);
    return st;
}
static inline cdmpp_status cd_err_index(cdmpp_err *err, cdmpp_status st, size_t i) {
    if (err && st) cd_err_add_index(err, i);
    return st;
}
static inline cdmpp_status cd_err_at(cdmpp_err *err, cdmpp_status st, const char *path, long line) {
    if (err && st) cd_err_add_place(err, path, line);
    return st;
}
/* *err (NULL: nothing) becomes *why, an error that was kept aside. Its status. */
static inline cdmpp_status cd_err_from(cdmpp_err *err, const cdmpp_err *why) {
    if (err) *err = *why;
    return why->code;
}

/* Room for one more element of an array that doubles.
 *
 *   if (CD_GROW(list->item, list->n, list->cap)) return CD_FAIL(err, ENOMEM, "items");
 *   list->item[list->n++] = x;
 *
 * The array is (cap) elements from the heap, or NULL with cap 0; free it with cd_mem_free. `cap` is
 * size_t or uint32_t. CD_GROW_IN does the same in an arena, where the old array stays until the
 * arena is reset. */

/* A block of at least n + 1 elements of `size` bytes with the first n of `p` in it, and its new
 * *cap; NULL: out of memory, nothing has changed. `limit` is the largest capacity that the caller's
 * counter can hold. */
void *cd_grow_heap(void *p, size_t n, size_t *cap, size_t size, size_t limit);
void *cd_grow_arena(cd_arena *a, const void *p, size_t n, size_t *cap, size_t size, size_t limit);

#define CD_GROW_LIMIT(cap) (sizeof(cap) == sizeof(uint32_t) ? (size_t)UINT32_MAX : SIZE_MAX / 2)
/* True: out of memory. */
#define CD_GROW(p, n, cap)                                                                         \
    ((n) >= (cap) && __extension__({                                                               \
         size_t cd_cap_ = (cap);                                                                   \
         void *cd_new_ = cd_grow_heap((p), (n), &cd_cap_, sizeof *(p), CD_GROW_LIMIT(cap));        \
         if (cd_new_) (p) = cd_new_, (cap) = (__typeof__(cap))cd_cap_;                             \
         !cd_new_;                                                                                 \
     }))
#define CD_GROW_IN(a, p, n, cap)                                                                   \
    ((n) >= (cap) && __extension__({                                                               \
         size_t cd_cap_ = (cap);                                                                   \
         void *cd_new_ = cd_grow_arena((a), (p), (n), &cd_cap_, sizeof *(p), CD_GROW_LIMIT(cap));  \
         if (cd_new_) (p) = cd_new_, (cap) = (__typeof__(cap))cd_cap_;                             \
         !cd_new_;                                                                                 \
     }))

/* 128 bits of any bytes, for tables that trust the hash alone.
 *
 *   start -> add, add, ... -> the state is the hash
 *
 * Each step multiplies 64 x 64 bits to 128 and folds, twice with different constants; each add ends
 * with its length, so ("ab","c") and ("a","bc") differ. Not cryptographic: two of 2^32 candidates
 * fall together with a chance of about 2^-65 unless somebody constructs them. The same on every
 * machine of one byte order; nothing that is stored depends on it. No state, any thread. */

typedef struct cd_hash {
    uint64_t a, b;
} cd_hash;

/* The state before any bytes. */
cd_hash cd_hash_start(void);
/* Adds n bytes; p may be NULL when n is 0. */
void cd_hash_add(cd_hash *h, const void *p, size_t n);

/* MD5 (RFC 1321) in one go: the hash that workload keys of TVM's tuners carry.
 *
 * For names only; nothing here is kept safe by it. */

/* 32 lower-case hex digits + NUL. */
void cd_md5_hex(const void *p, size_t n, char out[33]);

/* Counter-based random numbers: value i of stream `seed`, no state.
 *
 * The number drawn for a thing depends on the seed and on the thing's own key
 * only, so the order of visiting and the number of threads cannot change it.
 * Mixing as in splitmix64 (Steele, Lea, Flood 2014), applied to both words. */

/* One step of splitmix64: a bijection of 64 bits that spreads every input bit. */
static inline uint64_t cd_rng_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* 64 random bits: value i of stream `seed`. */
static inline uint64_t cd_rng_at(uint64_t seed, uint64_t i) {
    return cd_rng_mix(cd_rng_mix(seed) ^ cd_rng_mix(~i));
}

/* Uniform in [0, 1), 53 bits. */
static inline double cd_rng_unit(uint64_t seed, uint64_t i) {
    return (double)(cd_rng_at(seed, i) >> 11) * 0x1p-53;
}

/* SHA-256 (FIPS 180-4): names data, column tables and model files.
 *
 * The state is plain data: it may be copied, saved and continued. */

typedef SHA256_CTX cd_sha256;

/* Start an empty sum; add n bytes (p may be NULL when n is 0). */
void cd_sha256_init(cd_sha256 *s);
void cd_sha256_add(cd_sha256 *s, const void *p, size_t n);
/* 64 lower-case hex digits + NUL. `s` itself stays open for more. */
void cd_sha256_hex(const cd_sha256 *s, char out[65]);

/* The orders that many files sort by. NaN is not expected. */

/* For qsort(): doubles, smallest first; unsigned numbers; texts (char *) by strcmp. */
int cd_sort_by_double(const void *a, const void *b);
int cd_sort_by_u32(const void *a, const void *b);
int cd_sort_by_u64(const void *a, const void *b);
int cd_sort_by_text(const void *a, const void *b);
/* (n) numbers in place, smallest first. */
void cd_sort_doubles(double *v, size_t n);
/* The middle of n > 0 sorted numbers; the mean of the middle two where n is even. */
double cd_sort_median(const double *sorted, size_t n);
/* The same of n > 0 numbers in any order, which are sorted. */
double cd_sort_to_median(double *v, size_t n);
/* The value that a share p (0 to 1) of sorted numbers does not exceed, linear between two of them
 * (numpy.quantile). n 0: NaN. */
double cd_sort_quantile(const double *sorted, size_t n, double p);
/* The same of numbers in any order, which are sorted. */
double cd_sort_to_quantile(double *v, size_t n, double p);

/* A borrowed run of bytes: a field of a line, a JSON string, a name. It need not end with a NUL. */

typedef struct cd_str {
    const char *p;
    size_t n;
} cd_str;

/* A C string as a run; NULL is empty. */
cd_str cd_str_of(const char *z);
/* Same bytes as a C string; same bytes as another run. */
bool cd_str_is(cd_str s, const char *z);
bool cd_str_eq(cd_str a, cd_str b);
/* How many bytes of it a message shows, `most` at most: for "%.*s". */
static inline int cd_str_shown(cd_str s, int most) { return s.n < (size_t)most ? (int)s.n : most; }
/* Is it UTF-8, without overlong forms and surrogates? */
bool cd_str_is_utf8(cd_str s);
/* Bytes of the valid sequence of UTF-8 that s begins with; 0: there is none. */
size_t cd_str_utf8_len(cd_str s);
/* Does the name match the pattern, in which a * stands for any letters, also none? */
bool cd_str_fits(const char *pattern, const char *name);
/* At most n bytes of a text, in place: its middle becomes "...", as both the beginning and the end
 * of a path say more. UTF-8 stays whole. */
void cd_str_cut_middle(char *text, size_t n);
/* The same for a message: its longest words lose their middle first, as they are paths, and its end
 * only when that is not enough. */
void cd_str_shorten(char *text, size_t n);
/* A copy that ends with a NUL; NULL when out of memory. */
CD_KEEP char *cd_str_dup(cd_arena *a, cd_str s);

/* A parallel loop that gives the same work whatever -j is.
 *
 *   n = 10, chunk = 4:   [0 1 2 3] [4 5 6 7] [8 9]
 *
 * (1) The cut depends on n and chunk only, never on the number of threads, so a
 *     caller that reduces per chunk and in chunk order gets the same bits.
 * (2) Chunks are handed out in order; worker w runs one at a time, so scratch
 *     indexed by w needs no lock. The caller works too, as worker 0.
 * (3) The first failing chunk in chunk order wins: the status and error are the
 *     ones a single thread would have given. Chunks behind it may have run or
 *     not, chunks before it all have.
 * A pool serves one run at a time. The library makes none: commands do, from -j. */

typedef struct cd_threads cd_threads;

/* [beg, end) of 0..n-1 on behalf of worker 0 <= w < cd_threads_count(). */
typedef cdmpp_status cd_threads_fn(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err);

/* n workers, the caller included, so n = 1 starts no thread; n <= 0: one for each
 * CPU this process may use. Errors: ENOMEM, EBACKEND (no thread to be had). */
cdmpp_status cd_threads_new(int n, CD_GIVE cd_threads **out, cdmpp_err *err);
void cd_threads_free(CD_TAKE cd_threads *t); /* NULL is fine */
int cd_threads_count(const cd_threads *t);   /* NULL: 1 */
/* t may be NULL: everything runs here. chunk 0 counts as 1. */
cdmpp_status cd_threads_run(cd_threads *t, size_t n, size_t chunk, cd_threads_fn *fn, void *ctx,
                            cdmpp_err *err);
#endif
