/* Files of records in, lines of JSON out. Lines are scored in batches of 2048 by chunks of 64, and
 * printed in their order. With evaluation the measured and predicted seconds are kept for the
 * figures at the end. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "dataset/extract/extract.h"
#include "predictor/serve/serve_internal.h"

enum { BATCH = 2048, CHUNK = 64 };

/* A measured and predicted pair; the median ranks. */
typedef struct {
    double y, p, median, weight;
    uint32_t group;
} pair;

struct cd_stream {
    const cd_model *m;
    const cd_task_registry *tasks;
    cd_threads *pool;
    FILE *out;
    cd_stream_options o;
    cd_scorer **scorer;    /* (threads) */
    cd_scorer **from;      /* (threads) of o.from; NULL: nothing is scaled */
    cd_arena text;         /* of the batch */
    cd_predict_line *line; /* (BATCH) */
    cd_scored *scored;     /* (BATCH) */
    cd_scored *on_from;    /* (BATCH) likewise */
    size_t n;
    cd_buf json;
    cd_stream_stats stats;
    pair *pair; /* (n_pair) */
    size_t n_pair, cap_pair;
    double *weight;           /* (tasks) occurrences in networks */
    cd_trained_tasks trained; /* of the model, with evaluation */
    cd_online_adapt *adapt;   /* of o.adapt; NULL: nothing was measured */
    /* while measured records are read: who hears of those that cannot be used; else NULL */
    cd_log *told;
    size_t measured, refused;
    uint64_t *own; /* (measured) of cd_stream_measured, ascending: the records themselves */
    size_t cap_own;
};

void cd_stream_free(cd_stream *s) {
    if (!s) return;
    for (int w = 0; s->scorer && w < cd_threads_count(s->pool); w++) cd_scorer_free(s->scorer[w]);
    for (int w = 0; s->from && w < cd_threads_count(s->pool); w++) cd_scorer_free(s->from[w]);
    cd_mem_free(s->scorer);
    cd_mem_free(s->from);
    cd_mem_free(s->on_from);
    cd_arena_free(&s->text);
    cd_mem_free(s->line);
    cd_mem_free(s->scored);
    cd_buf_free(&s->json);
    cd_mem_free(s->pair);
    cd_mem_free(s->weight);
    cd_trained_tasks_free(&s->trained);
    cd_online_adapt_free(s->adapt);
    cd_mem_free(s->own);
    cd_mem_free(s);
}

static void set_weights(cd_stream *s) {
    for (size_t i = 0; i < cd_task_registry_network_count(s->tasks); i++) {
        const cd_network *net = cd_task_registry_network(s->tasks, i);
        for (uint32_t k = 0; k < net->n; k++) s->weight[net->task[k]] += (double)net->weight[k];
    }
    for (size_t i = 0; i < cd_task_registry_count(s->tasks); i++)
        if (s->weight[i] <= 0) s->weight[i] = 1;
}

static cdmpp_status fill_from(cd_stream *s, int n, cdmpp_err *err) {
    const cd_scorer_options o = {.which = {.device = s->o.from->name, .devices = s->o.devices},
                                 .peaks = s->o.devices};
    s->from = cd_mem_zalloc((size_t)n, sizeof *s->from);
    s->on_from = cd_mem_zalloc(BATCH, sizeof *s->on_from);
    if (!s->from || !s->on_from) return CD_FAIL(err, ENOMEM, "batch of %d lines", BATCH);
    for (int w = 0; w < n; w++) CD_TRY(cd_scorer_new(s->m, s->tasks, &o, &s->from[w], err));
    return CDMPP_OK;
}

static cdmpp_status fill(cd_stream *s, cdmpp_err *err) {
    const int n = cd_threads_count(s->pool);
    s->scorer = cd_mem_zalloc((size_t)n, sizeof *s->scorer);
    s->line = cd_mem_zalloc(BATCH, sizeof *s->line);
    s->scored = cd_mem_zalloc(BATCH, sizeof *s->scored);
    s->weight = cd_mem_zalloc(cd_task_registry_count(s->tasks) + 1, sizeof *s->weight);
    if (!s->scorer || !s->line || !s->scored || !s->weight)
        return CD_FAIL(err, ENOMEM, "batch of %d lines", BATCH);
    set_weights(s);
    if (s->o.eval) CD_TRY(cd_trained_tasks_of(s->m, &s->trained, err));
    const cd_scorer_options o = {
        .which = {s->o.from ? s->o.to->name : s->o.device, s->o.nearest, s->o.devices},
        .launch = s->o.from != NULL,
        .traits = s->o.adapt,
        .peaks = s->o.devices};
    for (int w = 0; w < n; w++) CD_TRY(cd_scorer_new(s->m, s->tasks, &o, &s->scorer[w], err));
    return s->o.from ? fill_from(s, n, err) : CDMPP_OK;
}

cdmpp_status cd_stream_new(const cd_model *m, const cd_task_registry *tasks,
                           const cd_stream_options *o, cd_threads *pool, FILE *out, cd_stream **res,
                           cdmpp_err *err) {
    cd_stream *s = cd_mem_zalloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "stream");
    s->m = m;
    s->tasks = tasks;
    s->pool = pool;
    s->out = out;
    s->o = *o;
    const cdmpp_status st = fill(s, err);
    if (st) cd_stream_free(s);
    else *res = s;
    return st;
}

/* ---- scaling ---- */
/* The answer for o.to, moved by a part of what the model misses on o.from, with its interval. */
static cdmpp_status scale(cd_stream *s, cd_scored *o, const cd_scored *from,
                          cd_wave_scale_answer *closed, cdmpp_err *err) {
    const double roofline_s = o->launch.flop / (s->o.to->fp32_gflops * 1e9),
                 memory_s = o->launch.bytes / (s->o.to->bandwidth_gb_s * 1e9);
    const cd_wave_scale_kernel k = {.time_s = o->measured_s,
                                    .balance = s->o.to->fp32_gflops > 0 ? roofline_s / memory_s
                                                                        : (double)NAN,
                                    .blocks = o->launch.blocks,
                                    .block_threads = o->launch.block_threads};
    if (from->st) {
        if (err) *err = from->err;
        return from->st;
    }
    if (isnan(o->measured_s))
        return CD_FAIL(err, EINVALID, "the measurement failed: there is no time to scale");
    if (o->measured_s * CD_SERVE_ABOVE_PEAK < from->least_s)
        return CD_FAIL(
            err, ERANGE, "%.3g s is %.3g times the peak of %s, which needs %.3g s at least",
            o->measured_s, from->least_s / o->measured_s, s->o.from->name, from->least_s);
    CD_TRY(cd_wave_scale(&k, s->o.from, s->o.to, closed, err));
    const double moved = pow(o->measured_s / from->pred.latency_s, CD_LIBRARY_OP_SCALE_CARRIED);
    o->pred.latency_s *= moved;
    o->pred.median_s *= moved;
    o->pred.order_s *= moved;
    o->pred.low_s *= moved;
    o->pred.high_s *= moved;
    cd_score_bound(o);
    return CDMPP_OK;
}

/* ---- printing ---- */
static void put_scaled(cd_stream *s, const cd_scored *o, const cd_scored *from,
                       const cd_wave_scale_answer *closed) {
    cd_buf *b = &s->json;
    cd_buf_puts(b, ",\"from\":");
    cd_buf_put_json_str(b, s->o.from->name, strlen(s->o.from->name));
    cd_buf_puts(b, ",\"to\":");
    cd_buf_put_json_str(b, s->o.to->name, strlen(s->o.to->name));
    cd_buf_putf(b,
                ",\"from_s\":%.9g,\"form\":\"model\",\"predicted_from_s\":%.9g,\"closed_s\":%.9g,"
                "\"closed_form\":\"%s\",\"gamma\":%.4g",
                o->measured_s, from->pred.latency_s, closed->time_s,
                cd_wave_scale_form_name(closed->form), closed->gamma);
}

static void put_scored(cd_stream *s, const cd_scored *o) {
    cd_buf *b = &s->json;
    cd_buf_puts(b, ",\"workload_key\":");
    cd_buf_put_json_str(b, o->task->workload_key, strlen(o->task->workload_key));
    cd_buf_putf(b, ",\"latency_s\":%.9g", o->pred.latency_s);
    if (cd_model_order(s->m)) cd_buf_putf(b, ",\"score\":%.9g", cd_score_of(o->pred.order_s));
    if (!isnan(o->pred.low_s))
        cd_buf_putf(b, ",\"low_s\":%.9g,\"high_s\":%.9g,\"rel_std\":%.4g", o->pred.low_s,
                    o->pred.high_s, o->pred.rel_std);
    else if (o->pred.flags & CD_MODEL_OUT_OF_RANGE)
        cd_buf_puts(b, ",\"low_s\":null,\"high_s\":null,\"rel_std\":null");
    if (!isnan(o->pred.low_s) || o->pred.flags & CD_MODEL_OUT_OF_RANGE)
        cd_buf_putf(b, ",\"out_of_range\":%s",
                    o->pred.flags & CD_MODEL_OUT_OF_RANGE ? "true" : "false");
    if (o->unlike.reason) {
        cd_buf_puts(b, ",\"reason\":");
        cd_buf_put_json_str(b, o->unlike.text, strlen(o->unlike.text));
    }
    if (s->o.eval && isnan(o->measured_s)) cd_buf_puts(b, ",\"measured_s\":null,\"error\":null");
    else if (s->o.eval)
        cd_buf_putf(b, ",\"measured_s\":%.9g,\"error\":%.6g", o->measured_s,
                    o->pred.latency_s / o->measured_s - 1);
}

/* A record by its task, its program and its time. */
static uint64_t print_of(const cd_scored *o) {
    cd_hash h = cd_hash_start();
    cd_hash_add(&h, o->key, strlen(o->key));
    cd_hash_add(&h, o->trait, sizeof o->trait);
    cd_hash_add(&h, &o->measured_s, sizeof o->measured_s);
    return h.a;
}

static cdmpp_status remember(cd_stream *s, const cd_scored *o, cdmpp_err *err) {
    if (CD_GROW(s->pair, s->n_pair, s->cap_pair)) return CD_FAIL(err, ENOMEM, "records");
    const size_t task = cd_task_registry_index(s->tasks, o->task);
    s->stats.known += cd_trained_tasks_knows(&s->trained, o->task->workload_key,
                                             cd_model_device(s->m, o->which.device));
    if (s->own) {
        const uint64_t print = print_of(o);
        s->stats.own += bsearch(&print, s->own, s->measured, sizeof print, cd_sort_by_u64) != NULL;
    }
    s->stats.ranged += !isnan(o->pred.low_s) ? 1u : 0u;
    s->stats.inside += o->pred.low_s <= o->measured_s && o->measured_s <= o->pred.high_s;
    s->pair[s->n_pair++] =
        (pair){o->measured_s, o->pred.latency_s, o->pred.order_s, s->weight[task],
               (uint32_t)(task * cd_model_n_device(s->m) + o->which.device)};
    return CDMPP_OK;
}

/* A measured record corrects what comes later. A device of the model of which no program was
 * trained on is unknown to it. */
static cdmpp_status enter(cd_stream *s, const cd_predict_line *l, cd_scored *o, cdmpp_err *err) {
    const cd_trained_on *t = cd_model_trained_on(s->m);
    cdmpp_err why = o->err;
    cdmpp_status st = o->st;
    if (!st && !(o->measured_s > 0))
        st = cd_err_at(
            &why, CD_FAIL(&why, EINVALID, "the measurement failed: there is no time to learn from"),
            l->source, l->number);
    if (st && s->o.strict) {
        if (err) *err = why;
        return st;
    }
    if (st) {
        s->refused++;
        cd_log_err(s->told, CD_LOG_WARNING, &why);
        return CDMPP_OK;
    }
    const bool unknown = o->which.unknown || (t && !cd_trained_on_saw(t, o->which.device));
    const cd_online_adapt_item item =
        cd_online_adapt_item_of(&o->pred, unknown, o->trait, o->measured_s);
    if (CD_GROW(s->own, s->measured, s->cap_own))
        return CD_FAIL(err, ENOMEM, "%zu measured records", s->measured);
    s->own[s->measured++] = print_of(o);
    return cd_online_adapt_add(s->adapt, o->which.name, unknown, o->key, &item, err);
}

/* learner/model/here.h: a correction is of one device. */
static void count_scored(cd_stream *s, const cd_predict_line *l, const cd_scored *o) {
    const cd_here *h = cd_model_here(s->m);
    s->stats.scored++;
    s->stats.out_of_range += (o->pred.flags & CD_MODEL_OUT_OF_RANGE) != 0;
    if (o->which.assumed && !s->stats.assumed++)
        (void)snprintf(s->stats.assumed_at, sizeof s->stats.assumed_at, "%.200s:%ld", l->source,
                       l->number);
    if (!h || (!o->which.unknown && o->which.device == h->device)) return;
    if (!s->stats.uncorrected++) s->stats.other = o->which.name;
}

/* With --strict the line with the error is still printed, and then its error ends the run. Pairs
 * for the figures need a measured time above 0. */
static cdmpp_status print_one(cd_stream *s, const cd_predict_line *l, cd_scored *o,
                              const cd_scored *from, cdmpp_err *err) {
    cd_wave_scale_answer closed;
    if (from && !o->st) o->st = scale(s, o, from, &closed, &o->err);
    s->stats.lines++;
    cd_buf_puts(&s->json, "{\"file\":");
    cd_buf_put_json_str(&s->json, l->source, strlen(l->source));
    cd_buf_putf(&s->json, ",\"line\":%ld", l->number);
    if (o->st) {
        s->stats.bad++;
        s->stats.reason[o->st]++;
        cd_error_line_put(&s->json, &o->err);
    } else {
        count_scored(s, l, o);
        put_scored(s, o);
        if (o->which.assumed) {
            cd_buf_puts(&s->json, ",\"assumed_device\":");
            cd_buf_put_json_str(&s->json, o->which.name, strlen(o->which.name));
        }
        if (from) put_scaled(s, o, from, &closed);
    }
    cd_buf_puts(&s->json, "}\n");
    if (o->st && s->o.strict) {
        if (err) *err = o->err;
        return o->st;
    }
    if (!s->o.eval || o->st) return CDMPP_OK;
    if (!isnan(o->measured_s) && o->measured_s > 0) return remember(s, o, err);
    s->stats.unmeasured++;
    return CDMPP_OK;
}

static cdmpp_status print_batch(cd_stream *s, cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    cd_buf_clear(&s->json);
    for (size_t i = 0; s->told && !st && i < s->n; i++)
        st = enter(s, &s->line[i], &s->scored[i], err);
    for (size_t i = 0; !s->told && !st && i < s->n; i++)
        st = print_one(s, &s->line[i], &s->scored[i], s->from ? &s->on_from[i] : NULL, err);
    if (s->json.oom) return CD_FAIL(err, ENOMEM, "output");
    if (s->o.silent) return st;
    if (s->json.n && fwrite(s->json.p, 1, s->json.n, s->out) != s->json.n)
        return CD_FAIL(err, EIO, "cannot write the output");
    return st;
}

/* ---- scoring ---- */
static cdmpp_status score_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    cd_stream *s = ctx;
    if (s->from) CD_TRY(cd_scorer_run(s->from[w], s->line + beg, end - beg, s->on_from + beg, err));
    CD_TRY(cd_scorer_run(s->scorer[w], s->line + beg, end - beg, s->scored + beg, err));
    for (cd_scored *o = s->scored + beg; s->adapt && !s->told && o < s->scored + end; o++)
        if (!o->st)
            (void)cd_online_adapt_apply(s->adapt, o->which.name, o->key, o->trait, &o->pred),
                cd_score_bound(o);
    return CDMPP_OK;
}

static cdmpp_status flush_batch(cd_stream *s, cdmpp_err *err) {
    CD_TRY(cd_threads_run(s->pool, s->n, CHUNK, score_chunk, s, err));
    const cdmpp_status st = print_batch(s, err);
    s->n = 0;
    cd_arena_reset(&s->text);
    return st;
}

static bool is_record(const char *p, size_t n) {
    while (n && (*p == ' ' || *p == '\t')) p++, n--;
    return n && *p != '#';
}

static cdmpp_status add_line(cd_stream *s, const char *path, const char *p, size_t n, long number,
                             cdmpp_err *err) {
    char *copy = cd_arena_alloc(&s->text, n + 1, 1);
    const size_t n_path = strlen(path) + 1;
    /* One copy of the path for each batch and file; the arena is reset between. */
    const char *source =
        s->n && !strcmp(s->line[s->n - 1].source, path) ? s->line[s->n - 1].source : NULL;
    char *path_copy = source ? NULL : cd_arena_alloc(&s->text, n_path, 1);
    if (!copy || (!source && !path_copy)) return CD_FAIL(err, ENOMEM, "line of %zu bytes", n);
    if (!source) source = memcpy(path_copy, path, n_path);
    memcpy(copy, p, n);
    copy[n] = '\0';
    s->line[s->n++] = (cd_predict_line){copy, n, source, number};
    return s->n == BATCH ? flush_batch(s, err) : CDMPP_OK;
}

/* A line that the reader refused, or the end of a damaged file: it takes its turn
 * in the output. */
static cdmpp_status add_bad(cd_stream *s, const char *path, long number, const cdmpp_err *why,
                            cdmpp_err *err) {
    CD_TRY(flush_batch(s, err));
    s->line[0] = (cd_predict_line){"", 0, path, number};
    s->scored[0] = (cd_scored){.st = why->code, .err = *why};
    s->n = 1;
    const cdmpp_status st = print_batch(s, err);
    s->n = 0;
    return st;
}

cdmpp_status cd_stream_file(cd_stream *s, const char *path, cdmpp_err *err) {
    cd_file_lines *l = NULL;
    CD_TRY(cd_file_lines_open(path, CD_RECORD_LINE_MAX, &l, err));
    cdmpp_status st = CDMPP_OK;
    while (!st && !(s->o.stop && *s->o.stop)) {
        char *p;
        size_t n;
        cdmpp_err why = {0};
        st = cd_file_lines_next(l, &p, &n, &why);
        if (st == CDMPP_ERANGE || st == CDMPP_EPARSE) {
            const bool over = st == CDMPP_EPARSE; /* nothing behind the damage can be read */
            st = add_bad(s, path, cd_file_lines_number(l), &why, err);
            if (over) break;
        } else if (st) {
            if (err) *err = why;
        } else if (!p) {
            break;
        } else if (is_record(p, n)) {
            st = add_line(s, path, p, n, cd_file_lines_number(l), err);
        }
    }
    cd_file_lines_close(l);
    return st;
}

cdmpp_status cd_stream_end(cd_stream *s, cdmpp_err *err) { return flush_batch(s, err); }

/* Lines of several files share batches: the last batch is flushed after the last file. */
cdmpp_status cd_stream_inputs(cd_stream *s, const cd_texts *input, cdmpp_err *err) {
    for (size_t i = 0; i < input->n; i++) {
        cd_inputs in = {0};
        const cd_extract one = {.input = &input->v[i], .n_input = 1};
        if (!strcmp(input->v[i], "-")) {
            CD_TRY(cd_stream_file(s, "-", err));
            continue;
        }
        cdmpp_status st = cd_inputs_list(&one, &in, err);
        for (size_t k = 0; !st && k < in.n; k++) st = cd_stream_file(s, in.path[k], err);
        cd_inputs_free(&in);
        CD_TRY(st);
    }
    CD_TRY(cd_stream_end(s, err));
    return s->o.stop && *s->o.stop ? CD_FAIL(err, EINTERRUPTED, "after %zu lines", s->stats.lines)
                                   : CDMPP_OK;
}

cdmpp_status cd_stream_measured(cd_stream *s, const cd_texts *input, cd_log *log, size_t *used,
                                size_t *bad, cdmpp_err *err) {
    CD_TRY(cd_online_adapt_new(&s->adapt, err));
    s->told = log;
    cdmpp_status st = cd_stream_inputs(s, input, err);
    s->told = NULL;
    *used = s->measured;
    *bad = s->refused;
    if (!st && !s->measured)
        st = CD_FAIL(err, ENODATA, "no measured record can be used, of %zu", s->refused);
    if (s->measured) qsort(s->own, s->measured, sizeof *s->own, cd_sort_by_u64);
    return st ? st : cd_online_adapt_fit(s->adapt, err);
}

const cd_stream_stats *cd_stream_counts(const cd_stream *s) { return &s->stats; }

/* One allocation has the columns y, p, weight and median. A group is a task on a device. */
cdmpp_status cd_stream_metrics(const cd_stream *s, cd_metric *out, cdmpp_err *err) {
    const size_t n = s->n_pair;
    double *v = cd_mem_zalloc(n + 1, 4 * sizeof *v), *y = v, *p = v + n, *w = v + 2 * n,
           *median = v + 3 * n;
    uint32_t *group = cd_mem_zalloc(n + 1, sizeof *group);
    cdmpp_status st = v && group ? CDMPP_OK : CD_FAIL(err, ENOMEM, "figures of %zu records", n);
    for (size_t i = 0; !st && i < n; i++) {
        y[i] = s->pair[i].y;
        p[i] = s->pair[i].p;
        w[i] = s->pair[i].weight;
        median[i] = s->pair[i].median;
        group[i] = s->pair[i].group;
    }
    if (!st) st = cd_metric_compute_ranked(y, p, median, group, w, n, out, err);
    cd_mem_free(v);
    cd_mem_free(group);
    return st;
}
