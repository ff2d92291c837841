/* The identity of a machine: read, written, compared. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/describe/describe.h"
#include "profiler/host/host.h"

/* Drivers keep some of a GPU's memory for themselves, and not all of them the same. */
static const double memory_alike = 0.05;

static const struct {
    const char *key, *name;
    bool needed; /* unknown is another value */
} numbers[CD_N_IDENTITY] = {{"cores", "cores", true},     {"vector_bits", "bits of a vector", true},
                            {"l1_kb", "KB of L1", false}, {"l2_kb", "KB of L2", false},
                            {"l3_kb", "KB of L3", false}, {"memory_gb", "GB of memory", false}};

static void copy_text(char *to, size_t n, const char *from) {
    (void)snprintf(to, n, "%.*s", (int)n - 1, from);
}

/* x86 counts in decimal, Arm in hexadecimal. */
static int number_of(const char *root, const char *field) {
    char text[32], *end;
    if (!cd_host_info_field(root, field, text, sizeof text)) return -1;
    const long v = strtol(text, &end, 0);
    return end == text || v < 0 || v > 1 << 20 ? -1 : (int)v;
}

cd_describe_identity cd_describe_identity_named(const char *says) {
    cd_describe_identity i = {.family = -1, .model = -1};
    for (int k = 0; k < CD_N_IDENTITY; k++) i.number[k] = CD_DEVICE_UNKNOWN;
    copy_text(i.says, sizeof i.says, says);
    return i;
}

cdmpp_status cd_describe_identity_cpu(const char *root, cd_describe_identity *out, cdmpp_err *err) {
    cd_describe_entry e;
    cd_host_info host;
    *out = cd_describe_identity_named("");
    CD_TRY(cd_describe_cpu(root, false, &e, err));
    cd_host_info_read(root, &host);
    *out = cd_describe_identity_named(host.cpu[0] ? host.cpu : "unknown processor");
    const bool x86 = cd_host_info_field(root, "vendor_id", out->maker, sizeof out->maker);
    if (!x86) (void)cd_host_info_field(root, "CPU implementer", out->maker, sizeof out->maker);
    out->family = number_of(root, x86 ? "cpu family" : "CPU architecture");
    out->model = number_of(root, x86 ? "model" : "CPU part");
    const char *march = cd_describe_microarch(out->maker, out->family, out->model);
    copy_text(out->microarch, sizeof out->microarch, march ? march : "");
    copy_text(out->isa, sizeof out->isa, e.note[CD_DESCRIBE_KEY_simd_bits]);
    const cd_device *d = &e.device;
    const double value[CD_N_IDENTITY] = {d->cores, d->simd_bits, d->l1_kb,
                                         d->l2_kb, d->l3_kb,     CD_DEVICE_UNKNOWN};
    memcpy(out->number, value, sizeof value);
    return CDMPP_OK;
}

void cd_describe_identity_gpu(const cd_describe_entry *e, cd_describe_identity *out) {
    cd_describe_name name;
    const cd_device *d = &e->device;
    const double value[CD_N_IDENTITY] = {d->cores, d->simd_bits, d->l1_kb,
                                         d->l2_kb, d->l3_kb,     d->mem_gb};
    cd_describe_name_entry(e, NULL, &name);
    *out = cd_describe_identity_named(name.says);
    memcpy(out->number, value, sizeof value);
}

/* ---- in a file ---- */
static void put_text(cd_buf *b, const char *key, const char *text) {
    cd_buf_putf(b, "\"%s\":", key);
    cd_buf_put_json_str(b, text, strlen(text));
    cd_buf_puts(b, ",");
}

void cd_describe_identity_put(cd_buf *b, const cd_describe_identity *i) {
    cd_buf_puts(b, "{");
    put_text(b, "says", i->says);
    put_text(b, "maker", i->maker);
    put_text(b, "microarch", i->microarch);
    put_text(b, "isa", i->isa);
    cd_buf_putf(b, "\"family\":%d,\"model\":%d", i->family, i->model);
    for (int k = 0; k < CD_N_IDENTITY; k++)
        if (i->number[k] >= 0) cd_buf_putf(b, ",\"%s\":%.9g", numbers[k].key, i->number[k]);
    cd_buf_puts(b, "}");
}

static cdmpp_status read_text(const cd_json *v, const char *key, char *to, size_t n,
                              cdmpp_err *err) {
    cd_str s;
    CD_TRY(cd_json_need_str(v, key, &s, err));
    (void)snprintf(to, n, "%.*s", (int)(s.n < n ? s.n : n), s.p);
    return CDMPP_OK;
}

static cdmpp_status read_whole(const cd_json *v, const char *key, int *out, cdmpp_err *err) {
    const cd_json *x;
    int64_t k;
    CD_TRY(cd_json_need(v, key, &x, err));
    CD_TRY(cd_err_key(err, cd_json_int(x, -1, 1 << 20, &k, err), key));
    *out = (int)k;
    return CDMPP_OK;
}

cdmpp_status cd_describe_identity_read(const cd_json *v, cd_describe_identity *out,
                                       cdmpp_err *err) {
    *out = cd_describe_identity_named("");
    CD_TRY(read_text(v, "says", out->says, sizeof out->says, err));
    CD_TRY(read_text(v, "maker", out->maker, sizeof out->maker, err));
    CD_TRY(read_text(v, "microarch", out->microarch, sizeof out->microarch, err));
    CD_TRY(read_text(v, "isa", out->isa, sizeof out->isa, err));
    CD_TRY(read_whole(v, "family", &out->family, err));
    CD_TRY(read_whole(v, "model", &out->model, err));
    for (int k = 0; k < CD_N_IDENTITY; k++) {
        if (cd_json_get(v, numbers[k].key))
            CD_TRY(cd_json_need_real(v, numbers[k].key, 0, 1e12, &out->number[k], err));
    }
    return CDMPP_OK;
}

/* ---- compared ---- */
typedef struct {
    char *p;
    size_t n;
} words;

static void add(words *w, const char *what, const char *file, const char *here) {
    const size_t at = strlen(w->p);
    (void)snprintf(w->p + at, w->n - at, "%s%s %s (here %s)", at ? ", " : "", what,
                   file[0] ? file : "unknown", here[0] ? here : "unknown");
}

/* "zen3", where the maker's numbers are listed; else, and where two kinds are listed under one
 * name, these numbers. */
static void kind_of(const cd_describe_identity *i, bool full, char out[96]) {
    if (i->microarch[0] && !full) (void)snprintf(out, 96, "%s", i->microarch);
    else if (!i->maker[0] && i->family < 0) out[0] = 0;
    else
        (void)snprintf(out, 96, "%s%s%s family %d model %d", i->microarch,
                       i->microarch[0] ? ", " : "", i->maker, i->family, i->model);
}

static void number_text(double v, char out[32]) {
    out[0] = 0;
    if (v >= 0) (void)snprintf(out, 32, "%.6g", v);
}

static bool alike(int k, double a, double b) {
    if (a < 0 && b < 0) return true;
    if (a < 0 || b < 0) return !numbers[k].needed;
    return k == CD_IDENTITY_MEMORY_GB ? fabs(a - b) <= memory_alike * fmax(a, b) : a == b;
}

bool cd_describe_identity_differs(const cd_describe_identity *file,
                                  const cd_describe_identity *here, char out[CD_DESCRIBE_DIFFERS]) {
    words w = {out, CD_DESCRIBE_DIFFERS};
    char a[96], b[96], x[32], y[32];
    out[0] = 0;
    if (strcmp(file->says, here->says) != 0) add(&w, "name", file->says, here->says);
    if (strcmp(file->maker, here->maker) != 0 || file->family != here->family ||
        file->model != here->model) {
        const bool full = !strcmp(file->microarch, here->microarch);
        kind_of(file, full, a);
        kind_of(here, full, b);
        add(&w, "microarchitecture", a, b);
    }
    if (strcmp(file->isa, here->isa) != 0) add(&w, "instruction set", file->isa, here->isa);
    for (int k = 0; k < CD_N_IDENTITY; k++) {
        if (alike(k, file->number[k], here->number[k])) continue;
        number_text(file->number[k], x);
        number_text(here->number[k], y);
        add(&w, numbers[k].name, x, y);
    }
    return out[0] != 0;
}
