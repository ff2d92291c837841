/* The door of features/rows: other rooms include this header and no other of the room.
 *
 * From a loop nest to numbers: one row of 164 columns per buffer, as TVM's auto_scheduler has them, and one per store, the leaves of the
 * compact AST (leaf.h). The table of columns with names, units and meanings (cols.h). */
#ifndef CD_FEATURES_ROWS_DOOR_H
#define CD_FEATURES_ROWS_DOOR_H
#include "features/rows/cols.h"
#include "features/rows/leaf.h"
#endif
