/* The identities of all inputs, a part at a time. A part holds those whose first bits lie in its
 * range, so all records of a program are in one part, and parts in order, each sorted, are the
 * order of all. The inputs are read once for each part; nothing is kept on disk. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/extract/copies_internal.h"

enum { MAX_PART = 16 }; /* reading takes time: beyond 16 parts they grow */

cdmpp_status cd_copies_read(const cd_h5 *h, cd_layout_array a, uint64_t at, size_t n, void *out,
                            cdmpp_err *err) {
    return cd_h5_read(h, cd_layout[a].path, (cd_h5_shape){cd_layout[a].type, n, cd_layout[a].n_col},
                      at, out, err);
}

static cdmpp_status check_input(const cd_h5 *h, cdmpp_err *err) {
    char digest[65];
    CD_TRY(cd_layout_check(h, digest, err));
    const char *path = cd_layout[CD_LAYOUT_ARRAY_ID].path,
               *what = "the file has no identities of programs: extract the logs again, with "
                       "cdmpp-extract --ids";
    if (cd_h5_has(h, path) && !cd_h5_has(h, cd_layout[CD_LAYOUT_ARRAY_COPIES].path))
        return CDMPP_OK;
    if (cd_h5_has(h, path)) what = "copies are merged already: give the files of before";
    return cd_err_at(err, cd_err_key(err, CD_FAIL(err, ENODATA, "%s", what), path), h->path, 0);
}

/* The run of each source file: its folder. */
static cdmpp_status read_runs(cd_copies_scan *s, const cd_h5 *h, uint32_t **run, size_t *n,
                              cdmpp_err *err) {
    char **text = NULL;
    CD_TRY(cd_h5_read_text(h, cd_layout_dict_path[CD_LAYOUT_DICT_SOURCE], n, &text, err));
    *run = cd_mem_zalloc(*n + 1, sizeof **run);
    cdmpp_status st = *run ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu names", *n);
    for (size_t i = 0; i < *n && !st; i++) {
        const char *end = strrchr(text[i], '/');
        st = cd_dict_add(&s->run, (cd_str){text[i], end ? (size_t)(end - text[i]) : 0}, &(*run)[i],
                         err);
    }
    cd_mem_free(text);
    return st;
}

static cdmpp_status size_of(const cd_h5 *h, uint64_t *n, cdmpp_err *err) {
    return cd_h5_size(h, cd_layout[CD_LAYOUT_ARRAY_ID].path, CD_H5_U64, 2, n, err);
}

/* Before the parts: may the file be merged, how many records, which runs? */
static cdmpp_status count_file(cd_copies_scan *s, const cd_h5 *h, cdmpp_err *err) {
    uint64_t n;
    size_t n_source;
    uint32_t *run = NULL;
    CD_TRY(check_input(h, err));
    CD_TRY(size_of(h, &n, err));
    s->n += n;
    const cdmpp_status st = read_runs(s, h, &run, &n_source, err);
    cd_mem_free(run);
    return st;
}

/* ---- one part ---- */

static uint32_t part_of(const cd_copies_scan *s, uint64_t id) {
    return (uint32_t)((id >> 32) * s->n_part >> 32);
}

static cdmpp_status add_entry(cd_copies_scan *s, cd_copies_entry e, cdmpp_err *err) {
    if (CD_GROW(s->e, s->n_e, s->cap_e))
        return CD_FAIL(err, ENOMEM, "identities of %zu programs", s->n_e);
    s->e[s->n_e++] = e;
    return CDMPP_OK;
}

static cdmpp_status read_entries(cd_copies_scan *s, const cd_h5 *h, uint64_t n, const uint32_t *run,
                                 size_t n_source, cdmpp_err *err) {
    cd_copies_block *b = s->block;
    for (uint64_t at = 0, m; at < n; at += m) {
        m = n - at < CD_COPIES_BLOCK ? n - at : CD_COPIES_BLOCK;
        CD_TRY(cd_copies_read(h, CD_LAYOUT_ARRAY_ID, at, m, b->id, err));
        CD_TRY(cd_copies_read(h, CD_LAYOUT_ARRAY_LATENCY, at, m, b->v[0], err));
        CD_TRY(cd_copies_read(h, CD_LAYOUT_ARRAY_SOURCE_FILE, at, m, b->u, err));
        for (size_t i = 0; i < m; i++) {
            if (b->u[i] >= n_source) return CD_FAIL(err, ESCHEMA, "an index beyond its dictionary");
            if (part_of(s, b->id[i][0]) != s->part) continue;
            const double t = b->v[0][i] > 0 ? b->v[0][i] : (double)NAN;
            CD_TRY(add_entry(
                s,
                (cd_copies_entry){{b->id[i][0], b->id[i][1]}, s->first + at + i, t, run[b->u[i]]},
                err));
        }
    }
    return CDMPP_OK;
}

static cdmpp_status read_file(cd_copies_scan *s, const cd_h5 *h, cdmpp_err *err) {
    uint64_t n;
    size_t n_source = 0;
    uint32_t *run = NULL;
    const size_t n_run = s->run.n;
    CD_TRY(size_of(h, &n, err));
    cdmpp_status st = read_runs(s, h, &run, &n_source, err);
    if (!st && (n > s->n - s->first || s->run.n != n_run))
        st = CD_FAIL(err, ESCHEMA, "the file has changed since it was read first");
    if (!st) st = read_entries(s, h, n, run, n_source, err);
    s->first += n;
    cd_mem_free(run);
    return st;
}

typedef cdmpp_status reading(cd_copies_scan *s, const cd_h5 *h, cdmpp_err *err);
static cdmpp_status each_input(cd_copies_scan *s, reading *read, cdmpp_err *err) {
    for (size_t i = 0; i < s->n_in; i++) {
        cd_h5 h = {.file = -1};
        cdmpp_status st = cd_h5_open(&h, s->in[i], err);
        if (!st) st = cd_err_at(err, read(s, &h, err), s->in[i], 0);
        (void)cd_h5_close(&h, NULL);
        if (st) return st;
    }
    return CDMPP_OK;
}

/* By identity, then run, then time; what was not measured last in its run. */
static int by_program(const void *a, const void *b) {
    const cd_copies_entry *x = a, *y = b;
    for (int k = 0; k < 2; k++)
        if (x->id[k] != y->id[k]) return x->id[k] < y->id[k] ? -1 : 1;
    if (x->run != y->run) return x->run < y->run ? -1 : 1;
    if (isnan(x->s) != isnan(y->s)) return isnan(x->s) ? 1 : -1;
    if (x->s < y->s || x->s > y->s) return x->s < y->s ? -1 : 1;
    return (x->program > y->program) - (x->program < y->program);
}

/* Identities are hashes, so parts are about as large as each other; more only where a program has
 * very many records. */
static cdmpp_status make_room(cd_copies_scan *s, cdmpp_err *err) {
    const size_t mean = (size_t)(s->n / s->n_part), room = mean + mean / 64 + 64;
    if (room <= s->cap_e) return CDMPP_OK;
    cd_mem_free(s->e);
    s->cap_e = 0;
    s->e = cd_mem_alloc(room * sizeof *s->e);
    if (!s->e) return CD_FAIL(err, ENOMEM, "identities of %zu programs", room);
    s->cap_e = room;
    return CDMPP_OK;
}

cdmpp_status cd_copies_scan_part(cd_copies_scan *s, uint32_t part, cdmpp_err *err) {
    s->part = part;
    s->n_e = 0;
    s->first = 0;
    CD_TRY(make_room(s, err));
    CD_TRY(each_input(s, read_file, err));
    if (s->n_e) qsort(s->e, s->n_e, sizeof *s->e, by_program);
    return CDMPP_OK;
}

/* ---- life ---- */

cdmpp_status cd_copies_scan_open(cd_copies_scan *s, const char *const *in, size_t n,
                                 size_t part_records, cdmpp_err *err) {
    *s = (cd_copies_scan){.in = in, .n_in = n};
    s->block = cd_mem_alloc(sizeof *s->block);
    if (!s->block) return CD_FAIL(err, ENOMEM, "block of labels");
    CD_TRY(each_input(s, count_file, err));
    const uint64_t parts = s->n / part_records + 1;
    s->n_part = parts < MAX_PART ? (uint32_t)parts : MAX_PART;
    return CDMPP_OK;
}

void cd_copies_scan_rest(cd_copies_scan *s) {
    cd_mem_free(s->e);
    s->e = NULL;
    s->n_e = s->cap_e = 0;
}

void cd_copies_scan_close(cd_copies_scan *s) {
    cd_copies_scan_rest(s);
    cd_mem_free(s->block);
    s->block = NULL;
    cd_dict_free(&s->run);
}
