/* Where everything is: buffers and their windows, packed constants, scratch of devices; and their
 * content. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "profiler/runtime/multi/multi_executor_internal.h"

static uint32_t new_place(cd_multi_executor *r, uint32_t memory, int64_t bytes) {
    const uint32_t p = r->n_place++;
    r->place[p] = (cd_multi_place){.memory = memory, .root = p, .bytes = bytes};
    return p;
}

static void place_buffers(cd_multi_executor *r) {
    for (uint32_t k = 0; k < r->dn->n_buffer; k++) {
        const cd_multi_buffer *b = &r->dn->buffer[k];
        new_place(r, b->memory, b->bytes);
        if (b->of == CD_MULTI_OWN) continue;
        r->place[k].root = b->of;
        r->place[k].offset = b->offset;
    }
}

/* The place of a packed constant: one for each program, parameter and buffer. */
static cdmpp_status place_packed(cd_multi_executor *r, const cd_multi_action *a, uint32_t param,
                                 uint32_t *place, cdmpp_err *err) {
    const uint32_t buffer = a->buffer[param];
    cd_multi_packed *p = r->packed;
    while (p && (p->code != a->build->code || p->param != param || p->buffer != buffer))
        p = p->next;
    if (!p) {
        if (!(p = CD_NEW(&r->arena, cd_multi_packed)))
            return CD_FAIL(err, ENOMEM, "packed constants");
        *p = (cd_multi_packed){
            a->build->code, param, buffer,
            new_place(r, r->dn->buffer[buffer].memory, a->build->code->buffer[param].bytes),
            r->packed};
        r->packed = p;
    }
    *place = p->place;
    return CDMPP_OK;
}

/* Actions of a device run one after the other: they share scratch. */
static cdmpp_status place_scratch(cd_multi_executor *r, cd_multi_worker *w, uint32_t number,
                                  int64_t bytes, uint32_t *place, cdmpp_err *err) {
    if (number >= w->n_scratch) return CD_FAIL(err, EINVALID, "scratch %u", number);
    if (w->scratch[number] == UINT32_MAX) w->scratch[number] = new_place(r, w->is->memory, 0);
    *place = w->scratch[number];
    if (r->place[*place].bytes < bytes) r->place[*place].bytes = bytes;
    return CDMPP_OK;
}

/* A place for each of the action's buffers: the net's own buffer, a packed copy, or the device's
 * scratch. */
static cdmpp_status place_action(cd_multi_executor *r, uint32_t k, cdmpp_err *err) {
    const cd_multi_action *a = &r->dn->action[k];
    const cd_codegen_code *c = a->build->code;
    cd_multi_step *s = &r->step[k];
    s->n_place = c->n_buffer;
    s->place = CD_NEWN(&r->arena, uint32_t, c->n_buffer + 1);
    s->arg = CD_NEWN(&r->arena, void *, c->n_buffer + 1);
    if (!s->place || !s->arg) return CD_FAIL(err, ENOMEM, "places of %u actions", r->dn->n_action);
    for (uint32_t b = 0; b < c->n_buffer; b++) {
        if (b >= c->n_arg)
            CD_TRY(
                place_scratch(r, s->worker, b - c->n_arg, c->buffer[b].bytes, &s->place[b], err));
        else if (c->buffer[b].n_digit) CD_TRY(place_packed(r, a, b, &s->place[b], err));
        else s->place[b] = a->buffer[b];
    }
    return CDMPP_OK;
}

/* Places in this order: the net's buffers (place number = buffer number), then packed copies and
 * scratch as actions need them. */
static cdmpp_status make_places(cd_multi_executor *r, cdmpp_err *err) {
    const cd_multi_net *n = r->dn;
    size_t most = n->n_buffer + 1;
    for (uint32_t d = 0; d < n->n_device; d++) r->worker[d].n_scratch = 0;
    for (uint32_t k = 0; k < n->n_action; k++) {
        if (!n->action[k].build) continue;
        const cd_codegen_code *c = n->action[k].build->code;
        cd_multi_worker *w = &r->worker[n->action[k].device];
        if (c->n_buffer - c->n_arg > w->n_scratch) w->n_scratch = c->n_buffer - c->n_arg;
        most += c->n_buffer;
    }
    r->place = CD_NEWN(&r->arena, cd_multi_place, most);
    if (!r->place) return CD_FAIL(err, ENOMEM, "%zu places", most);
    for (uint32_t d = 0; d < n->n_device; d++) {
        cd_multi_worker *w = &r->worker[d];
        if (!(w->scratch = CD_NEWN(&r->arena, uint32_t, w->n_scratch + 1)))
            return CD_FAIL(err, ENOMEM, "scratch");
        for (uint32_t i = 0; i < w->n_scratch; i++) w->scratch[i] = UINT32_MAX;
    }
    place_buffers(r);
    for (uint32_t k = 0; k < n->n_action; k++)
        if (n->action[k].build) CD_TRY(place_action(r, k, err));
    return CDMPP_OK;
}

/* All of memory 0 in one block. */
static cdmpp_status make_block(cd_multi_executor *r, cdmpp_err *err) {
    enum { PAGE = 4096 };
    int64_t all = 0;
    for (uint32_t p = 0; p < r->n_place; p++) {
        cd_multi_place *x = &r->place[p];
        if (x->memory || x->root != p) continue;
        x->at = all;
        if (x->bytes > INT64_MAX / 2 - all)
            return CD_FAIL(err, ENOMEM, "more memory than there can be");
        /* at least one byte */
        all += (x->bytes + CD_MULTI_ALIGN) / CD_MULTI_ALIGN * CD_MULTI_ALIGN;
    }
    r->n_block = (size_t)all + PAGE;
    void *block =
        mmap(NULL, r->n_block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return CD_FAIL(err, ENOMEM, "%zu bytes for a net: %s", r->n_block, strerror(errno));
    r->block = block;
    (void)madvise(block, r->n_block, MADV_HUGEPAGE);
    for (uint32_t p = 0; p < r->n_place; p++)
        if (!r->place[p].memory && r->place[p].root != p)
            r->place[p].at = r->place[r->place[p].root].at + r->place[p].offset;
    for (uint32_t k = 0; k < r->dn->n_action; k++)
        for (uint32_t b = 0; b < r->step[k].n_place; b++)
            if (!r->place[r->step[k].place[b]].memory)
                r->step[k].arg[b] = cd_multi_place_at(r, r->step[k].place[b]);
    return CDMPP_OK;
}

/* Content on its way to and from devices. */
static cdmpp_status make_stages(cd_multi_executor *r, cdmpp_err *err) {
    int64_t most[2] = {0, 0};
    for (const cd_multi_packed *p = r->packed; p; p = p->next) {
        if (!r->place[p->place].memory) continue;
        if (r->place[p->buffer].bytes > most[0]) most[0] = r->place[p->buffer].bytes;
        if (r->place[p->place].bytes > most[1]) most[1] = r->place[p->place].bytes;
    }
    r->chunk = cd_mem_alloc(CD_MULTI_CHUNK);
    for (int i = 0; i < 2; i++) r->stage[i] = cd_mem_alloc((size_t)most[i] + 1);
    return r->chunk && r->stage[0] && r->stage[1] ? CDMPP_OK
                                                  : CD_FAIL(err, ENOMEM, "content of buffers");
}

cdmpp_status cd_multi_place_all(cd_multi_executor *r, cdmpp_err *err) {
    CD_TRY(make_places(r, err));
    CD_TRY(make_block(r, err));
    return make_stages(r, err);
}

/* ---- content ---- */

/* n bytes of a place, in from `from` or out to `to`, in whatever memory the place is. */
static cdmpp_status move(cd_multi_executor *r, uint32_t place, int64_t at, size_t n,
                         const void *from, void *to, cdmpp_err *err) {
    if (!n) return CDMPP_OK;
    if (r->place[place].memory) return cd_multi_queue_transfer(r, place, at, n, from, to, err);
    if (from) memcpy(cd_multi_place_at(r, place) + at, from, n);
    else if (to) memcpy(to, cd_multi_place_at(r, place) + at, n);
    return CDMPP_OK;
}

/* One packed constant, made anew. What lies in a device's memory goes through the host. */
static cdmpp_status pack(cd_multi_executor *r, const cd_multi_packed *p, cdmpp_err *err) {
    const cd_multi_buffer *b = &r->dn->buffer[p->buffer];
    const cd_codegen_buffer *c = &p->code->buffer[p->param];
    if (!b->memory) {
        cd_codegen_pack(c, b->rank, b->shape, cd_multi_place_at(r, p->buffer),
                        cd_multi_place_at(r, p->place));
        return CDMPP_OK;
    }
    CD_TRY(move(r, p->buffer, 0, (size_t)b->bytes, NULL, r->stage[0], err));
    memset(r->stage[1], 0, (size_t)c->bytes);
    cd_codegen_pack(c, b->rank, b->shape, r->stage[0], r->stage[1]);
    return move(r, p->place, 0, (size_t)c->bytes, r->stage[1], NULL, err);
}

/* Packs every constant again that was made of this buffer or of what shares its bytes. */
static cdmpp_status pack_again(cd_multi_executor *r, uint32_t buffer, cdmpp_err *err) {
    for (const cd_multi_packed *p = r->packed; p; p = p->next)
        if (r->place[p->buffer].root == r->place[buffer].root) CD_TRY(pack(r, p, err));
    return CDMPP_OK;
}

static cdmpp_status known(const cd_multi_executor *r, uint32_t buffer, cdmpp_err *err) {
    return buffer < r->dn->n_buffer ? CDMPP_OK
                                    : CD_FAIL(err, ERANGE, "there is no buffer %u", buffer);
}

cdmpp_status cd_multi_executor_write(cd_multi_executor *r, uint32_t buffer, const void *from,
                                     cdmpp_err *err) {
    CD_TRY(known(r, buffer, err));
    CD_TRY(move(r, buffer, 0, (size_t)r->dn->buffer[buffer].bytes, from, NULL, err));
    return pack_again(r, buffer, err);
}

cdmpp_status cd_multi_executor_read(cd_multi_executor *r, uint32_t buffer, void *to,
                                    cdmpp_err *err) {
    CD_TRY(known(r, buffer, err));
    return move(r, buffer, 0, (size_t)r->dn->buffer[buffer].bytes, NULL, to, err);
}

cdmpp_status cd_multi_executor_fill(cd_multi_executor *r, uint32_t buffer, uint64_t seed,
                                    cdmpp_err *err) {
    CD_TRY(known(r, buffer, err));
    const cd_multi_buffer *b = &r->dn->buffer[buffer];
    const size_t size = cd_expr_dtype_bytes(b->dtype), each = size ? CD_MULTI_CHUNK / size : 0,
                 n = size ? (size_t)b->bytes / size : 0;
    for (size_t at = 0; at < n || !size; at += each) {
        const size_t m = n - at < each ? n - at : each;
        if (!size || !cd_tensor_fill(b->dtype, (uint32_t)seed, at, m, r->chunk))
            return CD_FAIL(err, EUNSUPPORTED, "buffer %u (%.60s): a type that cannot be filled",
                           buffer, b->name);
        CD_TRY(move(r, buffer, (int64_t)(at * size), m * size, r->chunk, NULL, err));
    }
    return pack_again(r, buffer, err);
}
