/* The public calls of cdmpp.h about models and tasks: thin, no logic of their own. */
#include <string.h>

#include "predictor/api/api_internal.h"

int cdmpp_abi_version(void) { return CDMPP_ABI; }

cdmpp_status cd_api_copy_struct(void *to, size_t to_size, const void *from, size_t least,
                                const char *name, cdmpp_err *err) {
    size_t size;
    memcpy(&size, from, sizeof size);
    if (size < least || size > 4096)
        return CD_FAIL(err, EUSAGE, "%s.size: expected %zu, found %zu", name, to_size, size);
    memset(to, 0, to_size);
    memcpy(to, from, size < to_size ? size : to_size);
    for (size_t k = to_size; k < size; k++)
        if (((const char *)from)[k])
            return CD_FAIL(err, EUSAGE,
                           "%s sets a field that this version of the library does not know", name);
    return CDMPP_OK;
}

/* ---- tasks ---- */
cdmpp_status cdmpp_tasks_new(cdmpp_tasks **out, cdmpp_err *err) {
    cdmpp_tasks *t = cd_mem_alloc(sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "tasks handle");
    const cdmpp_status st = cd_task_registry_new(&t->impl, err);
    if (st) cd_mem_free(t);
    else *out = t;
    return st;
}

cdmpp_status cdmpp_tasks_load(cdmpp_tasks *t, const char *path, cdmpp_err *err) {
    return cd_task_registry_load(t->impl, path, err);
}

cdmpp_status cdmpp_tasks_add(cdmpp_tasks *t, const char *name, const void *bytes, size_t len,
                             cdmpp_err *err) {
    return cd_task_registry_load_text(t->impl, name, bytes, len, err);
}

size_t cdmpp_tasks_count(const cdmpp_tasks *t) { return cd_task_registry_count(t->impl); }
const char *cdmpp_tasks_key(const cdmpp_tasks *t, size_t i) {
    return cd_task_registry_at(t->impl, i)->workload_key;
}

const cdmpp_err *cdmpp_tasks_warning(const cdmpp_tasks *t, size_t i) {
    return cd_task_registry_unused(t->impl, i);
}

void cdmpp_tasks_free(cdmpp_tasks *t) {
    if (!t) return;
    cd_task_registry_free(t->impl);
    cd_mem_free(t);
}

/* ---- one task ---- */
static cd_hardware hardware_of(const int64_t *v) {
    return (cd_hardware){v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
}

/* One allocation holds key and target, and the aim points into it. flop: the caller's, else counted
 * from the definition, else -1 (unknown). */
static cdmpp_status fill_task(cdmpp_task *t, const cdmpp_tasks *tasks, const cdmpp_task_info *i,
                              cdmpp_err *err) {
    const size_t n_key = strlen(i->workload_key);
    cd_aim *a = &t->aim;
    if (tasks && !(a->task = cd_task_registry_find(tasks->impl, (cd_str){i->workload_key, n_key})))
        return CD_FAIL(err, ENOTASK, "no task file defines %.150s", i->workload_key);
    const char *target = i->target ? i->target : a->task ? a->task->target : "";
    const size_t n_target = strlen(target);
    if (!(t->text = cd_mem_alloc(n_key + n_target + 2))) return CD_FAIL(err, ENOMEM, "task handle");
    memcpy(t->text, i->workload_key, n_key + 1);
    memcpy(t->text + n_key + 1, target, n_target + 1);
    a->workload_key = t->text;
    a->target = (cd_str){t->text + n_key + 1, n_target};
    a->has_hardware = i->hardware != NULL;
    if (i->hardware) a->hardware = hardware_of(i->hardware);
    a->flop = i->flop > 0 ? i->flop : a->task ? cd_task_flop(a->task) : -1;
    return CDMPP_OK;
}

cdmpp_status cdmpp_task_new(const cdmpp_tasks *tasks, const cdmpp_task_info *info, cdmpp_task **out,
                            cdmpp_err *err) {
    cdmpp_task_info i;
    CD_TRY(cd_api_copy_struct(&i, sizeof i, info, sizeof i, "cdmpp_task_info", err));
    if (!i.workload_key) return CD_FAIL(err, EUSAGE, "cdmpp_task_info.workload_key is missing");
    cdmpp_task *t = cd_mem_zalloc(1, sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "task handle");
    const cdmpp_status st = fill_task(t, tasks, &i, err);
    if (st) cdmpp_task_free(t);
    else *out = t;
    return st;
}

double cdmpp_task_flop(const cdmpp_task *t) { return t->aim.flop; }

void cdmpp_task_free(cdmpp_task *t) {
    if (!t) return;
    cd_mem_free(t->text);
    cd_mem_free(t);
}

/* ---- model ---- */
static cdmpp_status keep_model(cd_model *impl, cdmpp_model **out, cdmpp_err *err) {
    cdmpp_model *m = cd_mem_alloc(sizeof *m);
    if (!m) {
        cd_model_free(impl);
        return CD_FAIL(err, ENOMEM, "model handle");
    }
    m->impl = impl;
    *out = m;
    return CDMPP_OK;
}

cdmpp_status cdmpp_model_load(const char *path, cdmpp_model **out, cdmpp_err *err) {
    cd_model *impl = NULL;
    cd_arena a = {0};
    if (!path) path = cd_default_model_path(&a);
    const cdmpp_status st = path ? cd_model_load(path, &impl, err) : cd_default_model_missing(err);
    cd_arena_free(&a);
    CD_TRY(st);
    return keep_model(impl, out, err);
}

cdmpp_status cdmpp_model_read(const void *bytes, size_t len, cdmpp_model **out, cdmpp_err *err) {
    cd_model *impl = NULL;
    CD_TRY(cd_model_from_bytes(bytes, len, &impl, err));
    return keep_model(impl, out, err);
}

const char *cdmpp_model_info(const cdmpp_model *m) { return cd_model_header(m->impl); }
size_t cdmpp_model_n_device(const cdmpp_model *m) { return cd_model_n_device(m->impl); }

const char *cdmpp_model_device(const cdmpp_model *m, size_t i) {
    return i < cd_model_n_device(m->impl) ? cd_model_device(m->impl, i) : NULL;
}

static const char *const profile[] = {"full", "tuner", "two-stage"};

size_t cdmpp_model_n_profile(const cdmpp_model *m) {
    return cd_model_tuner(m->impl) ? sizeof profile / sizeof *profile : 1;
}

const char *cdmpp_model_profile(const cdmpp_model *m, size_t i) {
    return i < cdmpp_model_n_profile(m) ? profile[i] : NULL;
}

const cd_model *cd_api_profile(const cdmpp_model *m, const char *name) {
    size_t i = 0;
    while (name && i < cdmpp_model_n_profile(m) && strcmp(name, profile[i]) != 0) i++;
    if (i == cdmpp_model_n_profile(m)) return NULL;
    return i ? cd_model_tuner(m->impl) : m->impl;
}

size_t cdmpp_model_n_col(const cdmpp_model *m) {
    (void)m; /* a model for other columns does not load */
    return CD_N_COL;
}

int cdmpp_model_takes_rows(const cdmpp_model *m) {
    return !cd_model_needs_leaves(m->impl) && !cd_model_needs_steps(m->impl) &&
           !cd_model_needs_facts(m->impl);
}

void cdmpp_model_free(cdmpp_model *m) {
    if (!m) return;
    cd_model_free(m->impl);
    cd_mem_free(m);
}

cdmpp_status cd_api_give_text(cd_buf *b, const char *what, char *to, size_t cap, size_t *len,
                              cdmpp_err *err) {
    cdmpp_status st = b->oom ? CD_FAIL(err, ENOMEM, "%s", what) : CDMPP_OK;
    if (!st) *len = b->n;
    if (!st && to && cap <= b->n)
        st = CD_FAIL(err, ERANGE, "expected room for %zu bytes, found %zu", b->n + 1, cap);
    if (!st && to) memcpy(to, b->p, b->n + 1);
    cd_buf_free(b);
    return st;
}
