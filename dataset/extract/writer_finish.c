/* The end of a run: chunks from the journal into an HDF5 file, renamed to OUT. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataset/extract/extract_internal.h"

static cdmpp_status set_crc(const cd_h5 *h, const char *object, uint32_t crc, cdmpp_err *err) {
    return cd_h5_set_u32(h, object, CD_LAYOUT_ATTR_CRC, crc, err);
}

/* --- arrays ---------------------------------------------------------------- */

/* Chunks are compressed already: they are copied into the HDF5 file as they are. */
static cdmpp_status copy_chunks(const cd_writer *w, const cd_h5 *h, cd_layout_array a, hid_t d,
                                uint8_t *buf, cdmpp_err *err) {
    const cd_layout_array_info *info = &cd_layout[a];
    uint64_t first = 0;
    for (size_t i = 0; i < w->journal.n; i++) {
        const cd_journal_entry *e = &w->journal.entry[i];
        if (e->array != a) continue;
        CD_TRY(cd_journal_read(&w->journal, i, buf, err));
        CD_TRY(cd_h5_write_chunk(h, info->path, d, first, info->n_col, buf, e->n_zip, err));
        first += e->n;
    }
    if (first != w->col[a].n)
        return CD_FAIL(err, EIO, "%s: %llu elements in the journal, expected %llu", info->path,
                       (unsigned long long)first, (unsigned long long)w->col[a].n);
    return CDMPP_OK;
}

/* Of no program steps, identities or copies were kept: the 0 that offsets begin with is all there
 * is. */
static bool left_out(const cd_writer *w, cd_layout_array a) {
    const cd_layout_array of = cd_layout_asked_for(a);
    return of != CD_LAYOUT_ARRAY_COUNT &&
           w->col[of].n <= (cd_layout_array_of_ptr(of) == CD_LAYOUT_ARRAY_COUNT ? 0 : 1);
}

static cdmpp_status set_facts_names(const cd_h5 *h, cdmpp_err *err) {
    const char *path = cd_layout[CD_LAYOUT_ARRAY_FACTS].path;
    char names[CD_LAYOUT_NAMES], digest[65];
    for (int set = 0; set < CD_N_FACTS_SET; set++) {
        cd_layout_facts_names((cd_facts_set)set, names);
        cd_facts_cols_digest((cd_facts_set)set, digest);
        CD_TRY(cd_h5_set_text(h, path, cd_layout_facts_attr((cd_facts_set)set, true), digest, err));
        CD_TRY(cd_h5_set_text(h, path, cd_layout_facts_attr((cd_facts_set)set, false), names, err));
    }
    return CDMPP_OK;
}

static cdmpp_status write_array(const cd_writer *w, const cd_h5 *h, cd_layout_array a, uint8_t *buf,
                                cdmpp_err *err) {
    const cd_layout_array_info *info = &cd_layout[a];
    hid_t d = -1;
    CD_TRY(cd_h5_create_chunked(h, info->path, (cd_h5_shape){info->type, w->col[a].n, info->n_col},
                                cd_layout_array_chunk(a), &d, err));
    const cdmpp_status st = copy_chunks(w, h, a, d, buf, err);
    const cdmpp_status st2 = cd_h5_close_array(h, info->path, d, st ? NULL : err);
    if (st || st2) return st ? st : st2;
    CD_TRY(cd_h5_set_text(h, info->path, "units", info->units, err));
    CD_TRY(cd_h5_set_text(h, info->path, "description", info->meaning, err));
    if (a == CD_LAYOUT_ARRAY_LATENCY)
        CD_TRY(cd_h5_set_text(h, info->path, "statistic", "median", err));
    if (a == CD_LAYOUT_ARRAY_FACTS) CD_TRY(set_facts_names(h, err));
    return set_crc(h, info->path, w->col[a].crc, err);
}

static cdmpp_status write_arrays(const cd_writer *w, const cd_h5 *h, cdmpp_err *err) {
    size_t most = 1;
    for (size_t i = 0; i < w->journal.n; i++)
        if (w->journal.entry[i].n_zip > most) most = w->journal.entry[i].n_zip;
    uint8_t *buf = cd_mem_alloc(most);
    cdmpp_status st = buf ? CDMPP_OK : CD_FAIL(err, ENOMEM, "chunk of %zu bytes", most);
    for (int a = 0; a < CD_LAYOUT_ARRAY_COUNT && st == CDMPP_OK; a++)
        if (!left_out(w, (cd_layout_array)a)) st = write_array(w, h, (cd_layout_array)a, buf, err);
    cd_mem_free(buf);
    return st;
}

/* --- text ------------------------------------------------------------------ */

static cdmpp_status write_text(const cd_h5 *h, const char *object, size_t n,
                               const char *const *text, cdmpp_err *err) {
    CD_TRY(cd_h5_write_text(h, object, n, text, err));
    return set_crc(h, object, cd_layout_text_crc(n, text), err);
}

static cdmpp_status write_names(const cd_h5 *h, cdmpp_err *err) {
    const char *name[CD_N_COL];
    for (size_t i = 0; i < CD_N_COL; i++) name[i] = cd_cols()[i].name;
    return write_text(h, "/features/names", CD_N_COL, name, err);
}

static const char *const *dict_text(const cd_dict *d) { return (const char *const *)d->text; }

/* The content digest is over rows, labels and keys, not over how they were made. */
static cdmpp_status write_root(const cd_writer *w, const cd_h5 *h, const cd_finish *f,
                               cdmpp_err *err) {
    uint64_t n[CD_LAYOUT_ARRAY_COUNT];
    uint32_t crc[CD_LAYOUT_ARRAY_COUNT], dict_crc[CD_LAYOUT_DICT_COUNT];
    char digest[65];
    for (int a = 0; a < CD_LAYOUT_ARRAY_COUNT; a++) n[a] = w->col[a].n, crc[a] = w->col[a].crc;
    for (int d = 0; d < CD_LAYOUT_DICT_COUNT; d++)
        dict_crc[d] = cd_layout_text_crc(w->dict[d].n, dict_text(&w->dict[d]));
    cd_layout_content_digest(n, crc, dict_crc, digest);
    CD_TRY(cd_h5_set_text(h, "/", "schema", CD_LAYOUT_SCHEMA, err));
    CD_TRY(cd_h5_set_u32(h, "/", "schema_version", CD_LAYOUT_SCHEMA_VERSION, err));
    CD_TRY(cd_h5_set_text(h, "/", "tool_version", "cdmpp " CDMPP_VERSION, err));
    CD_TRY(cd_h5_set_text(h, "/", "command_line", f->command_line, err));
    CD_TRY(cd_h5_set_text(h, "/", "source_digest", f->source_digest, err));
    CD_TRY(cd_h5_set_text(h, "/", "content_digest", digest, err));
    cd_cols_digest(digest);
    return cd_h5_set_text(h, "/", "feature_digest", digest, err);
}

/* --- networks -------------------------------------------------------------- */

typedef struct net_row {
    const char *name;
    uint32_t net, task;
    int64_t weight;
} net_row;

static int by_name_and_task(const void *a, const void *b) {
    const net_row *x = a, *y = b;
    const int c = strcmp(x->name, y->name);
    return c ? c : (x->task > y->task) - (x->task < y->task);
}

/* Sorted rows of the tasks that occur, each pair once; names in order. */
static void collect(const cd_writer *w, const cd_finish *f, net_row *row, const char **name,
                    size_t *n_row, size_t *n_name) {
    size_t n = 0, m = 0;
    for (size_t i = 0; i < f->n_net; i++) {
        const cd_str task = {f->net[i].task, strlen(f->net[i].task)};
        row[n] = (net_row){f->net[i].network, 0, 0, f->net[i].weight};
        if (cd_dict_find(&w->dict[CD_LAYOUT_DICT_TASK], task, &row[n].task)) n++;
    }
    qsort(row, n, sizeof *row, by_name_and_task);
    *n_name = 0;
    for (size_t i = 0; i < n; i++) {
        if (m && by_name_and_task(&row[m - 1], &row[i]) == 0) continue;
        if (!m || strcmp(row[m - 1].name, row[i].name) != 0) name[(*n_name)++] = row[i].name;
        row[m] = row[i];
        row[m++].net = (uint32_t)(*n_name - 1);
    }
    *n_row = m;
}

static cdmpp_status write_net_rows(const cd_h5 *h, const net_row *row, size_t n, uint32_t *u,
                                   int64_t *v, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) u[i] = row[i].net;
    CD_TRY(cd_h5_write(h, "/network/net", (cd_h5_shape){CD_H5_U32, n, 0}, u, err));
    for (size_t i = 0; i < n; i++) u[i] = row[i].task;
    CD_TRY(cd_h5_write(h, "/network/task", (cd_h5_shape){CD_H5_U32, n, 0}, u, err));
    for (size_t i = 0; i < n; i++) v[i] = row[i].weight;
    CD_TRY(cd_h5_write(h, "/network/weight", (cd_h5_shape){CD_H5_I64, n, 0}, v, err));
    return cd_h5_set_text(h, "/network/weight", "units", "occurrences of the task in the network",
                          err);
}

/* Entries are sorted, so that the file does not depend on the order of the task files. */
static cdmpp_status write_networks(const cd_writer *w, const cd_h5 *h, const cd_finish *f,
                                   cdmpp_err *err) {
    const size_t cap = f->n_net ? f->n_net : 1;
    cd_arena a = {0};
    net_row *row = CD_NEWN(&a, net_row, cap);
    const char **name = CD_NEWN(&a, const char *, cap);
    uint32_t *u = CD_NEWN(&a, uint32_t, cap);
    int64_t *v = CD_NEWN(&a, int64_t, cap);
    size_t n = 0, n_name = 0;
    cdmpp_status st = a.oom ? CD_FAIL(err, ENOMEM, "%zu network entries", cap) : CDMPP_OK;
    if (!st) collect(w, f, row, name, &n, &n_name);
    if (!st) st = write_text(h, "/network/names", n_name, name, err);
    if (!st) st = write_net_rows(h, row, n, u, v, err);
    cd_arena_free(&a);
    return st;
}

/* --- the file -------------------------------------------------------------- */

static cdmpp_status write_parts(const cd_writer *w, const cd_h5 *h, const cd_finish *f,
                                cdmpp_err *err) {
    CD_TRY(write_root(w, h, f, err));
    CD_TRY(write_arrays(w, h, err));
    CD_TRY(write_names(h, err));
    for (int d = 0; d < CD_LAYOUT_DICT_COUNT; d++)
        CD_TRY(write_text(h, cd_layout_dict_path[d], w->dict[d].n, dict_text(&w->dict[d]), err));
    return write_networks(w, h, f, err);
}

/* HDF5 does not bear a disk that fills up under it: ask for the space before.
 * The file is as long as the journal plus indices and text. */
static cdmpp_status reserve(const cd_writer *w, const char *path, cdmpp_err *err) {
    off_t need = (off_t)w->journal.length + (1 << 18);
    for (int d = 0; d < CD_LAYOUT_DICT_COUNT; d++) {
        size_t width = 1;
        for (size_t i = 0; i < w->dict[d].n; i++) {
            const size_t len = strlen(w->dict[d].text[i]);
            if (len > width) width = len;
        }
        need += (off_t)(width * w->dict[d].n);
    }
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    const int no = fd < 0 ? errno : posix_fallocate(fd, 0, need);
    if (fd >= 0) close(fd);
    (void)unlink(path);
    if (no == 0) return CDMPP_OK;
    return cd_err_at(
        err, CD_FAIL(err, EIO, "cannot reserve %lld bytes: %s", (long long)need, strerror(no)),
        path, 0);
}

static cdmpp_status write_file(const cd_writer *w, const char *path, const cd_finish *f,
                               cdmpp_err *err) {
    cd_h5 h;
    CD_TRY(reserve(w, path, err));
    CD_TRY(cd_h5_create(&h, path, err));
    const cdmpp_status st = write_parts(w, &h, f, err);
    const cdmpp_status st2 = cd_h5_close(&h, st ? NULL : err);
    return st ? st : st2;
}

static cdmpp_status sync_path(const char *path, cdmpp_err *err) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool ok = fd >= 0 && fsync(fd) == 0;
    const int no = errno;
    if (fd >= 0) close(fd);
    return ok ? CDMPP_OK
              : cd_err_at(err, CD_FAIL(err, EIO, "cannot write: %s", strerror(no)), path, 0);
}

/* The list replaces an old one in one step. */
static cdmpp_status copy_skips(const cd_writer *w, const char *path, cdmpp_err *err) {
    char tmp[4200], block[16384];
    uint64_t at = 0;
    snprintf(tmp, sizeof tmp, "%s.new", path);
    const int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    while (fd >= 0 && at < w->n_skip_bytes) {
        const ssize_t n = pread(w->skip_fd, block, sizeof block, (off_t)at);
        if (n <= 0 || write(fd, block, (size_t)n) != n) break;
        at += (uint64_t)n;
    }
    const bool ok = fd >= 0 && at == w->n_skip_bytes && close(fd) == 0 && rename(tmp, path) == 0;
    if (ok) return CDMPP_OK;
    const cdmpp_status st = CD_FAIL(err, EIO, "cannot write: %s", strerror(errno));
    (void)unlink(tmp);
    return cd_err_at(err, st, path, 0);
}

/* OUT.skipped.tsv is a copy, so that a kill in between can be repeated. */
static cdmpp_status publish_skips(const cd_writer *w, cdmpp_err *err) {
    char path[4096];
    snprintf(path, sizeof path, "%s.skipped.tsv", w->path);
    if (w->n_skip_bytes == 0) {
        if (unlink(path) == 0 || errno == ENOENT) return CDMPP_OK;
        return cd_err_at(err, CD_FAIL(err, EIO, "cannot remove: %s", strerror(errno)), path, 0);
    }
    return copy_skips(w, path, err);
}

/* OUT appears by one rename, when everything is on disk. */
cdmpp_status cd_writer_finish(cd_writer *w, const cd_finish *f, cdmpp_err *err) {
    char path[4096];
    cd_writer_path(w, "data.h5", path);
    CD_TRY(cd_writer_flush(w, err));
    cdmpp_status st = write_file(w, path, f, err);
    if (st == CDMPP_OK) st = sync_path(path, err);
    if (st) {
        (void)unlink(path);
        return st;
    }
    CD_TRY(publish_skips(w, err));
    if (rename(path, w->path) != 0)
        return cd_err_at(err, CD_FAIL(err, EIO, "cannot replace the file: %s", strerror(errno)),
                         w->path, 0);
    cd_writer_remove_parts(w);
    return CDMPP_OK;
}

cdmpp_status cd_writer_finish_empty(cd_writer *w, cdmpp_err *err) {
    CD_TRY(cd_writer_flush(w, err));
    CD_TRY(publish_skips(w, err));
    cd_writer_remove_parts(w);
    return CDMPP_OK;
}
