/* The door of base/io: other rooms include this header and no other of the room.
 *
 * Files: reading, writing by rename, compressed streams, installed data, checked containers. */
#ifndef CD_BASE_IO_DOOR_H
#define CD_BASE_IO_DOOR_H
#include "base/io/container.h"
#include "base/io/data_path.h"
#include "base/io/file.h"
#include "base/io/input_stream.h"
#endif
