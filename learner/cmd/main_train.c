/* cdmpp-train: data set files to a model file. */
#include <stdlib.h>
#include <unistd.h>

#include "learner/cmd/main_train.h"

/* Threads of a training that wait for each other would spin. On a loaded machine they then keep the
 * processor from those that they wait for: a training takes five times as long. The OpenMP library
 * reads the variable before main, so the command begins once more; where that is not possible, it
 * goes on and is only slower. */
static void wait_asleep(char **argv) {
    if (!getenv("OMP_WAIT_POLICY") && !setenv("OMP_WAIT_POLICY", "passive", 1))
        (void)execv("/proc/self/exe", argv);
}

int main(int argc, char **argv) {
    wait_asleep(argv);
    return cd_main_train(argc, argv, &cd_main_train_options, NULL);
}
