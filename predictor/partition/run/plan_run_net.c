/* Turns a plan into the buffers and actions of the multi-device executor (multi.h): inputs, then
 * the pieces in their order with the copies that they need, then results brought to memory 0. */
#include <stdio.h>
#include <string.h>

#include "predictor/partition/run/plan_run_internal.h"

typedef struct cd_plan_exec_place {
    struct cd_plan_exec_place *next; /* in the order of the actions */
    /* action: that puts it there; CD_PLAN_EXEC_NONE: it is there before a pass */
    uint32_t buffer, action;
    /* what the buffer holds of the tensor, row-major; what of it this is */
    cd_box store, box;
} cd_plan_exec_place;

typedef struct cd_plan_exec_tensor {
    const char *name;
    uint32_t rank;
    int64_t shape[CD_BOX_RANK];
    cd_dtype dtype;
    size_t size; /* of an element */
    cd_plan_exec_place *place, **last;
    /* its buffers, by memory (slot); CD_PLAN_EXEC_NONE: none yet */
    uint32_t whole[CD_MACHINE_DEVICES + 1];
} cd_plan_exec_tensor;

typedef struct cd_plan_exec_maker {
    cd_plan_exec *m;
    const struct cd_plan_run *r;
    const cd_plan_run_options *a;
    uint32_t n_tensor, op;       /* op: the one that is being made ready */
    cd_plan_exec_tensor *tensor; /* (n_tensor) the network's, then partial sums */
    uint32_t *after;             /* (n_after, cap_after) what the next action comes after */
    uint32_t n_after, cap_after;
} cd_plan_exec_maker;

/* A box of a tensor as a definition sees it: `shape` may be another one than the tensor's. */
typedef struct cd_plan_exec_view {
    uint32_t tensor, rank;
    const int64_t *shape; /* (rank) */
    const cd_box *box;
} cd_plan_exec_view;

/* Where each piece of a tensor is, and the copies that bring it to a reader. A piece is copied once
 * to a memory; readers of the same piece wait for the same action. */

/* ---- lists ---- */

static cdmpp_status add_buffer(cd_plan_exec_maker *k, cd_multi_buffer b, uint32_t *out,
                               cdmpp_err *err) {
    cd_plan_exec *m = k->m;
    if (CD_GROW(m->buffer, m->dn.n_buffer, m->cap_buffer))
        return CD_FAIL(err, ENOMEM, "buffers of a plan");
    *out = m->dn.n_buffer;
    m->buffer[m->dn.n_buffer++] = b;
    return CDMPP_OK;
}

/* Every action once. */
static cdmpp_status wait_for(cd_plan_exec_maker *k, uint32_t action, cdmpp_err *err) {
    if (action == CD_PLAN_EXEC_NONE) return CDMPP_OK;
    for (uint32_t i = 0; i < k->n_after; i++)
        if (k->after[i] == action) return CDMPP_OK;
    if (CD_GROW(k->after, k->n_after, k->cap_after))
        return CD_FAIL(err, ENOMEM, "actions of a plan");
    k->after[k->n_after++] = action;
    return CDMPP_OK;
}

/* An action after all that is on k->after, which is emptied.
 *
 * `action` and `of` have one capacity: it is noted when both have grown. */
static cdmpp_status plan_exec_add_action(cd_plan_exec_maker *k, cd_multi_action x, uint32_t part,
                                         cdmpp_err *err) {
    cd_plan_exec *m = k->m;
    uint32_t cap = m->cap_action, *after = CD_NEWN(&m->arena, uint32_t, k->n_after + 1);
    if (!after || CD_GROW(m->action, m->dn.n_action, cap) ||
        CD_GROW(m->of, m->dn.n_action, m->cap_action))
        return CD_FAIL(err, ENOMEM, "actions of a plan");
    if (k->n_after) memcpy(after, k->after, k->n_after * sizeof *after);
    x.after = after;
    x.n_after = k->n_after;
    k->n_after = 0;
    m->of[m->dn.n_action] = (cd_plan_exec_origin){k->op, part};
    m->action[m->dn.n_action++] = x;
    return CDMPP_OK;
}

/* ---- memories ---- */

static uint32_t memory_of(const cd_plan_exec_maker *k, uint32_t device) {
    return k->a->machine->device[device].memory;
}

static uint32_t slot_of(const cd_plan_exec_maker *k, uint32_t memory) {
    for (uint32_t d = 0; memory && d < k->a->machine->n; d++)
        if (memory_of(k, d) == memory) return d + 1;
    return 0;
}

/* The device that copies to or from a memory: `asks` if the memory is its own, else the first
 * working device of that memory. */
static uint32_t owner_of(const cd_plan_exec_maker *k, uint32_t memory, uint32_t asks) {
    if (memory_of(k, asks) == memory) return asks;
    for (uint32_t d = 0; d < k->a->machine->n; d++)
        if (memory_of(k, d) == memory && !(k->r->dead >> d & 1)) return d;
    return asks;
}

static uint32_t copier(const cd_plan_exec_maker *k, uint32_t from, uint32_t to, uint32_t asks) {
    return owner_of(k, to ? to : from, asks);
}

/* ---- buffers ---- */

static cdmpp_status own_buffer(cd_plan_exec_maker *k, uint32_t tensor, uint32_t memory,
                               int64_t elements, uint32_t *out, cdmpp_err *err) {
    const cd_plan_exec_tensor *t = &k->tensor[tensor];
    return add_buffer(k,
                      (cd_multi_buffer){.name = t->name,
                                        .memory = memory,
                                        .of = CD_MULTI_OWN,
                                        .bytes = elements * (int64_t)t->size,
                                        .dtype = t->dtype},
                      out, err);
}

static cd_box all_of(const cd_plan_exec_tensor *t) { return cd_box_whole(t->rank, t->shape); }

static cdmpp_status whole_buffer(cd_plan_exec_maker *k, uint32_t tensor, uint32_t memory,
                                 uint32_t *out, cdmpp_err *err) {
    cd_plan_exec_tensor *t = &k->tensor[tensor];
    uint32_t *at = &t->whole[slot_of(k, memory)];
    const cd_box all = all_of(t);
    if (*at == CD_PLAN_EXEC_NONE)
        CD_TRY(own_buffer(k, tensor, memory, cd_box_elements(&all), at, err));
    *out = *at;
    return CDMPP_OK;
}

/* `n` elements of a buffer from `first` on; of a window, of what it is a window of. */
static cdmpp_status window(cd_plan_exec_maker *k, uint32_t buffer, int64_t first, int64_t n,
                           size_t size, uint32_t *out, cdmpp_err *err) {
    const cd_plan_exec *m = k->m;
    cd_multi_buffer b = m->buffer[buffer];
    const int64_t offset = (b.of == CD_MULTI_OWN ? 0 : b.offset) + first * (int64_t)size,
                  bytes = n * (int64_t)size;
    const uint32_t base = b.of == CD_MULTI_OWN ? buffer : b.of;
    *out = base;
    if (!offset && bytes == m->buffer[base].bytes) return CDMPP_OK;
    for (uint32_t i = base + 1; i < m->dn.n_buffer; i++)
        if (m->buffer[i].of == base && m->buffer[i].offset == offset && m->buffer[i].bytes == bytes)
            return *out = i, CDMPP_OK;
    b.of = base;
    b.offset = offset;
    b.bytes = bytes;
    return add_buffer(k, b, out, err);
}

static cdmpp_status add_place(cd_plan_exec_maker *k, uint32_t tensor, uint32_t buffer,
                              const cd_box *store, const cd_box *box, uint32_t action,
                              cdmpp_err *err) {
    cd_plan_exec_tensor *t = &k->tensor[tensor];
    cd_plan_exec_place *p = CD_NEW(&k->m->arena, cd_plan_exec_place);
    if (!p) return CD_FAIL(err, ENOMEM, "place of a tensor");
    *p = (cd_plan_exec_place){.buffer = buffer, .action = action, .store = *store, .box = *box};
    *t->last = p;
    t->last = &p->next;
    return CDMPP_OK;
}

/* ---- copies ---- */

enum { MOST_LEFT = 256 };
typedef struct {
    uint32_t n;
    cd_box box[MOST_LEFT];
} left;

/* What of `a` is not in `b`: slabs, dimension by dimension. */
static bool leave(left *l, cd_box a, const cd_box *b) {
    cd_box both;
    if (!cd_box_meet(&a, b, &both)) {
        if (l->n == MOST_LEFT) return false;
        l->box[l->n++] = a;
        return true;
    }
    for (uint32_t d = 0; d < a.rank; d++) {
        const int64_t lo[2] = {a.lo[d], both.lo[d] + both.n[d]};
        const int64_t hi[2] = {both.lo[d], a.lo[d] + a.n[d]};
        for (int side = 0; side < 2; side++) {
            cd_box part = a;
            part.lo[d] = lo[side];
            part.n[d] = hi[side] - lo[side];
            if (part.n[d] <= 0) continue;
            if (l->n == MOST_LEFT) return false;
            l->box[l->n++] = part;
        }
        a.lo[d] = both.lo[d];
        a.n[d] = both.n[d];
    }
    return true;
}

static int64_t first_in(const cd_box *store, const cd_box *x) {
    int64_t stride[CD_BOX_RANK], at = 0;
    cd_box_strides(store->rank, store->n, stride);
    for (uint32_t d = 0; d < x->rank; d++) at += (x->lo[d] - store->lo[d]) * stride[d];
    return at;
}

/* Box x of a tensor from a place into a buffer that holds `store` of it. */
static cdmpp_status copy_box(cd_plan_exec_maker *k, uint32_t tensor, const cd_plan_exec_place *from,
                             uint32_t to, const cd_box *store, const cd_box *x, uint32_t device,
                             cdmpp_err *err) {
    const cd_plan_exec_tensor *t = &k->tensor[tensor];
    const uint32_t a = k->m->buffer[from->buffer].memory, b = k->m->buffer[to].memory,
                   kept = k->n_after;
    cd_multi_copy c = {.from = from->buffer,
                       .to = to,
                       .rank = t->rank,
                       .from_first = first_in(&from->store, x),
                       .to_first = first_in(store, x),
                       .size = t->size};
    cd_box_strides(t->rank, from->store.n, c.from_stride);
    cd_box_strides(t->rank, store->n, c.to_stride);
    memcpy(c.n, x->n, sizeof c.n);
    /* What the reader waits for already stays for it. */
    uint32_t *after = k->after;
    const uint32_t cap = k->cap_after;
    k->after = NULL;
    k->n_after = k->cap_after = 0;
    cdmpp_status st = wait_for(k, from->action, err);
    const uint32_t action = k->m->dn.n_action;
    if (!st)
        st = plan_exec_add_action(
            k, (cd_multi_action){.name = t->name, .device = copier(k, a, b, device), .copy = c},
            CD_PLAN_EXEC_COPY, err);
    cd_mem_free(k->after);
    k->after = after;
    k->n_after = kept;
    k->cap_after = cap;
    return st ? st : add_place(k, tensor, to, store, x, action, err);
}

/* The nearest place with something of x: of this memory, else of the host's, else anywhere; of
 * these the one with the most. */
static const cd_plan_exec_place *nearest(const cd_plan_exec_maker *k, uint32_t tensor,
                                         const cd_box *x, uint32_t memory) {
    const cd_plan_exec_place *best = NULL;
    int64_t most = 0;
    int best_far = 3;
    for (const cd_plan_exec_place *p = k->tensor[tensor].place; p; p = p->next) {
        const uint32_t at = k->m->buffer[p->buffer].memory;
        const int far = at == memory ? 0 : !at ? 1 : 2;
        cd_box both;
        if (!cd_box_meet(x, &p->box, &both) || far > best_far) continue;
        const int64_t n = cd_box_elements(&both);
        if (far == best_far && n <= most) continue;
        best = p;
        best_far = far;
        most = n;
    }
    return best;
}

static cdmpp_status fill(cd_plan_exec_maker *k, uint32_t tensor, uint32_t to, const cd_box *store,
                         const cd_box *x, uint32_t device, cdmpp_err *err);

/* By the host's memory where neither side is it. */
static cdmpp_status fetch(cd_plan_exec_maker *k, uint32_t tensor, uint32_t to, const cd_box *store,
                          const cd_box *x, uint32_t device, cdmpp_err *err) {
    const uint32_t a = k->m->buffer[to].memory;
    const cd_plan_exec_place *p = nearest(k, tensor, x, a);
    uint32_t host;
    if (!p)
        return CD_FAIL(err, EINVALID, "nobody makes a piece of %.80s that is read",
                       k->tensor[tensor].name);
    cd_box both;
    (void)cd_box_meet(x, &p->box, &both);
    const uint32_t b = k->m->buffer[p->buffer].memory;
    if (a == b || !a || !b) return copy_box(k, tensor, p, to, store, &both, device, err);
    const cd_box all = all_of(&k->tensor[tensor]);
    CD_TRY(whole_buffer(k, tensor, 0, &host, err));
    return fill(k, tensor, host, &all, &both, owner_of(k, b, device), err);
}

/* All of x that the buffer does not have yet. */
static cdmpp_status fill(cd_plan_exec_maker *k, uint32_t tensor, uint32_t to, const cd_box *store,
                         const cd_box *x, uint32_t device, cdmpp_err *err) {
    for (;;) {
        left now = {1, {*x}};
        for (const cd_plan_exec_place *p = k->tensor[tensor].place; p; p = p->next) {
            left then = {0};
            if (p->buffer != to) continue;
            for (uint32_t i = 0; i < now.n; i++)
                if (!leave(&then, now.box[i], &p->box))
                    return CD_FAIL(err, EUNSUPPORTED, "%.80s lies in too many pieces",
                                   k->tensor[tensor].name);
            now = then;
        }
        if (!now.n) return CDMPP_OK;
        CD_TRY(fetch(k, tensor, to, store, &now.box[0], device, err));
    }
}

/* ---- reading ---- */

static cdmpp_status wait_for_all(cd_plan_exec_maker *k, uint32_t tensor, uint32_t buffer,
                                 const cd_box *x, cdmpp_err *err) {
    cd_box both;
    for (const cd_plan_exec_place *p = k->tensor[tensor].place; p; p = p->next)
        if (p->buffer == buffer && cd_box_meet(x, &p->box, &both))
            CD_TRY(wait_for(k, p->action, err));
    return CDMPP_OK;
}

static bool run_in(const cd_box *store, const cd_box *x, int64_t *first) {
    cd_box rel = *x;
    for (uint32_t d = 0; d < x->rank; d++) rel.lo[d] -= store->lo[d];
    return cd_box_run(&rel, store->n, first);
}

/* One place has it all, in a row? */
static const cd_plan_exec_place *has_run(const cd_plan_exec_maker *k, uint32_t tensor,
                                         const cd_box *x, uint32_t memory, int64_t *first) {
    for (const cd_plan_exec_place *p = k->tensor[tensor].place; p; p = p->next)
        if (k->m->buffer[p->buffer].memory == memory && cd_box_inside(x, &p->box) &&
            run_in(&p->store, x, first))
            return p;
    return NULL;
}

/* In order of cost: a place that already holds x in a row is read there. Else x gets its place in
 * the whole buffer of this memory if it is a run there, or a buffer of its own, and fill copies
 * only what is missing. */
static cdmpp_status read_box(cd_plan_exec_maker *k, uint32_t tensor, const cd_box *x,
                             uint32_t memory, uint32_t device, uint32_t *buffer, cdmpp_err *err) {
    const cd_plan_exec_tensor *t = &k->tensor[tensor];
    int64_t first;
    cd_box store = *x;
    uint32_t to;
    const cd_plan_exec_place *p = has_run(k, tensor, x, memory, &first);
    if (p) {
        CD_TRY(wait_for(k, p->action, err));
        return window(k, p->buffer, first, cd_box_elements(x), t->size, buffer, err);
    }
    if (cd_box_run(x, t->shape, &first)) {
        store = all_of(t);
        CD_TRY(whole_buffer(k, tensor, memory, &to, err));
    } else {
        first = 0;
        CD_TRY(own_buffer(k, tensor, memory, cd_box_elements(x), &to, err));
    }
    CD_TRY(fill(k, tensor, to, &store, x, device, err));
    CD_TRY(wait_for_all(k, tensor, to, x, err));
    return window(k, to, first, cd_box_elements(x), t->size, buffer, err);
}

/* A box of a view that is none of the tensor: all of the tensor is brought, and the box cut from
 * it. */
static cdmpp_status read_odd(cd_plan_exec_maker *k, const cd_plan_exec_view *v, uint32_t device,
                             uint32_t *buffer, cdmpp_err *err) {
    const cd_plan_exec_tensor *t = &k->tensor[v->tensor];
    const cd_box all = all_of(t);
    const uint32_t memory = memory_of(k, device);
    int64_t first;
    uint32_t from, to;
    CD_TRY(read_box(k, v->tensor, &all, memory, device, &from, err));
    if (cd_box_run(v->box, v->shape, &first))
        return window(k, from, first, cd_box_elements(v->box), t->size, buffer, err);
    CD_TRY(own_buffer(k, v->tensor, memory, cd_box_elements(v->box), &to, err));
    const cd_box seen = cd_box_whole(v->rank, v->shape);
    cd_multi_copy c = {.from = from,
                       .to = to,
                       .rank = v->rank,
                       .from_first = first_in(&seen, v->box),
                       .size = t->size};
    cd_box_strides(v->rank, v->shape, c.from_stride);
    cd_box_strides(v->rank, v->box->n, c.to_stride);
    memcpy(c.n, v->box->n, sizeof c.n);
    /* after all that its reader waits for by now: more than it must */
    const uint32_t action = k->m->dn.n_action;
    CD_TRY(plan_exec_add_action(k, (cd_multi_action){.name = t->name, .device = device, .copy = c},
                                CD_PLAN_EXEC_COPY, err));
    *buffer = to;
    return wait_for(k, action, err);
}

/* The buffer in which `device` reads the view; copies are added where needed. k->after gets the
 * actions to wait for. */
static cdmpp_status plan_exec_read(cd_plan_exec_maker *k, const cd_plan_exec_view *v,
                                   uint32_t device, uint32_t *buffer, cdmpp_err *err) {
    const cd_plan_exec_tensor *t = &k->tensor[v->tensor];
    cd_box x;
    if (!cd_box_reshape(v->box, v->shape, t->rank, t->shape, &x))
        return read_odd(k, v, device, buffer, err);
    return read_box(k, v->tensor, &x, memory_of(k, device), device, buffer, err);
}

/* All of a tensor in memory 0, in a row; copied for `device`. k->after gets the actions that put it
 * there. */
static cdmpp_status plan_exec_home(cd_plan_exec_maker *k, uint32_t tensor, uint32_t device,
                                   uint32_t *buffer, cdmpp_err *err) {
    const cd_box all = all_of(&k->tensor[tensor]);
    return read_box(k, tensor, &all, 0, device, buffer, err);
}

/* The buffer into which `device` writes the view. The writer is the action that is added next. */
static cdmpp_status plan_exec_write(cd_plan_exec_maker *k, const cd_plan_exec_view *v,
                                    uint32_t device, uint32_t *buffer, cdmpp_err *err) {
    const cd_plan_exec_tensor *t = &k->tensor[v->tensor];
    const uint32_t memory = memory_of(k, device);
    const cd_box *x = v->box; /* a tensor has the coordinates of the definition that makes it */
    const int64_t n = cd_box_elements(x);
    cd_box store = *x;
    int64_t first = 0;
    uint32_t to;
    if (cd_box_run(x, t->shape, &first)) {
        store = all_of(t);
        CD_TRY(whole_buffer(k, v->tensor, memory, &to, err));
    } else {
        first = 0;
        CD_TRY(own_buffer(k, v->tensor, memory, n, &to, err));
    }
    CD_TRY(add_place(k, v->tensor, to, &store, x, k->m->dn.n_action, err));
    return window(k, to, first, n, t->size, buffer, err);
}

/* The same, there before a pass. */
static cdmpp_status plan_exec_input(cd_plan_exec_maker *k, uint32_t tensor, uint32_t *buffer,
                                    cdmpp_err *err) {
    const cd_box all = all_of(&k->tensor[tensor]);
    CD_TRY(whole_buffer(k, tensor, 0, buffer, err));
    return add_place(k, tensor, *buffer, &all, &all, CD_PLAN_EXEC_NONE, err);
}

static bool same_weight(const cd_plan_exec_constant *c, const cd_plan_exec_view *v) {
    if (c->tensor != v->tensor || c->rank != v->rank || !cd_box_equal(&c->box, v->box))
        return false;
    return !memcmp(c->shape, v->shape, v->rank * sizeof *v->shape);
}

/* The buffer of a piece of a weight, cut before passes.
 *
 * Devices of one memory share a piece: it is cut once for each memory. The pieces are filled before
 * passes, by cd_plan_exec_fill. */
static cdmpp_status plan_exec_weight(cd_plan_exec_maker *k, const cd_plan_exec_view *v,
                                     uint32_t device, uint32_t *buffer, cdmpp_err *err) {
    cd_plan_exec *m = k->m;
    const cd_plan_exec_tensor *t = &k->tensor[v->tensor];
    const uint32_t memory = memory_of(k, device);
    for (uint32_t i = 0; i < m->n_constant; i++)
        if (same_weight(&m->constant[i], v) && m->buffer[m->constant[i].buffer].memory == memory)
            return *buffer = m->constant[i].buffer, CDMPP_OK;
    if (CD_GROW(m->constant, m->n_constant, m->cap_constant))
        return CD_FAIL(err, ENOMEM, "weights of a plan");
    int64_t *shape = CD_NEWN(&m->arena, int64_t, v->rank + 1);
    if (!shape) return CD_FAIL(err, ENOMEM, "weight");
    memcpy(shape, v->box->n, v->rank * sizeof *shape);
    CD_TRY(add_buffer(k,
                      (cd_multi_buffer){.name = t->name,
                                        .memory = memory,
                                        .of = CD_MULTI_OWN,
                                        .bytes = cd_box_elements(v->box) * (int64_t)t->size,
                                        .constant = true,
                                        .dtype = t->dtype,
                                        .rank = v->rank,
                                        .shape = shape},
                      buffer, err));
    cd_plan_exec_constant *c = &m->constant[m->n_constant++];
    *c = (cd_plan_exec_constant){
        .buffer = *buffer, .tensor = v->tensor, .rank = v->rank, .box = *v->box};
    memcpy(c->shape, v->shape, v->rank * sizeof *c->shape);
    return CDMPP_OK;
}

/* ---- devices ---- */

static bool has_work(const cd_plan_exec *m, uint32_t device) {
    for (uint32_t k = 0; k < m->dn.n_action; k++)
        if (m->action[k].device == device) return true;
    return false;
}

/* Those that do nothing, as a device that has failed, are not even opened. Actions get their
 * numbers. */
static void make_devices(cd_plan_exec *m, const struct cd_plan_run *r) {
    const cd_machine *x = r->ask.machine;
    for (uint32_t k = 0; k < x->n; k++) {
        const cd_machine_device *d = &x->device[k];
        const bool cpu = !strcmp(d->kind, "cpu");
        m->number[k] = CD_PLAN_EXEC_NONE;
        if (!has_work(m, k)) continue;
        m->number[k] = m->dn.n_device;
        m->is[m->dn.n_device] = k;
        m->device[m->dn.n_device++] =
            (cd_multi_device){.name = d->name,
                              .kind = cpu                          ? CD_MULTI_CPU
                                      : !strcmp(d->kind, "native") ? CD_MULTI_NATIVE
                                                                   : CD_MULTI_OPENCL,
                              .opencl = cpu ? NULL : d->opencl,
                              .core = d->core,
                              .memory = d->memory,
                              .times = d->times};
    }
    for (uint32_t k = 0; k < m->dn.n_action; k++)
        m->action[k].device = m->number[m->action[k].device];
    m->dn.device = m->device;
}

/* ---- tensors ---- */

static void set_shape(cd_plan_exec_tensor *t, uint32_t rank, const int64_t *shape, cd_dtype dtype,
                      size_t size) {
    t->rank = rank;
    memcpy(t->shape, shape, rank * sizeof *shape);
    t->dtype = dtype;
    t->size = size;
    t->last = &t->place;
    for (uint32_t k = 0; k <= CD_MACHINE_DEVICES; k++) t->whole[k] = CD_PLAN_EXEC_NONE;
}

static const cd_te_op *last_of(const cd_te_dag *d) {
    return &d->op[d->tensor_op[d->arg[d->n_arg - 1]]];
}

static cdmpp_status make_tensors(cd_plan_exec_maker *k, cdmpp_err *err) {
    const cd_shard_net *net = k->a->net;
    const uint32_t n = net->n_tensor + k->m->n_piece;
    k->tensor = CD_NEWN(&k->m->arena, cd_plan_exec_tensor, n + 1);
    k->m->home = CD_NEWN(&k->m->arena, uint32_t, net->n_tensor + 1);
    if (!k->tensor || !k->m->home) return CD_FAIL(err, ENOMEM, "%u tensors", n);
    k->n_tensor = n;
    for (uint32_t t = 0; t < net->n_tensor; t++) {
        const cd_shard_net_tensor *x = &net->tensor[t];
        const cd_te_op *o = x->from < net->n_op ? last_of(net->op[x->from].dag) : NULL;
        const cd_workload_buffer *b = cd_plan_exec_buffer(k->a->loaded, t);
        k->m->home[t] = CD_PLAN_EXEC_NONE;
        k->tensor[t].name = x->name;
        if (o) set_shape(&k->tensor[t], o->rank, o->shape, b->dtype, cd_expr_dtype_bytes(b->dtype));
        else set_shape(&k->tensor[t], x->rank, x->shape, b->dtype, cd_expr_dtype_bytes(b->dtype));
    }
    for (uint32_t i = 0; i < k->m->n_piece; i++) { /* each piece may make a partial sum */
        const cd_plan_exec_piece *p = &k->m->piece[i];
        const cd_te_op *o = last_of(p->dag);
        if (o->rank > CD_BOX_RANK)
            return CD_FAIL(err, EUNSUPPORTED, "operator %.80s makes %u dimensions",
                           net->op[p->op].name, o->rank);
        k->tensor[net->n_tensor + i].name = "partial sum";
        set_shape(&k->tensor[net->n_tensor + i], o->rank, p->box[p->n_arg - 1].n, o->dtype[0],
                  cd_expr_dtype_bytes(o->dtype[0]));
    }
    return CDMPP_OK;
}

static cdmpp_status give_inputs(cd_plan_exec_maker *k, cdmpp_err *err) {
    const cd_shard_net *net = k->a->net;
    for (uint32_t t = 0; t < net->n_tensor; t++)
        if (net->tensor[t].from == CD_SHARD_NET_OUTSIDE && !net->tensor[t].constant)
            CD_TRY(plan_exec_input(k, t, &k->m->home[t], err));
    return CDMPP_OK;
}

/* ---- pieces ---- */

/* Argument i of a piece: which tensor, which box of it, seen how. */
static cdmpp_status view_of(const cd_plan_exec_maker *k, const cd_plan_exec_piece *p, uint32_t i,
                            cd_plan_exec_view *v, cdmpp_err *err) {
    const cd_shard_net_op *o = &k->a->net->op[p->op];
    const uint32_t of = p->of[i], n_part = k->m->plan->op[p->op].n_part;
    v->box = &p->box[i];
    /* of a join, which follows its parts: theirs; of a part: its own */
    if (of & CD_TE_SHARD_PARTIAL) {
        const uint32_t part = p->part < n_part ? p->part : of & ~CD_TE_SHARD_PARTIAL;
        v->tensor = k->a->net->n_tensor + k->m->first[p->op] + part;
        v->rank = k->tensor[v->tensor].rank;
        v->shape = k->tensor[v->tensor].shape;
    } else {
        if (of >= o->n_arg)
            return CD_FAIL(err, EINVALID, "operator %.80s: a part asks for argument %u of %u",
                           o->name, of, o->n_arg);
        const cd_te_op *x = &o->dag->op[o->dag->tensor_op[o->dag->arg[of]]];
        v->tensor = o->arg[of];
        v->rank = x->rank;
        v->shape = x->shape;
    }
    if (v->rank != v->box->rank)
        return CD_FAIL(err, EINVALID,
                       "operator %.80s: argument %u of a part has another rank than its tensor",
                       o->name, i);
    return CDMPP_OK;
}

/* The last argument is the result. Copies that reading needs are added as actions first; the piece
 * waits for them by k->after. */
static cdmpp_status add_piece(cd_plan_exec_maker *k, const cd_plan_exec_piece *p, cdmpp_err *err) {
    const cd_shard_net *net = k->a->net;
    uint32_t *buffer = CD_NEWN(&k->m->arena, uint32_t, p->n_arg + 1);
    char name[120];
    cd_plan_exec_view v;
    if (!buffer) return CD_FAIL(err, ENOMEM, "action");
    k->n_after = 0;
    for (uint32_t i = 0; i < p->n_arg; i++) {
        CD_TRY(view_of(k, p, i, &v, err));
        if (i + 1 == p->n_arg) CD_TRY(plan_exec_write(k, &v, p->device, &buffer[i], err));
        else if (v.tensor < net->n_tensor && net->tensor[v.tensor].constant)
            CD_TRY(plan_exec_weight(k, &v, p->device, &buffer[i], err));
        else CD_TRY(plan_exec_read(k, &v, p->device, &buffer[i], err));
    }
    const cd_shard_plan_op *o = &k->m->plan->op[p->op];
    if (o->n_part == 1) snprintf(name, sizeof name, "%.100s", net->op[p->op].name);
    else if (p->part == o->n_part) snprintf(name, sizeof name, "%.100s.join", net->op[p->op].name);
    else snprintf(name, sizeof name, "%.80s.%.8s%u", net->op[p->op].name, o->dim, p->part);
    const char *kept = cd_str_dup(&k->m->arena, (cd_str){name, strlen(name)});
    if (!kept) return CD_FAIL(err, ENOMEM, "action");
    return plan_exec_add_action(k,
                                (cd_multi_action){.name = kept,
                                                  .device = p->device,
                                                  .build = &k->m->item[p->program].build,
                                                  .buffer = buffer},
                                p->part, err);
}

static uint32_t first_alive(const struct cd_plan_run *r) {
    uint32_t d = 0;
    while (d + 1 < r->ask.machine->n && (r->dead >> d & 1)) d++;
    for (uint32_t k = d; k < r->ask.machine->n; k++)
        if (!(r->dead >> k & 1) && !r->ask.machine->device[k].memory) return k;
    return d;
}

static cdmpp_status bring_home(cd_plan_exec_maker *k, cdmpp_err *err) {
    const cd_shard_net *net = k->a->net;
    k->op = net->n_op;
    for (uint32_t t = 0; t < net->n_tensor; t++) {
        k->n_after = 0;
        if (net->tensor[t].result)
            CD_TRY(plan_exec_home(k, t, first_alive(k->r), &k->m->home[t], err));
    }
    return CDMPP_OK;
}

/* Devices come last: only when all actions exist, copies too, is it known which devices have
 * work. */
cdmpp_status cd_plan_exec_actions(cd_plan_exec *m, const struct cd_plan_run *r, cdmpp_err *err) {
    cd_plan_exec_maker k = {.m = m, .r = r, .a = &r->ask};
    cdmpp_status st = make_tensors(&k, err);
    if (!st) st = give_inputs(&k, err);
    for (uint32_t i = 0; i < m->n_piece && !st; i++) {
        k.op = m->piece[i].op;
        st = cd_err_key(err, add_piece(&k, &m->piece[i], err), k.a->net->op[k.op].name);
    }
    if (!st) st = bring_home(&k, err);
    cd_mem_free(k.after);
    if (!st) make_devices(m, r);
    m->dn.buffer = m->buffer;
    m->dn.action = m->action;
    return st;
}
