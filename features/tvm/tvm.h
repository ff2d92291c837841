/* The door of features/tvm: other rooms include this header and no other of the room.
 *
 * TVM's own forms of a task: its graph JSON and the pickles that carry it. */
#ifndef CD_FEATURES_TVM_DOOR_H
#define CD_FEATURES_TVM_DOOR_H
#include "features/tvm/tvm_graph.h"
#include "features/tvm/tvm_node.h"
#include "features/tvm/unpickle.h"
#endif
