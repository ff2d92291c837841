/* The door of dataset/file: other rooms include this header and no other of the room.
 *
 * The HDF5 file of a data set: its layout, reading and writing. */
#ifndef CD_DATASET_FILE_DOOR_H
#define CD_DATASET_FILE_DOOR_H
#include "dataset/file/dataset.h"
#include "dataset/file/layout.h"
#endif
