/* Measure logs and files of schedule databases into a database: of each task the record with the
 * least median of its repeats. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "dataset/extract/extract.h"
#include "predictor/estimate/estimate_internal.h"

typedef struct {
    cd_schedule_db *db;
    cd_schedule_db_logs *io;
    cd_arena scratch; /* one line */
    uint32_t reading;
} reader;

/* Names of devices are equal by letters and digits, without case (features/device/device.h). */
static bool same_name(cd_str a, const char *b) {
    size_t i = 0;
    for (;; i++, b++) {
        while (i < a.n && !isalnum((unsigned char)a.p[i])) i++;
        while (*b && !isalnum((unsigned char)*b)) b++;
        if (i == a.n || !*b) return i == a.n && !*b;
        if (tolower((unsigned char)a.p[i]) != tolower((unsigned char)*b)) return false;
    }
}

/* A schedule for a GPU is none for a CPU, whoever gives it. */
static bool is_of_device(const cd_schedule_db_logs *io, const cd_record *r, const char *path) {
    const cd_str name = cd_device_name_of(r->target, path);
    if (!io->device || same_name(name, io->device) || (io->also && same_name(name, io->also)))
        return true;
    const bool unnamed = cd_str_is(name, "unknown") ||
                         (io->unnamed && cd_str_is(cd_device_name_of(r->target, ""), "unknown"));
    return (unnamed || io->elsewhere) && cd_target_is_gpu(r->target) == io->gpu;
}

/* The record takes the form of the key that was asked for. */
static bool is_wanted(const cd_schedule_db_logs *io, cd_record *r, const char *path) {
    bool known = !io->n_key;
    for (size_t i = 0; !known && i < io->n_key; i++) {
        const cd_str key = {io->key[i], strlen(io->key[i])};
        known = cd_task_same_key(r->workload_key, key);
        if (known) r->workload_key = key;
    }
    return known && is_of_device(io, r, path);
}

/* Median of the repeats; NaN: it has no time. */
static cdmpp_status time_of(cd_arena *a, const cd_record *r, double *seconds, cdmpp_err *err) {
    double *cost = cd_arena_alloc(a, (size_t)r->n_cost + 1, sizeof *cost);
    if (!cost) return CD_FAIL(err, ENOMEM, "%u costs", r->n_cost);
    if (r->n_cost) memcpy(cost, r->cost_s, r->n_cost * sizeof *cost);
    const cd_label label = cd_label_of(cost, r->n_cost, r->error_no);
    *seconds = label.error ? (double)NAN : label.latency_s;
    return CDMPP_OK;
}

/* Whether it takes the place of what the database has. Of equal ones the first stays. */
static bool is_better(const reader *rd, const cd_record *r, double seconds) {
    bool there;
    const size_t at = cd_schedule_db_place(rd->db, r->workload_key.p, r->workload_key.n, &there);
    if (!there) return true;
    const cd_schedule_db_slot *e = rd->db->entry[at];
    return e->reading == rd->reading &&
           (seconds < e->s.measured_s || (isnan(e->s.measured_s) && !isnan(seconds)));
}

/* What was measured for a task whose schedule this reading brings. */
static cdmpp_status remember(const reader *rd, const cd_record *r, cd_str line, cdmpp_err *err) {
    bool there;
    const size_t at = cd_schedule_db_place(rd->db, r->workload_key.p, r->workload_key.n, &there);
    if (!there || rd->db->entry[at]->reading != rd->reading) return CDMPP_OK;
    return cd_schedule_db_tried(rd->db->entry[at], line, err);
}

static cdmpp_status keep(reader *rd, const cd_record *r, cd_str line, const char *path, long number,
                         double seconds, cdmpp_err *err) {
    if (r->origin.n)
        return cd_schedule_db_put(rd->db, r->workload_key, line, r->origin, true, seconds,
                                  rd->reading, err);
    const size_t n = strlen(path) + 32;
    char *origin = cd_arena_alloc(&rd->scratch, n, 1);
    if (!origin) return CD_FAIL(err, ENOMEM, "origin");
    snprintf(origin, n, "%s:%ld", path, number);
    return cd_schedule_db_put(rd->db, r->workload_key, line, (cd_str){origin, strlen(origin)},
                              false, seconds, rd->reading, err);
}

static cdmpp_status take(reader *rd, cd_record *r, cd_str line, const char *path, long number,
                         cdmpp_err *err) {
    double seconds;
    if (!is_wanted(rd->io, r, path)) return CDMPP_OK;
    rd->io->wanted++;
    CD_TRY(time_of(&rd->scratch, r, &seconds, err));
    rd->io->failed += isnan(seconds) ? 1 : 0;
    if (isnan(seconds) && !r->origin.n) return CDMPP_OK;
    if (is_better(rd, r, seconds)) CD_TRY(keep(rd, r, line, path, number, seconds, err));
    return isnan(seconds) ? CDMPP_OK : remember(rd, r, line, err);
}

static void complain(reader *rd, cdmpp_err *why, const char *path, long number) {
    rd->io->bad++;
    cd_err_add_place(why, path, number);
    if (rd->io->warn) rd->io->warn(rd->io->ctx, why);
}

static cdmpp_status read_line(reader *rd, const char *line, size_t len, const char *path,
                              long number, cdmpp_err *err) {
    cdmpp_err why = {0};
    cd_record r;
    rd->io->lines++;
    cd_arena_reset(&rd->scratch);
    const cdmpp_status st = cd_record_read(&rd->scratch, line, len, &r, &why);
    if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "record");
    if (!st && memchr(r.workload_key.p, 0, r.workload_key.n))
        cd_err_raise(&why, CDMPP_ESCHEMA, __FILE__, __LINE__, "a workload key with a NUL");
    else if (!st) return take(rd, &r, (cd_str){line, len}, path, number, err);
    complain(rd, &why, path, number);
    return CDMPP_OK;
}

/* A line that is too long is counted as bad and passed over, like one that cannot be parsed. */
static cdmpp_status read_file(reader *rd, const char *path, cdmpp_err *err) {
    cd_file_lines *in = NULL;
    char *line;
    size_t len;
    CD_TRY(cd_file_lines_open(path, CD_RECORD_LINE_MAX, &in, err));
    cdmpp_status st = CDMPP_OK;
    while (!st) {
        cdmpp_err why = {0};
        const cdmpp_status got = cd_file_lines_next(in, &line, &len, &why);
        if (got == CDMPP_ERANGE) {
            rd->io->lines++;
            complain(rd, &why, path, cd_file_lines_number(in));
        } else if (got) {
            st = got;
            if (err) *err = why;
        } else if (!line) break;
        else if (!cd_record_is_comment(line, len))
            st = read_line(rd, line, len, path, cd_file_lines_number(in), err);
    }
    cd_file_lines_close(in);
    return st;
}

cdmpp_status cd_schedule_db_read_logs(cd_schedule_db *b, const char *const *path, size_t n,
                                      cd_schedule_db_logs *io, cdmpp_err *err) {
    cd_inputs in = {0};
    reader rd = {.db = b, .io = io, .reading = ++b->readings};
    cdmpp_status st = cd_inputs_list(&(cd_extract){.input = path, .n_input = n}, &in, err);
    for (size_t i = 0; !st && i < in.n; i++) st = read_file(&rd, in.path[i], err);
    for (size_t i = 0; i < b->n; i++) {
        if (b->entry[i]->reading != rd.reading) continue;
        cd_schedule_db_show_slower(b->entry[i]);
        if (io->elsewhere) b->entry[i]->s.measured_s = (double)NAN;
    }
    cd_inputs_free(&in);
    cd_arena_free(&rd.scratch);
    return st;
}
