/* What members are trained on: programs that are kept, their parts, folds, groups, weights and
 * devices. */
#include "learner/train/training_set.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "features/device/device.h"
#include "learner/inputs/inputs.h"

/* Facts of loop nests and the analytic times of chosen programs, for members that read them; and
 * whether train.facts auto takes them. */

/* ---- what is asked for ---- */
static cdmpp_status number_one(cd_training_set *t, const cd_device_table *l, size_t k,
                               cdmpp_err *err) {
    const cd_device *d;
    CD_TRY(cd_err_key(err, cd_device_table_find(l, t->device_name[k], &d, err), "device.file"));
    t->numbers[k] = *d;
    t->numbers[k].name = t->device_name[k];
    return CDMPP_OK;
}

/* Chosen programs without facts; *first of them, *all chosen ones. */
static size_t count_without(const cd_training_set *t, size_t *first, size_t *all) {
    size_t n = 0;
    *all = 0;
    for (size_t i = 0; i < t->d->n; i++) {
        if (!cd_training_set_chosen(t, i)) continue;
        ++*all;
        if (!cd_facts_are_there(t->d->facts_state[i]) && !n++) *first = i;
    }
    return n;
}

/* Why programs that are chosen have no facts, so that nobody has to look for them. */
static cdmpp_status no_facts(const cd_training_set *t, cdmpp_err *err) {
    size_t first = 0, all;
    const size_t n = count_without(t, &first, &all);
    return cd_err_key(err,
                      CD_FAIL(err, ENODATA,
                              "%zu of %zu programs have no facts of their loop nests (line %llu of "
                              "%.80s: %s); --set filter.facts=true leaves them out",
                              n, all, (unsigned long long)t->d->source_line[first],
                              t->d->source_name[t->d->source_file[first]],
                              cd_layout_facts_text(t->d->facts_state[first])),
                      "train.facts");
}

/* Facts of CPU and of GPU programs have different columns. */
static cdmpp_status two_sets(const cd_training_set *t, size_t at, cdmpp_err *err) {
    return cd_err_key(err,
                      CD_FAIL(err, ENODATA,
                              "programs of CPUs and of GPUs (line %llu of %.80s) have different "
                              "facts: train a model for each, or train.facts: none",
                              (unsigned long long)t->d->source_line[at],
                              t->d->source_name[t->d->source_file[at]]),
                      "train.facts");
}

static cdmpp_status fill_analytic(cd_training_set *t, cdmpp_err *err) {
    const cd_dataset *d = t->d;
    bool first = true;
    for (size_t i = 0; i < d->n * CD_N_ANALYTIC; i++) t->analytic[i] = NAN;
    for (size_t i = 0; i < d->n; i++) {
        if (!cd_training_set_chosen(t, i)) continue;
        if (i % 16 == 0) cd_spool_rest(d->spool);
        if (!cd_facts_are_there(d->facts_state[i])) return no_facts(t, err);
        if (first) t->facts_set = cd_facts_set_of(d->facts_state[i]);
        else if (t->facts_set != cd_facts_set_of(d->facts_state[i])) return two_sets(t, i, err);
        first = false;
        CD_TRY(cd_err_key(err,
                          cd_facts_input_times(t->facts_set, d->facts + i * CD_N_FACTS,
                                               &t->numbers[t->device[i]],
                                               t->analytic + i * CD_N_ANALYTIC, err),
                          "train.facts"));
    }
    return CDMPP_OK;
}

static cdmpp_status arrays(cd_training_set *t, cdmpp_err *err) {
    t->numbers = CD_NEWN(&t->arena, cd_device_numbers, t->n_device + 1);
    t->analytic = CD_NEWN(&t->arena, float, t->d->n *CD_N_ANALYTIC + 1);
    return t->arena.oom ? CD_FAIL(err, ENOMEM, "analytic times of %zu programs", t->d->n)
                        : CDMPP_OK;
}

/* ---- auto ---- */
static const char HERE[] =
    "\"cdmpp-profile --describe-device --measure\" prints the description of the machine that it "
    "runs on. Write the descriptions of all devices into one file: --set device.file=FILE";

/* Devices that the table does not have, or (l NULL) all. */
static bool undescribed(cd_training_set *t, const cd_device_table *l, const char *path) {
    enum { SHOWN = 3 };
    const cd_device *d;
    cd_buf names = {0};
    size_t n = 0;
    for (size_t k = 0; k < t->n_device; k++) {
        if (l && !cd_device_table_find(l, t->device_name[k], &d, NULL)) continue;
        if (n++ < SHOWN) cd_buf_putf(&names, "%s%.60s", n > 1 ? ", " : "", t->device_name[k]);
    }
    if (n)
        cd_buf_putf(&t->no_facts, "%s %s%s%s not described in %s. %s", n > 1 ? "devices" : "device",
                    names.p ? names.p : "", n > SHOWN ? ", ..." : "", n > 1 ? " are" : " is",
                    l ? path : "any file", HERE);
    t->no_facts.oom |= names.oom;
    cd_buf_free(&names);
    return n > 0;
}

/* A description may lack what analytic times are computed with. */
static bool says_too_little(cd_training_set *t, const cd_device_table *l, const char *path) {
    const float none[CD_N_FACTS] = {0};
    for (size_t k = 0; k < t->n_device; k++) {
        cd_analytic_time time;
        cdmpp_err why = {0};
        const cd_device *d;
        if (cd_device_table_find(l, t->device_name[k], &d, NULL)) continue;
        const cdmpp_status st = cd_analytic_seconds_of(
            t->device_is_gpu[k] ? CD_FACTS_OF_GPU : CD_FACTS_OF_CPU, none, d, &time, &why);
        if (st != CDMPP_ESCHEMA && st != CDMPP_EUNSUPPORTED) continue;
        cd_buf_putf(&t->no_facts, "device %.60s, as %s describes it: %s. %s", t->device_name[k],
                    path, why.msg, HERE);
        return true;
    }
    return false;
}

static bool of_programs(cd_training_set *t) {
    size_t first = 0, all, last = t->d->n;
    const size_t n = count_without(t, &first, &all);
    if (n) {
        cd_buf_putf(&t->no_facts,
                    "%zu of %zu programs have no facts of their loop nests (line %llu of %.80s: "
                    "%s). filter.facts: true leaves them out",
                    n, all, (unsigned long long)t->d->source_line[first],
                    t->d->source_name[t->d->source_file[first]],
                    cd_layout_facts_text(t->d->facts_state[first]));
        return true;
    }
    for (size_t i = 0; i < t->d->n; i++) {
        if (!cd_training_set_chosen(t, i)) continue;
        if (last < t->d->n &&
            cd_facts_set_of(t->d->facts_state[i]) != cd_facts_set_of(t->d->facts_state[last])) {
            cd_buf_puts(
                &t->no_facts,
                "programs of CPUs and of GPUs have different facts. Train a model for each");
            return true;
        }
        last = i;
    }
    return false;
}

/* Is there something that prior would refuse? The first is told. */
static bool refused(cd_training_set *t, const cd_device_table *l, const char *path) {
    if (t->c->train_objective != CD_OBJECTIVE_LOG_LATENCY) {
        cd_buf_puts(&t->no_facts, "prior needs train.objective: log_latency");
        return true;
    }
    if (!t->d->facts) {
        cd_buf_puts(&t->no_facts, "a file of the data set has no facts of loop nests, or those of "
                                  "another version. Extract the logs again with cdmpp-extract");
        return true;
    }
    return of_programs(t) || undescribed(t, l, path) || (l && says_too_little(t, l, path));
}

/* t->c says from here on what was chosen, as if it had been configured so. */
static cdmpp_status settle(cd_training_set *t, cd_facts_use use, cdmpp_err *err) {
    cd_config *c = CD_NEW(&t->arena, cd_config);
    if (!c) return CD_FAIL(err, ENOMEM, "configuration");
    *c = *t->c;
    c->train_facts = use;
    t->c = c;
    return CDMPP_OK;
}

static cdmpp_status choose(cd_training_set *t, const cd_device_table *l, const char *path,
                           bool *none, cdmpp_err *err) {
    cd_buf_puts(&t->no_facts,
                "train.facts: auto takes none, so the model does not read facts of loop nests: ");
    *none = refused(t, l, path);
    if (t->no_facts.oom) return CD_FAIL(err, ENOMEM, "message");
    if (!*none) cd_buf_free(&t->no_facts);
    return settle(t, *none ? CD_FACTS_USE_NONE : CD_FACTS_USE_PRIOR, err);
}

/* ---- groups that are left out ---- */
static cdmpp_status leave_out(cd_training_set *t, cdmpp_err *err) {
    const cd_texts *name = &t->c->train_facts_without;
    for (size_t i = 0; i < name->n; i++) {
        const cd_facts_group g = cd_facts_input_group(name->v[i]);
        if (g == CD_N_FACTS_GROUP)
            return cd_err_index(err,
                                CD_FAIL(err, ESCHEMA,
                                        "expected one of " CD_FACTS_GROUPS ", found '%.60s'",
                                        name->v[i]),
                                i);
        t->facts_without |= 1U << g;
    }
    if (name->n && t->facts_set != CD_FACTS_OF_CPU)
        return CD_FAIL(err, EUNSUPPORTED, "the groups are of CPU programs, these are GPU programs");
    return CDMPP_OK;
}

/* ---- all ---- */
/* The devices of all parts must be described: analytic times are computed with their numbers. */
static cdmpp_status find(cd_training_set *t, const cd_device_table *l, const char *path,
                         cdmpp_err *err) {
    bool none = false;
    if (t->c->train_facts == CD_CONFIG_FACTS_AUTO) CD_TRY(choose(t, l, path, &none, err));
    if (none) return CDMPP_OK;
    CD_TRY(arrays(t, err));
    for (size_t k = 0; k < t->n_device; k++) CD_TRY(number_one(t, l, k, err));
    CD_TRY(fill_analytic(t, err));
    return cd_err_key(err, leave_out(t, err), "train.facts_without");
}

static cdmpp_status training_set_note_unusual(cd_training_set *t, const cd_device_table *l,
                                              cdmpp_err *err);

/* What members that read facts need, when devices are numbered: t->facts_set, numbers, analytic;
 * `read`: there are such members. train.facts auto becomes prior or none (t->c), with the reason in
 * t->no_facts. Errors: ESCHEMA (a device without description, or with one that says too little),
 * ENODATA (programs without facts, or of both kinds), ERANGE, ENUMERIC, EIO, ENOMEM. */
static cdmpp_status training_facts_find(cd_training_set *t, bool read, cdmpp_err *err) {
    if (!read)
        return t->c->train_facts == CD_CONFIG_FACTS_AUTO ? settle(t, CD_FACTS_USE_NONE, err)
                                                         : CDMPP_OK;
    cd_device_table *l = NULL;
    cd_diag diag = {0};
    const char *path = NULL;
    cdmpp_status st = cd_err_key(
        err, cd_device_table_open(&t->arena, t->c->device_file, t->c->path, &diag, &path, &l, err),
        "device.file");
    /* nobody asked for one */
    if (st == CDMPP_EIO && t->c->train_facts == CD_CONFIG_FACTS_AUTO && !t->c->device_file[0]) {
        if (err) *err = (cdmpp_err){0};
        cd_diag_free(&diag);
        if (t->arena.oom) return CD_FAIL(err, ENOMEM, "descriptions of devices");
        return find(t, NULL, NULL, err);
    }
    if (!st) st = find(t, l, path, err);
    if (!st) st = training_set_note_unusual(t, l, err);
    cd_device_table_free(l);
    cd_diag_free(&diag);
    return st;
}

/* ---- lists ---- */
static cdmpp_status list_parts(cd_training_set *t, cdmpp_err *err) {
    size_t n[CD_SPLIT_N_PART] = {0};
    for (int p = 0; p < CD_SPLIT_N_PART; p++) {
        t->program[p] = CD_NEWN(&t->arena, uint32_t, t->split->n_program[p]);
        if (!t->program[p]) return CD_FAIL(err, ENOMEM, "%zu programs", t->split->n_program[p]);
    }
    for (size_t i = 0; i < t->d->n; i++) {
        const unsigned p = t->split->part[i];
        if (p >= CD_SPLIT_N_PART) continue;
        t->program[p][n[p]++] = (uint32_t)i;
        t->log_s[i] = log(t->d->latency_s[i]);
    }
    return CDMPP_OK;
}

/* ---- folds ---- */
static const uint64_t fold_stream = 0x666f6c64; /* apart from the draws of the split */

typedef struct {
    uint64_t rank;
    uint32_t id; /* task or program */
} drawn;

static int by_rank(const void *a, const void *b) {
    const drawn *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool pooled(const cd_training_set *t, size_t i) {
    return t->split->part[i] == CD_SPLIT_PART_TRAIN || t->split->part[i] == CD_SPLIT_PART_VALID;
}

static bool by_program(const cd_training_set *t) {
    return t->split->kind == CD_SPLIT_RECORD || t->split->kind == CD_SPLIT_INTERLEAVED;
}

/* Networks that share most tasks leave none to a fold. */
static cdmpp_status folds_used(const cd_training_set *t, const uint8_t *used, const uint8_t *fold,
                               size_t n_name, cdmpp_err *err) {
    bool has[CD_FOLD_ALWAYS + 1] = {false};
    for (size_t k = 0; k < t->d->n_task; k++) has[fold[k]] |= used[k] != 0;
    for (int f = 0; f < t->n_fold; f++)
        if (!has[f])
            return cd_err_key(err,
                              CD_FAIL(err, ERANGE,
                                      "%d folds of %zu networks: one has no task of its own",
                                      t->n_fold, n_name),
                              "model.folds");
    return CDMPP_OK;
}

static uint64_t name_number(const char *network) {
    const cd_str base = cd_network_alias_base(network);
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)(base.n < sizeof name ? base.n : sizeof name - 1),
             base.p);
    return cd_stable_id_name(name);
}

/* Whole networks take folds in turn. A task of networks in different folds has none; one of no
 * network keeps its own. */
static cdmpp_status fold_networks(const cd_training_set *t, cd_arena *work, uint64_t seed,
                                  const uint8_t *used, uint8_t *fold, cdmpp_err *err) {
    const cd_dataset *d = t->d;
    drawn *u = CD_NEWN(work, drawn, d->n_network);
    uint8_t *own = CD_NEWN(work, uint8_t, d->n_network), *seen = CD_NEWN(work, uint8_t, d->n_task);
    size_t n = 0;
    if (work->oom) return CD_FAIL(err, ENOMEM, "folds of %zu networks", d->n_network);
    for (size_t j = 0; j < d->n_net_task; j++)
        if (used[d->net_task[j]]) own[d->net_network[j]] = 1;
    for (size_t k = 0; k < d->n_network; k++)
        if (own[k]) u[n++] = (drawn){cd_rng_at(seed, name_number(d->network_name[k])), (uint32_t)k};
    qsort(u, n, sizeof *u, by_rank);
    size_t n_name = 0; /* shapes of a network have one rank, stand together, and share a fold */
    for (size_t k = 0; k < n; k++) {
        n_name += !k || u[k].rank != u[k - 1].rank;
        own[u[k].id] = (uint8_t)((n_name - 1) % (size_t)t->n_fold);
    }
    for (size_t j = 0; j < d->n_net_task; j++) {
        const uint32_t task = d->net_task[j];
        if (!seen[task]) fold[task] = own[d->net_network[j]];
        else if (fold[task] != own[d->net_network[j]]) fold[task] = CD_FOLD_ALWAYS;
        seen[task] = 1;
    }
    return folds_used(t, used, fold, n_name, err);
}

/* Units in the order of their numbers take folds in turn, so that folds are even. */
static cdmpp_status draw_folds(cd_training_set *t, cd_arena *work, cdmpp_err *err) {
    const bool prog = by_program(t);
    const size_t n_unit = prog ? t->d->n : t->d->n_task;
    const uint64_t seed = (uint64_t)t->c->split_seed ^ fold_stream;
    drawn *u = CD_NEWN(work, drawn, n_unit);
    uint8_t *fold = CD_NEWN(work, uint8_t, n_unit), *used = CD_NEWN(work, uint8_t, n_unit);
    size_t n = 0;
    if (work->oom) return CD_FAIL(err, ENOMEM, "folds of %zu", n_unit);
    for (size_t i = 0; i < t->d->n; i++)
        if (pooled(t, i)) used[prog ? i : t->d->task[i]] = 1;
    for (size_t k = 0; k < n_unit; k++)
        if (used[k])
            u[n++] = (drawn){cd_rng_at(seed, prog ? cd_stable_id_program(t->d, k)
                                                  : cd_stable_id_name(t->d->task_name[k])),
                             (uint32_t)k};
    qsort(u, n, sizeof *u, by_rank);
    for (size_t k = 0; k < n; k++) fold[u[k].id] = (uint8_t)(k % (size_t)t->n_fold);
    if (!prog && t->c->model_fold_by == CD_FOLD_BY_NETWORK)
        CD_TRY(fold_networks(t, work, seed, used, fold, err));
    for (size_t i = 0; i < t->d->n; i++)
        t->fold[i] = pooled(t, i) ? fold[prog ? i : t->d->task[i]] : CD_FOLD_NEVER;
    return n < (size_t)t->n_fold
               ? cd_err_key(err,
                            CD_FAIL(err, ERANGE,
                                    "%d folds of %zu %s: expected at least as many; --set "
                                    "model.folds=%zu, or more programs",
                                    t->n_fold, n, prog ? "programs" : "tasks", n),
                            "model.folds")
               : CDMPP_OK;
}

/* The lists of units are freed before members are trained. */
static cdmpp_status make_folds(cd_training_set *t, cdmpp_err *err) {
    cd_arena work = {0};
    const cdmpp_status st = draw_folds(t, &work, err);
    cd_arena_free(&work);
    return st;
}

static void one_fold(cd_training_set *t) {
    for (size_t i = 0; i < t->d->n; i++)
        t->fold[i] = t->split->part[i] == CD_SPLIT_PART_VALID   ? 0
                     : t->split->part[i] == CD_SPLIT_PART_TRAIN ? CD_FOLD_ALWAYS
                                                                : CD_FOLD_NEVER;
}

static cdmpp_status list_oof(cd_training_set *t, cdmpp_err *err) {
    t->oof = CD_NEWN(&t->arena, uint32_t, t->d->n);
    if (!t->oof) return CD_FAIL(err, ENOMEM, "%zu programs", t->d->n);
    for (int f = 0; f < t->n_fold; f++)
        for (size_t i = 0; i < t->d->n; i++)
            if (t->fold[i] == f) t->oof[t->n_oof++] = (uint32_t)i;
    return CDMPP_OK;
}

/* A few tasks of a new device beside many of others: theirs count more. */
static cdmpp_status weigh(cd_training_set *t, cdmpp_err *err) {
    if (!t->split->target || t->c->fit_target_weight == 1) return CDMPP_OK;
    t->weight = CD_NEWN(&t->arena, float, t->d->n);
    if (!t->weight) return CD_FAIL(err, ENOMEM, "%zu weights", t->d->n);
    for (size_t i = 0; i < t->d->n; i++)
        t->weight[i] = t->split->target[i] ? (float)t->c->fit_target_weight : 1;
    return CDMPP_OK;
}

/* ---- devices ---- */
/* Devices of chosen programs, by name, so that the order of files does not matter. */
static cdmpp_status number_devices(cd_training_set *t, cdmpp_err *err) {
    const cd_dataset *d = t->d;
    uint32_t *number = cd_arena_alloc(&t->arena, d->n_device + 1, sizeof *number);
    t->device_name = CD_NEWN(&t->arena, const char *, d->n_device + 1);
    t->device_is_gpu = CD_NEWN(&t->arena, uint8_t, d->n_device + 1);
    if (!number || !t->device_name || !t->device_is_gpu)
        return CD_FAIL(err, ENOMEM, "%zu devices", d->n_device);
    for (uint32_t v = 0; v < d->n_device; v++) {
        size_t i = 0;
        while (i < d->n && !(cd_training_set_chosen(t, i) && d->device[i] == v)) i++;
        if (i < d->n) t->device_name[t->n_device++] = d->device_name[v];
    }
    qsort(t->device_name, t->n_device, sizeof *t->device_name, cd_sort_by_text);
    for (uint32_t v = 0; v < d->n_device; v++)
        for (uint32_t k = 0; k < t->n_device; k++)
            if (!strcmp(t->device_name[k], d->device_name[v])) number[v] = k;
    for (size_t i = 0; i < d->n; i++) {
        if (!cd_training_set_chosen(t, i)) continue;
        t->device[i] = number[d->device[i]];
        t->device_is_gpu[t->device[i]] = d->is_gpu[i] != 0;
    }
    return CDMPP_OK;
}

/* A descriptor in which nothing is known tells a network nothing: that is no description. */
static cdmpp_status describe_one(cd_training_set *t, const cd_device_table *l, size_t k,
                                 const char *path, cdmpp_err *err) {
    const cd_device_features f = (cd_device_features)t->c->device_features;
    const cd_device *d;
    CD_TRY(cd_err_key(err, cd_device_table_find(l, t->device_name[k], &d, err), "device.file"));
    if (f != CD_DEVICE_SHEET && !cd_device_probe_count(d))
        return cd_err_key(
            err,
            CD_FAIL(err, ESCHEMA,
                    "%.60s has no descriptor in %s: no key probe_*, count_* or rank_*", d->name,
                    path),
            "device.features");
    cd_device_features_fill(f, d, t->device_vector + k * t->w_device);
    return CDMPP_OK;
}

/* A network with a device branch needs to know what it runs on; trees go by number. */
/* Unusual numbers of a list of devices go to t->unusual, once. Errors: ENOMEM.
 *
 * The file may be read twice, for vectors and for facts. */
static cdmpp_status training_set_note_unusual(cd_training_set *t, const cd_device_table *l,
                                              cdmpp_err *err) {
    if (!t->unusual.n)
        cd_buf_puts(&t->unusual, cd_device_table_unusual(l)),
            cd_buf_puts(&t->unusual, cd_device_table_replaced(l));
    return t->unusual.oom ? CD_FAIL(err, ENOMEM, "message") : CDMPP_OK;
}

static cdmpp_status describe_devices(cd_training_set *t, bool needed, cdmpp_err *err) {
    cd_device_table *l = NULL;
    cd_diag diag = {0};
    const char *path;
    t->w_device = cd_device_features_width((cd_device_features)t->c->device_features);
    t->device_vector = CD_NEWN(&t->arena, float, t->n_device * t->w_device + 1);
    if (!t->device_vector) return CD_FAIL(err, ENOMEM, "devices");
    memset(t->device_vector, 0, t->n_device * t->w_device * sizeof *t->device_vector);
    if (!needed) return CDMPP_OK;
    cdmpp_status st = cd_err_key(
        err, cd_device_table_open(&t->arena, t->c->device_file, t->c->path, &diag, &path, &l, err),
        "device.file");
    for (size_t k = 0; !st && k < t->n_device; k++) st = describe_one(t, l, k, path, err);
    if (!st) st = training_set_note_unusual(t, l, err);
    cd_device_table_free(l);
    cd_diag_free(&diag);
    return st;
}

/* ---- all ---- */
/* What a training takes in memory over the arrays of its data. Measured with 103,000 programs of
 * 2.8 rows, rows and program side by side: 2.0 kB a program of data without leaves, 14.1 in all, as
 * XGBoost has 8 bytes for each value of a matrix; networks have batches beside the data. */
enum { OF_TREES = 7, OF_NETWORKS = 2 };

static uint64_t times_data(const cd_member_plan *plan) {
    return plan->trees ? OF_TREES : OF_NETWORKS;
}

cdmpp_status cd_training_set_load(const cd_config *c, const cd_member_plan *plan,
                                  const cd_dataset_share *share, cd_dataset **out, cdmpp_err *err) {
    const cd_dataset_options how = {.ast = plan->leaves,
                                    .steps = plan->steps,
                                    .facts = plan->facts,
                                    .memory = ((uint64_t)c->train_memory << 20) / times_data(plan),
                                    .folder = c->train_folder,
                                    .folder_key = "train.folder",
                                    .share = share};
    cd_dataset_options without = how;
    cdmpp_err why = {0};
    const cdmpp_status st = cd_dataset_load_within(c->data_files.v, c->data_files.n, &how, out,
                                                   plan->wish ? &why : err);
    without.facts = false;
    if (!plan->wish || !st) return st;
    /* files of an earlier version */
    if (st == CDMPP_ENODATA || st == CDMPP_ESCHEMA)
        return cd_dataset_load_within(c->data_files.v, c->data_files.n, &without, out, err);
    if (err) *err = why;
    return st;
}

/* The data are there once, what a training adds to them is there for each. */
int cd_training_set_at_once(const cd_config *c, const cd_member_plan *plan, const cd_dataset *d) {
    const uint64_t most = (uint64_t)c->train_memory << 20, one = (times_data(plan) - 1) * d->bytes;
    if (cd_spool_on_disk(d->spool)) return 1;
    if (!most || !one) return INT_MAX;
    const uint64_t n = most > d->bytes ? (most - d->bytes) / one : 1;
    return n < 1 ? 1 : n > INT_MAX ? INT_MAX : (int)n;
}

static cdmpp_status load(cd_training_set *t, const cd_member_plan *plan, cdmpp_err *err) {
    if (!t->d) {
        CD_TRY(cd_training_set_load(t->c, plan, NULL, &t->own, err));
        t->d = t->own;
    }
    if (t->d->n > UINT32_MAX) return CD_FAIL(err, ERANGE, "%zu programs", t->d->n);
    if (plan->steps && !t->d->step_ptr)
        return CD_FAIL(err, EMODEL, "the data set was loaded without steps");
    if (plan->facts && !plan->wish && !t->d->facts)
        return CD_FAIL(err, EMODEL, "the data set was loaded without facts");
    if (plan->leaves && !t->d->leaf_row)
        return CD_FAIL(err, EMODEL, "the data set was loaded without leaves");
    t->keep = CD_NEWN(&t->arena, uint8_t, t->d->n);
    t->fold = CD_NEWN(&t->arena, uint8_t, t->d->n);
    t->log_s = CD_NEWN(&t->arena, double, t->d->n);
    t->device = CD_NEWN(&t->arena, uint32_t, t->d->n);
    t->group = CD_NEWN(&t->arena, uint32_t, t->d->n);
    if (t->arena.oom) return CD_FAIL(err, ENOMEM, "%zu programs", t->d->n);
    for (size_t i = 0; i < t->d->n; i++)
        t->group[i] = t->d->task[i] * (uint32_t)t->d->n_device + t->d->device[i];
    return CDMPP_OK;
}

/* Folds need the split, weights and lists need the folds. */
cdmpp_status cd_training_set_make(cd_training_set *t, const cd_config *c, const cd_dataset *d,
                                  cd_threads *pool, cdmpp_err *err) {
    cd_member_plan plan;
    *t = (cd_training_set){.c = c, .d = d, .n_fold = (int)c->model_folds};
    CD_TRY(cd_member_plan_of(c, &plan, err));
    CD_TRY(load(t, &plan, err));
    CD_TRY(cd_select_programs(c, t->d, pool, t->keep, &t->filter, &t->split, err));
    CD_TRY(list_parts(t, err));
    if (c->model_fold_by == CD_FOLD_BY_NETWORK && (t->n_fold < 2 || by_program(t)))
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE,
                                  "folds of networks need model.folds of 2 and more, and a split "
                                  "that is not by program"),
                          "model.fold_by");
    if (t->n_fold > 1) CD_TRY(make_folds(t, err));
    else one_fold(t);
    CD_TRY(list_oof(t, err));
    CD_TRY(weigh(t, err));
    CD_TRY(number_devices(t, err));
    CD_TRY(describe_devices(t, plan.devices, err));
    CD_TRY(training_facts_find(t, plan.analytic, err));
    t->view = cd_program_view_facts(t->d, t->device, t->analytic, (int)t->facts_set);
    t->view.facts_without = t->facts_without;
    cd_spool_rest(t->d->spool);
    return CDMPP_OK;
}

void cd_training_set_free(cd_training_set *t) {
    cd_dataset_free(t->own);
    cd_split_free(t->split);
    cd_buf_free(&t->no_facts);
    cd_buf_free(&t->unusual);
    cd_arena_free(&t->arena);
    *t = (cd_training_set){0};
}
