/* The door of profiler/curves: other rooms include this header and no other of the room.
 *
 * Performance curves: the time of an operator as a function of its size. The room fits laws to measured points (perf_curve), reads tables of
 * curves (perf_curve_read, curve_set), finds which settings a time depends on (correlation), and makes what a curve of a network is measured from (size_list,
 * network_programs). Used for links between devices, for scaling times to other sizes, and by cdmpp-profile curves. */
#ifndef CD_PROFILER_CURVES_DOOR_H
#define CD_PROFILER_CURVES_DOOR_H
#include "profiler/curves/perf_curve.h"
#include "profiler/curves/correlation.h"
#include "profiler/curves/correlation_table.h"
#include "profiler/curves/curve_set.h"
#include "profiler/curves/network_programs.h"
#include "profiler/curves/perf_curve_read.h"
#include "profiler/curves/size_list.h"
#endif
