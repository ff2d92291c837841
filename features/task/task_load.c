/* Task files into the registry: which kind a file is, decided by its content; folders;
 * networks.json. */
#include <stdio.h>
#include <string.h>

#include "base/cli/cli.h"
#include "base/io/io.h"
#include "features/dagtext/dagtext.h"
#include "features/task/task_internal.h"

/* Texts in which TVM printed definitions beside their workload keys: what a tuner or a compiler
 * wrote to its terminal.
 *
 *   anything ["d373...", [1, 7, 7, 512], ...] anything  a key
 *   p0 = PLACEHOLDER [1, 7, 7, 512]                     its definition: the lines behind it until
 *                                                       their MD5 is that of the key;
 *   conv2d(n, y, x, f) += ...                           other lines may stand between. Or all of
 *                                                       them before the key
 *
 * A line may have several keys; the definitions behind it are theirs in any order.
 * A definition that cannot be read, or only by guessing, is not used: its key gets the reason. */

#define MAX_LINES 256

typedef struct {
    cd_task_registry *t;
    cdmpp_err *err;
    const char *path;
    /* those of the last line with keys that have no definition yet; the one that is dealt with */
    cd_str *key, key_of;
    size_t n_key, cap_key;
    long line, key_line;
    /* lines of a definition since that line, or since the last definition that was taken */
    cd_buf text;
    unsigned n_line; /* MAX_LINES + 1: there were more, and the text is not whole */
    bool placeholder;
} reader;

/* ---- keys ---- */

static bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

/* A key that begins at p: ["32 hex digits" and brackets, digits, commas up to the bracket that
 * closes it. */
static bool key_at(const char *p, size_t n, cd_str *key) {
    size_t i = 2;
    int depth = 1;
    if (n < 37 || p[0] != '[' || p[1] != '"') return false;
    while (i < 34 && is_hex(p[i])) i++;
    if (i != 34 || p[i] != '"') return false;
    for (i++; i < n && depth; i++) {
        depth += p[i] == '[' ? 1 : p[i] == ']' ? -1 : 0;
        if (!strchr("[], 0123456789", p[i]) || !p[i]) return false;
    }
    *key = (cd_str){p, i};
    return !depth;
}

/* The first key in what is left of a line; *line is then what stands behind it. */
static bool next_key(cd_str *line, cd_str *key) {
    const char *p = line->p, *end = line->p + line->n;
    for (; p < end && (p = memchr(p, '[', (size_t)(end - p))); p++) {
        if (!key_at(p, (size_t)(end - p), key)) continue;
        p += key->n;
        *line = (cd_str){p, (size_t)(end - p)};
        return true;
    }
    return false;
}

static cd_str hash_in(cd_str key) { return (cd_str){key.p + 2, 32}; }

/* ---- what was read ---- */

/* No definition for this key from here on. */
static cdmpp_status refuse(reader *r, cd_task_entry *e, cdmpp_err *why) {
    cdmpp_err *place = CD_NEW(&r->t->arena, cdmpp_err);
    if (!place) return CD_FAIL(r->err, ENOMEM, "task");
    const size_t n = strlen(why->msg);
    snprintf(why->msg + n, sizeof why->msg - n, "; workload key %.*s", cd_str_shown(r->key_of, 150),
             r->key_of.p);
    *place = *why;
    cd_err_add_place(place, r->t->name, r->key_line);
    e->refused = place;
    return e->pub.dag ? CDMPP_OK : cd_task_set_why(r->t, e, why, r->err);
}

/* Other arguments of a call have the same hash, for example another padding: then records of the
 * key may be of either. */
static cdmpp_status two_texts(reader *r, cd_task_entry *e) {
    cdmpp_err why = {0};
    (void)CD_FAIL(&why, ENOTASK,
                  "two texts have this workload key, and one of them cannot be read");
    cd_task_drop_printed(r->t, e);
    return refuse(r, e, &why);
}

static cdmpp_status keep(reader *r, cd_task_entry *e, CD_TAKE cd_te_dag *dag, unsigned rests) {
    if (e->pub.dag) return cd_task_again(r->t, e, dag, true, r->key_line, r->err);
    cd_task_set_dag(r->t, e, dag);
    e->print_path = r->path;
    e->print_line = r->key_line;
    e->rests = rests;
    e->refused = NULL;
    return CDMPP_OK;
}

/* A text that has the hash of the key. */
static cdmpp_status take(reader *r, cd_str key) {
    cd_task_entry *e;
    cd_te_dag *dag;
    unsigned rests;
    char sum[33];
    cdmpp_err why = {0};
    r->key_of = key;
    CD_TRY(cd_task_registry_entry(r->t, key, NULL, &e, r->err));
    cd_md5_hex(r->text.p, r->text.n, sum);
    if (e->printed && !strcmp(e->printed, sum)) return CDMPP_OK;
    const bool first = !e->printed, bad = e->printed && e->refused;
    e->printed = cd_str_dup(&r->t->arena, (cd_str){sum, 32});
    if (!e->printed) return CD_FAIL(r->err, ENOMEM, "task");
    const cdmpp_status st =
        cd_dagtext_read(key, (cd_str){r->text.p, r->text.n}, r->t->assume, &dag, &rests, &why);
    if (st == CDMPP_ENOMEM) return CD_FAIL(r->err, ENOMEM, "task");
    if (!first && (bad || st) && (!e->pub.dag || e->from_print)) {
        cd_te_dag_free(dag);
        return two_texts(r, e);
    }
    if (st) return e->pub.dag ? CDMPP_OK : refuse(r, e, &why);
    e->from_print = e->from_print || !e->pub.dag;
    return keep(r, e, dag, rests);
}

/* Why lines behind a key are not its definition. CDMPP_OK: they are, or memory is short, then
 * r->err says so. */
static cdmpp_status why_not(reader *r, cd_str key, cdmpp_err *why) {
    cd_te_dag *dag;
    unsigned rests;
    if (r->n_line > MAX_LINES)
        return CD_FAIL(why, EUNSUPPORTED,
                       "the lines of a definition behind the key are more than %d, and the first "
                       "%d are not that of the key",
                       MAX_LINES, MAX_LINES);
    const cdmpp_status st =
        cd_dagtext_read(key, (cd_str){r->text.p, r->text.n}, 0, &dag, &rests, why);
    cd_te_dag_free(dag);
    return st;
}

/* Lines that are a definition, and not that of a key before them. */
static cdmpp_status not_proved(reader *r) {
    for (size_t i = 0; r->placeholder && i < r->n_key; i++) {
        cd_task_entry *e;
        cdmpp_err why = {0};
        r->key_of = r->key[i];
        CD_TRY(cd_task_registry_entry(r->t, r->key_of, NULL, &e, r->err));
        if (e->pub.dag || e->refused) continue;
        const cdmpp_status st = why_not(r, r->key_of, &why);
        if (st == CDMPP_ENOMEM) return CD_FAIL(r->err, ENOMEM, "a printed definition");
        if (st) CD_TRY(refuse(r, e, &why));
    }
    return CDMPP_OK;
}

/* ---- lines ---- */

static void forget(reader *r) {
    cd_buf_clear(&r->text);
    r->n_line = 0;
    r->placeholder = false;
}

/* Texts that differ in shapes alone have one hash. Of several keys with it the text is that of the
 * first one that it can be read for. */
static cdmpp_status owner(reader *r, const char *hash, size_t *out) {
    size_t n = 0;
    *out = r->n_key;
    for (size_t i = r->n_key; i-- > 0;)
        if (cd_str_is(hash_in(r->key[i]), hash)) *out = i, n++;
    for (size_t i = *out; n > 1 && i < r->n_key; i++) {
        cd_te_dag *dag;
        unsigned rests;
        if (!cd_str_is(hash_in(r->key[i]), hash)) continue;
        const cdmpp_status st = cd_dagtext_read(r->key[i], (cd_str){r->text.p, r->text.n},
                                                r->t->assume, &dag, &rests, NULL);
        cd_te_dag_free(dag);
        if (st == CDMPP_ENOMEM) return CD_FAIL(r->err, ENOMEM, "a printed definition");
        if (st) continue;
        *out = i;
        break;
    }
    return CDMPP_OK;
}

/* The text, if it is whole and the definition of one of the keys. */
static cdmpp_status try_text(reader *r, bool *taken) {
    char hash[33];
    size_t at = 0, n = 0;
    *taken = false;
    if (!r->n_key || !r->text.n || r->n_line > MAX_LINES) return CDMPP_OK;
    CD_TRY(cd_dagtext_hash((cd_str){r->text.p, r->text.n}, hash, r->err));
    CD_TRY(owner(r, hash, &at));
    if (at == r->n_key) return CDMPP_OK;
    const cd_str key = r->key[at];
    for (size_t i = 0; i < r->n_key; i++) /* a line may have a key twice */
        if (!cd_str_eq(r->key[i], key)) r->key[n++] = r->key[i];
    r->n_key = n;
    *taken = true;
    CD_TRY(take(r, key));
    forget(r);
    return CDMPP_OK;
}

static cdmpp_status add_line(reader *r, cd_str line) {
    bool taken;
    if (r->n_line > MAX_LINES || ++r->n_line > MAX_LINES) return CDMPP_OK;
    r->placeholder = r->placeholder || memmem(line.p, line.n, " = PLACEHOLDER", 14);
    cd_buf_put(&r->text, line.p, line.n);
    cd_buf_puts(&r->text, "\n");
    if (r->text.oom) return CD_FAIL(r->err, ENOMEM, "a printed definition");
    return try_text(r, &taken);
}

/* A line with keys. The text before it is the definition of one of them, or was none of those
 * before. */
static cdmpp_status new_keys(reader *r, cd_str key, cd_str rest) {
    reader old = *r;
    bool taken = false;
    r->key = NULL, r->n_key = r->cap_key = 0;
    r->key_line = r->line;
    cdmpp_status st = CDMPP_OK;
    do {
        if (CD_GROW(r->key, r->n_key, r->cap_key)) st = CD_FAIL(r->err, ENOMEM, "workload keys");
        else r->key[r->n_key++] = key;
    } while (!st && next_key(&rest, &key));
    if (!st) st = try_text(r, &taken);
    if (!st && !taken) st = not_proved(&old);
    cd_mem_free(old.key);
    forget(r);
    return st;
}

static cdmpp_status read_line(reader *r, cd_str line) {
    cd_str key, rest = line;
    if (next_key(&rest, &key)) return new_keys(r, key, rest);
    return cd_dagtext_is_line(line) ? add_line(r, line) : CDMPP_OK;
}

static cd_str line_at(const char *p, const char *end) {
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    return (cd_str){p, (size_t)((stop ? stop : end) - p)};
}

static cd_str bare(cd_str line) {
    while (line.n && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == '\n')) line.n--;
    return line;
}

static cdmpp_status task_printed_load(cd_task_registry *t, const char *text, size_t len,
                                      cdmpp_err *err) {
    reader r = {
        .t = t, .err = err, .path = cd_str_dup(&t->arena, (cd_str){t->name, strlen(t->name)})};
    cdmpp_status st = r.path ? CDMPP_OK : CD_FAIL(err, ENOMEM, "task");
    for (const char *p = text, *end = text + len; !st && p < end;) {
        const cd_str line = line_at(p, end);
        r.line++;
        st = read_line(&r, bare(line));
        p = line.p + line.n + 1;
    }
    if (!st) st = not_proved(&r);
    cd_buf_free(&r.text);
    cd_mem_free(r.key);
    return st;
}

/* has a line of a printed definition? */
static bool task_is_printed(const char *text, size_t len) {
    for (const char *p = text, *end = text + len;
         p < end && (p = memmem(p, (size_t)(end - p), " = PLACEHOLDER", 14)); p++) {
        const char *begin = p;
        while (begin > text && begin[-1] != '\n') begin--;
        if (cd_dagtext_is_line(line_at(begin, end))) return true;
    }
    return false;
}

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
    else if (!task_is_printed(text, len)) st = load_json(t, text, len, err);
    else st = task_printed_load(t, text, len, err);
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
    const bool take = !found || task_is_printed(text, n);
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
