/* What benches of networks share: a cost model with its devices, a book of schedules, and options
 * by hand. */
#ifndef BENCH_NETWORK_H
#define BENCH_NETWORK_H
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/estimate/estimate.h"

#define DIE(...) (fprintf(stderr, __VA_ARGS__), exit(1))

static cdmpp_err err;
static cd_schedule_db *book;
static cd_model *model;
static cd_device_table *devices;
static cd_network_cost *costs;

static inline void must(cdmpp_status st, const char *what) {
    char text[600];
    if (st)
        DIE("%s: %s: %s\n", program_invocation_short_name, what,
            cdmpp_err_format(&err, text, sizeof text));
}

/* The value of option argv[*k]. */
static inline const char *value(int argc, char **argv, int *k) {
    if (*k + 1 >= argc) DIE("%s: %s needs a value\n", program_invocation_short_name, argv[*k]);
    return argv[++*k];
}

/* NULL: no cost model; the installed devices.yaml; no book. */
static inline void read_model_and_book(const char *model_file, const char *devices_file,
                                       const char *book_file) {
    cd_schedule_db_logs logs = {0};
    cd_arena a = {0};
    cd_diag diag = {0};
    if (model_file) must(cd_model_load(model_file, &model, &err), model_file);
    if (model_file && !devices_file)
        must(cd_device_table_path(&a, "", NULL, &devices_file, &err), "devices");
    if (model_file) must(cd_device_table_load(devices_file, &diag, &devices, &err), devices_file);
    must(cd_network_cost_usual(&diag, &costs, &err), "costs of networks");
    cd_diag_free(&diag);
    cd_arena_free(&a);
    must(cd_schedule_db_new(&book, &err), "book");
    if (book_file) must(cd_schedule_db_read_logs(book, &book_file, 1, &logs, &err), book_file);
}
#endif
