/* The door of profiler/curves: other rooms include this header and no other of the room.
 *
 * Performance curves: time of an operator against its size. */
#ifndef CD_PROFILER_CURVES_DOOR_H
#define CD_PROFILER_CURVES_DOOR_H
#include "profiler/curves/perf_curve.h"
#include "profiler/curves/correlation.h"
#include "profiler/curves/network_programs.h"
#include "profiler/curves/perf_curve_read.h"
#include "profiler/curves/size_list.h"
#endif
