/* Tables of operators of language models in, lines of JSON out; errors by family, device and kind
 * of answer. */
#include "predictor/serve/llm_op_stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/serve/serve_internal.h"

static const double LEVEL = 0.9;
enum { FLUSH = 1 << 16 };

/* An answer beside a measured time. inside below 0: no interval. line NaN: no interpolation. */
typedef struct {
    uint32_t group; /* family, device, how */
    float error, line, bound;
    int8_t inside;
} scored;

struct cd_llm_op_stream {
    const cd_llm_op_model *m;
    cd_llm_op_table *t;
    const cd_device_table *devices;
    cd_llm_op_stream_options o;
    const cd_device *fallback;
    FILE *out;
    cd_llm_op_asker *a;
    cd_buf json;
    /* of the answers that are no measured rows; of those that are new, that have no interval */
    double all_s, new_s[CD_LLM_OP_N_NEWS], unknown_s;
    size_t n_new, n_unknown;
    scored *score;
    /* own: scored rows that the table has; helped: answers that measured rows bear on */
    size_t n_score, cap_score, rows, bad, own, helped;
    cd_llm_op_told told[CD_LLM_OP_TOLD]; /* (n) rows that are asked at once */
    cdmpp_err why[CD_LLM_OP_TOLD];
    long line[CD_LLM_OP_TOLD];
    size_t n;
};

void cd_llm_op_stream_free(cd_llm_op_stream *s) {
    if (!s) return;
    cd_llm_op_asker_free(s->a);
    cd_buf_free(&s->json);
    cd_mem_free(s->score);
    cd_mem_free(s);
}

cdmpp_status cd_llm_op_stream_new(const cd_llm_op_model *m, cd_llm_op_table *measured,
                                  const cd_device_table *devices, const cd_llm_op_stream_options *o,
                                  FILE *out, cd_llm_op_stream **res, cdmpp_err *err) {
    cd_llm_op_stream *s = cd_mem_zalloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "stream");
    s->m = m, s->t = measured, s->devices = devices, s->o = *o, s->out = out;
    cdmpp_status st =
        o->device ? cd_err_key(err, cd_device_table_find(devices, o->device, &s->fallback, err),
                               "--device")
                  : CDMPP_OK;
    if (!st) st = cd_llm_op_asker_new(m, measured, &measured->names, &s->a, err);
    if (st) cd_llm_op_stream_free(s);
    else *res = s;
    return st;
}

/* ---- a line ---- */
static void put_number(cd_buf *b, const char *name, double v) {
    if (isnan(v)) cd_buf_putf(b, ",\"%s\":null", name);
    else cd_buf_putf(b, ",\"%s\":%.9g", name, v);
}

static void put_name(cd_buf *b, const char *member, const cd_dict *names, uint16_t asked,
                     uint16_t said) {
    if (asked == said || said >= names->n) return;
    cd_buf_putf(b, ",\"%s\":", member);
    cd_buf_put_json_str(b, names->text[said], strlen(names->text[said]));
}

void cd_llm_op_answer_put(cd_buf *b, const cd_dict *names, const cd_llm_op_told *q, double level) {
    const cd_llm_op_record *r = &q->r;
    const cd_llm_op_answer *v = &q->a;
    const cd_str how = cd_enum_names_at(CD_LLM_OP_HOWS, (int)v->how);
    char news[CD_LLM_OP_NEWS_TEXT];
    cd_llm_op_news_text(v->news, news);
    cd_buf_putf(b,
                ",\"operator\":\"%s\",\"device\":", cd_llm_op_kind_name((cd_llm_op_kind)r->kind));
    cd_buf_put_json_str(b, q->d->name, strlen(q->d->name));
    put_name(b, "stack", names, r->stack, v->stack);
    put_name(b, "kernel", names, r->kernel, v->kernel);
    cd_buf_putf(b, ",\"how\":\"%.*s\",\"latency_s\":%.9g", (int)how.n, how.p, v->latency_s);
    put_number(b, "low_s", v->low_s);
    put_number(b, "high_s", v->high_s);
    if (isnan(v->low_s)) cd_buf_puts(b, ",\"level\":null");
    else cd_buf_putf(b, ",\"level\":%g", level);
    if (news[0]) cd_buf_putf(b, ",\"new\":\"%s\"", news);
    else cd_buf_puts(b, ",\"new\":null");
    if (v->alike)
        cd_buf_putf(b, ",\"alike\":\"%s\"", cd_llm_op_type_name((cd_llm_op_type)(v->alike - 1)));
    if (v->twin) {
        cd_buf_puts(b, ",\"twin\":");
        cd_buf_put_json_str(b, v->twin, strlen(v->twin));
    }
    cd_buf_putf(b, ",\"measured_rows\":%u", v->few);
    put_number(b, "estimate_s", v->base_s);
    put_number(b, "bound_s", v->roof_s);
}

static cdmpp_status add_score(cd_llm_op_stream *s, const cd_llm_op_record *r, const cd_device *d,
                              const cd_llm_op_answer *v, cdmpp_err *err) {
    const cd_llm_op_family f = cd_llm_op_family_of((cd_llm_op_kind)r->kind);
    size_t device = 0;
    while (cd_device_table_at(s->devices, device) != d) device++;
    if (CD_GROW(s->score, s->n_score, s->cap_score))
        return CD_FAIL(err, ENOMEM, "%zu figures", s->n_score);
    const long number =
        v->how == CD_LLM_OP_MEASURED ? cd_llm_op_table_device(s->t, d) : CD_LLM_OP_NONE;
    if (number >= 0) s->own += cd_llm_op_table_find(s->t, r, (uint32_t)number) >= 0;
    s->score[s->n_score++] = (scored){
        ((uint32_t)f << 16 | (uint32_t)device) << 2 | (uint32_t)v->how,
        (float)(v->latency_s / r->latency_s - 1), (float)(v->line_s / r->latency_s - 1),
        (float)(v->roof_s / r->latency_s - 1),
        (int8_t)(isnan(v->low_s) ? -1 : v->low_s <= r->latency_s && r->latency_s <= v->high_s)};
    return CDMPP_OK;
}

static void count_new(cd_llm_op_stream *s, const cd_llm_op_answer *v) {
    s->all_s += v->latency_s;
    s->n_new += v->news != 0;
    for (int k = 0; k < CD_LLM_OP_N_NEWS; k++) s->new_s[k] += v->news >> k & 1u ? v->latency_s : 0;
    if (v->how == CD_LLM_OP_MEASURED || !isnan(v->low_s)) return;
    s->n_unknown++;
    s->unknown_s += v->latency_s;
}

static cdmpp_status answer(cd_llm_op_stream *s, const cd_llm_op_told *v, cdmpp_err *err) {
    const cd_llm_op_record *r = &v->r;
    cd_buf *b = &s->json;
    s->helped += v->a.how != CD_LLM_OP_PREDICTED || v->a.few || isfinite(v->a.line_s) ||
                 (v->a.twin && v->a.twin_how != CD_LLM_OP_PREDICTED);
    cd_llm_op_answer_put(b, &s->t->names, v, LEVEL);
    count_new(s, &v->a);
    if (!s->o.eval) return CDMPP_OK;
    put_number(b, "line_s", v->a.line_s);
    put_number(b, "measured_s", r->latency_s > 0 ? r->latency_s : (double)NAN);
    put_number(b, "error", r->latency_s > 0 ? v->a.latency_s / r->latency_s - 1 : (double)NAN);
    return r->latency_s > 0 ? add_score(s, r, v->d, &v->a, err) : CDMPP_OK;
}

static cdmpp_status flush(cd_llm_op_stream *s, cdmpp_err *err) {
    if (s->json.oom) return CD_FAIL(err, ENOMEM, "output");
    if (!s->o.silent && s->json.n && fwrite(s->json.p, 1, s->json.n, s->out) != s->json.n)
        return CD_FAIL(err, EIO, "cannot write the output");
    cd_buf_clear(&s->json);
    return CDMPP_OK;
}

static cdmpp_status device_of(const cd_llm_op_stream *s, const char *name, const cd_device **out,
                              cdmpp_err *err) {
    *out = s->fallback;
    /* a folder need not be called by a device */
    if (*out && (!name[0] || cd_device_table_find(s->devices, name, out, NULL))) *out = s->fallback;
    if (*out) return CDMPP_OK;
    if (!name[0])
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected a device here or with --device"),
                          "device");
    return cd_err_key(err, cd_device_table_find(s->devices, name, out, err), "device");
}

/* Is the error of one row, which becomes a line with it? */
static bool of_row(const cd_llm_op_stream *s, cdmpp_status st) {
    return !s->o.strict && (cd_op_line_is_bad(st) || st == CDMPP_EMODEL);
}

/* The next rows, as many as are asked at once; *more is false at the end. What ends the file is an
 * error behind the rows before it. */
static cdmpp_status read_rows(cd_llm_op_stream *s, cd_op_reader *in, const char *path, bool *more,
                              cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    for (s->n = 0; !st && *more && s->n < CD_LLM_OP_TOLD;) {
        cdmpp_err *why = &s->why[s->n];
        const char *name;
        bool no_time;
        *why = (cdmpp_err){0};
        st = cd_llm_op_reader_next(in, &s->told[s->n].r, &name, more, &no_time, why);
        if (!st && !*more) return CDMPP_OK;
        s->line[s->n] = cd_op_reader_line(in);
        if (!st)
            st = cd_err_at(why, device_of(s, name, &s->told[s->n].d, why), path, s->line[s->n]);
        if (st && (!*more || !of_row(s, st))) {
            if (err) *err = *why;
            return st;
        }
        s->n++, st = CDMPP_OK;
    }
    return st;
}

/* A row that cannot be answered becomes a line with its error. */
static cdmpp_status put_row(cd_llm_op_stream *s, const char *path, size_t i, cdmpp_err *err) {
    (void)cd_err_at(&s->why[i], s->why[i].code, path, s->line[i]);
    if (s->why[i].code && !of_row(s, s->why[i].code)) {
        if (err) *err = s->why[i];
        return s->why[i].code;
    }
    cd_buf_puts(&s->json, "{\"file\":");
    cd_buf_put_json_str(&s->json, path, strlen(path));
    cd_buf_putf(&s->json, ",\"line\":%ld", s->line[i]);
    if (s->why[i].code) cd_error_line_put(&s->json, &s->why[i]);
    else CD_TRY(answer(s, &s->told[i], err));
    cd_buf_puts(&s->json, "}\n");
    s->rows++;
    s->bad += s->why[i].code != CDMPP_OK;
    return s->json.n >= FLUSH ? flush(s, err) : CDMPP_OK;
}

static cdmpp_status rows(cd_llm_op_stream *s, cd_op_reader *in, const char *path, bool *more,
                         cdmpp_err *err) {
    cdmpp_err end = {0};
    const cdmpp_status st = read_rows(s, in, path, more, &end);
    CD_TRY(cd_llm_op_ask_told(s->a, s->told, s->why, s->n, LEVEL, err));
    for (size_t i = 0; i < s->n; i++) CD_TRY(put_row(s, path, i, err));
    if (st && err) *err = end;
    return st;
}

cdmpp_status cd_llm_op_stream_file(cd_llm_op_stream *s, const char *path, cdmpp_err *err) {
    cd_op_reader *in;
    bool more = true;
    CD_TRY(cd_llm_op_reader_open(path, &s->t->names, &in, err));
    cdmpp_err odd;
    for (size_t i = 0; s->o.warn && cd_op_reader_odd(in, i, &odd); i++) s->o.warn(s->o.ctx, &odd);
    cdmpp_status st = CDMPP_OK;
    while (!st && more) {
        if (s->o.stop && *s->o.stop) break;
        st = rows(s, in, path, &more, err);
    }
    if (!st) st = flush(s, err);
    cd_op_reader_close(in);
    return st;
}

void cd_llm_op_stream_say_new(const cd_llm_op_stream *s, struct cd_log *log) {
    cd_buf b = {0};
    if (!s->n_new) return;
    for (int k = 0; k < CD_LLM_OP_N_NEWS; k++) {
        const cd_str w = cd_enum_names_at(CD_LLM_OP_NEWS, k);
        if (s->new_s[k] > 0)
            cd_buf_putf(&b, "%s%.*s %.3g %%", b.n ? ", " : "", (int)w.n, w.p,
                        100 * s->new_s[k] / s->all_s);
    }
    if (!b.oom) {
        cd_log_put(
            log, CD_LOG_WARNING,
            "%zu of %zu answers are of what is not in the training rows (of the time of all: %s)",
            s->n_new, s->rows - s->bad, b.p);
        if (s->n_unknown)
            cd_log_put(log, CD_LOG_WARNING,
                       "no interval of %zu of them all, %.3g %% of the time: no experiment of the "
                       "training tells how far off they are",
                       s->n_unknown, 100 * s->unknown_s / s->all_s);
    }
    cd_buf_free(&b);
}

size_t cd_llm_op_stream_rows(const cd_llm_op_stream *s) { return s->rows; }
size_t cd_llm_op_stream_bad(const cd_llm_op_stream *s) { return s->bad; }
size_t cd_llm_op_stream_scored(const cd_llm_op_stream *s) { return s->n_score; }
size_t cd_llm_op_stream_own(const cd_llm_op_stream *s) { return s->own; }
size_t cd_llm_op_stream_helped(const cd_llm_op_stream *s) { return s->helped; }

/* ---- figures ---- */
typedef struct {
    cd_library_op_score_sum of;
    double line, bound; /* NaN: of no row */
} figures;

static int by_group(const void *a, const void *b) {
    const scored *x = a, *y = b;
    return (x->group > y->group) - (x->group < y->group);
}

static void sum_up(const scored *v, size_t n, double *e, figures *f) {
    double inside = 0, asked = 0, line = 0, lines = 0, bound = 0;
    for (size_t i = 0; i < n; i++) {
        e[i] = (double)v[i].error;
        bound += fabs((double)v[i].bound);
        if (v[i].inside >= 0) asked++, inside += v[i].inside;
        if (!isnan(v[i].line)) lines++, line += fabs((double)v[i].line);
    }
    cd_library_op_score_errors(e, n, &f->of);
    f->of.inside = inside / asked;
    f->line = line / lines;
    f->bound = bound / (double)n;
}

typedef void put_figures(const cd_llm_op_stream *s, cd_buf *b, uint32_t group, const figures *f);

static cdmpp_status all(const cd_llm_op_stream *s, cd_buf *b, put_figures *put, cdmpp_err *err) {
    scored *v = cd_mem_zalloc(s->n_score + 1, sizeof *v);
    double *e = cd_mem_zalloc(s->n_score + 1, sizeof *e);
    if (v && e) {
        if (s->n_score) memcpy(v, s->score, s->n_score * sizeof *v);
        qsort(v, s->n_score, sizeof *v, by_group);
        for (size_t i = 0, end; i < s->n_score; i = end) {
            figures f;
            for (end = i; end < s->n_score && v[end].group == v[i].group; end++) {
            }
            sum_up(v + i, end - i, e, &f);
            put(s, b, v[i].group, &f);
        }
    }
    const cdmpp_status st = v && e && !b->oom ? CDMPP_OK : CD_FAIL(err, ENOMEM, "figures");
    cd_mem_free(v);
    cd_mem_free(e);
    return st;
}

static void put_cell(cd_buf *b, double share) {
    if (isnan(share)) cd_buf_puts(b, " - |");
    else cd_buf_putf(b, " %.1f |", 100 * share);
}

static void put_text(const cd_llm_op_stream *s, cd_buf *b, uint32_t group, const figures *f) {
    const cd_str how = cd_enum_names_at(CD_LLM_OP_HOWS, (int)(group & 3));
    const double cell[] = {f->of.mape, f->of.median, f->of.p90, f->of.inside, f->line, f->bound};
    cd_buf_putf(
        b, "| %s | %s | %.*s | %zu |", cd_llm_op_family_name((cd_llm_op_family)(group >> 18)),
        cd_device_table_at(s->devices, group >> 2 & 0xffff)->name, (int)how.n, how.p, f->of.n);
    for (size_t i = 0; i < sizeof cell / sizeof *cell; i++) put_cell(b, cell[i]);
    cd_buf_puts(b, "\n");
}

cdmpp_status cd_llm_op_stream_print_text(const cd_llm_op_stream *s, cd_buf *b, cdmpp_err *err) {
    cd_buf_puts(b, "| family | device | answer | n | MAPE % | median % | 90 % of rows % | in "
                   "interval % | log-log line MAPE % | lower bound MAPE % |\n"
                   "| --- | --- | --- | --: | --: | --: | --: | --: | --: | --: |\n");
    return all(s, b, put_text, err);
}

static void put_json(const cd_llm_op_stream *s, cd_buf *b, uint32_t group, const figures *f) {
    const cd_str how = cd_enum_names_at(CD_LLM_OP_HOWS, (int)(group & 3));
    const char *name[] = {"mape", "median", "p90", "inside", "line_mape", "bound_mape"};
    const double value[] = {f->of.mape, f->of.median, f->of.p90, f->of.inside, f->line, f->bound};
    cd_buf_putf(b, "%s{\"family\":\"%s\",\"device\":", b->p[b->n - 1] == '[' ? "" : ",",
                cd_llm_op_family_name((cd_llm_op_family)(group >> 18)));
    const char *device = cd_device_table_at(s->devices, group >> 2 & 0xffff)->name;
    cd_buf_put_json_str(b, device, strlen(device));
    cd_buf_putf(b, ",\"how\":\"%.*s\",\"n\":%zu", (int)how.n, how.p, f->of.n);
    for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
        if (isnan(value[i])) cd_buf_putf(b, ",\"%s\":null", name[i]);
        else cd_buf_putf(b, ",\"%s\":%.6g", name[i], value[i]);
    }
    cd_buf_puts(b, "}");
}

cdmpp_status cd_llm_op_stream_print_json(const cd_llm_op_stream *s, cd_buf *b, cdmpp_err *err) {
    cd_buf_putf(b,
                "{\"schema\":\"cdmpp.evaluation\",\"command\":\"cdmpp-predict\",\"lines\":%zu,"
                "\"bad\":%zu,\"evaluation\":",
                s->rows, s->bad);
    if (s->o.eval) {
        cd_buf_puts(b, "[");
        CD_TRY(all(s, b, put_json, err));
        cd_buf_putf(b, "],\"in_measured\":%zu}\n", s->own);
    } else {
        cd_buf_puts(b, "null}\n");
    }
    return b->oom ? CD_FAIL(err, ENOMEM, "output") : CDMPP_OK;
}
