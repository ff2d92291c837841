/* A checkpoint: everything that a training needs to go on with the same bits, to a file and back.
 *
 * JSON: {"digest":"..","step":..,"best_step":..,"since_best":..,"best":..,"loss_sum":..,
 * "loss_n":..,"optim_step":..,"transform":{..},"history":[[step,train,valid],..]}, where
 * null stands for NaN. Tensors: value, best, average, m, v (those there are) and the
 * six of the scalers. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io/io.h"
#include "base/core/core.h"
#include "learner/fit/fit_internal.h"

enum { TENSORS = 5 + CD_SCALERS_TENSORS };

/* ---- what a training is ---- */
/* Every option that changes the result, and none that does not: `total` counts only for schedules
 * that end with it, so that max_steps may be raised later. */
static void add_text(cd_sha256 *h, const cd_fitting *f) {
    const cd_fit_spec *s = f->spec;
    const cd_optim_spec *o = &s->optim;
    const cd_learning_rate *r = &f->lrate;
    const bool bounded =
        r->kind == CD_LEARNING_RATE_ONE_CYCLE || r->kind == CD_LEARNING_RATE_COSINE;
    cd_buf b = {0};
    cd_transform_write(&b, &f->transform);
    for (int t = 0; t < CD_NET_LOSS_TERMS; t++) cd_buf_putf(&b, " %.17g", f->loss.weight[t]);
    for (size_t k = 0; k < f->loss.n_quantile; k++) cd_buf_putf(&b, " %.17g", f->loss.quantile[k]);
    cd_buf_putf(&b, " %d %.17g %.17g %.17g %.17g %.17g %.17g %d", (int)o->kind, o->beta1, o->beta2,
                o->eps, o->momentum, o->decay, o->clip, s->decay_all);
    cd_buf_putf(
        &b, " %d %.17g %.17g %.17g %.17g %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
        (int)r->kind, r->lr, r->low, r->high, r->gamma, r->up, r->down, r->per, r->warmup,
        bounded ? r->total : 0);
    cd_buf_putf(&b, " %.17g %" PRId64 " %" PRId64 " %" PRId64 " %" PRIu64 " %d %d %" PRIu64 " %zu",
                s->ema, s->batch, s->slice, s->target_batch, f->eval_every, (int)s->figure,
                s->freeze_encoder, s->seed, f->n_slice);
    cd_sha256_add(h, b.p, b.n);
    cd_buf_free(&b);
}

static void add_programs(cd_sha256 *h, const cd_fit_data *d, const uint32_t *index, size_t n,
                         bool labels) {
    cd_sha256_add(h, &n, sizeof n);
    cd_sha256_add(h, index, n * sizeof *index);
    for (size_t i = 0; labels && i < n; i++) {
        cd_sha256_add(h, &d->latency_s[index[i]], sizeof *d->latency_s);
        if (d->weight) cd_sha256_add(h, &d->weight[index[i]], sizeof *d->weight);
        if (d->group) cd_sha256_add(h, &d->group[index[i]], sizeof *d->group);
    }
}

/* `net`: net, scalers and initial parameters as bytes. */
void cd_fit_digest(cd_fitting *f, const cd_buf *net) {
    const cd_fit_data *d = f->data;
    cd_sha256 h;
    cd_sha256_init(&h);
    cd_sha256_add(&h, net->p, net->n);
    add_text(&h, f);
    add_programs(&h, d, d->train, d->n_train, true);
    add_programs(&h, d, d->valid, d->n_valid, true);
    add_programs(&h, d, d->target, d->n_target, false);
    cd_sha256_add(&h, d->device, d->n_device * d->w_dev * sizeof *d->device);
    cd_sha256_hex(&h, f->digest);
}

/* ---- writing ---- */
/* As the head of this file says. */
static void put_json(cd_buf *b, const cd_fitting *f) {
    cd_buf_putf(b,
                "{\"digest\":\"%s\",\"step\":%" PRIu64 ",\"best_step\":%" PRIu64
                ",\"since_best\":%" PRIu64 ",\"best\":",
                f->digest, f->step, f->best_step, f->since_best);
    cd_buf_put_json_real(b, f->best_figure);
    cd_buf_putf(
        b, ",\"loss_sum\":%.17g,\"loss_n\":%" PRIu64 ",\"optim_step\":%" PRIu64 ",\"transform\":",
        f->loss_sum, f->loss_n, f->optim.step);
    cd_transform_write(b, &f->transform);
    cd_buf_puts(b, ",\"history\":[");
    for (size_t i = 0; i < f->n_point; i++) {
        cd_buf_putf(b, "%s[%.17g,", i ? "," : "", f->point[i].step);
        cd_buf_put_json_real(b, f->point[i].train);
        cd_buf_puts(b, ",");
        cd_buf_put_json_real(b, f->point[i].valid);
        cd_buf_puts(b, "]");
    }
    cd_buf_puts(b, "]}");
}

/* The blocks that a training of these options has, by name. */
static size_t blocks(const cd_fitting *f, cd_tensor *t) {
    const cd_params *p = cd_net_params_of(f->net);
    const cd_tensor all[] = {{"value", 1, {p->n_float, 1}, p->value},
                             {"best", 1, {p->n_float, 1}, f->best},
                             {"average", 1, {p->n_float, 1}, f->average},
                             {"m", 1, {p->n_train, 1}, f->optim.m},
                             {"v", 1, {p->n_train, 1}, f->optim.v}};
    size_t n = 0;
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        if (all[k].value) t[n++] = all[k];
    return n;
}

static cdmpp_status encode(const cd_fitting *f, cd_buf *out, cdmpp_err *err) {
    cd_buf json = {0}, data = {0};
    cd_tensor t[TENSORS];
    size_t n = blocks(f, t);
    n += cd_scalers_tensors(&f->scalers, t + n);
    put_json(&json, f);
    cd_safetensors_write(&data, t, n, NULL);
    const cdmpp_status st = cd_container_put(CD_CONTAINER_CHECKPOINT, out, &json, &data, err);
    cd_buf_free(&json);
    cd_buf_free(&data);
    return st;
}

cdmpp_status cd_fit_checkpoint_write(const cd_fitting *f, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = encode(f, &b, err);
    if (!st) st = cd_file_write(f->run->checkpoint, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

/* ---- reading ---- */
static cdmpp_status real_of(const cd_json *v, const char *key, double *out, cdmpp_err *err) {
    const cd_json *x;
    CD_TRY(cd_json_need(v, key, &x, err));
    return cd_err_key(err, cd_json_real_or_nan(x, out, err), key);
}

static cdmpp_status read_history(cd_fitting *f, const cd_json *v, cdmpp_err *err) {
    const cd_json *list, *x;
    CD_TRY(cd_json_need(v, "history", &list, err));
    f->n_point = 0;
    if (!list->n) return CDMPP_OK;
    CD_TRY(cd_json_arr(list, 0, &x, err));
    for (; x; x = x->next) {
        const cd_json *e;
        cd_fit_point p;
        CD_TRY(cd_json_arr(x, 3, &e, err));
        CD_TRY(cd_json_real_or_nan(e, &p.step, err));
        CD_TRY(cd_json_real_or_nan(e->next, &p.train, err));
        CD_TRY(cd_json_real_or_nan(e->next->next, &p.valid, err));
        CD_TRY(cd_fit_add_point(f, &p, err));
    }
    return CDMPP_OK;
}

/* The digest comes first: a checkpoint of another training must not be half read. */
static cdmpp_status read_json(cd_fitting *f, const cd_json *v, cdmpp_err *err) {
    const cd_json *x;
    cd_str digest;
    CD_TRY(cd_json_need_str(v, "digest", &digest, err));
    if (!cd_str_is(digest, f->digest))
        return CD_FAIL(err, EMODEL,
                       "checkpoint of another training: expected digest %.16s..., found %.*s...",
                       f->digest, cd_str_shown(digest, 16), digest.p);
    CD_TRY(cd_json_need_count(v, "step", &f->step, err));
    CD_TRY(cd_json_need_count(v, "best_step", &f->best_step, err));
    CD_TRY(cd_json_need_count(v, "since_best", &f->since_best, err));
    CD_TRY(cd_json_need_count(v, "loss_n", &f->loss_n, err));
    CD_TRY(cd_json_need_count(v, "optim_step", &f->optim.step, err));
    CD_TRY(real_of(v, "best", &f->best_figure, err));
    CD_TRY(real_of(v, "loss_sum", &f->loss_sum, err));
    CD_TRY(cd_json_need(v, "transform", &x, err));
    CD_TRY(cd_err_key(err, cd_transform_read(x, &f->transform, err), "transform"));
    return cd_err_key(err, read_history(f, v, err), "history");
}

/* blocks() names the memory of this training, so values are read where they belong. */
static cdmpp_status decode(cd_fitting *f, cd_arena *a, const char *bytes, size_t n,
                           cdmpp_err *err) {
    cd_container fr;
    const cd_json *v;
    cd_safetensors s;
    cd_tensor t[TENSORS];
    CD_TRY(cd_container_get(CD_CONTAINER_CHECKPOINT, bytes, n, &fr, err));
    CD_TRY(cd_json_parse(a, fr.header.p, fr.header.n, &v, err));
    CD_TRY(read_json(f, v, err));
    CD_TRY(cd_safetensors_open(a, fr.weights.p, fr.weights.n, &s, err));
    const size_t n_block = blocks(f, t);
    for (size_t k = 0; k < n_block; k++) { /* the blocks are our own */
        float *to = (float *)(uintptr_t)t[k].value;
        CD_TRY(cd_safetensors_get(&s, t[k].name, 1, t[k].dim, to, err));
    }
    return cd_scalers_read(&f->scalers, &s, err);
}

cdmpp_status cd_fit_checkpoint_read(cd_fitting *f, bool *found, cdmpp_err *err) {
    const char *path = f->run->checkpoint;
    struct stat info;
    cd_arena a = {0};
    char *bytes;
    size_t n;
    *found = stat(path, &info) == 0 || errno != ENOENT;
    if (!*found) return CDMPP_OK;
    CD_TRY(cd_file_read(path, 0, &bytes, &n, err));
    const cdmpp_status st = decode(f, &a, bytes, n, err);
    cd_mem_free(bytes);
    cd_arena_free(&a);
    return cd_err_at(err, st, path, 0);
}
