/* Joining data set files: every array is copied in blocks; offsets are moved,
 * numbers of dictionaries translated. Nothing is held but names and networks. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "dataset/extract/extract.h"

#define BLOCK_BYTES ((size_t)4 << 20)

typedef struct input {
    cd_h5 h;
    uint64_t n[CD_LAYOUT_ARRAY_COUNT];
    uint64_t base[CD_LAYOUT_ARRAY_COUNT];   /* elements in the output before this file */
    uint32_t *map[CD_LAYOUT_DICT_COUNT];    /* number here -> number in the output     */
    size_t n_map[CD_LAYOUT_DICT_COUNT];
} input;

typedef struct merge {
    cd_writer *w;
    void *block;                     /* BLOCK_BYTES */
    cd_arena arena;                  /* names of networks and tasks */
    cd_net_entry *net;
    size_t n_net;
    cd_sha256 source;
    uint64_t n_failed;               /* programs that were not measured */
} merge;

static cdmpp_status fail(const input *in, const char *object, const char *what, cdmpp_err *err) {
    const cdmpp_status st = CD_FAIL(err, ESCHEMA, "%s", what);
    return cd_err_at(err, cd_err_key(err, st, object), in->h.path, 0);
}

/* --- one array ------------------------------------------------------------------- */

/* `last` carries the offset before this block, so that order is checked across blocks. */
static cdmpp_status move_offsets(const input *in, cd_layout_array a, int64_t *v, size_t n, int64_t *last, cdmpp_err *err) {
    const cd_layout_array of = cd_layout_array_of_ptr(a);
    for (size_t i = 0; i < n; i++) {
        if (v[i] < *last || v[i] > (int64_t)in->n[of]) return fail(in, cd_layout[a].path, "offsets do not rise", err);
        *last = v[i];
        v[i] += (int64_t)in->base[of];
    }
    return CDMPP_OK;
}

static cdmpp_status translate(const input *in, cd_layout_array a, uint32_t *v, size_t n, cdmpp_err *err) {
    const cd_layout_dict d = cd_layout_array_dict(a);
    for (size_t i = 0; i < n; i++) {
        if (v[i] >= in->n_map[d]) return fail(in, cd_layout[a].path, "an index beyond its dictionary", err);
        v[i] = in->map[d][v[i]];
    }
    return CDMPP_OK;
}

static cdmpp_status push_block(merge *m, const input *in, cd_layout_array a, size_t n, bool first, int64_t *last,
                               cdmpp_err *err) {
    const bool ptr = cd_layout_array_of_ptr(a) != CD_LAYOUT_ARRAY_COUNT;
    if (ptr) CD_TRY(move_offsets(in, a, m->block, n, last, err));
    if (cd_layout_array_dict(a) != CD_LAYOUT_DICT_COUNT) CD_TRY(translate(in, a, m->block, n, err));
    const uint8_t *error = m->block;
    for (size_t i = 0; a == CD_LAYOUT_ARRAY_ERROR && i < n; i++) m->n_failed += error[i] != 0 && error[i] != CD_LABEL_REJECTED;
    const size_t skip = ptr && first ? 1 : 0; /* the leading 0 is there already */
    return cd_writer_push(m->w, a, (const char *)m->block + skip * cd_layout_array_bytes(a), n - skip, err);
}

/* The checksum of the whole array is compared after it was copied in blocks. */
static cdmpp_status copy_array(merge *m, const input *in, cd_layout_array a, cdmpp_err *err) {
    const cd_layout_array_info *info = &cd_layout[a];
    const size_t item = cd_layout_array_bytes(a), most = BLOCK_BYTES / item;
    int64_t last = 0;
    uLong crc = 0;
    for (uint64_t at = 0; at < in->n[a];) {
        const size_t n = in->n[a] - at < most ? (size_t)(in->n[a] - at) : most;
        CD_TRY(cd_h5_read(&in->h, info->path, (cd_h5_shape){info->type, n, info->n_col}, at, m->block, err));
        crc = crc32_z(crc, m->block, n * item);
        CD_TRY(push_block(m, in, a, n, at == 0, &last, err));
        at += n;
    }
    const cd_layout_array of = cd_layout_array_of_ptr(a);
    if (of != CD_LAYOUT_ARRAY_COUNT && last != (int64_t)in->n[of])
        return fail(in, info->path, "the last offset is not the length of what it points into", err);
    return cd_layout_check_crc(&in->h, info->path, (uint32_t)crc, err);
}

/* --- one file ---------------------------------------------------------------------- */

/* A file of an earlier version says nothing of the kinds of its programs and has no facts; steps are there where they were asked for. */
static bool lacks(const input *in, cd_layout_array a) { return cd_layout_optional(a) && !cd_h5_has(&in->h, cd_layout[a].path); }

static cdmpp_status read_sizes(input *in, cdmpp_err *err) {
    uint64_t len[CD_LAYOUT_LEN_COUNT];
    bool set[CD_LAYOUT_LEN_COUNT] = {false};
    for (int a = 0; a < CD_LAYOUT_ARRAY_COUNT; a++) {
        const cd_layout_array_info *info = &cd_layout[a];
        if (lacks(in, (cd_layout_array)a)) continue;
        CD_TRY(cd_h5_size(&in->h, info->path, info->type, info->n_col, &in->n[a], err));
        if (set[info->len] && len[info->len] != in->n[a]) return fail(in, info->path, "its length does not fit the others", err);
        len[info->len] = in->n[a];
        set[info->len] = true;
    }
    if (len[CD_LAYOUT_LEN_PROGRAM1] != len[CD_LAYOUT_LEN_PROGRAM] + 1 || len[CD_LAYOUT_LEN_LEAF1] != len[CD_LAYOUT_LEN_LEAF] + 1)
        return fail(in, "/features/row_ptr", "expected one offset more than programs", err);
    return CDMPP_OK;
}

static cdmpp_status fill_facts(merge *m, uint64_t n, cd_layout_array a, cdmpp_err *err) {
    float none[CD_N_FACTS];
    const uint8_t absent = CD_FACTS_ABSENT;
    for (size_t c = 0; c < CD_N_FACTS; c++) none[c] = NAN;
    for (uint64_t i = 0; i < n; i++) CD_TRY(cd_writer_push(m->w, a, a == CD_LAYOUT_ARRAY_FACTS ? (const void *)none : &absent, 1, err));
    return CDMPP_OK;
}

/* The unknown kind, once for each program, and no facts; nothing in the place of steps. */
static cdmpp_status fill_array(merge *m, const input *in, cd_layout_array a, cdmpp_err *err) {
    uint32_t id = 0;
    if (cd_layout_of_steps(a)) return CDMPP_OK;
    if (cd_layout_of_facts(a)) return fill_facts(m, in->n[CD_LAYOUT_ARRAY_LATENCY], a, err);
    CD_TRY(cd_writer_intern(m->w, cd_layout_array_dict(a), (cd_str){"", 0}, &id, err));
    for (uint64_t i = 0; i < in->n[CD_LAYOUT_ARRAY_LATENCY]; i++) CD_TRY(cd_writer_push(m->w, a, &id, 1, err));
    return CDMPP_OK;
}

static cdmpp_status join_dict(merge *m, input *in, cd_layout_dict d, cdmpp_err *err) {
    char **text = NULL;
    if (d == CD_LAYOUT_DICT_KIND && lacks(in, CD_LAYOUT_ARRAY_KIND)) return CDMPP_OK;
    CD_TRY(cd_h5_read_text(&in->h, cd_layout_dict_path[d], &in->n_map[d], &text, err));
    const size_t n = in->n_map[d];
    cdmpp_status st = cd_layout_check_crc(&in->h, cd_layout_dict_path[d], cd_layout_text_crc(n, (const char *const *)text), err);
    in->map[d] = cd_mem_zalloc(n ? n : 1, sizeof *in->map[d]);
    if (st == CDMPP_OK && !in->map[d]) st = CD_FAIL(err, ENOMEM, "%zu names", n);
    for (size_t i = 0; i < n && st == CDMPP_OK; i++)
        st = cd_writer_intern(m->w, d, (cd_str){text[i], strlen(text[i])}, &in->map[d][i], err);
    cd_mem_free(text);
    return st;
}

typedef struct nets {
    char **name, **task;
    size_t n_name, n_task;
    uint64_t n;
    uint32_t *net, *of;
    int64_t *weight;
} nets;

static cdmpp_status read_nets(const input *in, cd_arena *a, nets *v, cdmpp_err *err) {
    CD_TRY(cd_h5_read_text(&in->h, "/network/names", &v->n_name, &v->name, err));
    CD_TRY(cd_h5_read_text(&in->h, "/dict/task", &v->n_task, &v->task, err));
    CD_TRY(cd_h5_size(&in->h, "/network/net", CD_H5_U32, 0, &v->n, err));
    v->net = CD_NEWN(a, uint32_t, v->n + 1);
    v->of = CD_NEWN(a, uint32_t, v->n + 1);
    v->weight = CD_NEWN(a, int64_t, v->n + 1);
    if (!v->net || !v->of || !v->weight) return CD_FAIL(err, ENOMEM, "%zu network entries", (size_t)v->n);
    CD_TRY(cd_h5_read(&in->h, "/network/net", (cd_h5_shape){CD_H5_U32, v->n, 0}, 0, v->net, err));
    CD_TRY(cd_h5_read(&in->h, "/network/task", (cd_h5_shape){CD_H5_U32, v->n, 0}, 0, v->of, err));
    return cd_h5_read(&in->h, "/network/weight", (cd_h5_shape){CD_H5_I64, v->n, 0}, 0, v->weight, err);
}

/* Names are copied, because the file is closed before the data set is written. */
static cdmpp_status add_nets(merge *m, const input *in, const nets *v, cdmpp_err *err) {
    cd_net_entry *p = cd_mem_realloc(m->net, m->n_net * sizeof *p, (m->n_net + v->n + 1) * sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "%zu network entries", (size_t)v->n);
    m->net = p;
    for (uint64_t i = 0; i < v->n; i++) {
        if (v->net[i] >= v->n_name || v->of[i] >= v->n_task)
            return fail(in, "/network/net", "an index beyond its dictionary", err);
        const char *name = v->name[v->net[i]], *task = v->task[v->of[i]];
        name = cd_str_dup(&m->arena, (cd_str){name, strlen(name)});
        task = cd_str_dup(&m->arena, (cd_str){task, strlen(task)});
        if (!name || !task) return CD_FAIL(err, ENOMEM, "%zu network entries", (size_t)v->n);
        m->net[m->n_net++] = (cd_net_entry){name, task, v->weight[i]};
    }
    return CDMPP_OK;
}

static cdmpp_status join_networks(merge *m, const input *in, cdmpp_err *err) {
    nets v = {0};
    cd_arena a = {0};
    cdmpp_status st = read_nets(in, &a, &v, err);
    if (st == CDMPP_OK) st = add_nets(m, in, &v, err);
    cd_mem_free(v.name);
    cd_mem_free(v.task);
    cd_arena_free(&a);
    return st;
}

/* Steps of all programs or of none: a program without steps is one of an empty schedule, which would be a lie. */
static cdmpp_status check_steps(const merge *m, const input *in, cdmpp_err *err) {
    const uint64_t n_ptr = cd_writer_count(m->w, CD_LAYOUT_ARRAY_STEP_PTR);
    if (n_ptr == 1 || n_ptr == cd_writer_count(m->w, CD_LAYOUT_ARRAY_LATENCY) + 1) return CDMPP_OK;
    return fail(in, "/steps/ptr", "some files have steps of schedules (cdmpp-extract --steps) and others have none", err);
}

/* A file of before GPU programs had facts does not name their columns, and has none of them. */
static bool has_gpu_facts(const cd_h5 *h) {
    char digest[65];
    return !cd_h5_get_text(h, cd_layout[CD_LAYOUT_ARRAY_FACTS].path, cd_layout_facts_attr(CD_FACTS_OF_GPU, true), digest, sizeof digest, NULL);
}

static cdmpp_status join_file(merge *m, input *in, const char *path, cdmpp_err *err) {
    char digest[65];
    CD_TRY(cd_h5_open(&in->h, path, err));
    CD_TRY(cd_layout_check(&in->h, digest, err));
    CD_TRY(cd_h5_get_text(&in->h, "/", "source_digest", digest, sizeof digest, err));
    cd_sha256_add(&m->source, digest, strlen(digest));
    CD_TRY(read_sizes(in, err));
    if (!lacks(in, CD_LAYOUT_ARRAY_FACTS)) CD_TRY(cd_layout_check_facts(&in->h, CD_FACTS_OF_CPU, err));
    if (!lacks(in, CD_LAYOUT_ARRAY_FACTS) && has_gpu_facts(&in->h)) CD_TRY(cd_layout_check_facts(&in->h, CD_FACTS_OF_GPU, err));
    for (int a = 0; a < CD_LAYOUT_ARRAY_COUNT; a++) in->base[a] = cd_writer_count(m->w, (cd_layout_array)a);
    for (int d = 0; d < CD_LAYOUT_DICT_COUNT; d++) CD_TRY(join_dict(m, in, (cd_layout_dict)d, err));
    for (int a = 0; a < CD_LAYOUT_ARRAY_COUNT; a++)
        CD_TRY((lacks(in, (cd_layout_array)a) ? fill_array : copy_array)(m, in, (cd_layout_array)a, err));
    CD_TRY(check_steps(m, in, err));
    return join_networks(m, in, err);
}

/* --- all ----------------------------------------------------------------------------- */

static cdmpp_status join_all(merge *m, const char *const *path, size_t n, const char *command_line, cdmpp_err *err) {
    char digest[65];
    for (size_t i = 0; i < n; i++) {
        input in = {.h = {.file = -1}};
        const cdmpp_status st = cd_err_at(err, join_file(m, &in, path[i], err), path[i], 0);
        (void)cd_h5_close(&in.h, NULL);
        for (int d = 0; d < CD_LAYOUT_DICT_COUNT; d++) cd_mem_free(in.map[d]);
        if (st) return st;
    }
    if (!cd_writer_count(m->w, CD_LAYOUT_ARRAY_LATENCY)) return CD_FAIL(err, ENODATA, "none of %zu parts has a program; no data set was written", n);
    cd_sha256_hex(&m->source, digest);
    const cd_finish f = {m->n_net, m->net, command_line, digest};
    return cd_writer_finish(m->w, &f, err);
}

cdmpp_status cd_merge(const char *out, const char *const *in, size_t n, const char *command_line,
                      cd_extract_stats *stats, cdmpp_err *err) {
    static const char no_print[65] = "0000000000000000000000000000000000000000000000000000000000000000";
    merge m = {0};
    cd_buf place = {0};
    memset(stats, 0, sizeof *stats);
    cd_sha256_init(&m.source);
    CD_TRY(cd_writer_open(&m.w, out, no_print, true, NULL, &place, err));
    m.block = cd_mem_alloc(BLOCK_BYTES);
    cdmpp_status st;
    if (m.block) st = join_all(&m, in, n, command_line, err);
    else st = CD_FAIL(err, ENOMEM, "block of %zu bytes", BLOCK_BYTES);
    stats->programs = stats->records = cd_writer_count(m.w, CD_LAYOUT_ARRAY_LATENCY);
    stats->rows = cd_writer_count(m.w, CD_LAYOUT_ARRAY_ROWS);
    stats->failed = m.n_failed;
    cd_writer_discard(m.w); /* quick to do again: nothing is kept after a failure */
    cd_mem_free(m.block);
    cd_mem_free(m.net);
    cd_arena_free(&m.arena);
    cd_buf_free(&place);
    return st;
}
