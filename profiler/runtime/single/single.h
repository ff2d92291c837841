/* The door of profiler/runtime/single: other rooms include this header and no other of the room.
 *
 * Networks run on one device, and measured operator by operator. */
#ifndef CD_PROFILER_RUNTIME_SINGLE_DOOR_H
#define CD_PROFILER_RUNTIME_SINGLE_DOOR_H
#include "profiler/runtime/single/executor.h"
#include "profiler/runtime/single/op_curve.h"
#include "profiler/runtime/single/op_profile.h"
#include "profiler/runtime/single/program_select.h"
#endif
