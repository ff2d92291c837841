/* The schedule database: entries sorted by key, found by bisection, and the file of records that it
 * is written to. */
#include "predictor/estimate/schedule_db.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "dataset/extract/extract.h"
#include "predictor/estimate/estimate.h"
#include "predictor/estimate/estimate_internal.h"
#include "profiler/store/store.h"

/* The other measured records of a task: few of them, those with the smallest hashes, so that the
 * order of files and lines does not change which. */

enum { MOST = CD_SCHEDULE_DB_SLOWER + 1 }; /* the fastest is one of them, or not */

static void schedule_db_free_tried(cd_schedule_db_slot *e) {
    for (uint32_t i = 0; i < e->n_tried; i++) cd_mem_free(e->tried[i].line);
    cd_mem_free(e->tried);
    cd_mem_free(e->slower);
    e->tried = NULL;
    e->slower = NULL;
    e->n_tried = 0;
    e->of_tried = 0;
}

static bool room(cd_schedule_db_slot *e) {
    if (!e->tried) e->tried = cd_mem_zalloc(MOST, sizeof *e->tried);
    if (!e->slower) e->slower = cd_mem_zalloc(MOST, sizeof *e->slower);
    return e->tried && e->slower;
}

/* Length of a line without the origin that a database's file adds: with and without it, it is the
 * same record. */
static size_t without_origin(const char *p, size_t n) {
    static const char mark[] = ", \"origin\": ";
    for (size_t i = n; i-- > 0;)
        if (n - i >= sizeof mark - 1 && !memcmp(p + i, mark, sizeof mark - 1)) return i;
    while (n && p[n - 1] != '}') n--;
    return n ? n - 1 : 0;
}

static bool same_record(const char *a, size_t n, const char *b, size_t m) {
    n = without_origin(a, n);
    return n == without_origin(b, m) && !memcmp(a, b, n);
}

/* A measured record of a task that has an entry. Errors: ENOMEM, nothing has changed then. */
static cdmpp_status schedule_db_tried(cd_schedule_db_slot *e, cd_str line, cdmpp_err *err) {
    cd_hash h = cd_hash_start();
    cd_hash_add(&h, line.p, without_origin(line.p, line.n));
    if (!room(e)) return CD_FAIL(err, ENOMEM, "records of a task");
    uint32_t at = e->n_tried;
    while (at && e->tried[at - 1].hash > h.a) at--;
    /* a file named twice, a log beside the database made of it */
    if (at && e->tried[at - 1].hash == h.a) return CDMPP_OK;
    if (at == MOST) {
        e->of_tried++;
        return CDMPP_OK;
    }
    char *copy = cd_mem_alloc(line.n + 1);
    if (!copy) return CD_FAIL(err, ENOMEM, "record of %zu bytes", line.n);
    if (line.n) memcpy(copy, line.p, line.n);
    copy[line.n] = 0;
    if (e->n_tried == MOST) cd_mem_free(e->tried[--e->n_tried].line);
    memmove(e->tried + at + 1, e->tried + at, (e->n_tried - at) * sizeof *e->tried);
    e->tried[at] = (cd_schedule_db_trial){h.a, copy, line.n};
    e->n_tried++;
    e->of_tried++;
    return CDMPP_OK;
}

/* Show in `s` what was tried but the entry's own line. */
static void schedule_db_show_slower(cd_schedule_db_slot *e) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_tried && n < CD_SCHEDULE_DB_SLOWER; i++)
        if (!same_record(e->tried[i].line, e->tried[i].len, e->line, e->s.len))
            e->slower[n++] = (cd_schedule_db_line){e->tried[i].line, e->tried[i].len};
    e->s.slower = e->slower;
    e->s.n_slower = n;
    e->s.of_slower = e->of_tried ? e->of_tried - 1 : 0;
}

cdmpp_status cd_schedule_db_new(cd_schedule_db **out, cdmpp_err *err) {
    *out = cd_mem_zalloc(1, sizeof **out);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "schedule database");
}

static void free_texts(cd_schedule_db_slot *e) {
    cd_mem_free(e->key);
    cd_mem_free(e->line);
    cd_mem_free(e->origin);
}

void cd_schedule_db_free(cd_schedule_db *b) {
    if (!b) return;
    for (size_t i = 0; i < b->n; i++) {
        free_texts(b->entry[i]);
        schedule_db_free_tried(b->entry[i]);
        cd_mem_free(b->entry[i]);
    }
    cd_mem_free(b->entry);
    cd_mem_free(b);
}

size_t cd_schedule_db_count(const cd_schedule_db *b) { return b->n; }
const cd_schedule_db_entry *cd_schedule_db_at(const cd_schedule_db *b, size_t i) {
    return &b->entry[i]->s;
}

static size_t schedule_db_place(const cd_schedule_db *b, const char *key, size_t n, bool *there);

const cd_schedule_db_entry *cd_schedule_db_find(const cd_schedule_db *b, const char *key) {
    bool there;
    const size_t at = schedule_db_place(b, key, strlen(key), &there);
    return there ? &b->entry[at]->s : NULL;
}

/* Keys have no NUL, so a shorter one that agrees so far is smaller. */
static int compare(const char *key, const char *p, size_t n) {
    const int c = strncmp(key, p, n);
    return c ? c : key[n] != 0;
}

/* Where the key is, or would be. */
static size_t schedule_db_place(const cd_schedule_db *b, const char *key, size_t n, bool *there) {
    size_t lo = 0, hi = b->n;
    *there = false;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const int c = compare(b->entry[mid]->key, key, n);
        if (!c) *there = true;
        if (c < 0) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

/* ---- filling ---- */
static char *copied(cd_str s) {
    char *p = cd_mem_alloc(s.n + 1);
    if (!p) return NULL;
    if (s.n) memcpy(p, s.p, s.n);
    p[s.n] = 0;
    return p;
}

/* An empty entry at a place; NULL: no memory. */
static cd_schedule_db_slot *open_at(cd_schedule_db *b, size_t at) {
    cd_schedule_db_slot *e = CD_GROW(b->entry, b->n, b->cap) ? NULL : cd_mem_zalloc(1, sizeof *e);
    if (!e) return NULL;
    memmove(b->entry + at + 1, b->entry + at, (b->n - at) * sizeof(cd_schedule_db_slot *));
    b->entry[at] = e;
    b->n++;
    return e;
}

/* All copies are made before anything changes, so that out of memory leaves the entry as it was. */
cdmpp_status cd_schedule_db_put(cd_schedule_db *b, cd_str key, cd_str line, cd_str origin,
                                bool says, double measured_s, uint32_t reading, cdmpp_err *err) {
    bool there;
    const size_t at = schedule_db_place(b, key.p, key.n, &there);
    cd_schedule_db_slot x = {.key = copied(key),
                             .line = copied(line),
                             .origin = copied(origin),
                             .reading = reading,
                             .says = says};
    cd_schedule_db_slot *e = !x.key || !x.line || !x.origin ? NULL
                             : there                        ? b->entry[at]
                                                            : open_at(b, at);
    if (!e) {
        free_texts(&x);
        return CD_FAIL(err, ENOMEM, "schedule of %zu bytes", line.n);
    }
    free_texts(e);
    if (e->reading != reading) schedule_db_free_tried(e);
    x.tried = e->tried, x.n_tried = e->n_tried, x.of_tried = e->of_tried, x.slower = e->slower;
    x.s = (cd_schedule_db_entry){
        .key = x.key, .line = x.line, .len = line.n, .origin = x.origin, .measured_s = measured_s};
    *e = x;
    return CDMPP_OK;
}

cdmpp_status cd_schedule_db_add(cd_schedule_db *b, const cd_record *r, const char *origin,
                                double measured_s, cdmpp_err *err) {
    cd_buf line = {0};
    cd_record with = *r;
    with.origin = (cd_str){origin, strlen(origin)};
    cdmpp_status st = cd_record_write(&line, &with, err);
    if (!st)
        st = cd_schedule_db_put(b, r->workload_key, (cd_str){line.p, line.n - 1}, with.origin,
                                with.origin.n > 0, measured_s, 0, err);
    cd_buf_free(&line);
    return st;
}

/* ---- the file ---- */
/* A log's line as it is, with its origin put behind its last member. */
static void put_line(cd_buf *out, const cd_schedule_db_slot *e) {
    size_t n = e->s.len;
    if (e->says) {
        cd_buf_put(out, e->line, n);
        cd_buf_puts(out, "\n");
        return;
    }
    while (n && e->line[n - 1] != '}') n--;
    cd_buf_put(out, e->line, n ? n - 1 : 0);
    cd_buf_puts(out, ", \"origin\": ");
    cd_buf_put_json_str(out, e->origin, strlen(e->origin));
    cd_buf_puts(out, "}\n");
}

cdmpp_status cd_schedule_db_write(const cd_schedule_db *b, const char *path, cdmpp_err *err) {
    cd_buf out = {0};
    for (size_t i = 0; i < b->n; i++) put_line(&out, b->entry[i]);
    cdmpp_status st = CDMPP_OK;
    if (out.oom) st = CD_FAIL(err, ENOMEM, "schedule database of %zu tasks", b->n);
    else st = cd_file_write(path, out.n ? out.p : "", out.n, err);
    cd_buf_free(&out);
    return st;
}

/* Measure logs and files of schedule databases into a database: of each task the record with the
 * least median of its repeats. */

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
    const size_t at = schedule_db_place(rd->db, r->workload_key.p, r->workload_key.n, &there);
    if (!there) return true;
    const cd_schedule_db_slot *e = rd->db->entry[at];
    return e->reading == rd->reading &&
           (seconds < e->s.measured_s || (isnan(e->s.measured_s) && !isnan(seconds)));
}

/* What was measured for a task whose schedule this reading brings. */
static cdmpp_status remember(const reader *rd, const cd_record *r, cd_str line, cdmpp_err *err) {
    bool there;
    const size_t at = schedule_db_place(rd->db, r->workload_key.p, r->workload_key.n, &there);
    if (!there || rd->db->entry[at]->reading != rd->reading) return CDMPP_OK;
    return schedule_db_tried(rd->db->entry[at], line, err);
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
        schedule_db_show_slower(b->entry[i]);
        if (io->elsewhere) b->entry[i]->s.measured_s = (double)NAN;
    }
    cd_inputs_free(&in);
    cd_arena_free(&rd.scratch);
    return st;
}

/* A store's best records as schedules. */

enum { PATH = 1024 };

typedef struct {
    cd_schedule_db *to;
    const char *path;
    const char *const *key; /* (n) sorted */
    size_t n;
    cd_arena arena;
} from_store;

static bool wanted(const from_store *f, const char *key) {
    return bsearch(&key, f->key, f->n, sizeof key, cd_sort_by_text) != NULL;
}

static cdmpp_status on_hit(void *ctx, const cd_store_hit *hit, cdmpp_err *err) {
    from_store *s = ctx;
    cd_buf b = {0};
    cd_record r;
    char origin[PATH];
    cd_arena_reset(&s->arena);
    if (!hit->row.has_steps) return CDMPP_OK;
    cdmpp_status st = cd_store_put_record(&b, &s->arena, hit, err);
    if (!st) {
        st = cd_record_read(&s->arena, b.p, strcspn(b.p, "\n"), &r, err);
        char *key = st ? NULL : cd_str_dup(&s->arena, r.workload_key);
        if (key && wanted(s, key) && !cd_schedule_db_find(s->to, key)) { /* they come best first */
            snprintf(origin, sizeof origin, "%s#%lld", s->path, (long long)hit->id);
            st = cd_schedule_db_add(s->to, &r, origin, hit->row.latency.median_s, err);
        }
    }
    cd_buf_free(&b);
    return st;
}

cdmpp_status cd_schedule_db_store_read(cd_schedule_db *to, const char *path, const char *device,
                                       const char *const *key, size_t n, cdmpp_err *err) {
    cd_store *s = NULL;
    from_store f = {.to = to, .path = path, .key = key, .n = n};
    const cd_store_filter only = {.device = device, .best_first = true};
    cdmpp_status st = cd_store_open(path, false, &s, err);
    if (!st) st = cd_store_query(s, &only, on_hit, &f, err);
    cd_store_close(s);
    cd_arena_free(&f.arena);
    return cd_err_at(err, st, path, 0);
}
