/* serve_packed -- frames of TVM's packed features in, frames of scores out, all little-endian.
 *
 *   in   u32 len | len bytes of GetPerStoreFeaturesFromStates (predictor/score/tvm_packed.h)
 *   out  u32 n | n float32: score of each candidate, 0 of one that cannot be scored
 *        u32 0xFFFFFFFF | u32 m | m bytes: {"code":"EPARSE","message":"..."}     the frame makes no
 *     sense
 *
 * A frame is a batch; it is answered at once. One that is too long is read and thrown away piece by
 * piece. */
#include <string.h>

#include "predictor/serve/serve_internal.h"

typedef struct {
    cd_serve_state *s;
    unsigned char *frame; /* (cap) */
    size_t cap;
    unsigned char *out;   /* (cap_out) */
    float *score;         /* (cap_n) */
    cdmpp_status *status; /* (cap_n) */
    size_t cap_n;
    cd_buf bad;
} port;

static void put_u32(unsigned char *p, uint32_t v) {
    for (int k = 0; k < 4; k++) p[k] = (unsigned char)(v >> 8 * k);
}

static uint32_t get_u32(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* A frame without meaning counts as one bad request, whatever number of candidates it should have
 * had. */
static cdmpp_status send_error(port *p, const cdmpp_err *why, cdmpp_err *err) {
    unsigned char head[8];
    cd_buf *b = &p->bad;
    cd_buf_clear(b);
    cd_buf_putf(b, "{\"code\":\"%s\",\"message\":", cdmpp_status_name(why->code));
    cd_buf_put_json_str(b, why->msg, strlen(why->msg));
    cd_buf_puts(b, "}");
    if (b->oom) return CD_FAIL(err, ENOMEM, "answer");
    put_u32(head, UINT32_MAX);
    put_u32(head + 4, (uint32_t)b->n);
    p->s->stats->asked++;
    p->s->stats->bad++;
    p->s->stats->reason[why->code]++;
    CD_TRY(cd_line_reader_send(p->s->o.out, head, sizeof head, err));
    return cd_line_reader_send(p->s->o.out, b->p, b->n, err);
}

static cdmpp_status room_frame(port *p, size_t n, cdmpp_err *err) {
    if (n <= p->cap) return CDMPP_OK;
    const size_t cap = n < p->s->o.max_bytes / 2 ? 2 * n : p->s->o.max_bytes;
    cd_mem_free(p->frame);
    p->cap = 0;
    p->frame = cd_mem_alloc(cap);
    if (!p->frame) return CD_FAIL(err, ENOMEM, "frame of %zu bytes", n);
    p->cap = cap;
    return CDMPP_OK;
}

static cdmpp_status room_scores(port *p, size_t n, cdmpp_err *err) {
    if (n <= p->cap_n) return CDMPP_OK;
    cd_mem_free(p->score);
    cd_mem_free(p->status);
    cd_mem_free(p->out);
    p->cap_n = 0;
    p->score = cd_mem_zalloc(2 * n, sizeof *p->score);
    p->status = cd_mem_zalloc(2 * n, sizeof *p->status);
    p->out = cd_mem_zalloc(2 * n + 1, 4);
    if (!p->score || !p->status || !p->out) return CD_FAIL(err, ENOMEM, "%zu scores", n);
    p->cap_n = 2 * n;
    return CDMPP_OK;
}

static cdmpp_status send_scores(port *p, size_t n, cdmpp_err *err) {
    cd_serve_stats *t = p->s->stats;
    put_u32(p->out, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &p->score[i], sizeof bits);
        put_u32(p->out + 4 * (1 + i), bits);
        *(p->status[i] ? &t->bad : &t->scored) += 1;
        t->reason[p->status[i]] += p->status[i] != CDMPP_OK;
    }
    t->asked += n;
    t->batches++;
    return cd_line_reader_send(p->s->o.out, p->out, 4 * (1 + n), err);
}

/* n is checked against the frame's length before anything is allocated for n: each candidate takes
 * at least 4 bytes. Only a lack of memory ends the service; other errors are the answer to this
 * frame. */
static cdmpp_status score(port *p, size_t len, cdmpp_err *err) {
    const size_t n = len >= 4 ? get_u32(p->frame) : 0;
    cdmpp_err why = {0};
    if (n > len / 4) {
        (void)CD_FAIL(&why, EPARSE,
                      "packed features: %zu bytes end inside the sizes of %zu candidates", len, n);
        return send_error(p, &why, err);
    }
    CD_TRY(room_scores(p, n + 1, err));
    const cdmpp_batch b = {
        .size = sizeof b, .form = CDMPP_PACKED, .n = n, .data = p->frame, .len = len};
    const cdmpp_result r = {.size = sizeof r, .score_f32 = p->score, .status = p->status};
    const cdmpp_status st = cdmpp_score(p->s->c, &b, &r, &why);
    if (!st) return send_scores(p, n, err);
    if (st == CDMPP_ENOMEM) cd_err_from(err, &why);
    return st == CDMPP_ENOMEM ? st : send_error(p, &why, err);
}

/* One frame; *more false: the input ended, *cut inside of one. */
static cdmpp_status frame(port *p, bool *more, bool *cut, cdmpp_err *err) {
    const cd_serve_options *o = &p->s->o;
    unsigned char head[4];
    size_t got = 0;
    cdmpp_err why = {0};
    CD_TRY(cd_line_reader_bytes(o->in, head, sizeof head, o->stop, &got, err));
    *more = got == sizeof head;
    *cut = got > 0 && !*more;
    if (!*more) return CDMPP_OK;
    const size_t len = get_u32(head);
    const bool fits = len <= o->max_bytes;
    if (fits) CD_TRY(room_frame(p, len + 1, err));
    CD_TRY(cd_line_reader_bytes(o->in, fits ? p->frame : NULL, len, o->stop, &got, err));
    *more = got == len;
    *cut = !*more;
    if (*cut || fits) return *cut ? CDMPP_OK : score(p, len, err);
    (void)CD_FAIL(&why, ERANGE, "frame: expected at most %zu bytes, found %zu", o->max_bytes, len);
    return send_error(p, &why, err);
}

static cdmpp_status frames(port *p, cdmpp_err *err) {
    const volatile sig_atomic_t *stop = p->s->o.stop;
    bool more = true, cut = false;
    while (more && !(stop && *stop)) CD_TRY(frame(p, &more, &cut, err));
    if (!cut || (stop && *stop)) return CDMPP_OK;
    cdmpp_err why = {0};
    (void)CD_FAIL(&why, EPARSE, "the input ends inside a frame");
    return send_error(p, &why, err);
}

cdmpp_status cd_serve_packed(cd_serve_state *s, cdmpp_err *err) {
    port p = {.s = s};
    CD_TRY(cd_serve_check_rows(s, err));
    const cdmpp_status st = frames(&p, err);
    cd_mem_free(p.frame);
    cd_mem_free(p.out);
    cd_mem_free(p.score);
    cd_mem_free(p.status);
    cd_buf_free(&p.bad);
    return st;
}
