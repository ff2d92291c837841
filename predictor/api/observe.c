/* Takes measured times of candidates: each is predicted without corrections and the pair is kept,
 * so that corrections are fitted to the model itself and not to themselves. */
#include <math.h>
#include <string.h>

#include "predictor/api/api_internal.h"

void cd_observe_digest(const cdmpp_model *m, char out[65]) {
    const char *header = cd_model_header(m->impl);
    cd_sha256 h;
    cd_sha256_init(&h);
    cd_sha256_add(&h, header, strlen(header));
    cd_sha256_hex(&h, out);
}

/* ---- the handle ---- */
static cdmpp_status new_observer(const cdmpp_model *m, cdmpp_observer **out, cdmpp_err *err) {
    cdmpp_observer *o = cd_mem_zalloc(1, sizeof *o);
    if (!o) return CD_FAIL(err, ENOMEM, "observer handle");
    cd_observe_digest(m, o->model);
    *out = o;
    return CDMPP_OK;
}

cdmpp_status cdmpp_observer_new(const cdmpp_model *m, cdmpp_observer **out, cdmpp_err *err) {
    cdmpp_observer *o = NULL;
    CD_TRY(new_observer(m, &o, err));
    const cdmpp_status st = cd_online_adapt_new(&o->impl, err);
    if (st) cdmpp_observer_free(o);
    else *out = o;
    return st;
}

cdmpp_status cdmpp_observer_read(const cdmpp_model *m, const char *text, size_t len,
                                 cdmpp_observer **out, cdmpp_err *err) {
    cdmpp_observer *o = NULL;
    CD_TRY(new_observer(m, &o, err));
    const cdmpp_status st = cd_online_adapt_read(text, len, o->model, &o->impl, err);
    if (st) cdmpp_observer_free(o);
    else *out = o;
    return st;
}

cdmpp_status cdmpp_observer_write(const cdmpp_observer *o, char *text, size_t cap, size_t *len,
                                  cdmpp_err *err) {
    cd_buf b = {0};
    cd_online_adapt_write(o->impl, o->model, &b);
    return cd_api_give_text(&b, "observer as text", text, cap, len, err);
}

size_t cdmpp_observer_count(const cdmpp_observer *o) { return cd_online_adapt_count(o->impl); }

void cdmpp_observer_free(cdmpp_observer *o) {
    if (!o) return;
    cd_online_adapt_free(o->impl);
    cd_mem_free(o);
}

/* ---- observing ---- */
/* What a worker found out about a candidate; entered afterwards, in the order of the batch. */
typedef struct {
    cdmpp_status st;
    cd_device_pick which;
    const char *key;
    cd_online_adapt_item item;
} found;

typedef struct {
    const double *seconds;
    found *found; /* (n) */
} collection;

/* Runs on the workers' threads; each writes only its own entries of found[]. A time that is not
 * positive and finite refuses its candidate alone. */
static cdmpp_status collect(void *arg, cd_api_worker *w, size_t first, size_t n, cdmpp_err *err) {
    const collection *c = arg;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const cd_scored *o = &w->scored[i];
        const double y = c->seconds[first + i];
        found *f = &c->found[first + i];
        f->st = o->st ? o->st : y > 0 && isfinite(y) ? CDMPP_OK : CDMPP_ERANGE;
        if (f->st) continue;
        f->which = o->which;
        f->key = o->key;
        f->item = cd_online_adapt_item_of(&o->pred, o->which.unknown, o->trait, y);
    }
    return CDMPP_OK;
}

static cdmpp_status enter(cd_online_adapt *a, const found *f, size_t n, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++)
        if (!f[i].st)
            CD_TRY(cd_online_adapt_add(a, f[i].which.name, f[i].which.unknown, f[i].key, &f[i].item,
                                       err));
    return cd_online_adapt_fit(a, err);
}

cdmpp_status cdmpp_observe(cdmpp_context *c, const cdmpp_batch *batch, const double *seconds,
                           cdmpp_status *status, cdmpp_err *err) {
    cdmpp_batch b;
    CD_TRY(cd_api_copy_struct(&b, sizeof b, batch, sizeof b, "cdmpp_batch", err));
    if (!c->observer) return CD_FAIL(err, EUSAGE, "cdmpp_options.observer: the context has none");
    if (!seconds && b.n) return CD_FAIL(err, EUSAGE, "seconds are missing");
    collection k = {seconds, cd_mem_zalloc(b.n + 1, sizeof(found))};
    if (!k.found) return CD_FAIL(err, ENOMEM, "%zu measured programs", b.n);
    cdmpp_status st = cd_score_batch(c, &b, collect, &k, err);
    if (!st) st = enter(c->observer->impl, k.found, b.n, err);
    for (size_t i = 0; !st && status && i < b.n; i++) status[i] = k.found[i].st;
    cd_mem_free(k.found);
    return st;
}
