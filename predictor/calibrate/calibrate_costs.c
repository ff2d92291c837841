/* How long the fit takes that comes after the measurements: scoring and trees of a few candidates,
 * timed here and now. Whatever else runs on the machine is in it. */
#include <math.h>
#include <string.h>

#include "dataset/split/split.h"
#include "predictor/calibrate/calibrate.h"

/* Trees of more programs have more nodes, of few also more ends that a split can have; beyond
 * `many` programs the depth of the trees keeps the number of nodes down: there the power that was
 * measured is 0.5 to 0.8. What may change until then is in the last factor. */
static const double many = 64, power = 0.85, safety = 1.25;
enum { TREES = CD_CALIBRATE_PARTS + 1 };

typedef struct trial {
    const cd_calibrate_costs_options *o;
    size_t n, width;       /* programs; of x */
    cd_predict_line *line; /* (n) */
    cd_scored *scored;     /* (n) */
    float *x;              /* (n, width) */
    double *off;           /* (n) made: that there is something to learn is enough */
} trial;

static double now(const trial *t) { return t->o->now(t->o->ctx); }

static void see(void *ctx, const cd_scored *s, const cd_program_view *v, size_t p) {
    const trial *t = ctx;
    cd_here_see(t->o->model, v, p, &s->pred, t->x + (size_t)(s - t->scored) * t->width);
}

static cdmpp_status score(trial *t, cd_calibrate_costs *out, cdmpp_err *err) {
    const cd_scorer_options so = {.which = {.device = t->o->device},
                                  .traits = true,
                                  .tap = {see, t},
                                  .numbers = t->o->numbers};
    cd_scorer *s = NULL;
    const double begin = now(t);
    CD_TRY(cd_scorer_new(t->o->model, t->o->tasks, &so, &s, err));
    const double ready = now(t);
    const cdmpp_status st = cd_scorer_run(s, t->line, t->n, t->scored, err);
    out->begin_s = ready - begin;
    out->line_s = (now(t) - ready) / (double)t->n;
    cd_scorer_free(s);
    return st;
}

static cdmpp_status learn(trial *t, cd_calibrate_costs *out, cdmpp_err *err) {
    cd_here_trees trees = {0};
    const double begin = now(t);
    const cdmpp_status st = cd_here_fit(t->x, t->off, t->n, t->width, 1, &trees, err);
    out->trees_s = now(t) - begin;
    out->programs = t->n;
    cd_xgb_free(trees.gbt);
    return st;
}

cdmpp_status cd_calibrate_costs_of(const cd_calibrate_costs_options *o, cd_calibrate_costs *out,
                                   cdmpp_err *err) {
    const size_t n = o->programs < o->pool->n_order ? o->programs : o->pool->n_order;
    trial t = {.o = o, .n = n, .width = cd_here_width(o->model)};
    *out = (cd_calibrate_costs){0};
    if (!n) return CDMPP_OK;
    t.line = cd_mem_zalloc(n, sizeof *t.line);
    t.scored = cd_mem_zalloc(n, sizeof *t.scored);
    t.x = cd_mem_zalloc(n, t.width * sizeof *t.x);
    t.off = cd_mem_zalloc(n, sizeof *t.off);
    cdmpp_status st =
        t.line && t.scored && t.x && t.off ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", n);
    for (size_t i = 0; !st && i < n; i++) {
        const cd_calibrate_candidate *c = &o->pool->v[o->pool->order[i]];
        t.line[i] = (cd_predict_line){c->line, c->len, "candidate", (long)i};
        t.off[i] = cd_rng_unit(1, i) - 0.5;
    }
    if (!st) st = score(&t, out, err);
    if (!st) st = learn(&t, out, err);
    cd_mem_free(t.line);
    cd_mem_free(t.scored);
    cd_mem_free(t.x);
    cd_mem_free(t.off);
    return st;
}

static double grown(double n) { return n <= many ? n : many * pow(n / many, power); }

double cd_calibrate_costs_s(const cd_calibrate_costs *c, size_t n) {
    const double trees =
        c->programs ? TREES * c->trees_s * grown((double)n) / grown((double)c->programs) : 0;
    return safety * (c->begin_s + c->line_s * (double)n + trees);
}
