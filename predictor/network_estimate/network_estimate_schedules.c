/* Schedules of a device's tasks, fixed before anything is estimated: schedule databases and logs
 * that are given, then, where the options ask for it, the best predicted of the model's candidates.
 * Candidates are kept in a cache, because the search for them takes longer than everything else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/io.h"
#include "predictor/network_estimate/network_estimate_internal.h"

/* The cache of chosen candidates.
 *
 *   <cache>/3f/3f9a....json  one record; named by the SHA-256 of model, device, target, hardware,
 *                            trials, seed and task
 *
 * A cache that cannot be written makes later runs slower and is no error. A damaged file is a
 * message, and its task is chosen anew. */

/* PICKER: of the way candidates are chosen; a change of it makes old files invalid */
enum { PATH = 1024, PICKER = 2 };

static void on_bad(void *ctx, const cdmpp_err *why) { cd_log_err(ctx, CD_LOG_WARNING, why); }

static bool cache_folder(const cd_network_estimate_options *o, char *to, size_t n) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (o->cache) return o->cache[0] && (size_t)snprintf(to, n, "%s", o->cache) < n;
    if (xdg && xdg[0] == '/') return (size_t)snprintf(to, n, "%s/cdmpp/books", xdg) < n;
    return home && home[0] && (size_t)snprintf(to, n, "%s/.cache/cdmpp/books", home) < n;
}

static bool is_plain(const cd_network_estimate_case *c, const char *key) {
    const cd_network_loaded *l = c->source->loaded;
    return l && l->n_plain &&
           bsearch(&key, l->plain, l->n_plain, sizeof *l->plain, cd_sort_by_text);
}

static void add_text(cd_sha256 *s, const char *text) { cd_sha256_add(s, text, strlen(text) + 1); }

/* A description may change under the same name. */
static void add_numbers(cd_sha256 *s, const cd_device_numbers *d) {
    float v[CD_N_DEVICE_COL];
    cd_device_vector(d, v);
    cd_sha256_add(s, v, sizeof v);
}

/* Path of the task's file. Its name covers everything that the choice depends on. False: there is
 * no cache. */
static bool cached_as(const cd_network_estimate *e, const cd_network_estimate_case *c,
                      const cd_network_estimate_device *d, const char *key, char *to, size_t n) {
    char dir[PATH], hex[65], how[64];
    cd_sha256 s;
    if (!cache_folder(e->o, dir, sizeof dir)) return false;
    cd_sha256_init(&s);
    snprintf(how, sizeof how, "%d %d %d %d", PICKER,
             e->o->trials ? e->o->trials : CD_SCHEDULE_DB_TRIALS, e->o->seed, is_plain(c, key));
    add_text(&s, how);
    add_text(&s, cd_model_digest(d->model));
    add_text(&s, d->name);
    if (d->stands) add_text(&s, d->stands);
    if (d->numbers) add_numbers(&s, d->numbers);
    add_text(&s, d->target);
    cd_sha256_add(&s, &d->hardware, sizeof d->hardware);
    add_text(&s, key);
    cd_sha256_hex(&s, hex);
    return (size_t)snprintf(to, n, "%s/%.2s/%s.json", dir, hex, hex) < n;
}

static void make_folders(char *path) {
    for (char *s = path + 1; *s; s++) {
        if (*s != '/') continue;
        *s = 0;
        (void)mkdir(path, 0777);
        *s = '/';
    }
}

/* Keeps d's schedule of this task. What cannot be written is no error. */
static void network_estimate_cache_write(const cd_network_estimate *e,
                                         const cd_network_estimate_case *c,
                                         const cd_network_estimate_device *d, const char *key) {
    char path[PATH];
    cd_buf b = {0};
    const cd_schedule_db_entry *s = cd_schedule_db_find(d->schedules, key);
    if (!s || !cached_as(e, c, d, key, path, sizeof path)) return;
    make_folders(path);
    cd_buf_put(&b, s->line, s->len);
    cd_buf_puts(&b, "\n");
    if (!b.oom) (void)cd_file_write(path, b.p, b.n, NULL);
    cd_buf_free(&b);
}

/* Adds the cached candidates of these tasks to d->schedules. A damaged file is a message. Errors:
 * ENOMEM, EIO.
 *
 * All files that are there, in one reading. */
static cdmpp_status network_estimate_cache_read(cd_network_estimate *e,
                                                const cd_network_estimate_case *c,
                                                cd_network_estimate_device *d,
                                                const char *const *key, size_t n, cdmpp_err *err) {
    cd_arena a = {0};
    cd_schedule_db_logs io = {.warn = on_bad, .ctx = e->o->log, .key = key, .n_key = n};
    const char **path = CD_NEWN(&a, const char *, n + 1);
    size_t found = 0;
    char one[PATH];
    for (size_t k = 0; path && k < n; k++)
        if (cached_as(e, c, d, key[k], one, sizeof one) && !access(one, R_OK) &&
            !(path[found++] = cd_str_dup(&a, (cd_str){one, strlen(one)})))
            found = 0;
    const cdmpp_status st =
        found ? cd_schedule_db_read_logs(d->schedules, path, found, &io, err) : CDMPP_OK;
    cd_arena_free(&a);
    return st;
}

/* ---- keys ---- */
typedef struct {
    const char **key; /* (n) sorted */
    size_t n;
} key_list;

/* Sorted, each once; how many. */
static size_t distinct(const char **v, size_t n) {
    size_t k = 0;
    qsort(v, n, sizeof(const char *), cd_sort_by_text);
    for (size_t i = 0; i < n; i++)
        if (!i || strcmp(v[i], v[k - 1]) != 0) v[k++] = v[i];
    return k;
}

static bool runs_task(const cd_network_node *n) { return n->kind == CD_NODE_TASK && n->repeat; }

/* The distinct tasks that the graph runs on this device. */
static cdmpp_status keys_of(const cd_network_estimate_case *c, const cd_network_estimate_device *d,
                            cd_arena *a, const char ***out, size_t *n, cdmpp_err *err) {
    const cd_network_graph *g = c->source->graph;
    *n = 0;
    if (!(*out = CD_NEWN(a, const char *, (size_t)g->n_node + 1)))
        return CD_FAIL(err, ENOMEM, "%u nodes", g->n_node);
    for (uint32_t i = 0; i < g->n_node; i++)
        if (runs_task(&g->node[i]) && (!c->where || c->place[c->where[i]] == d))
            (*out)[(*n)++] = g->node[i].key;
    *n = distinct(*out, *n);
    return CDMPP_OK;
}

/* Tasks of all networks: a device reads its logs once for all cases, and keeps no other
 * schedule. */
static cdmpp_status all_keys(const cd_network_estimate *e, cd_arena *a, key_list *w,
                             cdmpp_err *err) {
    size_t most = 0;
    for (size_t k = 0; k < e->n_source; k++)
        most += e->source[k]->graph ? e->source[k]->graph->n_node : 0;
    w->n = 0;
    if (!(w->key = CD_NEWN(a, const char *, most + 1)))
        return CD_FAIL(err, ENOMEM, "%zu tasks", most);
    for (size_t k = 0; k < e->n_source; k++) {
        const cd_network_graph *g = e->source[k]->graph;
        for (uint32_t i = 0; g && i < g->n_node; i++)
            if (runs_task(&g->node[i])) w->key[w->n++] = g->node[i].key;
    }
    w->n = distinct(w->key, w->n);
    return CDMPP_OK;
}

/* ---- databases and logs ---- */
/* Tasks without a schedule take one of another device: which schedules are used is the user's
 * choice, and it is said. */
static cdmpp_status read_elsewhere(const cd_network_estimate *e, cd_network_estimate_device *d,
                                   const cd_texts *files, const key_list *w, cdmpp_err *err) {
    cd_schedule_db_logs io = {
        .device = d->name, .gpu = d->gpu, .elsewhere = true, .key = w->key, .n_key = w->n};
    const size_t before = cd_schedule_db_count(d->schedules);
    if (before == w->n) return CDMPP_OK;
    CD_TRY(cd_schedule_db_read_logs(d->schedules, files->v, files->n, &io, err));
    const size_t n = cd_schedule_db_count(d->schedules) - before;
    if (n)
        cd_log_put(e->o->log, CD_LOG_WARNING,
                   "%zu schedules of %s%s are of another device than %s; they are used as they are",
                   n, files->v[0], files->n > 1 ? ", ..." : "", d->name);
    return CDMPP_OK;
}

/* `database`: of --schedules, else logs, which may hold many devices. */
static cdmpp_status read_logs(cd_network_estimate *e, cd_network_estimate_device *d,
                              const cd_texts *files, bool database, const key_list *w,
                              cdmpp_err *err) {
    cd_schedule_db_logs io = {.device = d->name,
                              .also = d->also,
                              .gpu = d->gpu,
                              .unnamed = database,
                              .key = w->key,
                              .n_key = w->n,
                              .warn = on_bad,
                              .ctx = e->o->log};
    if (!files->n || !w->n) return CDMPP_OK;
    const size_t before = cd_schedule_db_count(d->schedules);
    CD_TRY(cd_schedule_db_read_logs(d->schedules, files->v, files->n, &io, err));
    if (database && !e->o->from_records) CD_TRY(read_elsewhere(e, d, files, w, err));
    if (io.lines && !io.wanted && cd_schedule_db_count(d->schedules) == before)
        cd_log_put(e->o->log, CD_LOG_WARNING,
                   "none of the %zu records in %s%s is of these networks on %s", io.lines,
                   files->v[0], files->n > 1 ? ", ..." : "", d->name);
    e->bad_lines += io.bad;
    if (io.bad)
        cd_log_put(e->o->log, CD_LOG_WARNING, "%zu of %zu lines of logs cannot be used", io.bad,
                   io.lines);
    return CDMPP_OK;
}

/* Order decides: a task keeps the first schedule that it gets. */
static cdmpp_status read_given(cd_network_estimate *e, cd_network_estimate_device *d,
                               cdmpp_err *err) {
    cd_arena a = {0};
    key_list w;
    CD_TRY(cd_schedule_db_new(&d->schedules, err));
    cdmpp_status st = all_keys(e, &a, &w, err);
    if (!st) st = read_logs(e, d, &e->o->schedules, true, &w, err);
    if (!st) st = read_logs(e, d, &e->o->records, false, &w, err);
    for (size_t k = 0; !st && k < e->o->store.n; k++)
        st = cd_schedule_db_store_read(d->schedules, e->o->store.v[k], d->name, w.key, w.n, err);
    cd_arena_free(&a);
    return st;
}

/* ---- candidates ---- */
/* Keys without a schedule, moved to the front. */
static size_t bare(const cd_network_estimate_device *d, const char **key, size_t n) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (!cd_schedule_db_find(d->schedules, key[i])) {
            const char *t = key[k];
            key[k++] = key[i];
            key[i] = t;
        }
    return k;
}

/* Keys of tasks that have a definition; of one that has none the node cost reports why it is
 * missing. */
static size_t defined(const cd_task_registry *t, const char **key, size_t n) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        const cd_task *x = t ? cd_task_registry_find(t, (cd_str){key[i], strlen(key[i])}) : NULL;
        if (x && x->dag) key[k++] = key[i];
    }
    return k;
}

/* Candidates for tasks without a schedule: from the cache, then by search. Prediction alone
 * decides, nothing is measured. */
static cdmpp_status choose(cd_network_estimate *e, const cd_network_estimate_case *c,
                           cd_network_estimate_device *d, const char **key, size_t n,
                           cdmpp_err *err) {
    const cd_network_estimate_options *o = e->o;
    const cd_schedule_db_pick how = {.trials = cd_network_estimate_draws(o, d),
                                     .seed = (uint64_t)o->seed,
                                     .target = d->target,
                                     .device = d->stands ? d->stands : d->name,
                                     .numbers = d->numbers,
                                     .plain = c->source->loaded ? c->source->loaded->plain : NULL,
                                     .n_plain = c->source->loaded ? c->source->loaded->n_plain : 0};
    n = defined(c->source->tasks, key, n);
    CD_TRY(network_estimate_cache_read(e, c, d, key, n, err));
    n = bare(d, key, n);
    if (!n) return CDMPP_OK;
    if (!e->pool) CD_TRY(cd_threads_new(o->jobs, &e->pool, err));
    cd_log_put(o->log, CD_LOG_DEBUG,
               "%s: schedules of %zu tasks for %s are chosen, of %u candidates each",
               c->source->name, n, d->name, how.trials);
    CD_TRY(cd_schedule_db_predict(d->schedules, d->model, c->source->tasks, key, n, &how, e->pool,
                                  err));
    for (size_t k = 0; k < n; k++) network_estimate_cache_write(e, c, d, key[k]);
    const size_t none = bare(d, key, n);
    if (none)
        cd_log_put(o->log, CD_LOG_WARNING,
                   "%s: none of %u candidates of %zu tasks is a program for %s: %.120s",
                   c->source->name, how.trials, none, d->name, key[0]);
    return CDMPP_OK;
}

static void warn_bare(const cd_network_estimate *e, cd_network_estimate_case *c,
                      const cd_network_estimate_device *d, const char *const *key, size_t n,
                      size_t all) {
    cd_buf b = {0};
    for (size_t k = 0; k < n && k < 3; k++) cd_buf_putf(&b, "%s%.80s", k ? "; " : "", key[k]);
    cd_log_put(e->o->log, CD_LOG_WARNING, "%s: %zu of %zu tasks are not in the logs for %s: %s%s",
               c->source->name, n, all, d->name, b.p ? b.p : "", n > 3 ? "; ..." : "");
    cd_buf_free(&b);
}

uint32_t cd_network_estimate_draws(const cd_network_estimate_options *o,
                                   const cd_network_estimate_device *d) {
    const bool given = o->records.n || o->schedules.n || o->store.n;
    if (!d->model || (given && !o->trials) || o->from_records || o->replay_given) return 0;
    return (uint32_t)(o->trials ? o->trials : CD_SCHEDULE_DB_TRIALS);
}

/* Where schedules are given, a search happens only when options.trials asks for it: a comparison
 * with measured times must not mix in candidates unnoticed. None of the tasks in the logs is an
 * error, because the logs are then most likely the wrong ones. */
cdmpp_status cd_network_estimate_schedules(cd_network_estimate *e, cd_network_estimate_case *c,
                                           cd_network_estimate_device *d, cdmpp_err *err) {
    const cd_network_estimate_options *o = e->o;
    const bool given = o->records.n || o->schedules.n || o->store.n;
    cd_arena a = {0};
    const char **key;
    size_t n = 0;
    cdmpp_status st = d->schedules ? CDMPP_OK : read_given(e, d, err);
    if (!st) st = keys_of(c, d, &a, &key, &n, err);
    if (!st) {
        const size_t all = n;
        c->n_task += n;
        n = bare(d, key, n);
        if (given) c->n_bare += n;
        if (n && given && !o->replay_given) warn_bare(e, c, d, key, n, all);
        if (n && n == all && given && !o->trials && !o->allow_missing && !o->replay_given)
            st = CD_FAIL(err, ESCHEMA,
                         "none of its %zu tasks is in the logs for %s: are they of another "
                         "network, or device?",
                         all, d->name);
        if (!st && n && cd_network_estimate_draws(o, d)) st = choose(e, c, d, key, n, err);
    }
    cd_arena_free(&a);
    return st;
}
