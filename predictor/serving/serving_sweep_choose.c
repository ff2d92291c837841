/* Which configurations of a sweep are named, and their intervals. */
#include <math.h>

#include "predictor/serving/serving_sweep_internal.h"

bool cd_serving_reaches_over(double value, double high, double target) {
    return target > 0 && value <= target && high > target;
}

/* Of equal ones the first counts, of equal prices the one with more tokens/s/GPU: GPUs that cost
 * nothing are all as cheap. */
static bool cheaper(const cd_serving_point *a, const cd_serving_point *b) {
    return a->price < b->price || (!(a->price > b->price) && a->per_gpu > b->per_gpu);
}

/* Times over the target that is missed most. */
static double times_over(const cd_serving_sweep *w, const cd_serving_point *p) {
    /* a TPOT that is none misses nothing */
    return fmax(w->ttft_s > 0 ? p->ttft_s / w->ttft_s : 0,
                w->tpot_s > 0 ? p->tpot_s / w->tpot_s : 0);
}

static void choose(cd_serving_sweep *w) {
    for (size_t i = 0; i < w->n; i++) {
        const cd_serving_point *p = &w->v[i];
        if (!p->ranked) continue;
        if (p->met && (!w->most.p || p->per_gpu > w->most.p->per_gpu)) w->most.p = p;
        if (p->met && !isnan(p->price) && (!w->cheapest.p || cheaper(p, w->cheapest.p)))
            w->cheapest.p = p;
        if (!w->n_met && (!w->nearest.p || times_over(w, p) < times_over(w, w->nearest.p)))
            w->nearest.p = p;
    }
}

/* A size beyond those of the training, and a GPU of a chip that it knows, are no strangers. */
static bool is_strange(const cd_serving_row *r) {
    return r->news & ~(unsigned)(CD_LLM_OP_NEW_SIZE | (r->twin ? CD_LLM_OP_NEW_DEVICE : 0));
}

cdmpp_status cd_serving_sweep_rank(cd_serving_session *s, const cd_serving_config *c,
                                   cd_serving_point *p, cdmpp_err *err) {
    const cd_serving_step step[] = {{.prompts = 1, .isl = c->isl},
                                    {.decodes = 1, .context = c->isl + c->osl / 2}};
    cd_serving_engine *e;
    cd_serving_layout l;
    cd_serving_rows r = {0};
    cdmpp_status st = cd_serving_engine_of(s, c, &e, &l, err);
    p->ranked = true, p->news = 0;
    for (size_t i = 0; !st && i < sizeof step / sizeof *step; i++) {
        st = cd_serving_step_rows(e, &step[i], s->shared, &r, err);
        for (size_t k = 0; !st && k < r.n; k++)
            if (!r.v[k].known && is_strange(&r.v[k])) p->ranked = false, p->news |= r.v[k].news;
    }
    cd_serving_rows_free(&r);
    return st;
}

static double seconds(const cd_serving_config *c, double ttft_s, double tpot_s) {
    return ttft_s + (c->osl > 1 ? (c->osl - 1) * tpot_s : 0);
}

/* Where so many requests are in flight all the time, throughput is their number over the seconds of
 * one (Little's law). TTFT and TPOT are taken to be wrong together. Requests that come by
 * themselves are answered as they come, until there are too many: nobody knows the interval. */
static void throughput(const cd_serving_answer *a, cd_serving_named *v) {
    const cd_serving_config *c = v->p->c;
    const double at = seconds(c, a->r.ttft_s, a->r.tpot_s);
    v->per_gpu_low = v->per_gpu_high = (double)NAN;
    if (!(c->concurrency > 0)) return;
    v->per_gpu_low = v->p->per_gpu * at / seconds(c, a->ttft_high_s, a->tpot_high_s);
    v->per_gpu_high = v->p->per_gpu * at / seconds(c, a->ttft_low_s, a->tpot_low_s);
}

static cdmpp_status interval(cd_serving_session *s, cd_serving_named *v, cdmpp_err *err) {
    cd_serving_answer a;
    cd_serving_rows prompt = {0}, decode = {0};
    if (!v->p) return CDMPP_OK;
    const cdmpp_status st = cd_serving_answer_of(s, v->p->c, &a, &prompt, &decode, err);
    cd_serving_rows_free(&prompt);
    cd_serving_rows_free(&decode);
    CD_TRY(st);
    v->ttft_low_s = a.ttft_low_s, v->ttft_high_s = a.ttft_high_s, v->tpot_low_s = a.tpot_low_s,
    v->tpot_high_s = a.tpot_high_s;
    throughput(&a, v);
    return CDMPP_OK;
}

cdmpp_status cd_serving_sweep_choose(cd_serving_session *s, cd_serving_sweep *w, cdmpp_err *err) {
    choose(w);
    cd_serving_named *const of[] = {&w->most, &w->cheapest, &w->nearest};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) CD_TRY(interval(s, of[i], err));
    return CDMPP_OK;
}
