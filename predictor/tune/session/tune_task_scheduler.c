/* Ansor's task scheduler: the next round goes to the task with the steepest expected fall of weight
 * x latency. In addition it ends the tuning when a round costs more time than it is expected to
 * save. */
#include "predictor/tune/session/tune_task_scheduler.h"

#include <math.h>
#include <string.h>

enum { WINDOW = 3, FAILED_ROUNDS = 4, LEAVE_GROUP_AFTER = 5, FIRST_PART = 8 };
#define ALPHA 0.2
#define BETA  2.0

typedef struct {
    double weight, flop, work_s;
    int group;    /* equal numbers are similar; -1: alone */
    double *best; /* (n_trial, cap) the best after each trial */
    size_t n_trial, cap;
    double *after; /* (n_round, cap_round) the best after each round */
    size_t n_round, cap_round;
    double took_s;  /* all rounds of this run */
    size_t took_n;  /* trials in that time */
    uint64_t since; /* trials without a better one */
    bool left;
} unit;

struct cd_tune_task_scheduler {
    cd_tune_task_scheduler_options o;
    unit *unit; /* (n) */
    uint32_t n;
    uint64_t trials;
};

const char *cd_tune_task_scheduler_says(cd_tune_task_scheduler_end e) {
    static const char *const text[] = {"goes on", "the trials are used up", "the time is used up",
                                       "more would cost more than it brings",
                                       "no task has more to try"};
    return text[e];
}

static void group(cd_tune_task_scheduler *s, const cd_tune_task_scheduler_task *task) {
    for (uint32_t i = 0; i < s->n; i++) {
        s->unit[i].group = task[i].group && task[i].flop > 0 ? (int)i : -1;
        for (uint32_t k = 0; k < i && s->unit[i].group == (int)i; k++)
            if (s->unit[k].group == (int)k && !strcmp(task[k].group, task[i].group))
                s->unit[i].group = (int)k;
    }
}

cdmpp_status cd_tune_task_scheduler_new(const cd_tune_task_scheduler_task *task, uint32_t n,
                                        const cd_tune_task_scheduler_options *o,
                                        cd_tune_task_scheduler **out, cdmpp_err *err) {
    cd_tune_task_scheduler *s = cd_mem_zalloc(1, sizeof *s);
    unit *u = cd_mem_zalloc(n + 1u, sizeof *u);
    if (!s || !u) {
        cd_mem_free(s);
        cd_mem_free(u);
        return CD_FAIL(err, ENOMEM, "%u tasks", n);
    }
    *s = (cd_tune_task_scheduler){.o = *o, .unit = u, .n = n};
    for (uint32_t i = 0; i < n; i++)
        u[i].weight = task[i].weight, u[i].flop = task[i].flop, u[i].work_s = task[i].work_s;
    group(s, task);
    *out = s;
    return CDMPP_OK;
}

void cd_tune_task_scheduler_free(cd_tune_task_scheduler *s) {
    if (!s) return;
    for (uint32_t i = 0; i < s->n; i++) {
        cd_mem_free(s->unit[i].best);
        cd_mem_free(s->unit[i].after);
    }
    cd_mem_free(s->unit);
    cd_mem_free(s);
}

/* ---- what is known of a task ---- */
static double best_of(const unit *u) {
    return u->n_trial ? u->best[u->n_trial - 1] : CD_TUNE_FAILED_S;
}
double cd_tune_task_scheduler_best(const cd_tune_task_scheduler *s, uint32_t task) {
    return best_of(&s->unit[task]);
}
uint64_t cd_tune_task_scheduler_trials(const cd_tune_task_scheduler *s, uint32_t task) {
    return s->unit[task].n_trial;
}
void cd_tune_task_scheduler_leave(cd_tune_task_scheduler *s, uint32_t task) {
    s->unit[task].left = true;
}

static cdmpp_status append(double **v, size_t *n, size_t *cap, double x, cdmpp_err *err) {
    if (CD_GROW(*v, *n, *cap)) return CD_FAIL(err, ENOMEM, "trials");
    (*v)[(*n)++] = x;
    return CDMPP_OK;
}

static double speed(const unit *u) { return u->flop / best_of(u); }

/* The fastest of its group, itself included; *others: rounds of the others, at most; false: it is
 * alone. */
static bool group_best(const cd_tune_task_scheduler *s, const unit *u, double *flops,
                       size_t *others) {
    bool any = false;
    *flops = speed(u);
    *others = 0;
    for (uint32_t k = 0; u->group >= 0 && k < s->n; k++) {
        const unit *v = &s->unit[k];
        if (v == u || v->group != u->group) continue;
        any = true;
        if (speed(v) > *flops) *flops = speed(v);
        if (v->n_round > *others) *others = v->n_round;
    }
    return any;
}

cdmpp_status cd_tune_task_scheduler_add(cd_tune_task_scheduler *s, uint32_t task,
                                        const double *seconds, size_t n, double took_s,
                                        cdmpp_err *err) {
    unit *u = &s->unit[task];
    double flops;
    size_t others;
    for (size_t i = 0; i < n; i++) {
        const double best = best_of(u);
        const bool better = seconds[i] < best;
        CD_TRY(append(&u->best, &u->n_trial, &u->cap, better ? seconds[i] : best, err));
        u->since = better ? 0 : u->since + 1;
        s->trials++;
        /* of an earlier run there may be many rounds */
        if (u->n_trial % s->o.per_round && i + 1 < n) continue;
        CD_TRY(append(&u->after, &u->n_round, &u->cap_round, best_of(u), err));
    }
    if (took_s > 0) u->took_s += took_s, u->took_n += n;
    if (best_of(u) >= CD_TUNE_FAILED_S && u->n_round >= FAILED_ROUNDS) u->left = true;
    if (group_best(s, u, &flops, &others) && speed(u) < flops / BETA &&
        u->n_round > LEAVE_GROUP_AFTER + others)
        u->group = -1;
    return CDMPP_OK;
}

double cd_tune_task_scheduler_gain(const cd_tune_task_scheduler *s, uint32_t task) {
    const unit *u = &s->unit[task];
    const size_t n = u->n_trial, half = (n + 1) / 2;
    const double b = s->o.per_round;
    if (n < 2 * (size_t)s->o.per_round || u->best[half - 1] >= CD_TUNE_FAILED_S) return INFINITY;
    const double slope = log(u->best[half - 1] / u->best[n - 1]) / log((double)n / (double)half);
    return u->best[n - 1] * -expm1(-slope * log1p(b / (double)n));
}

/* TVM's numbers: what a round may bring is best / rounds at most, or what similar tasks show to be
 * possible. */
double cd_tune_task_scheduler_gradient(const cd_tune_task_scheduler *s, uint32_t task) {
    const unit *u = &s->unit[task];
    const size_t r = u->n_round;
    const double best = best_of(u);
    double flops;
    size_t others;
    if (!r) return -INFINITY;
    const double backward = r > WINDOW && u->after[r - 1 - WINDOW] < CD_TUNE_FAILED_S
                                ? (best - u->after[r - 1 - WINDOW]) / WINDOW
                                : 0;
    double next = best - best / (double)r;
    if (group_best(s, u, &flops, &others) && BETA * u->flop / flops < next)
        next = BETA * u->flop / flops;
    return u->weight * (ALPHA * backward + (1 - ALPHA) * (next - best));
}

/* ---- choosing ---- */
static bool open_task(const cd_tune_task_scheduler *s, const unit *u) {
    if (u->left || (s->o.trials_per_task && u->n_trial >= s->o.trials_per_task)) return false;
    return !s->o.early_stop || u->since < s->o.early_stop;
}

/* Would a round of it pay for itself? */
static bool pays(const cd_tune_task_scheduler *s, uint32_t i) {
    const unit *u = &s->unit[i];
    const double gain = cd_tune_task_scheduler_gain(s, i);
    if (isinf(gain) || !u->took_n) return true;
    return s->o.runs * u->weight * gain > u->took_s / (double)u->took_n * s->o.per_round;
}

/* Share of the network's time that the later half of the trials took away; infinity: unknown. */
static double late_gain(const cd_tune_task_scheduler *s) {
    double now = 0, then = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const unit *u = &s->unit[i];
        if (!open_task(s, u) && best_of(u) >= CD_TUNE_FAILED_S) continue;
        if (open_task(s, u) && isinf(cd_tune_task_scheduler_gain(s, i))) return INFINITY;
        const double before = u->best[(u->n_trial + 1) / 2 - 1];
        now += u->weight * best_of(u);
        then += u->weight * (before < CD_TUNE_FAILED_S ? before : best_of(u));
    }
    return then > 0 ? (then - now) / then : 0;
}

static bool enough(const cd_tune_task_scheduler *s) {
    if (s->o.min_gain > 0 && late_gain(s) < s->o.min_gain) return true;
    if (s->o.runs <= 0) return false;
    for (uint32_t i = 0; i < s->n; i++)
        if (open_task(s, &s->unit[i]) && pays(s, i)) return false;
    return true;
}

/* Of the tasks without a trial the one with most work; s->n: there is none. */
static uint32_t unseen(const cd_tune_task_scheduler *s) {
    uint32_t best = s->n;
    for (uint32_t i = 0; i < s->n; i++) {
        const unit *u = &s->unit[i], *most = best < s->n ? &s->unit[best] : NULL;
        if (!u->n_round && open_task(s, u) &&
            (!most || u->weight * u->work_s > most->weight * most->work_s))
            best = i;
    }
    return best;
}

/* Its first round. A round of full length for each would spend few trials on tasks that take no
 * time. */
static uint64_t first_round(const cd_tune_task_scheduler *s) {
    const uint64_t part = s->n > 1 ? s->o.trials / FIRST_PART / s->n : UINT64_MAX;
    if (!s->o.trials || part >= s->o.per_round) return s->o.per_round;
    return part ? part : 1;
}

static uint32_t choose(const cd_tune_task_scheduler *s) {
    uint32_t best = unseen(s);
    double least = 0;
    if (best < s->n) return best;
    for (uint32_t i = 0; i < s->n; i++) {
        const unit *u = &s->unit[i];
        if (!open_task(s, u) || (s->o.runs > 0 && u->n_round && !pays(s, i))) continue;
        const double g = cd_tune_task_scheduler_gradient(s, i);
        if (best < s->n && (g > least || (!(g < least) && u->n_trial >= s->unit[best].n_trial)))
            continue;
        best = i;
        least = g;
    }
    return best;
}

/* Limits first, cheapest first; then the gain of what is left; then the choice by the gradient. A
 * round is cut to what the limits leave. */
cd_tune_task_scheduler_end cd_tune_task_scheduler_next(cd_tune_task_scheduler *s, double spent_s,
                                                       uint32_t *task, uint32_t *n) {
    uint64_t most = s->o.per_round;
    if (s->o.trials && s->trials >= s->o.trials) return CD_TUNE_NO_TRIALS;
    if (s->o.seconds > 0 && spent_s >= s->o.seconds) return CD_TUNE_NO_TIME;
    bool any = false;
    for (uint32_t i = 0; i < s->n && !any; i++) any = open_task(s, &s->unit[i]);
    if (!any) return s->o.trials_per_task ? CD_TUNE_NO_TRIALS : CD_TUNE_NO_TASK;
    if (enough(s)) return CD_TUNE_NO_GAIN;
    const uint32_t i = choose(s);
    if (i == s->n) return CD_TUNE_NO_GAIN;
    if (!s->unit[i].n_round) most = first_round(s);
    if (s->o.trials && s->o.trials - s->trials < most) most = s->o.trials - s->trials;
    if (s->o.trials_per_task && s->o.trials_per_task - s->unit[i].n_trial < most)
        most = s->o.trials_per_task - s->unit[i].n_trial;
    *task = i;
    *n = (uint32_t)most;
    return CD_TUNE_GOES_ON;
}
