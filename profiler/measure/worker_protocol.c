/* Jobs as bytes. Structures travel as they are in memory, with their pointers; the reader replaces
 * each pointer by its own copy of what it pointed to. A reader that runs out of bytes goes on with
 * zeros and empty texts, and the end looks once whether that happened. */
#include "profiler/measure/measure_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io/io.h"

#define WIRE_MAX ((uint32_t)1 << 30)

/* ---- writing ---- */
static void put(cd_buf *b, const void *p, size_t n) { cd_buf_put(b, p, n); }

static void put_text(cd_buf *b, const char *s, size_t n) {
    const uint64_t size = n;
    put(b, &size, sizeof size);
    cd_buf_put(b, s, n);
    cd_buf_put(b, "", 1);
}

static void put_str(cd_buf *b, const char *s) { put_text(b, s ? s : "", s ? strlen(s) : 0); }

/* Buffers and launches, each followed by what it points to. */
static void put_code(cd_buf *b, const cd_codegen_code *c, bool with_text) {
    const uint32_t n[] = {c->n_buffer, c->n_arg, c->n_launch, (uint32_t)c->dialect, c->parallel};
    put(b, n, sizeof n);
    for (uint32_t k = 0; k < c->n_buffer; k++) {
        put(b, &c->buffer[k], sizeof c->buffer[k]); /* pointers in it are replaced by the reader */
        put_str(b, c->buffer[k].name);
        put(b, c->buffer[k].digit, c->buffer[k].n_digit * sizeof *c->buffer[k].digit);
    }
    for (uint32_t k = 0; k < c->n_launch; k++) {
        put(b, &c->launch[k], sizeof c->launch[k]);
        put_str(b, c->launch[k].entry);
        put(b, c->launch[k].buffer, c->launch[k].n_buffer * sizeof(uint32_t));
    }
    put_text(b, c->text.p ? c->text.p : "", with_text ? c->text.n : 0);
}

/* The text of a program is left out where the worker gets its object. */
cdmpp_status cd_worker_protocol_put(cd_buf *b, const cd_job *j, cdmpp_err *err) {
    put(b, j, sizeof *j); /* numbers; pointers in it are replaced by the reader */
    put_str(b, j->backend);
    put_str(b, j->device);
    put_str(b, j->target);
    put_str(b, j->object);
    put_str(b, j->reference_object);
    put_str(b, j->cache);
    put_code(b, &j->code, !j->object || !j->object[0]);
    put_code(b, &j->reference, !j->reference_object || !j->reference_object[0]);
    for (uint32_t k = 0; j->arg && k < j->n_shape; k++) {
        put(b, &j->arg[k].rank, sizeof j->arg[k].rank);
        put(b, j->arg[k].shape, j->arg[k].rank * sizeof(int64_t));
    }
    return b->oom ? CD_FAIL(err, ENOMEM, "job") : CDMPP_OK;
}

/* ---- reading ---- */
typedef struct {
    const char *p;
    size_t n;
    bool bad; /* cut short */
} reader;

static const char *take(reader *r, size_t n) {
    if (r->bad || r->n < n) return r->bad = true, NULL;
    const char *p = r->p;
    r->p += n;
    r->n -= n;
    return p;
}

static void get(reader *r, void *to, size_t n) {
    const char *p = take(r, n);
    if (p) memcpy(to, p, n);
    else memset(to, 0, n);
}

static const char *get_text(reader *r, size_t *n) {
    uint64_t size = 0;
    get(r, &size, sizeof size);
    if (size >= WIRE_MAX) r->bad = true;
    const char *p = take(r, (size_t)size + 1);
    if (n) *n = p ? (size_t)size : 0;
    return p ? p : "";
}

/* n things of `size` bytes into the arena, aligned; *out NULL: memory is short. */
static cdmpp_status get_array(cd_arena *a, reader *r, uint64_t n, size_t size, const void **out,
                              cdmpp_err *err) {
    const char *p = take(r, (size_t)n * size); /* n is less than 2^32 */
    void *v = cd_arena_zalloc(a, (size_t)(p ? n : 0) + 1, size);
    *out = v;
    if (!v) return CD_FAIL(err, ENOMEM, "job");
    if (p && n) memcpy(v, p, (size_t)n * size);
    return CDMPP_OK;
}

static cdmpp_status get_buffers(cd_arena *a, reader *r, cd_codegen_code *c, cdmpp_err *err) {
    for (uint32_t k = 0; k < c->n_buffer && !r->bad; k++) {
        cd_codegen_buffer *b = &c->buffer[k];
        const void *v;
        get(r, b, sizeof *b);
        b->name = get_text(r, NULL);
        CD_TRY(get_array(a, r, b->n_digit, sizeof *b->digit, &v, err));
        b->digit = v;
    }
    return CDMPP_OK;
}

static cdmpp_status get_launches(cd_arena *a, reader *r, cd_codegen_code *c, cdmpp_err *err) {
    for (uint32_t k = 0; k < c->n_launch && !r->bad; k++) {
        cd_codegen_launch *l = &c->launch[k];
        get(r, l, sizeof *l);
        l->entry = get_text(r, NULL);
        const void *v;
        CD_TRY(get_array(a, r, l->n_buffer, sizeof *l->buffer, &v, err));
        l->buffer = v;
    }
    return CDMPP_OK;
}

/* The counts are checked against the bytes that are left before anything is allocated by them. */
static cdmpp_status get_code(cd_arena *a, reader *r, cd_codegen_code *c, cdmpp_err *err) {
    uint32_t n[5];
    get(r, n, sizeof n);
    if ((uint64_t)n[0] + n[2] > r->n) r->bad = true;
    if (r->bad) return CDMPP_OK; /* the caller checks r->bad */
    memset(c, 0, sizeof *c);
    c->n_buffer = n[0];
    c->n_arg = n[1];
    c->n_launch = n[2];
    c->dialect = (cd_dialect)n[3];
    c->parallel = n[4] != 0;
    c->buffer = CD_NEWN(a, cd_codegen_buffer, (size_t)n[0] + 1);
    c->launch = CD_NEWN(a, cd_codegen_launch, (size_t)n[2] + 1);
    if (!c->buffer || !c->launch) return CD_FAIL(err, ENOMEM, "job");
    CD_TRY(get_buffers(a, r, c, err));
    CD_TRY(get_launches(a, r, c, err));
    size_t len;
    const char *text = get_text(r, &len);
    cd_buf_put(&c->text, text, len);
    return c->text.oom ? CD_FAIL(err, ENOMEM, "job") : CDMPP_OK;
}

static cdmpp_status get_shapes(cd_arena *a, reader *r, cd_job *j, cdmpp_err *err) {
    if (!j->arg || r->bad) return CDMPP_OK;
    cd_measure_arg *v =
        CD_NEWN(a, cd_measure_arg, (size_t)(j->n_shape < r->n ? j->n_shape : 0) + 1);
    if (!v) return CD_FAIL(err, ENOMEM, "job");
    j->arg = v;
    for (uint32_t k = 0; k < j->n_shape && !r->bad; k++) {
        const void *shape;
        get(r, &v[k].rank, sizeof v[k].rank);
        CD_TRY(get_array(a, r, v[k].rank, sizeof(int64_t), &shape, err));
        v[k].shape = shape;
    }
    return CDMPP_OK;
}

/* Pointers of the sender are never followed: code and texts are replaced, and out->cache only tells
 * NULL from a text. */
cdmpp_status cd_worker_protocol_get(cd_arena *a, const void *bytes, size_t n, cd_job *out,
                                    cdmpp_err *err) {
    reader r = {bytes, n, false};
    get(&r, out, sizeof *out);
    memset(&out->code, 0, sizeof out->code);
    memset(&out->reference, 0, sizeof out->reference);
    out->backend = get_text(&r, NULL);
    out->device = get_text(&r, NULL);
    out->target = get_text(&r, NULL);
    out->object = get_text(&r, NULL);
    out->reference_object = get_text(&r, NULL);
    const char *cache = get_text(&r, NULL);
    if (out->cache) out->cache = cache;
    CD_TRY(get_code(a, &r, &out->code, err));
    CD_TRY(get_code(a, &r, &out->reference, err));
    CD_TRY(get_shapes(a, &r, out, err));
    return r.bad || r.n ? CD_FAIL(err, EPARSE, "a job of %zu bytes is cut short", n) : CDMPP_OK;
}

/* ---- frames ---- */
static bool send_all(int fd, const char *p, size_t n) {
    while (n) {
        const ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

bool cd_worker_protocol_send(int fd, const void *bytes, size_t n) {
    const uint32_t size = (uint32_t)n;
    return n < WIRE_MAX && send_all(fd, (const char *)&size, sizeof size) && send_all(fd, bytes, n);
}

bool cd_worker_protocol_receive_into(int fd, void *p, size_t n) {
    uint32_t size;
    return cd_fd_get(fd, (char *)&size, sizeof size) && size == n && cd_fd_get(fd, p, n);
}

bool cd_worker_protocol_receive(int fd, void **bytes, size_t *n) {
    uint32_t size;
    if (!cd_fd_get(fd, (char *)&size, sizeof size) || size >= WIRE_MAX) return false;
    char *p = cd_mem_alloc((size_t)size + 1);
    if (!p || !cd_fd_get(fd, p, size)) return cd_mem_free(p), false;
    *bytes = p;
    *n = size;
    return true;
}
