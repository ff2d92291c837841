/* Key "here" of a model's header: written into the bytes of a model file, read, and applied to
 * predictions. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/io.h"
#include "learner/loss/loss.h"
#include "learner/model/model.h"
#include "learner/model/model_internal.h"

/* The trees of a correction: what programs measured on a machine teach about the others. Trained by
 * XGBoost, kept as our own walk reads them. */

/* Some hundred programs: small steps, several trees in each, and a part of programs and columns for
 * each tree. Chosen on CPUs of examples/ that were left out of the model: one tree a step, or
 * shallower ones, were off by some percent more. */
enum { ROUNDS = 120 };
static const cd_xgb_param fixed_fit[] = {{"tree_method", "hist"},   {"max_depth", "8"},
                                         {"eta", "0.08"},           {"num_parallel_tree", "3"},
                                         {"lambda", "1"},           {"max_bin", "64"},
                                         {"subsample", "0.8"},      {"colsample_bytree", "0.3"},
                                         {"min_child_weight", "1"}, {"nthread", "1"}};
enum { FIXED = sizeof fixed_fit / sizeof *fixed_fit };

typedef struct grower {
    cd_xgb_data *data;
    cd_xgb *trees;
    float *grad, *hess, *score; /* (n) */
} grower;

static cdmpp_status start(grower *g, const float *x, size_t n, size_t width, uint64_t seed,
                          cdmpp_err *err) {
    char text[32];
    cd_xgb_param p[FIXED + 1];
    snprintf(text, sizeof text, "%u", (unsigned)(seed & 0x7fffffff));
    memcpy(p, fixed_fit, sizeof fixed_fit);
    p[FIXED] = (cd_xgb_param){"seed", text};
    g->grad = cd_mem_zalloc(n + 1, sizeof *g->grad);
    g->hess = cd_mem_zalloc(n + 1, sizeof *g->hess);
    g->score = cd_mem_zalloc(n + 1, sizeof *g->score);
    if (!g->grad || !g->hess || !g->score) return CD_FAIL(err, ENOMEM, "%zu programs", n);
    CD_TRY(cd_xgb_data_new(x, n, width, 1, &g->data, err));
    return cd_xgb_new(g->data, NULL, p, sizeof p / sizeof *p, &g->trees, err);
}

static cdmpp_status grow(const grower *g, const double *off, double bias, size_t n,
                         cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) g->hess[i] = 1;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < n; i++)
            g->grad[i] = cd_tree_loss_round(
                cd_tree_loss_gradient(CD_TREE_LOSS_HUBER, bias + (double)g->score[i] - off[i], 1));
        CD_TRY(cd_xgb_boost(g->trees, g->data, g->grad, g->hess, err));
        CD_TRY(cd_xgb_scores(g->trees, g->data, g->score, err));
    }
    return CDMPP_OK;
}

/* As a file would hold it: a booster that was read is immutable and answers without XGBoost. */
static cdmpp_status keep(const grower *g, size_t width, cd_xgb **out, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_xgb_save(g->trees, &b, err);
    if (!st) st = cd_xgb_load(b.p, b.n, width, out, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status middle(const double *off, size_t n, double *out, cdmpp_err *err) {
    double *v = cd_mem_zalloc(n + 1, sizeof *v);
    if (!v) return CD_FAIL(err, ENOMEM, "%zu programs", n);
    for (size_t i = 0; i < n; i++) v[i] = off[i];
    cd_sort_doubles(v, n);
    *out = cd_sort_median(v, n);
    cd_mem_free(v);
    return CDMPP_OK;
}

cdmpp_status cd_here_fit(const float *x, const double *off, size_t n, size_t width, uint64_t seed,
                         cd_here_trees *out, cdmpp_err *err) {
    grower g = {0};
    *out = (cd_here_trees){.share = 1};
    if (!n) return CD_FAIL(err, ENODATA, "no program to learn from");
    CD_TRY(middle(off, n, &out->bias, err));
    cdmpp_status st = start(&g, x, n, width, seed, err);
    if (!st) st = grow(&g, off, out->bias, n, err);
    if (!st) st = keep(&g, width, &out->gbt, err);
    cd_xgb_free(g.trees);
    cd_xgb_data_free(g.data);
    cd_mem_free(g.grad);
    cd_mem_free(g.hess);
    cd_mem_free(g.score);
    return st;
}

enum { MAX_HEADER = 64 << 20 };

const cd_here *cd_model_here(const cd_model *m) { return m->here; }
uint32_t cd_model_stands_for(const cd_model *m, uint32_t i) {
    return m->here && i == m->here->device ? m->here->stands : i;
}

/* ---- applied ---- */
/* Both ends move away from the median by the same factor on the logarithm. The median stays, and
 * the answer stays inside: it may lie at the lower end, so that nothing can be measured by its
 * distance from there. That distance goes with the square of what the model expects of its error
 * (calibration.h), which moves with the ends: it shrinks where less is unknown, and never grows. */
static double factor_of(double end_s, double median_s, double factor, double most) {
    const double far = fabs(log(end_s / median_s));
    return factor > 1 && factor * far > most ? fmax(1, most / far) : factor;
}

static void widen_ends(cd_model_prediction *p, double factor, double most) {
    p->latency_s = p->median_s * pow(p->latency_s / p->median_s, fmin(1, factor * factor));
    if (isnan(p->low_s)) return;
    const double low = factor_of(p->low_s, p->median_s, factor, most),
                 high = factor_of(p->high_s, p->median_s, factor, most);
    p->low_s = fmin(p->median_s * pow(p->low_s / p->median_s, low), p->latency_s);
    p->high_s = fmax(p->median_s * pow(p->high_s / p->median_s, high), p->latency_s);
    p->rel_std *= fmax(low, high);
}

/* Errors of two causes that know nothing of each other. Neither end comes nearer. */
static void add_noise(cd_model_prediction *p, double noise) {
    const double by = cd_here_noise_log(noise), low = log(p->median_s / p->low_s),
                 high = log(p->high_s / p->median_s);
    if (!(noise > 0) || isnan(p->low_s)) return;
    const double low_by = hypot(low, by), high_by = hypot(high, by);
    p->low_s = fmin(p->median_s * exp(-low_by), p->low_s);
    p->high_s = fmax(p->median_s * exp(high_by), p->high_s);
    if (fmax(low, high) > 0) p->rel_std *= fmax(low_by, high_by) / fmax(low, high);
}

void cd_here_move(double off, double widen, double most, double noise, cd_model_prediction *p) {
    const double times = exp(off), std = p->like_std;
    p->latency_s *= times;
    p->median_s *= times;
    p->order_s *= times;
    p->low_s *= times;
    p->high_s *= times;
    widen_ends(p, widen, most);
    add_noise(p, noise);
    /* what lies between the median and the mean: a few wide misses do not say more of it */
    p->like_std = std * fmin(1, widen);
}

size_t cd_here_width(const cd_model *m) {
    return cd_tree_input_width(CD_TREE_INPUT_PROGRAM) +
           (cd_model_needs_facts(m) ? CD_N_FACTS_COL : 0) + 1;
}

/* The device is always the same one. */
void cd_here_see(const cd_model *m, const cd_program_view *v, size_t p,
                 const cd_model_prediction *answer, float *x) {
    const size_t n_row = (size_t)(v->row_ptr[p + 1] - v->row_ptr[p]);
    *x++ = (float)log(answer->median_s);
    if (cd_model_needs_facts(m)) {
        cd_facts_input_fill(v, p, x);
        x += CD_N_FACTS_COL;
    }
    cd_tree_input_fill(CD_TREE_INPUT_PROGRAM, v->row + v->row_ptr[p] * CD_N_COL, n_row, 0, x);
}

cdmpp_status cd_here_off(const cd_here_trees *t, const float *x, size_t width, double *off,
                         cdmpp_err *err) {
    float score;
    CD_TRY(cd_xgb_predict(t->gbt, x, 1, width, &score, err));
    *off = t->bias + t->share * (double)score;
    return CDMPP_OK;
}

cdmpp_status cd_here_apply(const cd_model *m, const cd_program_view *v, size_t p,
                           cd_model_prediction *answer, cdmpp_err *err) {
    const cd_here *h = m->here;
    float x[CD_HERE_WIDTH];
    double off;
    if (!h || !h->trees.gbt || v->device[p] != h->device) return CDMPP_OK;
    cd_here_see(m, v, p, answer, x);
    CD_TRY(cd_here_off(&h->trees, x, cd_here_width(m), &off, err));
    cd_here_move(off, h->widen, h->most, h->noise, answer);
    return cd_model_check_answer(answer, p, err);
}

double cd_here_beyond(const cd_model_prediction *p, double most, double measured_s) {
    const double end = log((measured_s < p->median_s ? p->low_s : p->high_s) / p->median_s),
                 far = log(measured_s / p->median_s);
    return fabs(far) > fmax(fabs(end), most) ? (double)INFINITY : far / end;
}

double cd_here_picks(const double *ratio, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += fmin(fmax(ratio[i], 0.5), 2);
    return n < CD_HERE_PICKS ? 0 : sum / (double)n;
}

/* ---- written ---- */
/* The last '}' of the header opens again for one more member. */
static void put(const cd_here *h, const char *device, const char *more, cd_str header, size_t at,
                cd_buf *out) {
    size_t n = header.n;
    while (n && header.p[n - 1] != '}') n--;
    cd_buf_put(out, header.p, n ? n - 1 : 0);
    cd_buf_puts(out, ",\"here\":{\"device\":");
    cd_buf_put_json_str(out, device, strlen(device));
    cd_buf_puts(out, ",\"name\":");
    cd_buf_put_json_str(out, h->name, strlen(h->name));
    cd_buf_puts(out, ",\"cpu\":");
    cd_buf_put_json_str(out, h->cpu, strlen(h->cpu));
    if (h->marks && h->marks[0]) {
        cd_buf_puts(out, ",\"marks\":");
        cd_buf_put_json_str(out, h->marks, strlen(h->marks));
    }
    cd_buf_putf(out, ",\"programs\":%u,\"widen\":%.17g,", h->programs, h->widen);
    if (isfinite(h->most)) cd_buf_putf(out, "\"most\":%.17g,", h->most);
    if (h->noise > 0) cd_buf_putf(out, "\"measured_noise\":%.17g,", h->noise);
    if (h->picks > 0) cd_buf_putf(out, "\"picks\":%.17g,", h->picks);
    if (h->stands_chooses) cd_buf_puts(out, "\"chooses\":\"stand-in\",");
    cd_buf_putf(out, "%s%s\"bias\":%.17g,\"share\":%.17g,\"at\":%zu", more, more[0] ? "," : "",
                h->trees.bias, h->trees.share, at);
    if (h->numbers) cd_model_facts_put_device(out, h->numbers);
    cd_buf_puts(out, "}}");
}

cdmpp_status cd_here_add(const void *file, size_t n, const cd_here *h, const char *more,
                         cd_buf *out, cdmpp_err *err) {
    cd_container f;
    cd_model *m = NULL;
    cd_buf header = {0}, weights = {0};
    CD_TRY(cd_container_get(CD_CONTAINER_MODEL, file, n, &f, err));
    CD_TRY(cd_model_from_bytes(file, n, &m, err));
    cdmpp_status st = CDMPP_OK;
    if (m->here)
        st = CD_FAIL(err, EUSAGE,
                     "the model is corrected for a machine already: calibrate from the model that "
                     "it was made of");
    else if (f.version < 2)
        st = CD_FAIL(err, EMODEL,
                     "a model of version 1 knows no uncertainty, by which a correction goes");
    else if (h->stands >= m->n_device)
        st = CD_FAIL(err, EMODEL, "the model has no device %u", h->stands);
    if (!st) put(h, m->device[h->stands], more, f.header, f.weights.n, &header);
    if (!st) cd_buf_put(&weights, f.weights.p, f.weights.n);
    if (!st) st = cd_xgb_save(h->trees.gbt, &weights, err);
    if (!st)
        st = cd_container_put_as(CD_CONTAINER_MODEL,
                                 m->order ? CD_CONTAINER_MODEL_ORDER : CD_CONTAINER_MODEL_HERE, out,
                                 &header, &weights, err);
    cd_buf_free(&header);
    cd_buf_free(&weights);
    cd_model_free(m);
    return st;
}

/* ---- read ---- */
static cdmpp_status read_texts(cd_model *m, cd_here *h, const cd_json *v, cdmpp_err *err) {
    cd_str device, name, cpu, marks;
    CD_TRY(cd_json_need_str(v, "device", &device, err));
    CD_TRY(cd_json_need_str(v, "name", &name, err));
    CD_TRY(cd_json_need_str(v, "cpu", &cpu, err));
    const int k = cd_model_find_device(m, device.p, device.n);
    if (k < 0)
        return cd_err_key(err,
                          CD_FAIL(err, EMODEL, "the model has no device '%.*s'",
                                  device.n > 60 ? 60 : (int)device.n, device.p),
                          "device");
    h->stands = (uint32_t)k;
    h->name = cd_str_dup(&m->arena, name);
    h->cpu = cd_str_dup(&m->arena, cpu);
    h->marks = NULL; /* absent in files of earlier versions */
    if (cd_json_get(v, "marks")) {
        CD_TRY(cd_json_need_str(v, "marks", &marks, err));
        if (!(h->marks = cd_str_dup(&m->arena, marks))) return CD_FAIL(err, ENOMEM, "marks");
    }
    return h->name && h->cpu ? CDMPP_OK : CD_FAIL(err, ENOMEM, "names");
}

/* What was trained on the device that stands for it counts as known of the machine, and so does
 * what was measured there. */
static cdmpp_status add_marks(cd_model *m, const cd_here *h, cdmpp_err *err) {
    const char **more = NULL, *p = h->marks ? h->marks : "";
    size_t n = 0, cap = 0;
    cd_trained_on *t;
    if (!m->trained_on) return CDMPP_OK;
    for (cd_str mark; cd_signature_next(&p, &mark); n++)
        if (CD_GROW_IN(&m->arena, more, n, cap) || !(more[n] = cd_str_dup(&m->arena, mark)))
            return CD_FAIL(err, ENOMEM, "marks");
    CD_TRY(cd_trained_on_more(&m->arena, m->trained_on, h->device, h->stands, more, n, &t, err));
    m->trained_on = t;
    return CDMPP_OK;
}

/* The machine behind the other devices, described as the one that stands for it, but for what
 * analytic times are computed with: the trees were fitted to such answers. */
static cdmpp_status add_device(cd_model *m, cd_here *h, const cd_json *v, cdmpp_err *err) {
    const int known = cd_model_find_device(m, h->name, strlen(h->name));
    const size_t n = m->n_device, w = m->w_device;
    h->device = known < 0 ? (uint32_t)n : (uint32_t)known;
    if (known >= 0) return add_marks(m, h, err);
    const char **name = CD_NEWN(&m->arena, const char *, n + 1);
    uint8_t *gpu = CD_NEWN(&m->arena, uint8_t, n + 1);
    float *vector = CD_NEWN(&m->arena, float, (n + 1) * w + 1);
    cd_device_numbers *numbers = m->numbers ? CD_NEWN(&m->arena, cd_device_numbers, n + 1) : NULL;
    if (m->arena.oom) return CD_FAIL(err, ENOMEM, "devices");
    memcpy(name, m->device, n * sizeof *name);
    memcpy(gpu, m->device_is_gpu, n);
    memcpy(vector, m->device_vector, n * w * sizeof *vector);
    memcpy(vector + n * w, vector + h->stands * w, w * sizeof *vector);
    name[n] = h->name;
    gpu[n] = gpu[h->stands];
    if (numbers) {
        memcpy(numbers, m->numbers, n * sizeof *numbers);
        numbers[n] = numbers[h->stands];
        numbers[n].name = h->name;
    }
    m->device = name, m->device_is_gpu = gpu, m->device_vector = vector, m->numbers = numbers;
    m->n_device++;
    if (numbers && cd_json_get(v, "numbers")) CD_TRY(cd_model_facts_read_device(m, n, v, err));
    h->numbers = numbers ? &numbers[n] : NULL;
    return add_marks(m, h, err);
}

static cdmpp_status read_chooses(cd_here *h, const cd_json *v, cdmpp_err *err) {
    cd_str who;
    CD_TRY(cd_json_need_str(v, "chooses", &who, err));
    h->stands_chooses = cd_str_is(who, "stand-in");
    return h->stands_chooses
               ? CDMPP_OK
               : cd_err_key(err,
                            CD_FAIL(err, EMODEL, "expected \"stand-in\", found '%.*s'",
                                    who.n > 60 ? 60 : (int)who.n, who.p),
                            "chooses");
}

static cdmpp_status read_here(cd_model *m, const cd_json *v, cd_str weights, cdmpp_err *err) {
    const cd_json *n;
    int64_t programs;
    cd_here *h = CD_NEW(&m->arena, cd_here);
    if (!h) return CD_FAIL(err, ENOMEM, "correction");
    CD_TRY(read_texts(m, h, v, err));
    CD_TRY(cd_json_need(v, "programs", &n, err));
    CD_TRY(cd_err_key(err, cd_json_int(n, 1, INT32_MAX, &programs, err), "programs"));
    h->programs = (uint32_t)programs;
    CD_TRY(cd_json_need_real(v, "widen", 1e-3, 1e3, &h->widen, err));
    h->most = (double)INFINITY; /* of files of earlier versions */
    if (cd_json_get(v, "most")) CD_TRY(cd_json_need_real(v, "most", 0, 1e3, &h->most, err));
    if (cd_json_get(v, "measured_noise"))
        CD_TRY(cd_json_need_real(v, "measured_noise", 0, 100, &h->noise, err));
    if (cd_json_get(v, "picks")) CD_TRY(cd_json_need_real(v, "picks", 1e-3, 1e3, &h->picks, err));
    if (cd_json_get(v, "chooses")) CD_TRY(read_chooses(h, v, err));
    CD_TRY(cd_json_need_real(v, "bias", -100, 100, &h->trees.bias, err));
    CD_TRY(cd_json_need_real(v, "share", 0, 1, &h->trees.share, err));
    CD_TRY(cd_xgb_load(weights.p, weights.n, cd_here_width(m), &h->trees.gbt, err));
    m->here = h; /* who owns the trees now */
    return add_device(m, h, v, err);
}

/* The small model knows the machine by the same name. */
static cdmpp_status read_tuner(cd_model *m, cdmpp_err *err) {
    if (!m->tuner) return CDMPP_OK;
    cd_here *h = CD_NEW(&m->arena, cd_here);
    if (!h) return CD_FAIL(err, ENOMEM, "correction");
    *h = *m->here;
    h->trees = (cd_here_trees){0};
    cd_model *t = m->tuner;
    t->here = h;
    t->n_device = m->n_device;
    t->device = m->device;
    t->device_is_gpu = m->device_is_gpu;
    t->device_vector = m->device_vector;
    t->trained_on = m->trained_on;
    return CDMPP_OK;
}

cdmpp_status cd_here_read(cd_model *m, const cd_json *root, cd_str weights, cdmpp_err *err) {
    const cd_json *v = cd_json_get(root, "here");
    if (!v) return CDMPP_OK;
    CD_TRY(cd_err_key(err, read_here(m, v, weights, err), "here"));
    return read_tuner(m, err);
}

/* ---- looked at ---- */
static uint64_t number(const unsigned char *p, int n) {
    uint64_t v = 0;
    for (int i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

/* Nobody named it: what is no file, a pipe, would be waited for. */
static FILE *open_file(const char *path) {
    struct stat s;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    FILE *f = fd >= 0 && !fstat(fd, &s) && S_ISREG(s.st_mode) ? fdopen(fd, "rb") : NULL;
    if (!f && fd >= 0) (void)close(fd);
    return f;
}

/* Only the header is read: the model may be large, and who loads it checks its sum. NULL: it is no
 * model that was corrected. */
static const cd_json *header_of(const char *path, cd_arena *a, uint64_t *version) {
    unsigned char fixed[32];
    const cd_json *root, *out = NULL;
    char *text = NULL;
    *version = 0;
    FILE *f = open_file(path);
    if (!f) return NULL;
    const bool model = fread(fixed, 1, sizeof fixed, f) == sizeof fixed &&
                       !memcmp(fixed, "CDMPPMDL", 8) &&
                       number(fixed + 8, 4) >= CD_CONTAINER_MODEL_HERE;
    const uint64_t n = model ? number(fixed + 16, 8) : 0;
    if (n && n <= MAX_HEADER) text = cd_arena_zalloc(a, (size_t)n + 1, 1);
    if (text && fread(text, 1, (size_t)n, f) == n &&
        !cd_json_parse(a, text, (size_t)n, &root, NULL))
        out = root;
    if (out) *version = number(fixed + 8, 4);
    (void)fclose(f);
    return out;
}

void cd_here_look(const char *path, cd_arena *a, const cd_json **out, bool *fits) {
    uint64_t version;
    const cd_json *root = header_of(path, a, &version);
    const cd_json *model = root ? cd_json_get(root, "model") : NULL;
    *out = root ? cd_json_get(root, "here") : NULL;
    if (fits)
        *fits =
            model && version <= CD_CONTAINER_MODEL_ORDER && !cd_model_features_check(model, NULL);
}
