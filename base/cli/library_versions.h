/* Which libraries this program runs with, and their versions.
 *
 *   "HDF5 1.10.8"  "XGBoost 1.7.4" ...   those that the program was linked with
 *
 * The running process is searched by symbol name: a call from here would make every command load
 * every library. No state, any thread. */
#ifndef CD_LIBRARY_VERSIONS_H
#define CD_LIBRARY_VERSIONS_H
#include <stdbool.h>
#include <stddef.h>

typedef struct cd_library_versions {
    const char *name;
    char version[32];
} cd_library_versions;

#endif
