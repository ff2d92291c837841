/* Files that come with the programs.
 *
 *   <prefix>/bin/cdmpp-train      <prefix>/share/cdmpp/configs/v100.yaml     installed
 *   build/release/cdmpp-train     configs/v100.yaml                          a build in its checkout
 *
 * The prefix is where the running program is, so a tree can be moved. No state, any thread. */
#ifndef CD_DATA_PATH_H
#define CD_DATA_PATH_H
#include "base/core/core.h"

/* Path of `name`, "configs/v100.yaml", if it can be read: below share/cdmpp of the prefix, else
 * below the checkout. NULL: neither, or out of memory. */
CD_KEEP const char *cd_data_path_find(cd_arena *a, const char *name);
/* `path` where it can be read or is absolute; else, when it is a bare name or begins with `folder`
 * ("configs"), the installed file of that name; else `path`. NULL: out of memory. */
CD_KEEP const char *cd_data_path_or(cd_arena *a, const char *folder, const char *path);
#endif
