/* Trains all members of an ensemble, side by side or dealt out over ranks, then its calibration. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io/io.h"
#include "learner/train/train_internal.h"

/* Finished members in a folder, so that a training that was stopped goes on: each under the digest
 * of everything that its result depends on. */

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

/* Members for the order of a task's programs: trained like those for the seconds, under another
 * configuration, and weighed against them out of fold. */

static cdmpp_status ensemble_members(const cd_training_set *t, const cd_ensemble_run *run,
                                     cd_model *m, cdmpp_err *err);

/* m->order, which all ranks train as they train the members of seconds; in `order` of the run's
 * folder. Errors: those of ensemble_members.
 *
 * A folder of their own, for kinds and folds may be the same; what was trained before goes on from
 * members for the order. */
static cdmpp_status order_train(const cd_training_set *t, const cd_ensemble_run *run, cd_model *m,
                                cdmpp_err *err) {
    const cd_config c = cd_config_of_order(t->c);
    cd_training_set set = *t;
    cd_ensemble_run with = *run;
    char *folder = NULL;
    set.c = &c;
    with.before = "order ";
    with.start = run->start ? run->start->order : NULL;
    if (!cd_model_new_order(m)) return CD_FAIL(err, ENOMEM, "order");
    if (run->folder) {
        const size_t n = strlen(run->folder) + sizeof "/order";
        if (!(folder = cd_mem_zalloc(n, 1))) return CD_FAIL(err, ENOMEM, "name of a folder");
        snprintf(folder, n, "%s/order", run->folder);
        with.folder = folder;
    }
    const cdmpp_status st = ensemble_members(&set, &with, m->order, err);
    cd_mem_free(folder);
    return st;
}

typedef struct {
    const cd_training_set *t;
    cd_model *m;
    const double *order_log_s;
    cd_model_prediction *median, *mixed;
    double *measured, *point, *order;
    uint32_t *group;
    cd_arena arena;
} weighing;

static cdmpp_status begin(weighing *w, const cd_training_set *t, cd_threads *pool,
                          const double *kind_log_s, cdmpp_err *err) {
    const size_t n = t->n_oof;
    w->median = CD_NEWN(&w->arena, cd_model_prediction, n);
    w->mixed = CD_NEWN(&w->arena, cd_model_prediction, n);
    w->measured = CD_NEWN(&w->arena, double, n);
    w->point = CD_NEWN(&w->arena, double, n);
    w->order = CD_NEWN(&w->arena, double, n);
    w->group = CD_NEWN(&w->arena, uint32_t, n);
    if (w->arena.oom) return CD_FAIL(err, ENOMEM, "order of %zu programs", n);
    CD_TRY(cd_evaluate_answers(t, w->m, pool, t->oof, n, kind_log_s, w->median, err));
    for (size_t i = 0; i < n; i++) {
        w->measured[i] = exp(t->log_s[t->oof[i]]);
        w->point[i] = w->median[i].median_s;
        w->group[i] = t->group[t->oof[i]];
    }
    return CDMPP_OK;
}

/* Spearman inside tasks of the model's present share; NaN: no task has an order. */
static cdmpp_status judge(weighing *w, double *spearman, cdmpp_err *err) {
    const size_t n = w->t->n_oof;
    cd_metric figure;
    if (n) memcpy(w->mixed, w->median, n * sizeof *w->mixed);
    cd_model_mix_order(w->m, w->order_log_s, n, w->mixed);
    for (size_t i = 0; i < n; i++) w->order[i] = w->mixed[i].order_s;
    CD_TRY(
        cd_metric_compute_ranked(w->measured, w->point, w->order, w->group, NULL, n, &figure, err));
    *spearman = figure.spearman;
    return CDMPP_OK;
}

/* In tenths; of equal ones the largest. */
static cdmpp_status search(weighing *w, cdmpp_err *err) {
    enum { PARTS = 10 };
    double best = -INFINITY, share = 1;
    for (int k = PARTS; k >= 0; k--) {
        double found;
        w->m->order_share = (double)k / PARTS;
        CD_TRY(judge(w, &found, err));
        if (!(found > best)) continue;
        best = found;
        share = w->m->order_share;
    }
    w->m->order_share = share;
    return CDMPP_OK;
}

cdmpp_status cd_order_weigh(const cd_training_set *t, cd_threads *pool, const double *kind_log_s,
                            cd_model *m, double **order_log_s, cdmpp_err *err) {
    weighing w = {.t = t, .m = m};
    *order_log_s = cd_mem_zalloc(m->order->n_kind * t->n_oof + 1, sizeof **order_log_s);
    if (!*order_log_s) return CD_FAIL(err, ENOMEM, "order of %zu programs", t->n_oof);
    w.order_log_s = *order_log_s;
    cdmpp_status st = cd_evaluate_oof(t, m->order, pool, t->oof, t->n_oof, *order_log_s, err);
    if (!st) st = begin(&w, t, pool, kind_log_s, err);
    if (!st) st = search(&w, err);
    cd_arena_free(&w.arena);
    return st;
}

typedef struct {
    const cd_training_set *t;
    cd_ensemble_run run;
    cd_model *m;
    size_t *todo, n_todo; /* members of this rank; room for all */
    /* (n_member) of trained members for rank 0 of a process group, else empty */
    cd_buf *bytes;
    int nthread;          /* of XGBoost */
    _Atomic size_t *rows; /* that this process gave to XGBoost to train on */
} job;

static bool listed(const cd_training_set *t, size_t i, int fold, bool in) {
    return t->fold[i] != CD_FOLD_NEVER && (t->fold[i] == fold) == in;
}

/* apart from the draws of the split and of the filter, whose seeds may be the same */
static const uint64_t draw_stream = 0x64726177;

/* A matrix to train on has each value as a bin, by row and by column; one to stop by is as XGBoost
 * keeps it, and ours before. A row has some 80 bytes of scores, gradients and places in the
 * tree. */
double cd_ensemble_share(const cd_training_set *t, cd_member_kind kind, int fold, bool train) {
    /* parts of the memory; bytes */
    enum { OF_TRAIN = 6, OF_VALID = 16, ROW = 80, BIN = 2, WIDE_BIN = 4, VALUE = 12 };
    if (!cd_spool_on_disk(t->view.spool) || cd_member_is_net(kind)) return 1;
    const cd_tree_input_form form = cd_member_form(kind);
    const cd_facts_use facts =
        cd_member_reads_facts(kind) ? (cd_facts_use)t->c->train_facts : CD_FACTS_USE_NONE;
    const double room = (double)t->c->train_memory * 1048576 / (train ? OF_TRAIN : OF_VALID);
    const int value = !train ? VALUE : t->c->train_max_bin > 256 ? WIDE_BIN : BIN;
    double rows = 0;
    for (size_t i = 0; i < t->d->n; i++)
        if (listed(t, i, fold, !train))
            rows += (double)cd_tree_input_height(
                form, (size_t)(t->view.row_ptr[i + 1] - t->view.row_ptr[i]));
    return fmin(1, room / (rows * (double)(cd_member_width(kind, facts) * (size_t)value + ROW)));
}

/* Programs of all folds but `fold`, or of that one, with ln of their labels and their tasks; a
 * share of them. */
static cdmpp_status list(const cd_training_set *t, int fold, bool in, double share, cd_arena *a,
                         cd_boost_set *out, cdmpp_err *err) {
    uint32_t *program = CD_NEWN(a, uint32_t, t->d->n), *group = CD_NEWN(a, uint32_t, t->d->n);
    double *log_s = CD_NEWN(a, double, t->d->n);
    *out = (cd_boost_set){0, program, log_s, group};
    if (a->oom) return CD_FAIL(err, ENOMEM, "%zu programs", t->d->n);
    for (size_t i = 0; i < t->d->n; i++) {
        if (!listed(t, i, fold, in)) continue;
        if (share < 1 && cd_rng_unit((uint64_t)t->c->train_seed ^ draw_stream,
                                     cd_stable_id_program(t->d, i)) >= share)
            continue;
        program[out->n] = (uint32_t)i;
        group[out->n] = t->group[i];
        log_s[out->n++] = t->log_s[i];
    }
    return CDMPP_OK;
}

static cdmpp_status train_anew(const job *b, const cd_boost_run *run, cd_member *e,
                               cdmpp_err *err) {
    cd_arena a = {0};
    cd_boost_set train, valid;
    cdmpp_status st = list(b->t, e->fold, false, cd_ensemble_share(b->t, e->kind, e->fold, true),
                           &a, &train, err);
    if (!st)
        st = list(b->t, e->fold, true, cd_ensemble_share(b->t, e->kind, e->fold, false), &a, &valid,
                  err);
    if (!st && cd_member_is_net(e->kind))
        st = cd_train_net(b->t, &train, &valid, &b->run, run, e, err);
    else if (!st) st = cd_boost(&b->t->view, &train, &valid, b->t->c, run, e, err);
    cd_arena_free(&a);
    return st;
}

static void name_of(const job *b, const cd_member *e, char out[48]) {
    const char *before = b->run.before ? b->run.before : "";
    if (b->t->n_fold > 1)
        snprintf(out, 48, "%s%s %d/%d", before, cd_member_name(e->kind), e->fold + 1, b->t->n_fold);
    else snprintf(out, 48, "%s%s", before, cd_member_name(e->kind));
}

/* From the folder, or trained and put there. */
static cdmpp_status train_member(const job *b, size_t k, cdmpp_err *err) {
    char name[48];
    bool found = false;
    cd_member *e = &b->m->member[k];
    const cd_process_group *ranks = b->run.ranks;
    const bool kept = b->run.keep->dir != NULL, first = !b->run.together || ranks->rank == 0;
    cd_member_checkpoint_log told = {.tick = b->run.tick, .ctx = b->run.ctx};
    const cd_boost_run run = {
        name,   b->nthread, cd_member_checkpoint_tick, &told, b->run.together ? ranks : NULL,
        b->rows};
    name_of(b, e, name);
    cdmpp_status st =
        kept ? cd_member_checkpoint_read(b->run.keep, name, &told, e, &found, err) : CDMPP_OK;
    if (!st && kept && b->run.together) st = cd_process_group_agree(ranks, found, err);
    if (!st && !found) st = train_anew(b, &run, e, err);
    if (!st && !found && kept && first) st = cd_member_checkpoint_write(b->run.keep, e, &told, err);
    if (!st && ranks && ranks->rank && first)
        st = cd_member_checkpoint_encode(b->run.keep, e, &told, &b->bytes[k], err);
    cd_buf_free(&told.curve);
    return st;
}

static cdmpp_status train_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const job *b = ctx;
    (void)w;
    for (size_t k = beg; k < end; k++) CD_TRY(train_member(b, b->todo[k], err));
    return CDMPP_OK;
}

/* The slow kinds, last in the table, first. */
static cdmpp_status list_members(const cd_training_set *t, cd_model *m, cdmpp_err *err) {
    cd_member_plan plan;
    CD_TRY(cd_member_plan_of(t->c, &plan, err));
    m->n_kind = plan.n_kind;
    memcpy(m->kind, plan.kind, sizeof plan.kind);
    m->member = cd_mem_zalloc(plan.n_kind * (size_t)t->n_fold, sizeof *m->member);
    if (!m->member) return CD_FAIL(err, ENOMEM, "members");
    for (int kind = CD_N_MEMBER_KIND; kind-- > 0;)
        for (size_t k = 0; k < plan.n_kind; k++)
            for (int f = 0; plan.kind[k] == (cd_member_kind)kind && f < t->n_fold; f++)
                m->member[m->n_member++] = (cd_member){.kind = plan.kind[k], .fold = f};
    return CDMPP_OK;
}

/* Members side by side, each with its share of the threads: XGBoost with one thread never waits for
 * another, and two idle OpenMP threads on a busy machine were measured 6 times slower than one.
 * Data on disk: one after another, so that one matrix is in use at a time. */
static cdmpp_status train_own(job *b, cdmpp_err *err) {
    const bool in_turn = b->n_todo == 1 || cd_spool_on_disk(b->t->view.spool);
    if (!b->n_todo) return CDMPP_OK;
    b->nthread = cd_threads_count(b->run.pool) / (in_turn ? 1 : (int)b->n_todo);
    if (b->nthread < 1) b->nthread = 1;
    b->run.alone = in_turn;
    if (in_turn) return train_chunk(b, 0, b->n_todo, 0, err);
    return cd_threads_run(b->run.pool, b->n_todo, 1, train_chunk, b, err);
}

/* Members that all ranks train, one after another. */
static cdmpp_status train_together(job *b, const size_t *owner, cdmpp_err *err) {
    b->run.alone = b->run.together = true;
    b->nthread = cd_threads_count(b->run.pool);
    cdmpp_status st = CDMPP_OK;
    for (size_t k = 0; !st && k < b->m->n_member; k++)
        if (owner[k] == CD_PROCESS_GROUP_ALL) st = train_member(b, k, err);
    b->run.together = false;
    return st;
}

/* Rank 0 gets all members; what they told is told there. */
static cdmpp_status gather(const job *b, cdmpp_err *err) {
    CD_TRY(cd_process_group_gather(b->run.ranks, b->bytes, b->m->n_member, err));
    for (size_t k = 0; k < b->m->n_member && b->run.ranks->rank == 0; k++) {
        char name[48];
        cd_member_checkpoint_log told = {.tick = b->run.tick, .ctx = b->run.ctx};
        if (!b->bytes[k].n) continue;
        name_of(b, &b->m->member[k], name);
        const cdmpp_status st = cd_member_checkpoint_decode(
            b->run.keep, b->bytes[k].p, b->bytes[k].n, name, &told, &b->m->member[k], err);
        cd_buf_free(&told.curve);
        CD_TRY(st);
    }
    return CDMPP_OK;
}

/* The data are divided between the ranks; who wants to see it asks for --verbose. */
static cdmpp_status tell_shares(const job *b, cdmpp_err *err) {
    const cd_process_group *ranks = b->run.ranks;
    const cd_dataset *d = b->t->d;
    cd_buf own = {0}, *all = ranks->rank ? NULL : cd_mem_zalloc(ranks->n_rank, sizeof *all);
    cd_buf_putf(
        &own, "rank %zu: %s%zu matrix rows of trees, %llu of %llu bytes of the data set read to %s",
        ranks->rank, b->run.before ? b->run.before : "", (size_t)*b->rows,
        d->borrowed ? 0ULL : (unsigned long long)d->bytes, (unsigned long long)d->bytes,
        cd_spool_on_disk(d->spool) ? "disk" : "memory");
    cdmpp_status st = own.oom || (!all && !ranks->rank)
                          ? CD_FAIL(err, ENOMEM, "shares of %zu ranks", ranks->n_rank)
                          : CDMPP_OK;
    if (!st) st = ranks->gather(ranks->ctx, &own, all, err);
    for (size_t r = 0; all && r < ranks->n_rank; r++) {
        if (!st && b->run.log)
            cd_log_put(b->run.log, CD_LOG_DEBUG, "%.*s", (int)all[r].n, all[r].p);
        cd_buf_free(&all[r]);
    }
    cd_mem_free(all);
    cd_buf_free(&own);
    return st;
}

static cdmpp_status train_by_ranks(job *b, cdmpp_err *err) {
    const cd_process_group *ranks = b->run.ranks;
    const size_t n = b->m->n_member;
    size_t *owner = cd_mem_zalloc(n, sizeof *owner);
    if (!owner) return CD_FAIL(err, ENOMEM, "%zu members", n);
    cd_process_group_deal(b->m->member, n, ranks->n_rank, b->t->c->fit_slices,
                          b->t->c->train_together, owner);
    for (size_t k = 0; k < n; k++)
        if (owner[k] == ranks->rank) b->todo[b->n_todo++] = k;
    cdmpp_status st = train_together(b, owner, err);
    cd_mem_free(owner);
    if (!st) st = train_own(b, err);
    if (!st || st == CDMPP_EINTERRUPTED) st = ranks->agree(ranks->ctx, st, err);
    if (!st) st = gather(b, err);
    return st ? st : tell_shares(b, err);
}

/* Bytes of members exist only with several ranks, where trained members are sent to rank 0. */
static cdmpp_status train_all(const cd_training_set *t, const cd_ensemble_run *run, cd_model *m,
                              cdmpp_err *err) {
    _Atomic size_t rows = 0;
    job b = {.t = t, .run = *run, .m = m, .nthread = 1, .rows = &rows};
    CD_TRY(list_members(t, m, err));
    b.todo = cd_mem_zalloc(m->n_member, sizeof *b.todo);
    b.bytes = cd_mem_zalloc(m->n_member, sizeof *b.bytes);
    cdmpp_status st =
        b.todo && b.bytes ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu members", m->n_member);
    if (!st && run->ranks) {
        st = train_by_ranks(&b, err);
    } else if (!st) {
        for (; b.n_todo < m->n_member; b.n_todo++) b.todo[b.n_todo] = b.n_todo;
        st = train_own(&b, err);
    }
    for (size_t k = 0; b.bytes && k < m->n_member; k++) cd_buf_free(&b.bytes[k]);
    cd_mem_free(b.bytes);
    cd_mem_free(b.todo);
    return st;
}

/* Kinds and members of m alone, by the configuration of t. Errors: those of training a member,
 * EINTERRUPTED. */
static cdmpp_status ensemble_members(const cd_training_set *t, const cd_ensemble_run *run,
                                     cd_model *m, cdmpp_err *err) {
    cd_ensemble_run with = *run;
    cd_member_checkpoint keep;
    cdmpp_status st = cd_member_checkpoint_open(&keep, run->folder, t, run->start, err);
    with.keep = &keep;
    if (!st) st = train_all(t, &with, m, err);
    cd_member_checkpoint_free(&keep);
    return st;
}

cdmpp_status cd_ensemble_train(const cd_training_set *t, const cd_ensemble_run *run, cd_model *m,
                               double **kind_log_s, cdmpp_err *err) {
    *kind_log_s = NULL;
    CD_TRY(ensemble_members(t, run, m, err));
    if (t->c->model_order.n) CD_TRY(order_train(t, run, m, err));
    if (run->ranks && run->ranks->rank) return CDMPP_OK;
    double *k = cd_mem_zalloc(m->n_kind * t->n_oof + 1, sizeof *k);
    cdmpp_status st = k ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", t->n_oof);
    if (!st) st = cd_evaluate_oof(t, m, run->pool, t->oof, t->n_oof, k, err);
    if (!st)
        st = cd_calibrate_model(t, t->oof, t->n_oof, t->n_fold == 1 ? 0 : -1, false, k, run->pool,
                                m, err);
    if (st) cd_mem_free(k);
    else *kind_log_s = k;
    return st;
}
