/* Parts of a data set: train, validation, test. Every rule gives a part to units (records, tasks,
 * networks, devices) by a hash of their names and the seed, so a split does not depend on the order
 * of the programs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/split/split.h"
#include "dataset/split/split_internal.h"
#include "features/task/task.h"

/* CDMPP's own split: every fifth program by latency. */

enum { GROUP = 5 };

typedef struct {
    double latency;
    uint64_t key;
    size_t i;
} ranked;

static int by_latency(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->latency != y->latency) return x->latency < y->latency ? -1 : 1;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

/* Programs in order of latency, every fifth to the test part, as CDMPP does it: parts of equal
 * distributions, but with the tasks of the test part in training too. */
static cdmpp_status split_interleave(cd_splitter *m, cdmpp_err *err) {
    ranked *r = CD_NEWN(&m->arena, ranked, m->d->n);
    if (!r) return CD_FAIL(err, ENOMEM, "order of %zu programs", m->d->n);
    size_t n = 0, nth = 0, every = (size_t)llround((GROUP - 1.0) / GROUP / m->spec->valid);
    if (every < 2) every = 2;
    for (size_t i = 0; i < m->d->n; i++)
        if (m->keep[i]) r[n++] = (ranked){m->d->latency_s[i], m->key[i], i};
    qsort(r, n, sizeof *r, by_latency);
    for (size_t k = 0; k < n / GROUP * GROUP; k++) {
        if (k % GROUP == GROUP - 1) m->s->part[r[k].i] = CD_SPLIT_PART_TEST;
        else m->s->part[r[k].i] = ++nth % every ? CD_SPLIT_PART_TRAIN : CD_SPLIT_PART_VALID;
    }
    return CDMPP_OK;
}

/* Fewer programs of each task to train on: the fastest ones and a draw of the others. The draw is
 * by the number of a program alone, so a smaller limit keeps a subset of the drawn ones, and the
 * order of programs is nothing. */

/* apart from the draws of the split, which have the same seed */
static const uint64_t thin_stream = 0x7468696e;

typedef struct {
    size_t group, i;
    double latency_s;
    uint64_t key, rank;
} candidate;

static int by_latency_thin(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->latency_s != y->latency_s) return x->latency_s < y->latency_s ? -1 : 1;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

static int by_rank(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

static size_t list(const cd_splitter *m, candidate *v) {
    const cd_dataset *d = m->d;
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        if (m->s->part[i] == CD_SPLIT_PART_TRAIN)
            v[n++] =
                (candidate){(size_t)d->task[i] * d->n_device + d->device[i], i, d->latency_s[i],
                            m->key[i], cd_rng_at(m->spec->seed ^ thin_stream, m->key[i])};
    return n;
}

/* v: the n programs of one task on one device, fastest first. */
static void thin(const cd_splitter *m, candidate *v, size_t n) {
    const size_t most = (size_t)m->spec->train_per_task;
    if (n <= most) return;
    const size_t best = (size_t)llround(m->spec->train_best * (double)most);
    qsort(v + best, n - best, sizeof *v, by_rank);
    for (size_t k = most; k < n; k++) m->s->part[v[k].i] = CD_SPLIT_PART_NONE;
    m->s->n_thinned += n - most;
}

/* split.c, after all others */
static cdmpp_status split_thin(cd_splitter *m, cdmpp_err *err) {
    /* freed before the training: not in the arena of the split */
    candidate *v = cd_mem_zalloc(m->d->n + 1, sizeof *v);
    if (!v) return CD_FAIL(err, ENOMEM, "%zu programs", m->d->n);
    const size_t n = list(m, v);
    if (n) qsort(v, n, sizeof *v, by_latency_thin);
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && v[k].group == v[i].group; k++) {
        }
        thin(m, v + i, k - i);
    }
    cd_mem_free(v);
    return CDMPP_OK;
}

const char *cd_split_part_name(cd_split_part p) {
    static const char *const name[] = {"train", "validation", "test", "none"};
    return name[p];
}

const char *cd_split_name(cd_split_kind k) {
    static const char *const name[] = {"record", "task", "network", "device", "interleaved"};
    return name[k];
}

static void part_by_record(const cd_splitter *m) {
    const cd_split_spec *s = m->spec;
    for (size_t i = 0; i < m->d->n; i++) {
        const double u = cd_rng_unit(s->seed, m->key[i]);
        if (m->keep[i])
            m->s->part[i] = u < s->test              ? CD_SPLIT_PART_TEST
                            : u < s->test + s->valid ? CD_SPLIT_PART_VALID
                                                     : CD_SPLIT_PART_TRAIN;
    }
}

/* ---- counts and digests ---- */
static void hash_keys(uint64_t *key, size_t n, char out[65]) {
    cd_sha256 h;
    if (n) qsort(key, n, sizeof *key, cd_sort_by_u64);
    cd_sha256_init(&h);
    for (size_t i = 0; i < n; i++) {
        uint8_t b[8];
        for (size_t k = 0; k < 8; k++) b[k] = (uint8_t)(key[i] >> (8 * k));
        cd_sha256_add(&h, b, sizeof b);
    }
    cd_sha256_hex(&h, out);
}

/* `tmp` (n) holds the keys of a part, `seen` (n_task) its tasks. */
static void finish_part(const cd_splitter *m, unsigned p, uint64_t *tmp, uint8_t *seen) {
    cd_split *s = m->s;
    size_t n = 0;
    memset(seen, 0, m->d->n_task);
    for (size_t i = 0; i < s->n; i++) {
        if (s->part[i] != p) continue;
        tmp[n++] = m->key[i];
        if (!seen[m->d->task[i]]) s->n_task[p]++;
        seen[m->d->task[i]] = 1;
        s->n_target[p] += s->target && s->target[i];
    }
    s->n_program[p] = n;
    hash_keys(tmp, n, s->hash[p]);
}

static void count_rest(const cd_splitter *m) {
    cd_split *s = m->s;
    for (size_t i = 0; i < s->n; i++) {
        if (!m->keep[i] || s->part[i] != CD_SPLIT_PART_NONE) continue;
        if (s->unlabelled && s->unlabelled[i]) s->n_unlabelled++;
        else s->n_unused++;
    }
    s->n_unused -= s->n_thinned;
}

static cdmpp_status empty_part(const cd_splitter *m, cd_split_part p, cdmpp_err *err) {
    const cd_split *s = m->s;
    const bool shared =
        m->spec->kind == CD_SPLIT_NETWORK && p == CD_SPLIT_PART_TRAIN && s->n_shared;
    const bool named = m->spec->train_name.n || m->spec->test_name.n || m->spec->valid_name.n;
    char why[120] = "";
    if (shared)
        snprintf(
            why, sizeof why,
            "; %zu tasks of other networks occur in the held-out ones, too, and are not trained on",
            s->n_shared);
    else if ((m->spec->kind == CD_SPLIT_RECORD || m->spec->kind == CD_SPLIT_TASK) && !named)
        snprintf(why, sizeof why, "; more programs, or %s",
                 p == CD_SPLIT_PART_TRAIN  ? "less of them in split.valid and split.test"
                 : p == CD_SPLIT_PART_TEST ? "a larger split.test, or another split.seed"
                                           : "a larger split.valid, or another split.seed");
    return CD_FAIL(
        err, ERANGE,
        "the %s part of the split by %s is empty (train %zu, validation %zu, test %zu programs)%s",
        cd_split_part_name(p), cd_split_name(m->spec->kind), s->n_program[0], s->n_program[1],
        s->n_program[2], why);
}

/* The digest of a split is over the sorted keys of each part: equal splits of equal data have equal
 * digests. */
static cdmpp_status finish(cd_splitter *m, cdmpp_err *err) {
    cd_split *s = m->s;
    uint64_t *tmp = CD_NEWN(&m->arena, uint64_t, s->n);
    cd_sha256 h;
    if (!tmp) return CD_FAIL(err, ENOMEM, "keys of %zu programs", s->n);
    cd_sha256_init(&h);
    for (unsigned p = 0; p < CD_SPLIT_N_PART; p++) {
        finish_part(m, p, tmp, m->task_used);
        cd_sha256_add(&h, s->hash[p], 64);
    }
    cd_sha256_hex(&h, s->digest);
    count_rest(m);
    for (unsigned p = 0; p < CD_SPLIT_N_PART; p++)
        if (!s->n_program[p]) return empty_part(m, (cd_split_part)p, err);
    return CDMPP_OK;
}

void cd_split_notes(cd_buf *b, const cd_split *s) {
    if (s->n_shared)
        cd_buf_putf(b, "%zu tasks of the held-out networks occur in others, too: not trained on\n",
                    s->n_shared);
    if (s->target)
        cd_buf_putf(b,
                    "target device: %zu of %zu candidate tasks chosen; %zu programs train, %zu "
                    "validate, %zu are tested, %zu have no label\n",
                    s->n_chosen, s->n_candidate, s->n_target[0], s->n_target[1], s->n_target[2],
                    s->n_unlabelled);
    if (s->n_thinned)
        cd_buf_putf(
            b, "%zu programs of tasks that train are left out, more than split.train_per_task\n",
            s->n_thinned);
    if (s->n_unused) cd_buf_putf(b, "%zu programs are in no part\n", s->n_unused);
}

/* ---- all ---- */
/* A kind that draws no units has no names; only a device can be a target. */
static cdmpp_status check(const cd_split_spec *s, cdmpp_err *err) {
    const cd_texts *names[] = {&s->train_name, &s->test_name, &s->valid_name};
    static const char *const key[] = {"split.train_names", "split.test_names", "split.valid_names"};
    const bool by_name = s->kind != CD_SPLIT_RECORD && s->kind != CD_SPLIT_INTERLEAVED;
    for (int k = 0; k < 3; k++)
        if (names[k]->n && !by_name)
            return cd_err_key(err,
                              CD_FAIL(err, ESCHEMA,
                                      "names need a split by task, network or device, found %s",
                                      cd_split_name(s->kind)),
                              key[k]);
    if (s->target && s->kind != CD_SPLIT_DEVICE)
        return cd_err_key(err,
                          CD_FAIL(err, ESCHEMA, "target tasks need a split by device, found %s",
                                  cd_split_name(s->kind)),
                          "split.target_tasks");
    if (s->target && s->valid_name.n)
        return cd_err_key(
            err,
            CD_FAIL(err, ESCHEMA, "with target tasks, tasks are drawn for validation, found names"),
            "split.valid_names");
    return CDMPP_OK;
}

static cdmpp_status split_by_units(cd_splitter *m, cdmpp_err *err);

static cdmpp_status make(cd_splitter *m, cdmpp_err *err) {
    const cd_dataset *d = m->d;
    CD_TRY(check(m->spec, err));
    for (size_t i = 0; i < d->n; i++) {
        m->s->part[i] = CD_SPLIT_PART_NONE;
        if (!m->keep[i]) continue;
        m->key[i] = cd_stable_id_program(d, i);
        m->task_used[d->task[i]] = 1;
    }
    if (m->spec->kind == CD_SPLIT_RECORD) part_by_record(m);
    else
        CD_TRY(m->spec->kind == CD_SPLIT_INTERLEAVED ? split_interleave(m, err)
                                                     : split_by_units(m, err));
    if (m->spec->train_per_task > 0) CD_TRY(split_thin(m, err));
    return finish(m, err);
}

/* Room for the largest number of units that any rule has. */
cdmpp_status cd_split_make(const cd_dataset *d, const uint8_t *keep, const cd_split_spec *spec,
                           cd_split **out, cdmpp_err *err) {
    const size_t n_unit = d->n_task + d->n_network + d->n_device + 1;
    cd_splitter m = {.d = d, .keep = keep, .spec = spec, .s = cd_mem_zalloc(1, sizeof *m.s)};
    if (!m.s) return CD_FAIL(err, ENOMEM, "split of %zu programs", d->n);
    m.s->n = d->n;
    m.s->kind = spec->kind;
    m.s->part = CD_NEWN(&m.s->arena, uint8_t, d->n);
    m.task_used = CD_NEWN(&m.arena, uint8_t, d->n_task);
    m.task_part = CD_NEWN(&m.arena, uint8_t, d->n_task);
    m.dev_part = CD_NEWN(&m.arena, uint8_t, d->n_device);
    m.unit = CD_NEWN(&m.arena, cd_split_unit, n_unit);
    m.key = CD_NEWN(&m.arena, uint64_t, d->n);
    cdmpp_status st;
    if (m.s->part && !m.arena.oom) st = make(&m, err);
    else st = CD_FAIL(err, ENOMEM, "split of %zu programs", d->n);
    cd_arena_free(&m.arena);
    if (st) cd_split_free(m.s);
    else *out = m.s;
    return st;
}

void cd_split_free(cd_split *s) {
    if (!s) return;
    cd_arena_free(&s->arena);
    cd_mem_free(s);
}

/* Splits by task, network or device: who is drawn, and whose programs
 * that makes train, validation and test. */

/* ---- units ---- */
static int by_rank_units(const void *a, const void *b) {
    const cd_split_unit *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void add_unit(cd_splitter *m, const char *name, uint32_t id) {
    m->unit[m->n_unit++] = (cd_split_unit){cd_rng_at(m->spec->seed, cd_stable_id_name(name)), name,
                                           id, CD_SPLIT_PART_TRAIN};
}

static void sort_units(cd_splitter *m) {
    if (m->n_unit) qsort(m->unit, m->n_unit, sizeof *m->unit, by_rank_units);
}

/* m->unit = the tasks of which `used` (n_task) is set, by rank. */
static void split_list_tasks(cd_splitter *m, const uint8_t *used) {
    m->n_unit = 0;
    for (uint32_t t = 0; t < m->d->n_task; t++)
        if (used[t]) add_unit(m, m->d->task_name[t], t);
    sort_units(m);
}

static cdmpp_status list_networks(cd_splitter *m, cdmpp_err *err) {
    uint8_t *used = CD_NEWN(&m->arena, uint8_t, m->d->n_network);
    if (!used) return CD_FAIL(err, ENOMEM, "%zu networks", m->d->n_network);
    for (size_t k = 0; k < m->d->n_net_task; k++)
        if (m->task_used[m->d->net_task[k]]) used[m->d->net_network[k]] = 1;
    for (uint32_t i = 0; i < m->d->n_network; i++)
        if (used[i]) add_unit(m, m->d->network_name[i], i);
    sort_units(m);
    return CDMPP_OK;
}

static cdmpp_status list_devices(cd_splitter *m, cdmpp_err *err) {
    uint8_t *used = CD_NEWN(&m->arena, uint8_t, m->d->n_device);
    if (!used) return CD_FAIL(err, ENOMEM, "%zu devices", m->d->n_device);
    for (size_t i = 0; i < m->d->n; i++)
        if (m->keep[i]) used[m->d->device[i]] = 1;
    for (uint32_t i = 0; i < m->d->n_device; i++)
        if (used[i]) add_unit(m, m->d->device_name[i], i);
    sort_units(m);
    return CDMPP_OK;
}

static cdmpp_status list_units(cd_splitter *m, cdmpp_err *err) {
    if (m->spec->kind == CD_SPLIT_NETWORK) return list_networks(m, err);
    if (m->spec->kind == CD_SPLIT_DEVICE) return list_devices(m, err);
    split_list_tasks(m, m->task_used);
    return CDMPP_OK;
}

/* ---- units by name ---- */
static bool answers(const cd_splitter *m, const cd_split_unit *u, const char *asked) {
    return m->spec->kind == CD_SPLIT_NETWORK ? cd_network_alias_answers(u->name, asked)
                                             : !strcmp(u->name, asked);
}

/* The nearest name is suggested: with and without the shapes behind a network's name. */
static cdmpp_status unknown_name(const cd_splitter *m, const char *asked, cdmpp_err *err) {
    const char *best = NULL;
    size_t least = strlen(asked) / 3 + 2;
    for (size_t u = 0; u < m->n_unit; u++) {
        char base[CD_DID_YOU_MEAN_MAX];
        const cd_str s = cd_network_alias_base(m->unit[u].name);
        snprintf(base, sizeof base, "%.*s", (int)s.n, s.p);
        const size_t d = cd_did_you_mean_distance(asked, base),
                     whole = cd_did_you_mean_distance(asked, m->unit[u].name);
        if (d >= least && whole >= least) continue;
        least = d < whole ? d : whole;
        best = m->unit[u].name;
    }
    return CD_FAIL(err, ESCHEMA, "expected a %s of the data set, found '%.120s'%s%.120s%s",
                   cd_split_name(m->spec->kind), asked, best ? ", did you mean '" : "",
                   best ? best : "", best ? "'?" : "");
}

/* Units start in part `from`; one that has left it is named twice. */
static cdmpp_status assign_names(cd_splitter *m, const cd_texts *names, uint8_t from,
                                 cd_split_part part, cdmpp_err *err) {
    for (size_t i = 0; i < names->n; i++) {
        bool hit = false;
        cdmpp_status st = CDMPP_OK;
        for (size_t u = 0; u < m->n_unit && !st; u++) {
            if (!answers(m, &m->unit[u], names->v[i])) continue;
            if (m->unit[u].part != from && m->unit[u].part != part)
                st = CD_FAIL(err, ESCHEMA, "'%.120s' is in the %s part already", m->unit[u].name,
                             cd_split_part_name((cd_split_part)m->unit[u].part));
            m->unit[u].part = (uint8_t)part;
            hit = true;
        }
        if (!st && !hit) st = unknown_name(m, names->v[i], err);
        if (st) return cd_err_index(err, st, i);
    }
    return CDMPP_OK;
}

/* The first round(fraction * of) units, at least one, by rank of those that train. */
static void split_take(cd_splitter *m, double fraction, size_t of, cd_split_part part) {
    size_t n = (size_t)llround(fraction * (double)of);
    if (!n) n = 1;
    for (size_t u = 0; u < m->n_unit && n; u++) {
        if (m->unit[u].part != CD_SPLIT_PART_TRAIN) continue;
        m->unit[u].part = (uint8_t)part;
        n--;
    }
}

static void fill(cd_splitter *m, uint8_t from, uint8_t to) {
    for (size_t u = 0; u < m->n_unit; u++)
        if (m->unit[u].part == from) m->unit[u].part = to;
}

/* Named units first; units without a name train, or, when names say who trains, are
 * tested, or are in no part when names say who is tested, too. */
static cdmpp_status assign_units(cd_splitter *m, cdmpp_err *err) {
    const cd_split_spec *s = m->spec;
    enum { FREE = CD_SPLIT_N_PART + 1 };
    fill(m, CD_SPLIT_PART_TRAIN, FREE);
    CD_TRY(cd_err_key(err, assign_names(m, &s->train_name, FREE, CD_SPLIT_PART_TRAIN, err),
                      "split.train_names"));
    CD_TRY(cd_err_key(err, assign_names(m, &s->test_name, FREE, CD_SPLIT_PART_TEST, err),
                      "split.test_names"));
    CD_TRY(cd_err_key(err, assign_names(m, &s->valid_name, FREE, CD_SPLIT_PART_VALID, err),
                      "split.valid_names"));
    fill(m, FREE,
         s->train_name.n ? (s->test_name.n ? CD_SPLIT_PART_NONE : CD_SPLIT_PART_TEST)
                         : CD_SPLIT_PART_TRAIN);
    if (!s->test_name.n && !s->train_name.n) split_take(m, s->test, m->n_unit, CD_SPLIT_PART_TEST);
    if (!s->valid_name.n && s->kind == CD_SPLIT_TASK)
        split_take(m, s->valid, m->n_unit, CD_SPLIT_PART_VALID);
    return CDMPP_OK;
}

/* ---- units -> tasks -> programs ---- */
/* Test beats validation beats train beats no part: a task of a held-out network is not
 * trained on, one that only unused networks have is not used. */
static void tasks_of_networks(cd_splitter *m) {
    static const uint8_t strength[] = {[CD_SPLIT_PART_TRAIN] = 1,
                                       [CD_SPLIT_PART_VALID] = 2,
                                       [CD_SPLIT_PART_TEST] = 3,
                                       [CD_SPLIT_PART_NONE] = 0};
    const cd_dataset *d = m->d;
    memset(m->task_part, m->spec->train_name.n ? CD_SPLIT_PART_NONE : CD_SPLIT_PART_TRAIN,
           d->n_task);
    for (size_t u = 0; u < m->n_unit; u++)
        for (size_t k = 0; k < d->n_net_task; k++) {
            uint8_t *p = &m->task_part[d->net_task[k]];
            if (d->net_network[k] == m->unit[u].id && strength[m->unit[u].part] > strength[*p])
                *p = m->unit[u].part;
        }
}

/* Tasks of networks that train which are in the test part because of another network. */
static size_t count_shared(const cd_splitter *m, uint8_t *seen) {
    const cd_dataset *d = m->d;
    size_t n = 0;
    memset(seen, 0, d->n_task);
    for (size_t u = 0; u < m->n_unit; u++)
        for (size_t k = 0; k < d->n_net_task; k++) {
            const uint32_t t = d->net_task[k];
            if (d->net_network[k] != m->unit[u].id || m->unit[u].part == CD_SPLIT_PART_TEST ||
                m->task_part[t] != CD_SPLIT_PART_TEST)
                continue;
            n += m->task_used[t] && !seen[t];
            seen[t] = 1;
        }
    return n;
}

static void part_of_units(cd_splitter *m) {
    for (size_t u = 0; u < m->n_unit; u++) {
        if (m->spec->kind == CD_SPLIT_TASK) m->task_part[m->unit[u].id] = m->unit[u].part;
        if (m->spec->kind == CD_SPLIT_DEVICE) m->dev_part[m->unit[u].id] = m->unit[u].part;
    }
}

/* A fraction of the tasks that train. */
static void valid_tasks(cd_splitter *m, uint8_t *used) {
    for (size_t t = 0; t < m->d->n_task; t++)
        used[t] = m->task_used[t] && m->task_part[t] == CD_SPLIT_PART_TRAIN;
    split_list_tasks(m, used);
    split_take(m, m->spec->valid, m->n_unit, CD_SPLIT_PART_VALID);
    for (size_t u = 0; u < m->n_unit; u++) m->task_part[m->unit[u].id] = m->unit[u].part;
}

static cdmpp_status split_with_target(cd_splitter *m, cdmpp_err *err);

static cdmpp_status split_by_units(cd_splitter *m, cdmpp_err *err) {
    const cd_dataset *d = m->d;
    const cd_split_kind kind = m->spec->kind;
    CD_TRY(list_units(m, err));
    CD_TRY(assign_units(m, err));
    part_of_units(m);
    if (m->spec->target) return split_with_target(m, err);
    uint8_t *tmp = CD_NEWN(&m->arena, uint8_t, d->n_task);
    if (!tmp) return CD_FAIL(err, ENOMEM, "%zu tasks", d->n_task);
    if (kind == CD_SPLIT_NETWORK) {
        tasks_of_networks(m);
        m->s->n_shared = count_shared(m, tmp);
    }
    if (kind != CD_SPLIT_TASK && !m->spec->valid_name.n) valid_tasks(m, tmp);
    for (size_t i = 0; i < d->n; i++) {
        const uint8_t t = m->task_part[d->task[i]], v = m->dev_part[d->device[i]];
        /* none beats test beats validation beats train */
        if (m->keep[i]) m->s->part[i] = v > t ? v : t;
    }
    return CDMPP_OK;
}

/* A held-out device of which K tasks are measured (split.h, 7). */

enum { PER_TASK = 64 }; /* programs of a task that vectors are made of; more change little */

/* Part of a task on the target; candidates are CD_SPLIT_PART_NONE. */
typedef struct {
    cd_splitter *m;
    uint32_t target;
    uint8_t *here, *there; /* (n_task) the target, another device has programs of it */
    uint8_t *part;         /* (n_task) of the target's programs */
    uint8_t *valid;        /* (n_task) validation on other devices */
    size_t *program;       /* (n_program) candidates' programs, at most PER_TASK of a task */
    size_t n_program;
} dividing;

static cdmpp_status find_target(dividing *v, cdmpp_err *err) {
    size_t n = 0;
    for (uint32_t k = 0; k < v->m->d->n_device; k++)
        if (v->m->dev_part[k] == CD_SPLIT_PART_TEST) {
            v->target = k;
            n++;
        }
    if (n == 1) return CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected one device, the target, found %zu", n),
                      "split.test_names");
}

static void find_tasks(dividing *v) {
    const cd_dataset *d = v->m->d;
    for (size_t i = 0; i < d->n; i++) {
        if (!v->m->keep[i]) continue;
        if (d->device[i] == v->target) v->here[d->task[i]] = 1;
        else if (v->m->dev_part[d->device[i]] == CD_SPLIT_PART_TRAIN) v->there[d->task[i]] = 1;
    }
}

/* The target's tasks, then those that only others have. */
static cdmpp_status divide(dividing *v, cdmpp_err *err) {
    cd_splitter *m = v->m;
    const size_t n_task = m->d->n_task;
    split_list_tasks(m, v->here);
    if (m->n_unit < 3)
        return CD_FAIL(
            err, ERANGE,
            "expected at least 3 tasks on device '%s' (test, validation, candidates), found %zu",
            m->d->device_name[v->target], m->n_unit);
    split_take(m, m->spec->test, m->n_unit, CD_SPLIT_PART_TEST);
    split_take(m, m->spec->valid, m->n_unit, CD_SPLIT_PART_VALID);
    for (size_t u = 0; u < m->n_unit; u++) {
        const uint8_t p = m->unit[u].part;
        v->part[m->unit[u].id] = p == CD_SPLIT_PART_TRAIN ? CD_SPLIT_PART_NONE : p;
        v->valid[m->unit[u].id] = p == CD_SPLIT_PART_VALID;
        m->s->n_candidate += p == CD_SPLIT_PART_TRAIN;
    }
    for (size_t t = 0; t < n_task; t++)
        if (v->here[t]) v->there[t] = 0;
    split_list_tasks(m, v->there);
    if (m->n_unit) split_take(m, m->spec->valid, m->n_unit, CD_SPLIT_PART_VALID);
    for (size_t u = 0; u < m->n_unit; u++)
        v->valid[m->unit[u].id] = m->unit[u].part == CD_SPLIT_PART_VALID;
    return CDMPP_OK;
}

/* ---- choosing ---- */
typedef struct {
    uint64_t rank;
    uint32_t task;
    size_t i;
} drawn;

static int by_task(const void *a, const void *b) {
    const drawn *x = a, *y = b;
    if (x->task != y->task) return x->task < y->task ? -1 : 1;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

/* Programs to choose by: of each candidate the first PER_TASK by rank. */
static cdmpp_status list_programs(dividing *v, cdmpp_err *err) {
    cd_splitter *m = v->m;
    const cd_dataset *d = m->d;
    drawn *r = CD_NEWN(&m->arena, drawn, d->n);
    v->program = CD_NEWN(&m->arena, size_t, d->n);
    size_t n = 0, nth = 0;
    if (!r || !v->program) return CD_FAIL(err, ENOMEM, "candidates among %zu programs", d->n);
    for (size_t i = 0; i < d->n; i++)
        if (m->keep[i] && d->device[i] == v->target && v->part[d->task[i]] == CD_SPLIT_PART_NONE)
            r[n++] = (drawn){cd_rng_at(m->spec->seed, m->key[i]), d->task[i], i};
    if (n) qsort(r, n, sizeof *r, by_task);
    for (size_t k = 0; k < n; k++) {
        nth = k && r[k].task == r[k - 1].task ? nth + 1 : 0;
        if (nth < PER_TASK) v->program[v->n_program++] = r[k].i;
    }
    return CDMPP_OK;
}

static cdmpp_status gather(const dividing *v, float **x, size_t *dim, cdmpp_err *err) {
    const cd_split_target *t = v->m->spec->target;
    if (t->select == CD_SELECT_RANDOM) return CDMPP_OK;
    if (!t->x) return cd_task_embedding_rows(v->m->d, v->program, v->n_program, x, dim, err);
    *dim = t->dim;
    *x = cd_mem_zalloc(v->n_program * t->dim + 1, sizeof **x);
    if (!*x) return CD_FAIL(err, ENOMEM, "vectors of %zu programs", v->n_program);
    for (size_t i = 0; i < v->n_program; i++)
        memcpy(*x + i * t->dim, t->x + v->program[i] * t->dim, t->dim * sizeof **x);
    return CDMPP_OK;
}

/* Tasks of the target device are chosen by what their programs look like, never by their
 * latencies. */
static cdmpp_status choose(dividing *v, cdmpp_err *err) {
    cd_splitter *m = v->m;
    const cd_split_target *t = m->spec->target;
    float *x = NULL;
    size_t dim = 0;
    uint32_t *task = CD_NEWN(&m->arena, uint32_t, v->n_program);
    uint64_t *key = CD_NEWN(&m->arena, uint64_t, m->d->n_task);
    if (!task || !key) return CD_FAIL(err, ENOMEM, "%zu candidates", m->s->n_candidate);
    CD_TRY(gather(v, &x, &dim, err));
    for (size_t i = 0; i < v->n_program; i++) task[i] = m->d->task[v->program[i]];
    for (size_t k = 0; k < m->d->n_task; k++)
        key[k] = v->here[k] ? cd_stable_id_name(m->d->task_name[k]) : 0;
    const cd_select_input in = {v->n_program, dim, x, task, m->d->n_task, key};
    const cdmpp_status st = cd_select_tasks(&in, t->select, t->n_task, m->spec->seed, t->pool,
                                            m->s->chosen, &m->s->n_chosen, err);
    cd_mem_free(x);
    return st;
}

/* ---- programs ---- */
static void place(dividing *v) {
    cd_splitter *m = v->m;
    cd_split *s = m->s;
    for (size_t k = 0; k < s->n_chosen; k++) v->part[s->chosen[k]] = CD_SPLIT_PART_TRAIN;
    for (size_t i = 0; i < s->n; i++) {
        const uint32_t t = m->d->task[i];
        if (!m->keep[i] || m->dev_part[m->d->device[i]] == CD_SPLIT_PART_NONE) continue;
        if (m->d->device[i] != v->target) {
            s->part[i] = v->valid[t] ? CD_SPLIT_PART_VALID : CD_SPLIT_PART_TRAIN;
            continue;
        }
        s->target[i] = 1;
        s->part[i] =
            v->part[t] == CD_SPLIT_PART_VALID && !s->n_chosen ? CD_SPLIT_PART_NONE : v->part[t];
        s->unlabelled[i] = s->part[i] == CD_SPLIT_PART_NONE;
    }
}

static cdmpp_status with_target(dividing *v, cdmpp_err *err) {
    const size_t k = v->m->spec->target->n_task;
    CD_TRY(find_target(v, err));
    find_tasks(v);
    CD_TRY(divide(v, err));
    if (k > v->m->s->n_candidate)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE,
                                  "expected at most %zu, the candidates on '%s', found %zu",
                                  v->m->s->n_candidate, v->m->d->device_name[v->target], k),
                          "split.target_tasks");
    if (k) CD_TRY(list_programs(v, err));
    if (k) CD_TRY(choose(v, err));
    place(v);
    return CDMPP_OK;
}

/* split.c; dev_part says which device is the target (TEST) and which have no part.
 *
 * A few labelled tasks of the target are for training; the others are its test part, usable without
 * labels. */
static cdmpp_status split_with_target(cd_splitter *m, cdmpp_err *err) {
    const size_t n = m->d->n_task;
    cd_arena *a = &m->arena;
    dividing v = {.m = m,
                  .here = CD_NEWN(a, uint8_t, n),
                  .there = CD_NEWN(a, uint8_t, n),
                  .part = CD_NEWN(a, uint8_t, n),
                  .valid = CD_NEWN(a, uint8_t, n)};
    m->s->target = CD_NEWN(&m->s->arena, uint8_t, m->d->n);
    m->s->unlabelled = CD_NEWN(&m->s->arena, uint8_t, m->d->n);
    m->s->chosen = CD_NEWN(&m->s->arena, uint32_t, n);
    if (a->oom || m->s->arena.oom) return CD_FAIL(err, ENOMEM, "%zu tasks", n);
    return with_target(&v, err);
}
