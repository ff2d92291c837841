/* main() of benches that train by a configuration: the file, KEY=VALUE arguments from argv[first]
 * on, then the work. */
#ifndef BENCH_CONFIG_H
#define BENCH_CONFIG_H
#include <stdio.h>

#include "learner/config/config.h"

typedef cdmpp_status bench_config_fn(const cd_config *c, char **argv, cdmpp_err *err);

/* Returns the exit code. */
static inline int bench_config_main(const char *path, int first, int argc, char **argv,
                                    bench_config_fn *run) {
    cd_config c;
    cdmpp_err err = {0};
    char text[512];
    cdmpp_status st = cd_config_init(&c, &err);
    if (!st) st = cd_config_load(&c, path, &err);
    for (int i = first; !st && i < argc; i++) st = cd_config_set(&c, argv[i], &err);
    if (!st) st = cd_config_check(&c, path, &err);
    if (!st) st = run(&c, argv, &err);
    if (st) fprintf(stderr, "%s\n", cdmpp_err_format(&err, text, sizeof text));
    cd_config_free(&c);
    return cdmpp_exit_code(st);
}
#endif
