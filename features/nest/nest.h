/* The door of features/nest: other rooms include this header and no other of the room.
 *
 * A program as a loop nest (AST) and the unique names of its variables. */
#ifndef CD_FEATURES_NEST_DOOR_H
#define CD_FEATURES_NEST_DOOR_H
#include "features/nest/ast.h"
#include "features/nest/unique_names.h"
#endif
