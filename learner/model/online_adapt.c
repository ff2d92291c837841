/* Measured programs of a user's device correct the predictions for other programs of the same task
 * and device: a Gaussian process over few numbers of a program (online_adapt_fit.c). Here are the
 * items and the correction. */

#include <assert.h>
#include <math.h>
#include <string.h>

#include "features/rows/rows.h"
#include "learner/model/model_internal.h"

/* The uncertainty of models without intervals. */
static const double usual_sigma = 0.5;

void cd_online_adapt_traits(const float *row, size_t n_row, float trait[CD_N_TRAIT]) {
    enum { TOP_ROWS = 3, WIDTH = 640, UNROLL_LEN = 28, VEC_LEN = 17, PAR_LEN = 39, OUTER = 161 };
    /* of the totals in learner/inputs/tree_input.c: bytes, unique bytes, lines, unique lines; bytes
     * per unique byte, lines per unique line; most operations per block, parallel and vector lane
     * of a row */
    static const int total[] = {1, 2, 3, 4, 9, 10, 11, 13, 14};
    static const int top[] = {PAR_LEN, VEC_LEN, UNROLL_LEN, OUTER};
    float x[WIDTH];
    assert(cd_tree_input_width(CD_TREE_INPUT_PROGRAM) <= WIDTH);
    cd_tree_input_fill(CD_TREE_INPUT_PROGRAM, row, n_row, 0, x);
    for (int k = 0; k < 9; k++) trait[k] = x[TOP_ROWS * CD_N_COL + total[k]];
    for (int k = 0; k < 4; k++) trait[9 + k] = x[top[k]]; /* of the row with the most operations */
}

/* On an unknown device all programs are unlike what was trained on, to the same degree: how sure
 * the model is of which is in like_std. */
cd_online_adapt_item cd_online_adapt_item_of(const cd_model_prediction *p, bool unknown,
                                             const float trait[CD_N_TRAIT], double measured_s) {
    const double sigma = unknown ? p->like_std : cd_model_expected_error(p);
    cd_online_adapt_item i = {
        log(p->median_s), sigma > 0 ? sigma : usual_sigma, log(measured_s), {0}};
    memcpy(i.trait, trait, sizeof i.trait);
    return i;
}

/* ---- what is kept ---- */
cdmpp_status cd_online_adapt_new(cd_online_adapt **out, cdmpp_err *err) {
    *out = cd_mem_zalloc(1, sizeof **out);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "measured programs");
}

static void free_task(cd_online_adapt_task *t) {
    cd_mem_free(t->key);
    cd_mem_free(t->item);
    cd_mem_free(t->seen);
    cd_mem_free(t->factor);
}

void cd_online_adapt_free(cd_online_adapt *a) {
    if (!a) return;
    for (size_t d = 0; d < a->n_device; d++) {
        for (size_t k = 0; k < a->device[d].n_task; k++) free_task(&a->device[d].task[k]);
        cd_mem_free(a->device[d].task);
        cd_online_adapt_wide_free(&a->device[d].wide);
        cd_mem_free(a->device[d].name);
    }
    cd_mem_free(a->device);
    cd_mem_free(a);
}

/* FNV-1a */
static uint64_t hash_of(const char *s) {
    uint64_t h = 14695981039346656037ULL;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 1099511628211ULL;
    return h;
}

static cd_online_adapt_device *find_device(const cd_online_adapt *a, const char *name) {
    for (size_t d = 0; d < a->n_device; d++)
        if (!strcmp(a->device[d].name, name)) return &a->device[d];
    return NULL;
}

static cd_online_adapt_task *find_task(const cd_online_adapt_device *d, const char *key) {
    const uint64_t h = hash_of(key);
    for (size_t k = 0; k < d->n_task; k++)
        if (d->task[k].hash == h && !strcmp(d->task[k].key, key)) return &d->task[k];
    return NULL;
}

/* Makes room for one more element of `size` bytes behind n, and a copy of `text`. */
static bool one_more(void **list, size_t n, size_t *cap, size_t size, const char *text,
                     char **copy) {
    void *p = n < *cap ? *list : cd_grow_heap(*list, n, cap, size, SIZE_MAX / 2);
    if (!p) return false;
    *list = p;
    *copy = cd_mem_text(text);
    return *copy != NULL;
}

static cd_online_adapt_device *device_of(cd_online_adapt *a, const char *name, bool unknown) {
    cd_online_adapt_device *d = find_device(a, name);
    char *copy;
    if (d) return d;
    void *list = a->device;
    const bool got = one_more(&list, a->n_device, &a->cap, sizeof *d, name, &copy);
    a->device = list;
    if (!got) return NULL;
    d = &a->device[a->n_device++];
    *d = (cd_online_adapt_device){.name = copy, .unknown = unknown};
    return d;
}

static cd_online_adapt_task *task_of(cd_online_adapt_device *d, const char *key) {
    cd_online_adapt_task *t = find_task(d, key);
    char *copy;
    if (t) return t;
    void *list = d->task;
    const bool got = one_more(&list, d->n_task, &d->cap, sizeof *t, key, &copy);
    d->task = list;
    if (!got) return NULL;
    t = &d->task[d->n_task++];
    *t = (cd_online_adapt_task){.key = copy, .hash = hash_of(key), .scale = 1};
    return t;
}

static bool item_room(cd_online_adapt_task *t) {
    return t->n == CD_ONLINE_ADAPT_MAX || !CD_GROW(t->item, t->n, t->cap);
}

cdmpp_status cd_online_adapt_add(cd_online_adapt *a, const char *device, bool unknown,
                                 const char *task, const cd_online_adapt_item *item,
                                 cdmpp_err *err) {
    cd_online_adapt_device *d = device_of(a, device, unknown);
    cd_online_adapt_task *t = d ? task_of(d, task) : NULL;
    if (!t || !item_room(t)) return CD_FAIL(err, ENOMEM, "a measured program");
    t->item[t->next] = *item;
    t->next = (t->next + 1) % CD_ONLINE_ADAPT_MAX;
    if (t->n < CD_ONLINE_ADAPT_MAX) t->n++;
    t->changed = true;
    return CDMPP_OK;
}

/* Where it fails the tasks count as not fitted: their fit without what is shared would explain it
 * twice. */
static cdmpp_status fit_wide(cd_online_adapt_device *d, cdmpp_err *err) {
    const cdmpp_status st = cd_online_adapt_wide_fit(d, err);
    for (size_t k = 0; st && k < d->n_task; k++) d->task[k].changed = true;
    return st;
}

/* Only tasks with new measurements are fitted again; then what the tasks of their device share. */
cdmpp_status cd_online_adapt_fit(cd_online_adapt *a, cdmpp_err *err) {
    for (size_t d = 0; d < a->n_device; d++) {
        bool any = false;
        for (size_t k = 0; k < a->device[d].n_task; k++) {
            cd_online_adapt_task *t = &a->device[d].task[k];
            if (!t->changed || !t->n) continue;
            CD_TRY(cd_online_adapt_fit_task(t, err));
            any = true;
        }
        if (any && a->device[d].unknown) CD_TRY(fit_wide(&a->device[d], err));
        else if (any) cd_online_adapt_fit_shift(&a->device[d]);
    }
    return CDMPP_OK;
}

size_t cd_online_adapt_count(const cd_online_adapt *a) {
    size_t n = 0;
    for (size_t d = 0; d < a->n_device; d++)
        for (size_t k = 0; k < a->device[d].n_task; k++) n += a->device[d].task[k].n;
    return n;
}

/* ---- predictions ---- */
bool cd_online_adapt_apply(const cd_online_adapt *a, const char *device, const char *task,
                           const float trait[CD_N_TRAIT], cd_model_prediction *p) {
    const cd_online_adapt_device *d = find_device(a, device);
    const cd_online_adapt_task *t = d ? find_task(d, task) : NULL;
    const cd_online_adapt_item item = cd_online_adapt_item_of(p, d && d->unknown, trait, 1);
    double mean = 0, left = 1, shared, wide = 0;
    if (!d) return false;
    shared = d->shift;
    if (d->wide.n) cd_online_adapt_wide_posterior(&d->wide, &item, &shared, &wide);
    if (t && t->n_fit) cd_online_adapt_posterior(t, &item, &mean, &left);
    if (d->wide.n)
        left = left * (t && t->n_fit ? 1 : d->wide.scale) + wide / (item.sigma * item.sigma);
    const double width = sqrt(left) * (p->rel_std > 0 ? item.sigma / p->rel_std : 1),
                 median = item.median_log + shared + mean;
    /* the answer lies below the median by a multiple of the variance, the ends by multiples of its
     * root */
    const double point = median + (log(p->latency_s) - item.median_log) * left;
    const double low = median + (log(p->low_s) - item.median_log) * width,
                 high = median + (log(p->high_s) - item.median_log) * width;
    /* what measurements say of the seconds they say of the order, and the more they say the less
     * the members for it do */
    p->order_s = exp(median + (log(p->order_s) - item.median_log) * fmin(1, left));
    p->median_s = exp(median);
    p->latency_s = exp(point);
    p->low_s = exp(fmin(low, point));
    p->high_s = exp(fmax(high, point));
    if (isnan(p->rel_std)) p->low_s = p->high_s = (double)NAN;
    p->rel_std *= width;
    return true;
}
