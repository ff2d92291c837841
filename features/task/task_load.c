/* Task files into the registry: which kind a file is, decided by its content; folders;
 * networks.json. */
#include <stdio.h>
#include <string.h>

#include "base/cli/cli.h"
#include "base/io/io.h"
#include "features/dagtext/dagtext.h"
#include "features/task/task_internal.h"

/* ---- networks.json ---- */

/* A workload key alone counts once. */
static cdmpp_status network_item(cd_task_registry *t, const cd_json *v, uint32_t *task,
                                 int64_t *weight, cdmpp_err *err) {
    cd_str key;
    cd_task_entry *e;
    *weight = 1;
    if (v->kind == CD_JSON_OBJ) {
        const cd_json *w = cd_json_get(v, "weight");
        if (w) CD_TRY(cd_err_key(err, cd_json_int(w, 0, INT64_MAX, weight, err), "weight"));
        v = cd_json_get(v, "workload_key");
        CD_TRY(cd_err_key(err, cd_json_str(v, &key, err), "workload_key"));
    } else {
        CD_TRY(cd_json_str(v, &key, err));
    }
    CD_TRY(cd_task_registry_entry(t, key, NULL, &e, err));
    *task = e->index;
    return CDMPP_OK;
}

static cdmpp_status load_network(cd_task_registry *t, const cd_json *net, cdmpp_err *err) {
    const cd_json *it;
    CD_TRY(cd_json_arr(net, 0, &it, err));
    uint32_t *task = CD_NEWN(&t->scratch, uint32_t, net->n);
    int64_t *weight = CD_NEWN(&t->scratch, int64_t, net->n);
    if (!task || !weight) return CD_FAIL(err, ENOMEM, "networks");
    for (uint32_t i = 0; i < net->n; i++, it = it->next) {
        const cdmpp_status st = network_item(t, it, &task[i], &weight[i], err);
        if (st) return cd_err_index(err, st, i);
    }
    return cd_task_registry_add_network(t, net->key, task, weight, net->n, err);
}

static cdmpp_status load_networks(cd_task_registry *t, const cd_json *nets, cdmpp_err *err) {
    if (nets->kind != CD_JSON_OBJ)
        return CD_FAIL(err, ESCHEMA,
                       "expected tasks (\"schema\": \"cdmpp.tasks\") or networks (an object of "
                       "arrays), found %s",
                       cd_json_kind_name(nets->kind));
    for (const cd_json *net = nets->u.child; net; net = net->next) {
        const cdmpp_status st = load_network(t, net, err);
        char name[64];
        if (st) snprintf(name, sizeof name, "%.*s", cd_str_shown(net->key, 60), net->key.p);
        if (st) return cd_err_key(err, st, name);
    }
    return CDMPP_OK;
}

/* The fault of a text of another kind is not its first letter. */
static cdmpp_status load_json(cd_task_registry *t, const char *text, size_t len, cdmpp_err *err) {
    const cd_json *top = NULL;
    size_t i = 0;
    while (i < len && memchr(" \t\r\n", text[i], 4)) i++;
    if (i == len || text[i] != '{')
        return CD_FAIL(
            err, ESCHEMA,
            "no task file (JSON or a pickle), and no definition that TVM printed is in it");
    CD_TRY(cd_json_parse(&t->scratch, text, len, &top, err));
    if (!cd_json_get(top, "schema")) return load_networks(t, top, err);
    CD_TRY(cd_task_file_load(t, top, err));
    const cd_json *nets = cd_json_get(top, "networks");
    return nets ? cd_err_key(err, load_networks(t, nets, err), "networks") : CDMPP_OK;
}

/* ---- files and folders ---- */

cdmpp_status cd_task_registry_load_text(cd_task_registry *t, const char *name, const char *text,
                                        size_t len, cdmpp_err *err) {
    cdmpp_status st;
    cd_arena_reset(&t->scratch);
    t->name = name, t->text = text, t->end = text + len;
    if (len && (unsigned char)text[0] == 0x80) st = cd_task_pickle_load(t, name, text, len, err);
    else if (!cd_task_is_printed(text, len)) st = load_json(t, text, len, err);
    else st = cd_task_printed_load(t, text, len, err);
    cd_arena_free(&t->scratch); /* a big file's tree need not stay */
    return cd_err_at(err, st, name, 0);
}

/* found NULL: the file must define something; else what prints no definition is passed over. */
static cdmpp_status load_file(cd_task_registry *t, const char *path, size_t *found,
                              cdmpp_err *err) {
    char *text;
    size_t n;
    CD_TRY(cd_file_read(path, 0, &text, &n, err));
    cdmpp_status st = CDMPP_OK;
    const bool take = !found || cd_task_is_printed(text, n);
    if (take) st = cd_task_registry_load_text(t, path, text, n, err);
    if (found) *found += take;
    cd_mem_free(text);
    return st;
}

/* Does the file's name, less the ending of a packer, end like this? */
static bool ends(const char *path, const char *tail) {
    static const char *const pack[] = {"", ".gz", ".xz", ".zst"};
    const size_t n = strlen(path), m = strlen(tail);
    for (size_t k = 0; k < sizeof pack / sizeof *pack; k++) {
        const size_t p = strlen(pack[k]);
        if (n >= m + p && !memcmp(path + n - p, pack[k], p) && !memcmp(path + n - p - m, tail, m))
            return true;
    }
    return false;
}

typedef enum { NOT_TASKS, TASKS, NETWORKS, PRINTED } file_class;

static file_class classify(const char *path) {
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    if (ends(path, ".pkl") && !ends(path, ".relay.pkl")) return TASKS;
    if (ends(path, ".tasks.json")) return TASKS;
    if (ends(path, ".out")) return PRINTED;
    return !strncmp(base, "networks", 8) && ends(path, ".json") ? NETWORKS : NOT_TASKS;
}

static cdmpp_status load_class(cd_task_registry *t, const char *const *file, size_t n,
                               file_class want, size_t *found, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        if (classify(file[i]) != want) continue;
        CD_TRY(load_file(t, file[i], want == PRINTED ? found : NULL, err));
        *found += want != PRINTED;
    }
    return CDMPP_OK;
}

cdmpp_status cd_task_registry_load(cd_task_registry *t, const char *path, cdmpp_err *err) {
    cd_arena names = {0};
    const char *const *file;
    size_t n, found = 0;
    const uint32_t n_net = t->n_net;
    cdmpp_status st = cd_file_list(&names, path, NULL, NULL, &file, &n, err);
    if (!st && n == 1 && !strcmp(file[0], path)) {
        st = load_file(t, path, NULL, err);
    } else if (!st) {
        st = load_class(t, file, n, TASKS, &found, err);
        if (!st && !found) st = load_class(t, file, n, PRINTED, &found, err);
        /* the same networks under shorter names */
        if (!st && t->n_net == n_net) st = load_class(t, file, n, NETWORKS, &found, err);
        if (!st && found == 0)
            st = cd_err_at(err, CD_FAIL(err, ESCHEMA, "no task file in this folder"), path, 0);
    }
    cd_arena_free(&names);
    return st;
}

cdmpp_status cd_task_assumptions(const char *const *name, size_t n, unsigned *out, cdmpp_err *err) {
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        const int k =
            cd_enum_names_find(CD_DAGTEXT_ASSUMPTIONS, (cd_str){name[i], strlen(name[i])});
        if (k < 0)
            return CD_FAIL(err, EUSAGE,
                           "--assume: expected " CD_DAGTEXT_ASSUMPTIONS ", found '%.60s'", name[i]);
        *out |= 1U << k;
    }
    return CDMPP_OK;
}

static void tell_assumptions(const cd_task_registry *t, cd_log *log) {
    for (unsigned k = 0; 1U << k <= t->assume; k++) {
        const cd_str name = cd_enum_names_at(CD_DAGTEXT_ASSUMPTIONS, (int)k);
        if (t->assume & 1U << k)
            cd_log_put(log, CD_LOG_INFO, "printed definitions that rest on --assume %.*s: %zu",
                       (int)name.n, name.p, cd_task_registry_rest_count(t, 1U << k));
    }
}

cdmpp_status cd_task_registry_load_all(cd_task_registry *t, const char *const *path, size_t n,
                                       cd_log *log, cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    size_t said = t->n_unused;
    for (size_t i = 0; !st && i < n; i++) st = cd_task_registry_load(t, path[i], err);
    for (; cd_task_registry_unused(t, said); said++)
        cd_log_err(log, CD_LOG_WARNING, cd_task_registry_unused(t, said));
    tell_assumptions(t, log);
    return st;
}
