/* Joining data set files: every array is copied in blocks; offsets are moved, numbers of
 * dictionaries translated. Nothing is held but names and networks. Where copies of programs are
 * merged, the elements of programs that do not stay are left out of the blocks. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "dataset/extract/copies_internal.h"

/* Which elements of an array belong to programs that stay. Offsets are read once, from front to
 * back, a buffer at a time. */

enum { BUFFER = 65536 };

static cdmpp_status fail_pick(const cd_pick *p, cd_layout_array a, const char *what,
                              cdmpp_err *err) {
    const cdmpp_status st = CD_FAIL(err, ESCHEMA, "%s", what);
    return cd_err_at(err, cd_err_key(err, st, cd_layout[a].path), p->h->path, 0);
}

/* The offsets that lead from programs to elements of this array. */
static int levels_of(cd_layout_array a, cd_layout_array ptr[2]) {
    switch (cd_layout[a].len) {
    case CD_LAYOUT_LEN_ROW: return ptr[0] = CD_LAYOUT_ARRAY_ROW_PTR, 1;
    case CD_LAYOUT_LEN_LEAF:
    case CD_LAYOUT_LEN_LEAF1: return ptr[0] = CD_LAYOUT_ARRAY_LEAF_PTR, 1;
    case CD_LAYOUT_LEN_OWN: return ptr[0] = CD_LAYOUT_ARRAY_OWN_PTR, 1;
    case CD_LAYOUT_LEN_TREE: return ptr[0] = CD_LAYOUT_ARRAY_TREE_PTR, 1;
    case CD_LAYOUT_LEN_STEP: return ptr[0] = CD_LAYOUT_ARRAY_STEP_PTR, 1;
    case CD_LAYOUT_LEN_PATH:
        return ptr[0] = CD_LAYOUT_ARRAY_LEAF_PTR, ptr[1] = CD_LAYOUT_ARRAY_PATH_PTR, 2;
    default: return 0;
    }
}

static cdmpp_status fill(cd_pick *p, cd_pick_level *l, uint64_t at, cdmpp_err *err) {
    if (at >= l->n_ptr) return fail_pick(p, l->ptr, "fewer offsets than programs or leaves", err);
    l->buf_at = at;
    l->n_buf = l->n_ptr - at < BUFFER ? l->n_ptr - at : BUFFER;
    return cd_h5_read(p->h, cd_layout[l->ptr].path, (cd_h5_shape){CD_H5_I64, l->n_buf, 0}, at,
                      l->buf, err);
}

/* For the elements of array a, or, where a holds offsets, for what has an offset. n_elem: elements
 * of each array. Errors: ENOMEM, ESCHEMA. */
static cdmpp_status merge_pick_open(cd_pick *p, const cd_h5 *h, cd_layout_array a,
                                    const uint8_t *keep,
                                    const uint64_t n_elem[CD_LAYOUT_ARRAY_COUNT], cdmpp_err *err) {
    cd_layout_array ptr[2];
    *p = (cd_pick){.h = h, .keep = keep, .n = n_elem[CD_LAYOUT_ARRAY_LATENCY]};
    p->depth = levels_of(a, ptr);
    for (int d = 1; d <= p->depth; d++) {
        cd_pick_level *l = &p->level[d];
        l->ptr = ptr[d - 1];
        l->n_ptr = n_elem[l->ptr];
        l->n_elem = n_elem[cd_layout_array_of_ptr(l->ptr)];
        l->buf = CD_NEWN(&p->arena, int64_t, BUFFER);
        if (!l->buf) return CD_FAIL(err, ENOMEM, "offsets");
        CD_TRY(fill(p, l, 0, err));
        l->last = l->buf[0];
        if (l->last) return fail_pick(p, l->ptr, "the first offset is not 0", err);
    }
    return CDMPP_OK;
}

static void merge_pick_close(cd_pick *p) { cd_arena_free(&p->arena); }

/* The next run of elements of level d; it may be empty. */
static cdmpp_status next_run(cd_pick *p, int d, uint64_t *n, bool *stays, cdmpp_err *err) {
    cd_pick_level *l = &p->level[d];
    if (!d) {
        if (l->at == p->n)
            return fail_pick(p, CD_LAYOUT_ARRAY_LATENCY,
                             "fewer programs than what points into them", err);
        *n = 1;
        *stays = p->keep[l->at++];
        return CDMPP_OK;
    }
    uint64_t parents;
    CD_TRY(next_run(p, d - 1, &parents, stays, err));
    l->at += parents;
    if (l->at >= l->buf_at + l->n_buf) CD_TRY(fill(p, l, l->at, err));
    const int64_t end = l->buf[l->at - l->buf_at];
    if (end < l->last || end > (int64_t)l->n_elem)
        return fail_pick(p, l->ptr, "offsets do not rise", err);
    *n = (uint64_t)(end - l->last);
    l->last = end;
    return CDMPP_OK;
}

/* Does the next element stay? Of the elements that follow, *n at most, the number of those that
 * share this answer is put into *n. */
static cdmpp_status merge_pick_next(cd_pick *p, size_t *n, bool *stays, cdmpp_err *err) {
    while (!p->left) CD_TRY(next_run(p, p->depth, &p->left, &p->stays, err));
    if (*n > p->left) *n = (size_t)p->left;
    p->left -= *n;
    *stays = p->stays;
    return CDMPP_OK;
}

#define BLOCK_BYTES ((size_t)4 << 20)

#define UNMET UINT32_MAX

typedef struct input {
    cd_h5 h;
    uint64_t n[CD_LAYOUT_ARRAY_COUNT];
    uint64_t base[CD_LAYOUT_ARRAY_COUNT]; /* elements in the output before this file */
    char **text[CD_LAYOUT_DICT_COUNT];
    /* number here -> number in the output; UNMET: no program that stays had it so far */
    uint32_t *map[CD_LAYOUT_DICT_COUNT];
    size_t n_map[CD_LAYOUT_DICT_COUNT];
} input;

typedef struct merge {
    cd_writer *w;
    void *block;    /* BLOCK_BYTES */
    cd_arena arena; /* names of networks and tasks */
    cd_net_entry *net;
    size_t n_net;
    cd_sha256 source;
    uint64_t n_failed;     /* programs that were not measured */
    const cd_copies *pick; /* which programs stay, and their labels; NULL: all */
    uint64_t first;        /* programs of the inputs before this one */
} merge;

/* One array of one file on its way. */
typedef struct passage {
    cd_layout_array a;
    uint64_t at;         /* of the block */
    int64_t last, total; /* offset before the block; of what stays */
    cd_pick pick;
} passage;

static cdmpp_status fail(const input *in, const char *object, const char *what, cdmpp_err *err) {
    const cdmpp_status st = CD_FAIL(err, ESCHEMA, "%s", what);
    return cd_err_at(err, cd_err_key(err, st, object), in->h.path, 0);
}

/* --- one array ------------------------------------------------------------------- */

/* `last` carries the offset before this block, so that order is checked across blocks. */
static cdmpp_status move_offsets(const input *in, cd_layout_array a, int64_t *v, size_t n,
                                 int64_t *last, cdmpp_err *err) {
    const cd_layout_array of = cd_layout_array_of_ptr(a);
    for (size_t i = 0; i < n; i++) {
        if (v[i] < *last || v[i] > (int64_t)in->n[of])
            return fail(in, cd_layout[a].path, "offsets do not rise", err);
        *last = v[i];
        v[i] += (int64_t)in->base[of];
    }
    return CDMPP_OK;
}

/* Texts enter the output in the order in which programs have them. */
static cdmpp_status translate(const merge *m, const input *in, cd_layout_array a, uint32_t *v,
                              size_t n, cdmpp_err *err) {
    const cd_layout_dict d = cd_layout_array_dict(a);
    for (size_t i = 0; i < n; i++) {
        if (v[i] >= in->n_map[d])
            return fail(in, cd_layout[a].path, "an index beyond its dictionary", err);
        const char *text = in->text[d][v[i]];
        if (in->map[d][v[i]] == UNMET)
            CD_TRY(cd_writer_intern(m->w, d, (cd_str){text, strlen(text)}, &in->map[d][v[i]], err));
        v[i] = in->map[d][v[i]];
    }
    return CDMPP_OK;
}

/* What stays moves to the front of the block. */
static cdmpp_status squeeze(passage *p, void *block, size_t item, size_t *n, cdmpp_err *err) {
    size_t out = 0;
    for (size_t i = 0, m; i < *n; i += m) {
        bool stays;
        m = *n - i;
        CD_TRY(merge_pick_next(&p->pick, &m, &stays, err));
        if (!stays) continue;
        memmove((char *)block + out * item, (const char *)block + i * item, m * item);
        out += m;
    }
    *n = out;
    return CDMPP_OK;
}

/* Offsets of what stays, without what lies between. The leading 0 leads here, too. */
static cdmpp_status squeeze_offsets(const input *in, passage *p, int64_t *v, size_t *n,
                                    cdmpp_err *err) {
    const cd_layout_array of = cd_layout_array_of_ptr(p->a);
    size_t out = 0;
    for (size_t i = 0; i < *n; i++) {
        const int64_t end = v[i], before = p->last;
        bool stays = true;
        size_t one = 1;
        if (end < before || end > (int64_t)in->n[of])
            return fail(in, cd_layout[p->a].path, "offsets do not rise", err);
        if (p->at || i) CD_TRY(merge_pick_next(&p->pick, &one, &stays, err));
        p->last = end;
        if (!stays) continue;
        p->total += end - before;
        v[out++] = (int64_t)in->base[of] + p->total;
    }
    *n = out;
    return CDMPP_OK;
}

static bool is_label(cd_layout_array a) {
    return a == CD_LAYOUT_ARRAY_LATENCY || a == CD_LAYOUT_ARRAY_LATENCY_MEAN ||
           a == CD_LAYOUT_ARRAY_LATENCY_STD || a == CD_LAYOUT_ARRAY_LATENCY_MIN ||
           a == CD_LAYOUT_ARRAY_REPEATS || cd_layout_of_copies(a);
}

static cdmpp_status pick_block(merge *m, const input *in, passage *p, size_t *n, cdmpp_err *err) {
    if (is_label(p->a)) cd_copies_patch(m->pick, p->a, m->first + p->at, m->block, *n);
    if (cd_layout_array_of_ptr(p->a) != CD_LAYOUT_ARRAY_COUNT)
        return squeeze_offsets(in, p, m->block, n, err);
    return squeeze(p, m->block, cd_layout_array_bytes(p->a), n, err);
}

static cdmpp_status push_block(merge *m, const input *in, passage *p, size_t n, cdmpp_err *err) {
    const cd_layout_array a = p->a;
    const bool ptr = cd_layout_array_of_ptr(a) != CD_LAYOUT_ARRAY_COUNT;
    if (m->pick) CD_TRY(pick_block(m, in, p, &n, err));
    else if (ptr) CD_TRY(move_offsets(in, a, m->block, n, &p->last, err));
    if (cd_layout_array_dict(a) != CD_LAYOUT_DICT_COUNT)
        CD_TRY(translate(m, in, a, m->block, n, err));
    const uint8_t *error = m->block;
    for (size_t i = 0; a == CD_LAYOUT_ARRAY_ERROR && i < n; i++)
        m->n_failed += error[i] != 0 && error[i] != CD_LABEL_REJECTED;
    const size_t skip = ptr && !p->at ? 1 : 0; /* the leading 0 is there already */
    return cd_writer_push(m->w, a, (const char *)m->block + skip * cd_layout_array_bytes(a),
                          n - skip, err);
}

/* The checksum of the whole array is compared after it was copied in blocks. */
static cdmpp_status copy_blocks(merge *m, const input *in, passage *p, cdmpp_err *err) {
    const cd_layout_array_info *info = &cd_layout[p->a];
    const size_t item = cd_layout_array_bytes(p->a), most = BLOCK_BYTES / item;
    uLong crc = 0;
    for (size_t n; p->at < in->n[p->a]; p->at += n) {
        n = in->n[p->a] - p->at < most ? (size_t)(in->n[p->a] - p->at) : most;
        CD_TRY(cd_h5_read(&in->h, info->path, (cd_h5_shape){info->type, n, info->n_col}, p->at,
                          m->block, err));
        crc = crc32_z(crc, m->block, n * item);
        CD_TRY(push_block(m, in, p, n, err));
    }
    const cd_layout_array of = cd_layout_array_of_ptr(p->a);
    if (of != CD_LAYOUT_ARRAY_COUNT && p->last != (int64_t)in->n[of])
        return fail(in, info->path, "the last offset is not the length of what it points into",
                    err);
    return cd_layout_check_crc(&in->h, info->path, (uint32_t)crc, err);
}

typedef cdmpp_status passing(merge *m, const input *in, passage *p, cdmpp_err *err);
static cdmpp_status pass(merge *m, const input *in, cd_layout_array a, passing *copy,
                         cdmpp_err *err) {
    passage p = {.a = a};
    cdmpp_status st = CDMPP_OK;
    if (m->pick) st = merge_pick_open(&p.pick, &in->h, a, m->pick->keep + m->first, in->n, err);
    if (!st) st = copy(m, in, &p, err);
    merge_pick_close(&p.pick);
    return st;
}

static cdmpp_status copy_array(merge *m, const input *in, cd_layout_array a, cdmpp_err *err) {
    return pass(m, in, a, copy_blocks, err);
}

/* A program of one record is its own smallest and largest copy. */
static cdmpp_status make_copies(merge *m, const input *in, passage *p, cdmpp_err *err) {
    const cd_layout_array_info *info = &cd_layout[CD_LAYOUT_ARRAY_LATENCY];
    const size_t most = BLOCK_BYTES / sizeof(double);
    for (size_t n; p->at < in->n[CD_LAYOUT_ARRAY_LATENCY]; p->at += n) {
        n = in->n[CD_LAYOUT_ARRAY_LATENCY] - p->at < most
                ? (size_t)(in->n[CD_LAYOUT_ARRAY_LATENCY] - p->at)
                : most;
        if (p->a == CD_LAYOUT_ARRAY_COPIES)
            for (size_t i = 0; i < n; i++) ((uint32_t *)m->block)[i] = 1;
        else
            CD_TRY(cd_h5_read(&in->h, info->path, (cd_h5_shape){info->type, n, 0}, p->at, m->block,
                              err));
        CD_TRY(push_block(m, in, p, n, err));
    }
    return CDMPP_OK;
}

/* --- one file ---------------------------------------------------------------------- */

/* A file of an earlier version says nothing of the kinds of its programs and has no facts; steps
 * are there where they were asked for. */
static bool lacks(const input *in, cd_layout_array a) {
    return cd_layout_optional(a) && !cd_h5_has(&in->h, cd_layout[a].path);
}

static cdmpp_status read_sizes(input *in, cdmpp_err *err) {
    uint64_t len[CD_LAYOUT_LEN_COUNT];
    bool set[CD_LAYOUT_LEN_COUNT] = {false};
    for (int a = 0; a < CD_LAYOUT_ARRAY_COUNT; a++) {
        const cd_layout_array_info *info = &cd_layout[a];
        if (lacks(in, (cd_layout_array)a)) continue;
        CD_TRY(cd_h5_size(&in->h, info->path, info->type, info->n_col, &in->n[a], err));
        if (set[info->len] && len[info->len] != in->n[a])
            return fail(in, info->path, "its length does not fit the others", err);
        len[info->len] = in->n[a];
        set[info->len] = true;
    }
    if (len[CD_LAYOUT_LEN_PROGRAM1] != len[CD_LAYOUT_LEN_PROGRAM] + 1 ||
        len[CD_LAYOUT_LEN_LEAF1] != len[CD_LAYOUT_LEN_LEAF] + 1)
        return fail(in, "/features/row_ptr", "expected one offset more than programs", err);
    return CDMPP_OK;
}

static cdmpp_status fill_facts(merge *m, uint64_t n, cd_layout_array a, cdmpp_err *err) {
    float none[CD_N_FACTS];
    const uint8_t absent = CD_FACTS_ABSENT;
    for (size_t c = 0; c < CD_N_FACTS; c++) none[c] = NAN;
    for (uint64_t i = 0; i < n; i++)
        CD_TRY(cd_writer_push(m->w, a, a == CD_LAYOUT_ARRAY_FACTS ? (const void *)none : &absent, 1,
                              err));
    return CDMPP_OK;
}

/* The unknown kind, once for each program, and no facts; nothing in the place of what had to be
 * asked for. */
static cdmpp_status fill_array(merge *m, const input *in, cd_layout_array a, cdmpp_err *err) {
    uint32_t id = 0;
    uint64_t n = 0;
    if (m->pick && cd_layout_of_copies(a)) return pass(m, in, a, make_copies, err);
    if (cd_layout_asked_for(a) != CD_LAYOUT_ARRAY_COUNT) return CDMPP_OK;
    for (uint64_t i = 0; i < in->n[CD_LAYOUT_ARRAY_LATENCY]; i++)
        n += !m->pick || m->pick->keep[m->first + i];
    if (cd_layout_of_facts(a)) return fill_facts(m, n, a, err);
    CD_TRY(cd_writer_intern(m->w, cd_layout_array_dict(a), (cd_str){"", 0}, &id, err));
    for (uint64_t i = 0; i < n; i++) CD_TRY(cd_writer_push(m->w, a, &id, 1, err));
    return CDMPP_OK;
}

static cdmpp_status read_dict(input *in, cd_layout_dict d, cdmpp_err *err) {
    if (d == CD_LAYOUT_DICT_KIND && lacks(in, CD_LAYOUT_ARRAY_KIND)) return CDMPP_OK;
    CD_TRY(cd_h5_read_text(&in->h, cd_layout_dict_path[d], &in->n_map[d], &in->text[d], err));
    const size_t n = in->n_map[d];
    CD_TRY(cd_layout_check_crc(&in->h, cd_layout_dict_path[d],
                               cd_layout_text_crc(n, (const char *const *)in->text[d]), err));
    in->map[d] = cd_mem_zalloc(n ? n : 1, sizeof *in->map[d]);
    if (!in->map[d]) return CD_FAIL(err, ENOMEM, "%zu names", n);
    for (size_t i = 0; i < n; i++) in->map[d][i] = UNMET;
    return CDMPP_OK;
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
    if (!v->net || !v->of || !v->weight)
        return CD_FAIL(err, ENOMEM, "%zu network entries", (size_t)v->n);
    CD_TRY(cd_h5_read(&in->h, "/network/net", (cd_h5_shape){CD_H5_U32, v->n, 0}, 0, v->net, err));
    CD_TRY(cd_h5_read(&in->h, "/network/task", (cd_h5_shape){CD_H5_U32, v->n, 0}, 0, v->of, err));
    return cd_h5_read(&in->h, "/network/weight", (cd_h5_shape){CD_H5_I64, v->n, 0}, 0, v->weight,
                      err);
}

/* Names are copied, because the file is closed before the data set is written. */
static cdmpp_status add_nets(merge *m, const input *in, const nets *v, cdmpp_err *err) {
    cd_net_entry *p =
        cd_mem_realloc(m->net, m->n_net * sizeof *p, (m->n_net + v->n + 1) * sizeof *p);
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

/* Steps, identities, copies of all programs or of none: a program without steps is one of an empty
 * schedule, which would be a lie. */
static cdmpp_status check_asked_for(const merge *m, const input *in, cdmpp_err *err) {
    static const struct {
        cd_layout_array a;
        const char *what;
    } t[] = {{CD_LAYOUT_ARRAY_STEP_PTR,
              "some files have steps of schedules (cdmpp-extract --steps) and others have none"},
             {CD_LAYOUT_ARRAY_ID,
              "some files have identities of programs (cdmpp-extract --ids) and others have none"},
             {CD_LAYOUT_ARRAY_COPIES,
              "some files have merged copies (cdmpp-extract --merge-copies) and others have not"}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        const uint64_t n = cd_writer_count(m->w, t[k].a), lead = t[k].a == CD_LAYOUT_ARRAY_STEP_PTR;
        if (n != lead && n != cd_writer_count(m->w, CD_LAYOUT_ARRAY_LATENCY) + lead)
            return fail(in, cd_layout[t[k].a].path, t[k].what, err);
    }
    return CDMPP_OK;
}

/* A file of before GPU programs had facts does not name their columns, and has none of them. */
static bool has_gpu_facts(const cd_h5 *h) {
    char digest[65];
    return !cd_h5_get_text(h, cd_layout[CD_LAYOUT_ARRAY_FACTS].path,
                           cd_layout_facts_attr(CD_FACTS_OF_GPU, true), digest, sizeof digest,
                           NULL);
}

static cdmpp_status join_file(merge *m, input *in, const char *path, cdmpp_err *err) {
    char digest[65];
    CD_TRY(cd_h5_open(&in->h, path, err));
    CD_TRY(cd_layout_check(&in->h, digest, err));
    CD_TRY(cd_h5_get_text(&in->h, "/", "source_digest", digest, sizeof digest, err));
    cd_sha256_add(&m->source, digest, strlen(digest));
    /* before the width, which says less */
    if (!lacks(in, CD_LAYOUT_ARRAY_FACTS))
        CD_TRY(cd_layout_check_facts(&in->h, CD_FACTS_OF_CPU, err));
    if (!lacks(in, CD_LAYOUT_ARRAY_FACTS) && has_gpu_facts(&in->h))
        CD_TRY(cd_layout_check_facts(&in->h, CD_FACTS_OF_GPU, err));
    CD_TRY(read_sizes(in, err));
    for (int a = 0; a < CD_LAYOUT_ARRAY_COUNT; a++)
        in->base[a] = cd_writer_count(m->w, (cd_layout_array)a);
    for (int d = 0; d < CD_LAYOUT_DICT_COUNT; d++) CD_TRY(read_dict(in, (cd_layout_dict)d, err));
    for (int a = 0; a < CD_LAYOUT_ARRAY_COUNT; a++)
        CD_TRY((lacks(in, (cd_layout_array)a) ? fill_array : copy_array)(m, in, (cd_layout_array)a,
                                                                         err));
    CD_TRY(check_asked_for(m, in, err));
    m->first += in->n[CD_LAYOUT_ARRAY_LATENCY];
    return join_networks(m, in, err);
}

/* --- all ----------------------------------------------------------------------------- */

static cdmpp_status join_all(merge *m, const char *const *path, size_t n, const char *command_line,
                             cdmpp_err *err) {
    char digest[65];
    for (size_t i = 0; i < n; i++) {
        input in = {.h = {.file = -1}};
        const cdmpp_status st = cd_err_at(err, join_file(m, &in, path[i], err), path[i], 0);
        (void)cd_h5_close(&in.h, NULL);
        for (int d = 0; d < CD_LAYOUT_DICT_COUNT; d++)
            cd_mem_free(in.map[d]), cd_mem_free(in.text[d]);
        if (st) return st;
    }
    if (!cd_writer_count(m->w, CD_LAYOUT_ARRAY_LATENCY))
        return CD_FAIL(err, ENODATA, "none of %zu parts has a program; no data set was written", n);
    cd_sha256_hex(&m->source, digest);
    const cd_finish f = {m->n_net, m->net, command_line, digest};
    return cd_writer_finish(m->w, &f, err);
}

static cdmpp_status join(const char *out, const char *const *in, size_t n, const cd_copies *pick,
                         const char *command_line, cd_extract_stats *stats, cdmpp_err *err) {
    static const char no_print[65] =
        "0000000000000000000000000000000000000000000000000000000000000000";
    merge m = {.pick = pick};
    cd_buf place = {0};
    memset(stats, 0, sizeof *stats);
    cd_sha256_init(&m.source);
    CD_TRY(cd_writer_open(&m.w, out, no_print, true, NULL, &place, err));
    m.block = cd_mem_alloc(BLOCK_BYTES);
    cdmpp_status st;
    if (m.block) st = join_all(&m, in, n, command_line, err);
    else st = CD_FAIL(err, ENOMEM, "block of %zu bytes", BLOCK_BYTES);
    stats->programs = cd_writer_count(m.w, CD_LAYOUT_ARRAY_LATENCY);
    stats->records = pick ? pick->n : stats->programs;
    stats->rows = cd_writer_count(m.w, CD_LAYOUT_ARRAY_ROWS);
    stats->failed = m.n_failed;
    cd_writer_discard(m.w); /* quick to do again: nothing is kept after a failure */
    cd_mem_free(m.block);
    cd_mem_free(m.net);
    cd_arena_free(&m.arena);
    cd_buf_free(&place);
    return st;
}

cdmpp_status cd_merge(const char *out, const char *const *in, size_t n, const char *command_line,
                      cd_extract_stats *stats, cdmpp_err *err) {
    return join(out, in, n, NULL, command_line, stats, err);
}

cdmpp_status cd_merge_copies(const char *out, const char *const *in, size_t n, double slow,
                             const char *command_line, cd_log *log, cd_extract_stats *stats,
                             cd_copies_stats *copies, cdmpp_err *err) {
    cd_copies c;
    CD_TRY(cd_copies_find(in, n, slow, CD_COPIES_PART_RECORDS, log, &c, err));
    const cdmpp_status st = join(out, in, n, &c, command_line, stats, err);
    *copies = c.stats;
    cd_copies_free(&c);
    return st;
}
