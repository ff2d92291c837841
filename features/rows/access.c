/* What a store reads and writes, measured as TVM measures it, also where that is odd: the
 * coefficient of a variable by a scan with flags, contiguous bytes by a region left over from
 * another buffer (docs/internals/ansor.md, Feature rows). */
#include <math.h>
#include <string.h>

#include "features/rows/rows_internal.h"

/* What the stores under one loop touch, by buffer, so that a store of hundreds of buffers costs no
 * more than it has. */

enum { FEW = 16 }; /* buffers that are looked for one by one: nearly all programs have no more */

void cd_touch_clear(cd_touch_list *l) {
    l->n = l->n_buffer = 0;
    l->summed = false;
}

void cd_touch_free(cd_touch_list *l) {
    cd_mem_free(l->p);
    cd_mem_free(l->buffer);
    cd_mem_free(l->slot);
    *l = (cd_touch_list){0};
}

static uint32_t first_slot_touch(const cd_touch_list *l, uint32_t tensor) {
    return (uint32_t)cd_rng_mix(tensor) & (l->n_slot - 1);
}

static void enter(cd_touch_list *l, uint32_t k) {
    uint32_t i = first_slot_touch(l, l->buffer[k].tensor);
    while (l->slot[i]) i = (i + 1) & (l->n_slot - 1);
    l->slot[i] = k + 1;
}

/* The slots of all buffers, made when there are more than FEW and again when they are half full. */
static bool make_slots_touch(cd_touch_list *l) {
    uint32_t n = 4 * FEW;
    while (n < 4 * l->n_buffer) n *= 2;
    uint32_t *slot = cd_mem_zalloc(n, sizeof *slot);
    if (!slot) return false;
    cd_mem_free(l->slot);
    l->slot = slot;
    l->n_slot = n;
    for (uint32_t k = 0; k < l->n_buffer; k++) enter(l, k);
    return true;
}

/* NULL: nothing has touched it. */
static const cd_touch_buffer *touch_find(const cd_touch_list *l, uint32_t tensor) {
    if (l->n_buffer <= FEW) {
        for (uint32_t k = 0; k < l->n_buffer; k++)
            if (l->buffer[k].tensor == tensor) return &l->buffer[k];
        return NULL;
    }
    for (uint32_t i = first_slot_touch(l, tensor); l->slot[i]; i = (i + 1) & (l->n_slot - 1))
        if (l->buffer[l->slot[i] - 1].tensor == tensor) return &l->buffer[l->slot[i] - 1];
    return NULL;
}

/* The buffer of a tensor, a new one at the end. NULL: out of memory. */
static cd_touch_buffer *buffer_of(cd_touch_list *l, uint32_t tensor) {
    const cd_touch_buffer *known = touch_find(l, tensor);
    if (known) return &l->buffer[known - l->buffer];
    if (CD_GROW(l->buffer, l->n_buffer, l->cap_buffer)) return NULL;
    l->buffer[l->n_buffer++] = (cd_touch_buffer){.tensor = tensor};
    const uint32_t k = l->n_buffer - 1;
    if (l->n_buffer == FEW + 1 || (l->n_buffer > FEW && 2 * l->n_buffer > l->n_slot)) {
        if (!make_slots_touch(l)) {
            l->n_buffer--;
            return NULL;
        }
    } else if (l->n_buffer > FEW) {
        enter(l, k);
    }
    return &l->buffer[k];
}

/* One more entry. False: out of memory. */
static bool touch_add(cd_touch_list *l, uint32_t tensor, uint32_t bytes, int64_t elements) {
    if (CD_GROW(l->p, l->n, l->cap)) return false;
    cd_touch_buffer *b = buffer_of(l, tensor);
    if (!b) return false;
    const float e = (float)elements;
    if (!b->n++) b->first = l->n, b->least = e;
    else l->p[b->last].next = l->n;
    if (e < b->least) b->least = e;
    b->last = l->n;
    l->p[l->n++] = (cd_touch){.bytes = bytes, .elements = elements};
    l->summed = false;
    return true;
}

/* Float sums in TVM's order: buffers by reverse first appearance, entries in order. */
static void sum(cd_touch_list *l) {
    l->sum_bytes = l->sum_element = 0.0F;
    for (uint32_t k = l->n_buffer; k-- > 0;) {
        const cd_touch_buffer *b = &l->buffer[k];
        for (uint32_t j = b->first, m = 0; m < b->n; m++, j = l->p[j].next) {
            /* Sizes of hostile shapes wrap around, as TVM's do. */
            l->sum_bytes += (float)(int64_t)((uint64_t)l->p[j].elements * (uint64_t)l->p[j].bytes);
            l->sum_element += (float)l->p[j].bytes;
        }
    }
    l->summed = true;
}

/* Bytes of all entries; elements false: of one element of each. */
static float touch_bytes(cd_touch_list *l, bool elements) {
    if (!l->summed) sum(l);
    return elements ? l->sum_bytes : l->sum_element;
}

/* Sizes of hostile shapes wrap around, as TVM's do. */
static int64_t wrap_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

/* ---- which buffers ---- */

static cd_access *find_access(cd_store_ctx *c, uint32_t tensor) {
    const uint32_t k = c->acc_of[tensor];
    return k < c->n_acc && c->acc[k].tensor == tensor ? &c->acc[k] : NULL;
}

static cd_access *add_access(cd_store_ctx *c, uint32_t tensor, uint8_t type) {
    if (CD_GROW_IN(c->arena, c->acc, c->n_acc, c->cap_acc)) return c->oom = true, NULL;
    c->acc_of[tensor] = c->n_acc;
    cd_access *a = &c->acc[c->n_acc++];
    *a = (cd_access){
        .tensor = tensor, .type = type, .info = c->tensors->info(c->tensors->ctx, tensor)};
    return a;
}

enum { FEW_VECTORS = 16 }; /* of one buffer, that are compared one by one */

static uint32_t first_slot(const cd_access *a, const cd_expr *const *index) {
    uint64_t h = 0;
    for (uint32_t d = 0; d < a->info.rank; d++) h = cd_rng_mix(h ^ index[d]->id);
    return (uint32_t)h & (a->n_slot - 1);
}

static bool same_vector(const cd_access *a, uint32_t v, const cd_expr *const *index) {
    return !memcmp(a->vec[v], index, a->info.rank * sizeof *index);
}

static bool has_vector(const cd_access *a, const cd_expr *const *index) {
    if (!a->n_slot) {
        for (uint32_t v = 0; v < a->n_vec; v++)
            if (same_vector(a, v, index)) return true;
        return false;
    }
    for (uint32_t i = first_slot(a, index); a->slot[i]; i = (i + 1) & (a->n_slot - 1))
        if (same_vector(a, a->slot[i] - 1, index)) return true;
    return false;
}

static void enter_vector(cd_access *a, uint32_t v) {
    uint32_t i = first_slot(a, a->vec[v]);
    while (a->slot[i]) i = (i + 1) & (a->n_slot - 1);
    a->slot[i] = v + 1;
}

/* Slots for four times as many vectors as there are, so that they are made again only when there
 * are twice as many. */
static void make_slots(cd_store_ctx *c, cd_access *a) {
    uint32_t n = 4 * FEW_VECTORS;
    while (n < 4 * a->n_vec) n *= 2;
    a->slot = cd_arena_zalloc(c->arena, n, sizeof *a->slot);
    a->n_slot = a->slot ? n : 0;
    if (!a->slot) c->oom = true;
    for (uint32_t v = 0; a->slot && v < a->n_vec; v++) enter_vector(a, v);
}

/* An index vector; a repeated one changes nothing. */
static void add_vector(cd_store_ctx *c, cd_access *a, const cd_expr *const *index) {
    if (has_vector(a, index)) return;
    if (CD_GROW_IN(c->arena, a->vec, a->n_vec, a->cap_vec)) {
        c->oom = true;
        return;
    }
    a->vec[a->n_vec++] = index;
    if (a->n_vec > FEW_VECTORS && 2 * a->n_vec > a->n_slot) make_slots(c, a);
    else if (a->n_slot) enter_vector(a, a->n_vec - 1);
}

/* Loads in pre-order: a load comes before those inside its indices. */
static void collect(cd_store_ctx *c, const cd_expr *e) {
    if (!(e->flags & CD_EXPR_HAS_LOAD)) return;
    if (e->op == CD_LOAD) {
        cd_access *a = find_access(c, (uint32_t)e->u.i);
        if (!a) a = add_access(c, (uint32_t)e->u.i, CD_ACC_READ);
        else if (a->type == CD_ACC_WRITE) a->type = CD_ACC_READ_WRITE;
        if (a && a->type == CD_ACC_READ && e->n == a->info.rank) add_vector(c, a, e->a);
    }
    for (uint32_t i = 0; i < e->n; i++) collect(c, e->a[i]);
}

static void find_loops(cd_store_ctx *c, cd_access *a) {
    a->region = cd_arena_alloc(c->arena, a->info.rank, sizeof *a->region);
    a->mask = cd_arena_zalloc(c->arena, a->info.rank, sizeof *a->mask);
    if (!a->region || !a->mask) {
        c->oom = true;
        return;
    }
    for (uint32_t d = 0; d < a->info.rank; d++) {
        for (uint32_t v = 0; v < a->n_vec; v++)
            a->mask[d] |= cd_loopmask_get(c->masks, a->vec[v][d]);
        a->all |= a->mask[d];
    }
}

void cd_access_collect(cd_store_ctx *c, uint32_t tensor, const cd_expr *const *index,
                       const cd_expr *value) {
    c->n_acc = c->cap_acc = 0;
    c->acc = NULL;
    cd_access *a = add_access(c, tensor, CD_ACC_WRITE);
    if (a) add_vector(c, a, index);
    collect(c, value);
    for (uint32_t k = 0; k < c->n_acc && !c->oom; k++) find_loops(c, &c->acc[k]);
}

/* ---- regions ---- */

static void bound_dim(cd_store_ctx *c, cd_access *a, uint32_t d) {
    cd_bound r = cd_simplify_bound(c->ana, a->vec[0][d]);
    for (uint32_t v = 1; v < a->n_vec; v++) {
        const cd_bound b = cd_simplify_bound(c->ana, a->vec[v][d]);
        if (b.lo < r.lo) r.lo = b.lo;
        if (b.hi > r.hi) r.hi = b.hi;
    }
    a->region[d] = r;
}

/* hi - lo + 1 wrapped to 32 bits, as in TVM. */
static int64_t region_size(const cd_access *a, uint32_t d) {
    return (int32_t)(uint32_t)((uint64_t)a->region[d].hi - (uint64_t)a->region[d].lo + 1);
}

/* `loop`: its full range has just been opened; -1: bound everything. */
static void update_region(cd_store_ctx *c, cd_access *a, int64_t loop) {
    const uint64_t bit = loop < 0 ? ~(uint64_t)0 : cd_loopmask_bit((uint32_t)loop);
    if (loop >= 0 && !(a->all & bit)) return;
    for (uint32_t d = 0; d < a->info.rank; d++)
        if (loop < 0 || (a->mask[d] & bit)) bound_dim(c, a, d);
    a->elements = 1;
    for (uint32_t d = 0; d < a->info.rank; d++)
        a->elements = wrap_mul(a->elements, region_size(a, d));
}

static bool fixed(const cd_loop *l) { return cd_expr_is_int(l->extent_e); }

/* Opens loop i to its whole range. The extent of an adaptive pool's reduction depends on the
 * element, so the loops inside i are opened again: how far they run with i open. The largest extent
 * of loop i; TVM takes 1 where it knows none. */
static int64_t open_loop(cd_store_ctx *c, uint32_t i, bool all_fixed) {
    int64_t largest = c->loop[i].extent;
    cd_simplify_set_bound(c->ana, c->loop[i].var, 0, largest - 1);
    for (uint32_t j = i; j < c->n_loop && !all_fixed; j++) {
        if (fixed(&c->loop[j])) continue;
        const int64_t hi = cd_simplify_bound(c->ana, c->loop[j].extent_e).hi;
        cd_simplify_set_bound(c->ana, c->loop[j].var, 0, hi == CD_INF ? hi : hi - 1);
        if (j == i) largest = hi == CD_INF ? 1 : hi;
    }
    return largest;
}

/* All loops stand at their first iteration at first; each, from the innermost on, is opened to its
 * whole range. */
void cd_access_regions(cd_store_ctx *c, double ops) {
    c->mem_log = cd_arena_zalloc(c->arena, 2 * c->n_loop + 1, sizeof *c->mem_log);
    if (!c->mem_log || c->oom) {
        c->oom = true;
        return;
    }
    c->ops_log = c->mem_log + c->n_loop;
    bool all_fixed = true;
    for (uint32_t i = 0; i < c->n_loop; i++) {
        cd_simplify_set_bound(c->ana, c->loop[i].var, 0, 0);
        all_fixed = all_fixed && fixed(&c->loop[i]);
    }
    for (uint32_t i = c->n_loop, k = 0; i-- > 0; k++) {
        const int64_t extent = open_loop(c, i, all_fixed);
        int64_t mem = 0;
        for (uint32_t b = 0; b < c->n_acc; b++) {
            cd_access *a = &c->acc[b];
            update_region(c, a, k && all_fixed ? (int64_t)i : -1);
            if (!touch_add(&c->touch[c->loop[i].identity], a->tensor, a->info.elem_bytes,
                           a->elements))
                c->oom = true;
            mem = (int64_t)((uint64_t)mem + (uint64_t)wrap_mul(a->elements, a->info.elem_bytes));
        }
        c->mem_log[k] = (float)log2((double)mem);
        ops *= (double)extent;
        c->ops_log[k] = (float)log2(ops);
    }
}

/* ---- strides ---- */

/* TVM's coefficient finder: one scan with flags, not algebra. In i*4 + j*8 it finds 8 for i. */
typedef struct {
    const cd_expr *var;
    bool seen, mul, add;
    int64_t value;
} scan;

/* Operands first: what the flags say when a node is reached depends on all nodes before it. */
static void coefficient(scan *s, const cd_expr *e) {
    if (e->op == CD_VAR) {
        if (e == s->var) {
            s->seen = true;
            s->value = 2;
        }
        return;
    }
    for (uint32_t i = 0; i < e->n; i++) coefficient(s, e->a[i]);
    if (e->op == CD_MUL && s->seen && !s->add) {
        const cd_expr *lit = e->a[0]->op == CD_INT   ? e->a[0]
                             : e->a[1]->op == CD_INT ? e->a[1]
                                                     : NULL;
        if (lit) {
            s->mul = true;
            s->value = lit->u.i;
        }
    } else if (e->op == CD_ADD && s->seen && !s->mul) {
        s->add = true;
        s->value = 1;
    }
}

/* Elements between neighbours of the loop; 0 when no index uses it. */
static int64_t stride_of(const cd_access *a, const cd_expr *var, uint64_t bit) {
    int64_t best = -1;
    if (!(a->all & bit)) return 0;
    for (uint32_t v = 0; v < a->n_vec; v++) {
        int64_t step = 1;
        for (uint32_t d = a->info.rank; d-- > 0;) {
            scan s = {.var = var};
            if (a->mask[d] & bit) coefficient(&s, a->vec[v][d]);
            if (s.seen) {
                const int64_t c = s.mul || s.add ? s.value : 1;
                const int64_t x = wrap_mul(c < 0 ? wrap_mul(c, -1) : c, step);
                if (best < 0 || x < best) best = x;
                break;
            }
            step = wrap_mul(step, a->info.shape[d]);
        }
    }
    return best < 0 ? 0 : best;
}

static void measure_lines(const cd_store_ctx *c, cd_access *a) {
    const uint32_t inner = c->n_loop - 1;
    int64_t stride = 0, ratio = 1;
    uint32_t i = c->n_loop;
    while (i-- > 0) {
        stride = stride_of(a, c->loop[i].var, cd_loopmask_bit(i));
        if (stride) break;
        ratio = wrap_mul(ratio, c->loop[inner].extent); /* TVM: always the innermost one */
    }
    const float part = (float)stride * (float)a->info.elem_bytes / (float)c->cache_line;
    a->lines = c->prod / (float)ratio * fminf(1.0F, part);
    a->lines = fmaxf(a->lines, 1.0F);
    a->stride = stride && i == inner ? (float)stride : 0.0F;
}

/* ---- bytes ---- */

static int64_t first_touch(const cd_touch_list *l, uint32_t tensor) {
    const cd_touch_buffer *b = touch_find(l, tensor);
    return b ? l->p[b->first].elements : 0;
}

/* Contiguous bytes, by the region that the stored buffer has at the outermost
 * loop (a variable left over in TVM, the same for all buffers of the store). */
static float contiguous(const cd_store_ctx *c, const cd_access *a) {
    const cd_access *stored = &c->acc[0];
    float n = (float)a->info.elem_bytes;
    const uint32_t rank = stored->info.rank < a->info.rank ? stored->info.rank : a->info.rank;
    for (uint32_t d = rank; d-- > 0;)
        if (region_size(stored, d) == a->info.shape[d]) return n * (float)region_size(stored, d);
    return n;
}

/* ---- reuse ---- */

static bool index_uses(const cd_access *a, uint32_t depth, const cd_expr *var) {
    if (depth < CD_LOOPMASK_LAST || !(a->all & cd_loopmask_bit(depth)))
        return (a->all & cd_loopmask_bit(depth)) != 0;
    for (uint32_t v = 0; v < a->n_vec; v++)
        for (uint32_t d = 0; d < a->info.rank; d++)
            if (cd_expr_uses(a->vec[v][d], var)) return true;
    return false;
}

/* From the innermost loop outward: the first loop that does not move the access, or under which
 * another store touched the buffer. */
static void measure_reuse(const cd_store_ctx *c, cd_access *a) {
    float iter = 1.0F, bytes = -1.0F;
    a->reuse = CD_REUSE_NONE;
    a->reuse_iter = a->reuse_bytes = a->reuse_count = 0.0F;
    for (uint32_t i = c->n_loop; i-- > 0;) {
        const cd_loop *loop = &c->loop[i];
        cd_touch_list *l = &c->touch[loop->identity];
        const float extent = (float)loop->extent;
        if (!index_uses(a, i, loop->var)) {
            a->reuse = CD_REUSE_LOOP;
            a->reuse_iter = iter;
            a->reuse_bytes = bytes < 0.0F ? touch_bytes(l, false) : bytes;
            a->reuse_count = extent;
            return;
        }
        iter *= extent;
        bytes = touch_bytes(l, true);
        const cd_touch_buffer *b = touch_find(l, a->tensor);
        if (b && b->n > 1) {
            a->reuse = CD_REUSE_SERIAL;
            a->reuse_iter = b->least / extent;
            a->reuse_bytes = bytes / extent;
            a->reuse_count = (float)(b->n - 1);
            return;
        }
    }
}

/* Without loops a store touches one element. */
void cd_access_measure(cd_store_ctx *c) {
    for (uint32_t b = 0; b < c->n_acc; b++) {
        cd_access *a = &c->acc[b];
        a->bytes = c->prod * (float)a->info.elem_bytes;
        if (!c->n_loop) {
            a->unique_bytes = (float)a->info.elem_bytes;
            a->stride = 0.0F;
            a->lines = a->unique_lines = 1.0F;
        } else {
            const int64_t first = first_touch(&c->touch[c->loop[0].identity], a->tensor);
            a->unique_bytes = (float)wrap_mul(first, a->info.elem_bytes);
            measure_lines(c, a);
            a->unique_lines =
                fmaxf(1.0F, a->unique_bytes / fminf(contiguous(c, a), (float)c->cache_line));
        }
        measure_reuse(c, a);
    }
}
