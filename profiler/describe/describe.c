/* Entries of devices.yaml: their numbers by key, their names, their text. The keys come from
 * features/device's table, so that a new key needs no change here. */
#include "base/text/text.h"
#include "profiler/describe/describe.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *key, *unit;
    size_t offset;
    double low, high;
} keys[CD_N_DESCRIBE_KEY] = {
#define X(key, low, high, unit, meaning) {#key, unit, offsetof(cd_device, key), low, high},
#include "features/device/device_keys.def"
};

static double *slot(cd_device *d, int k) { return (double *)(void *)((char *)d + keys[k].offset); }

void cd_describe_entry_init(cd_describe_entry *d, cd_device_kind kind) {
    memset(d, 0, sizeof *d);
    d->device.kind = kind;
    d->device.name = d->name;
    for (int k = 0; k < CD_N_DESCRIBE_KEY; k++) *slot(&d->device, k) = CD_DEVICE_UNKNOWN;
    snprintf(d->name, sizeof d->name, "unknown-%s", cd_device_kind_name(kind));
}

void cd_describe_entry_set(cd_describe_entry *d, int key, double value, const char *note) {
    if (!(value >= keys[key].low && value <= keys[key].high)) return;
    *slot(&d->device, key) = value;
    snprintf(d->note[key], sizeof d->note[key], "%s", note ? note : "");
}

/* ---- names ---- */

/* Words of the kind of device, which do not distinguish one from another. */
static bool idle_word(const char *w, size_t n) {
    static const char *const word[] = {"cpu", "processor", "(r)",  "(tm)",    "r",
                                       "tm",  "gpu",       "with", "graphics"};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (strlen(word[i]) == n && !strncmp(w, word[i], n)) return true;
    return n > 5 && !strncmp(w + n - 5, "-core", 5);
}

void cd_describe_entry_set_name(cd_describe_entry *d, const char *says) {
    char text[256], *to = d->name, *end = d->name + sizeof d->name - 1;
    size_t n = 0;
    for (const char *s = says; *s && *s != '@' && n + 1 < sizeof text; s++) {
        if (!strncmp(s, "(R)", 3) || !strncmp(s, "(r)", 3)) text[n++] = ' ', s += 2;
        else if (!strncmp(s, "(TM)", 4) || !strncmp(s, "(tm)", 4)) text[n++] = ' ', s += 3;
        else text[n++] = (char)tolower((unsigned char)*s);
    }
    text[n] = 0;
    *to = 0;
    for (char *w = text; *(w += strspn(w, " \t\"'#:,[]{}&*!|>%`\\()/"));) {
        const size_t len = strcspn(w, " \t\"'#:,[]{}&*!|>%`\\()/");
        if (!idle_word(w, len) && to + len + 1 < end) {
            if (to > d->name) *to++ = '-';
            memcpy(to, w, len);
            to += len;
        }
        w += len;
    }
    *to = 0;
    if (to == d->name)
        snprintf(d->name, sizeof d->name, "unknown-%s", cd_device_kind_name(d->device.kind));
    /* an alias that is the name but for its punctuation would be the name given twice */
    char a[64] = "", b[64] = "";
    size_t na = 0, nb = 0;
    for (const char *s = says; *s && na < 63; s++)
        if (isalnum((unsigned char)*s)) a[na++] = (char)tolower((unsigned char)*s);
    for (const char *s = d->name; *s && nb < 63; s++)
        if (isalnum((unsigned char)*s)) b[nb++] = *s;
    if (strcmp(a, b) && na && strlen(says) < sizeof d->alias)
        snprintf(d->alias, sizeof d->alias, "%s", says);
}

/* ---- YAML ---- */

/* Whatever a driver calls itself. */
static void put_text(cd_buf *b, const char *s) { cd_escape_yaml(b, cd_str_of(s)); }

static void put_number(cd_buf *b, double x) {
    if (x == floor(x) && fabs(x) < 1e15) cd_buf_putf(b, "%.0f", x);
    else cd_buf_putf(b, "%.6g", x);
}

static void put_noise(cd_buf *out, const cd_describe_entry *d) {
    if (!d->measured) return;
    cd_buf_puts(out,
                cd_noise_is_much(&d->noise)
                    ? "# NOISY, kept all the same, what was measured here is not to be relied on: "
                    : "# measured: ");
    cd_noise_put(out, &d->noise);
    cd_buf_puts(out, "\n");
}

/* A number that is not known is a comment with the reason, so that a reader sees what is
 * missing. */
void cd_describe_entry_put_yaml(cd_buf *out, const cd_describe_entry *d) {
    for (const char *s = d->head; *s;) {
        const size_t n = strcspn(s, "\n");
        cd_buf_putf(out, "# %.*s\n", (int)n, s);
        s += n + (s[n] == '\n');
    }
    put_noise(out, d);
    cd_buf_puts(out, "- name: ");
    put_text(out, d->name);
    if (d->alias[0]) {
        cd_buf_puts(out, "\n  aliases: [");
        put_text(out, d->alias);
        cd_buf_puts(out, "]");
    }
    cd_buf_putf(out, "\n  kind: %s\n", cd_device_kind_name(d->device.kind));
    for (int k = 0; k < CD_N_DESCRIBE_KEY; k++) {
        const double x = *slot((cd_device *)(uintptr_t)&d->device, k);
        if (x < 0) {
            if (d->note[k][0]) cd_buf_putf(out, "  # %s: not known: %s\n", keys[k].key, d->note[k]);
            continue;
        }
        cd_buf_putf(out, "  %s: ", keys[k].key);
        put_number(out, x);
        if (d->note[k][0]) cd_buf_putf(out, " # %s", d->note[k]);
        cd_buf_puts(out, "\n");
    }
    for (size_t k = 0; k < CD_N_DEVICE_PROBE; k++)
        if (d->device.probe[k] > 0)
            cd_buf_putf(out, "  %s: %.6g\n", cd_device_probe_name(k), d->device.probe[k]);
    if (d->probed[0]) cd_buf_putf(out, "  # %s\n", d->probed);
}

/* What records of this machine are called where no file describes it, so that a file with this
 * description does. */
static cdmpp_status name_as_records(const char *core, cd_describe_entry *d, cdmpp_err *err) {
    cd_describe_name n;
    char name[sizeof n.name + 32];
    CD_TRY(cd_describe_name_cpu("", NULL, &n, err));
    snprintf(name, sizeof name, "%s%s%.30s", n.name, core ? "-" : "", core ? core : "");
    snprintf(d->name, sizeof d->name, "%.63s", name);
    return CDMPP_OK;
}

cdmpp_status cd_describe(const char *device, cd_describe_how how, const char *core, cd_buf *out,
                         cdmpp_err *err) {
    cd_describe_entry d;
    cdmpp_status st;
    if (!strcmp(device, "cpu")) {
        st = cd_describe_cores("", how != CD_DESCRIBE_SAID, core, &d, err);
        if (!st && d.measured)
            st = cd_noise_check(&d.noise, how == CD_DESCRIBE_NOISY, "--measure", "--keep-noisy",
                                err);
        if (!st) st = name_as_records(core, &d, err);
    } else if (!strcmp(device, "opencl") || !strncmp(device, "opencl:", 7))
        st = cd_describe_opencl(device[6] ? device + 7 : "", &d, err);
    else if (!strcmp(device, "cuda") || !strncmp(device, "cuda:", 5))
        st = cd_describe_cuda(device[4] ? device + 5 : "", &d, err);
    else
        st = CD_FAIL(err, ERANGE, "expected cpu, opencl[:NAME] or cuda[:NUMBER], found '%.60s'",
                     device);
    if (!st) cd_describe_entry_put_yaml(out, &d);
    if (!st && out->oom) st = CD_FAIL(err, ENOMEM, "description");
    return st;
}
