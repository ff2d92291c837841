/* The door of features/tvm: other rooms include this header and no other of the room.
 *
 * TVM's own forms of a task. unpickle.h reads Python pickles without executing anything; tvm_node.h reads the graph JSON inside
 * them as an array of nodes; tvm_graph.h makes the definition (te) of such a graph. */
#ifndef CD_FEATURES_TVM_DOOR_H
#define CD_FEATURES_TVM_DOOR_H
#include "features/tvm/tvm_graph.h"
#include "features/tvm/tvm_node.h"
#include "features/tvm/unpickle.h"
#endif
