/* Reads records. A step is described by one line of a table, its code and the kinds of its
 * arguments; reading, writing and error messages follow from it. */

#include <string.h>

#include "features/task/task_internal.h"

/* The one table of steps: arity, argument kinds, printing. */
static const struct {
    char code[5];
    const char *sig;
    uint32_t n_item; /* items of the JSON array: code, stage, arguments */
} step_tab[CD_RECORD_STEP_COUNT] = {
#define CD_X(code, sig) {#code, sig, (uint32_t)sizeof sig + 1},
    CD_RECORD_STEP_MAP(CD_X)
#undef CD_X
};

/* Integer arguments by letter of the signature; lists of integers by theirs. */
static void arg_range(char letter, int64_t *lo, int64_t *hi) {
    *lo = letter == 'z' ? INT32_MIN : letter == 'n' || letter == 'f' ? 1 : 0;
    *hi = letter == 'b' ? 1 : letter == 'a' ? CD_ANNOTATION_MAX : INT32_MAX;
}

const char *cd_record_step_args(cd_record_step_kind k) { return step_tab[k].sig; }
const char *cd_record_step_code(cd_record_step_kind k) { return step_tab[k].code; }

bool cd_record_is_comment(const char *line, size_t len) {
    return len == 0 || *line == '#' || *line == ' ' || *line == '\r' || *line == '\n';
}

/* ---- reading ---- */

static cdmpp_status unknown_step(cd_str code, cdmpp_err *err) {
    char known[CD_RECORD_STEP_COUNT * 5 + 1] = "", text[24];
    size_t n = 0;
    for (int k = 0; k < CD_RECORD_STEP_COUNT; k++) {
        const size_t len = strlen(step_tab[k].code);
        if (k) known[n++] = ' ';
        memcpy(known + n, step_tab[k].code, len + 1);
        n += len;
    }
    n = code.n < sizeof text ? code.n : sizeof text - 1;
    memcpy(text, code.p, n);
    text[n] = '\0';
    return CD_FAIL(err, EUNSUPPORTED, "step \"%s\" is not one of %s", text, known);
}

static cdmpp_status step_kind(const cd_json *v, cd_record_step_kind *out, cdmpp_err *err) {
    cd_str code = {0};
    CD_TRY(cd_json_str(v, &code, err));
    char key[4] = {0}; /* compared as one word */
    if (code.n == 0 || code.n > sizeof key || !code.p[code.n - 1]) return unknown_step(code, err);
    for (size_t i = 0; i < code.n; i++) key[i] = code.p[i];
    for (int k = 0; k < CD_RECORD_STEP_COUNT; k++)
        if (memcmp(key, step_tab[k].code, sizeof key) == 0) {
            *out = (cd_record_step_kind)k;
            return CDMPP_OK;
        }
    return unknown_step(code, err);
}

static cdmpp_status read_list(cd_arena *a, const cd_json *v, char letter, cd_record_step *out,
                              cdmpp_err *err) {
    const cd_json *c = NULL;
    int64_t x = 0, lo, hi;
    arg_range(letter, &lo, &hi);
    CD_TRY(cd_json_arr(v, 0, &c, err));
    int32_t *list = cd_arena_alloc(a, v->n, sizeof *list);
    if (!list) return CD_FAIL(err, ENOMEM, "list of %u integers", v->n);
    for (uint32_t i = 0; i < v->n; i++, c = c->next) {
        if (c->kind == CD_JSON_INT && c->u.i >= lo && c->u.i <= hi) x = c->u.i; /* the hot path */
        else CD_TRY(cd_err_index(err, cd_json_int(c, lo, hi, &x, err), i));
        list[i] = (int32_t)x;
    }
    out->list = list;
    out->n_list = v->n;
    return CDMPP_OK;
}

static cdmpp_status read_arg(cd_arena *a, const cd_json *v, char letter, int32_t *into,
                             cd_record_step *out, cdmpp_err *err) {
    int64_t x = 0, lo, hi;
    if (letter == 's') return cd_json_str(v, &out->s, err);
    if (letter == 'l' || letter == 'f') return read_list(a, v, letter, out, err);
    arg_range(letter, &lo, &hi);
    CD_TRY(cd_json_int(v, lo, hi, &x, err));
    *into = (int32_t)x;
    return CDMPP_OK;
}

/* Integers go into i[] in order; the list and the text of a step have places of their own, since no
 * step has two. */
static cdmpp_status read_step(cd_arena *a, const cd_json *v, cd_record_step *out, cdmpp_err *err) {
    const cd_json *c = NULL;
    int64_t stage = 0;
    *out = (cd_record_step){0};
    CD_TRY(cd_json_arr(v, 1, &c, err));
    CD_TRY(cd_err_index(err, step_kind(c, &out->kind, err), 0));
    if (v->n != step_tab[out->kind].n_item)
        return CD_FAIL(err, ESCHEMA, "expected %u items in step %s, found %u",
                       step_tab[out->kind].n_item, step_tab[out->kind].code, v->n);
    c = c->next;
    CD_TRY(cd_err_index(err, cd_json_int(c, 0, INT32_MAX, &stage, err), 1));
    out->stage = (int32_t)stage;
    int32_t *into = out->i;
    for (const char *sig = step_tab[out->kind].sig; *sig; sig++) {
        c = c->next;
        const size_t at = 2 + (size_t)(sig - step_tab[out->kind].sig);
        CD_TRY(cd_err_index(err, read_arg(a, c, *sig, into, out, err), at));
        if (*sig != 's' && *sig != 'l' && *sig != 'f') into++;
    }
    return CDMPP_OK;
}

static cdmpp_status read_steps(cd_arena *a, const cd_json *v, cd_record *out, cdmpp_err *err) {
    const cd_json *c = NULL;
    CD_TRY(cd_json_arr(v, 0, &c, err));
    cd_record_step *step = cd_arena_alloc(a, v->n, sizeof *step);
    if (!step) return CD_FAIL(err, ENOMEM, "%u steps", v->n);
    for (uint32_t i = 0; i < v->n; i++, c = c->next)
        CD_TRY(cd_err_index(err, read_step(a, c, &step[i], err), i));
    out->step = step;
    out->n_step = v->n;
    return CDMPP_OK;
}

/* Array of exactly n items. */
static cdmpp_status exactly(const cd_json *v, uint32_t n, const char *what, const cd_json **first,
                            cdmpp_err *err) {
    CD_TRY(cd_json_arr(v, 0, first, err));
    if (v->n != n) return CD_FAIL(err, ESCHEMA, "expected %s, found %u items", what, v->n);
    return CDMPP_OK;
}

static cdmpp_status read_state(cd_arena *a, const cd_json *v, cd_record *out, cdmpp_err *err) {
    const cd_json *c = NULL, *none = NULL;
    CD_TRY(exactly(v, 2, "[stages, steps]", &c, err));
    CD_TRY(cd_err_index(err, exactly(c, 0, "an empty list of stages", &none, err), 0));
    return cd_err_index(err, read_steps(a, c->next, out, err), 1);
}

static cdmpp_status read_hardware(const cd_json *v, cd_record *out, cdmpp_err *err) {
    cd_hardware *h = &out->hardware;
    int64_t *const field[] = {&h->num_cores,
                              &h->vector_unit_bytes,
                              &h->cache_line_bytes,
                              &h->max_shared_memory_per_block,
                              &h->max_local_memory_per_block,
                              &h->max_threads_per_block,
                              &h->max_vthread_extent,
                              &h->warp_size};
    const cd_json *c = NULL;
    CD_TRY(exactly(v, 8, "8 hardware parameters", &c, err));
    for (size_t i = 0; i < 8; i++, c = c->next)
        CD_TRY(cd_err_index(err, cd_json_int(c, -1, INT32_MAX, field[i], err), i));
    out->has_hardware = true;
    return CDMPP_OK;
}

static cdmpp_status read_inputs(cd_arena *a, const cd_json *v, cd_record *out, cdmpp_err *err) {
    const cd_json *c = NULL;
    CD_TRY(cd_json_arr(v, 0, &c, err));
    cd_str *name = cd_arena_alloc(a, v->n, sizeof *name);
    if (!name) return CD_FAIL(err, ENOMEM, "%u task input names", v->n);
    for (uint32_t i = 0; i < v->n; i++, c = c->next)
        CD_TRY(cd_err_index(err, cd_json_str(c, &name[i], err), i));
    out->input = name;
    out->n_input = v->n;
    out->has_inputs = true;
    return CDMPP_OK;
}

/* Staged like TVM's reader: each version added items at the end. */
static cdmpp_status read_task(cd_arena *a, const cd_json *v, cd_record *out, cdmpp_err *err) {
    const cd_json *c = NULL;
    CD_TRY(cd_json_arr(v, 2, &c, err));
    if (v->n > 6)
        return CD_FAIL(err, ESCHEMA, "expected at most 6 items in a task, found %u", v->n);
    CD_TRY(cd_err_index(err, cd_json_str(c, &out->workload_key, err), 0));
    c = c->next;
    CD_TRY(cd_err_index(err, cd_json_str(c, &out->target, err), 1));
    if (!(c = c->next)) return CDMPP_OK;
    CD_TRY(cd_err_index(err, read_hardware(c, out, err), 2));
    if (!(c = c->next)) return CDMPP_OK;
    CD_TRY(cd_err_index(err, cd_json_str(c, &out->target_host, err), 3));
    out->has_host = true;
    if (!(c = c->next)) {
        /* v0.4 ended here. TVM 0.9 no longer reads such a line; we do. */
        if (cd_str_is(out->version, "v0.4")) return CDMPP_OK;
        return cd_err_index(
            err, CD_FAIL(err, ESCHEMA, "expected the layout rewrite option, found nothing"), 4);
    }
    CD_TRY(cd_err_index(err, cd_json_int(c, 0, 2, &out->layout_rewrite, err), 4));
    out->has_layout = true;
    if (!(c = c->next)) return CDMPP_OK;
    return cd_err_index(err, read_inputs(a, c, out, err), 5);
}

static cdmpp_status read_input(cd_arena *a, const cd_json *v, cd_record *out, cdmpp_err *err) {
    const cd_json *c = NULL;
    CD_TRY(exactly(v, 2, "[task, state]", &c, err));
    CD_TRY(cd_err_index(err, read_task(a, c, out, err), 0));
    return cd_err_index(err, read_state(a, c->next, out, err), 1);
}

static cdmpp_status read_real(const cd_json *v, double lo, double hi, double *out, cdmpp_err *err) {
    double x = 0;
    CD_TRY(cd_json_real(v, &x, err));
    if (!(x >= lo && x <= hi)) return CD_FAIL(err, ERANGE, "%g is outside [%g, %g]", x, lo, hi);
    *out = x + 0.0; /* no negative zero: it would not survive writing */
    return CDMPP_OK;
}

static cdmpp_status read_costs(cd_arena *a, const cd_json *v, cd_record *out, cdmpp_err *err) {
    const cd_json *c = NULL;
    CD_TRY(cd_json_arr(v, 0, &c, err));
    if (!v->n) return CD_FAIL(err, ESCHEMA, "expected at least one cost, found an empty list");
    double *cost = cd_arena_alloc(a, v->n, sizeof *cost);
    if (!cost) return CD_FAIL(err, ENOMEM, "%u costs", v->n);
    for (uint32_t i = 0; i < v->n; i++, c = c->next)
        CD_TRY(cd_err_index(err, read_real(c, 0, CD_RECORD_MAX_COST_S, &cost[i], err), i));
    out->cost_s = cost;
    out->n_cost = v->n;
    return CDMPP_OK;
}

static cdmpp_status read_result(cd_arena *a, const cd_json *v, cd_record *out, cdmpp_err *err) {
    const cd_json *c = NULL;
    double t = 0;
    CD_TRY(exactly(v, 4, "[costs, error, total, timestamp]", &c, err));
    CD_TRY(cd_err_index(err, read_costs(a, c, out, err), 0));
    c = c->next;
    CD_TRY(cd_err_index(err, cd_json_int(c, 0, CD_ERROR_NO_MAX, &out->error_no, err), 1));
    c = c->next;
    CD_TRY(cd_err_index(
        err, read_real(c, -CD_RECORD_MAX_TOTAL_S, CD_RECORD_MAX_TOTAL_S, &out->total_s, err), 2));
    c = c->next; /* Python's time() has a fraction, TVM's writer drops it */
    CD_TRY(cd_err_index(
        err, read_real(c, -(double)CD_RECORD_MAX_TIME, (double)CD_RECORD_MAX_TIME, &t, err), 3));
    out->timestamp = (int64_t)t;
    return CDMPP_OK;
}

static cdmpp_status read_version(const cd_json *v, cd_record *out, cdmpp_err *err) {
    CD_TRY(cd_json_str(v, &out->version, err));
    const cd_str s = out->version;
    if (s.n == 4 && memcmp(s.p, "v0.", 3) == 0 && s.p[3] >= '2' && s.p[3] <= '6') return CDMPP_OK;
    return CD_FAIL(err, EUNSUPPORTED,
                   "record version \"%.*s\" is not one of v0.2 v0.3 v0.4 v0.5 v0.6",
                   cd_str_shown(s, 24), s.p);
}

/* Sort the members out: "i", "r", "v" in any order, once each, an optional "origin", nothing
 * else. */
static cdmpp_status members(const cd_json *line, const cd_json *m[3], cd_str *origin,
                            cdmpp_err *err) {
    static const char name[] = "irv";
    if (line->kind != CD_JSON_OBJ)
        return CD_FAIL(err, ESCHEMA, "expected an object, found %s", cd_json_kind_name(line->kind));
    for (const cd_json *c = line->u.child; c; c = c->next) {
        if (cd_str_is(c->key, "origin")) {
            CD_TRY(cd_err_key(err, cd_json_str(c, origin, err), "origin"));
            continue;
        }
        const char *at = c->key.n == 1 && *c->key.p ? strchr(name, *c->key.p) : NULL;
        if (!at)
            return CD_FAIL(err, ESCHEMA, "expected only the keys i, r, v, found \"%.*s\"",
                           cd_str_shown(c->key, 24), c->key.p);
        m[at - name] = c;
    }
    for (size_t k = 0; k < 3; k++)
        if (!m[k])
            return CD_FAIL(err, ESCHEMA, "expected the keys i, r, v, found no \"%c\"", name[k]);
    return CDMPP_OK;
}

cdmpp_status cd_record_read(cd_arena *a, const char *line, size_t len, cd_record *out,
                            cdmpp_err *err) {
    const cd_json *root = NULL, *m[3] = {NULL, NULL, NULL};
    cd_record r = {0};
    if (len > CD_RECORD_LINE_MAX)
        return CD_FAIL(err, ERANGE, "record of %zu bytes, more than %zu", len, CD_RECORD_LINE_MAX);
    CD_TRY(cd_json_parse(a, line, len, &root, err));
    CD_TRY(members(root, m, &r.origin, err));
    CD_TRY(cd_err_key(err, read_version(m[2], &r, err), "v"));
    CD_TRY(cd_err_key(err, read_input(a, m[0], &r, err), "i"));
    CD_TRY(cd_err_key(err, read_result(a, m[1], &r, err), "r"));
    *out = r;
    return CDMPP_OK;
}

/* For readers that have split the line already and may skip the costs. */
cdmpp_status cd_record_read_parts(cd_arena *a, cd_str i, cd_str r, cd_str v, cd_record *out,
                                  cdmpp_err *err) {
    const cd_json *m = NULL;
    cd_record rec = {0};
    if (v.n) {
        CD_TRY(cd_err_key(err, cd_json_parse(a, v.p, v.n, &m, err), "v"));
        CD_TRY(cd_err_key(err, read_version(m, &rec, err), "v"));
    }
    CD_TRY(cd_err_key(err, cd_json_parse(a, i.p, i.n, &m, err), "i"));
    CD_TRY(cd_err_key(err, read_input(a, m, &rec, err), "i"));
    if (r.n) {
        CD_TRY(cd_err_key(err, cd_json_parse(a, r.p, r.n, &m, err), "r"));
        CD_TRY(cd_err_key(err, read_result(a, m, &rec, err), "r"));
    }
    *out = rec;
    return CDMPP_OK;
}

cdmpp_status cd_record_read_steps(cd_arena *a, const char *text, size_t len, cd_record *out,
                                  cdmpp_err *err) {
    const cd_json *root = NULL;
    CD_TRY(cd_json_parse(a, text, len, &root, err));
    return read_steps(a, root, out, err);
}

static void add_number(cd_hash *h, int64_t v) { cd_hash_add(h, &v, sizeof v); }

uint64_t cd_record_steps_key(const cd_record_step *step, uint32_t n_step) {
    cd_hash h = cd_hash_start();
    for (uint32_t k = 0; k < n_step; k++) {
        const cd_record_step *t = &step[k];
        add_number(&h, (int64_t)t->kind << 32 | (uint32_t)t->stage);
        for (int j = 0; j < 3; j++) add_number(&h, t->i[j]);
        add_number(&h, t->n_list);
        for (uint32_t j = 0; j < t->n_list; j++) add_number(&h, t->list[j]);
        add_number(&h, (int64_t)t->s.n);
        if (t->s.n) cd_hash_add(&h, t->s.p, t->s.n);
    }
    return h.a;
}
