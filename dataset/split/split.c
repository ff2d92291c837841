/* Parts of a data set: train, validation, test. Every rule gives a part to units (records, tasks,
 * networks, devices) by a hash of their names and the seed, so a split does not depend on the order
 * of the programs. */
#include "dataset/split/split_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/split/split.h"

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
        CD_TRY(m->spec->kind == CD_SPLIT_INTERLEAVED ? cd_split_interleave(m, err)
                                                     : cd_split_by_units(m, err));
    if (m->spec->train_per_task > 0) CD_TRY(cd_split_thin(m, err));
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
