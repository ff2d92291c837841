#include "learner/model.h"

#include <math.h>
#include <string.h>

#include "features/cols.h"
#include "learner/model_int.h"

typedef struct {
    void *p;
    size_t cap; /* items */
} block;

struct cd_model_scratch {
    block x;     /* float: matrix of one part */
    block score; /* float */
    block wide;  /* double: scores with offsets */
    block log_s; /* double, per program: sum over parts, then one part */
};

cdmpp_status cd_model_scratch_new(cd_model_scratch **out, cdmpp_err *err) {
    *out = cd_calloc(1, sizeof **out);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "scratch");
}

void cd_model_scratch_free(cd_model_scratch *s) {
    if (!s) return;
    cd_free(s->x.p);
    cd_free(s->score.p);
    cd_free(s->wide.p);
    cd_free(s->log_s.p);
    cd_free(s);
}

/* Room for n items, at least doubling; the old content is not kept. */
static int grow(block *b, size_t n, size_t size) {
    if (n <= b->cap) return 1;
    const size_t want = n < 2 * b->cap ? 2 * b->cap : n;
    void *q = cd_calloc(want, size);
    if (!q) return 0;
    cd_free(b->p);
    *b = (block){q, want};
    return 1;
}

static cdmpp_status room(cd_model_scratch *s, size_t n_x, size_t n_score, cdmpp_err *err) {
    if (grow(&s->x, n_x, sizeof(float)) && grow(&s->score, n_score, sizeof(float)) && grow(&s->wide, n_score, sizeof(double)))
        return CDMPP_OK;
    return CD_FAIL(err, ENOMEM, "%zu values to score", n_x);
}

double cd_log_sum_exp(const double *score, size_t n) {
    double max = score[0], sum = 0;
    for (size_t i = 1; i < n; i++) max = fmax(max, score[i]);
    for (size_t i = 0; i < n; i++) sum += exp(score[i] - max);
    return max + log(sum);
}

static void combine(const cd_model_part *p, cd_model_scratch *s, const float *row, const int64_t *row_ptr, size_t n,
                    double *log_s) {
    const float *score = s->score.p;
    double *wide = s->wide.p;
    for (size_t i = 0, at = 0; i < n; i++) {
        const size_t r0 = (size_t)row_ptr[i], h = cd_input_height(p->form, (size_t)row_ptr[i + 1] - r0);
        for (size_t k = 0; k < h; k++) {
            const double offset = p->slope == 0 ? 0 : p->slope * cd_input_log_trips(row + (r0 + k) * CD_N_COL);
            wide[at + k] = (double)score[at + k] + p->bias + offset;
        }
        log_s[i] = cd_log_sum_exp(wide + at, h);
        at += h;
    }
}

cdmpp_status cd_model_part_predict(const cd_model_part *p, cd_model_scratch *s, const float *row, const int64_t *row_ptr,
                                   const uint32_t *device, size_t n, double *log_s, cdmpp_err *err) {
    const size_t width = cd_input_width(p->form);
    size_t height = 0;
    for (size_t i = 0; i < n; i++) height += cd_input_height(p->form, (size_t)(row_ptr[i + 1] - row_ptr[i]));
    CD_TRY(room(s, height * width, height, err));
    float *x = s->x.p;
    for (size_t i = 0; i < n; i++) {
        const size_t n_row = (size_t)(row_ptr[i + 1] - row_ptr[i]);
        cd_input_fill(p->form, row + row_ptr[i] * CD_N_COL, n_row, device[i], x);
        x += cd_input_height(p->form, n_row) * width;
    }
    CD_TRY(cd_gbt_predict(p->gbt, s->x.p, height, width, s->score.p, err));
    combine(p, s, row, row_ptr, n, log_s);
    return CDMPP_OK;
}

static cdmpp_status check_input(const cd_model *m, const int64_t *row_ptr, const uint32_t *device, size_t n, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        if (row_ptr[i + 1] <= row_ptr[i]) return CD_FAIL(err, EMODEL, "program %zu: expected at least one feature row, found none", i);
        if (device[i] >= m->n_device)
            return CD_FAIL(err, EMODEL, "program %zu: expected a device below %zu, found %u", i, m->n_device, device[i]);
    }
    return CDMPP_OK;
}

cdmpp_status cd_model_predict(const cd_model *m, cd_model_scratch *s, const float *row, const int64_t *row_ptr,
                              const uint32_t *device, size_t n, double *latency_s, cdmpp_err *err) {
    if (!n) return CDMPP_OK;
    CD_TRY(check_input(m, row_ptr, device, n, err));
    if (!grow(&s->log_s, 2 * n, sizeof(double))) return CD_FAIL(err, ENOMEM, "%zu programs to score", n);
    double *sum = s->log_s.p, *one = sum + n;
    memset(sum, 0, n * sizeof *sum);
    for (size_t k = 0; k < m->n_part; k++) {
        CD_TRY(cd_model_part_predict(&m->part[k], s, row, row_ptr, device, n, one, err));
        for (size_t i = 0; i < n; i++) sum[i] += m->part[k].weight * one[i];
    }
    for (size_t i = 0; i < n; i++)
        if (!isfinite(sum[i])) return CD_FAIL(err, ENUMERIC, "program %zu: the model gives no finite latency", i);
    for (size_t i = 0; i < n; i++) latency_s[i] = exp(fmax(m->log_min, fmin(sum[i], m->log_max)));
    return CDMPP_OK;
}

void cd_model_free(cd_model *m) {
    if (!m) return;
    for (size_t k = 0; k < m->n_part; k++) cd_gbt_free(m->part[k].gbt);
    cd_arena_free(&m->arena);
    cd_free(m);
}

const char *cd_model_header(const cd_model *m) { return m->header; }
size_t cd_model_n_device(const cd_model *m) { return m->n_device; }
const char *cd_model_device(const cd_model *m, size_t i) { return m->device[i]; }
int cd_model_device_is_gpu(const cd_model *m, size_t i) { return m->device_is_gpu[i]; }

int cd_model_find_device(const cd_model *m, const char *name, size_t n) {
    for (size_t i = 0; i < m->n_device; i++)
        if (strlen(m->device[i]) == n && !memcmp(m->device[i], name, n)) return (int)i;
    return -1;
}
