/* The door of dataset/file: other rooms include this header and no other of the room.
 *
 * The file of a data set (HDF5, docs/reference/dataset.md): what is in it (layout.h) and how it is read into memory (dataset.h). dataset/extract
 * writes it; dataset/split and learner/inputs read the loaded cd_dataset and never the file. */
#ifndef CD_DATASET_FILE_DOOR_H
#define CD_DATASET_FILE_DOOR_H
#include "dataset/file/dataset.h"
#include "dataset/file/layout.h"
#endif
