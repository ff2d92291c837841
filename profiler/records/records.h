/* The door of profiler/records: other rooms include this header and no other of the room.
 *
 * Measure records: reading logs, sampling schedules, measuring, writing. */
#ifndef CD_PROFILER_RECORDS_DOOR_H
#define CD_PROFILER_RECORDS_DOOR_H
#include "profiler/records/random_schedules.h"
#include "profiler/records/record_program.h"
#include "profiler/records/record_reader.h"
#include "profiler/records/record_stats.h"
#include "profiler/records/schedule_sweep.h"
#endif
