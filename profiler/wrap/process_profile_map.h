/* process_profile_map -- the counters that libcdmpp-wrap.so writes inside the watched processes and
 * cdmpp-profile reads: one shared file.
 *
 *   | magic n_slot | slot 0: first process | slot 1: its child, or what it exec'ed | ...
 *   CD_WRAP_SLOTS
 *
 *   (1) a process image owns one slot from its first allocation or start to its end; a forked child
 *       takes a slot of its own that begins with its parent's live bytes, exec begins a new one
 *       under the same pid;
 *   (2) counters are changed by their process only, with atomic operations; live and peak count the
 *       bytes that the allocator gave (malloc_usable_size), total_bytes those that were asked for;
 *   (3) n_slot counts claims; those behind CD_WRAP_SLOTS have no slot;
 *   (4) a span is a part of a program between two calls (process_profile.c). Its cost is added to
 *       the entry of its process and name.
 * Included by the library, which links nothing of ours. */
#ifndef CD_PROCESS_PROFILE_MAP_H
#define CD_PROCESS_PROFILE_MAP_H
#include <stdatomic.h>
#include <stdint.h>

#define CD_WRAP_ENV   "CDMPP_WRAP_MAP" /* path of the file */
#define CD_WRAP_MAGIC 0x70617277u
#define CD_WRAP_SLOTS 1024
#define CD_WRAP_SPANS 1024

typedef struct cd_process_profile_slot {
    _Atomic int32_t pid; /* 0: not taken yet */
    int32_t parent;
    char name[32];
    _Atomic uint64_t n_malloc, n_calloc, n_realloc, n_aligned, n_free, total_bytes;
    _Atomic int64_t live_bytes, peak_bytes;
    _Atomic uint64_t high_water_kb; /* VmHWM at its end; 0: it did not end by exit() */
    _Atomic int64_t device_bytes;   /* of OpenCL buffers, live */
    /* spans that have begun and not ended: while there are none, the next two are not kept */
    _Atomic uint32_t n_open;
    /* the most that was live since a span last began or ended */
    _Atomic int64_t recent_bytes, recent_device_bytes;
} cd_process_profile_slot;

typedef struct cd_process_profile_span {
    _Atomic int32_t pid; /* 0: not written yet */
    char name[48];
    uint64_t n, ns, total_bytes; /* all spans of the name together */
    /* peak: of the largest; live: of all together */
    int64_t peak_bytes, live_bytes, device_peak_bytes, device_live_bytes;
} cd_process_profile_span;

typedef struct cd_process_profile_map {
    uint32_t magic;
    _Atomic uint32_t n_slot, n_span;
    cd_process_profile_slot slot[CD_WRAP_SLOTS];
    cd_process_profile_span span[CD_WRAP_SPANS];
} cd_process_profile_map;

/* A span that has begun. The caller keeps it in one place until its end; the library sets it. Bytes
 * are those above what was live at the begin, so `live` may be below 0. */
typedef struct cd_wrap_span {
    struct cd_wrap_span *next;
    int64_t live, peak, device_live, device_peak;
    uint64_t total; /* asked for meanwhile */
} cd_wrap_span;
/* Exported by the library, and looked up there by name. Any thread; a span may end on another one
 * than it began on. */
typedef void cd_wrap_span_begin_call(cd_wrap_span *s);
typedef void cd_wrap_span_end_call(cd_wrap_span *s, const char *name, uint64_t ns);
#define CD_WRAP_SPAN_BEGIN "cdmpp_wrap_span_begin"
#define CD_WRAP_SPAN_END   "cdmpp_wrap_span_end"

/* Between the library's own files. */
typedef struct cd_wrap_state {
    cd_process_profile_map *map; /* NULL: nobody watches */
    cd_process_profile_slot *slot;
} cd_wrap_state;
/* Counts this process from now on, watched or not. */
cd_wrap_state cd_wrap_count(void);
/* The same if it counts already; slot NULL: it does not. */
cd_wrap_state cd_wrap_counted(void);
void cd_wrap_grew(_Atomic int64_t *live, int64_t bytes, _Atomic int64_t *peak,
                  _Atomic int64_t *recent, cd_process_profile_slot *s);
/* In a forked child: the thread that held the lock of spans may be gone. */
void cd_wrap_spans_in_child(void);
#endif
