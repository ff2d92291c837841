/* The door of profiler/machine: other rooms include this header and no other of the room.
 *
 * A machine of several devices, as the planner of predictor/partition needs it: the devices, what
 * starting a program and waiting for another device cost, what a transfer of n bytes between two
 * memories costs (links), and how much programs slow each other down (contention). The room
 * measures this machine and reads and writes its description as JSON. */
#ifndef CD_MACHINE_H
#define CD_MACHINE_H
#include "profiler/machine/contention.h"
#include "profiler/machine/corun_table.h"
#include "profiler/machine/link.h"
#include "profiler/machine/link_pairs.h"
#include "profiler/machine/machine_description.h"
#include "profiler/machine/machine_measure.h"
#include "profiler/machine/machine_report.h"
#endif
