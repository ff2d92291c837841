/* The door of base/io: other rooms include this header and no other of the room.
 *
 * Files. Reading takes plain, gzip, xz and zstd alike, by lines or whole (file, input_stream). Writing replaces a file in one
 * step. Data files that come with the programs are found from the program's own place (data_path). Models and checkpoints
 * have one outer form with a checksum (container). */
#ifndef CD_BASE_IO_DOOR_H
#define CD_BASE_IO_DOOR_H
#include "base/io/container.h"
#include "base/io/data_path.h"
#include "base/io/file.h"
#include "base/io/input_stream.h"
#endif
