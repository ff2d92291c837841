/* Schedules of cdmpp-replay: books and logs that are given, candidates of the model, and a cache of these.
 *
 *   <cache>/3f/3f9a....json     one record; named by the SHA-256 of model, device, target, hardware, trials, seed and task
 *
 * A cache that cannot be written finds less, and is no error. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/io.h"
#include "base/core/core.h"
#include "predictor/estimate/estimate.h"
#include "predictor/cmd/replay/main_replay.h"

enum { PATH = 1024, PICKER = 2 }; /* PICKER: goes up when the same question gets another answer */

/* ---- keys ---- */
static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

typedef struct {
    const char **key;           /* (n) sorted */
    size_t n;
} wants;

/* Sorted, each once; how many. */
static size_t distinct(const char **v, size_t n) {
    size_t k = 0;
    qsort(v, n, sizeof(const char *), by_text);
    for (size_t i = 0; i < n; i++)
        if (!i || strcmp(v[i], v[k - 1]) != 0) v[k++] = v[i];
    return k;
}

static bool runs_task(const cd_network_node *n) { return n->kind == CD_NODE_TASK && n->repeat; }

/* The distinct tasks that the graph runs on this device. */
static cdmpp_status keys_of(const cd_main_replay_case *c, const cd_main_replay_device *d, cd_arena *a, const char ***out, size_t *n, cdmpp_err *err) {
    const cd_network_graph *g = c->source->graph;
    *n = 0;
    if (!(*out = CD_NEWN(a, const char *, (size_t)g->n_node + 1))) return CD_FAIL(err, ENOMEM, "%u nodes", g->n_node);
    for (uint32_t i = 0; i < g->n_node; i++)
        if (runs_task(&g->node[i]) && (!c->where || c->place[c->where[i]] == d)) (*out)[(*n)++] = g->node[i].key;
    *n = distinct(*out, *n);
    return CDMPP_OK;
}

/* Those of all networks: no other schedule is kept. */
static cdmpp_status all_keys(const cd_main_replay_plan *p, cd_arena *a, wants *w, cdmpp_err *err) {
    size_t most = 0;
    for (size_t k = 0; k < p->n_source; k++) most += p->source[k]->graph ? p->source[k]->graph->n_node : 0;
    w->n = 0;
    if (!(w->key = CD_NEWN(a, const char *, most + 1))) return CD_FAIL(err, ENOMEM, "%zu tasks", most);
    for (size_t k = 0; k < p->n_source; k++) {
        const cd_network_graph *g = p->source[k]->graph;
        for (uint32_t i = 0; g && i < g->n_node; i++)
            if (runs_task(&g->node[i])) w->key[w->n++] = g->node[i].key;
    }
    w->n = distinct(w->key, w->n);
    return CDMPP_OK;
}

/* ---- what is given ---- */
static void on_bad(void *ctx, const cdmpp_err *why) { cd_log_err(ctx, CD_LOG_WARNING, why); }

static cdmpp_status read_logs(cd_main_replay_plan *p, cd_main_replay_device *d, const cd_texts *files, const wants *w, cdmpp_err *err) {
    cd_schedule_db_logs io = {.device = d->name, .key = w->key, .n_key = w->n, .warn = on_bad, .ctx = p->o->log};
    if (!files->n || !w->n) return CDMPP_OK;
    const size_t before = cd_schedule_db_count(d->book);
    CD_TRY(cd_schedule_db_read_logs(d->book, files->v, files->n, &io, err));
    if (io.lines && cd_schedule_db_count(d->book) == before)
        cd_log_put(p->o->log, CD_LOG_WARNING, "none of the %zu records in %s%s is of these networks on %s", io.lines, files->v[0], files->n > 1 ? ", ..." : "", d->name);
    p->o->bad_lines += io.bad;
    if (io.bad) cd_log_put(p->o->log, CD_LOG_WARNING, "%zu of %zu lines of logs cannot be used", io.bad, io.lines);
    return CDMPP_OK;
}

static cdmpp_status read_given(cd_main_replay_plan *p, cd_main_replay_device *d, cdmpp_err *err) {
    cd_arena a = {0};
    wants w;
    CD_TRY(cd_schedule_db_new(&d->book, err));
    cdmpp_status st = all_keys(p, &a, &w, err);
    if (!st) st = read_logs(p, d, &p->o->schedules, &w, err);
    if (!st) st = read_logs(p, d, &p->o->records, &w, err);
    for (size_t k = 0; !st && k < p->o->store.n; k++) st = cd_schedule_db_store_read(d->book, p->o->store.v[k], d->name, w.key, w.n, err);
    cd_arena_free(&a);
    return st;
}

/* ---- the cache ---- */
static bool cache_folder(const cd_main_replay *o, char *to, size_t n) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (o->cache) return o->cache[0] && (size_t)snprintf(to, n, "%s", o->cache) < n;
    if (xdg && xdg[0] == '/') return (size_t)snprintf(to, n, "%s/cdmpp/books", xdg) < n;
    return home && home[0] && (size_t)snprintf(to, n, "%s/.cache/cdmpp/books", home) < n;
}

static bool is_plain(const cd_main_replay_case *c, const char *key) {
    const cd_network_loaded *l = c->source->live;
    return l && l->n_plain && bsearch(&key, l->plain, l->n_plain, sizeof *l->plain, by_text);
}

static void add_text(cd_sha256 *s, const char *text) { cd_sha256_add(s, text, strlen(text) + 1); }

/* False: nothing is kept. */
static bool cached_as(const cd_main_replay_plan *p, const cd_main_replay_case *c, const cd_main_replay_device *d, const char *key, char *to, size_t n) {
    char dir[PATH], hex[65], how[64];
    cd_sha256 s;
    if (!cache_folder(p->o, dir, sizeof dir)) return false;
    cd_sha256_init(&s);
    snprintf(how, sizeof how, "%d %d %d %d", PICKER, p->o->trials ? p->o->trials : CD_SCHEDULE_DB_TRIALS, p->o->seed, is_plain(c, key));
    add_text(&s, how);
    add_text(&s, cd_model_digest(d->model));
    add_text(&s, d->name);
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

static void keep(const cd_main_replay_plan *p, const cd_main_replay_case *c, const cd_main_replay_device *d, const char *key) {
    char path[PATH];
    cd_buf b = {0};
    const cd_schedule_db_entry *s = cd_schedule_db_find(d->book, key);
    if (!s || !cached_as(p, c, d, key, path, sizeof path)) return;
    make_folders(path);
    cd_buf_put(&b, s->line, s->len);
    cd_buf_puts(&b, "\n");
    if (!b.oom) (void)cd_file_write(path, b.p, b.n, NULL);
    cd_buf_free(&b);
}

/* Those that are there, in one reading. A damaged file is a warning, and its task is chosen anew. */
static cdmpp_status from_cache(cd_main_replay_plan *p, const cd_main_replay_case *c, cd_main_replay_device *d, const char *const *key, size_t n, cdmpp_err *err) {
    cd_arena a = {0};
    cd_schedule_db_logs io = {.warn = on_bad, .ctx = p->o->log, .key = key, .n_key = n};
    const char **path = CD_NEWN(&a, const char *, n + 1);
    size_t found = 0;
    char one[PATH];
    for (size_t k = 0; path && k < n; k++)
        if (cached_as(p, c, d, key[k], one, sizeof one) && !access(one, R_OK) && !(path[found++] = cd_str_dup(&a, (cd_str){one, strlen(one)}))) found = 0;
    const cdmpp_status st = found ? cd_schedule_db_read_logs(d->book, path, found, &io, err) : CDMPP_OK;
    cd_arena_free(&a);
    return st;
}

/* ---- candidates ---- */
/* Keys without a schedule, moved to the front. */
static size_t bare(const cd_main_replay_device *d, const char **key, size_t n) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (!cd_schedule_db_find(d->book, key[i])) {
            const char *t = key[k];
            key[k++] = key[i];
            key[i] = t;
        }
    return k;
}

/* A task without a definition is the cost's to name. */
static size_t defined(const cd_task_registry *t, const char **key, size_t n) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        const cd_task *x = t ? cd_task_registry_find(t, (cd_str){key[i], strlen(key[i])}) : NULL;
        if (x && x->dag) key[k++] = key[i];
    }
    return k;
}

static cdmpp_status choose(cd_main_replay_plan *p, const cd_main_replay_case *c, cd_main_replay_device *d, const char **key, size_t n, cdmpp_err *err) {
    const cd_main_replay *o = p->o;
    const cd_schedule_db_pick how = {.trials = (uint32_t)(o->trials ? o->trials : CD_SCHEDULE_DB_TRIALS), .seed = (uint64_t)o->seed, .target = d->target, .device = d->name,
                                   .plain = c->source->live ? c->source->live->plain : NULL, .n_plain = c->source->live ? c->source->live->n_plain : 0};
    n = defined(c->source->tasks, key, n);
    CD_TRY(from_cache(p, c, d, key, n, err));
    n = bare(d, key, n);
    if (!n) return CDMPP_OK;
    if (!p->pool) CD_TRY(cd_threads_new(o->jobs, &p->pool, err));
    cd_log_put(o->log, CD_LOG_DEBUG, "%s: schedules of %zu tasks for %s are chosen, of %u candidates each", c->source->name, n, d->name, how.trials);
    CD_TRY(cd_schedule_db_predict(d->book, d->model, c->source->tasks, key, n, &how, p->pool, err));
    for (size_t k = 0; k < n; k++) keep(p, c, d, key[k]);
    const size_t none = bare(d, key, n);
    if (none) cd_log_put(o->log, CD_LOG_WARNING, "%s: none of %u candidates of %zu tasks is a program for %s: %.120s", c->source->name, how.trials, none, d->name, key[0]);
    return CDMPP_OK;
}

static void tell_bare(const cd_main_replay_plan *p, cd_main_replay_case *c, const cd_main_replay_device *d, const char *const *key, size_t n, size_t all) {
    cd_buf b = {0};
    for (size_t k = 0; k < n && k < 3; k++) cd_buf_putf(&b, "%s%.80s", k ? "; " : "", key[k]);
    cd_log_put(p->o->log, CD_LOG_WARNING, "%s: %zu of %zu tasks are not in the logs for %s: %s%s", c->source->name, n, all, d->name,
               b.p ? b.p : "", n > 3 ? "; ..." : "");
    cd_buf_free(&b);
}

cdmpp_status cd_main_replay_schedules(cd_main_replay_plan *p, cd_main_replay_case *c, cd_main_replay_device *d, cdmpp_err *err) {
    const cd_main_replay *o = p->o;
    const bool given = o->records.n || o->schedules.n || o->store.n;
    cd_arena a = {0};
    const char **key;
    size_t n = 0;
    cdmpp_status st = d->book ? CDMPP_OK : read_given(p, d, err);
    if (!st) st = keys_of(c, d, &a, &key, &n, err);
    if (!st) {
        const size_t all = n;
        c->n_task += n;
        n = bare(d, key, n);
        if (given) c->n_bare += n;
        if (n && given && !o->replay_given) tell_bare(p, c, d, key, n, all);
        if (n && n == all && given && !o->trials && !o->allow_missing && !o->replay_given)
            st = CD_FAIL(err, ESCHEMA, "none of its %zu tasks is in the logs for %s: are they of another network, or device?", all, d->name);
        if (!st && n && d->model && (!given || o->trials) && !o->from_records && !o->replay_given) st = choose(p, c, d, key, n, err);
    }
    cd_arena_free(&a);
    return st;
}

/* ---- --save-schedules ---- */
/* "book.json" for k80: "book.k80.json". */
static cdmpp_status path_for(const char *path, const char *device, cd_buf *b, cdmpp_err *err) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    const size_t n = dot ? (size_t)(dot - path) : strlen(path);
    cd_buf_putf(b, "%.*s.%s%s", (int)n, path, device, dot ? dot : "");
    return b->oom ? CD_FAIL(err, ENOMEM, "a path") : CDMPP_OK;
}

static cdmpp_status save_book(const cd_main_replay_plan *p, const cd_main_replay_device *d, bool one, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = one ? CDMPP_OK : path_for(p->o->save_schedules, d->name, &b, err);
    if (!st && d->book) st = cd_schedule_db_write(d->book, b.p ? b.p : p->o->save_schedules, err);
    cd_buf_free(&b);
    return st;
}

cdmpp_status cd_main_replay_save_schedules(cd_main_replay_plan *p, cdmpp_err *err) {
    if (!p->o->save_schedules) return CDMPP_OK;
    const bool one = p->n_device == 1 && !p->more;
    for (size_t k = 0; k < p->n_device; k++) CD_TRY(save_book(p, &p->device[k], one, err));
    for (const cd_main_replay_device *d = p->more; d; d = d->next) CD_TRY(save_book(p, d, one, err));
    return CDMPP_OK;
}
