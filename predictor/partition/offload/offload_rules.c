/* Reads a file of rules and finds contradictions between its lines. */
#include "predictor/partition/offload/offload_rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "predictor/partition/offload/offload_rules_internal.h"

typedef struct {
    cd_offload_rules *r;
    char *at; /* rest of the line, NUL-terminated, in the arena */
    long line;
} reader;

void cd_offload_free(cd_offload_rules *r) {
    if (!r) return;
    cd_arena_free(&r->arena);
    cd_mem_free(r);
}

uint32_t cd_offload_devices(const cd_offload_rules *r, const char *const **name) {
    *name = r->device;
    return r->n_device;
}

/* The next word; NULL at the end. */
static char *word(reader *t) {
    t->at += strspn(t->at, " \t\r");
    if (!*t->at) return NULL;
    char *w = t->at;
    t->at += strcspn(t->at, " \t\r");
    if (*t->at) *t->at++ = 0;
    return w;
}

static bool is_end(reader *t) {
    t->at += strspn(t->at, " \t\r");
    return !*t->at;
}

static cdmpp_status device_of(reader *t, const char *name, uint32_t *out, cdmpp_err *err) {
    cd_offload_rules *r = t->r;
    for (*out = 0; *out < r->n_device; ++*out)
        if (!strcmp(r->device[*out], name)) return CDMPP_OK;
    if (r->n_device == CD_OFFLOAD_MAX_DEVICE)
        return CD_FAIL(err, EINVALID, "device %s: more than %d devices", name,
                       CD_OFFLOAD_MAX_DEVICE);
    r->device[r->n_device++] = name;
    return CDMPP_OK;
}

/* ---- conditions: key op value, with commas between ---- */

/* Cuts the text in place: key and value point into it. Signs of two characters stand before their
 * first character in the list. "2.k" is attribute k of the second operator. */
static cdmpp_status one_cond(char *text, uint32_t n_link, cd_offload_cond *c, cdmpp_err *err) {
    static const struct {
        const char *sign;
        cd_offload_cmp cmp;
    } sign[] = {{"!=", CD_RULE_CMP_NE}, {"<=", CD_RULE_CMP_LE}, {">=", CD_RULE_CMP_GE},
                {"=", CD_RULE_CMP_EQ},  {"<", CD_RULE_CMP_LT},  {">", CD_RULE_CMP_GT},
                {"%", CD_CMP_DIV}};
    text += strspn(text, " \t");
    for (size_t n = strlen(text); n && strchr(" \t\r", text[n - 1]); n--) text[n - 1] = 0;
    char *at = text + strcspn(text, "!<>=%");
    for (size_t i = 0; i < sizeof sign / sizeof *sign; i++) {
        const size_t n = strlen(sign[i].sign);
        if (strncmp(at, sign[i].sign, n)) continue;
        char *value = at + n, *end;
        *at = 0;
        for (size_t k = strlen(text); k && text[k - 1] == ' '; k--) text[k - 1] = 0;
        value += strspn(value, " \t");
        *c = (cd_offload_cond){0, text, value, sign[i].cmp};
        const unsigned long link = strtoul(text, &end, 10);
        if (end != text && *end == '.') c->link = (uint32_t)link, c->key = end + 1;
        if (end != text && *end == '.' && (!link || link > n_link))
            return CD_FAIL(err, EPARSE, "condition %s: operator %lu of %u", text, link, n_link);
        if (!*c->key || !*value) break;
        const double number = strtod(value, &end);
        if (sign[i].cmp >= CD_RULE_CMP_LE && (*end || end == value || !isfinite(number) ||
                                              (sign[i].cmp == CD_CMP_DIV && !(number >= 1))))
            return CD_FAIL(err, EPARSE, "condition %s: \"%s\": expected a number", c->key, value);
        return CDMPP_OK;
    }
    return CD_FAIL(err, EPARSE, "condition \"%s\": expected key, one of = != < <= > >= %%, value",
                   text);
}

static cdmpp_status conditions(reader *t, cd_offload_rule *q, cdmpp_err *err) {
    char *text = t->at + strspn(t->at, " \t");
    q->where = cd_str_dup(&t->r->arena, (cd_str){text, strlen(text)});
    uint32_t n = 1;
    for (const char *p = text; *p; p++) n += *p == ',';
    q->cond = CD_NEWN(&t->r->arena, cd_offload_cond, n);
    if (!q->where || !q->cond) return CD_FAIL(err, ENOMEM, "%u conditions", n);
    for (char *p = text, *next; p; p = next) {
        if ((next = strchr(p, ','))) *next++ = 0;
        CD_TRY(one_cond(p, q->n_link, &q->cond[q->n_cond++], err));
    }
    t->at += strlen(t->at);
    return CDMPP_OK;
}

/* ---- lines ---- */

/* Keys of a format line; what its values may be, NULL: a number above 0. */
static const struct {
    const char *key, *values;
} format[] = {{"dtype", "int8|float16|bfloat16|float32"}, {"layout", "nchw|nhwc"}, {"rate", NULL}};
enum { FORMATS = sizeof format / sizeof *format };

static cdmpp_status format_word(cd_offload_rule *q, char *w, cdmpp_err *err) {
    char *value = strchr(w, '='), *end;
    uint32_t i = 0;
    if (value) *value++ = 0;
    while (i < FORMATS && strcmp(format[i].key, w)) i++;
    if (!value || i == FORMATS)
        return CD_FAIL(err, EPARSE, "\"%s\": expected dtype=, layout= or rate=", w);
    for (uint32_t k = 0; k < q->n_cond; k++)
        if (!strcmp(q->cond[k].key, w)) return CD_FAIL(err, EPARSE, "%s twice", w);
    if (format[i].values &&
        cd_enum_names_find(format[i].values, (cd_str){value, strlen(value)}) < 0)
        return CD_FAIL(err, EPARSE, "%s \"%s\": expected one of %s", w, value, format[i].values);
    const double rate = format[i].values ? 1 : strtod(value, &end);
    if (!format[i].values && (!(rate > 0 && isfinite(rate)) || *end))
        return CD_FAIL(err, EPARSE, "%s \"%s\": expected bytes a second", w, value);
    q->cond[q->n_cond++] = (cd_offload_cond){0, w, value, CD_RULE_CMP_EQ};
    return CDMPP_OK;
}

static cdmpp_status format_line(reader *t, cd_offload_rule *q, cdmpp_err *err) {
    q->cond = CD_NEWN(&t->r->arena, cd_offload_cond, FORMATS);
    if (!q->cond) return CD_FAIL(err, ENOMEM, "rule");
    if (q->device == 0)
        return CD_FAIL(err, EINVALID,
                       "format %s: the host's values are float32, as the network was loaded",
                       t->r->device[0]);
    for (char *w; (w = word(t));) CD_TRY(format_word(q, w, err));
    return q->n_cond
               ? CDMPP_OK
               : CD_FAIL(err, EPARSE,
                         "format %s: expected dtype=, layout= or rate=", t->r->device[q->device]);
}

const char *cd_offload_format(const cd_offload_rules *r, uint32_t device, const char *key) {
    for (uint32_t i = 0; i < r->n_rule; i++)
        for (uint32_t k = 0; r->rule[i].kind == CD_OFFLOAD_FORMAT && r->rule[i].device == device &&
                             k < r->rule[i].n_cond;
             k++)
            if (!strcmp(r->rule[i].cond[k].key, key)) return r->rule[i].cond[k].value;
    return NULL;
}

/* Operators up to "where" or the end: with "->" between (a chain), or none. */
static cdmpp_status operators(reader *t, cd_offload_rule *q, bool chain, cdmpp_err *err) {
    q->link = CD_NEWN(&t->r->arena, cd_offload_link, CD_OFFLOAD_LINKS);
    if (!q->link) return CD_FAIL(err, ENOMEM, "rule");
    for (char *w; (w = word(t));) {
        if (!strcmp(w, "where")) {
            if (!q->n_link) break;
            if (is_end(t)) return CD_FAIL(err, EPARSE, "no condition behind where");
            return conditions(t, q, err);
        }
        if (chain && q->n_link) {
            if (strcmp(w, "->")) return CD_FAIL(err, EPARSE, "\"%s\": expected -> or where", w);
            if (!(w = word(t))) return CD_FAIL(err, EPARSE, "no operator behind ->");
        }
        if (q->n_link == CD_OFFLOAD_LINKS)
            return CD_FAIL(err, EPARSE, "more than %d operators", CD_OFFLOAD_LINKS);
        const size_t n = strlen(w);
        const bool maybe = chain && w[n - 1] == '?';
        if (maybe) w[n - 1] = 0;
        if (!*w || (maybe && !q->n_link))
            return CD_FAIL(err, EPARSE, "the first operator of a pattern may not be missing");
        q->link[q->n_link++] = (cd_offload_link){w, maybe};
    }
    return q->n_link ? CDMPP_OK : CD_FAIL(err, EPARSE, "no operator");
}

/* Each kind of line has its own grammar; offload_rules.h shows one of each. device_of adds a device
 * at its first mention, so the host is device 0. */
static cdmpp_status rest_of_rule(reader *t, cd_offload_rule *q, cdmpp_err *err) {
    char *w = word(t);
    if (!w) return CD_FAIL(err, EPARSE, "the line ends after its first word");
    switch (q->kind) {
    case CD_OFFLOAD_HOST:
        if (t->r->n_device) return CD_FAIL(err, EPARSE, "host must be the first line, once");
        CD_TRY(device_of(t, w, &q->device, err));
        return is_end(t) ? CDMPP_OK : CD_FAIL(err, EPARSE, "\"%s\" behind the host's name", t->at);
    case CD_OFFLOAD_PLACE:
        q->name = w;
        if (!(w = word(t))) return CD_FAIL(err, EPARSE, "place %s: no device", q->name);
        CD_TRY(device_of(t, w, &q->device, err));
        return is_end(t) ? CDMPP_OK : CD_FAIL(err, EPARSE, "\"%s\" behind the device", t->at);
    case CD_OFFLOAD_PATTERN: {
        CD_TRY(device_of(t, w, &q->device, err));
        char *name = word(t);
        const size_t n = name ? strlen(name) : 0;
        if (n < 2 || name[n - 1] != ':')
            return CD_FAIL(err, EPARSE, "\"%s\": expected a pattern's name and a colon",
                           name ? name : "");
        name[n - 1] = 0;
        q->name = name;
        return operators(t, q, true, err);
    }
    case CD_OFFLOAD_FORMAT: CD_TRY(device_of(t, w, &q->device, err)); return format_line(t, q, err);
    case CD_OFFLOAD_SUPPORT:
    case CD_OFFLOAD_REFUSE: break;
    }
    CD_TRY(device_of(t, w, &q->device, err));
    if (q->kind == CD_OFFLOAD_REFUSE && q->device == 0)
        return CD_FAIL(err, EINVALID, "refuse %s: the host must run everything", w);
    return operators(t, q, false, err);
}

static cdmpp_status add(cd_offload_rules *r, const cd_offload_rule *q, cdmpp_err *err) {
    if (CD_GROW_IN(&r->arena, r->rule, r->n_rule, r->cap)) return CD_FAIL(err, ENOMEM, "rules");
    r->rule[r->n_rule++] = *q;
    return CDMPP_OK;
}

static cdmpp_status one_line(reader *t, cdmpp_err *err) {
    t->at[strcspn(t->at, "#")] = 0;
    const char *w = word(t);
    if (!w) return CDMPP_OK;
    const int kind = cd_enum_names_find(CD_OFFLOAD_KINDS, (cd_str){w, strlen(w)});
    if (kind < 0) return CD_FAIL(err, EPARSE, "\"%s\": expected one of " CD_OFFLOAD_KINDS, w);
    cd_offload_rule q = {.kind = (cd_offload_kind)kind, .line = t->line};
    if (!t->r->n_device && kind != CD_OFFLOAD_HOST)
        return CD_FAIL(err, EPARSE, "the first line must name the host");
    CD_TRY(rest_of_rule(t, &q, err));
    return add(t->r, &q, err);
}

/* ---- contradictions that need no graph ---- */

static bool same_where(const cd_offload_rule *a, const cd_offload_rule *b) {
    return a->where && b->where ? !strcmp(a->where, b->where) : !a->where && !b->where;
}

static cdmpp_status support_and_refuse(const cd_offload_rules *r, uint32_t i, uint32_t k,
                                       cdmpp_err *err) {
    const cd_offload_rule *a = &r->rule[i], *b = &r->rule[k];
    if (a->device != b->device || !same_where(a, b)) return CDMPP_OK;
    for (uint32_t x = 0; x < a->n_link; x++)
        for (uint32_t y = 0; y < b->n_link; y++)
            if (!strcmp(a->link[x].type, b->link[y].type))
                return cd_err_at(err,
                                 CD_FAIL(err, EINVALID,
                                         "%s %s %s contradicts line %ld, which says the opposite "
                                         "under the same conditions",
                                         b->kind == CD_OFFLOAD_REFUSE ? "refuse" : "support",
                                         r->device[a->device], a->link[x].type, a->line),
                                 r->path, b->line);
    return CDMPP_OK;
}

/* Only contradictions between lines, which hold for any network; those that depend on operators are
 * found by cd_offload_apply. */
static cdmpp_status consistent(const cd_offload_rules *r, cdmpp_err *err) {
    bool able[CD_OFFLOAD_MAX_DEVICE] = {true};
    if (!r->n_device)
        return cd_err_at(err, CD_FAIL(err, EPARSE, "no line: the first one must name the host"),
                         r->path, 1);
    for (uint32_t k = 0; k < r->n_rule; k++) {
        const cd_offload_rule *b = &r->rule[k];
        if (b->kind == CD_OFFLOAD_SUPPORT || b->kind == CD_OFFLOAD_PATTERN) able[b->device] = true;
        for (uint32_t i = 0; i < k; i++) {
            const cd_offload_rule *a = &r->rule[i];
            if ((a->kind == CD_OFFLOAD_SUPPORT && b->kind == CD_OFFLOAD_REFUSE) ||
                (a->kind == CD_OFFLOAD_REFUSE && b->kind == CD_OFFLOAD_SUPPORT))
                CD_TRY(support_and_refuse(r, i, k, err));
            if (a->kind == CD_OFFLOAD_FORMAT && b->kind == CD_OFFLOAD_FORMAT &&
                a->device == b->device)
                return cd_err_at(err,
                                 CD_FAIL(err, EINVALID, "format %s: line %ld has one already",
                                         r->device[a->device], a->line),
                                 r->path, b->line);
        }
    }
    for (uint32_t k = 0; k < r->n_rule; k++)
        if (r->rule[k].kind == CD_OFFLOAD_PLACE && !able[r->rule[k].device])
            return cd_err_at(err,
                             CD_FAIL(err, EINVALID, "place %s %s: no support or pattern line of %s",
                                     r->rule[k].name, r->device[r->rule[k].device],
                                     r->device[r->rule[k].device]),
                             r->path, r->rule[k].line);
    return CDMPP_OK;
}

/* The rules keep a copy of the text, cut into words in place: names, keys and values point into
 * it. */
static cdmpp_status parse(cd_offload_rules *r, const char *path, const char *text, size_t n,
                          cdmpp_err *err) {
    char *own = cd_arena_alloc(&r->arena, n + 1, 1);
    r->path = cd_str_dup(&r->arena, (cd_str){path, strlen(path)});
    r->device = CD_NEWN(&r->arena, const char *, CD_OFFLOAD_MAX_DEVICE);
    if (!own || !r->path || !r->device) return CD_FAIL(err, ENOMEM, "%zu bytes", n);
    if (n) memcpy(own, text, n);
    own[n] = 0;
    if (memchr(own, 0, n)) return cd_err_at(err, CD_FAIL(err, EPARSE, "a zero byte"), r->path, 1);
    reader t = {.r = r};
    for (char *at = own, *next; at; at = next) {
        if ((next = strchr(at, '\n'))) *next++ = 0;
        t.at = at, t.line++;
        CD_TRY(cd_err_at(err, one_line(&t, err), r->path, t.line));
    }
    return consistent(r, err);
}

cdmpp_status cd_offload_parse(const char *path, const char *text, size_t n, cd_offload_rules **out,
                              cdmpp_err *err) {
    cd_offload_rules *r = cd_mem_zalloc(1, sizeof *r);
    *out = NULL;
    if (!r) return CD_FAIL(err, ENOMEM, "rules");
    const cdmpp_status st = parse(r, path, text, n, err);
    if (st) cd_offload_free(r);
    else *out = r;
    return st;
}

cdmpp_status cd_offload_read(const char *path, cd_offload_rules **out, cdmpp_err *err) {
    char *text;
    size_t n;
    *out = NULL;
    CD_TRY(cd_file_read(path, (size_t)16 << 20, &text, &n, err));
    const cdmpp_status st = cd_offload_parse(path, text, n, out, err);
    cd_mem_free(text);
    return st;
}
