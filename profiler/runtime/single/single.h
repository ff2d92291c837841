/* The door of profiler/runtime/single: other rooms include this header and no other of the room. The room runs a network of
 * compiled programs on one device: it selects a program for each task (program_select.h), runs all of them in one block of memory
 * (executor.h), measures the network operator by operator (op_profile.h), and writes curves of time over size (op_curve.h). Its
 * callers are the commands of profiler, and partition. */
#ifndef CD_PROFILER_RUNTIME_SINGLE_DOOR_H
#define CD_PROFILER_RUNTIME_SINGLE_DOOR_H
#include "profiler/runtime/single/executor.h"
#include "profiler/runtime/single/op_curve.h"
#include "profiler/runtime/single/op_profile.h"
#include "profiler/runtime/single/program_select.h"
#endif
