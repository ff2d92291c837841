#include "dataset/split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/sha256.h"
#include "dataset/key.h"

/* A thing that is drawn: a task, network or device. */
typedef struct {
    uint64_t rank;
    const char *name;
    uint32_t id;
    uint8_t part;
} unit;

typedef struct {
    const cd_dataset *d;
    const uint8_t *keep;
    const cd_split_spec *spec;
    uint8_t *task_used;  /* (n_task) some kept program has it */
    uint8_t *task_part;  /* (n_task) */
    unit *unit;          /* (n_unit) units that kept programs have, by rank */
    size_t n_unit;
    uint64_t *key;       /* (n) of programs */
} maker;

const char *cd_part_name(cd_part p) {
    static const char *const name[] = {"train", "validation", "test", "none"};
    return name[p];
}

const char *cd_split_name(cd_split_kind k) {
    static const char *const name[] = {"record", "task", "network", "device"};
    return name[k];
}

/* ---- units ---- */
static int by_rank(const void *a, const void *b) {
    const unit *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void add_unit(maker *m, const char *name, uint32_t id) {
    m->unit[m->n_unit++] = (unit){cd_rng_at(m->spec->seed, cd_key_name(name)), name, id, CD_PART_TRAIN};
}

static void list_tasks(maker *m) {
    m->n_unit = 0;
    for (uint32_t t = 0; t < m->d->n_task; t++)
        if (m->task_used[t] && m->task_part[t] == CD_PART_TRAIN) add_unit(m, m->d->task_name[t], t);
    qsort(m->unit, m->n_unit, sizeof *m->unit, by_rank);
}

static cdmpp_status list_networks(maker *m, cdmpp_err *err) {
    uint8_t *used = cd_calloc(m->d->n_network + 1, 1);
    if (!used) return CD_FAIL(err, ENOMEM, "%zu networks", m->d->n_network);
    for (size_t k = 0; k < m->d->n_net_task; k++)
        if (m->task_used[m->d->net_task[k]]) used[m->d->net_network[k]] = 1;
    for (uint32_t i = 0; i < m->d->n_network; i++)
        if (used[i]) add_unit(m, m->d->network_name[i], i);
    cd_free(used);
    qsort(m->unit, m->n_unit, sizeof *m->unit, by_rank);
    return CDMPP_OK;
}

static cdmpp_status list_devices(maker *m, cdmpp_err *err) {
    uint8_t *used = cd_calloc(m->d->n_device + 1, 1);
    if (!used) return CD_FAIL(err, ENOMEM, "%zu devices", m->d->n_device);
    for (size_t i = 0; i < m->d->n; i++)
        if (m->keep[i]) used[m->d->device[i]] = 1;
    for (uint32_t i = 0; i < m->d->n_device; i++)
        if (used[i]) add_unit(m, m->d->device_name[i], i);
    cd_free(used);
    qsort(m->unit, m->n_unit, sizeof *m->unit, by_rank);
    return CDMPP_OK;
}

static bool answers_to(const char *unit_name, const char *asked) {
    const size_t n = strlen(asked);
    return !strcmp(unit_name, asked) || (unit_name[0] == '(' && !strncmp(unit_name + 1, asked, n) && unit_name[1 + n] == ',');
}

static cdmpp_status assign_names(maker *m, const cd_texts *names, cd_part part, const char *key, cdmpp_err *err) {
    for (size_t i = 0; i < names->n; i++) {
        size_t hit = 0;
        for (size_t u = 0; u < m->n_unit; u++) {
            if (!answers_to(m->unit[u].name, names->v[i])) continue;
            m->unit[u].part = (uint8_t)part;
            hit++;
        }
        if (!hit) {
            const cdmpp_status st = CD_FAIL(err, ESCHEMA, "expected a %s of the data set, found '%.120s'",
                                            cd_split_name(m->spec->kind), names->v[i]);
            return cd_err_key(err, cd_err_index(err, st, i), key);
        }
    }
    return CDMPP_OK;
}

/* The first units in rank order that nobody took yet. */
static void assign_fraction(maker *m, double fraction, size_t of, cd_part part) {
    size_t n = (size_t)llround(fraction * (double)of);
    if (!n) n = 1;
    for (size_t u = 0; u < m->n_unit && n; u++) {
        if (m->unit[u].part != CD_PART_TRAIN) continue;
        m->unit[u].part = (uint8_t)part;
        n--;
    }
}

static cdmpp_status assign_units(maker *m, cdmpp_err *err) {
    const cd_split_spec *s = m->spec;
    const bool by_name = s->valid_name.n > 0;
    if (s->test_name.n) CD_TRY(assign_names(m, &s->test_name, CD_PART_TEST, "split.test_names", err));
    else assign_fraction(m, s->test, m->n_unit, CD_PART_TEST);
    if (by_name) CD_TRY(assign_names(m, &s->valid_name, CD_PART_VALID, "split.valid_names", err));
    else if (s->kind == CD_SPLIT_TASK) assign_fraction(m, s->valid, m->n_unit, CD_PART_VALID);
    return CDMPP_OK;
}

/* ---- units -> tasks -> programs ---- */
static void tasks_of_networks(maker *m) {
    const cd_dataset *d = m->d;
    for (size_t u = 0; u < m->n_unit; u++)
        for (size_t k = 0; k < d->n_net_task; k++)
            if (d->net_network[k] == m->unit[u].id && m->unit[u].part > m->task_part[d->net_task[k]])
                m->task_part[d->net_task[k]] = m->unit[u].part; /* test beats validation beats train */
}

static void valid_tasks(maker *m) {
    list_tasks(m);
    assign_fraction(m, m->spec->valid, m->n_unit, CD_PART_VALID);
    for (size_t u = 0; u < m->n_unit; u++) m->task_part[m->unit[u].id] = m->unit[u].part;
}

static cdmpp_status part_by_units(maker *m, uint8_t *part, cdmpp_err *err) {
    const cd_dataset *d = m->d;
    const cd_split_kind kind = m->spec->kind;
    uint8_t *dev = cd_calloc(d->n_device + 1, 1);
    if (!dev) return CD_FAIL(err, ENOMEM, "%zu devices", d->n_device);
    cdmpp_status st = CDMPP_OK;
    if (kind == CD_SPLIT_TASK) list_tasks(m);
    else st = kind == CD_SPLIT_NETWORK ? list_networks(m, err) : list_devices(m, err);
    if (!st) st = assign_units(m, err);
    if (kind == CD_SPLIT_NETWORK) tasks_of_networks(m);
    for (size_t u = 0; u < m->n_unit; u++) {
        if (kind == CD_SPLIT_TASK) m->task_part[m->unit[u].id] = m->unit[u].part;
        if (kind == CD_SPLIT_DEVICE) dev[m->unit[u].id] = m->unit[u].part;
    }
    if (kind != CD_SPLIT_TASK && !m->spec->valid_name.n) valid_tasks(m);
    for (size_t i = 0; i < d->n; i++) {
        const uint8_t t = m->task_part[d->task[i]], v = dev[d->device[i]];
        if (m->keep[i]) part[i] = v > t ? v : t;
    }
    cd_free(dev);
    return st;
}

static void part_by_record(const maker *m, uint8_t *part) {
    const cd_split_spec *s = m->spec;
    for (size_t i = 0; i < m->d->n; i++) {
        const double u = cd_rng_unit(s->seed, m->key[i]);
        if (m->keep[i]) part[i] = u < s->test ? CD_PART_TEST : u < s->test + s->valid ? CD_PART_VALID : CD_PART_TRAIN;
    }
}

/* ---- counts and digests ---- */
static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* `tmp` (n) holds the keys of a part, `seen` (n_task) its tasks. */
static void finish_part(const maker *m, cd_split *s, unsigned p, uint64_t *tmp, uint8_t *seen) {
    size_t n = 0;
    cd_sha256 h;
    memset(seen, 0, m->d->n_task);
    for (size_t i = 0; i < s->n; i++) {
        if (s->part[i] != p) continue;
        tmp[n++] = m->key[i];
        if (!seen[m->d->task[i]]) s->n_task[p]++;
        seen[m->d->task[i]] = 1;
    }
    s->n_program[p] = n;
    qsort(tmp, n, sizeof *tmp, by_value);
    cd_sha256_init(&h);
    for (size_t i = 0; i < n; i++) {
        uint8_t b[8];
        for (size_t k = 0; k < 8; k++) b[k] = (uint8_t)(tmp[i] >> (8 * k));
        cd_sha256_add(&h, b, sizeof b);
    }
    cd_sha256_hex(&h, s->hash[p]);
}

static cdmpp_status finish(const maker *m, cd_split *s, cdmpp_err *err) {
    uint64_t *tmp = cd_calloc(s->n + 1, sizeof *tmp);
    cd_sha256 h;
    if (!tmp) return CD_FAIL(err, ENOMEM, "keys of %zu programs", s->n);
    cd_sha256_init(&h);
    for (unsigned p = 0; p < CD_N_PART; p++) {
        finish_part(m, s, p, tmp, m->task_used);
        cd_sha256_add(&h, s->hash[p], 64);
    }
    cd_sha256_hex(&h, s->digest);
    cd_free(tmp);
    for (unsigned p = 0; p < CD_N_PART; p++)
        if (!s->n_program[p])
            return CD_FAIL(err, ERANGE, "the %s part of the split by %s is empty (train %zu, validation %zu, test %zu programs)",
                           cd_part_name(p), cd_split_name(m->spec->kind), s->n_program[0], s->n_program[1], s->n_program[2]);
    return CDMPP_OK;
}

static cdmpp_status make(maker *m, cd_split *s, cdmpp_err *err) {
    const cd_dataset *d = m->d;
    if (m->spec->kind == CD_SPLIT_RECORD && (m->spec->test_name.n || m->spec->valid_name.n))
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "names need a split by task, network or device, found by record"),
                          "split.test_names");
    for (size_t i = 0; i < d->n; i++) {
        s->part[i] = CD_PART_NONE;
        if (!m->keep[i]) continue;
        m->key[i] = cd_key_program(d, i);
        m->task_used[d->task[i]] = 1;
    }
    if (m->spec->kind == CD_SPLIT_RECORD) part_by_record(m, s->part);
    else CD_TRY(part_by_units(m, s->part, err));
    return finish(m, s, err);
}

cdmpp_status cd_split_make(const cd_dataset *d, const uint8_t *keep, const cd_split_spec *spec, cd_split **out,
                           cdmpp_err *err) {
    const size_t n_unit = d->n_task + d->n_network + d->n_device + 1;
    maker m = {.d = d, .keep = keep, .spec = spec};
    cd_split *s = cd_calloc(1, sizeof *s);
    m.task_used = cd_calloc(d->n_task + 1, 1);
    m.task_part = cd_calloc(d->n_task + 1, 1);
    m.unit = cd_calloc(n_unit, sizeof *m.unit);
    m.key = cd_calloc(d->n + 1, sizeof *m.key);
    if (s) s->part = cd_calloc(d->n + 1, 1);
    if (s) s->n = d->n;
    cdmpp_status st;
    if (s && s->part && m.task_used && m.task_part && m.unit && m.key) st = make(&m, s, err);
    else st = CD_FAIL(err, ENOMEM, "split of %zu programs", d->n);
    cd_free(m.task_used);
    cd_free(m.task_part);
    cd_free(m.unit);
    cd_free(m.key);
    if (st) cd_split_free(s);
    else *out = s;
    return st;
}

void cd_split_free(cd_split *s) {
    if (!s) return;
    cd_free(s->part);
    cd_free(s);
}
