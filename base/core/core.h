/* The door of base/core: other rooms include this header and no other of the room.
 *
 * What every other file uses: errors, memory, strings, hashes, random numbers, threads. */
#ifndef CD_BASE_CORE_DOOR_H
#define CD_BASE_CORE_DOOR_H
#include "base/core/arena.h"
#include "base/core/box.h"
#include "base/core/buf.h"
#include "base/core/did_you_mean.h"
#include "base/core/err.h"
#include "base/core/hash.h"
#include "base/core/md5.h"
#include "base/core/mem.h"
#include "base/core/order_stat.h"
#include "base/core/rng.h"
#include "base/core/sha256.h"
#include "base/core/threads.h"
#include "base/core/clock.h"
#include "base/core/grow.h"
#include "base/core/sort.h"
#include "base/core/str.h"
#endif
