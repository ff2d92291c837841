/* Splits by task, network or device: who is drawn, and whose programs
 * that makes train, validation and test. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "features/task/task.h"
#include "dataset/split/split_internal.h"

/* ---- units ---- */
static int by_rank(const void *a, const void *b) {
    const cd_split_unit *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void add_unit(cd_splitter *m, const char *name, uint32_t id) {
    m->unit[m->n_unit++] = (cd_split_unit){cd_rng_at(m->spec->seed, cd_stable_id_name(name)), name,
                                           id, CD_SPLIT_PART_TRAIN};
}

static void sort_units(cd_splitter *m) {
    if (m->n_unit) qsort(m->unit, m->n_unit, sizeof *m->unit, by_rank);
}

void cd_split_list_tasks(cd_splitter *m, const uint8_t *used) {
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
    cd_split_list_tasks(m, m->task_used);
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

void cd_split_take(cd_splitter *m, double fraction, size_t of, cd_split_part part) {
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
    if (!s->test_name.n && !s->train_name.n)
        cd_split_take(m, s->test, m->n_unit, CD_SPLIT_PART_TEST);
    if (!s->valid_name.n && s->kind == CD_SPLIT_TASK)
        cd_split_take(m, s->valid, m->n_unit, CD_SPLIT_PART_VALID);
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
    cd_split_list_tasks(m, used);
    cd_split_take(m, m->spec->valid, m->n_unit, CD_SPLIT_PART_VALID);
    for (size_t u = 0; u < m->n_unit; u++) m->task_part[m->unit[u].id] = m->unit[u].part;
}

cdmpp_status cd_split_by_units(cd_splitter *m, cdmpp_err *err) {
    const cd_dataset *d = m->d;
    const cd_split_kind kind = m->spec->kind;
    CD_TRY(list_units(m, err));
    CD_TRY(assign_units(m, err));
    part_of_units(m);
    if (m->spec->target) return cd_split_with_target(m, err);
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
