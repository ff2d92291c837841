/* The door of profiler/curves: other rooms include this header and no other of the room.
 *
 * Performance curves: which law the time of an operator follows over its size, for one curve (perf_curve), for all curves of a file or a store (curve_set), and
 * which settings of a table of measurements a time depends on (correlation). It takes points and gives laws with their uncertainty. */
#ifndef CD_PROFILER_CURVES_DOOR_H
#define CD_PROFILER_CURVES_DOOR_H
#include "profiler/curves/perf_curve.h"
#include "profiler/curves/correlation.h"
#include "profiler/curves/correlation_table.h"
#include "profiler/curves/curve_set.h"
#include "profiler/curves/perf_curve_read.h"
#endif
