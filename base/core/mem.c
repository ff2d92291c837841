/* All heap memory comes from here. Built with CD_FAULT, the k-th allocation fails, so tests can
 * walk through every path that runs out of memory. */
#include "base/core/mem.h"

#include <locale.h>
#include <math.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/arena.h"
#include "base/core/core.h"

#ifdef CD_FAULT
static long fail_at = -1, live;
static bool pieces, refused;

void cd_mem_fail_at(long k) { fail_at = k, pieces = refused = false; }
void cd_mem_fail_at_piece(long k) { cd_mem_fail_at(k), pieces = true; }
bool cd_mem_refused(void) { return refused; }
long cd_mem_live(void) { return live; }

static bool refuse(void) {
    if (fail_at > 0) fail_at--;
    else if (fail_at == 0) return refused = true;
    return false;
}

#if CD_FAULT + 0 > 1
/* true: an arena gets no memory for its next piece */
static bool mem_refuse_piece(void) { return pieces && refuse(); }
#endif

void *cd_mem_alloc(size_t n) {
    if (refuse()) return NULL;
    void *p = malloc(n ? n : 1);
    if (p) live++;
    return p;
}

void cd_mem_free(void *p) {
    if (p) live--;
    free(p);
}
#else
void *cd_mem_alloc(size_t n) { return malloc(n ? n : 1); }
void cd_mem_free(void *p) { free(p); }
#endif

void *cd_mem_zalloc(size_t n, size_t size) {
    if (size && n > SIZE_MAX / size) return NULL;
    void *p = cd_mem_alloc(n * size);
    return p ? memset(p, 0, n * size) : NULL;
}

void *cd_mem_realloc(void *p, size_t old, size_t n) {
    void *q = cd_mem_alloc(n);
    if (!q) return NULL;
    if (p) memcpy(q, p, old < n ? old : n);
    cd_mem_free(p);
    return q;
}

char *cd_mem_text(const char *s) {
    const size_t n = strlen(s) + 1;
    char *p = cd_mem_alloc(n);
    return p ? memcpy(p, s, n) : NULL;
}

/* Chunks of an arena. Each new chunk is twice as large as the one before, so the last one is the
 * largest, and a reset keeps it: after a few records no record needs the heap any more. */

#if CD_ARENA_CAREFUL && CD_FAULT + 0 < 2
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   __asan_poison_memory_region((p), (n))
#define UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#else
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#define CHUNK_MIN ((size_t)16 * 1024)

struct cd_arena_chunk {
    struct cd_arena_chunk *next;
    size_t cap;
    alignas(max_align_t) unsigned char data[];
};
_Static_assert(alignof(max_align_t) <= CD_ARENA_ALIGN, "an arena aligns for any type");

static void use(cd_arena *a, struct cd_arena_chunk *c) {
    a->head = c;
    a->at = c->data;
    a->end = c->data + c->cap;
    POISON(c->data, c->cap);
}

static int grow(cd_arena *a, size_t need) {
    size_t cap = a->head ? a->head->cap * 2 : CHUNK_MIN;
    if (cap < need) cap = need;
    struct cd_arena_chunk *c = cd_mem_alloc(sizeof *c + cap);
    if (!c) return 0;
    c->next = a->head;
    c->cap = cap;
    use(a, c);
    return 1;
}

#if CD_FAULT + 0 > 1
#define REFUSED() mem_refuse_piece()
#else
#define REFUSED() false
#endif

void *cd_arena_take(cd_arena *a, size_t n) {
    const size_t need = (n + CD_ARENA_ALIGN - 1) & ~(CD_ARENA_ALIGN - 1);
    const bool more = !a->at || (size_t)(a->end - a->at) < need;
    if (REFUSED() || (more && !grow(a, need))) {
        a->oom = true;
        return NULL;
    }
    void *p = a->at;
    a->at += need;
    UNPOISON(p, n);
    return p;
}

void *cd_arena_zalloc(cd_arena *a, size_t n, size_t size) {
    void *p = cd_arena_alloc(a, n, size);
    return p ? memset(p, 0, n * size) : NULL;
}

static void free_chunks(struct cd_arena_chunk *c) {
    while (c) {
        struct cd_arena_chunk *next = c->next;
        UNPOISON(c->data, c->cap);
        cd_mem_free(c);
        c = next;
    }
}

char *cd_arena_text(cd_arena *a, const char *s) {
    const size_t n = strlen(s) + 1;
    char *p = cd_arena_alloc(a, n, 1);
    return p ? memcpy(p, s, n) : NULL;
}

void cd_arena_reset(cd_arena *a) {
    a->oom = false;
    if (!a->head) return;
    free_chunks(a->head->next); /* head is the largest: chunks double */
    a->head->next = NULL;
    use(a, a->head);
}

void cd_arena_free(cd_arena *a) {
    free_chunks(a->head);
    *a = (cd_arena){0};
}

/* Arrays that double, in one place, so that the overflow checks are in one place too. */

/* The next capacity; 0: more than the counter or the address space holds. */
static size_t next_cap(size_t n, size_t cap, size_t size, size_t limit) {
    size_t more = cap ? cap : 8;
    while (more <= n) {
        if (more > limit / 2) return 0;
        more *= 2;
    }
    return more <= SIZE_MAX / 4 / size ? more : 0;
}

void *cd_grow_heap(void *p, size_t n, size_t *cap, size_t size, size_t limit) {
    const size_t more = next_cap(n, *cap, size, limit);
    void *q = more ? cd_mem_realloc(p, n * size, more * size) : NULL;
    if (q) *cap = more;
    return q;
}

void *cd_grow_arena(cd_arena *a, const void *p, size_t n, size_t *cap, size_t size, size_t limit) {
    const size_t more = next_cap(n, *cap, size, limit);
    void *q = more ? cd_arena_alloc(a, more, size) : NULL;
    if (q && n) memcpy(q, p, n * size);
    if (q) *cap = more;
    return q;
}

/* A growing text. The capacity doubles; the first failed allocation sets `oom`, and from then on
 * nothing is added, so a caller checks once at the end. */

static bool reserve(cd_buf *b, size_t more) {
    if (b->oom) return false;
    if (b->cap - b->n > more) return true;
    size_t cap = b->cap ? b->cap : 256;
    while (cap - b->n <= more) cap *= 2;
    char *p = cd_mem_realloc(b->p, b->n, cap);
    if (!p) {
        b->oom = true;
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

void cd_buf_put(cd_buf *b, const char *p, size_t n) {
    if (!reserve(b, n)) return;
    if (n == 1) b->p[b->n] = *p; /* commas, brackets: most of what is put */
    else if (n) memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = '\0';
}

void cd_buf_putf(cd_buf *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0 || !reserve(b, (size_t)n)) return;
    va_start(ap, fmt);
    vsnprintf(b->p + b->n, b->cap - b->n, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
}

void cd_buf_put_int(cd_buf *b, int64_t v) {
    char text[24], *p = text + sizeof text;
    uint64_t m = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do *--p = (char)('0' + m % 10);
    while (m /= 10);
    if (v < 0) *--p = '-';
    const size_t n = (size_t)(text + sizeof text - p);
    if (!reserve(b, sizeof text)) return;
    for (size_t i = 0; i < n; i++) b->p[b->n + i] = p[i];
    b->p[b->n += n] = '\0';
}

/* printf writes the locale's decimal point, which may be several bytes. */
void cd_buf_put_real6(cd_buf *b, double v) {
    char text[48];
    const int len = snprintf(text, sizeof text, "%g", v);
    const char *point = localeconv()->decimal_point, *at = NULL;
    if (strcmp(point, ".") != 0) at = strstr(text, point);
    if (!at) {
        cd_buf_put(b, text, (size_t)len);
        return;
    }
    cd_buf_put(b, text, (size_t)(at - text));
    cd_buf_puts(b, ".");
    cd_buf_puts(b, at + strlen(point));
}

void cd_buf_put_json_real(cd_buf *b, double v) {
    if (isfinite(v)) cd_buf_putf(b, "%.17g", v);
    else cd_buf_puts(b, "null");
}

/* The code point of a character of (k) bytes that JSON allows as it is but a terminal may take for
 * a command: the control characters from 0x7f to 0x9f, and U+2028 to U+202E and U+2066 to U+2069,
 * which break lines or turn their direction. 0: another character. */
static unsigned unseen(const unsigned char *c, size_t k) {
    if (k == 1 && *c == 0x7f) return 0x7f;
    if (k == 2 && *c == 0xC2 && c[1] < 0xA0) return c[1];
    if (k == 3 && *c == 0xE2 &&
        ((c[1] == 0x80 && c[2] >= 0xA8 && c[2] <= 0xAE) ||
         (c[1] == 0x81 && c[2] >= 0xA6 && c[2] <= 0xA9)))
        return 0x2000 + ((c[1] & 0x3Fu) << 6) + (c[2] & 0x3Fu);
    return 0;
}

/* What is no UTF-8 becomes U+FFFD, a byte each: no reader of JSON takes it as it is. */
void cd_buf_put_json_str(cd_buf *b, const char *p, size_t n) {
    size_t from = 0; /* start of the run that needs no escape */
    cd_buf_put(b, "\"", 1);
    for (size_t i = 0, k; i < n; i += k ? k : 1) {
        const unsigned char c = (unsigned char)p[i];
        k = c < 0x80 ? 1 : cd_str_utf8_len((cd_str){p + i, n - i});
        const unsigned hidden = c < 0x7f ? 0 : unseen((const unsigned char *)p + i, k);
        if (k && c >= ' ' && c != '"' && c != '\\' && !hidden) continue;
        cd_buf_put(b, p + from, i - from);
        from = i + (k ? k : 1);
        if (hidden) cd_buf_putf(b, "\\u%04x", hidden);
        else if (!k) cd_buf_puts(b, "\xef\xbf\xbd");
        else if (c == '"' || c == '\\') cd_buf_putf(b, "\\%c", c);
        else if (c == '\n') cd_buf_puts(b, "\\n");
        else if (c == '\r') cd_buf_puts(b, "\\r");
        else if (c == '\t') cd_buf_puts(b, "\\t");
        else cd_buf_putf(b, "\\u%04x", c);
    }
    cd_buf_put(b, p + from, n - from);
    cd_buf_put(b, "\"", 1);
}

void cd_buf_clear(cd_buf *b) {
    b->n = 0;
    if (b->p) b->p[0] = '\0';
}

void cd_buf_free(cd_buf *b) {
    cd_mem_free(b->p);
    *b = (cd_buf){0};
}
