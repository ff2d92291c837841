/* The door of features/rows: other rooms include this header and no other of the room.
 *
 * From a loop nest to rows of features, one row a leaf. */
#ifndef CD_FEATURES_ROWS_DOOR_H
#define CD_FEATURES_ROWS_DOOR_H
#include "features/rows/cols.h"
#include "features/rows/leaf.h"
#include "features/rows/program_rows.h"
#endif
