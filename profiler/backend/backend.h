/* The door of profiler/backend: other rooms include this header and no other of the room.
 *
 * Devices that compile, load, run and time generated programs: this machine's processor (cpu), OpenCL devices, NVIDIA's GPUs (cuda).
 * A back end is a table of functions (backend_kind.h), found by its name or by a target string. Rooms that need more than the
 * table, as the executors of networks do, use the headers of one kind. */
#ifndef CD_BACKEND_H
#define CD_BACKEND_H
#include "profiler/backend/backend_cpu.h"
#include "profiler/backend/backend_kind.h"
#include "profiler/backend/backend_opencl.h"
#include "profiler/backend/compiler.h"
#include "profiler/backend/cuda_api.h"
#include "profiler/backend/object_binary.h"
#include "profiler/backend/object_loader.h"
#include "profiler/backend/opencl_device.h"
#include "profiler/backend/tensor_fill.h"
#endif
