/* The records of chosen programs, from the logs that the data set was made from, and the choice in
 * words and as JSON. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "learner/train/train_internal.h"

typedef struct {
    uint64_t line;
    uint32_t file;
    size_t nth; /* in the order of choice */
} place;

static int by_place(const void *a, const void *b) {
    const place *p = a, *q = b;
    if (p->file != q->file) return p->file < q->file ? -1 : 1;
    return (p->line > q->line) - (p->line < q->line);
}

/* A log that has changed since would give other programs. */
static cdmpp_status check_record(cd_arena *a, const char *line, size_t n, const char *task,
                                 cdmpp_err *err) {
    cd_record r;
    cd_arena_reset(a);
    CD_TRY(cd_record_read(a, line, n, &r, err));
    if (r.workload_key.n == strlen(task) && !memcmp(r.workload_key.p, task, r.workload_key.n))
        return CDMPP_OK;
    return CD_FAIL(err, ESCHEMA,
                   "expected the record that the data set was made from, of task %.120s, found one "
                   "of %.*s: the log has changed",
                   task, (int)(r.workload_key.n > 120 ? 120 : r.workload_key.n), r.workload_key.p);
}

/* Places p (n) of one file, in the order of its lines. */
static cdmpp_status read_places(const cd_dataset *d, const cd_choice *ch, const char *path,
                                const place *p, size_t n, cd_arena *a, cd_str *text,
                                cdmpp_err *err) {
    cd_file_lines *l = NULL;
    cd_arena work = {0};
    char *line = NULL;
    size_t len = 0, k = 0;
    cdmpp_status st = cd_file_lines_open(path, CD_RECORD_LINE_MAX, &l, err);
    while (!st && k < n) {
        st = cd_file_lines_next(l, &line, &len, err);
        if (st == CDMPP_ERANGE && (uint64_t)cd_file_lines_number(l) < p[k].line) st = CDMPP_OK;
        else if (!st && !line)
            st = cd_err_at(
                err,
                CD_FAIL(
                    err, ESCHEMA,
                    "expected line %llu, a record that the data set was made from, found the end",
                    (unsigned long long)p[k].line),
                path, cd_file_lines_number(l));
        else if (!st && (uint64_t)cd_file_lines_number(l) == p[k].line) {
            st = cd_err_at(
                err,
                check_record(&work, line, len, d->task_name[d->task[ch->index[p[k].nth]]], err),
                path, (long)p[k].line);
            const char *copy = cd_str_dup(a, (cd_str){line, len});
            if (!st && !copy) st = CD_FAIL(err, ENOMEM, "a record");
            text[p[k++].nth] = (cd_str){copy, len};
        }
    }
    cd_file_lines_close(l);
    cd_arena_free(&work);
    return st;
}

static cdmpp_status read_all(const cd_config *c, const cd_dataset *d, const cd_choice *ch,
                             cd_arena *a, cd_str *text, cdmpp_err *err) {
    place *p = CD_NEWN(a, place, ch->n);
    if (!p) return CD_FAIL(err, ENOMEM, "%zu records", ch->n);
    for (size_t k = 0; k < ch->n; k++)
        p[k] = (place){d->source_line[ch->index[k]], d->source_file[ch->index[k]], k};
    if (ch->n) qsort(p, ch->n, sizeof *p, by_place);
    for (size_t k = 0, end; k < ch->n; k = end) {
        for (end = k; end < ch->n && p[end].file == p[k].file; end++) {
        }
        const char *path = cd_config_beside(a, c->path ? c->path : "", d->source_name[p[k].file]);
        if (!path) return CD_FAIL(err, ENOMEM, "path");
        if (access(path, F_OK) != 0)
            return CD_FAIL(err, ENODATA,
                           "expected the log that the data set was made from, found no file '%s': "
                           "run this where cdmpp-extract ran, or choose tasks",
                           path);
        CD_TRY(read_places(d, ch, path, p + k, end - k, a, text, err));
    }
    return CDMPP_OK;
}

static cdmpp_status put_records(const cd_config *c, const cd_dataset *d, const cd_choice *ch,
                                cd_arena *a, cd_buf *out, cdmpp_err *err) {
    cd_str *text = CD_NEWN(a, cd_str, ch->n);
    if (!text) return CD_FAIL(err, ENOMEM, "%zu records", ch->n);
    CD_TRY(read_all(c, d, ch, a, text, err));
    for (size_t k = 0; k < ch->n; k++) {
        cd_buf_put(out, text[k].p, text[k].n);
        cd_buf_puts(out, "\n");
    }
    return CDMPP_OK;
}

cdmpp_status cd_choose_put(const cd_config *c, const cd_dataset *d, const cd_choice *ch,
                           cd_buf *out, cdmpp_err *err) {
    cd_arena a = {0};
    cdmpp_status st = CDMPP_OK;
    for (size_t k = 0; ch->tasks && k < ch->n; k++)
        cd_buf_putf(out, "%s\n", d->task_name[ch->index[k]]);
    if (!ch->tasks) st = put_records(c, d, ch, &a, out, err);
    cd_arena_free(&a);
    if (!st && out->oom) st = CD_FAIL(err, ENOMEM, "%zu records", ch->n);
    return st;
}

/* ---- in words ---- */
static size_t count_tasks(const cd_dataset *d, const cd_choice *ch) {
    size_t n = 0;
    for (size_t k = 0; k < ch->n; k++) {
        size_t before = 0;
        while (before < k && d->task[ch->index[before]] != d->task[ch->index[k]]) before++;
        n += before == k;
    }
    return n;
}

void cd_choose_text(cd_buf *b, const cd_dataset *d, const cd_choice *ch) {
    cd_buf_putf(b, "%zu %s", ch->n, ch->tasks ? "tasks" : "programs");
    if (!ch->tasks) cd_buf_putf(b, " of %zu tasks", count_tasks(d, ch));
    cd_buf_putf(b,
                " are chosen. By their features they stand for %zu programs of the training part",
                ch->n_drawn);
    if (ch->n_drawn < ch->n_candidate) cd_buf_putf(b, ", drawn from its %zu", ch->n_candidate);
    cd_buf_puts(b, ".\n");
    if (!ch->tasks)
        cd_buf_putf(b,
                    "None of them was run now. To measure them took about %.3g s on the device of "
                    "the data, without compiling.\n",
                    ch->seconds);
}

void cd_choose_json(cd_buf *b, const cd_dataset *d, const cd_choice *ch) {
    cd_json_writer w = {.out = b};
    cd_json_write_open(&w, '{');
    cd_json_write_member_int(&w, "candidates", (int64_t)ch->n_candidate);
    cd_json_write_member_int(&w, "drawn", (int64_t)ch->n_drawn);
    if (!ch->tasks) cd_json_write_member_real(&w, "seconds", ch->seconds);
    cd_json_write_key(&w, ch->tasks ? "tasks" : "programs");
    cd_json_write_open(&w, '[');
    for (size_t k = 0; k < ch->n; k++) {
        const uint32_t i = ch->index[k];
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "workload_key", d->task_name[ch->tasks ? i : d->task[i]]);
        if (!ch->tasks) {
            cd_json_write_member_str(&w, "file", d->source_name[d->source_file[i]]);
            cd_json_write_member_int(&w, "line", (int64_t)d->source_line[i]);
            cd_json_write_member_real(&w, "seconds", cd_choose_seconds(d->latency_s[i]));
        }
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}
