/* Facts of loop nests and the analytic times of chosen programs, for members that read them; and
 * whether train.facts auto takes them. */
#include "learner/train/training_set.h"

#include <math.h>
#include <string.h>

#include "features/device/device.h"
#include "learner/inputs/inputs.h"

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

cdmpp_status cd_training_facts_find(cd_training_set *t, bool read, cdmpp_err *err) {
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
    if (!st) st = cd_training_set_note_unusual(t, l, err);
    cd_device_table_free(l);
    cd_diag_free(&diag);
    return st;
}
