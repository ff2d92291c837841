/* XGBoost's C API: handles, JSON texts and its errors stay in this file. XGBoost trains; a booster
 * out of a file is read and walked by tree_inference alone. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <xgboost/c_api.h>

#include "learner/trees/trees.h"

struct cd_xgb {
    BoosterHandle h; /* NULL: read by tree_inference */
    /* of a loaded booster over `width` columns; NULL: it is being trained */
    cd_tree_inference *forest;
    size_t width, n_file;
    char *file; /* (n_file) the bytes that `forest` was read from */
};
struct cd_xgb_data {
    DMatrixHandle h;
    size_t n;
};

static void silent(const char *msg) { (void)msg; }

/* "[07:30:11] ../src/c_api/c_api.cc:1042: what\nStack trace: ..." -> "what" */
static cdmpp_status failed(cdmpp_err *err) {
    const char *s = XGBGetLastError();
    const size_t n = strcspn(s, "\n");
    const char *file = s[0] == '[' ? strstr(s, "] ") : NULL,
               *what = file ? strstr(file, ": ") : NULL;
    what = what && what < s + n ? what + 2 : s;
    return CD_FAIL(err, EBACKEND, "XGBoost: %.*s", (int)(s + n - what), what);
}

#define XG(call)                                                                                   \
    do {                                                                                           \
        if ((call) != 0) return failed(err);                                                       \
    } while (0)

static void array_interface(char *buf, size_t cap, const float *x, size_t n, size_t width) {
    snprintf(buf, cap,
             "{\"data\":[%zu,true],\"shape\":[%zu,%zu],\"typestr\":\"<f4\",\"version\":3}",
             (size_t)(uintptr_t)x, n, width);
}

cdmpp_status cd_xgb_data_new(const float *x, size_t n, size_t width, int nthread, cd_xgb_data **out,
                             cdmpp_err *err) {
    char array[160], config[64];
    XGBRegisterLogCallback(silent);
    array_interface(array, sizeof array, x, n, width);
    snprintf(config, sizeof config, "{\"missing\":NaN,\"nthread\":%d}", nthread);
    cd_xgb_data *d = cd_mem_zalloc(1, sizeof *d);
    if (!d) return CD_FAIL(err, ENOMEM, "matrix handle");
    d->n = n;
    if (XGDMatrixCreateFromDense(array, config, &d->h) != 0) {
        cd_mem_free(d);
        return failed(err);
    }
    *out = d;
    return CDMPP_OK;
}

/* ---- pages ---- */
typedef struct {
    const cd_xgb_pages *p;
    DMatrixHandle proxy; /* points XGBoost to the page */
} iterator;

static void page_reset(DataIterHandle h) {
    const iterator *it = h;
    (void)it->p->next(it->p->ctx, NULL);
}

static int page_next(DataIterHandle h) {
    const iterator *it = h;
    const float *x;
    char array[160];
    const size_t n = it->p->next(it->p->ctx, &x);
    if (!n) return 0;
    array_interface(array, sizeof array, x, n, it->p->width);
    return XGProxyDMatrixSetDataDense(it->proxy, array) == 0;
}

/* A page that XGBoost could not take ends the pages early, so the rows are counted. */
static cdmpp_status bin_pages(const iterator *it, const char *config, const cd_xgb_data *bins,
                              cd_xgb_data *d, cdmpp_err *err) {
    bst_ulong have = 0;
    XG(XGQuantileDMatrixCreateFromCallback((void *)(uintptr_t)it, it->proxy, bins ? bins->h : NULL,
                                           page_reset, page_next, config, &d->h));
    XG(XGDMatrixNumRow(d->h, &have));
    return have == d->n
               ? CDMPP_OK
               : CD_FAIL(err, EBACKEND, "XGBoost took %zu of %zu rows", (size_t)have, d->n);
}

/* XGBoost builds its bins from an iterator over pages and a proxy that points to one. */
cdmpp_status cd_xgb_data_paged(const cd_xgb_pages *p, int nthread, int64_t max_bin,
                               const cd_xgb_data *bins, cd_xgb_data **out, cdmpp_err *err) {
    char config[96];
    iterator it = {p, NULL};
    XGBRegisterLogCallback(silent);
    snprintf(config, sizeof config, "{\"missing\":NaN,\"nthread\":%d,\"max_bin\":%lld}", nthread,
             (long long)max_bin);
    cd_xgb_data *d = cd_mem_zalloc(1, sizeof *d);
    if (!d) return CD_FAIL(err, ENOMEM, "matrix handle");
    d->n = p->n;
    cdmpp_status st =
        XGProxyDMatrixCreate(&it.proxy) ? failed(err) : bin_pages(&it, config, bins, d, err);
    if (it.proxy) XGDMatrixFree(it.proxy);
    if (st) cd_xgb_data_free(d);
    else *out = d;
    return st;
}

/* A matrix as one page. */
typedef struct {
    const float *x;
    size_t n;
    bool given;
} whole;

static size_t next_whole(void *ctx, const float **x) {
    whole *w = ctx;
    if (x && w->given) return 0;
    w->given = x != NULL;
    if (x) *x = w->x;
    return w->n;
}

cdmpp_status cd_xgb_data_binned(const float *x, size_t n, size_t width, int nthread,
                                int64_t max_bin, const cd_xgb_data *bins, cd_xgb_data **out,
                                cdmpp_err *err) {
    whole w = {x, n, false};
    const cd_xgb_pages p = {next_whole, &w, n, width};
    return cd_xgb_data_paged(&p, nthread, max_bin, bins, out, err);
}

size_t cd_xgb_data_rows(const cd_xgb_data *d) { return d->n; }

typedef struct {
    bst_ulong *start;
    unsigned *column;
    float *value;
} sparse;

static cdmpp_status get_sparse(const cd_xgb_data *d, size_t width, sparse *s, cdmpp_err *err) {
    bst_ulong n;
    XG(XGDMatrixNumNonMissing(d->h, &n));
    if (n > d->n * width) return CD_FAIL(err, EMODEL, "expected a matrix of %zu columns", width);
    XG(XGDMatrixGetDataAsCSR(d->h, "{}", s->start, s->column, s->value));
    return CDMPP_OK;
}

/* XGBoost shows values of a matrix that has bins alone by the lower ends of these. */
cdmpp_status cd_xgb_data_lower(const cd_xgb_data *d, size_t width, float *out, cdmpp_err *err) {
    sparse s = {cd_mem_zalloc(d->n + 1, sizeof *s.start),
                cd_mem_zalloc(d->n * width + 1, sizeof *s.column),
                cd_mem_zalloc(d->n * width + 1, sizeof *s.value)};
    cdmpp_status st = s.start && s.column && s.value
                          ? CDMPP_OK
                          : CD_FAIL(err, ENOMEM, "%zu x %zu values", d->n, width);
    if (!st) st = get_sparse(d, width, &s, err);
    for (size_t i = 0; !st && i < d->n * width; i++) out[i] = NAN;
    for (size_t i = 0; !st && i < d->n; i++)
        for (bst_ulong k = s.start[i]; k < s.start[i + 1]; k++)
            if (s.column[k] < width) out[i * width + s.column[k]] = s.value[k];
    cd_mem_free(s.start);
    cd_mem_free(s.column);
    cd_mem_free(s.value);
    return st;
}

void cd_xgb_data_free(cd_xgb_data *d) {
    if (!d) return;
    if (d->h) XGDMatrixFree(d->h);
    cd_mem_free(d);
}

static cdmpp_status create(const DMatrixHandle *m, size_t n, cd_xgb **out, cdmpp_err *err) {
    XGBRegisterLogCallback(silent);
    cd_xgb *g = cd_mem_zalloc(1, sizeof *g);
    if (!g) return CD_FAIL(err, ENOMEM, "booster handle");
    if (XGBoosterCreate(m, n, &g->h) != 0) {
        cd_mem_free(g);
        return failed(err);
    }
    *out = g;
    return CDMPP_OK;
}

static cdmpp_status set_params(cd_xgb *g, const cd_xgb_param *p, size_t n, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) XG(XGBoosterSetParam(g->h, p[i].name, p[i].value));
    return CDMPP_OK;
}

/* What every booster of ours has. base_score 0: the mean is kept by the model, and
 * XGBoost's default of 0.5 would be added to each row. */
static const cd_xgb_param common[] = {{"verbosity", "0"},
                                      {"base_score", "0"},
                                      {"objective", "reg:squarederror"},
                                      {"disable_default_eval_metric", "1"}};
static const cd_xgb_param one_thread[] = {{"nthread", "1"}};

cdmpp_status cd_xgb_new(const cd_xgb_data *train, const cd_xgb_data *valid,
                        const cd_xgb_param *param, size_t n_param, cd_xgb **out, cdmpp_err *err) {
    const DMatrixHandle m[] = {train->h, valid ? valid->h : NULL};
    cd_xgb *g = NULL;
    CD_TRY(create(m, valid ? 2 : 1, &g, err));
    cdmpp_status st = set_params(g, common, sizeof common / sizeof *common, err);
    if (!st) st = set_params(g, param, n_param, err);
    if (st) cd_xgb_free(g);
    else *out = g;
    return st;
}

cdmpp_status cd_xgb_boost(cd_xgb *g, const cd_xgb_data *train, float *grad, float *hess,
                          cdmpp_err *err) {
    XG(XGBoosterBoostOneIter(g->h, train->h, grad, hess, train->n));
    return CDMPP_OK;
}

static cdmpp_status copy_scores(const bst_ulong *shape, bst_ulong dim, const float *res, size_t n,
                                float *out, cdmpp_err *err) {
    bst_ulong have = 1;
    for (bst_ulong i = 0; i < dim; i++) have *= shape[i];
    if (have != n)
        return CD_FAIL(err, EMODEL, "expected one score for each of %zu rows, found %zu", n,
                       (size_t)have);
    memcpy(out, res, n * sizeof *out);
    return CDMPP_OK;
}

cdmpp_status cd_xgb_scores(cd_xgb *g, const cd_xgb_data *d, float *out, cdmpp_err *err) {
    static const char config[] = "{\"type\":1,\"training\":true,\"iteration_begin\":0,\"iteration_"
                                 "end\":0,\"strict_shape\":true}";
    const bst_ulong *shape;
    bst_ulong dim;
    const float *res;
    XG(XGBoosterPredictFromDMatrix(g->h, d->h, config, &shape, &dim, &res));
    return copy_scores(shape, dim, res, d->n, out, err);
}

cdmpp_status cd_xgb_cut(cd_xgb *g, int n, cdmpp_err *err) {
    BoosterHandle h;
    XG(XGBoosterSlice(g->h, 0, n, 1, &h));
    XGBoosterFree(g->h);
    g->h = h;
    return set_params(g, one_thread, 1, err);
}

/* ---- several processes ---- */
cdmpp_status cd_xgb_join(const cd_xgb_rendezvous *m, cdmpp_err *err) {
    char config[320];
    XGBRegisterLogCallback(silent);
    snprintf(config, sizeof config,
             "{\"xgboost_communicator\":\"rabit\",\"DMLC_TRACKER_URI\":\"%.60s\",\"DMLC_TRACKER_"
             "PORT\":\"%d\",\"DMLC_TASK_ID\":\"%zu\","
             "\"DMLC_ROLE\":\"worker\",\"DMLC_WORKER_CONNECT_RETRY\":\"3\",\"rabit_enable_tcp_no_"
             "delay\":\"true\",\"rabit_world_size\":\"%zu\",\"rabit_timeout_sec\":\"%d\"}",
             m->address, m->port, m->rank, m->n_rank, m->limit_s);
    XG(XGCommunicatorInit(config));
    const int rank = XGCommunicatorGetRank(), n = XGCommunicatorGetWorldSize();
    if (rank == (int)m->rank && n == (int)m->n_rank) return CDMPP_OK;
    return CD_FAIL(err, EBACKEND, "XGBoost's collective calls rank %zu of %zu %d of %d", m->rank,
                   m->n_rank, rank, n);
}

cdmpp_status cd_xgb_leave(cdmpp_err *err) {
    XG(XGCommunicatorFinalize());
    return CDMPP_OK;
}

/* strict_shape makes the shape of the answer independent of the number of trees. */
static cdmpp_status xgboost_predict(const cd_xgb *g, const float *x, size_t n, size_t width,
                                    float *out, cdmpp_err *err) {
    static const char config[] = /* all keys: 1.7 reads those that have defaults, too */
        "{\"type\":1,\"training\":false,\"iteration_begin\":0,\"iteration_end\":0,\"strict_shape\":"
        "true,\"missing\":NaN,\"cache_id\":0}";
    const bst_ulong *shape;
    bst_ulong dim;
    const float *res;
    char array[160];
    if (!n) return CDMPP_OK;
    array_interface(array, sizeof array, x, n, width);
    XG(XGBoosterPredictFromDense(g->h, array, config, NULL, &shape, &dim, &res));
    return copy_scores(shape, dim, res, n, out, err);
}

cdmpp_status cd_xgb_predict_some(const cd_xgb *g, const float *x, size_t n, size_t width,
                                 size_t most, float *out, cdmpp_err *err) {
    if (g->forest && width != g->width)
        return CD_FAIL(err, EMODEL, "expected %zu inputs of trees, found %zu", g->width, width);
    if (!g->forest) return xgboost_predict(g, x, n, width, out, err);
    cd_tree_inference_score_some(g->forest, x, n, width, most, out);
    return CDMPP_OK;
}

cdmpp_status cd_xgb_predict(const cd_xgb *g, const float *x, size_t n, size_t width, float *out,
                            cdmpp_err *err) {
    return cd_xgb_predict_some(g, x, n, width, SIZE_MAX, out, err);
}

cdmpp_status cd_xgb_save(const cd_xgb *g, cd_buf *out, cdmpp_err *err) {
    const char *p = g->file;
    bst_ulong n = g->n_file;
    if (g->h) XG(XGBoosterSaveModelToBuffer(g->h, "{\"format\":\"ubj\"}", &n, &p));
    cd_buf_put(out, p, n);
    return out->oom ? CD_FAIL(err, ENOMEM, "%zu bytes of trees", (size_t)n) : CDMPP_OK;
}

cdmpp_status cd_xgb_save_bare(const cd_xgb *g, cd_buf *out, cdmpp_err *err) {
    const size_t start = out->n;
    CD_TRY(cd_xgb_save(g, out, err));
    return cd_tree_inference_forget(out->p + start, out->n - start, err);
}

/* XGBoost never sees the bytes of a file, whose reader believes what they say. They are kept for
 * cd_xgb_save. */
cdmpp_status cd_xgb_load(const void *p, size_t n, size_t width, cd_xgb **out, cdmpp_err *err) {
    cd_tree_inference *f = NULL;
    CD_TRY(cd_tree_inference_read(p, n, width, &f, err));
    cd_xgb *g = cd_mem_zalloc(1, sizeof *g);
    char *file = cd_mem_alloc(n);
    if (!g || !file) {
        cd_tree_inference_free(f);
        cd_mem_free(file);
        cd_mem_free(g);
        return CD_FAIL(err, ENOMEM, "%zu bytes of trees", n);
    }
    memcpy(file, p, n);
    *g = (cd_xgb){.forest = f, .width = width, .file = file, .n_file = n};
    *out = g;
    return CDMPP_OK;
}

void cd_xgb_free(cd_xgb *g) {
    if (!g) return;
    cd_tree_inference_free(g->forest);
    if (g->h) XGBoosterFree(g->h);
    cd_mem_free(g->file);
    cd_mem_free(g);
}

const cd_tree_inference *cd_xgb_tree_inference(const cd_xgb *g) { return g->forest; }

int cd_xgb_rounds(const cd_xgb *g) {
    int n = 0;
    if (!g->h) return (int)cd_tree_inference_count(g->forest);
    return XGBoosterBoostedRounds(g->h, &n) ? 0 : n;
}

void cd_xgb_version(char out[32]) {
    int major, minor, patch;
    XGBoostVersion(&major, &minor, &patch);
    snprintf(out, 32, "%d.%d.%d", major, minor, patch);
}

/* XGBoost does not give away where it cuts a column. But it shows each value of a matrix of bins as
 * the lower end of its bin, and every bin has a value of the column at that end, but the first,
 * whose end lies below the least. So the least value, the ends and the greatest value are a short
 * column with the same cuts. */

enum { PIECE = 4096 }; /* rows whose bins are looked at together */

/* One column on its way. */
typedef struct {
    float *v; /* (n) lower ends, rising */
    size_t n;
    float least, most, low; /* low: of the first bin, as XGBoost has it */
} column;

/* False: more ends than bins. */
static bool add_end(column *c, float end, size_t max_bin) {
    size_t beg = 0, to = c->n;
    while (beg < to) {
        const size_t mid = (beg + to) / 2;
        if (c->v[mid] < end) beg = mid + 1;
        else to = mid;
    }
    if (beg < c->n && c->v[beg] == end) return true;
    if (c->n == max_bin) return false;
    memmove(c->v + beg + 1, c->v + beg, (c->n - beg) * sizeof *c->v);
    c->v[beg] = end;
    c->n++;
    return true;
}

/* Ends of the bins of some rows. */
static cdmpp_status add_piece(column *c, const float *x, size_t n, size_t width, int nthread,
                              int64_t max_bin, const cd_xgb_data *bins, float *low,
                              cdmpp_err *err) {
    cd_xgb_data *d = NULL;
    CD_TRY(cd_xgb_data_binned(x, n, width, nthread, max_bin, bins, &d, err));
    const cdmpp_status st = cd_xgb_data_lower(d, width, low, err);
    cd_xgb_data_free(d);
    CD_TRY(st);
    for (size_t i = 0; i < n * width; i++) {
        column *k = &c[i % width];
        if (isnan(x[i])) continue;
        k->least = fminf(k->least, x[i]);
        k->most = fmaxf(k->most, x[i]);
        if (!add_end(k, low[i], (size_t)max_bin))
            return CD_FAIL(err, EBACKEND, "XGBoost has more than %lld bins of a column",
                           (long long)max_bin);
    }
    return CDMPP_OK;
}

/* The greatest value begins a bin unless there are max_bin without it. Repeats of the last value
 * fill the column; one without values has none. */
static bool finish(column *c, size_t max_bin) {
    if (!c->n) c->v[c->n++] = NAN;
    c->low = c->v[0];
    if (!isnan(c->v[0])) c->v[0] = c->least;
    if (c->most > c->v[c->n - 1]) {
        if (c->n < max_bin) return false;
        c->v[c->n++] = c->most;
    }
    for (size_t i = c->n; i <= max_bin; i++) c->v[i] = c->v[c->n - 1];
    return true;
}

/* Each value of the short columns has to be the lower end of its own bin, but the first and a last
 * one that only ends the last bin. */
static cdmpp_status check(const column *c, size_t n, size_t width, const float *cuts, int nthread,
                          int64_t max_bin, float *low, cdmpp_err *err) {
    cd_xgb_data *d = NULL;
    bool same = true;
    CD_TRY(cd_xgb_data_of_cuts(cuts, width, nthread, max_bin, &d, err));
    const cdmpp_status st = cd_xgb_data_lower(d, width, low, err);
    cd_xgb_data_free(d);
    CD_TRY(st);
    for (size_t i = 0; i < n * width; i++) {
        const column *k = &c[i % width];
        const size_t r = i / width;
        const float want = r == 0                              ? k->low
                           : r == (size_t)max_bin && k->n == n ? k->v[r - 1]
                                                               : k->v[r];
        same = same && (low[i] == want || (isnan(low[i]) && isnan(want)) ||
                        (k->n == 1 && low[i] == k->low));
    }
    return same
               ? CDMPP_OK
               : CD_FAIL(err, EBACKEND, "XGBoost cuts a part of a column elsewhere than all of it");
}

static cdmpp_status find(column *c, const float *x, size_t n, size_t width, int nthread,
                         int64_t max_bin, float *cuts, float *low, cdmpp_err *err) {
    const size_t rows = (size_t)max_bin + 1;
    cd_xgb_data *bins = NULL;
    for (size_t j = 0; j < width; j++)
        c[j] = (column){.v = cuts + j * rows, .least = INFINITY, .most = -INFINITY};
    CD_TRY(cd_xgb_data_binned(x, n, width, nthread, max_bin, NULL, &bins, err));
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; !st && i < n; i += PIECE)
        st = add_piece(c, x + i * width, n - i < PIECE ? n - i : PIECE, width, nthread, max_bin,
                       bins, low, err);
    cd_xgb_data_free(bins);
    for (size_t j = 0; !st && j < width; j++)
        if (!finish(&c[j], (size_t)max_bin))
            st = CD_FAIL(err, EBACKEND,
                         "XGBoost has no bin that begins with the greatest value of a column");
    return st ? st : check(c, rows, width, cuts, nthread, max_bin, low, err);
}

cdmpp_status cd_xgb_cuts(const float *x, size_t n, size_t width, int nthread, int64_t max_bin,
                         float *cuts, cdmpp_err *err) {
    const size_t rows = (size_t)max_bin + 1 > PIECE ? (size_t)max_bin + 1 : PIECE;
    column *c = cd_mem_zalloc(width + 1, sizeof *c);
    float *low = cd_mem_zalloc(rows * width + 1, sizeof *low);
    cdmpp_status st = c && low ? CDMPP_OK : CD_FAIL(err, ENOMEM, "cuts of %zu columns", width);
    if (!st) st = find(c, x, n, width, nthread, max_bin, cuts, low, err);
    cd_mem_free(c);
    cd_mem_free(low);
    return st;
}

cdmpp_status cd_xgb_data_of_cuts(const float *cuts, size_t width, int nthread, int64_t max_bin,
                                 cd_xgb_data **out, cdmpp_err *err) {
    const size_t rows = (size_t)max_bin + 1;
    float *x = cd_mem_zalloc(rows * width + 1, sizeof *x);
    if (!x) return CD_FAIL(err, ENOMEM, "cuts of %zu columns", width);
    for (size_t i = 0; i < rows * width; i++) x[i] = cuts[i % width * rows + i / width];
    const cdmpp_status st = cd_xgb_data_binned(x, rows, width, nthread, max_bin, NULL, out, err);
    cd_mem_free(x);
    return st;
}
