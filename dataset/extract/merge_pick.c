/* Which elements of an array belong to programs that stay. Offsets are read once, from front to
 * back, a buffer at a time. */
#include <string.h>

#include "dataset/extract/copies_internal.h"

enum { BUFFER = 65536 };

static cdmpp_status fail(const cd_pick *p, cd_layout_array a, const char *what, cdmpp_err *err) {
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
    if (at >= l->n_ptr) return fail(p, l->ptr, "fewer offsets than programs or leaves", err);
    l->buf_at = at;
    l->n_buf = l->n_ptr - at < BUFFER ? l->n_ptr - at : BUFFER;
    return cd_h5_read(p->h, cd_layout[l->ptr].path, (cd_h5_shape){CD_H5_I64, l->n_buf, 0}, at,
                      l->buf, err);
}

cdmpp_status cd_merge_pick_open(cd_pick *p, const cd_h5 *h, cd_layout_array a, const uint8_t *keep,
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
        if (l->last) return fail(p, l->ptr, "the first offset is not 0", err);
    }
    return CDMPP_OK;
}

void cd_merge_pick_close(cd_pick *p) { cd_arena_free(&p->arena); }

/* The next run of elements of level d; it may be empty. */
static cdmpp_status next_run(cd_pick *p, int d, uint64_t *n, bool *stays, cdmpp_err *err) {
    cd_pick_level *l = &p->level[d];
    if (!d) {
        if (l->at == p->n)
            return fail(p, CD_LAYOUT_ARRAY_LATENCY, "fewer programs than what points into them",
                        err);
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
        return fail(p, l->ptr, "offsets do not rise", err);
    *n = (uint64_t)(end - l->last);
    l->last = end;
    return CDMPP_OK;
}

cdmpp_status cd_merge_pick_next(cd_pick *p, size_t *n, bool *stays, cdmpp_err *err) {
    while (!p->left) CD_TRY(next_run(p, p->depth, &p->left, &p->stays, err));
    if (*n > p->left) *n = (size_t)p->left;
    p->left -= *n;
    *stays = p->stays;
    return CDMPP_OK;
}
