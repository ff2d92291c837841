/* Mode "curves" of cdmpp-profile: the operators of a network at several sizes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/io/io.h"
#include "profiler/cmd/main_profile.h"
#include "profiler/runtime/single/single.h"

enum { MOST = 32, LARGEST = 1048576 };

/* "batch=1,4,8" or "input=32,64": ascending. */
static cdmpp_status read_sizes(const char *text, bool *input, int v[MOST], size_t *n, cdmpp_err *err) {
    const char *p = strchr(text, '=');
    const bool batch = !strncmp(text, "batch=", 6);
    *input = !strncmp(text, "input=", 6);
    *n = 0;
    while ((batch || *input) && *n < MOST && p && *p) {
        char *end;
        errno = 0;
        const long k = strtol(p + 1, &end, 10);
        if (end == p + 1 || errno || k < 1 || k > LARGEST || (*n && k <= v[*n - 1]) || (*end && *end != ',')) break;
        v[(*n)++] = (int)k;
        p = end;
    }
    if (p && !*p && *n >= 2) return CDMPP_OK;
    return CD_FAIL(err, EUSAGE, "--sizes: expected batch=N,N,... or input=N,N,..., 2 to %d ascending numbers up to %d, found '%.60s'", MOST, LARGEST, text);
}

cdmpp_status cd_main_profile_curves_check(const cd_main_profile *o, cdmpp_err *err) {
    bool input;
    int v[MOST];
    size_t n;
    if (!o->sizes) return CD_FAIL(err, EUSAGE, "--sizes is missing");
    CD_TRY(read_sizes(o->sizes, &input, v, &n, err));
    if (input ? o->input_size : o->batch) return CD_FAIL(err, EUSAGE, "--sizes goes in place of %s", input ? "--input-size" : "--batch-size");
    return cd_main_profile_run_check(o, err);
}

typedef struct {
    cd_graph *graph;
    cd_workload *workload;
    cd_program_select *pick;
} network;

typedef struct {
    cd_main_profile *o;
    cd_measure *measure;
    network net[MOST];
    size_t n;
} state;

static cdmpp_status tell(const state *s, const cd_op_curve_tally *t, cd_buf *table, cdmpp_err *err) {
    const size_t out = t->fixed + t->apart + t->short_of_points;
    if (out)
        cd_log_put(s->o->log, CD_LOG_WARNING, "left out: %zu operators whose sizes stay, %zu whose sizes vary in different ways, %zu with a time at fewer than two sizes",
                   t->fixed, t->apart, t->short_of_points);
    if (!s->o->out) return cd_command_print(table, err);
    const cdmpp_status st = cd_file_write(s->o->out, table->p, table->n, err);
    cd_buf_free(table);
    return st;
}

static cdmpp_status all(state *s, cdmpp_err *err) {
    cd_main_profile *o = s->o;
    cd_hardware hw;
    cd_op_curve_size size[MOST];
    cd_op_curve_tally tally;
    cd_buf table = {0};
    struct utsname host;
    int v[MOST];
    size_t n;
    bool input;
    const cd_measure_options mo = cd_main_profile_network_options(o, &hw);
    CD_TRY(cd_measure_open(&mo, &s->measure, err)); /* first of all: it forks */
    CD_TRY(read_sizes(o->sizes, &input, v, &n, err));
    for (; s->n < n; s->n++) {
        network *x = &s->net[s->n];
        *(input ? &o->input_size : &o->batch) = v[s->n];
        size[s->n] = (cd_op_curve_size){0};
        cdmpp_status st = cd_main_profile_network(o, &hw, &x->graph, &x->workload, err);
        if (!st) st = cd_main_profile_programs(o, x->workload, &hw, s->measure, &x->pick, err);
        if (st) return s->n++, st;
        size[s->n] = (cd_op_curve_size){x->workload, x->pick};
    }
    if (uname(&host)) memset(&host, 0, sizeof host);
    const cdmpp_status st = cd_op_curve_write(&table, host.nodename, size, n, &tally, err);
    if (st) return cd_buf_free(&table), st;
    return tell(s, &tally, &table, err);
}

cdmpp_status cd_main_profile_curves(cd_main_profile *o, cdmpp_err *err) {
    state *s = cd_mem_zalloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "curves");
    s->o = o;
    const cdmpp_status st = all(s, err);
    for (size_t i = 0; i < s->n; i++) {
        cd_program_select_free(s->net[i].pick);
        cd_workload_free(s->net[i].workload);
        cd_graph_free(s->net[i].graph);
    }
    cd_measure_close(s->measure);
    cd_mem_free(s);
    return st;
}
