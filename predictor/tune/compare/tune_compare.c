/* Several tuners against each other on this machine. Each has its own session, so none learns from
 * the measurements of another. */
#include "predictor/tune/compare/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 512 };
static const char default_points[] = "10,50,100,300";

/* ---- the plan ---- */
static cdmpp_status read_tuners(const char *list, bool have_model, cd_tune_compare_plan *p,
                                cdmpp_err *err) {
    for (const char *s = list; *s;) {
        char name[32] = "";
        const size_t n = strcspn(s, ",");
        if (p->n_tuner == CD_TUNE_COMPARE_TUNERS)
            return CD_FAIL(err, EUSAGE, "--compare: at most %d tuners", CD_TUNE_COMPARE_TUNERS);
        if (n < sizeof name) memcpy(name, s, n);
        const cd_tune_tuner *t = cd_tune_tuner_find(name);
        if (!t)
            return CD_FAIL(err, EUSAGE, "--compare: expected tuners of " CD_TUNERS ", found '%.*s'",
                           (int)(n < 40 ? n : 40), s);
        if (cd_tune_tuner_needs_model(t) && !have_model)
            return CD_FAIL(err, EUSAGE, "--compare: %s needs --cost-model", t->name);
        for (size_t k = 0; k < p->n_tuner; k++)
            if (p->tuner[k] == t)
                return CD_FAIL(err, EUSAGE, "--compare: %s stands there twice", t->name);
        p->tuner[p->n_tuner++] = t;
        s += n + (s[n] == ',');
    }
    return p->n_tuner ? CDMPP_OK : CD_FAIL(err, EUSAGE, "--compare: no tuner");
}

cdmpp_status cd_tune_compare_read(const char *tuners, const char *at, bool have_model,
                                  cd_tune_compare_plan *p, cdmpp_err *err) {
    const char *s = at ? at : default_points;
    memset(p, 0, sizeof *p);
    if (tuners) CD_TRY(read_tuners(tuners, have_model, p, err));
    for (long last = 0; *s; last = (long)p->at[p->n_at++]) {
        char *end;
        const long v = strtol(s, &end, 10);
        if (end == s || (*end && *end != ',') || v <= last || p->n_at == CD_TUNE_COMPARE_POINTS)
            return CD_FAIL(err, EUSAGE, "--at: expected rising numbers of trials, found '%.60s'",
                           at);
        p->at[p->n_at] = (size_t)v;
        s = end + (*end == ',');
    }
    return p->n_at ? CDMPP_OK : CD_FAIL(err, EUSAGE, "--at: no number");
}

/* ---- the table ---- */
static double best_at(const cd_tune_task_state *s, size_t at) {
    return s->n_point ? s->point[(at < s->n_point ? at : s->n_point) - 1].best_s : CD_TUNE_FAILED_S;
}

static void enter(cd_tune_compare *c, const cd_tune_session *s, size_t tuner) {
    double *sum = cd_tune_compare_at(c, c->n_task, tuner);
    for (uint32_t i = 0; i < c->n_task; i++) {
        double *to = cd_tune_compare_at(c, i, tuner);
        for (size_t k = 0; k <= c->plan->n_at; k++) {
            to[k] = k ? best_at(cd_tune_session_state(s, i), c->plan->at[k - 1])
                      : s->result[i].untuned.seconds;
            sum[k] += s->what->unit[i].weight * to[k];
        }
    }
}

/* ---- running ---- */
/* OUT.json -> OUT.random.json */
static void path_of(const char *out, const char *tuner, const char *end, char *to) {
    const size_t n = strlen(out), k = strlen(end);
    const size_t cut = n > k && !strcmp(out + n - k, end) ? n - k : n;
    snprintf(to, PATH, "%.*s.%s%s", (int)cut, out, tuner, end);
}

/* The session of tuner k. Its log and its curves have its name in their paths. */
static cdmpp_status one(const cd_tune_session *base, size_t k, const char *curves,
                        cd_tune_compare *c, size_t *failed, cdmpp_err *err) {
    char out[PATH], path[PATH];
    cd_tune_session s = *base;
    s.tuner = c->plan->tuner[k];
    path_of(base->out, s.tuner->name, ".json", out);
    s.out = out;
    cdmpp_status st = cd_tune_session_run(&s, err);
    if (!st) enter(c, &s, k);
    if (!st && curves) {
        path_of(curves, s.tuner->name, ".csv", path);
        st = cd_tune_session_write_curves(&s, path, err);
    }
    *failed += s.failed;
    cd_tune_session_free(&s);
    return st;
}

cdmpp_status cd_tune_compare_run(const cd_tune_session *base, const cd_tune_compare_plan *plan,
                                 const char *curves, cd_tune_compare *out, size_t *failed,
                                 cdmpp_err *err) {
    *out = (cd_tune_compare){.plan = plan, .n_task = base->what->n};
    out->seconds =
        cd_mem_zalloc((out->n_task + 1u) * plan->n_tuner * (plan->n_at + 1), sizeof *out->seconds);
    if (!out->seconds) return CD_FAIL(err, ENOMEM, "%u tasks", out->n_task);
    for (size_t k = 0; k < plan->n_tuner; k++) CD_TRY(one(base, k, curves, out, failed, err));
    return CDMPP_OK;
}

void cd_tune_compare_free(cd_tune_compare *c) { cd_mem_free(c->seconds); }
