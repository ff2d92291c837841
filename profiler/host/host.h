/* The door of profiler/host: other rooms include this header and no other of the room.
 *
 * This machine, for everything that measures on it: its description and clocks (host_info), the instructions it has (isa), which
 * processors a thread uses (affinity), whether it is quiet (noise_probe), what others leave of it (host_load), hardware counters, cache flushing, and running
 * other programs. */
#ifndef CD_PROFILER_HOST_DOOR_H
#define CD_PROFILER_HOST_DOOR_H
#include "profiler/host/affinity.h"
#include "profiler/host/cache_flush.h"
#include "profiler/host/host_info.h"
#include "profiler/host/host_load.h"
#include "profiler/host/isa.h"
#include "profiler/host/noise_probe.h"
#include "profiler/host/perf_counters.h"
#include "profiler/host/subprocess.h"
#endif
