/* Reads plans from JSON. Everything is checked that can be checked without the network
 * (cd_shard_plan_fits checks the rest); messages name the file and the key. */
#include <math.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "predictor/partition/shard/shard_plan.h"

enum { MAX_FILE = 256 << 20, MAX_OPS = 1000000 };

typedef struct reader {
    cd_shard_plan *p;
    cd_arena *a; /* the plan's */
    cdmpp_err *err;
} reader;

static cdmpp_status text(const reader *r, const cd_json *v, const char *key, const char **out) {
    cd_str s;
    CD_TRY(cd_json_need_str(v, key, &s, r->err));
    *out = cd_str_dup(r->a, s);
    return *out ? CDMPP_OK : CD_FAIL(r->err, ENOMEM, "%s", key);
}

/* null: `missing`; else not below 0, or an error. */
static cdmpp_status real(const reader *r, const cd_json *v, const char *key, double missing,
                         double *out) {
    const cd_json *x;
    CD_TRY(cd_json_need(v, key, &x, r->err));
    CD_TRY(cd_err_key(r->err, cd_json_real_or_nan(x, out, r->err), key));
    if (x->kind == CD_JSON_NULL) *out = missing;
    else if (!(*out >= 0 && isfinite(*out)))
        return cd_err_key(
            r->err, CD_FAIL(r->err, ERANGE, "expected a number of 0 or more, found %g", *out), key);
    return CDMPP_OK;
}

static cdmpp_status must(const reader *r, const cd_json *v, const char *key, double *out) {
    CD_TRY(real(r, v, key, (double)NAN, out));
    return isnan(*out)
               ? cd_err_key(r->err, CD_FAIL(r->err, ESCHEMA, "expected a number, found null"), key)
               : CDMPP_OK;
}

static cdmpp_status whole(const reader *r, const cd_json *v, const char *key, int64_t most,
                          int64_t *out) {
    const cd_json *x;
    CD_TRY(cd_json_need(v, key, &x, r->err));
    return cd_err_key(r->err, cd_json_int(x, 0, most, out, r->err), key);
}

static cdmpp_status truth(const reader *r, const cd_json *v, const char *key, bool *out) {
    const cd_json *x;
    CD_TRY(cd_json_need(v, key, &x, r->err));
    if (x->kind != CD_JSON_BOOL)
        return cd_err_key(r->err,
                          CD_FAIL(r->err, ESCHEMA, "expected true or false, found %s",
                                  cd_json_kind_name(x->kind)),
                          key);
    *out = x->u.i != 0;
    return CDMPP_OK;
}

static cdmpp_status list(const reader *r, const cd_json *v, const char *key, size_t least,
                         const cd_json **first, uint32_t *n) {
    const cd_json *x;
    CD_TRY(cd_json_need(v, key, &x, r->err));
    CD_TRY(cd_err_key(r->err, cd_json_arr(x, least, first, r->err), key));
    if (x->n > MAX_OPS)
        return cd_err_key(
            r->err, CD_FAIL(r->err, ERANGE, "%u items: expected at most %d", x->n, MAX_OPS), key);
    *n = x->n;
    return CDMPP_OK;
}

static cdmpp_status device(const reader *r, const cd_json *v, const char *key, bool none,
                           uint32_t *out) {
    const cd_json *x;
    cd_str s;
    *out = UINT32_MAX;
    CD_TRY(cd_json_need(v, key, &x, r->err));
    if (none && x->kind == CD_JSON_NULL) return CDMPP_OK;
    CD_TRY(cd_err_key(r->err, cd_json_str(x, &s, r->err), key));
    for (uint32_t d = 0; d < r->p->n_device; d++)
        if (cd_str_is(s, r->p->device[d])) *out = d;
    if (*out == UINT32_MAX)
        return cd_err_key(r->err,
                          CD_FAIL(r->err, ESCHEMA, "device %.*s is not among the plan's",
                                  cd_str_shown(s, 64), s.p),
                          key);
    return CDMPP_OK;
}

/* ---- an operator ---- */
static cdmpp_status read_part(const reader *r, const cd_json *v, cd_shard_plan_part *out) {
    CD_TRY(device(r, v, "device", false, &out->device));
    CD_TRY(whole(r, v, "lo", INT64_MAX, &out->lo));
    CD_TRY(whole(r, v, "hi", INT64_MAX, &out->hi));
    return must(r, v, "seconds", &out->seconds);
}

/* Parts cover 0 .. extent without gap or overlap, each on a device of its own. */
static cdmpp_status check_parts(const reader *r, const cd_shard_plan_op *o, int64_t extent) {
    const bool split = o->dim[0];
    int64_t at = 0;
    if (!split && (o->n_part != 1 || o->part[0].lo || o->part[0].hi))
        return CD_FAIL(r->err, ERANGE, "not split: expected one part, 0 to 0");
    if (split && o->n_part < 2) return CD_FAIL(r->err, ERANGE, "split: expected two parts or more");
    for (uint32_t i = 0; i < o->n_part && split; i++) {
        const cd_shard_plan_part *v = &o->part[i];
        if (v->lo < at)
            return CD_FAIL(r->err, ERANGE, "part %u: %lld..%lld overlaps with the one before", i,
                           (long long)v->lo, (long long)v->hi);
        if (v->lo != at || v->hi <= v->lo || v->hi > extent)
            return CD_FAIL(r->err, ERANGE,
                           "part %u: %lld..%lld, expected one from %lld within %lld", i,
                           (long long)v->lo, (long long)v->hi, (long long)at, (long long)extent);
        at = v->hi;
    }
    if (split && at != extent)
        return CD_FAIL(r->err, ERANGE, "parts end at %lld of %lld", (long long)at,
                       (long long)extent);
    for (uint32_t i = 0; i < o->n_part; i++)
        for (uint32_t j = 0; j < i; j++)
            if (o->part[i].device == o->part[j].device)
                return CD_FAIL(r->err, ERANGE, "two parts on %s", r->p->device[o->part[i].device]);
    return CDMPP_OK;
}

/* o->dim is read before: only an operator that is split has the fields of a split axis. A split sum
 * must have a join, nothing else may. */
static cdmpp_status read_parts(const reader *r, const cd_json *v, cd_shard_plan_op *o) {
    const cd_json *x;
    int64_t extent = 0, n;
    CD_TRY(list(r, v, "parts", 1, &x, &o->n_part));
    if (o->n_part > r->p->n_device)
        return CD_FAIL(r->err, ERANGE, "%u parts on %u devices", o->n_part, r->p->n_device);
    cd_shard_plan_part *part = CD_NEWN(r->a, cd_shard_plan_part, o->n_part);
    if (!part) return CD_FAIL(r->err, ENOMEM, "%u parts", o->n_part);
    for (uint32_t i = 0; i < o->n_part; i++, x = x->next)
        CD_TRY(cd_err_key(r->err, cd_err_index(r->err, read_part(r, x, &part[i]), i), "parts"));
    o->part = part;
    if (o->dim[0]) {
        CD_TRY(truth(r, v, "reduce", &o->reduce));
        CD_TRY(whole(r, v, "way_op", 1000000, &n));
        o->way_op = (uint32_t)n;
        CD_TRY(whole(r, v, "axis", 1000000, &n));
        o->axis = (uint32_t)n;
        CD_TRY(whole(r, v, "extent", INT64_MAX, &extent));
    }
    CD_TRY(check_parts(r, o, extent));
    CD_TRY(device(r, v, "join", true, &o->join));
    if (o->reduce != (o->join != UINT32_MAX))
        return CD_FAIL(r->err, ESCHEMA,
                       "a split sum has a device that joins, and nothing else has");
    return CDMPP_OK;
}

/* Infinity is null in JSON: a device that cannot run the operator has null in alone_s. */
static cdmpp_status read_op(const reader *r, const cd_json *v, cd_shard_plan_op *o) {
    const cd_json *x;
    uint32_t n;
    CD_TRY(text(r, v, "name", &o->name));
    CD_TRY(text(r, v, "type", &o->type));
    CD_TRY(text(r, v, "key", &o->key));
    CD_TRY(text(r, v, "dim", &o->dim));
    CD_TRY(text(r, v, "why", &o->why));
    CD_TRY(read_parts(r, v, o));
    CD_TRY(must(r, v, "join_s", &o->join_s));
    CD_TRY(must(r, v, "seconds", &o->seconds));
    CD_TRY(must(r, v, "exchange_s", &o->exchange_s));
    CD_TRY(real(r, v, "ceiling", (double)INFINITY, &o->ceiling));
    CD_TRY(list(r, v, "alone_s", 0, &x, &n));
    if (n != r->p->n_device)
        return CD_FAIL(r->err, ESCHEMA, "alone_s: %u times for %u devices", n, r->p->n_device);
    double *alone = CD_NEWN(r->a, double, (size_t)n + 1);
    if (!alone) return CD_FAIL(r->err, ENOMEM, "%u devices", n);
    for (uint32_t d = 0; d < n; d++, x = x->next) {
        CD_TRY(cd_err_key(r->err, cd_json_real_or_nan(x, &alone[d], r->err), "alone_s"));
        if (isnan(alone[d])) alone[d] = (double)INFINITY;
        if (!(alone[d] >= 0)) return CD_FAIL(r->err, ERANGE, "alone_s: %g s", alone[d]);
    }
    o->alone_s = alone;
    return CDMPP_OK;
}

/* ---- the rest ---- */
static cdmpp_status read_ops(const reader *r, const cd_json *root) {
    const cd_json *x;
    cd_shard_plan *p = r->p;
    CD_TRY(list(r, root, "operators", 0, &x, &p->n_op));
    if (!(p->op = CD_NEWN(r->a, cd_shard_plan_op, (size_t)p->n_op + 1)))
        return CD_FAIL(r->err, ENOMEM, "%u operators", p->n_op);
    for (uint32_t k = 0; k < p->n_op; k++, x = x->next) {
        const cdmpp_status st = cd_err_index(r->err, read_op(r, x, &p->op[k]), k);
        if (st && p->op[k].name) cd_err_key(r->err, st, p->op[k].name);
        CD_TRY(cd_err_key(r->err, st, "operators"));
    }
    return CDMPP_OK;
}

/* Read after the operators: `before` is checked against their number. Tensors are checked by
 * cd_shard_plan_fits, which has the network. */
static cdmpp_status read_copies(const reader *r, const cd_json *root) {
    const cd_json *x;
    cd_shard_plan *p = r->p;
    int64_t n;
    CD_TRY(list(r, root, "copies", 0, &x, &p->n_copy));
    if (!(p->copy = CD_NEWN(r->a, cd_shard_plan_copy, (size_t)p->n_copy + 1)))
        return CD_FAIL(r->err, ENOMEM, "%u copies", p->n_copy);
    for (uint32_t i = 0; i < p->n_copy; i++, x = x->next) {
        cd_shard_plan_copy *c = &p->copy[i];
        cdmpp_status st = whole(r, x, "tensor", UINT32_MAX - 1, &n);
        if (!st) c->tensor = (uint32_t)n, st = device(r, x, "from", false, &c->from);
        if (!st) st = device(r, x, "to", false, &c->to);
        if (!st) st = whole(r, x, "bytes", INT64_MAX, &c->bytes);
        if (!st) st = must(r, x, "seconds", &c->seconds);
        if (!st) st = whole(r, x, "before", p->n_op, &n);
        CD_TRY(cd_err_key(r->err, cd_err_index(r->err, st, i), "copies"));
        c->before = (uint32_t)n;
    }
    return CDMPP_OK;
}

static cdmpp_status read_bases(const reader *r, const cd_json *root) {
    const cd_json *x;
    cd_shard_plan *p = r->p;
    CD_TRY(list(r, root, "baselines", 0, &x, &p->n_base));
    if (!(p->base = CD_NEWN(r->a, cd_shard_plan_baseline, (size_t)p->n_base + 1)))
        return CD_FAIL(r->err, ENOMEM, "%u baselines", p->n_base);
    for (uint32_t i = 0; i < p->n_base; i++, x = x->next) {
        cdmpp_status st = text(r, x, "name", &p->base[i].name);
        if (!st) st = real(r, x, "predicted_s", (double)INFINITY, &p->base[i].predicted_s);
        if (!st) st = real(r, x, "measured_s", (double)NAN, &p->base[i].measured_s);
        CD_TRY(cd_err_key(r->err, cd_err_index(r->err, st, i), "baselines"));
    }
    return CDMPP_OK;
}

/* Read before operators and copies, which refer to devices by name; so names must be unique and not
 * empty. */
static cdmpp_status read_devices(const reader *r, const cd_json *root) {
    const cd_json *x;
    cd_shard_plan *p = r->p;
    CD_TRY(list(r, root, "devices", 1, &x, &p->n_device));
    if (p->n_device > CD_MACHINE_DEVICES)
        return CD_FAIL(r->err, ERANGE, "%u devices: expected at most %d", p->n_device,
                       CD_MACHINE_DEVICES);
    if (!(p->device = CD_NEWN(r->a, const char *, (size_t)p->n_device + 1)))
        return CD_FAIL(r->err, ENOMEM, "%u devices", p->n_device);
    for (uint32_t d = 0; d < p->n_device; d++, x = x->next) {
        cd_str s;
        CD_TRY(cd_err_key(r->err, cd_err_index(r->err, cd_json_str(x, &s, r->err), d), "devices"));
        if (!s.n) return CD_FAIL(r->err, ESCHEMA, "device %u has no name", d);
        for (uint32_t e = 0; e < d; e++)
            if (cd_str_is(s, p->device[e]))
                return CD_FAIL(r->err, ESCHEMA, "two devices are called %s", p->device[e]);
        if (!(p->device[d] = cd_str_dup(r->a, s))) return CD_FAIL(r->err, ENOMEM, "devices");
    }
    return CDMPP_OK;
}

static cdmpp_status text_or_null(const reader *r, const cd_json *v, const char *key,
                                 const char **out) {
    const cd_json *x;
    CD_TRY(cd_json_need(v, key, &x, r->err));
    return x->kind == CD_JSON_NULL ? CDMPP_OK : text(r, v, key, out);
}

/* Reasons that this program does not know are of a later one. */
static cdmpp_status read_source(const reader *r, const cd_json *v, uint32_t d,
                                cd_shard_plan_source *s) {
    const cd_json *why;
    const char *by = NULL;
    uint32_t at;
    CD_TRY(device(r, v, "device", false, &at));
    if (at != d)
        return CD_FAIL(r->err, ESCHEMA, "expected device %s, found %s", r->p->device[d],
                       r->p->device[at]);
    CD_TRY(text_or_null(r, v, "as", &s->as));
    CD_TRY(text_or_null(r, v, "model", &s->model));
    /* plans of earlier versions have neither */
    if (cd_json_get(v, "default_model")) CD_TRY(truth(r, v, "default_model", &s->by_default));
    if (cd_json_get(v, "host")) CD_TRY(text_or_null(r, v, "host", &s->host));
    CD_TRY(text_or_null(r, v, "stand_in", &s->stands));
    CD_TRY(text_or_null(r, v, "stand_in_by", &by));
    s->scaled = by != NULL;
    CD_TRY(truth(r, v, "guessed", &s->guessed));
    CD_TRY(must(r, v, "stand_in_spread", &s->stands_spread));
    CD_TRY(real(r, v, "network_cost_spread", (double)NAN, &s->costs_spread));
    if (cd_json_get(v, "left")) CD_TRY(real(r, v, "left", 0, &s->left));
    CD_TRY(real(r, v, "unlike_share", (double)NAN, &s->unlike));
    CD_TRY(cd_json_need(v, "unlike_reasons", &why, r->err));
    for (uint32_t k = 0; k < CD_N_UNLIKE; k++)
        if (cd_json_get(why, cd_trained_on_reason(k)))
            CD_TRY(must(r, why, cd_trained_on_reason(k), &s->unlike_of[k]));
    return CDMPP_OK;
}

/* Plans of earlier versions do not have them. */
static cdmpp_status read_sources(const reader *r, const cd_json *root) {
    const cd_json *x;
    uint32_t n;
    cd_shard_plan *p = r->p;
    if (!cd_json_get(root, "sources")) return CDMPP_OK;
    CD_TRY(list(r, root, "sources", 0, &x, &n));
    if (n != p->n_device)
        return cd_err_key(r->err,
                          CD_FAIL(r->err, ESCHEMA, "%u entries for %u devices", n, p->n_device),
                          "sources");
    cd_shard_plan_source *s = CD_NEWN(r->a, cd_shard_plan_source, n);
    if (!s) return CD_FAIL(r->err, ENOMEM, "sources");
    for (uint32_t d = 0; d < n; d++, x = x->next)
        CD_TRY(cd_err_key(r->err, cd_err_index(r->err, read_source(r, x, d, &s[d]), d), "sources"));
    p->source = s;
    return CDMPP_OK;
}

/* Plans of earlier versions have none of these. */
static cdmpp_status read_doubt(const reader *r, const cd_json *root) {
    cd_shard_plan *p = r->p;
    p->low_s = p->high_s = p->others = (double)NAN;
    p->no_interval = "the plan was made by an earlier version, which wrote none";
    if (cd_json_get(root, "others")) CD_TRY(real(r, root, "others", (double)NAN, &p->others));
    if (!cd_json_get(root, "low_s")) return CDMPP_OK;
    p->no_interval = NULL;
    CD_TRY(real(r, root, "low_s", (double)NAN, &p->low_s));
    CD_TRY(real(r, root, "high_s", (double)NAN, &p->high_s));
    return cd_json_get(root, "no_interval") ? text_or_null(r, root, "no_interval", &p->no_interval)
                                            : CDMPP_OK;
}

/* null means infinity for rho and ceiling (a device cannot run everything) and "not measured" for
 * the measured figures. */
static cdmpp_status read_head(const reader *r, const cd_json *root) {
    cd_shard_plan *p = r->p;
    cd_str schema;
    int64_t version;
    CD_TRY(cd_json_need_str(root, "schema", &schema, r->err));
    if (!cd_str_is(schema, "cdmpp.plan"))
        return CD_FAIL(r->err, ESCHEMA, "expected the schema cdmpp.plan");
    CD_TRY(whole(r, root, "version", INT64_MAX, &version));
    if (version != 1)
        return CD_FAIL(r->err, ESCHEMA, "version %lld: this program reads 1", (long long)version);
    CD_TRY(text(r, root, "network", &p->network));
    CD_TRY(whole(r, root, "batch", INT64_MAX, &p->batch));
    CD_TRY(text(r, root, "verdict", &p->verdict));
    CD_TRY(truth(r, root, "split", &p->split));
    CD_TRY(truth(r, root, "exact", &p->exact));
    CD_TRY(real(r, root, "rho", (double)INFINITY, &p->rho));
    CD_TRY(real(r, root, "ceiling", (double)INFINITY, &p->ceiling));
    CD_TRY(must(r, root, "predicted_s", &p->predicted_s));
    CD_TRY(must(r, root, "bound_s", &p->bound_s));
    CD_TRY(real(r, root, "measured_s", (double)NAN, &p->measured_s));
    CD_TRY(read_doubt(r, root));
    CD_TRY(must(r, root, "predicted_gain", &p->predicted_gain));
    return real(r, root, "measured_gain", (double)NAN, &p->measured_gain);
}

static cdmpp_status read_all(const reader *r, cd_arena *tree, const char *data, size_t n) {
    const cd_json *root;
    bool split = false;
    CD_TRY(cd_json_parse(tree, data, n, &root, r->err));
    CD_TRY(read_head(r, root));
    CD_TRY(read_devices(r, root));
    CD_TRY(read_sources(r, root));
    CD_TRY(read_ops(r, root));
    CD_TRY(read_copies(r, root));
    CD_TRY(read_bases(r, root));
    for (uint32_t k = 0; k < r->p->n_op; k++) split = split || r->p->op[k].dim[0];
    return split == r->p->split
               ? CDMPP_OK
               : CD_FAIL(r->err, ESCHEMA, "split: the plan says %s, its operators say otherwise",
                         r->p->split ? "true" : "false");
}

cdmpp_status cd_shard_plan_read_text(const char *path, const char *data, size_t n,
                                     cd_shard_plan **out, cdmpp_err *err) {
    cd_arena tree = {0};
    *out = NULL;
    cd_shard_plan *p = cd_mem_zalloc(1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "a plan");
    const reader r = {p, &p->arena, err};
    const cdmpp_status st = cd_err_at(err, read_all(&r, &tree, data, n), path, 0);
    cd_arena_free(&tree);
    if (st) cd_shard_plan_free(p);
    else *out = p;
    return st;
}

cdmpp_status cd_shard_plan_read(const char *path, cd_shard_plan **out, cdmpp_err *err) {
    char *data;
    size_t n;
    *out = NULL;
    CD_TRY(cd_file_read(path, MAX_FILE, &data, &n, err));
    const cdmpp_status st = cd_shard_plan_read_text(path, data, n, out, err);
    cd_mem_free(data);
    return st;
}
