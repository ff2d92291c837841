/* The door of base/cli: other rooms include this header and no other of the room.
 *
 * What the commands share: option tables, help, log, progress. */
#ifndef CD_BASE_CLI_DOOR_H
#define CD_BASE_CLI_DOOR_H
#include "base/cli/command.h"
#include "base/cli/log.h"
#include "base/cli/option.h"
#include "base/cli/progress.h"
#include "base/cli/signals.h"
#endif
