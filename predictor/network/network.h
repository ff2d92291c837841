/* The door of predictor/network: other rooms include this header and no other of the room.
 *
 * A network as a graph of nodes with times: files, traces, ONNX and built-in networks. */
#ifndef CD_PREDICTOR_NETWORK_DOOR_H
#define CD_PREDICTOR_NETWORK_DOOR_H
#include "predictor/network/network_graph.h"
#include "predictor/network/network_load.h"
#endif
