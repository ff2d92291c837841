/* A network on one OpenCL device: each program compiled once, tensors and scratch put into buffers
 * of the device that they share in turns, one queue. */
#include "profiler/runtime/single/single_internal.h"

typedef struct {
    int64_t bytes;
    uint32_t free_at; /* step from which it is free; UINT32_MAX: never */
    cd_cl buffer;
} slot;

typedef struct {
    uint32_t first, last, slot; /* of a tensor; first UINT32_MAX: nobody uses it */
} life;

typedef struct {
    cd_loaded *program;
    uint32_t *slot;    /* (n_buffer) */
    cd_cl *buffer;     /* (n_buffer) */
    cd_cl first, last; /* events of the pass; last NULL: one kernel */
} step;

struct cd_executor_opencl {
    cd_arena arena;
    const cd_executor_net *net;
    cd_backend *backend;
    const cd_opencl *device;
    life *life;      /* (n_tensor) */
    step *step;      /* (n_step) */
    cd_build *build; /* (n_build) of different programs */
    uint32_t *which; /* (n_step) */
    slot *slot;      /* (n_slot) */
    uint32_t n_slot, n_build;
};

static cdmpp_status fail(const cd_executor_opencl *r, int32_t st, const char *what,
                         cdmpp_err *err) {
    return CD_FAIL(err, EBACKEND, "OpenCL device %s: %s (%s)", r->device->name, what,
                   cd_opencl_api_error(st));
}

static const cd_codegen_code *code_of(const cd_executor_opencl *r, uint32_t k) {
    return r->net->step[k].build->code;
}
static bool always(const cd_executor_net_tensor *t) { return t->role != CD_TENSOR_INNER; }

/* ---- slots ---- */

/* From which step to which each tensor is used; refuses parameters that do not fit, packed ones,
 * and reads before the first write. */
static cdmpp_status find_lives(cd_executor_opencl *r, cdmpp_err *err) {
    const cd_executor_net *n = r->net;
    for (uint32_t t = 0; t < n->n_tensor; t++) r->life[t] = (life){UINT32_MAX, 0, UINT32_MAX};
    for (uint32_t k = 0; k < n->n_step; k++)
        for (uint32_t b = 0; b < code_of(r, k)->n_arg; b++) {
            const cd_codegen_buffer *x = &code_of(r, k)->buffer[b];
            const uint32_t t = n->step[k].tensor[b];
            if (t >= n->n_tensor ||
                n->tensor[t].bytes < x->elements * cd_expr_dtype_bytes(x->dtype))
                return CD_FAIL(err, EINVALID,
                               "step %u (%.60s): parameter %.60s does not fit its tensor", k,
                               n->step[k].name, x->name);
            if (x->n_digit)
                return CD_FAIL(err, EINVALID, "step %u (%.60s): parameter %.60s is packed", k,
                               n->step[k].name, x->name);
            if (r->life[t].first == UINT32_MAX && !x->written && !always(&n->tensor[t]))
                return CD_FAIL(err, EINVALID, "step %u (%.60s) reads tensor %u before it is made",
                               k, n->step[k].name, t);
            if (r->life[t].first == UINT32_MAX) r->life[t].first = k;
            r->life[t].last = k;
        }
    return CDMPP_OK;
}

/* A slot for `bytes` from step k on: the smallest free one that is large enough, else the largest
 * free one grows. */
static uint32_t take(cd_executor_opencl *r, int64_t bytes, uint32_t k, uint32_t until) {
    uint32_t best = UINT32_MAX;
    for (uint32_t s = 0; s < r->n_slot && until != UINT32_MAX; s++) {
        if (r->slot[s].free_at > k) continue;
        const bool fits = r->slot[s].bytes >= bytes,
                   did = best != UINT32_MAX && r->slot[best].bytes >= bytes;
        if (best == UINT32_MAX || (fits && (!did || r->slot[s].bytes < r->slot[best].bytes)) ||
            (!fits && !did && r->slot[s].bytes > r->slot[best].bytes))
            best = s;
    }
    if (best == UINT32_MAX) best = r->n_slot++;
    if (r->slot[best].bytes < bytes) r->slot[best].bytes = bytes;
    r->slot[best].free_at = until == UINT32_MAX ? until : until + 1;
    return best;
}

/* Slots of a step's buffers: scratch for this step only, a tensor from its first step to its
 * last. */
static void place_step(cd_executor_opencl *r, uint32_t k) {
    const cd_codegen_code *c = code_of(r, k);
    for (uint32_t b = 0; b < c->n_buffer; b++) {
        if (b >= c->n_arg) {
            r->step[k].slot[b] = take(r, c->buffer[b].bytes, k, k);
            continue;
        }
        life *l = &r->life[r->net->step[k].tensor[b]];
        if (l->slot == UINT32_MAX)
            l->slot = take(r, r->net->tensor[r->net->step[k].tensor[b]].bytes, k, l->last);
        r->step[k].slot[b] = l->slot;
    }
}

/* Tensors that live always get slots of their own first; then, step by step, each other tensor and
 * scratch takes a slot. Buffers are made when the sizes of all slots are known. */
static cdmpp_status make_slots(cd_executor_opencl *r, cdmpp_err *err) {
    uint32_t most = r->net->n_tensor;
    for (uint32_t k = 0; k < r->net->n_step; k++) most += code_of(r, k)->n_buffer;
    r->slot = CD_NEWN(&r->arena, slot, most + 1);
    r->life = CD_NEWN(&r->arena, life, r->net->n_tensor + 1);
    r->step = CD_NEWN(&r->arena, step, r->net->n_step + 1);
    if (!r->slot || !r->life || !r->step)
        return CD_FAIL(err, ENOMEM, "network of %u steps", r->net->n_step);
    CD_TRY(find_lives(r, err));
    for (uint32_t t = 0; t < r->net->n_tensor; t++)
        if (always(&r->net->tensor[t]))
            r->life[t].slot = take(r, r->net->tensor[t].bytes, 0, UINT32_MAX);
    for (uint32_t k = 0; k < r->net->n_step; k++) {
        r->step[k].slot = CD_NEWN(&r->arena, uint32_t, code_of(r, k)->n_buffer + 1);
        r->step[k].buffer = CD_NEWN(&r->arena, cd_cl, code_of(r, k)->n_buffer + 1);
        if (!r->step[k].slot || !r->step[k].buffer)
            return CD_FAIL(err, ENOMEM, "network of %u steps", r->net->n_step);
        place_step(r, k);
    }
    for (uint32_t s = 0; s < r->n_slot; s++) {
        const size_t bytes = r->slot[s].bytes > 4 ? (size_t)r->slot[s].bytes : 4;
        int32_t st = 0;
        if (bytes > r->device->alloc_max)
            return CD_FAIL(err, EREJECTED, "a buffer of %zu bytes, at most %llu", bytes,
                           (unsigned long long)r->device->alloc_max);
        r->slot[s].buffer = r->device->api.clCreateBuffer(r->device->context, CD_CL_MEM_READ_WRITE,
                                                          bytes, NULL, &st);
        if (st) return fail(r, st, "no buffer", err);
    }
    return CDMPP_OK;
}

/* ---- content ---- */

static cdmpp_status copy_in(cd_executor_opencl *r, uint32_t t, const void *from, cdmpp_err *err) {
    const cd_opencl *d = r->device;
    if (!r->net->tensor[t].bytes) return CDMPP_OK;
    const int32_t st =
        d->api.clEnqueueWriteBuffer(d->queue, r->slot[r->life[t].slot].buffer, 1, 0,
                                    (size_t)r->net->tensor[t].bytes, from, 0, NULL, NULL);
    return st ? fail(r, st, "buffer's content", err) : CDMPP_OK;
}

static cdmpp_status fill_tensor(cd_executor_opencl *r, uint32_t t, cdmpp_err *err) {
    const cd_executor_net_tensor *x = &r->net->tensor[t];
    const size_t size = cd_expr_dtype_bytes(x->dtype);
    unsigned char *v = cd_mem_alloc((size_t)x->bytes + 1);
    if (!v) return CD_FAIL(err, ENOMEM, "content of a tensor");
    cdmpp_status st = CDMPP_OK;
    if (!size || !cd_tensor_fill(x->dtype, t, 0, (size_t)x->bytes / size, v))
        st = CD_FAIL(err, EUNSUPPORTED, "tensor %u: a type that cannot be filled", t);
    if (!st) st = copy_in(r, t, v, err);
    cd_mem_free(v);
    return st;
}

cdmpp_status cd_executor_opencl_write(cd_executor_opencl *r, uint32_t t, const void *from,
                                      cdmpp_err *err) {
    if (t >= r->net->n_tensor || !always(&r->net->tensor[t]))
        return CD_FAIL(err, ERANGE, "tensor %u is no input, weight or result", t);
    return copy_in(r, t, from, err);
}

cdmpp_status cd_executor_opencl_read(cd_executor_opencl *r, uint32_t t, void *to, cdmpp_err *err) {
    const cd_opencl *d = r->device;
    if (t >= r->net->n_tensor || !always(&r->net->tensor[t]))
        return CD_FAIL(err, ERANGE, "tensor %u is no input, weight or result", t);
    if (!r->net->tensor[t].bytes) return CDMPP_OK;
    const int32_t st =
        d->api.clEnqueueReadBuffer(d->queue, r->slot[r->life[t].slot].buffer, 1, 0,
                                   (size_t)r->net->tensor[t].bytes, to, 0, NULL, NULL);
    return st ? fail(r, st, "buffer's content", err) : CDMPP_OK;
}

/* ---- programs ---- */

/* Each different program is compiled once, all in one call. */
static cdmpp_status build_all(cd_executor_opencl *r, cdmpp_err *err) {
    r->build = CD_NEWN(&r->arena, cd_build, r->net->n_step + 1);
    r->which = CD_NEWN(&r->arena, uint32_t, r->net->n_step + 1);
    if (!r->build || !r->which) return CD_FAIL(err, ENOMEM, "network of %u steps", r->net->n_step);
    for (uint32_t k = 0; k < r->net->n_step; k++) {
        uint32_t b = 0;
        while (b < r->n_build && r->build[b].code != code_of(r, k)) b++;
        r->which[k] = b;
        if (b == r->n_build) r->build[r->n_build++].code = code_of(r, k);
    }
    return cd_backend_opencl.build(r->backend, r->build, r->n_build, 1, err);
}

static cdmpp_status load_step(cd_executor_opencl *r, uint32_t k, cdmpp_err *err) {
    const cd_build *b = &r->build[r->which[k]];
    if (b->status) {
        if (err) *err = b->err;
        return cd_err_key(err, b->status, r->net->step[k].name);
    }
    for (uint32_t i = 0; i < code_of(r, k)->n_buffer; i++)
        r->step[k].buffer[i] = r->slot[r->step[k].slot[i]].buffer;
    return cd_err_key(
        err, cd_backend_opencl_load_on(r->backend, b, r->step[k].buffer, &r->step[k].program, err),
        r->net->step[k].name);
}

void cd_executor_opencl_close(cd_executor_opencl *r) {
    if (!r) return;
    for (uint32_t k = 0; r->step && k < r->net->n_step; k++)
        cd_backend_opencl.unload(r->step[k].program);
    for (uint32_t b = 0; b < r->n_build; b++) cd_mem_free(r->build[b].object);
    for (uint32_t s = 0; s < r->n_slot; s++)
        if (r->slot[s].buffer) r->device->api.clReleaseMemObject(r->slot[s].buffer);
    if (r->backend) cd_backend_opencl.close(r->backend);
    cd_arena_free(&r->arena);
    cd_mem_free(r);
}

/* Slots before programs: the kernels are loaded with their buffers as arguments. */
cdmpp_status cd_executor_opencl_open(const cd_executor_net *n, const char *device,
                                     cd_executor_opencl **out, cdmpp_err *err) {
    cd_executor_opencl *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "network");
    r->net = n;
    cdmpp_status st = cd_backend_opencl.open(device ? device : "", "opencl", &r->backend, err);
    if (!st) r->device = cd_backend_opencl_device(r->backend);
    if (!st) st = make_slots(r, err);
    if (!st) st = build_all(r, err);
    for (uint32_t k = 0; k < n->n_step && !st; k++) st = load_step(r, k, err);
    for (uint32_t t = 0; t < n->n_tensor && !st; t++)
        if (n->tensor[t].role == CD_TENSOR_INPUT || n->tensor[t].role == CD_TENSOR_WEIGHT)
            st = fill_tensor(r, t, err);
    if (st) cd_executor_opencl_close(r);
    else *out = r;
    return st;
}

int64_t cd_executor_opencl_bytes(const cd_executor_opencl *r) {
    int64_t all = 0;
    for (uint32_t s = 0; s < r->n_slot; s++) all += r->slot[s].bytes;
    return all;
}

cd_executor_step_bytes cd_executor_opencl_bytes_of(const cd_executor_opencl *r, uint32_t at_step) {
    cd_executor_step_bytes b = {0};
    const cd_codegen_code *c = code_of(r, at_step);
    for (uint32_t k = c->n_arg; k < c->n_buffer; k++) b.scratch += c->buffer[k].bytes;
    for (uint32_t t = 0; t < r->net->n_tensor; t++)
        if (!always(&r->net->tensor[t]) && r->life[t].first <= at_step &&
            at_step <= r->life[t].last)
            b.live += r->net->tensor[t].bytes;
    b.live += b.scratch;
    return b;
}

/* ---- a pass ---- */

/* Steps' times by the device's clock, from the start of the first kernel. */
static cdmpp_status read_times(cd_executor_opencl *r, cd_executor_ran *ran, cdmpp_err *err) {
    const cd_opencl_api *a = &r->device->api;
    uint64_t begin = 0;
    for (uint32_t k = 0; k < r->net->n_step; k++) {
        uint64_t from = 0, to = 0;
        int32_t st = a->clGetEventProfilingInfo(r->step[k].first, CD_CL_PROFILING_START,
                                                sizeof from, &from, NULL);
        if (!st)
            st = a->clGetEventProfilingInfo(r->step[k].last ? r->step[k].last : r->step[k].first,
                                            CD_CL_PROFILING_END, sizeof to, &to, NULL);
        if (st) return fail(r, st, "no times", err);
        if (k == 0) begin = from;
        ran[k] = (cd_executor_ran){(double)(from - begin) * 1e-9, (double)(to - begin) * 1e-9, 0};
    }
    return CDMPP_OK;
}

/* All kernels are handed to the queue at once; the clock stops when the queue is empty. Events are
 * made only where times are wanted. */
cdmpp_status cd_executor_opencl_pass(cd_executor_opencl *r, cd_executor_ran *ran, double *total_s,
                                     cdmpp_err *err) {
    const cd_opencl_api *a = &r->device->api;
    cdmpp_status st = CDMPP_OK;
    const double begin = cd_clock_wall();
    for (uint32_t k = 0; k < r->net->n_step && !st; k++)
        st = cd_backend_opencl_enqueue(r->step[k].program, ran ? &r->step[k].first : NULL,
                                       ran ? &r->step[k].last : NULL, err);
    const int32_t code = st ? 0 : a->clFinish(r->device->queue);
    *total_s = cd_clock_wall() - begin;
    if (code) st = fail(r, code, "run", err);
    if (!st && ran) st = read_times(r, ran, err);
    for (uint32_t k = 0; ran && k < r->net->n_step; k++) {
        if (r->step[k].first) a->clReleaseEvent(r->step[k].first);
        if (r->step[k].last) a->clReleaseEvent(r->step[k].last);
        r->step[k].first = r->step[k].last = NULL;
    }
    return st;
}
