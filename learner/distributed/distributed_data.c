/* One rank of a machine reads the data set; where it keeps it is told to the others by sums with
 * zeros, which are exact. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "learner/distributed/distributed.h"

/* Each rank extracts its share of the files into a part of its own, so that ranks need no lock on a
 * file; rank 0 joins the parts with cd_merge. A finished part has a mark beside it with the
 * fingerprint of its inputs: a rerun after a failure keeps it. */

typedef struct {
    const cd_extract *x;
    const cd_process_group *group;
    const char *path; /* of this rank's part */
    cd_arena *names;  /* of paths */
} work;

/* The mark beside a finished part: the fingerprint of its inputs, and its counts. */
typedef struct {
    char print[65];
    cd_extract_stats stats;
} done;

/* "OUT.rank1of4" + end; NULL: out of memory. */
static char *part_path(const work *w, size_t rank, const char *end) {
    const size_t n = strlen(w->x->out) + strlen(end) + 64;
    char *p = cd_arena_alloc(w->names, n, 1);
    if (p) snprintf(p, n, "%s.rank%zuof%zu%s", w->x->out, rank, w->group->n_rank, end);
    return p;
}

/* ---- the part of this rank ---- */
static bool is_done(const char *mark, const char *part, const char *print, cd_extract_stats *s) {
    char *b;
    size_t n;
    if (access(part, R_OK) != 0 || cd_file_read(mark, 0, &b, &n, NULL)) return false;
    const bool same = n == sizeof(done) && memcmp(b, print, 65) == 0;
    if (same) memcpy(s, b + offsetof(done, stats), sizeof *s);
    cd_mem_free(b);
    return same;
}

/* The fingerprint holds the inputs and the options that change the result: another one, and the
 * part is made again. */
static cdmpp_status extract_part(const work *w, const char *mark, cd_extract_stats *s,
                                 cdmpp_err *err) {
    cd_inputs in;
    done d = {0};
    cd_extract x = *w->x;
    x.out = w->path;
    x.shard = (unsigned)w->group->rank + 1;
    x.n_shard = (unsigned)w->group->n_rank;
    CD_TRY(cd_inputs_list(&x, &in, err));
    cdmpp_status st = cd_inputs_fingerprint(&x, &in, d.print, err);
    cd_inputs_free(&in);
    CD_TRY(st);
    if (!x.restart && is_done(mark, x.out, d.print, s)) return CDMPP_OK;
    CD_TRY(cd_extract_logs(&x, s, err));
    d.stats = *s;
    return cd_file_write(mark, &d, sizeof d, err);
}

/* ---- together ---- */
static void add_stats(cd_extract_stats *to, const cd_extract_stats *s) {
    to->records += s->records;
    to->programs += s->programs;
    to->rows += s->rows;
    to->skipped += s->skipped;
    to->failed += s->failed;
    to->resumed += s->resumed;
    for (int k = 0; k < CDMPP_STATUS_COUNT; k++) to->reason[k] += s->reason[k];
}

/* The counts travel as the bytes of the struct: all ranks run the same program. */
static cdmpp_status gather_stats(const work *w, cd_extract_stats *s, cdmpp_err *err) {
    cd_buf own = {0};
    cd_buf *all = w->group->rank ? NULL : cd_mem_zalloc(w->group->n_rank, sizeof *all);
    cd_buf_put(&own, (const char *)s, sizeof *s);
    cdmpp_status st = own.oom || (!all && !w->group->rank)
                          ? CD_FAIL(err, ENOMEM, "counts of %zu ranks", w->group->n_rank)
                          : CDMPP_OK;
    if (!st) st = w->group->gather(w->group->ctx, &own, all, err);
    for (size_t r = 0; all && r < w->group->n_rank; r++) {
        cd_extract_stats one;
        if (r && !st && all[r].n == sizeof one)
            memcpy(&one, all[r].p, sizeof one), add_stats(s, &one);
        cd_buf_free(&all[r]);
    }
    cd_mem_free(all);
    cd_buf_free(&own);
    return st;
}

/* The lists of skipped lines, one after another. */
static cdmpp_status join_skips(const work *w, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = CDMPP_OK;
    for (size_t r = 0; !st && r < w->group->n_rank; r++) {
        char *p = part_path(w, r, ".skipped.tsv"), *text;
        size_t n;
        if (!p) st = CD_FAIL(err, ENOMEM, "name of a file");
        else if (access(p, F_OK) == 0 && !(st = cd_file_read(p, 0, &text, &n, err)))
            cd_buf_put(&b, text, n), cd_mem_free(text);
    }
    char *out = cd_arena_alloc(w->names, strlen(w->x->out) + 16, 1);
    if (!st && (!out || b.oom)) st = CD_FAIL(err, ENOMEM, "list of skipped lines");
    if (out) sprintf(out, "%s.skipped.tsv", w->x->out);
    if (!st && b.n) st = cd_file_write(out, b.p, b.n, err);
    else if (!st) (void)unlink(out);
    cd_buf_free(&b);
    return st;
}

static void remove_parts(const work *w) {
    static const char *const end[] = {".done", ".skipped.tsv", ""};
    for (size_t r = 0; r < w->group->n_rank; r++)
        for (int k = 0; k < 3; k++) {
            char *p = part_path(w, r, end[k]);
            if (p) (void)unlink(p);
        }
}

static cdmpp_status merge(const work *w, cdmpp_err *err) {
    const size_t n = w->group->n_rank;
    cd_extract_stats s; /* of the merge, which knows less than the ranks do */
    const char **path = CD_NEWN(w->names, const char *, n);
    for (size_t r = 0; path && r < n; r++) path[r] = part_path(w, r, "");
    if (w->names->oom) return CD_FAIL(err, ENOMEM, "names of %zu parts", n);
    CD_TRY(cd_merge(w->x->out, path, n, w->x->command_line, &s, err));
    CD_TRY(join_skips(w, err));
    remove_parts(w);
    return CDMPP_OK;
}

cdmpp_status cd_distributed_extract(const cd_extract *x, const cd_process_group *group,
                                    cd_extract_stats *s, cdmpp_err *err) {
    cd_arena names = {0};
    work w = {x, group, NULL, &names};
    const char *mark = part_path(&w, group->rank, ".done");
    w.path = part_path(&w, group->rank, "");
    cdmpp_status st = mark && w.path ? CDMPP_OK : CD_FAIL(err, ENOMEM, "name of a part");
    if (!st) st = extract_part(&w, mark, s, err);
    st = group->agree(group->ctx, st, err);
    if (!st) st = gather_stats(&w, s, err);
    if (!st && !group->rank) st = merge(&w, err);
    cd_arena_free(&names);
    return st;
}

/* Process and file of each rank: both are below 2^24. Waiting is for agree(), which sleeps; the
 * sums are of what is there. */
static cdmpp_status meet(void *ctx, cdmpp_status st, cd_spool_place *place, cdmpp_err *err) {
    const cd_process_group *g = ctx;
    CD_TRY(g->agree(g->ctx, st, err));
    float *v = cd_mem_zalloc(2 * g->n_rank, sizeof *v);
    st = v ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu ranks", g->n_rank);
    if (v) v[2 * g->rank] = (float)place->process, v[2 * g->rank + 1] = (float)place->file;
    if (v) st = g->allreduce(g->ctx, v, 1, 2 * g->n_rank, err);
    if (!st) *place = (cd_spool_place){(int)v[2 * g->first], (int)v[2 * g->first + 1]};
    cd_mem_free(v);
    return st;
}

cd_dataset_share cd_distributed_data_share(const cd_process_group *ranks) {
    return (cd_dataset_share){ranks->rank == ranks->first, meet, (void *)(uintptr_t)ranks};
}
