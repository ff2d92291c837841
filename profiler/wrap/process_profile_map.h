/* process_profile_map -- the counters that libcdmpp-wrap.so writes inside the watched processes and cdmpp-profile reads: one shared file.
 *
 *   | magic n_slot | slot 0: first process | slot 1: its child, or what it exec'ed | ... CD_WRAP_SLOTS
 *
 *   (1) a process image owns one slot from its first allocation or start to its end; a forked child takes a slot of its
 *       own that begins with its parent's live bytes, exec begins a new one under the same pid;
 *   (2) counters are changed by their process only, with atomic operations; live and peak count the bytes that the
 *       allocator gave (malloc_usable_size), total_bytes those that were asked for;
 *   (3) n_slot counts claims; those behind CD_WRAP_SLOTS have no slot.
 * Included by the library, which links nothing of ours. */
#ifndef CD_PROCESS_PROFILE_MAP_H
#define CD_PROCESS_PROFILE_MAP_H
#include <stdatomic.h>
#include <stdint.h>

#define CD_WRAP_ENV "CDMPP_WRAP_MAP" /* path of the file */
#define CD_WRAP_MAGIC 0x70617277u
#define CD_WRAP_SLOTS 1024

typedef struct cd_process_profile_slot {
    _Atomic int32_t pid;        /* 0: not taken yet */
    int32_t parent;
    char name[32];
    _Atomic uint64_t n_malloc, n_calloc, n_realloc, n_aligned, n_free, total_bytes;
    _Atomic int64_t live_bytes, peak_bytes;
    _Atomic uint64_t high_water_kb; /* VmHWM at its end; 0: it did not end by exit() */
} cd_process_profile_slot;

typedef struct cd_process_profile_map {
    uint32_t magic;
    _Atomic uint32_t n_slot;
    cd_process_profile_slot slot[CD_WRAP_SLOTS];
} cd_process_profile_map;
#endif
