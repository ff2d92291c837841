/* The door of base/core: other rooms include this header and no other of the room.
 *
 * What every file uses. Errors carry status, file, line and key (err). Memory comes from the heap (mem), from an arena that is
 * reset after each record (arena), or grows (grow, buf). Then borrowed strings (str), hashes (hash, md5, sha256), random
 * numbers that do not depend on the order of use (rng), clocks, sorting, a pool of threads, boxes of tensors, the expected
 * minimum of several normals (order_stat), the nearest word to a misspelt one (did_you_mean). */
#ifndef CD_BASE_CORE_DOOR_H
#define CD_BASE_CORE_DOOR_H
#include "base/core/arena.h"
#include "base/core/box.h"
#include "base/core/buf.h"
#include "base/core/clock.h"
#include "base/core/did_you_mean.h"
#include "base/core/err.h"
#include "base/core/grow.h"
#include "base/core/hash.h"
#include "base/core/md5.h"
#include "base/core/mem.h"
#include "base/core/order_stat.h"
#include "base/core/rng.h"
#include "base/core/sha256.h"
#include "base/core/sort.h"
#include "base/core/spool.h"
#include "base/core/str.h"
#include "base/core/threads.h"
#endif
