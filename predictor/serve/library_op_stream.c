/* Tables of library operators in, lines of JSON out. Rows are read in batches, predicted together,
 * and printed in their order. */

#include <math.h>
#include <string.h>

#include "predictor/serve/serve_internal.h"

enum { BATCH = 2048 };
/* of the intervals, as of programs by default */
static const double LEVEL = CD_LIBRARY_OP_SCALE_LEVEL;

typedef struct {
    long line;
    cdmpp_err why; /* why.code: could not be read */
} place;

struct cd_library_op_stream {
    const cd_library_op_model *m;
    const cd_device_table *devices;
    cd_library_op_stream_options o;
    const cd_device *fallback, *from, *to; /* from, to: NULL where nothing is scaled */
    FILE *out;
    cd_library_op_record *r;      /* (BATCH) rows to be scored */
    const cd_device **device;     /* (BATCH) */
    double *latency_s;            /* (BATCH) */
    cd_library_op_scaled *scaled; /* (BATCH) */
    place *place;                 /* (BATCH) all rows, bad ones too */
    size_t *at;                   /* (BATCH) number of a row in r */
    size_t n, n_good, rows, bad, other;
    cd_buf json;
    cd_library_op_score score, closed; /* closed: of the closed forms */
};

void cd_library_op_stream_free(cd_library_op_stream *s) {
    if (!s) return;
    cd_mem_free(s->r);
    cd_mem_free(s->device);
    cd_mem_free(s->latency_s);
    cd_mem_free(s->scaled);
    cd_mem_free(s->place);
    cd_mem_free(s->at);
    cd_buf_free(&s->json);
    cd_library_op_score_free(&s->score);
    cd_library_op_score_free(&s->closed);
    cd_mem_free(s);
}

static cdmpp_status named(cd_library_op_stream *s, const char *name, const char *option,
                          const cd_device **out, cdmpp_err *err) {
    return name ? cd_err_key(err, cd_device_table_find(s->devices, name, out, err), option)
                : CDMPP_OK;
}

/* All room of a batch is taken at once: nothing is allocated between tables. */
cdmpp_status cd_library_op_stream_new(const cd_library_op_model *m, const cd_device_table *devices,
                                      const cd_library_op_stream_options *o, FILE *out,
                                      cd_library_op_stream **res, cdmpp_err *err) {
    cd_library_op_stream *s = cd_mem_zalloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "stream");
    s->m = m;
    s->devices = devices;
    s->o = *o;
    s->out = out;
    s->r = cd_mem_zalloc(BATCH, sizeof *s->r);
    s->device = cd_mem_zalloc(BATCH, sizeof *s->device);
    s->latency_s = cd_mem_zalloc(BATCH, sizeof *s->latency_s);
    s->scaled = cd_mem_zalloc(BATCH, sizeof *s->scaled);
    s->place = cd_mem_zalloc(BATCH, sizeof *s->place);
    s->at = cd_mem_zalloc(BATCH, sizeof *s->at);
    cdmpp_status st = CDMPP_OK;
    if (!s->r || !s->device || !s->latency_s || !s->scaled || !s->place || !s->at)
        st = CD_FAIL(err, ENOMEM, "batch of %d rows", BATCH);
    if (!st) st = named(s, o->device, "--device", &s->fallback, err);
    if (!st) st = named(s, o->from, "--from", &s->from, err);
    if (!st) st = named(s, o->to, "--to", &s->to, err);
    if (st) cd_library_op_stream_free(s);
    else *res = s;
    return st;
}

/* ---- printing ---- */
static void put_interval(cd_buf *b, double low_s, double high_s) {
    if (isnan(low_s)) cd_buf_puts(b, ",\"low_s\":null,\"high_s\":null,\"level\":null");
    else cd_buf_putf(b, ",\"low_s\":%.9g,\"high_s\":%.9g,\"level\":%g", low_s, high_s, LEVEL);
}

static void put_range(cd_buf *b, const cd_library_op_range *v) {
    char why[40];
    put_interval(b, v->low_s, v->high_s);
    cd_library_op_unlike_text(v->unlike, why);
    if (v->unlike) cd_buf_putf(b, ",\"out_of_range\":true,\"reason\":\"%s\"", why);
    else cd_buf_puts(b, ",\"out_of_range\":false");
}

static double inside(const cd_library_op_range *v, double measured_s) {
    return isnan(v->low_s) ? (double)NAN : v->low_s <= measured_s && measured_s <= v->high_s;
}

/* What was measured on the destination, and the errors against it. */
static cdmpp_status put_truth(cd_library_op_stream *s, const cd_library_op_record *r,
                              const cd_library_op_scaled *v, cdmpp_err *err) {
    const cd_library_op_record *at =
        s->o.truth ? cd_library_op_data_find(s->o.truth, r, s->to) : NULL;
    if (!at) {
        cd_buf_puts(&s->json, ",\"measured_s\":null,\"error\":null,\"closed_error\":null");
        return CDMPP_OK;
    }
    const cd_library_op_range range = {.low_s = v->low_s, .high_s = v->high_s};
    cd_library_op_score_row row = {cd_library_op_kind_class(r->kind),
                                   s->to->name,
                                   s->m && cd_library_op_model_seen(s->m, r->kind, s->to),
                                   s->m && cd_library_op_model_beyond(s->m, r),
                                   v->latency_s / at->latency_s - 1,
                                   inside(&range, at->latency_s)};
    const double closed = v->closed.time_s / at->latency_s - 1;
    cd_buf_putf(&s->json, ",\"measured_s\":%.9g,\"error\":%.6g,\"closed_error\":%.6g",
                at->latency_s, row.error, closed);
    CD_TRY(cd_library_op_score_add(&s->score, &row, err));
    if (!s->m) return CDMPP_OK;
    row.error = closed;
    row.inside = (double)NAN;
    return cd_library_op_score_add(&s->closed, &row, err);
}

static cdmpp_status put_scaled(cd_library_op_stream *s, size_t k, cdmpp_err *err) {
    const cd_library_op_record *r = &s->r[k];
    const cd_library_op_scaled *v = &s->scaled[k];
    const cd_library_op_range range = {.low_s = v->low_s, .high_s = v->high_s, .unlike = v->unlike};
    const char *form = cd_wave_scale_form_name(v->closed.form);
    cd_buf *b = &s->json;
    cd_buf_putf(b, ",\"operator\":\"%s\",\"from\":", cd_library_op_kind_name(r->kind));
    cd_buf_put_json_str(b, s->from->name, strlen(s->from->name));
    cd_buf_puts(b, ",\"to\":");
    cd_buf_put_json_str(b, s->to->name, strlen(s->to->name));
    cd_buf_putf(b, ",\"from_s\":%.9g,\"latency_s\":%.9g,\"form\":\"%s\"", r->latency_s,
                v->latency_s, s->m ? "model" : form);
    if (s->m) put_range(b, &range);
    else put_interval(b, v->low_s, v->high_s); /* closed forms know no range */
    if (s->m) cd_buf_putf(b, ",\"predicted_from_s\":%.9g", v->from_s);
    cd_buf_putf(b, ",\"closed_s\":%.9g,\"closed_form\":\"%s\",\"gamma\":%.4g", v->closed.time_s,
                form, v->closed.gamma);
    return s->o.eval ? put_truth(s, r, v, err) : CDMPP_OK;
}

static cdmpp_status put_row(cd_library_op_stream *s, size_t k, cdmpp_err *err) {
    if (s->from) return put_scaled(s, k, err);
    const cd_library_op_record *r = &s->r[k];
    const cd_device *d = s->device[k];
    const bool seen = cd_library_op_model_seen(s->m, r->kind, d),
               beyond = cd_library_op_model_beyond(s->m, r);
    const cd_library_op_range range = cd_library_op_model_range(s->m, r, d, s->latency_s[k], LEVEL);
    cd_buf *b = &s->json;
    cd_buf_putf(b, ",\"operator\":\"%s\",\"device\":", cd_library_op_kind_name(r->kind));
    cd_buf_put_json_str(b, d->name, strlen(d->name));
    cd_buf_putf(b, ",\"seen\":%s,\"beyond\":%s,\"latency_s\":%.9g", seen ? "true" : "false",
                beyond ? "true" : "false", s->latency_s[k]);
    put_range(b, &range);
    if (!s->o.eval) return CDMPP_OK;
    if (!(r->latency_s > 0)) {
        cd_buf_puts(b, ",\"measured_s\":null,\"error\":null");
        return CDMPP_OK;
    }
    const cd_library_op_score_row row = {cd_library_op_kind_class(r->kind),
                                         d->name,
                                         seen,
                                         beyond,
                                         s->latency_s[k] / r->latency_s - 1,
                                         inside(&range, r->latency_s)};
    cd_buf_putf(b, ",\"measured_s\":%.9g,\"error\":%.6g", r->latency_s, row.error);
    return cd_library_op_score_add(&s->score, &row, err);
}

static cdmpp_status score_rows(cd_library_op_stream *s, size_t k, size_t n, cdmpp_err *err) {
    if (s->from) return cd_library_op_scale(s->m, s->r + k, n, s->from, s->to, s->scaled + k, err);
    return cd_library_op_model_predict(s->m, s->r + k, s->device + k, n, s->latency_s + k, err);
}

/* Rows that the model refuses become bad rows: the others are scored again without them. */
static cdmpp_status predict(cd_library_op_stream *s, cdmpp_err *err) {
    cdmpp_err why = {0};
    const cdmpp_status st = score_rows(s, 0, s->n_good, &why);
    if (!st) return CDMPP_OK;
    if ((st != CDMPP_EMODEL && st != CDMPP_ERANGE) || s->o.strict) {
        if (err) *err = why;
        return st;
    }
    for (size_t i = 0; i < s->n; i++) {
        place *p = &s->place[i];
        if (p->why.code) continue;
        const size_t k = s->at[i];
        p->why = (cdmpp_err){0};
        if (score_rows(s, k, 1, &p->why)) {
            char *key = p->why.key; /* "[0].bandwidth_gb_s": the only record */
            const size_t skip = strncmp(key, "[0]", 3) ? 0 : key[3] == '.' ? 4 : 3;
            memmove(key, key + skip, strlen(key + skip) + 1);
        }
        s->bad += p->why.code != CDMPP_OK;
    }
    return CDMPP_OK;
}

/* Lines come in the order of the table: bad rows have their place among the scored ones. */
static cdmpp_status flush(cd_library_op_stream *s, const char *path, cdmpp_err *err) {
    CD_TRY(predict(s, err));
    cd_buf_clear(&s->json);
    for (size_t i = 0; i < s->n; i++) {
        const place *p = &s->place[i];
        cd_buf_puts(&s->json, "{\"file\":");
        cd_buf_put_json_str(&s->json, path, strlen(path));
        cd_buf_putf(&s->json, ",\"line\":%ld", p->line);
        if (p->why.code) cd_error_line_put(&s->json, &p->why);
        else CD_TRY(put_row(s, s->at[i], err));
        cd_buf_puts(&s->json, "}\n");
    }
    if (s->json.oom) return CD_FAIL(err, ENOMEM, "output");
    if (!s->o.silent && s->json.n && fwrite(s->json.p, 1, s->json.n, s->out) != s->json.n)
        return CD_FAIL(err, EIO, "cannot write the output");
    s->n = s->n_good = 0;
    return CDMPP_OK;
}

/* ---- reading ---- */
static cdmpp_status device_of(const cd_library_op_stream *s, const char *name,
                              const cd_device **out, cdmpp_err *err) {
    if (name[0]) return cd_err_key(err, cd_device_table_find(s->devices, name, out, err), "Device");
    *out = s->fallback ? s->fallback : s->from;
    return *out ? CDMPP_OK
                : cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected a device here or with --device"),
                             "Device");
}

/* A time that the device cannot have taken, tensors that it cannot hold: there is nothing to scale
 * or to answer. */
static cdmpp_status check_physics(const cd_library_op_stream *s, const cd_library_op_record *r,
                                  const cd_device *d, cdmpp_err *err) {
    const double least = cd_library_op_least_s(r, d), gib = cd_library_op_bytes(r) / 1073741824;
    const cd_device *const holds[] = {d, s->to};
    if (r->latency_s > 0 && r->latency_s * CD_SERVE_ABOVE_PEAK < least)
        return cd_err_key(
            err,
            CD_FAIL(err, ERANGE,
                    "%.3g s is %.3g times the peak of %s, which needs %.3g s at least (products in "
                    "TF32 or of sparse matrices are other operators)",
                    r->latency_s, least / r->latency_s, d->name, least),
            "Latency");
    for (size_t k = 0; k < 2; k++)
        if (holds[k] && holds[k]->mem_gb > 0 && gib > holds[k]->mem_gb)
            return CD_FAIL(err, ERANGE,
                           "its tensors have %.4g GiB, which does not fit: %s has %.4g", gib,
                           holds[k]->name, holds[k]->mem_gb);
    return CDMPP_OK;
}

/* One row into the batch; *more is false at the end. */
static cdmpp_status take(cd_library_op_stream *s, cd_op_reader *in, const char *path, bool *more,
                         cdmpp_err *err) {
    place *p = &s->place[s->n];
    const char *name;
    p->why = (cdmpp_err){0};
    cdmpp_status st = cd_library_op_reader_next(in, &s->r[s->n_good], &name, more, &p->why);
    if (!st && !*more) return CDMPP_OK;
    if (!st)
        st = cd_err_at(&p->why, device_of(s, name, &s->device[s->n_good], &p->why), path,
                       cd_op_reader_line(in));
    if (!st && (!s->from || s->device[s->n_good] == s->from))
        st = cd_err_at(&p->why, check_physics(s, &s->r[s->n_good], s->device[s->n_good], &p->why),
                       path, cd_op_reader_line(in));
    if (st && (!*more || !cd_op_line_is_bad(st) || s->o.strict)) {
        if (err) *err = p->why;
        return st;
    }
    if (!st && s->from && s->device[s->n_good] != s->from) {
        s->other++;
        return CDMPP_OK;
    }
    p->line = cd_op_reader_line(in);
    s->at[s->n++] = s->n_good;
    s->n_good += !st;
    s->bad += st != CDMPP_OK;
    s->rows++;
    return CDMPP_OK;
}

cdmpp_status cd_library_op_stream_file(cd_library_op_stream *s, const char *path, cdmpp_err *err) {
    cd_op_reader *in;
    bool more = true;
    CD_TRY(cd_library_op_reader_open(path, &in, err));
    cdmpp_status st = CDMPP_OK;
    while (!st && more) {
        if (s->o.stop && *s->o.stop) more = false;
        else st = take(s, in, path, &more, err);
        if (!st && (s->n == BATCH || !more)) st = flush(s, path, err);
    }
    cd_op_reader_close(in);
    return st;
}

size_t cd_library_op_stream_rows(const cd_library_op_stream *s) { return s->rows; }
size_t cd_library_op_stream_bad(const cd_library_op_stream *s) { return s->bad; }
size_t cd_library_op_stream_other(const cd_library_op_stream *s) { return s->other; }
cd_library_op_score *cd_library_op_stream_closed(cd_library_op_stream *s) { return &s->closed; }
cd_library_op_score *cd_library_op_stream_score(cd_library_op_stream *s) { return &s->score; }

cdmpp_status cd_library_op_stream_print_json(cd_library_op_stream *s, cd_buf *b, cdmpp_err *err) {
    cd_buf_putf(b,
                "{\"schema\":\"cdmpp.evaluation\",\"command\":\"cdmpp-predict\",\"lines\":%zu,"
                "\"bad\":%zu,\"evaluation\":",
                cd_library_op_stream_rows(s), cd_library_op_stream_bad(s));
    if (s->o.eval) CD_TRY(cd_library_op_score_json(cd_library_op_stream_score(s), b, err));
    else cd_buf_puts(b, "null");
    if (s->from && s->m && s->o.eval) {
        cd_buf_puts(b, ",\"closed\":");
        CD_TRY(cd_library_op_score_json(&s->closed, b, err));
    }
    cd_buf_puts(b, "}\n");
    return CDMPP_OK;
}
