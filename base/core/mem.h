/* The only place that asks for heap memory, so that tests can make it fail.
 *
 * Under CD_FAULT, cd_mem_fail_at(k) makes the k-th allocation from now (0-based)
 * and all later ones fail; a negative k turns that off. */
#ifndef CD_MEM_H
#define CD_MEM_H
#include <stddef.h>

/* Ownership marks for prototypes; they expand to nothing. */
#define CD_GIVE /* caller owns the result                       */
#define CD_TAKE /* callee owns the argument from now on          */
#define CD_KEEP /* borrowed: valid only while its owner lives    */

CD_GIVE void *cd_mem_alloc(size_t n);               /* NULL when out of memory  */
CD_GIVE void *cd_mem_zalloc(size_t n, size_t size); /* zeroed; NULL on overflow */
/* p stays valid on NULL; `old` bytes are kept */
CD_GIVE void *cd_mem_realloc(CD_TAKE void *p, size_t old, size_t n);
CD_GIVE char *cd_mem_text(const char *s); /* a copy; NULL when out of memory */
void cd_mem_free(CD_TAKE void *p);        /* NULL is fine             */
#ifdef CD_FAULT
#include <stdbool.h>
void cd_mem_fail_at(long k); /* see above */
/* Under CD_FAULT=2: the same, and pieces of arenas count as allocations. They rarely need the heap,
 * so that what a caller does without one would hardly ever run. */
void cd_mem_fail_at_piece(long k);
bool cd_mem_refused(void); /* an allocation was refused since cd_mem_fail_at */
long cd_mem_live(void);    /* blocks not yet freed */
#endif
#endif
