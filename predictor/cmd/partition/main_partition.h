/* main_partition -- the verbs of cdmpp-partition. Each is a command with options of its own: main()
 * calls its function with argv from the verb on, and lists its command for help and completion. */
#ifndef CD_MAIN_PARTITION_H
#define CD_MAIN_PARTITION_H
#include "base/cli/cli.h"

typedef struct cd_main_partition_verb {
    const char *name;
    void *request; /* what its options fill; holds the defaults */
    cd_command_fn *run;
    cd_command command;
} cd_main_partition_verb;
extern const cd_main_partition_verb cd_main_partition_link, cd_main_partition_curve,
    cd_main_partition_correlate, cd_main_partition_equilibrium, cd_main_partition_together,
    cd_main_partition_pack, cd_main_partition_qos;
#endif
