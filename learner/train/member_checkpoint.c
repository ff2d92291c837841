/* Finished members in a folder, so that a training that was stopped goes on: each under the digest
 * of everything that its result depends on. */
#include "learner/train/train_internal.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/io/io.h"

/* ---- what a training is ---- */
/* The configuration without what members do not depend on: names of files (their contents
 * are in the digest) and what happens after the members are trained. */
static cdmpp_status add_config(cd_sha256 *h, const cd_config *c, bool on_disk, cdmpp_err *err) {
    char xgboost[32];
    cd_buf b = {0};
    cd_config plain = *c; /* borrows */
    plain.output_model = plain.output_report = plain.data_source = plain.device_file = "";
    plain.data_files.n = 0;
    plain.predict_point = 0;
    plain.predict_level = 0.9;
    plain.model_tuner = false;
    plain.model_order.n = 0;
    cd_xgb_version(xgboost);
    cd_buf_putf(&b, "cdmpp %s xgboost %s\n", cdmpp_version(), xgboost);
    cd_config_print_identity(&b, &plain, on_disk);
    if (!b.oom) cd_sha256_add(h, b.p, b.n);
    const cdmpp_status st = b.oom ? CD_FAIL(err, ENOMEM, "text of the configuration") : CDMPP_OK;
    cd_buf_free(&b);
    return st;
}

/* Not all facts need be in memory at a time. */
static void add_facts(cd_sha256 *h, const cd_training_set *t) {
    enum { PIECE = 16384 };
    for (size_t i = 0; i < t->d->n; i += PIECE) {
        cd_sha256_add(h, t->view.facts + i * CD_N_FACTS,
                      (t->d->n - i < PIECE ? t->d->n - i : PIECE) * CD_N_FACTS *
                          sizeof *t->view.facts);
        cd_spool_rest(t->d->spool);
    }
}

static void add_data(cd_sha256 *h, const cd_training_set *t) {
    const size_t n = t->d->n;
    cd_sha256_add(h, t->d->content_digest, 64);
    cd_sha256_add(h, t->split->digest, 64);
    cd_sha256_add(h, &n, sizeof n);
    cd_sha256_add(h, t->fold, n * sizeof *t->fold);
    cd_sha256_add(h, t->log_s, n * sizeof *t->log_s);
    cd_sha256_add(h, t->group, n * sizeof *t->group);
    cd_sha256_add(h, t->device, n * sizeof *t->device);
    if (t->weight) cd_sha256_add(h, t->weight, n * sizeof *t->weight);
    if (t->split->unlabelled) cd_sha256_add(h, t->split->unlabelled, n);
    cd_sha256_add(h, t->device_vector, t->n_device * t->w_device * sizeof *t->device_vector);
    if (!t->view.facts) return;
    add_facts(h, t);
    cd_sha256_add(h, t->analytic, n * CD_N_ANALYTIC * sizeof *t->analytic);
}

static cdmpp_status add_start(cd_sha256 *h, const cd_model *start, cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; start && !st && i < start->n_member; i++) {
        cd_buf json = {0}, blob = {0};
        if (cd_member_is_net(start->member[i].kind))
            st = cd_member_save(&start->member[i], &json, &blob, err);
        if (!st) cd_sha256_add(h, json.p, json.n);
        if (!st) cd_sha256_add(h, blob.p, blob.n);
        cd_buf_free(&json);
        cd_buf_free(&blob);
    }
    return st;
}

static cdmpp_status make_folder(const char *dir, cdmpp_err *err) {
    struct stat s;
    if (mkdir(dir, 0777) == 0 || (errno == EEXIST && stat(dir, &s) == 0 && S_ISDIR(s.st_mode)))
        return CDMPP_OK;
    return cd_err_at(err, CD_FAIL(err, EIO, "cannot make the folder: %s", strerror(errno)), dir, 0);
}

cdmpp_status cd_member_checkpoint_open(cd_member_checkpoint *k, const char *dir,
                                       const cd_training_set *t, const cd_model *start,
                                       cdmpp_err *err) {
    *k = (cd_member_checkpoint){0};
    cd_sha256_init(&k->base);
    CD_TRY(add_config(&k->base, t->c, cd_spool_on_disk(t->d->spool), err));
    add_data(&k->base, t);
    CD_TRY(add_start(&k->base, start, err));
    if (!dir) return CDMPP_OK;
    k->dir = cd_mem_text(dir);
    if (!k->dir) return CD_FAIL(err, ENOMEM, "name of a folder");
    return make_folder(dir, err);
}

void cd_member_checkpoint_free(cd_member_checkpoint *k) {
    cd_mem_free(k->dir);
    *k = (cd_member_checkpoint){0};
}

static void digest_of(const cd_member_checkpoint *k, const cd_member *e, char hex[65]) {
    char text[48];
    cd_sha256 h = k->base;
    const int n = snprintf(text, sizeof text, "\n%s %d\n", cd_member_name(e->kind), e->fold);
    cd_sha256_add(&h, text, (size_t)n);
    cd_sha256_hex(&h, hex);
}

static cdmpp_status path_of(const cd_member_checkpoint *k, const cd_member *e, const char *end,
                            char **path, cdmpp_err *err) {
    const size_t n = strlen(k->dir) + 64;
    *path = cd_mem_zalloc(n, 1);
    if (!*path) return CD_FAIL(err, ENOMEM, "name of a file");
    snprintf(*path, n, "%s/%s-%d%s", k->dir, cd_member_name(e->kind), e->fold, end);
    return CDMPP_OK;
}

cdmpp_status cd_member_checkpoint_fit_path(const cd_member_checkpoint *k, const cd_member *e,
                                           char **path, cdmpp_err *err) {
    return path_of(k, e, ".fit", path, err);
}

/* ---- what it told ---- */
bool cd_member_checkpoint_tick(void *told, const cd_progress_event *t) {
    cd_member_checkpoint_log *w = told;
    snprintf(w->unit, sizeof w->unit, "%s", t->unit);
    w->n_step = t->n_step;
    w->n_sample = t->n_sample;
    if (isfinite(t->train) || isfinite(t->valid) || t->end) {
        cd_buf_putf(&w->curve, "%s[%" PRIu64 ",", w->curve.n ? "," : "", t->step);
        cd_buf_put_json_real(&w->curve, t->train);
        cd_buf_puts(&w->curve, ",");
        cd_buf_put_json_real(&w->curve, t->valid);
        cd_buf_puts(&w->curve, "]");
    }
    return !w->tick || w->tick(w->ctx, t);
}

/* Curve and progress of a member that was trained before are reported again, as if it were trained
 * now. */
static cdmpp_status replay_curve(const cd_json *v, const char *name, cd_member_checkpoint_log *told,
                                 cdmpp_err *err) {
    const cd_json *list, *x, *e;
    cd_str text;
    char word[16];
    cd_progress_event t = {.member = name, .unit = word};
    CD_TRY(cd_json_need_str(v, "unit", &text, err));
    snprintf(word, sizeof word, "%.*s", (int)(text.n < sizeof word ? text.n : 0), text.p);
    CD_TRY(cd_json_need_count(v, "n_step", &t.n_step, err));
    CD_TRY(cd_json_need_count(v, "n_sample", &t.n_sample, err));
    CD_TRY(cd_json_need(v, "curve", &list, err));
    if (list->kind == CD_JSON_ARR && !list->n) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_json_arr(list, 0, &x, err), "curve"));
    for (; x; x = x->next) {
        int64_t step;
        CD_TRY(cd_err_key(err, cd_json_arr(x, 3, &e, err), "curve"));
        CD_TRY(cd_err_key(err, cd_json_int(e, 0, INT64_MAX, &step, err), "curve"));
        CD_TRY(cd_err_key(err, cd_json_real_or_nan(e->next, &t.train, err), "curve"));
        CD_TRY(cd_err_key(err, cd_json_real_or_nan(e->next->next, &t.valid, err), "curve"));
        t.step = (uint64_t)step;
        t.end = !x->next;
        if (!cd_member_checkpoint_tick(told, &t)) return CD_FAIL(err, EINTERRUPTED, "%s", name);
    }
    return CDMPP_OK;
}

/* ---- bytes ---- */
cdmpp_status cd_member_checkpoint_encode(const cd_member_checkpoint *k, const cd_member *e,
                                         const cd_member_checkpoint_log *told, cd_buf *out,
                                         cdmpp_err *err) {
    cd_buf json = {0}, blob = {0};
    char digest[65];
    digest_of(k, e, digest);
    cd_buf_putf(&json,
                "{\"schema\":\"cdmpp.member\",\"digest\":\"%s\",\"unit\":\"%s\",\"n_step\":%" PRIu64
                ",\"n_sample\":%" PRIu64 ",\"curve\":[%s],\"member\":",
                digest, told->unit, told->n_step, told->n_sample,
                told->curve.p ? told->curve.p : "");
    cdmpp_status st = cd_member_save(e, &json, &blob, err);
    cd_buf_puts(&json, "}");
    if (!st && told->curve.oom) st = CD_FAIL(err, ENOMEM, "curve of a member");
    if (!st) st = cd_container_put(CD_CONTAINER_MODEL, out, &json, &blob, err);
    cd_buf_free(&json);
    cd_buf_free(&blob);
    return st;
}

static cdmpp_status check_digest(const cd_member_checkpoint *k, const cd_json *v,
                                 const cd_member *e, cdmpp_err *err) {
    cd_str found;
    char digest[65];
    digest_of(k, e, digest);
    CD_TRY(cd_json_need_str(v, "digest", &found, err));
    if (cd_str_is(found, digest)) return CDMPP_OK;
    return CD_FAIL(err, EMODEL,
                   "of another training (configuration, data or version): expected digest "
                   "%.16s..., found %.*s...; "
                   "name another folder or remove this one",
                   digest, cd_str_shown(found, 16), found.p);
}

static cdmpp_status decode(const cd_member_checkpoint *k, cd_arena *a, const cd_container *f,
                           const char *name, cd_member_checkpoint_log *told, cd_member *e,
                           cdmpp_err *err) {
    const cd_json *v, *m;
    const cd_member want = *e;
    CD_TRY(cd_json_parse(a, f->header.p, f->header.n, &v, err));
    CD_TRY(check_digest(k, v, e, err));
    CD_TRY(cd_json_need(v, "member", &m, err));
    CD_TRY(cd_err_key(err, cd_member_load(e, m, f->weights.p, f->weights.n, err), "member"));
    if (e->kind != want.kind || e->fold != want.fold)
        return CD_FAIL(err, EPARSE, "expected member %s, found another", name);
    return replay_curve(v, name, told, err);
}

cdmpp_status cd_member_checkpoint_decode(const cd_member_checkpoint *k, const void *p, size_t n,
                                         const char *name, cd_member_checkpoint_log *told,
                                         cd_member *e, cdmpp_err *err) {
    cd_container f;
    cd_arena a = {0};
    CD_TRY(cd_container_get(CD_CONTAINER_MODEL, p, n, &f, err));
    const cdmpp_status st = decode(k, &a, &f, name, told, e, err);
    cd_arena_free(&a);
    return st;
}

/* ---- the folder ---- */
cdmpp_status cd_member_checkpoint_read(const cd_member_checkpoint *k, const char *name,
                                       cd_member_checkpoint_log *told, cd_member *e, bool *found,
                                       cdmpp_err *err) {
    struct stat info;
    char *path, *bytes = NULL;
    size_t n;
    *found = false;
    CD_TRY(path_of(k, e, ".member", &path, err));
    cdmpp_status st = CDMPP_OK;
    if (stat(path, &info) == 0 || errno != ENOENT) {
        st = cd_file_read(path, 0, &bytes, &n, err);
        if (!st) st = cd_member_checkpoint_decode(k, bytes, n, name, told, e, err);
        *found = !st;
    }
    st = cd_err_at(err, st, path, 0);
    cd_mem_free(bytes);
    cd_mem_free(path);
    return st;
}

/* The checkpoint of a network that is trained now, and what kills left of its writing. */
static void sweep(const cd_member_checkpoint *k, const cd_member *e) {
    char begin[48];
    DIR *d = opendir(k->dir);
    const int n = snprintf(begin, sizeof begin, "%s-%d.", cd_member_name(e->kind), e->fold);
    for (const struct dirent *f; d && (f = readdir(d)) != NULL;) {
        if (strncmp(f->d_name, begin, (size_t)n) != 0) continue;
        if (strcmp(f->d_name + n, "fit") == 0 || strstr(f->d_name + n, ".tmp"))
            (void)unlinkat(dirfd(d), f->d_name, 0);
    }
    if (d) closedir(d);
}

cdmpp_status cd_member_checkpoint_write(const cd_member_checkpoint *k, const cd_member *e,
                                        const cd_member_checkpoint_log *told, cdmpp_err *err) {
    cd_buf b = {0};
    char *path;
    CD_TRY(path_of(k, e, ".member", &path, err));
    cdmpp_status st = cd_member_checkpoint_encode(k, e, told, &b, err);
    if (!st) st = cd_file_write(path, b.p, b.n, err);
    if (!st) sweep(k, e);
    cd_mem_free(path);
    cd_buf_free(&b);
    return st;
}
