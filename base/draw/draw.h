/* The door of base/draw: other rooms include this header and no other of the room.
 *
 * Charts as SVG: `plot` draws axes, lines and marks into a buffer, for pages that have a style sheet of their own; `chart` makes a
 * whole file of one plot, with its style and a legend. */
#ifndef CD_BASE_DRAW_DOOR_H
#define CD_BASE_DRAW_DOOR_H
#include "base/draw/chart.h"
#include "base/draw/plot.h"
#endif
