/* A net of devices is made ready and taken down: one worker a device with its list of actions, one
 * step an action with the steps of other devices that it waits for, the programs loaded. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "profiler/host/host.h"
#include "profiler/runtime/multi/multi_executor_internal.h"

/* Where everything is: buffers and their windows, packed constants, scratch of devices; and their
 * content. */

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

/* Gives every buffer, packed constant and scratch a place and allocates the host's block. Errors:
 * EINVALID, ENOMEM. */
static cdmpp_status multi_place_all(cd_multi_executor *r, cdmpp_err *err) {
    CD_TRY(make_places(r, err));
    CD_TRY(make_block(r, err));
    return make_stages(r, err);
}

/* ---- content ---- */

static cdmpp_status multi_queue_transfer(cd_multi_executor *r, uint32_t place, int64_t at, size_t n,
                                         const void *from, void *to, cdmpp_err *err);

/* n bytes of a place, in from `from` or out to `to`, in whatever memory the place is. */
static cdmpp_status move(cd_multi_executor *r, uint32_t place, int64_t at, size_t n,
                         const void *from, void *to, cdmpp_err *err) {
    if (!n) return CDMPP_OK;
    if (r->place[place].memory) return multi_queue_transfer(r, place, at, n, from, to, err);
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

/* OpenCL devices made ready: their buffers and windows, their programs, and the arguments of native
 * kernels. */

cdmpp_status cd_multi_queue_error(const cd_multi_worker *w, int32_t st, const char *what,
                                  cdmpp_err *err) {
    return CD_FAIL(err, EBACKEND, "device %.60s: %.80s (%s)", w->is->name, what,
                   cd_opencl_api_error(st));
}

static cdmpp_status new_buffer(const cd_multi_worker *w, int64_t bytes, void *host, cd_cl *out,
                               cdmpp_err *err) {
    const size_t n = bytes > 4 ? (size_t)bytes : 4;
    const uint32_t zero = 0;
    int32_t st = 0;
    if (n > w->cl->alloc_max)
        return CD_FAIL(err, EBACKEND, "device %.60s: a buffer of %zu bytes, at most %llu",
                       w->is->name, n, (unsigned long long)w->cl->alloc_max);
    *out = cd_multi_api(w)->clCreateBuffer(
        w->cl->context, CD_CL_MEM_READ_WRITE | (host ? CD_CL_MEM_USE_HOST_PTR : 0), n, host, &st);
    if (st) *out = NULL;
    if (!st && !host && n % 4 == 0)
        st =
            cd_multi_api(w)->clEnqueueFillBuffer(w->cl->queue, *out, &zero, 4, 0, n, 0, NULL, NULL);
    return st ? cd_multi_queue_error(w, st, "no buffer", err) : CDMPP_OK;
}

/* A window is a buffer too where it begins as the device wants. *out NULL: it cannot. */
static cdmpp_status new_window(const cd_multi_worker *w, const cd_multi_place *p, cd_cl *out,
                               cdmpp_err *err) {
    const size_t region[2] = {(size_t)p->offset, p->bytes > 0 ? (size_t)p->bytes : 1};
    int32_t st = 0;
    if (!p->bytes || (uint64_t)p->offset * 8 % (w->cl->align_bits ? w->cl->align_bits : 8))
        return CDMPP_OK;
    *out = cd_multi_api(w)->clCreateSubBuffer(w->mem[p->root], CD_CL_MEM_READ_WRITE,
                                              CD_CL_BUFFER_REGION, region, &st);
    if (st) *out = NULL;
    return st ? cd_multi_queue_error(w, st, "no window", err) : CDMPP_OK;
}

static cdmpp_status make_buffers(cd_multi_worker *w, cdmpp_err *err) {
    cd_multi_executor *r = w->net;
    if (!(w->mem = CD_NEWN(&r->arena, cd_cl, r->n_place + 1)))
        return CD_FAIL(err, ENOMEM, "buffers of a device");
    for (uint32_t p = 0; p < r->n_place && w->is->memory; p++) {
        if (r->place[p].memory != w->is->memory) continue;
        if (r->place[p].root == p) CD_TRY(new_buffer(w, r->place[p].bytes, NULL, &w->mem[p], err));
        else if (w->is->kind == CD_MULTI_OPENCL)
            CD_TRY(new_window(w, &r->place[p], &w->mem[p], err));
    }
    const int32_t st = cd_multi_api(w)->clFinish(w->cl->queue);
    return st ? cd_multi_queue_error(w, st, "buffers", err) : CDMPP_OK;
}

/* Opens the device and makes its buffers. Errors: EBACKEND, ENOMEM. */
static cdmpp_status multi_queue_open(cd_multi_worker *w, cdmpp_err *err) {
    CD_TRY(cd_backend_opencl.open(w->is->opencl ? w->is->opencl : "", "opencl", &w->backend, err));
    w->cl = cd_backend_opencl_device(w->backend);
    if (w->is->kind == CD_MULTI_NATIVE && !(w->cl->execution & CD_CL_NATIVE_KERNEL))
        return CD_FAIL(err, EBACKEND, "device %.60s: %.80s does not run functions of the host",
                       w->is->name, w->cl->name);
    if (!w->is->memory && !(w->cl->kind & CD_CL_DEVICE_CPU))
        return CD_FAIL(err, EBACKEND, "device %.60s: %.80s does not work in the host's memory",
                       w->is->name, w->cl->name);
    return w->walks ? CDMPP_OK : make_buffers(w, err);
}

/* ---- actions ---- */

/* The buffers of a program, each once, in the order in which they were made: PoCL 3.1 sorts the
 * list so, and leaves the holes as they are. */
static void list_buffers(cd_multi_worker *w, cd_multi_step *s) {
    const cd_multi_executor *r = w->net;
    for (uint32_t p = 0; p < r->n_place; p++) {
        bool any = false;
        for (uint32_t b = 0; b < s->n_place; b++) {
            if (r->place[s->place[b]].root != p) continue;
            s->which[b] = s->n_mem;
            any = true;
        }
        if (!any) continue;
        s->mem[s->n_mem] = w->mem[p];
        s->hole[s->n_mem] = &s->native->arg[s->n_place + s->n_mem];
        s->n_mem++;
    }
}

/* A native kernel is given the worker, the step, and room for the pointers that OpenCL fills in
 * (the holes). */
static cdmpp_status load_native(cd_multi_worker *w, uint32_t action, cdmpp_err *err) {
    cd_multi_executor *r = w->net;
    cd_multi_step *s = &r->step[action];
    s->n_native = sizeof *s->native + 2 * s->n_place * sizeof s->native->arg[0];
    s->native = cd_arena_zalloc(&r->arena, 1, s->n_native);
    s->mem = CD_NEWN(&r->arena, cd_cl, s->n_place + 1);
    s->which = CD_NEWN(&r->arena, uint32_t, s->n_place + 1);
    s->hole = CD_NEWN(&r->arena, const void *, s->n_place + 1);
    if (!s->native || !s->mem || !s->which || !s->hole)
        return CD_FAIL(err, ENOMEM, "native kernel");
    *s->native = (cd_multi_native){.worker = w, .step = action};
    list_buffers(w, s);
    return CDMPP_OK;
}

/* The device buffer of parameter b. In memory 0 it is made over the host's bytes; a window that
 * cannot be a sub-buffer gets a copy of its own beside it. */
static cdmpp_status give_buffer(cd_multi_worker *w, cd_multi_step *s, uint32_t b, cdmpp_err *err) {
    cd_multi_executor *r = w->net;
    const uint32_t p = s->place[b];
    if (!w->mem[p] && !r->place[p].memory)
        CD_TRY(new_buffer(w, r->place[p].bytes, cd_multi_place_at(r, p), &w->mem[p], err));
    s->mem[b] = w->mem[p];
    if (s->mem[b]) return CDMPP_OK;
    s->beside[b] = true;
    return new_buffer(w, r->place[p].bytes, NULL, &s->mem[b], err);
}

/* The build of a program: the given one, or the one compiled here for the same code. */
static const cd_build *built(const cd_multi_executor *r, const cd_build *b) {
    for (uint32_t k = 0; k < r->n_build && !b->object; k++)
        if (r->build[k].code == b->code) return &r->build[k];
    return b;
}

/* OpenCL C without an object is compiled here. */
static cdmpp_status build_for(cd_multi_worker *w, const cd_build *b, cdmpp_err *err) {
    cd_multi_executor *r = w->net;
    if (b->object || built(r, b) != b) return CDMPP_OK;
    cd_build *mine = &r->build[r->n_build++];
    *mine = (cd_build){.code = b->code};
    CD_TRY(cd_backend_opencl.build(w->backend, mine, 1, 1, err));
    if (mine->status && err) *err = mine->err;
    return mine->status;
}

static cdmpp_status load_opencl(cd_multi_worker *w, uint32_t action, cdmpp_err *err) {
    cd_multi_executor *r = w->net;
    cd_multi_step *s = &r->step[action];
    const cd_build *b = r->dn->action[action].build;
    s->mem = CD_NEWN(&r->arena, cd_cl, s->n_place + 1);
    s->beside = CD_NEWN(&r->arena, bool, s->n_place + 1);
    if (!s->mem || !s->beside) return CD_FAIL(err, ENOMEM, "kernel");
    CD_TRY(build_for(w, b, err));
    for (uint32_t k = 0; k < s->n_place; k++) CD_TRY(give_buffer(w, s, k, err));
    return cd_backend_opencl_load_on(w->backend, built(r, b), s->mem, &s->program, err);
}

/* Makes an action ready: its kernel and arguments. Errors: as open. */
static cdmpp_status multi_queue_load(cd_multi_worker *w, uint32_t action, cdmpp_err *err) {
    const cd_multi_action *a = &w->net->dn->action[action];
    if (w->walks || !a->build) return CDMPP_OK;
    return cd_err_key(err,
                      w->is->kind == CD_MULTI_NATIVE ? load_native(w, action, err)
                                                     : load_opencl(w, action, err),
                      a->name);
}

static void multi_queue_close(cd_multi_worker *w) {
    cd_multi_executor *r = w->net;
    for (uint32_t i = 0; i < w->n && w->cl; i++) {
        cd_multi_step *s = &r->step[w->action[i]];
        cd_backend_opencl.unload(s->program);
        for (uint32_t b = 0; s->beside && s->mem && b < s->n_place; b++)
            if (s->beside[b] && s->mem[b]) cd_multi_api(w)->clReleaseMemObject(s->mem[b]);
    }
    for (uint32_t p = r->n_place; w->mem && p-- > 0;) /* scratch and windows first */
        if (w->mem[p] && r->place[p].root != p) cd_multi_api(w)->clReleaseMemObject(w->mem[p]);
    for (uint32_t p = 0; w->mem && p < r->n_place; p++)
        if (w->mem[p] && r->place[p].root == p) cd_multi_api(w)->clReleaseMemObject(w->mem[p]);
    if (w->backend) cd_backend_opencl.close(w->backend);
}

/* ---- content ---- */

/* Moves n bytes of a place that is not in memory 0, from byte `at` on: in where `from` is given,
 * else out. Errors: ERANGE, EBACKEND. */
static cdmpp_status multi_queue_transfer(cd_multi_executor *r, uint32_t place, int64_t at, size_t n,
                                         const void *from, void *to, cdmpp_err *err) {
    const cd_multi_place *p = &r->place[place];
    const cd_multi_worker *w = NULL;
    for (uint32_t d = 0; d < r->dn->n_device; d++)
        if (r->dn->device[d].memory == p->memory) w = &r->worker[d];
    if (!w) return CD_FAIL(err, ERANGE, "no device has memory %u", p->memory);
    const size_t first = (size_t)(p->offset + at);
    const int32_t st = from ? cd_multi_api(w)->clEnqueueWriteBuffer(
                                  w->cl->queue, w->mem[p->root], 1, first, n, from, 0, NULL, NULL)
                            : cd_multi_api(w)->clEnqueueReadBuffer(w->cl->queue, w->mem[p->root], 1,
                                                                   first, n, to, 0, NULL, NULL);
    return st ? cd_multi_queue_error(w, st, "buffer's content", err) : CDMPP_OK;
}

/* ---- devices and what waits for what ---- */

/* Whether another device's thread needs the processor of this one: both are on it, or there are
 * fewer processors than devices. */
static bool shares(const cd_multi_net *n, uint32_t d) {
    bool same = false;
    for (uint32_t e = 0; e < n->n_device; e++)
        same = same || (e != d && n->device[d].core >= 0 && n->device[e].core == n->device[d].core);
    return same || (int)n->n_device > cd_affinity_count();
}

/* Each device's actions, in the order of the net's list, and whether the device walks or has a
 * queue. */
static cdmpp_status make_workers(cd_multi_executor *r, cdmpp_err *err) {
    const cd_multi_net *n = r->dn;
    r->worker = CD_NEWN(&r->arena, cd_multi_worker, n->n_device + 1);
    if (!r->worker) return CD_FAIL(err, ENOMEM, "%u devices", n->n_device);
    /* all of them: close reads every worker */
    for (uint32_t d = 0; d < n->n_device; d++)
        r->worker[d] =
            (cd_multi_worker){.net = r, .is = &n->device[d], .number = d, .breaks = UINT32_MAX};
    for (uint32_t d = 0; d < n->n_device; d++) {
        cd_multi_worker *w = &r->worker[d];
        w->spin_s = shares(n, d) ? CD_MULTI_SHARED_SPIN_S : CD_MULTI_SPIN_S;
        w->walks =
            w->is->kind == CD_MULTI_CPU || (w->is->kind == CD_MULTI_NATIVE && !w->is->memory);
        for (uint32_t k = 0; k < n->n_action; k++) w->n += n->action[k].device == d;
        if (!(w->action = CD_NEWN(&r->arena, uint32_t, w->n + 1)))
            return CD_FAIL(err, ENOMEM, "%u actions", n->n_action);
        for (uint32_t k = 0, i = 0; k < n->n_action; k++)
            if (n->action[k].device == d) w->action[i++] = k;
    }
    return CDMPP_OK;
}

/* What step k waits for: only steps of other devices, since a device runs its own actions in order
 * anyway. */
static cdmpp_status make_waits(cd_multi_executor *r, uint32_t k, cdmpp_err *err) {
    const cd_multi_action *a = &r->dn->action[k];
    cd_multi_step *s = &r->step[k];
    s->worker = &r->worker[a->device];
    if (!(s->wait = CD_NEWN(&r->arena, uint32_t, a->n_after + 1)))
        return CD_FAIL(err, ENOMEM, "%u actions", r->dn->n_action);
    for (uint32_t e = 0; e < a->n_after; e++) {
        if (r->dn->action[a->after[e]].device == a->device) continue;
        s->wait[s->n_wait++] = a->after[e];
        r->step[a->after[e]].asked = true;
    }
    return CDMPP_OK;
}

/* `asked` steps are those whose end somebody wants to know: the pass asks about the last one of
 * each device, and a device asks about the step before one that waits, to know whether its queue is
 * still busy. */
static void ask_ends(cd_multi_executor *r) {
    for (uint32_t d = 0; d < r->dn->n_device; d++) {
        const cd_multi_worker *w = &r->worker[d];
        for (uint32_t i = 0; i < w->n; i++)
            if (i + 1 == w->n || r->step[w->action[i + 1]].n_wait)
                r->step[w->action[i]].asked = true;
    }
}

/* A copy in bytes, with as few dimensions as it can have. */
static cd_multi_copy_box box_of(const cd_multi_copy *c) {
    const int64_t size = (int64_t)c->size;
    cd_multi_copy_box b = {
        .bytes = size, .from_first = c->from_first * size, .to_first = c->to_first * size};
    for (uint32_t d = 0; d < c->rank; d++) {
        b.bytes *= c->n[d];
        if (c->n[d] == 1) continue;
        const uint32_t last = b.rank - 1;
        const bool joins = b.rank && b.from[last] == c->n[d] * c->from_stride[d] * size &&
                           b.to[last] == c->n[d] * c->to_stride[d] * size;
        const uint32_t at = joins ? last : b.rank++;
        b.n[at] = (joins ? b.n[at] : 1) * c->n[d];
        b.from[at] = c->from_stride[d] * size;
        b.to[at] = c->to_stride[d] * size;
    }
    const bool run = b.rank && b.from[b.rank - 1] == size && b.to[b.rank - 1] == size;
    const uint32_t at = run ? b.rank - 1 : b.rank++;
    b.n[at] = (run ? b.n[at] : 1) * size;
    b.from[at] = b.to[at] = 1;
    return b;
}

static cdmpp_status make_steps(cd_multi_executor *r, cdmpp_err *err) {
    const uint32_t n = r->dn->n_action;
    r->step_block = cd_mem_zalloc((size_t)n + 2, sizeof *r->step);
    if (!r->step_block) return CD_FAIL(err, ENOMEM, "%u actions", n);
    const size_t align = _Alignof(cd_multi_step);
    r->step = (void *)(((uintptr_t)r->step_block + align - 1) / align * align);
    for (uint32_t k = 0; k < n; k++) {
        CD_TRY(make_waits(r, k, err));
        if (!r->dn->action[k].build) r->step[k].box = box_of(&r->dn->action[k].copy);
    }
    ask_ends(r);
    return CDMPP_OK;
}

/* ---- programs ---- */

/* The compiled object of step k (host code) or its kernel (OpenCL). */
static cdmpp_status load(cd_multi_executor *r, uint32_t k, cdmpp_err *err) {
    const cd_multi_action *a = &r->dn->action[k];
    cd_multi_step *s = &r->step[k];
    if (a->build && s->worker->is->kind != CD_MULTI_OPENCL)
        CD_TRY(cd_err_key(err, cd_object_loader_open(a->build, 1, &s->handle, &s->entry, err),
                          a->name));
    if (a->build && a->end)
        CD_TRY(cd_err_key(err, cd_object_loader_parts(s->handle, a->build->code, &s->part, err),
                          a->name));
    s->begin = (int)a->begin, s->end = (int)a->end;
    return s->worker->is->kind == CD_MULTI_CPU ? CDMPP_OK : multi_queue_load(s->worker, k, err);
}

static cdmpp_status load_all(cd_multi_executor *r, cdmpp_err *err) {
    r->build = CD_NEWN(&r->arena, cd_build, r->dn->n_action + 1);
    if (!r->build) return CD_FAIL(err, ENOMEM, "%u actions", r->dn->n_action);
    for (uint32_t d = 0; d < r->dn->n_device; d++)
        if (r->dn->device[d].kind != CD_MULTI_CPU) CD_TRY(multi_queue_open(&r->worker[d], err));
    for (uint32_t k = 0; k < r->dn->n_action; k++) CD_TRY(load(r, k, err));
    return CDMPP_OK;
}

/* ---- life ---- */

/* A device whose driver never said that its last commands have ended may still write to the net's
 * memory: then nothing is released. */
void cd_multi_executor_close(cd_multi_executor *r) {
    if (!r) return;
    cd_multi_threads_stop(r);
    for (uint32_t d = 0; r->worker && d < r->dn->n_device; d++)
        /* its driver says of nothing that it has ended: the memory stays with it */
        if (!cd_multi_queue_finished(&r->worker[d])) return;
    for (uint32_t d = 0; r->worker && d < r->dn->n_device; d++) multi_queue_close(&r->worker[d]);
    for (uint32_t k = 0; r->step && k < r->dn->n_action; k++)
        cd_object_loader_close(r->step[k].handle);
    for (uint32_t b = 0; b < r->n_build; b++) cd_mem_free(r->build[b].object);
    if (r->block) munmap(r->block, r->n_block);
    cd_mem_free(r->step_block);
    cd_mem_free(r->chunk);
    cd_mem_free(r->stage[0]);
    cd_mem_free(r->stage[1]);
    cd_arena_free(&r->arena);
    cd_mem_free(r);
}

/* The order matters: workers before steps (they point to workers), places before load (buffers have
 * to exist), threads last. */
cdmpp_status cd_multi_executor_open(const cd_multi_net *n, cd_multi_executor **out,
                                    cdmpp_err *err) {
    CD_TRY(cd_multi_check(n, err));
    CD_TRY(cd_multi_check_order(n, err));
    cd_multi_executor *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "net of devices");
    r->dn = n;
    cdmpp_status st = make_workers(r, err);
    if (!st) st = make_steps(r, err);
    if (!st) st = multi_place_all(r, err);
    if (!st) st = load_all(r, err);
    if (!st) st = cd_multi_threads_start(r, err);
    if (st) cd_multi_executor_close(r);
    else *out = r;
    return st;
}

/* ---- tests and what-ifs ---- */

void cd_multi_executor_slow(cd_multi_executor *r, uint32_t device, unsigned times) {
    if (device < r->dn->n_device) r->worker[device].slow = times;
}

void cd_multi_executor_break(cd_multi_executor *r, uint32_t device, uint32_t after) {
    if (device < r->dn->n_device) r->worker[device].breaks = after;
}

void cd_multi_executor_moved(const cd_multi_executor *r, int64_t *between, int64_t *within) {
    *between = *within = 0;
    for (uint32_t k = 0; k < r->dn->n_action; k++) {
        const cd_multi_action *a = &r->dn->action[k];
        if (a->build || atomic_load(&r->step[k].word.value) != cd_multi_pass_value(r, false))
            continue;
        *(r->dn->buffer[a->copy.from].memory != r->dn->buffer[a->copy.to].memory ? between
                                                                                 : within) +=
            r->step[k].box.bytes;
    }
}
