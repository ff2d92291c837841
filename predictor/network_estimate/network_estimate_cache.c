/* The cache of chosen candidates.
 *
 *   <cache>/3f/3f9a....json  one record; named by the SHA-256 of model, device, target, hardware,
 *                            trials, seed and task
 *
 * A cache that cannot be written makes later runs slower and is no error. A damaged file is a
 * message, and its task is chosen anew. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/io.h"
#include "predictor/network_estimate/network_estimate_internal.h"

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

void cd_network_estimate_cache_write(const cd_network_estimate *e,
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

/* All files that are there, in one reading. */
cdmpp_status cd_network_estimate_cache_read(cd_network_estimate *e,
                                            const cd_network_estimate_case *c,
                                            cd_network_estimate_device *d, const char *const *key,
                                            size_t n, cdmpp_err *err) {
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
