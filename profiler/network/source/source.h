/* The door of profiler/network/source: other rooms include this header and no other of the room.
 *
 * Reads a network for a command: from an ONNX file or from the built-in zoo, as it is or as one iteration of its training. It gives
 * the graph, and the list of operators that could not be read. */
#ifndef CD_PROFILER_NETWORK_SOURCE_DOOR_H
#define CD_PROFILER_NETWORK_SOURCE_DOOR_H
#include "profiler/network/source/network_source.h"
#endif
