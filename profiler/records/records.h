/* The door of profiler/records: other rooms include this header and no other of the room.
 *
 * Measure records, TVM auto_scheduler's lines of "this schedule of this task took so long on this target". The room reads them from
 * logs, turns each into a program, measures it (profiler/measure) and writes new records with the times found here; it also makes
 * records of random schedules, and measures variants and pairs of programs. */
#ifndef CD_PROFILER_RECORDS_DOOR_H
#define CD_PROFILER_RECORDS_DOOR_H
#include "profiler/records/random_schedules.h"
#include "profiler/records/record_best.h"
#include "profiler/records/record_corun.h"
#include "profiler/records/record_measure.h"
#include "profiler/records/record_program.h"
#include "profiler/records/record_reader.h"
#include "profiler/records/record_source.h"
#include "profiler/records/record_stats.h"
#include "profiler/records/schedule_sweep.h"
#endif
