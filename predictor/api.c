/* The public calls of cdmpp.h: thin, no logic of their own. */
#include <string.h>

#include "predictor/predict.h"

struct cdmpp_tasks {
    cd_tasks *impl;
};
struct cdmpp_model {
    cd_model *impl;
};
struct cdmpp_scratch {
    cd_scorer *impl;
};

cdmpp_status cdmpp_tasks_new(cdmpp_tasks **out, cdmpp_err *err) {
    cdmpp_tasks *t = cd_malloc(sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "tasks handle");
    const cdmpp_status st = cd_tasks_new(&t->impl, err);
    if (st) cd_free(t);
    else *out = t;
    return st;
}

cdmpp_status cdmpp_tasks_load(cdmpp_tasks *t, const char *path, cdmpp_err *err) { return cd_tasks_load(t->impl, path, err); }

size_t cdmpp_tasks_count(const cdmpp_tasks *t) { return cd_tasks_count(t->impl); }

void cdmpp_tasks_free(cdmpp_tasks *t) {
    if (!t) return;
    cd_tasks_free(t->impl);
    cd_free(t);
}

cdmpp_status cdmpp_model_load(const char *path, cdmpp_model **out, cdmpp_err *err) {
    cdmpp_model *m = cd_malloc(sizeof *m);
    if (!m) return CD_FAIL(err, ENOMEM, "model handle");
    const cdmpp_status st = cd_model_load(path, &m->impl, err);
    if (st) cd_free(m);
    else *out = m;
    return st;
}

const char *cdmpp_model_info(const cdmpp_model *m) { return cd_model_header(m->impl); }

void cdmpp_model_free(cdmpp_model *m) {
    if (!m) return;
    cd_model_free(m->impl);
    cd_free(m);
}

cdmpp_status cdmpp_scratch_new(const cdmpp_model *m, const cdmpp_tasks *t, const char *device, cdmpp_scratch **out,
                               cdmpp_err *err) {
    cdmpp_scratch *s = cd_malloc(sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "scratch handle");
    const cdmpp_status st = cd_scorer_new(m->impl, t->impl, device, &s->impl, err);
    if (st) cd_free(s);
    else *out = s;
    return st;
}

void cdmpp_scratch_free(cdmpp_scratch *s) {
    if (!s) return;
    cd_scorer_free(s->impl);
    cd_free(s);
}

cdmpp_status cdmpp_predict_line(cdmpp_scratch *s, const char *line, size_t len, double *latency_s, cdmpp_err *err) {
    const cd_line l = {line, len, "", 0};
    cd_scored o;
    CD_TRY(cd_scorer_run(s->impl, &l, 1, &o, err));
    if (o.st) {
        if (err) *err = o.err;
        return o.st;
    }
    *latency_s = o.pred.latency_s;
    return CDMPP_OK;
}
