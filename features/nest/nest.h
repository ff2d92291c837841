/* The door of features/nest: other rooms include this header and no other of the room.
 *
 * The loop nest of a program: its nodes in pre-order, simplification, TVM's notation, the compact AST (ast.h), and unique names of
 * its variables for printing and code (unique_names.h). Schedules are lowered to it; features and code are made from it. */
#ifndef CD_FEATURES_NEST_DOOR_H
#define CD_FEATURES_NEST_DOOR_H
#include "features/nest/ast.h"
#include "features/nest/unique_names.h"
#endif
