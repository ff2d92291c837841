/* The door of base/cli: other rooms include this header and no other of the room.
 *
 * What the commands share, and only they, because it prints. A command is a table of options and one function that runs
 * (command). The table also gives --help, the manual page and shell completion (option). Messages go to a log on standard
 * error (log), long work shows a bar (progress), ^C ends a command in order (signals). */
#ifndef CD_BASE_CLI_DOOR_H
#define CD_BASE_CLI_DOOR_H
#include "base/cli/command.h"
#include "base/cli/log.h"
#include "base/cli/option.h"
#include "base/cli/progress.h"
#include "base/cli/signals.h"
#endif
