/* --compare of cdmpp-tune: several tuners on the same tasks, each with the whole budget and a log of its own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/cmd/tune/main_tune.h"

enum { MAX_TUNERS = CD_MAIN_TUNE_TUNERS, MAX_POINTS = CD_MAIN_TUNE_POINTS, PATH = 512 };
static const char default_points[] = "10,50,100,300";
typedef cd_main_tune_plan plan;

static cdmpp_status read_tuners(const cd_main_tune *o, plan *p, cdmpp_err *err) {
    for (const char *s = o->compare; *s;) {
        char name[32] = "";
        const size_t n = strcspn(s, ",");
        if (p->n_tuner == MAX_TUNERS) return CD_FAIL(err, EUSAGE, "--compare: at most %d tuners", MAX_TUNERS);
        if (n < sizeof name) memcpy(name, s, n);
        const cd_tune_tuner *t = cd_tune_tuner_find(name);
        if (!t) return CD_FAIL(err, EUSAGE, "--compare: expected tuners of " CD_TUNERS ", found '%.*s'", (int)(n < 40 ? n : 40), s);
        if (t->ranker && t->ranker->needs_model && !o->model) return CD_FAIL(err, EUSAGE, "--compare: %s needs --model", t->name);
        for (size_t k = 0; k < p->n_tuner; k++)
            if (p->tuner[k] == t) return CD_FAIL(err, EUSAGE, "--compare: %s stands there twice", t->name);
        p->tuner[p->n_tuner++] = t;
        s += n + (s[n] == ',');
    }
    return p->n_tuner ? CDMPP_OK : CD_FAIL(err, EUSAGE, "--compare: no tuner");
}

static cdmpp_status read_points(const cd_main_tune *o, plan *p, cdmpp_err *err) {
    const char *s = o->at ? o->at : default_points;
    for (long last = 0; *s; last = p->at[p->n_at++]) {
        char *end;
        const long v = strtol(s, &end, 10);
        if (end == s || (*end && *end != ',') || v <= last || p->n_at == MAX_POINTS)
            return CD_FAIL(err, EUSAGE, "--at: expected rising numbers of trials, found '%.60s'", o->at);
        p->at[p->n_at] = v;
        s = end + (*end == ',');
    }
    return p->n_at ? CDMPP_OK : CD_FAIL(err, EUSAGE, "--at: no number");
}

cdmpp_status cd_main_tune_plan_of(const cd_main_tune *o, plan *p, cdmpp_err *err) {
    memset(p, 0, sizeof *p);
    if (o->compare) CD_TRY(read_tuners(o, p, err));
    return read_points(o, p, err);
}

cdmpp_status cd_main_tune_compare_check(const cd_main_tune *o, cdmpp_err *err) {
    plan p;
    if (o->tuner >= 0) return CD_FAIL(err, EUSAGE, "--compare and --tuner do not go together");
    if (o->best || o->emit >= 0) return CD_FAIL(err, EUSAGE, "--best and --emit are for a single tuner, not for --compare");
    return cd_main_tune_plan_of(o, &p, err);
}

/* OUT.json -> OUT.random.json */
static void path_of(const char *out, const char *tuner, const char *end, char *to) {
    const size_t n = strlen(out), k = strlen(end);
    const size_t cut = n > k && !strcmp(out + n - k, end) ? n - k : n;
    snprintf(to, PATH, "%.*s.%s%s", (int)cut, out, tuner, end);
}

/* ---- the table ---- */
static double at_point(const cd_tune_task_state *s, long at) {
    if (!s->n_point) return CD_TUNE_FAILED_S;
    const size_t k = (size_t)at < s->n_point ? (size_t)at : s->n_point;
    return s->point[k - 1].best_s;
}

typedef struct {
    double *v;                  /* (n_task + 1, n_tuner, n_at + 1) seconds; the last task is the sum, the first point 0 trials */
    const plan *p;
    uint32_t n_task;
} table;

static double *cell(const table *t, uint32_t task, size_t tuner) { return t->v + (task * t->p->n_tuner + tuner) * (t->p->n_at + 1); }

static void enter(table *t, const cd_main_tune_live *l, size_t tuner) {
    double *sum = cell(t, t->n_task, tuner);
    for (uint32_t i = 0; i < t->n_task; i++) {
        double *c = cell(t, i, tuner);
        for (size_t k = 0; k <= t->p->n_at; k++) {
            c[k] = k ? at_point(cd_tune_run_state(l->run, i), t->p->at[k - 1]) : l->result[i].untuned.seconds;
            sum[k] += l->what->unit[i].weight * c[k];
        }
    }
}

static void name(cd_buf *b, const cd_main_tune_live *l, const table *t, uint32_t i) {
    const char *s = i < t->n_task ? l->what->unit[i].of.task->workload_key : l->o->model_name ? l->o->model_name : "sum";
    if (l->o->json) {
        cd_buf_put_json_str(b, s, strlen(s));
        return;
    }
    cd_buf_puts(b, "\"");
    for (; *s; s++) cd_buf_putf(b, *s == '"' ? "\"\"" : "%c", *s);
    cd_buf_puts(b, "\"");
}

static void number(cd_buf *b, double s, bool json) {
    if (s < CD_TUNE_FAILED_S) cd_buf_put_json_real(b, s * 1e3);
    else if (json) cd_buf_puts(b, "null");
}

static void csv(cd_buf *b, const cd_main_tune_live *l, const table *t) {
    cd_buf_puts(b, "modelname,tuner,0");
    for (size_t k = 0; k < t->p->n_at; k++) cd_buf_putf(b, ",%ld", t->p->at[k]);
    cd_buf_puts(b, "\n");
    for (uint32_t i = 0; i <= t->n_task; i++) {
        if (i == t->n_task && i == 1) break;
        for (size_t j = 0; j < t->p->n_tuner; j++) {
            name(b, l, t, i);
            cd_buf_putf(b, ",%s", t->p->tuner[j]->name);
            for (size_t k = 0; k <= t->p->n_at; k++) cd_buf_puts(b, ","), number(b, cell(t, i, j)[k], false);
            cd_buf_puts(b, "\n");
        }
    }
}

static void json(cd_buf *b, const cd_main_tune_live *l, const table *t) {
    cd_buf_puts(b, "{\"at\":[0");
    for (size_t k = 0; k < t->p->n_at; k++) cd_buf_putf(b, ",%ld", t->p->at[k]);
    cd_buf_puts(b, "],\"rows\":[");
    for (uint32_t i = 0; i <= t->n_task; i++)
        for (size_t j = 0; j < t->p->n_tuner && !(i == t->n_task && i == 1); j++) {
            cd_buf_puts(b, i || j ? ",{\"modelname\":" : "{\"modelname\":");
            name(b, l, t, i);
            cd_buf_putf(b, ",\"tuner\":\"%s\",\"ms\":[", t->p->tuner[j]->name);
            for (size_t k = 0; k <= t->p->n_at; k++) {
                if (k) cd_buf_puts(b, ",");
                number(b, cell(t, i, j)[k], true);
            }
            cd_buf_puts(b, "]}");
        }
    cd_buf_puts(b, "]}");
}

/* ---- running ---- */
static cdmpp_status one(const cd_main_tune_live *base, const plan *p, size_t k, table *t, cdmpp_err *err) {
    char out[PATH], curves[PATH];
    cd_main_tune_live l = *base;
    path_of(base->out, p->tuner[k]->name, ".json", out);
    l.out = out;
    l.tuner = p->tuner[k];
    cdmpp_status st = cd_main_tune_live_run(&l, err);
    if (!st) enter(t, &l, k);
    if (!st && l.o->curves) {
        path_of(l.o->curves, l.tuner->name, ".csv", curves);
        st = cd_main_tune_keep_curves(&l, curves, err);
    }
    cd_main_tune_live_free(&l);
    return st;
}

cdmpp_status cd_main_tune_compare(cd_main_tune_live *base, cdmpp_err *err) {
    plan p;
    CD_TRY(cd_main_tune_plan_of(base->o, &p, err));
    table t = {.p = &p, .n_task = base->what->n};
    t.v = cd_mem_zalloc((t.n_task + 1u) * p.n_tuner * (p.n_at + 1), sizeof *t.v);
    if (!t.v) return CD_FAIL(err, ENOMEM, "%u tasks", t.n_task);
    cdmpp_status st = CDMPP_OK;
    for (size_t k = 0; !st && k < p.n_tuner; k++) st = one(base, &p, k, &t, err);
    cd_buf b = {0}, all = {0};
    if (!st && base->o->json) {
        json(&b, base, &t);
        cd_command_json(&all, "cdmpp.tune_compare", "cdmpp-tune", &b);
        st = cd_command_print(&all, err);
    } else if (!st) {
        csv(&b, base, &t);
        st = cd_command_print(&b, err);
    }
    cd_mem_free(t.v);
    return st;
}
