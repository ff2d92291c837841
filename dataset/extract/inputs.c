/* The input files of an extraction: folders are searched, shards cut, a fingerprint taken. */
#include "dataset/extract/extract.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cli/cli.h"
#include "base/io/io.h"

static bool ends_with(const char *s, size_t n, const char *end) {
    const size_t m = strlen(end);
    return n >= m && memcmp(s + n - m, end, m) == 0;
}

static bool is_log(const char *path, void *ctx) {
    static const char *const packed[] = {".gz", ".xz", ".zst"};
    static const char *const log[] = {".json", ".jsonl", ".log"};
    size_t n = strlen(path);
    (void)ctx;
    for (size_t i = 0; i < 3; i++)
        if (ends_with(path, n, packed[i])) {
            n -= strlen(packed[i]);
            break;
        }
    for (size_t i = 0; i < 3; i++)
        if (ends_with(path, n, log[i])) return true;
    return false;
}

static cdmpp_status stat_file(const char *path, struct stat *s, cdmpp_err *err) {
    if (stat(path, s) == 0) return CDMPP_OK;
    return cd_err_at(err, CD_FAIL(err, EIO, "cannot open: %s", strerror(errno)), path, 0);
}

/* The files of one argument. */
static cdmpp_status expand(cd_arena *a, const char *arg, const char *const **path, size_t *n,
                           cdmpp_err *err) {
    struct stat s;
    CD_TRY(stat_file(arg, &s, err));
    if (S_ISDIR(s.st_mode)) return cd_file_list(a, arg, is_log, NULL, path, n, err);
    return cd_file_list(a, arg, NULL, NULL, path, n, err);
}

/* Two arrays grow together. */
static cdmpp_status append(cd_inputs *in, size_t *cap, const char *path, cdmpp_err *err) {
    struct stat s;
    CD_TRY(stat_file(path, &s, err));
    if (in->n == *cap) {
        const size_t more = *cap ? 2 * *cap : 64;
        const char **p = cd_mem_realloc(in->path, *cap * sizeof *p, more * sizeof *p);
        if (p) in->path = p;
        uint64_t *q = p ? cd_mem_realloc(in->size, *cap * sizeof *q, more * sizeof *q) : NULL;
        if (!q) return CD_FAIL(err, ENOMEM, "list of %zu files", more);
        in->size = q;
        *cap = more;
    }
    in->path[in->n] = path;
    in->size[in->n++] = (uint64_t)s.st_size;
    in->bytes += (uint64_t)s.st_size;
    return CDMPP_OK;
}

/* A log and its folder, or a log by two names, would count its programs twice. */
static cdmpp_status once(const cd_extract *x, cd_inputs *in, cdmpp_err *err) {
    cd_buf said = {0};
    const size_t all = in->n;
    const cdmpp_status st = cd_file_once(in->path, &in->n, &said, err);
    if (!st && said.n && x->log) cd_log_put(x->log, CD_LOG_WARNING, "%s", said.p);
    cd_buf_free(&said);
    if (st || in->n == all) return st;
    in->bytes = 0;
    for (size_t i = 0; i < in->n; i++) {
        struct stat s;
        CD_TRY(stat_file(in->path[i], &s, err));
        in->bytes += in->size[i] = (uint64_t)s.st_size;
    }
    return CDMPP_OK;
}

static void keep_shard(cd_inputs *in, unsigned shard, unsigned n_shard) {
    const double total = in->bytes ? (double)in->bytes : 1;
    uint64_t before = 0;
    size_t m = 0;
    in->bytes = 0;
    for (size_t i = 0; i < in->n; i++) {
        const double middle = (double)before + (double)in->size[i] / 2;
        before += in->size[i];
        if ((unsigned)(middle * n_shard / total) + 1 != shard) continue;
        in->path[m] = in->path[i];
        in->bytes += in->size[m++] = in->size[i];
    }
    in->n = m;
}

static cdmpp_status list(const cd_extract *x, cd_inputs *in, cdmpp_err *err) {
    size_t cap = 0;
    for (size_t i = 0; i < x->n_input; i++) {
        const char *const *path = NULL;
        size_t n = 0;
        CD_TRY(expand(&in->arena, x->input[i], &path, &n, err));
        if (n == 0)
            return cd_err_at(err, CD_FAIL(err, EUSAGE, "no measure log in this folder"),
                             x->input[i], 0);
        for (size_t k = 0; k < n; k++) CD_TRY(append(in, &cap, path[k], err));
    }
    if (in->n == 0) return CD_FAIL(err, EUSAGE, "no measure log is given");
    CD_TRY(once(x, in, err));
    if (x->n_shard) keep_shard(in, x->shard, x->n_shard);
    return CDMPP_OK;
}

cdmpp_status cd_inputs_list(const cd_extract *x, cd_inputs *out, cdmpp_err *err) {
    memset(out, 0, sizeof *out);
    const cdmpp_status st = list(x, out, err);
    if (st) cd_inputs_free(out);
    return st;
}

void cd_inputs_free(cd_inputs *in) {
    cd_mem_free(in->path);
    cd_mem_free(in->size);
    cd_arena_free(&in->arena);
    memset(in, 0, sizeof *in);
}

static cdmpp_status add_file(cd_sha256 *h, const char *path, cdmpp_err *err) {
    struct stat s;
    char line[96];
    CD_TRY(stat_file(path, &s, err));
    const int n = snprintf(line, sizeof line, "\n%lld %lld.%09ld\n", (long long)s.st_size,
                           (long long)s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
    cd_sha256_add(h, path, strlen(path));
    cd_sha256_add(h, line, (size_t)n);
    return CDMPP_OK;
}

static cdmpp_status add_task_files(cd_sha256 *h, const char *arg, cdmpp_err *err) {
    cd_arena a = {0};
    const char *const *path = NULL;
    size_t n = 0;
    cdmpp_status st = cd_file_list(&a, arg, NULL, NULL, &path, &n, err);
    for (size_t i = 0; i < n && st == CDMPP_OK; i++) st = add_file(h, path[i], err);
    cd_arena_free(&a);
    return st;
}

cdmpp_status cd_inputs_fingerprint(const cd_extract *x, const cd_inputs *in, char out[65],
                                   cdmpp_err *err) {
    cd_sha256 h;
    char text[200], digest[65];
    cd_cols_digest(digest);
    const int n = snprintf(text, sizeof text, "%s %s %u %u/%u%s%s\n", CDMPP_VERSION, digest,
                           CD_LAYOUT_SCHEMA_VERSION, x->shard, x->n_shard, x->steps ? " steps" : "",
                           x->ids ? " ids" : "");
    cd_sha256_init(&h);
    cd_sha256_add(&h, text, (size_t)n);
    if (x->device) cd_sha256_add(&h, x->device, strlen(x->device));
    if (x->assume) cd_sha256_add(&h, &x->assume, sizeof x->assume);
    for (size_t i = 0; i < x->n_task_file; i++) CD_TRY(add_task_files(&h, x->task_file[i], err));
    for (size_t i = 0; i < in->n; i++) CD_TRY(add_file(&h, in->path[i], err));
    cd_sha256_hex(&h, out);
    return CDMPP_OK;
}
