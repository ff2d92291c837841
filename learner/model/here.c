/* Key "here" of a model's header: written into the bytes of a model file, read, and applied to predictions. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "learner/model/model_internal.h"

enum { MAX_HEADER = 64 << 20 };

const cd_here *cd_model_here(const cd_model *m) { return m->here; }

/* ---- applied ---- */
/* Both ends move away from the median by the same factor on the logarithm. Median and answer stay, and the answer stays inside: it may lie at the lower end,
 * so that nothing can be measured by its distance from there. What the model expects of its error moves with the ends. */
static void widen(cd_model_prediction *p, double factor) {
    if (isnan(p->low_s)) return;
    p->low_s = fmin(p->median_s * pow(p->low_s / p->median_s, factor), p->latency_s);
    p->high_s = fmax(p->median_s * pow(p->high_s / p->median_s, factor), p->latency_s);
    p->rel_std *= factor;
}

bool cd_here_apply(const cd_here *h, uint32_t device, const char *task, const float trait[CD_N_TRAIT], cd_model_prediction *p) {
    if (!h || !h->adapt || device != h->device) return false;
    if (!cd_online_adapt_apply(h->adapt, CD_HERE_ADAPTED, task, trait, p)) return false;
    widen(p, h->widen);
    p->like_std = p->rel_std; /* what measured programs of another device may correct next */
    return true;
}

double cd_here_beyond(const cd_model_prediction *p, double measured_s) {
    const double end = measured_s < p->median_s ? p->low_s : p->high_s;
    return log(measured_s / p->median_s) / log(end / p->median_s);
}

/* ---- written ---- */
/* The last '}' of the header opens again for one more member. */
static void put(const cd_here *h, const char *device, const char *more, cd_str header, cd_buf *out) {
    size_t n = header.n;
    while (n && header.p[n - 1] != '}') n--;
    cd_buf_put(out, header.p, n ? n - 1 : 0);
    cd_buf_puts(out, ",\"here\":{\"device\":");
    cd_buf_put_json_str(out, device, strlen(device));
    cd_buf_puts(out, ",\"name\":");
    cd_buf_put_json_str(out, h->name, strlen(h->name));
    cd_buf_puts(out, ",\"cpu\":");
    cd_buf_put_json_str(out, h->cpu, strlen(h->cpu));
    cd_buf_putf(out, ",\"programs\":%u,\"widen\":%.17g,%s%s\"adapt\":", h->programs, h->widen, more, more[0] ? "," : "");
    cd_online_adapt_write(h->adapt, "", out);
    cd_buf_puts(out, "}}");
}

cdmpp_status cd_here_add(const void *file, size_t n, const cd_here *h, const char *more, cd_buf *out, cdmpp_err *err) {
    cd_container f;
    cd_model *m = NULL;
    cd_buf header = {0}, weights = {0};
    CD_TRY(cd_container_get(CD_CONTAINER_MODEL, file, n, &f, err));
    CD_TRY(cd_model_from_bytes(file, n, &m, err));
    cdmpp_status st = CDMPP_OK;
    if (m->here) st = CD_FAIL(err, EUSAGE, "the model is corrected for a machine already: calibrate from the model that it was made of");
    else if (f.version < 2) st = CD_FAIL(err, EMODEL, "a model of version 1 knows no uncertainty, by which a correction goes");
    else if (h->device >= m->n_device) st = CD_FAIL(err, EMODEL, "the model has no device %u", h->device);
    if (!st) put(h, m->device[h->device], more, f.header, &header);
    if (!st) cd_buf_put(&weights, f.weights.p, f.weights.n);
    if (!st) st = cd_container_put_as(CD_CONTAINER_MODEL, CD_CONTAINER_MODEL_HERE, out, &header, &weights, err);
    cd_buf_free(&header);
    cd_buf_free(&weights);
    cd_model_free(m);
    return st;
}

/* ---- read ---- */
static cdmpp_status read_texts(cd_model *m, cd_here *h, const cd_json *v, cdmpp_err *err) {
    cd_str device, name, cpu;
    CD_TRY(cd_json_need_str(v, "device", &device, err));
    CD_TRY(cd_json_need_str(v, "name", &name, err));
    CD_TRY(cd_json_need_str(v, "cpu", &cpu, err));
    const int k = cd_model_find_device(m, device.p, device.n);
    if (k < 0) return cd_err_key(err, CD_FAIL(err, EMODEL, "the model has no device '%.*s'", device.n > 60 ? 60 : (int)device.n, device.p), "device");
    h->device = (uint32_t)k;
    h->name = cd_str_dup(&m->arena, name);
    h->cpu = cd_str_dup(&m->arena, cpu);
    return h->name && h->cpu ? CDMPP_OK : CD_FAIL(err, ENOMEM, "names");
}

/* m->here is set last: a name that is looked up before is one of the model's own. */
static cdmpp_status read_here(cd_model *m, const cd_json *v, cdmpp_err *err) {
    const cd_json *adapt, *n;
    int64_t programs;
    cd_here *h = CD_NEW(&m->arena, cd_here);
    if (!h) return CD_FAIL(err, ENOMEM, "correction");
    CD_TRY(read_texts(m, h, v, err));
    CD_TRY(cd_json_need(v, "programs", &n, err));
    CD_TRY(cd_err_key(err, cd_json_int(n, 1, INT32_MAX, &programs, err), "programs"));
    h->programs = (uint32_t)programs;
    CD_TRY(cd_json_need_real(v, "widen", 1e-3, 1e3, &h->widen, err));
    CD_TRY(cd_json_need(v, "adapt", &adapt, err));
    CD_TRY(cd_err_key(err, cd_online_adapt_take(adapt, "", &h->adapt, err), "adapt"));
    m->here = h;
    return CDMPP_OK;
}

/* The small model knows the machine by the same name. */
static cdmpp_status read_tuner(cd_model *m, cdmpp_err *err) {
    if (!m->tuner) return CDMPP_OK;
    cd_here *h = CD_NEW(&m->arena, cd_here);
    if (!h) return CD_FAIL(err, ENOMEM, "correction");
    *h = *m->here;
    h->adapt = NULL;
    m->tuner->here = h;
    return CDMPP_OK;
}

cdmpp_status cd_here_read(cd_model *m, const cd_json *root, cdmpp_err *err) {
    const cd_json *v = cd_json_get(root, "here");
    if (!v) return CDMPP_OK;
    CD_TRY(cd_err_key(err, read_here(m, v, err), "here"));
    return read_tuner(m, err);
}

/* ---- looked at ---- */
static uint64_t number(const unsigned char *p, int n) {
    uint64_t v = 0;
    for (int i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

/* Only the header is read: the model may be large, and who loads it checks its sum. */
void cd_here_look(const char *path, cd_arena *a, const cd_json **out) {
    unsigned char fixed[32];
    const cd_json *root;
    char *text = NULL;
    *out = NULL;
    FILE *f = fopen(path, "rb");
    if (!f) return;
    const bool model = fread(fixed, 1, sizeof fixed, f) == sizeof fixed && !memcmp(fixed, "CDMPPMDL", 8) && number(fixed + 8, 4) == CD_CONTAINER_MODEL_HERE;
    const uint64_t n = model ? number(fixed + 16, 8) : 0;
    if (n && n <= MAX_HEADER) text = cd_arena_zalloc(a, (size_t)n + 1, 1);
    if (text && fread(text, 1, (size_t)n, f) == n && !cd_json_parse(a, text, (size_t)n, &root, NULL)) *out = cd_json_get(root, "here");
    (void)fclose(f);
}
