/* Reads device descriptions (YAML), finds the file, and finds a device by name. All mistakes of a
 * file are reported with line and column. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "base/io/io.h"
#include "features/device/device.h"

/* A name under which a device is found: its own or an alias. */
typedef struct cd_device_handle {
    const char *text, *bare; /* as written; letters and digits only */
    const cd_yaml *at;       /* in the file */
    size_t device;
} cd_device_handle;

struct cd_device_table {
    cd_arena arena;
    cd_device *device;
    cd_device_handle *name;
    size_t n, n_name;
    size_t own;              /* the first ones: of the file that was named */
    cd_buf unusual;          /* a line for each number that is */
    cd_buf replaced;         /* a line: which descriptions of `behind` others are in the place of */
    cd_device_table *behind; /* where the others live; NULL: there are none */
};

enum { MAX_NAME = 64, MAX_DEVICE = 4096 };

static const struct {
    const char *key, *unit;
    size_t offset;
    double low, high;
} keys[] = {
#define X(key, low, high, unit, meaning) {#key, unit, offsetof(cd_device, key), low, high},
#include "features/device/device_keys.def"
#define X(key, high, reference, unit, meaning)                                                     \
    {#key, unit, offsetof(cd_device, probe) + CD_DEVICE_PROBE_##key * sizeof(double), 0, high},
#include "features/device/device_probes.def"
};
enum { N_KEY = sizeof keys / sizeof *keys };
static const char *const words[] = {"name", "aliases", "kind", "arch"};
enum { N_WORD = sizeof words / sizeof *words };

typedef struct {
    cd_device_table *l;
    const char *path;
    cd_diag *diag;
    cdmpp_err *err;
    size_t cap_name;
} reading;

#define BAD(r, status, at, key, ...)                                                               \
    cd_diag_add((r)->diag, (r)->err, CDMPP_##status, (r)->path, (at), false, (key), __VA_ARGS__)

/* Letters and digits of `s` in lower case. */
static void bare(const char *s, char out[MAX_NAME]) {
    size_t n = 0;
    for (; *s && n + 1 < MAX_NAME; s++)
        if (isalnum((unsigned char)*s)) out[n++] = (char)tolower((unsigned char)*s);
    out[n] = 0;
}

/* ---- one device ---- */
static double *slot(cd_device *d, size_t k) { return (double *)((char *)d + keys[k].offset); }

static void read_number(reading *r, size_t k, const cd_yaml *v, cd_device *d) {
    char found[96], *end = NULL;
    const bool plain = v->kind == CD_YAML_SCALAR && !v->quoted;
    if (plain && (!v->text[0] || !strcmp(v->text, "null") || !strcmp(v->text, "~"))) return;
    const bool digits = plain && strspn(v->text, "+-.eE0123456789") == strlen(v->text);
    const double x = digits ? strtod(v->text, &end) : 0;
    cd_yaml_found(v, found, sizeof found);
    if (!digits || *end || !isfinite(x))
        BAD(r, ESCHEMA, v, keys[k].key, "expected a number or null, found %s", found);
    else if (x < keys[k].low || x > keys[k].high)
        BAD(r, ERANGE, v, keys[k].key, "expected a number in %g..%g (%s), found %s", keys[k].low,
            keys[k].high, keys[k].unit, found);
    else *slot(d, k) = x;
}

static void read_kind(reading *r, const cd_yaml *v, cd_device *d) {
    char found[96];
    for (int k = CD_DEVICE_CPU; k <= CD_DEVICE_NPU; k++)
        if (v->kind == CD_YAML_SCALAR && !strcmp(v->text, cd_device_kind_name((cd_device_kind)k))) {
            d->kind = (cd_device_kind)k;
            return;
        }
    BAD(r, ESCHEMA, v, "kind", "expected one of %s, found %s", CD_DEVICE_KINDS,
        cd_yaml_found(v, found, sizeof found));
}

static void read_arch(reading *r, const cd_yaml *v, cd_device *d) {
    char found[96];
    if (v->kind == CD_YAML_SCALAR && v->text[0] && strlen(v->text) < MAX_NAME &&
        !strpbrk(v->text, " \t\n"))
        d->arch = v->text;
    else
        BAD(r, ESCHEMA, v, "arch",
            "expected one word, what compilers call the instruction set (sm_86), found %s",
            cd_yaml_found(v, found, sizeof found));
}

static void unknown_key(reading *r, const cd_yaml *v) {
    const char *near = NULL;
    size_t least = strlen(v->key) / 2 + 1;
    for (size_t i = 0; i < N_KEY + N_WORD; i++) {
        const char *k = i < N_KEY ? keys[i].key : words[i - N_KEY];
        const size_t far = cd_did_you_mean_distance(v->key, k);
        if (far < least || (far == least && !near)) near = k, least = far;
    }
    cd_diag_add(r->diag, r->err, CDMPP_ESCHEMA, r->path, v, true, "", "unknown key '%.60s'%s%s%s",
                v->key, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* ---- names ---- */
static cdmpp_status add_name(reading *r, const cd_yaml *v) {
    cd_device_table *l = r->l;
    char b[MAX_NAME], found[96];
    if (v->kind != CD_YAML_SCALAR || strlen(v->text) >= MAX_NAME) {
        BAD(r, ESCHEMA, v, "aliases", "expected a name of at most %d letters, found %s",
            MAX_NAME - 1, cd_yaml_found(v, found, sizeof found));
        return CDMPP_OK;
    }
    bare(v->text, b);
    if (!b[0]) {
        BAD(r, ESCHEMA, v, "name", "expected a name, found %s",
            cd_yaml_found(v, found, sizeof found));
        return CDMPP_OK;
    }
    for (size_t i = 0; i < l->n_name; i++)
        if (!strcmp(l->name[i].bare, b)) {
            /* the same device in another spelling */
            if (l->name[i].device == l->n) return CDMPP_OK;
            BAD(r, ESCHEMA, v, "", "'%s' is already a name of %s, line %u", v->text,
                l->device[l->name[i].device].name, l->name[i].at->line);
            return CDMPP_OK;
        }
    if (CD_GROW(l->name, l->n_name, r->cap_name)) return CD_FAIL(r->err, ENOMEM, "device names");
    const cd_device_handle h = {v->text, cd_str_dup(&l->arena, (cd_str){b, strlen(b)}), v, l->n};
    if (!h.bare) return CD_FAIL(r->err, ENOMEM, "device name");
    l->name[l->n_name++] = h;
    return CDMPP_OK;
}

static cdmpp_status read_aliases(reading *r, const cd_yaml *v) {
    char found[96];
    if (v->kind == CD_YAML_SCALAR && v->text[0]) return add_name(r, v);
    if (v->kind != CD_YAML_SEQ)
        BAD(r, ESCHEMA, v, "aliases", "expected a list of names, found %s",
            cd_yaml_found(v, found, sizeof found));
    for (const cd_yaml *e = v->kind == CD_YAML_SEQ ? v->child : NULL; e; e = e->next)
        CD_TRY(add_name(r, e));
    return CDMPP_OK;
}

/* ---- an entry of the list, the list ---- */
static const cd_yaml *member(const cd_yaml *map, const char *key) {
    for (const cd_yaml *v = map->child; v; v = v->next)
        if (!strcmp(v->key, key)) return v;
    return NULL;
}

/* Peaks of a chip stand in some proportion. Numbers in another unit do not. */
enum { APART = 3 };
static void check_peaks(reading *r, const cd_yaml *map, cd_device *d) {
    const double units = d->cores > 0 && d->lanes > 0 && d->clock_mhz > 0
                             ? 2 * d->cores * d->lanes * d->clock_mhz / 1000
                             : 0;
    const struct {
        const char *key;
        /* times fp32: matrix units have up to 28 (B200), fp16 lanes 4 (A100), fp64 2 (MI210); a
         * factor of APART beside */
        double gflops, most;
    } other[] = {{"fp32_matrix_gflops", d->fp32_matrix_gflops, 100},
                 {"fp16_tflops", 1e3 * d->fp16_tflops, 4 * APART},
                 {"tensor_tflops", 1e3 * d->tensor_tflops, 100},
                 {"bf16_tflops", 1e3 * d->bf16_tflops, 100},
                 {"fp8_tflops", 1e3 * d->fp8_tflops, 200},
                 {"int8_tops", 1e3 * d->int8_tops, 200},
                 {"fp4_tflops", 1e3 * d->fp4_tflops, 400},
                 {"fp64_gflops", d->fp64_gflops, 2 * APART}};
    if (units > 0 && d->fp32_gflops > 0 &&
        (d->fp32_gflops > APART * units || units > APART * d->fp32_gflops))
        BAD(r, ERANGE, member(map, "fp32_gflops"), "fp32_gflops",
            "2 * cores * lanes * clock_mhz / 1000 is %.4g GFLOP/s, found %.4g: one of the four is "
            "wrong",
            units, d->fp32_gflops);
    d->peak_computed = units > 0 && !(d->fp32_gflops > 0);
    if (d->peak_computed) d->fp32_gflops = units;
    for (size_t k = 0; d->fp32_gflops > 0 && k < sizeof other / sizeof *other; k++)
        if (other[k].gflops > other[k].most * d->fp32_gflops)
            BAD(r, ERANGE, member(map, other[k].key), other[k].key,
                "expected at most %g times fp32_gflops, %.4g GFLOP/s, found %.4g", other[k].most,
                d->fp32_gflops, other[k].gflops);
}

static void unusual(reading *r, const cd_yaml *at, const cd_device *d, const char *text) {
    cd_buf_putf(&r->l->unusual, "%s:%u: device %s: %s\n", r->path, at->line, d->name, text);
}

static void check_usual(reading *r, const cd_yaml *map, cd_device *d) {
    char text[320];
    bool any = false;
    for (const cd_yaml *v = map->child; v; v = v->next)
        for (size_t k = 0; k < N_KEY; k++) {
            if (strcmp(v->key, keys[k].key) != 0 || !(*slot(d, k) > 0) ||
                !cd_device_unusual(d->kind, keys[k].key, keys[k].unit, *slot(d, k), text,
                                   sizeof text))
                continue;
            unusual(r, v, d, text);
            any = true;
        }
    if (!any && cd_device_unbalanced(d, text, sizeof text)) unusual(r, map, d, text);
}

/* All keys are read even when some are wrong; only running out of memory ends the list. */
static cdmpp_status read_device(reading *r, const cd_yaml *map) {
    cd_device *d = &r->l->device[r->l->n];
    char found[96];
    if (map->kind != CD_YAML_MAP) {
        BAD(r, ESCHEMA, map, "", "expected the keys of a device, found %s",
            cd_yaml_found(map, found, sizeof found));
        return CDMPP_OK;
    }
    const cd_yaml *name = member(map, "name"), *kind = member(map, "kind");
    for (size_t k = 0; k < N_KEY; k++) *slot(d, k) = CD_DEVICE_UNKNOWN;
    if (!name) BAD(r, ESCHEMA, map, "name", "expected the name of the device, found nothing");
    if (!kind) BAD(r, ESCHEMA, map, "kind", "expected one of %s, found nothing", CD_DEVICE_KINDS);
    d->name = name && name->kind == CD_YAML_SCALAR ? name->text : "?";
    if (name) CD_TRY(add_name(r, name));
    for (const cd_yaml *v = map->child; v; v = v->next) {
        size_t k = 0;
        while (k < N_KEY && strcmp(v->key, keys[k].key) != 0) k++;
        if (k < N_KEY) read_number(r, k, v, d);
        else if (v == kind) read_kind(r, v, d);
        else if (!strcmp(v->key, "arch")) read_arch(r, v, d);
        else if (!strcmp(v->key, "aliases")) CD_TRY(read_aliases(r, v));
        else if (v != name) unknown_key(r, v);
    }
    if (d->cores_used > d->cores)
        BAD(r, ERANGE, member(map, "cores_used"), "cores_used",
            "expected at most cores, %g, found %g", d->cores, d->cores_used);
    check_peaks(r, map, d);
    check_usual(r, map, d);
    r->l->own = ++r->l->n;
    return CDMPP_OK;
}

static cdmpp_status read_list(reading *r, const cd_yaml *root) {
    char found[96];
    if (!root || root->kind != CD_YAML_SEQ || !root->n || root->n > MAX_DEVICE) {
        BAD(r, ESCHEMA, root, "", "expected a list of 1 to %d devices, found %s", MAX_DEVICE,
            root ? cd_yaml_found(root, found, sizeof found) : "nothing");
        return CDMPP_OK;
    }
    r->l->device = CD_NEWN(&r->l->arena, cd_device, root->n);
    if (!r->l->device) return CD_FAIL(r->err, ENOMEM, "%u devices", root->n);
    for (const cd_yaml *v = root->child; v; v = v->next) CD_TRY(read_device(r, v));
    return CDMPP_OK;
}

cdmpp_status cd_device_table_read(const char *path, const char *text, size_t n, cd_diag *diag,
                                  cd_device_table **out, cdmpp_err *err) {
    const cd_yaml *root;
    const size_t before = diag->n;
    cdmpp_err first = {0};
    reading r = {cd_mem_zalloc(1, sizeof(cd_device_table)), path, diag, &first, 0};
    if (!r.l) return CD_FAIL(err, ENOMEM, "list of devices");
    cdmpp_status st = cd_yaml_parse(&r.l->arena, path, text, n, &root, diag, &first);
    if (!st) st = read_list(&r, root);
    if (!st && diag->n > before) {
        st = first.code;
        /* the list was not empty before */
        if (!st) st = CD_FAIL(&first, ESCHEMA, "%zu mistakes", diag->n - before);
    }
    if (!st && (diag->text.oom || r.l->unusual.oom)) st = CD_FAIL(&first, ENOMEM, "list of errors");
    if (st) cd_err_from(err, &first);
    if (st) cd_device_table_free(r.l);
    else *out = r.l;
    return st;
}

cdmpp_status cd_device_table_load(const char *path, cd_diag *diag, cd_device_table **out,
                                  cdmpp_err *err) {
    char *text;
    size_t n;
    CD_TRY(cd_file_read(path, CD_YAML_MAX_BYTES + 1, &text, &n, err));
    const cdmpp_status st = cd_device_table_read(path, text, n, diag, out, err);
    cd_mem_free(text);
    return st;
}

void cd_device_table_free(cd_device_table *l) {
    if (!l) return;
    cd_mem_free(l->name);
    cd_buf_free(&l->unusual);
    cd_buf_free(&l->replaced);
    cd_device_table_free(l->behind);
    cd_arena_free(&l->arena);
    cd_mem_free(l);
}

const char *cd_device_table_unusual(const cd_device_table *l) {
    return l->unusual.n ? l->unusual.p : "";
}

const char *cd_device_table_replaced(const cd_device_table *l) {
    return l->replaced.n ? l->replaced.p : "";
}

void cd_device_table_say(const cd_device_table *l, struct cd_log *log) {
    for (const char *p = cd_device_table_unusual(l); *p;) {
        const int n = (int)strcspn(p, "\n");
        cd_log_put(log, CD_LOG_WARNING, "%.*s", n, p);
        p += n + 1;
    }
    if (l->replaced.n) cd_log_put(log, CD_LOG_INFO, "%.*s", (int)l->replaced.n - 1, l->replaced.p);
}

/* Do both say the same, but for their names? */
static bool device_same_numbers(const cd_device *a, const cd_device *b) {
    bool same = a->kind == b->kind;
    for (size_t k = 0; k < N_KEY; k++) {
        const double x = *(const double *)((const char *)a + keys[k].offset),
                     y = *(const double *)((const char *)b + keys[k].offset);
        same &= !(x < y || x > y);
    }
    return same;
}

size_t cd_device_table_count(const cd_device_table *l) { return l->n; }
const cd_device *cd_device_table_at(const cd_device_table *l, size_t i) { return &l->device[i]; }

static size_t shared_beginning(const char *a, const char *b) {
    size_t n = 0;
    while (a[n] && a[n] == b[n]) n++;
    return n;
}

/* How far a name is from what was typed, both bare; LONG_MAX: another word. Makers begin the names
 * of a family alike, so a shared beginning counts. */
static long far_of(const char *typed, const char *name) {
    const size_t d = cd_did_you_mean_distance(typed, name);
    if (d >= strlen(typed) / 3 + 2 || d >= strlen(name)) return LONG_MAX;
    return (long)d - (long)shared_beginning(typed, name);
}

static bool is_among(const size_t *list, size_t n, size_t x) {
    for (size_t k = 0; k < n; k++)
        if (list[k] == x) return true;
    return false;
}

enum { NEAR = 4, NEAR_TEXT = 256 };
/* Of each of the devices whose names are spelt most alike, one name: "did you mean 'h100' or
 * 'h200'?" */
static const char *did_you_mean(const cd_device_table *l, const char *typed, char out[NEAR_TEXT]) {
    size_t at[NEAR] = {0}, device[NEAR] = {0}, n = 0, used = 0;
    long least = LONG_MAX;
    for (size_t i = 0; i < l->n_name; i++) {
        const long far = far_of(typed, l->name[i].bare);
        if (far < least) least = far, n = 0;
        if (far == LONG_MAX || far > least || n == NEAR || is_among(device, n, l->name[i].device))
            continue;
        at[n] = i;
        device[n++] = l->name[i].device;
    }
    (void)snprintf(out, NEAR_TEXT,
                   "%zu devices are described, cdmpp-replay --list-devices names them", l->n);
    for (size_t k = 0; k < n && used < NEAR_TEXT; k++)
        used += (size_t)snprintf(out + used, NEAR_TEXT - used, "%s'%.40s'%s",
                                 !k          ? "did you mean "
                                 : k + 1 < n ? ", "
                                             : " or ",
                                 l->name[at[k]].text, k + 1 < n ? "" : "?");
    return out;
}

/* By letters and digits; the names that are spelt alike are only for the message. */
cdmpp_status cd_device_table_find(const cd_device_table *l, const char *name, const cd_device **out,
                                  cdmpp_err *err) {
    char b[MAX_NAME], near[NEAR_TEXT];
    bare(name, b);
    for (size_t i = 0; i < l->n_name; i++)
        if (!strcmp(b, l->name[i].bare)) {
            *out = &l->device[l->name[i].device];
            return CDMPP_OK;
        }
    if (!err) return CDMPP_ESCHEMA;
    if (l->n == 1)
        return CD_FAIL(err, ESCHEMA, "no device '%.60s'; the only one that is described is '%s'",
                       name, l->device[0].name);
    return CD_FAIL(err, ESCHEMA, "no device '%.60s'; %s", name, did_you_mean(l, b, near));
}

bool cd_device_table_same(const cd_device_table *l, const char *a, const char *b) {
    const cd_device *x, *y;
    char p[MAX_NAME], q[MAX_NAME];
    if (l && !cd_device_table_find(l, a, &x, NULL) && !cd_device_table_find(l, b, &y, NULL))
        return x == y;
    bare(a, p);
    bare(b, q);
    return !strcmp(p, q);
}

/* ---- where the file is ---- */

/* "<first n letters of dir>/<rest>" if there is such a file; NULL when not or out of memory. */
static const char *there(cd_arena *a, const char *dir, size_t n, const char *rest) {
    const size_t cap = n + strlen(rest) + 2;
    char *p = cd_arena_alloc(a, cap, 1);
    if (!p) return NULL;
    snprintf(p, cap, "%.*s%s%s", (int)n, dir, n && dir[n - 1] != '/' ? "/" : "", rest);
    return access(p, R_OK) == 0 ? p : NULL;
}

static size_t folder(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? (size_t)(slash - path) + 1 : 0;
}

cdmpp_status cd_device_table_path(cd_arena *a, const char *wanted, const char *config,
                                  const char **out, cdmpp_err *err) {
    if (wanted && wanted[0]) {
        *out = there(a, "", 0, wanted);
        if (!*out && config && wanted[0] != '/') *out = there(a, config, folder(config), wanted);
        if (a->oom) return CD_FAIL(err, ENOMEM, "path of the descriptions");
        return *out ? CDMPP_OK
                    : cd_err_key(err,
                                 CD_FAIL(err, EIO, "cannot read %s: %s", wanted, strerror(errno)),
                                 "device.file");
    }
    *out = config ? there(a, config, folder(config), CD_DEVICE_FILE) : NULL;
    if (!*out) *out = there(a, "", 0, "configs/" CD_DEVICE_FILE);
    if (!*out) *out = cd_data_path_find(a, "configs/" CD_DEVICE_FILE);
    if (*out) return CDMPP_OK;
    if (a->oom) return CD_FAIL(err, ENOMEM, "path of the descriptions");
    return cd_err_key(
        err,
        CD_FAIL(err, EIO, "no %s beside the configuration or where cdmpp is installed: name one",
                CD_DEVICE_FILE),
        "device.file");
}

/* A file of the user's, and ours behind it: what both describe is as the user says it.
 *
 *   mine.yaml  h100 (other numbers), board      the user's own, first
 *   ours       h100, h200, b200 ...         ->  h100 and board of mine.yaml, then h200, b200 ... of
 *                                              ours
 *
 * A name of ours that the user's file does not use goes on to name the same device. */

static const cd_device_handle *handle_of(const cd_device_table *l, const char *bare) {
    for (size_t i = 0; i < l->n_name; i++)
        if (!strcmp(l->name[i].bare, bare)) return &l->name[i];
    return NULL;
}

size_t cd_device_table_of_arch(const cd_device_table *l, cd_str arch, const char **out,
                               size_t most) {
    size_t n = 0;
    /* what this very chip has beside */
    if (arch.n > 3 && !memcmp(arch.p, "sm_", 3) &&
        (arch.p[arch.n - 1] == 'a' || arch.p[arch.n - 1] == 'f'))
        arch.n--;
    for (size_t i = 0; i < cd_device_table_count(l); i++) {
        const cd_device *d = cd_device_table_at(l, i);
        if (!d->arch || !cd_str_is(arch, d->arch)) continue;
        if (n < most) out[n] = d->name;
        n++;
    }
    return n;
}

/* Which own device each of ours gives way to; SIZE_MAX: none. A name counts before aliases, as it
 * stands first. */
static void find_taken(const cd_device_table *own, const cd_device_table *ours, size_t *taken) {
    for (size_t i = 0; i < ours->n; i++) taken[i] = SIZE_MAX;
    for (size_t i = 0; i < ours->n_name; i++) {
        const cd_device_handle *h = handle_of(own, ours->name[i].bare);
        if (h && taken[ours->name[i].device] == SIZE_MAX) taken[ours->name[i].device] = h->device;
    }
}

/* A copy of our file replaces nothing. */
static void say_replaced(cd_device_table *own, const cd_device_table *ours, const size_t *taken,
                         const char *path) {
    size_t n = 0;
    for (size_t i = 0; i < ours->n; i++) {
        if (taken[i] == SIZE_MAX || device_same_numbers(&own->device[taken[i]], &ours->device[i]))
            continue;
        if (!n++) cd_buf_putf(&own->replaced, "%s replaces what cdmpp says of ", path);
        else cd_buf_puts(&own->replaced, ", ");
        cd_buf_puts(&own->replaced, ours->device[i].name);
    }
    if (n) cd_buf_puts(&own->replaced, "\n");
}

/* `ours` lives as long as `own` from here on, also after an error. */
static cdmpp_status add_behind(cd_device_table *own, cd_device_table *ours, const char *path,
                               cdmpp_err *err) {
    cd_device *all = CD_NEWN(&own->arena, cd_device, own->n + ours->n);
    size_t *taken = CD_NEWN(&own->arena, size_t, ours->n);
    cd_device_handle *name = cd_mem_zalloc(own->n_name + ours->n_name, sizeof *name);
    own->behind = ours;
    if (!all || !taken || !name) return cd_mem_free(name), CD_FAIL(err, ENOMEM, "devices");
    find_taken(own, ours, taken);
    say_replaced(own, ours, taken, path);
    memcpy(all, own->device, own->n * sizeof *all);
    memcpy(name, own->name, own->n_name * sizeof *name);
    cd_mem_free(own->name);
    own->device = all, own->name = name;
    for (size_t i = 0; i < ours->n; i++) {
        if (taken[i] != SIZE_MAX) continue;
        taken[i] = own->n;
        all[own->n++] = ours->device[i];
    }
    for (size_t i = 0; i < ours->n_name; i++) {
        const cd_device_handle *h = &ours->name[i];
        if (!handle_of(own, h->bare))
            name[own->n_name++] = (cd_device_handle){h->text, h->bare, h->at, taken[h->device]};
    }
    return own->replaced.oom ? CD_FAIL(err, ENOMEM, "devices") : CDMPP_OK;
}

/* What is behind is a help: where there is none, or it is damaged, the own file is all there is. */
static cdmpp_status put_behind(cd_arena *a, const char *own, const char *config, cd_device_table *l,
                               cdmpp_err *err) {
    cd_diag diag = {0};
    cd_device_table *ours = NULL;
    const char *path = NULL;
    cdmpp_status st = cd_device_table_path(a, NULL, config, &path, NULL);
    if (!st && strcmp(path, own) != 0)
        st = cd_device_table_open(a, NULL, config, &diag, NULL, &ours, NULL);
    cd_diag_free(&diag);
    if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "devices");
    return ours ? add_behind(l, ours, own, err) : CDMPP_OK;
}

cdmpp_status cd_device_table_open(cd_arena *a, const char *wanted, const char *config,
                                  cd_diag *diag, const char **path, cd_device_table **out,
                                  cdmpp_err *err) {
    const bool named = wanted && wanted[0];
    const char *found;
    cd_device_table *l = NULL;
    CD_TRY(cd_device_table_path(a, wanted, config, &found, err));
    CD_TRY(cd_device_table_load(found, diag, &l, err));
    const cdmpp_status st =
        named || config ? put_behind(a, found, named ? config : NULL, l, err) : CDMPP_OK;
    if (st) cd_device_table_free(l);
    else *out = l;
    if (path) *path = found;
    return st;
}

bool cd_device_table_own(const cd_device_table *l, const cd_device *d) {
    return d >= l->device && d < l->device + l->own;
}
