/* stable_id -- 64-bit numbers that name things of a data set: whatever is drawn by such a
 * number does not depend on the order of files, programs or threads. The first 64
 * bits of a SHA-256. */
#ifndef CD_STABLE_ID_H
#define CD_STABLE_ID_H
#include "dataset/file/file.h"

/* The number of a name. */
uint64_t cd_stable_id_name(const char *name);
/* Of a program: task, device, name of its file without the folder, line. The same
 * record given twice has one key. */
uint64_t cd_stable_id_program(const cd_dataset *d, size_t i);
#endif
