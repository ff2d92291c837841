/* A sweep as text, JSON and a picture. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/draw/draw.h"
#include "predictor/serving/serving.h"

static void put_point(const cd_serving_point *p, cd_buf *b) {
    const cd_serving_config *c = p->c;
    cd_buf_puts(b, "| "), cd_serving_gpu_text(c->gpu, &p->about, b);
    cd_buf_putf(b, " | %g | %g | %g | %g | %g | %g | ", p->gpus, c->worker.tp, c->worker.pp,
                c->worker.dp, c->worker.ep, c->concurrency);
    cd_units_put_seconds(b, p->ttft_s);
    cd_buf_puts(b, " | ");
    cd_units_put_seconds(b, p->tpot_s);
    cd_buf_putf(b, " | %.4g |", p->per_gpu);
    if (isnan(p->per_user)) cd_buf_puts(b, " - |");
    else cd_buf_putf(b, " %.4g |", p->per_user);
    if (isnan(p->price)) cd_buf_puts(b, " - |\n");
    else cd_buf_putf(b, " %.3g |\n", p->price);
}

static int by_user(const void *a, const void *b) {
    const double x = (*(const cd_serving_point *const *)a)->per_user,
                 y = (*(const cd_serving_point *const *)b)->per_user;
    return (x > y) - (x < y);
}

/* The front by speed for a user, slowest first; NULL: out of memory. */
static const cd_serving_point **front_of(const cd_serving_sweep *s) {
    const cd_serving_point **v = cd_mem_zalloc(s->n_front + 1, sizeof *v);
    size_t n = 0;
    for (size_t i = 0; v && i < s->n; i++)
        if (s->v[i].front) v[n++] = &s->v[i];
    if (v) qsort(v, n, sizeof(cd_serving_point *), by_user);
    return v;
}

/* ---- what is named ---- */
static void put_range(cd_buf *b, double low, double high) {
    if (isnan(low)) {
        cd_buf_puts(b, " - |");
        return;
    }
    cd_buf_puts(b, " "), cd_units_put_seconds(b, low);
    cd_buf_puts(b, " to "), cd_units_put_seconds(b, high), cd_buf_puts(b, " |");
}

static void put_named(const char *what, const cd_serving_named *v, cd_buf *b) {
    const cd_serving_point *p = v->p;
    const cd_serving_config *c = p->c;
    cd_buf_putf(b, "| %s | ", what), cd_serving_gpu_text(c->gpu, &p->about, b);
    cd_buf_putf(b, " | %g | %g | %g | %g | %g | %g | ", p->gpus, c->worker.tp, c->worker.pp,
                c->worker.dp, c->worker.ep, c->concurrency);
    cd_units_put_seconds(b, p->ttft_s), cd_buf_puts(b, " |"),
        put_range(b, v->ttft_low_s, v->ttft_high_s), cd_buf_puts(b, " ");
    cd_units_put_seconds(b, p->tpot_s), cd_buf_puts(b, " |"),
        put_range(b, v->tpot_low_s, v->tpot_high_s);
    cd_buf_putf(b, " %.4g |", p->per_gpu);
    if (isnan(v->per_gpu_low)) cd_buf_puts(b, " - |");
    else cd_buf_putf(b, " %.4g to %.4g |", v->per_gpu_low, v->per_gpu_high);
    if (isnan(p->price)) cd_buf_puts(b, " - |\n");
    else cd_buf_putf(b, " %.3g |\n", p->price);
}

/* By how much a target is missed, or that the interval reaches over it. */
static void put_target(const char *what, const char *of, double value, double high, double target,
                       bool *any, cd_buf *b) {
    const bool misses = target > 0 && value > target;
    if (!misses && !cd_serving_reaches_over(value, high, target)) return;
    if (!*any) cd_buf_puts(b, "\n");
    *any = true;
    const double at = misses ? value : high;
    cd_buf_putf(b, misses ? "%s: %s is " : "%s: the interval of %s reaches ", what, of);
    cd_units_put_seconds(b, at - target);
    if (at < 10 * target) cd_buf_putf(b, " (%.3g %%) over the target of ", 100 * (at / target - 1));
    else cd_buf_putf(b, " (%.3g times as long) over the target of ", at / target);
    cd_units_put_seconds(b, target), cd_buf_puts(b, "\n");
}

static void put_all_named(const cd_serving_sweep *s, cd_buf *b) {
    const cd_serving_named *const v[] = {&s->most, &s->cheapest, &s->nearest};
    static const char *const name[] = {"most tokens/s/GPU", "cheapest", "nearest miss"};
    char range[40];
    bool any = false;
    if (!s->most.p && !s->nearest.p) return;
    snprintf(range, sizeof range, "%g %% interval", 100 * s->level);
    cd_buf_putf(b,
                "\n| named | GPU | GPUs | tp | pp | dp | ep | in flight | TTFT | %s | TPOT | %s | "
                "tokens/s/GPU | %s | price of 1e6 tokens |\n",
                range, range, range);
    cd_buf_puts(b, "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --- | --: | --- | --: "
                   "| --- | --: |\n");
    for (size_t i = 0; i < 3; i++)
        if (v[i]->p) put_named(name[i], v[i], b);
    for (size_t i = 0; i < 3; i++) {
        if (!v[i]->p) continue;
        put_target(name[i], "TTFT", v[i]->p->ttft_s, v[i]->ttft_high_s, s->ttft_s, &any, b);
        put_target(name[i], "TPOT", v[i]->p->tpot_s, v[i]->tpot_high_s, s->tpot_s, &any, b);
    }
}

static void put_unranked(const cd_serving_sweep *s, cd_buf *b) {
    char news[CD_LLM_OP_NEWS_TEXT];
    unsigned of = 0;
    for (size_t i = 0; i < s->n; i++) of |= s->v[i].news;
    cd_llm_op_news_text(of, news);
    if (s->n_unranked)
        cd_buf_putf(b,
                    "%zu of them are not ranked: no experiment tells how far off their operators "
                    "are (new: %s)\n",
                    s->n_unranked, news);
}

static const char points_head[] =
    "| GPU | GPUs | tp | pp | dp | ep | in flight | TTFT | TPOT | tokens/s/GPU | tokens/s/user | "
    "price of 1e6 tokens |\n"
    "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n";

static bool first_of_gpu(const cd_serving_sweep *s, size_t at) {
    for (size_t i = 0; i < at; i++)
        if (!strcmp(s->v[i].c->gpu, s->v[at].c->gpu)) return false;
    return true;
}

/* Of a GPU without a point on the front, the one that meets the targets with the most tokens/s/GPU.
 * NULL: it has a point there, or none that meets them. */
static const cd_serving_point *best_behind(const cd_serving_sweep *s, const char *gpu) {
    const cd_serving_point *best = NULL;
    for (size_t i = 0; i < s->n; i++) {
        const cd_serving_point *p = &s->v[i];
        if (strcmp(p->c->gpu, gpu) != 0) continue;
        if (p->front) return NULL;
        if (p->met && p->ranked && (!best || p->per_gpu > best->per_gpu)) best = p;
    }
    return best;
}

static void put_behind(const cd_serving_sweep *s, cd_buf *b) {
    bool any = false;
    for (size_t i = 0; i < s->n; i++) {
        const char *gpu = s->v[i].c->gpu;
        const cd_serving_point *p = first_of_gpu(s, i) ? best_behind(s, gpu) : NULL;
        if (!p) continue;
        if (!any)
            cd_buf_putf(b, "\nnot on the front, the most tokens/s/GPU of each:\n\n%s", points_head);
        any = true;
        put_point(p, b);
    }
}

void cd_serving_sweep_text(const cd_serving_sweep *s, cd_buf *b) {
    const cd_serving_point **v = front_of(s);
    if (!v) b->oom = true;
    if (s->done < s->tried)
        cd_buf_putf(
            b,
            "NOT COMPLETE: stopped after %zu of %zu configurations; all that follows is of these\n",
            s->done, s->tried);
    cd_buf_putf(
        b, "%zu configurations, %zu of them can be, %zu meet the targets, %zu are on the front\n",
        s->done, s->n, s->n_met, s->n_front);
    for (size_t i = 0; i < s->n_reason; i++)
        cd_buf_putf(b, "%zu left out: %s\n", s->reason[i].n, s->reason[i].text);
    if (s->n_idle)
        cd_buf_putf(b,
                    "in %zu of them there are fewer requests in flight than schedulers (engines x "
                    "pp, without experts x dp): the others idle\n",
                    s->n_idle);
    if (s->n_crowded)
        cd_buf_putf(
            b, "in %zu of them prompts wait for room in a step: see --max-tokens and --prompts\n",
            s->n_crowded);
    put_unranked(s, b);
    put_all_named(s, b);
    if (s->n_front) cd_buf_putf(b, "\n%s", points_head);
    for (size_t i = 0; v && i < s->n_front; i++) put_point(v[i], b);
    put_behind(s, b);
    cd_mem_free(v);
}

/* ---- JSON ---- */
static void json_point(cd_json_writer *w, const cd_serving_point *p) {
    const cd_serving_worker *k = &p->c->worker;
    cd_json_write_member_str(w, "gpu", p->c->gpu), cd_serving_about_json(w, &p->about);
    const struct {
        const char *key;
        double v;
    } f[] = {{"gpus", p->gpus},
             {"tp", k->tp},
             {"pp", k->pp},
             {"dp", k->dp},
             {"ep", k->ep},
             {"concurrency", p->c->concurrency},
             {"ttft_s", p->ttft_s},
             {"tpot_s", p->tpot_s},
             {"tokens_s", p->tokens_s},
             {"tokens_s_gpu", p->per_gpu},
             {"tokens_s_user", p->per_user},
             {"price_million_tokens", p->price}};
    for (size_t j = 0; j < sizeof f / sizeof *f; j++)
        cd_json_write_member_real(w, f[j].key, f[j].v);
    cd_json_write_member_bool(w, "met", p->met), cd_json_write_member_bool(w, "front", p->front),
        cd_json_write_member_bool(w, "crowded", p->crowded);
    cd_json_write_member_bool(w, "idle", p->idle),
        cd_json_write_member_bool(w, "ranked", p->ranked);
}

static void json_missed(cd_json_writer *w, const char *key, double value, double target) {
    if (!(target > 0) || !(value > target)) return;
    cd_json_write_key(w, key), cd_json_write_open(w, '{');
    cd_json_write_member_real(w, "target_s", target),
        cd_json_write_member_real(w, "over_s", value - target),
        cd_json_write_member_real(w, "times", value / target);
    cd_json_write_close(w, '}');
}

/* null: there is none. */
static void json_named(cd_json_writer *w, const char *key, const cd_serving_sweep *s,
                       const cd_serving_named *v) {
    cd_json_write_key(w, key);
    if (!v->p) {
        cd_json_write_null(w);
        return;
    }
    cd_json_write_open(w, '{');
    json_point(w, v->p);
    const struct {
        const char *key;
        double v;
    } f[] = {{"level", s->level},
             {"ttft_low_s", v->ttft_low_s},
             {"ttft_high_s", v->ttft_high_s},
             {"tpot_low_s", v->tpot_low_s},
             {"tpot_high_s", v->tpot_high_s},
             {"tokens_s_gpu_low", v->per_gpu_low},
             {"tokens_s_gpu_high", v->per_gpu_high}};
    for (size_t j = 0; j < sizeof f / sizeof *f; j++)
        cd_json_write_member_real(w, f[j].key, f[j].v);
    cd_json_write_key(w, "interval_over"), cd_json_write_open(w, '[');
    if (cd_serving_reaches_over(v->p->ttft_s, v->ttft_high_s, s->ttft_s))
        cd_json_write_str(w, "ttft");
    if (cd_serving_reaches_over(v->p->tpot_s, v->tpot_high_s, s->tpot_s))
        cd_json_write_str(w, "tpot");
    cd_json_write_close(w, ']');
    cd_json_write_key(w, "missed"), cd_json_write_open(w, '{');
    json_missed(w, "ttft", v->p->ttft_s, s->ttft_s),
        json_missed(w, "tpot", v->p->tpot_s, s->tpot_s);
    cd_json_write_close(w, '}'), cd_json_write_close(w, '}');
}

void cd_serving_sweep_json(const cd_serving_sweep *s, bool all, cd_buf *b) {
    cd_json_writer w = {.out = b};
    cd_json_write_open(&w, '{');
    cd_json_write_member_int(&w, "tried", (int64_t)s->tried),
        cd_json_write_member_int(&w, "done", (int64_t)s->done);
    cd_json_write_member_bool(&w, "complete", s->done == s->tried),
        cd_json_write_member_int(&w, "met", (int64_t)s->n_met),
        cd_json_write_member_int(&w, "crowded", (int64_t)s->n_crowded);
    cd_json_write_member_int(&w, "idle", (int64_t)s->n_idle),
        cd_json_write_member_int(&w, "not_ranked", (int64_t)s->n_unranked);
    cd_json_write_key(&w, "left_out"), cd_json_write_open(&w, '{');
    for (size_t i = 0; i < s->n_reason; i++)
        cd_json_write_member_int(&w, s->reason[i].text, (int64_t)s->reason[i].n);
    cd_json_write_close(&w, '}');
    json_named(&w, "most_tokens_s_gpu", s, &s->most), json_named(&w, "cheapest", s, &s->cheapest),
        json_named(&w, "nearest_miss", s, &s->nearest);
    cd_json_write_key(&w, "configurations"), cd_json_write_open(&w, '[');
    for (size_t i = 0; i < s->n; i++) {
        if (!all && !s->v[i].front) continue;
        cd_json_write_open(&w, '{');
        json_point(&w, &s->v[i]);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']'), cd_json_write_close(&w, '}');
}

/* ---- the picture ---- */
static void name_number(double v, char *buf, size_t n) { snprintf(buf, n, "%g", v); }

/* Those of GPUs that no training saw have colours of their own, also on the front. */
enum { FRONT, MEETS, MISSES, NEW_FRONT, NEW_MEETS, NEW_MISSES, KINDS };

static int kind_of(const cd_serving_point *p) {
    return (p->front ? FRONT : p->met ? MEETS : MISSES) + (p->about.news ? NEW_FRONT : FRONT);
}

static void dots(cd_chart *c, const cd_serving_sweep *s, double *x, double *y, int kind) {
    static const char *const text[KINDS] = {"the front",
                                            "meets the targets",
                                            "misses a target",
                                            "the front, GPU not trained on",
                                            "meets the targets, GPU not trained on",
                                            "misses a target, GPU not trained on"};
    static const size_t colour[KINDS] = {
        [FRONT] = 0, [MEETS] = 1, [MISSES] = 7, [NEW_FRONT] = 3, [NEW_MEETS] = 2, [NEW_MISSES] = 5};
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (kind_of(&s->v[i]) == kind && !isnan(s->v[i].per_user))
            x[n] = s->v[i].per_user, y[n++] = s->v[i].per_gpu;
    if (!n) return;
    cd_plot_dots(&c->p, x, y, n, cd_chart_dots(colour[kind]));
    cd_chart_legend_dot(c, colour[kind], text[kind]);
}

static void span(const cd_serving_sweep *s, cd_axis *x, cd_axis *y) {
    *x = *y = (cd_axis){INFINITY, 0, true};
    for (size_t i = 0; i < s->n; i++) {
        const cd_serving_point *p = &s->v[i];
        if (!(p->per_user > 0) || !(p->per_gpu > 0)) continue;
        x->lo = fmin(x->lo, p->per_user / 1.1), x->hi = fmax(x->hi, p->per_user * 1.1);
        y->lo = fmin(y->lo, p->per_gpu / 1.1), y->hi = fmax(y->hi, p->per_gpu * 1.1);
    }
    if (!(x->hi > x->lo)) *x = *y = (cd_axis){1, 10, true};
}

cdmpp_status cd_serving_sweep_picture(const cd_serving_sweep *s, const char *path, cdmpp_err *err) {
    cd_chart c = {0};
    double *x = cd_mem_zalloc(s->n + 1, sizeof *x), *y = cd_mem_zalloc(s->n + 1, sizeof *y);
    const cd_serving_point **v = front_of(s);
    cdmpp_status st = CDMPP_OK;
    if (!x || !y || !v) {
        st = CD_FAIL(err, ENOMEM, "picture");
    } else {
        span(s, &c.p.x, &c.p.y);
        cd_chart_begin(&c, "Throughput of a GPU against speed for a user", "tokens/s/user",
                       "tokens/s/GPU", name_number, name_number);
        size_t n = 0;
        for (int k = KINDS; k-- > 0;)
            if (k % NEW_FRONT != FRONT) dots(&c, s, x, y, k);
        for (size_t i = 0; i < s->n_front; i++)
            if (!isnan(v[i]->per_user)) x[n] = v[i]->per_user, y[n++] = v[i]->per_gpu;
        cd_plot_line(&c.p, x, y, n, cd_chart_colour(0));
        dots(&c, s, x, y, FRONT);
        dots(&c, s, x, y, NEW_FRONT);
        st = cd_chart_write(&c, path, err);
    }
    cd_mem_free(x);
    cd_mem_free(y);
    cd_mem_free(v);
    return st;
}
