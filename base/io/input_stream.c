/* Plain, gzip, xz and zstd files behind one read call. A codec is three functions: begin, step,
 * end. The first bytes of the file choose it. The loop in read_some() is the same for all: fill the
 * input, let the codec step, until there is output or nothing moves. */
#include "base/io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

typedef struct codec {
    const char *name;
    const char *magic;
    size_t n_magic;
    cdmpp_status (*begin)(cd_input_stream *s, cdmpp_err *err);
    /* Turn packed bytes into at most cap plain ones; sets s->inside. */
    cdmpp_status (*step)(cd_input_stream *s, unsigned char *out, size_t cap, size_t *n,
                         cdmpp_err *err);
    void (*end)(cd_input_stream *s);
} codec;

struct cd_input_stream {
    const codec *codec;
    union {
        z_stream gz;
        lzma_stream xz;
        ZSTD_DStream *zst;
    } u;
    int fd;
    bool eof;    /* of the file */
    bool inside; /* a member: the file may not end here */
    uint64_t taken, total;
    uint64_t given; /* unpacked bytes */
    char *path;
    size_t at, n; /* packed bytes not yet used: in[at..n) */
    unsigned char in[64 * 1024];
};

static cdmpp_status damaged(const cd_input_stream *s, const char *why, cdmpp_err *err) {
    return CD_FAIL(err, EPARSE, "damaged %s data: %s", s->codec->name, why);
}

/* ---- plain ---- */

static cdmpp_status plain_begin(cd_input_stream *s, cdmpp_err *err) {
    (void)s, (void)err;
    return CDMPP_OK;
}

static cdmpp_status plain_step(cd_input_stream *s, unsigned char *out, size_t cap, size_t *n,
                               cdmpp_err *err) {
    (void)err;
    *n = s->n - s->at < cap ? s->n - s->at : cap;
    memcpy(out, s->in + s->at, *n);
    s->at += *n;
    return CDMPP_OK;
}

static void plain_end(cd_input_stream *s) { (void)s; }

/* ---- gzip ---- */

static cdmpp_status gz_begin(cd_input_stream *s, cdmpp_err *err) {
    if (inflateInit2(&s->u.gz, 15 + 16) != Z_OK) return CD_FAIL(err, ENOMEM, "zlib");
    return CDMPP_OK;
}

/* inflate() stops at the end of a member; the next member begins with a reset. Z_BUF_ERROR only
 * means that more input is needed. */
static cdmpp_status gz_step(cd_input_stream *s, unsigned char *out, size_t cap, size_t *n,
                            cdmpp_err *err) {
    z_stream *z = &s->u.gz;
    if (!s->inside) {
        if (s->at == s->n) return CDMPP_OK;
        inflateReset(z);
        s->inside = true;
    }
    z->next_in = s->in + s->at;
    z->avail_in = (uInt)(s->n - s->at);
    z->next_out = out;
    z->avail_out = cap < UINT32_MAX ? (uInt)cap : UINT32_MAX;
    const uInt room = z->avail_out;
    const int rc = inflate(z, Z_NO_FLUSH);
    s->at = s->n - z->avail_in;
    *n = room - z->avail_out;
    if (rc == Z_STREAM_END) s->inside = false;
    else if (rc == Z_MEM_ERROR) return CD_FAIL(err, ENOMEM, "zlib");
    else if (rc != Z_OK && rc != Z_BUF_ERROR)
        return damaged(s, z->msg ? z->msg : "no reason given", err);
    return CDMPP_OK;
}

static void gz_end(cd_input_stream *s) { inflateEnd(&s->u.gz); }

/* ---- xz ---- */

static cdmpp_status xz_begin(cd_input_stream *s, cdmpp_err *err) {
    s->u.xz = (lzma_stream)LZMA_STREAM_INIT;
    s->inside = true;
    if (lzma_stream_decoder(&s->u.xz, CD_INPUT_UNPACK_MEMORY, LZMA_CONCATENATED) != LZMA_OK)
        return CD_FAIL(err, ENOMEM, "liblzma");
    return CDMPP_OK;
}

/* LZMA_CONCATENATED goes on with the next member by itself; only LZMA_FINISH at the end of the file
 * makes it report the end. */
static cdmpp_status xz_step(cd_input_stream *s, unsigned char *out, size_t cap, size_t *n,
                            cdmpp_err *err) {
    lzma_stream *x = &s->u.xz;
    if (!s->inside) return CDMPP_OK;
    x->next_in = s->in + s->at;
    x->avail_in = s->n - s->at;
    x->next_out = out;
    x->avail_out = cap;
    const lzma_ret rc = lzma_code(x, s->eof ? LZMA_FINISH : LZMA_RUN);
    s->at = s->n - x->avail_in;
    *n = cap - x->avail_out;
    switch (rc) {
    case LZMA_STREAM_END: s->inside = false; return CDMPP_OK;
    case LZMA_OK:
    case LZMA_BUF_ERROR: return CDMPP_OK;
    case LZMA_MEM_ERROR: return CD_FAIL(err, ENOMEM, "liblzma");
    case LZMA_MEMLIMIT_ERROR:
        return CD_FAIL(err, ERANGE, "xz data that needs more than %d MiB to unpack",
                       (int)(CD_INPUT_UNPACK_MEMORY >> 20));
    case LZMA_OPTIONS_ERROR: return damaged(s, "unknown options", err);
    case LZMA_FORMAT_ERROR: return damaged(s, "no xz header", err);
    default: return damaged(s, "a checksum or length is wrong", err);
    }
}

static void xz_end(cd_input_stream *s) { lzma_end(&s->u.xz); }

/* ---- zstd ---- */

static cdmpp_status zst_begin(cd_input_stream *s, cdmpp_err *err) {
    s->u.zst = ZSTD_createDStream();
    if (!s->u.zst) return CD_FAIL(err, ENOMEM, "libzstd");
    ZSTD_DCtx_setParameter(s->u.zst, ZSTD_d_windowLogMax, CD_INPUT_UNPACK_WINDOW_LOG);
    return CDMPP_OK;
}

static cdmpp_status zst_step(cd_input_stream *s, unsigned char *out, size_t cap, size_t *n,
                             cdmpp_err *err) {
    if (!s->inside && s->at == s->n) return CDMPP_OK;
    ZSTD_inBuffer in = {s->in, s->n, s->at};
    ZSTD_outBuffer o = {out, cap, 0};
    const size_t rc = ZSTD_decompressStream(s->u.zst, &o, &in);
    s->at = in.pos;
    *n = o.pos;
    if (ZSTD_isError(rc) && ZSTD_getErrorCode(rc) == ZSTD_error_frameParameter_windowTooLarge)
        return CD_FAIL(err, ERANGE, "zstd data with a window of more than %d MiB",
                       1 << (CD_INPUT_UNPACK_WINDOW_LOG - 20));
    if (ZSTD_isError(rc)) return damaged(s, ZSTD_getErrorName(rc), err);
    s->inside = rc != 0;
    return CDMPP_OK;
}

static void zst_end(cd_input_stream *s) { ZSTD_freeDStream(s->u.zst); }

/* The first whose magic fits; plain fits always. */
static const codec codecs[] = {
    {"gzip", "\x1f\x8b", 2, gz_begin, gz_step, gz_end},
    {"xz",
     "\xfd"
     "7zXZ\0",
     6, xz_begin, xz_step, xz_end},
    {"zstd", "\x28\xb5\x2f\xfd", 4, zst_begin, zst_step, zst_end},
    {"plain", "", 0, plain_begin, plain_step, plain_end},
};

/* ---- the file below ---- */

/* One read() more behind what is there. */
static cdmpp_status fill(cd_input_stream *s, cdmpp_err *err) {
    ssize_t got = 0;
    if (s->at == s->n) s->at = s->n = 0;
    do got = read(s->fd, s->in + s->n, sizeof s->in - s->n);
    while (got < 0 && errno == EINTR);
    if (got < 0) return CD_FAIL(err, EIO, "cannot read: %s", strerror(errno));
    s->eof = got == 0;
    s->n += (size_t)got;
    s->taken += (uint64_t)got;
    return CDMPP_OK;
}

static cdmpp_status choose(cd_input_stream *s, cdmpp_err *err) {
    while (!s->eof && s->n < 6) CD_TRY(fill(s, err)); /* a pipe may give single bytes */
    const codec *c = codecs;
    while (s->n < c->n_magic || memcmp(s->in, c->magic, c->n_magic) != 0) c++;
    CD_TRY(c->begin(s, err));
    s->codec = c;
    return CDMPP_OK;
}

static cdmpp_status open_fd(cd_input_stream *s, const char *path, cdmpp_err *err) {
    const bool is_stdin = strcmp(path, "-") == 0;
    const char *shown = is_stdin ? "<stdin>" : path;
    struct stat st;
    s->path = cd_mem_text(shown);
    if (!s->path) return CD_FAIL(err, ENOMEM, "path");
    s->fd = is_stdin ? 0 : open(path, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0) return CD_FAIL(err, EIO, "cannot open: %s", strerror(errno));
    if (fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode)) s->total = (uint64_t)st.st_size;
    return choose(s, err);
}

cdmpp_status cd_input_stream_open(const char *path, cd_input_stream **out, cdmpp_err *err) {
    cd_input_stream *s = cd_mem_zalloc(1, sizeof *s);
    *out = NULL;
    if (!s) return cd_err_at(err, CD_FAIL(err, ENOMEM, "input buffer"), path, 0);
    s->fd = -1;
    const cdmpp_status st = open_fd(s, path, err);
    if (st) {
        cd_err_at(err, st, path, 0);
        cd_input_stream_close(s);
        return st;
    }
    *out = s;
    return CDMPP_OK;
}

/* A packed file of a few kilobytes can stand for gigabytes, which no reader would see the end of.
 * Of what libzstd holds back the base is large enough. */
static cdmpp_status within_bound(const cd_input_stream *s, cdmpp_err *err) {
    const uint64_t used = s->taken - (s->n - s->at);
    if (!s->codec->n_magic || s->given / CD_INPUT_UNPACK_PER_BYTE <=
                                  used + CD_INPUT_UNPACK_BASE / CD_INPUT_UNPACK_PER_BYTE)
        return CDMPP_OK;
    return CD_FAIL(err, ERANGE,
                   "%llu bytes of %s data unpack to more than %llu bytes (%d MiB and %d times "
                   "their size): unpack the file first where that is right",
                   (unsigned long long)used, s->codec->name,
                   (unsigned long long)(CD_INPUT_UNPACK_BASE + used * CD_INPUT_UNPACK_PER_BYTE),
                   (int)(CD_INPUT_UNPACK_BASE >> 20), (int)CD_INPUT_UNPACK_PER_BYTE);
}

static cdmpp_status read_some(cd_input_stream *s, void *buf, size_t cap, size_t *n,
                              cdmpp_err *err) {
    *n = 0;
    for (;;) {
        if (s->at == s->n && !s->eof) CD_TRY(fill(s, err));
        const size_t before = s->at;
        CD_TRY(s->codec->step(s, buf, cap, n, err));
        s->given += *n;
        if (*n) return within_bound(s, err);
        if (s->eof && s->at == before) break; /* neither taken nor given: nothing is left */
    }
    if (s->inside) return damaged(s, "the file ends too early", err);
    return CDMPP_OK;
}

cdmpp_status cd_input_stream_read(cd_input_stream *s, void *buf, size_t cap, size_t *n,
                                  cdmpp_err *err) {
    return cd_err_at(err, read_some(s, buf, cap, n, err), s->path, 0);
}

void cd_input_stream_progress(const cd_input_stream *s, uint64_t *done, uint64_t *total) {
    *done = s->taken - (s->n - s->at);
    *total = s->total;
}

const char *cd_input_stream_path(const cd_input_stream *s) { return s->path; }

void cd_input_stream_close(cd_input_stream *s) {
    if (!s) return;
    if (s->codec) s->codec->end(s);
    if (s->fd > 0) close(s->fd);
    cd_mem_free(s->path);
    cd_mem_free(s);
}
