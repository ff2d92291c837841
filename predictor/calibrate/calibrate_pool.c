/* Candidates: random schedules and those of them that the model takes for the fastest, with their
 * facts, and the order in which they are worth their time. Nothing is compiled or run. */
#include <math.h>
#include <string.h>

#include "dataset/select/select.h"
#include "dataset/split/split.h"
#include "features/analytic/analytic.h"
#include "predictor/calibrate/calibrate_internal.h"
#include "predictor/estimate/estimate.h"

/* Compiling takes most of the time of a program; one slower than `slowest` costs as much as many
 * others. */
static const double compile_s = 0.4, runs = 3, slowest = 0.5;

typedef struct draw {
    const cd_calibrate_pool_options *o;
    cd_calibrate_pool *out;
    cd_arena scratch; /* one record */
    cd_program *program;
    cd_facts *facts;
    float *fact; /* (CD_CALIBRATE_MOST, CD_N_FACTS) */
    uint32_t vector_bytes;
    cd_facts_set set; /* of the target's programs */
    double begin_s;   /* of the clock */
    double slowest_s; /* some tasks whose best ones were looked for */
} draw;

/* In steps of two, so that a machine whose speed is measured a second time gives the same order. */
double cd_calibrate_price(double analytic_s) {
    return exp2(ceil(log2(compile_s + runs * analytic_s)));
}

/* ---- one candidate ---- */
/* Vectors are those that code is generated for: the target of a record need not name them. */
static cdmpp_status facts_of(draw *d, const cd_buf *line, float *fact, double *seconds,
                             cdmpp_err *err) {
    cd_analytic_time t;
    cd_record r;
    cd_nest nest;
    cd_arena_reset(&d->scratch);
    CD_TRY(cd_record_read(&d->scratch, line->p, line->n, &r, err));
    const cd_task *task = cd_task_registry_find(d->o->tasks, r.workload_key);
    if (!task) return CD_FAIL(err, ENOTASK, "no definition");
    CD_TRY(cd_program_lower(d->program, task, &r, err));
    CD_TRY(cd_program_nest(d->program, &nest, err));
    nest.vector_bytes = d->vector_bytes;
    CD_TRY(cd_facts_of(d->facts, d->set, &nest, fact, err));
    CD_TRY(cd_analytic_seconds_of(d->set, fact, d->o->device, &t, err));
    *seconds = t.ecm_s;
    return CDMPP_OK;
}

static cdmpp_status add(draw *d, const cd_buf *line, bool best, cdmpp_err *err) {
    cd_calibrate_pool *p = d->out;
    cdmpp_err why = {0};
    double seconds;
    if (p->n == CD_CALIBRATE_MOST) return CDMPP_OK;
    const cdmpp_status st = facts_of(d, line, d->fact + p->n * CD_N_FACTS, &seconds, &why);
    if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "%s", why.msg);
    if (st || !(seconds < slowest)) {
        p->left_out++;
        return CDMPP_OK;
    }
    const size_t n = line->n && line->p[line->n - 1] == '\n' ? line->n - 1 : line->n;
    const char *text = cd_str_dup(&p->arena, (cd_str){line->p, n});
    if (!text) return CD_FAIL(err, ENOMEM, "candidates");
    p->v[p->n++] = (cd_calibrate_candidate){text, n, seconds, best};
    return CDMPP_OK;
}

/* ---- the best of each task, as a replay chooses it ---- */
/* Share of the time: where it does not suffice, some tasks have one. So many are searched at once,
 * few before it is known how long they take. */
static const double of_best = 0.8;
enum { FIRST = 4, AT_ONCE = 16 };

static double now(const draw *d) { return d->o->now ? d->o->now(d->o->ctx) : 0; }
/* Would what takes so long end late? */
static bool late(const draw *d, double share, double takes_s) {
    return d->o->now && now(d) + takes_s > d->begin_s + share * (d->o->until_s - d->begin_s);
}

static cdmpp_status add_best(draw *d, const char *key, cdmpp_err *err) {
    const cd_schedule_db_entry *e = cd_schedule_db_find(d->out->best, key);
    if (!e) return CDMPP_OK;
    cd_buf line = {0};
    cd_buf_put(&line, e->line, e->len);
    cdmpp_status st = CDMPP_OK;
    if (line.oom) st = CD_FAIL(err, ENOMEM, "candidates");
    else st = add(d, &line, true, err);
    cd_buf_free(&line);
    return st;
}

/* Tasks that have a definition, in an order that mixes the networks that they are of, so that none
 * is left out as a whole. Returns their number. */
static size_t mixed(const cd_task_registry *tasks, const char **key, uint64_t *by) {
    size_t n = 0;
    for (size_t i = 0; i < cd_task_registry_count(tasks); i++) {
        const cd_task *t = cd_task_registry_at(tasks, i);
        if (!t->dag) continue;
        const uint64_t number = cd_stable_id_name(t->workload_key);
        size_t at = n++;
        for (; at && by[at - 1] > number; at--) by[at] = by[at - 1], key[at] = key[at - 1];
        by[at] = number;
        key[at] = t->workload_key;
    }
    return n;
}

static cdmpp_status choose_some(draw *d, cd_threads *pool, const char *const *key, size_t n,
                                cdmpp_err *err) {
    const cd_calibrate_pool_options *o = d->o;
    const cd_schedule_db_pick pick = {.trials = 0,
                                      .seed = o->seed,
                                      .target = o->target,
                                      .device = o->stands,
                                      .numbers = o->numbers,
                                      .hardware = &o->hardware};
    const double begin = now(d);
    CD_TRY(cd_schedule_db_predict(d->out->best, o->model, o->tasks, key, n, &pick, pool, err));
    d->slowest_s = fmax(d->slowest_s, (now(d) - begin) / (double)n);
    for (size_t i = 0; i < n; i++) CD_TRY(add_best(d, key[i], err));
    return CDMPP_OK;
}

static cdmpp_status choose_best(draw *d, cdmpp_err *err) {
    const size_t count = cd_task_registry_count(d->o->tasks);
    const char **key = cd_mem_zalloc(count + 1, sizeof *key);
    uint64_t *by = cd_mem_zalloc(count + 1, sizeof *by);
    cd_threads *pool = NULL;
    cdmpp_status st = key && by ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu tasks", count);
    if (!st) st = cd_schedule_db_new(&d->out->best, err);
    if (!st && d->o->model && d->o->jobs > 1) st = cd_threads_new(d->o->jobs, &pool, err);
    const size_t n = !st && d->o->model ? mixed(d->o->tasks, key, by) : 0;
    size_t some = FIRST;
    for (size_t i = 0; !st && i < n && !late(d, of_best, d->slowest_s * (double)some);
         i += some, some = AT_ONCE) {
        if (some > n - i) some = n - i;
        if (d->o->stop && *d->o->stop)
            st = CD_FAIL(err, EINTERRUPTED, "while candidates were chosen");
        else st = choose_some(d, pool, key + i, some, err);
    }
    cd_threads_free(pool);
    cd_mem_free(key);
    cd_mem_free(by);
    return st;
}

/* ---- random ones ---- */
static cdmpp_status draw_all(draw *d, cdmpp_err *err) {
    const cd_random_schedules_options ro = {d->o->trials, d->o->seed, d->o->target, d->o->hardware};
    cd_random_schedules *r;
    cd_buf line = {0};
    CD_TRY(cd_random_schedules_new(d->o->tasks, &ro, &r, err));
    cdmpp_status st = CDMPP_OK;
    while (!st && d->out->n < CD_CALIBRATE_MOST && !late(d, 1, 0)) {
        cdmpp_err why = {0};
        cd_buf_clear(&line);
        if (d->o->stop && *d->o->stop)
            st = CD_FAIL(err, EINTERRUPTED, "while candidates were drawn");
        else if ((st = cd_random_schedules_next(r, &line, &why)))
            st = cd_record_listener_bad(d->o->listener, &why, err);
        else if (!line.n) break;
        else st = add(d, &line, false, err);
    }
    cd_buf_free(&line);
    cd_random_schedules_free(r);
    return st;
}

/* ---- the order ---- */
/* Facts are counts over many orders of magnitude; ratios stay nearly as they are. Each column gets
 * mean 0 and deviation 1; one that does not vary is left out. Returns the number of columns. */
static size_t embed(const float *fact, size_t n, float *x) {
    size_t dim = 0;
    for (size_t c = 0; c < CD_N_FACTS; c++) {
        double sum = 0, square = 0;
        for (size_t i = 0; i < n; i++) {
            const double v = log2(1 + (double)fact[i * CD_N_FACTS + c]);
            sum += v / (double)n;
            square += v * v / (double)n;
        }
        const double deviation = sqrt(fmax(0, square - sum * sum));
        if (!(deviation > 1e-6)) continue;
        for (size_t i = 0; i < n; i++)
            x[i * CD_N_FACTS + dim] =
                (float)((log2(1 + (double)fact[i * CD_N_FACTS + c]) - sum) / deviation);
        dim++;
    }
    for (size_t i = 1; i < n && dim < CD_N_FACTS; i++)
        memmove(x + i * dim, x + i * CD_N_FACTS, dim * sizeof *x);
    return dim;
}

/* Of `all`, in their order: a random one, a best one, a random one ... */
static void by_turns(cd_calibrate_pool *p, const uint32_t *all, size_t n) {
    size_t at[2] = {0, 0};
    while (p->n_order < n) {
        size_t kind = p->n_order % 2;
        for (int other = 0; other < 2; other++, kind ^= 1) {
            while (at[kind] < n && p->v[all[at[kind]]].best != (kind == 1)) at[kind]++;
            if (at[kind] < n) break;
        }
        if (at[kind] >= n) return;
        p->order[p->n_order++] = all[at[kind]++];
    }
}

static cdmpp_status order(draw *d, cdmpp_err *err) {
    cd_calibrate_pool *p = d->out;
    float *x = cd_mem_zalloc(p->n * CD_N_FACTS + 1, sizeof *x);
    double *price = cd_mem_zalloc(p->n + 1, sizeof *price);
    uint32_t *all = cd_mem_zalloc(p->n + 1, sizeof *all);
    size_t n = 0;
    p->order = CD_NEWN(&p->arena, uint32_t, p->n + 1);
    cdmpp_status st =
        x && price && all && p->order ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu candidates", p->n);
    const size_t dim = st ? 0 : embed(d->fact, p->n, x);
    for (size_t i = 0; !st && i < p->n; i++) price[i] = cd_calibrate_price(p->v[i].analytic_s);
    if (!st && dim)
        st = cd_select_medoids(x, p->n, dim, price, (double)INFINITY, p->n, NULL, all, &n, err);
    else if (!st) n = 1; /* all candidates are one */
    if (!st) by_turns(p, all, n);
    cd_mem_free(all);
    cd_mem_free(x);
    cd_mem_free(price);
    return st;
}

/* A device that does not say enough is found here, before any schedule is drawn. */
static cdmpp_status check_device(cd_facts_set set, const cd_device *d, cdmpp_err *err) {
    const float none[CD_N_FACTS] = {0};
    cd_analytic_time t;
    return cd_analytic_seconds_of(set, none, d, &t, err);
}

cdmpp_status cd_calibrate_pool_build(const cd_calibrate_pool_options *o, cd_calibrate_pool *out,
                                     cdmpp_err *err) {
    draw d = {.o = o,
              .out = out,
              .vector_bytes = cd_isa_vector_bytes(o->isa, o->target),
              .set = cd_calibrate_facts_set(o->target),
              .begin_s = o->now ? o->now(o->ctx) : 0};
    *out = (cd_calibrate_pool){0};
    CD_TRY(check_device(d.set, o->device, err));
    out->v = CD_NEWN(&out->arena, cd_calibrate_candidate, CD_CALIBRATE_MOST);
    d.fact = cd_mem_zalloc((size_t)CD_CALIBRATE_MOST * CD_N_FACTS, sizeof *d.fact);
    cdmpp_status st = out->v && d.fact ? CDMPP_OK : CD_FAIL(err, ENOMEM, "candidates");
    if (!st) st = cd_program_new(&d.program, err);
    if (!st) st = cd_facts_new(&d.facts, err);
    if (!st) st = choose_best(&d, err);
    if (!st) st = draw_all(&d, err);
    if (!st && !out->n)
        st = CD_FAIL(err, ENODATA, "none of %zu random schedules can be used", out->left_out);
    if (!st) st = order(&d, err);
    cd_facts_free(d.facts);
    cd_program_free(d.program);
    cd_arena_free(&d.scratch);
    cd_mem_free(d.fact);
    return st;
}

void cd_calibrate_pool_free(cd_calibrate_pool *p) {
    cd_schedule_db_free(p->best);
    cd_arena_free(&p->arena);
    *p = (cd_calibrate_pool){0};
}
