/* Reads one request. Members are found first and read later, because "id" and "cmd" decide what the
 * others may be. */
#include <string.h>

#include "predictor/serve/serve_internal.h"

enum { ID, CMD, I, ROWS, STEPS, R, V, DEVICE, TASK, TARGET, HARDWARE, FLOP, ORIGIN, N_MEMBER };
static const char *const name[N_MEMBER] = {"id",       "cmd",  "i",      "rows", "steps",
                                           "r",        "v",    "device", "task", "target",
                                           "hardware", "flop", "origin"};

typedef struct {
    cd_arena *a;
    cd_str m[N_MEMBER]; /* n == 0: absent */
} members;

/* ---- which members there are ---- */
static cdmpp_status keep(members *s, cd_str key, cd_str value, cdmpp_err *err) {
    int k = 0;
    while (k < N_MEMBER && !cd_str_is(key, name[k])) k++;
    if (k == N_MEMBER)
        return CD_FAIL(err, ESCHEMA,
                       "expected only id, cmd, i, r, v, rows, steps, device, task, target, "
                       "hardware, flop, origin, found \"%.*s\"",
                       cd_str_shown(key, 24), key.p);
    if (s->m[k].n) return CD_FAIL(err, ESCHEMA, "\"%s\" comes twice", name[k]);
    if (!value.n) return CD_FAIL(err, EPARSE, "\"%s\": expected a value", name[k]);
    s->m[k] = value;
    return CDMPP_OK;
}

/* Members that are allowed only together with others: a bit for each of these. */
static cdmpp_status check_company(const members *s, cdmpp_err *err) {
    static const struct {
        int member;
        unsigned with;
        const char *say;
    } rule[] = {/* who chose a schedule, in records of cdmpp-tune: not read */
                {R, 1u << I, "goes with i"},
                {V, 1u << I, "goes with i"},
                {ORIGIN, 1u << I, "goes with i"},
                {TASK, 1u << ROWS | 1u << STEPS, "goes with rows or steps"},
                {TARGET, 1u << ROWS | 1u << STEPS, "goes with rows or steps"},
                {HARDWARE, 1u << STEPS, "goes with steps"},
                {FLOP, 1u << ROWS | 1u << STEPS, "goes with rows or steps"},
                {STEPS, 1u << TASK, "needs task: steps alone name none"},
                {DEVICE, 1u << I | 1u << ROWS | 1u << STEPS, "goes with i, rows or steps"}};
    unsigned have = 0, asked = 0;
    for (int k = 0; k < N_MEMBER; k++) have |= s->m[k].n ? 1u << k : 0u;
    for (int k = CMD; k <= STEPS; k++) asked += have >> k & 1u;
    if (asked != 1)
        return CD_FAIL(err, ESCHEMA, "expected one of i, rows, steps, cmd, found %u of them",
                       asked);
    for (size_t k = 0; k < sizeof rule / sizeof *rule; k++)
        if (have >> rule[k].member & 1 && !(have & rule[k].with))
            return CD_FAIL(err, ESCHEMA, "\"%s\" %s", name[rule[k].member], rule[k].say);
    return CDMPP_OK;
}

/* ---- their values ---- */
static cdmpp_status value(const members *s, int k, const cd_json **out, cdmpp_err *err) {
    return cd_json_parse(s->a, s->m[k].p, s->m[k].n, out, err);
}

static cdmpp_status check_id(cd_arena *a, cd_str text, cd_str *out, cdmpp_err *err) {
    const cd_json *v = NULL;
    if (!text.n) return CDMPP_OK;
    if (text.n > CD_REQUEST_ID)
        return CD_FAIL(err, ERANGE, "expected at most %d bytes, found %zu", CD_REQUEST_ID, text.n);
    CD_TRY(cd_json_parse(a, text.p, text.n, &v, err));
    if (v->kind == CD_JSON_NULL) return CDMPP_OK; /* as if it were not there */
    if (v->kind != CD_JSON_INT && v->kind != CD_JSON_REAL && v->kind != CD_JSON_STR)
        return CD_FAIL(err, ESCHEMA, "expected a number or a string, found %s",
                       cd_json_kind_name(v->kind));
    *out = text;
    return CDMPP_OK;
}

static cdmpp_status read_id(const members *s, cd_str *out, cdmpp_err *err) {
    return check_id(s->a, s->m[ID], out, err);
}

cdmpp_status cd_request_id(cd_arena *a, cd_str line, cd_str *out, cdmpp_err *err) {
    cd_str key, v, id = {NULL, 0};
    bool more = true;
    while (line.n && *line.p != '{') line.p++, line.n--;
    while (more) {
        CD_TRY(cd_json_member(&line, &key, &v, &more, err));
        if (!more || !cd_str_is(key, "id")) continue;
        if (id.n) return CD_FAIL(err, ESCHEMA, "it comes twice");
        id = v;
    }
    return check_id(a, id, out, err);
}

/* Plain texts need no tree. */
static cdmpp_status text(const members *s, int k, cd_str *out, cdmpp_err *err) {
    const cd_json *v = NULL;
    if (!s->m[k].n) return CDMPP_OK;
    CD_TRY(cd_err_key(err, value(s, k, &v, err), name[k]));
    return cd_err_key(err, cd_json_str(v, out, err), name[k]);
}

static cdmpp_status read_hardware(const members *s, cd_aim *aim, cdmpp_err *err) {
    const cd_json *v = NULL, *c = NULL;
    cd_hardware *h = &aim->hardware;
    int64_t *to[8] = {&h->num_cores,
                      &h->vector_unit_bytes,
                      &h->cache_line_bytes,
                      &h->max_shared_memory_per_block,
                      &h->max_local_memory_per_block,
                      &h->max_threads_per_block,
                      &h->max_vthread_extent,
                      &h->warp_size};
    if (!s->m[HARDWARE].n) return CDMPP_OK;
    CD_TRY(value(s, HARDWARE, &v, err));
    CD_TRY(cd_json_arr(v, 8, &c, err));
    if (v->n != 8) return CD_FAIL(err, ESCHEMA, "expected 8 integers, found %u", v->n);
    for (size_t i = 0; i < 8; i++, c = c->next)
        CD_TRY(cd_err_index(err, cd_json_int(c, INT32_MIN, INT64_MAX, to[i], err), i));
    aim->has_hardware = true;
    return CDMPP_OK;
}

static cdmpp_status read_flop(const members *s, cd_aim *aim, cdmpp_err *err) {
    const cd_json *v = NULL;
    double flop = 0;
    if (!s->m[FLOP].n) return CDMPP_OK;
    CD_TRY(value(s, FLOP, &v, err));
    CD_TRY(cd_json_real(v, &flop, err));
    if (!(flop > 0 && flop <= 1e300))
        return CD_FAIL(err, ERANGE, "expected a number above 0, found %g", flop);
    aim->flop = flop;
    return CDMPP_OK;
}

cdmpp_status cd_request_aim(cd_arena *a, const cd_task_registry *tasks, cd_str task, cd_str target,
                            cd_aim *out, cdmpp_err *err) {
    *out = (cd_aim){.workload_key = "", .target = {"", 0}, .device = {"", 0}, .flop = -1};
    if (task.n && tasks) {
        if (!(out->task = cd_task_registry_find(tasks, task)))
            return cd_err_key(
                err,
                CD_FAIL(err, ENOTASK, "no task file defines %.*s", cd_str_shown(task, 150), task.p),
                "task");
        out->workload_key = out->task->workload_key;
        out->target = (cd_str){out->task->target, strlen(out->task->target)};
        out->flop = cd_task_flop(out->task);
    } else if (task.n && !(out->workload_key = cd_str_dup(a, task))) {
        return CD_FAIL(err, ENOMEM, "workload key");
    }
    if (target.n) out->target = target;
    return CDMPP_OK;
}

static cdmpp_status read_aim(const members *s, const cd_task_registry *tasks, cd_aim *aim,
                             cdmpp_err *err) {
    cd_str task = {"", 0}, target = {"", 0}, device = {"", 0};
    CD_TRY(text(s, TASK, &task, err));
    CD_TRY(text(s, TARGET, &target, err));
    CD_TRY(text(s, DEVICE, &device, err));
    if (s->m[DEVICE].n && !device.n)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected a name, found none"), name[DEVICE]);
    CD_TRY(cd_request_aim(s->a, tasks, task, target, aim, err));
    aim->device = device;
    CD_TRY(cd_err_key(err, read_hardware(s, aim, err), name[HARDWARE]));
    return cd_err_key(err, read_flop(s, aim, err), name[FLOP]);
}

static cdmpp_status read_command(const members *s, cd_request *out, cdmpp_err *err) {
    cd_str cmd = {"", 0};
    CD_TRY(text(s, CMD, &cmd, err));
    out->kind = cd_str_is(cmd, "hello") ? CD_REQUEST_HELLO : CD_REQUEST_STATS;
    if (out->kind == CD_REQUEST_HELLO || cd_str_is(cmd, "stats")) return CDMPP_OK;
    return cd_err_key(err,
                      CD_FAIL(err, ESCHEMA, "expected hello or stats, found \"%.*s\"",
                              cd_str_shown(cmd, 24), cmd.p),
                      name[CMD]);
}

static cdmpp_status read_members(members *s, cd_str line, cdmpp_err *err) {
    cd_str key, v;
    bool more = true;
    if (!line.n || *line.p != '{') return CD_FAIL(err, EPARSE, "expected a JSON object, '{'");
    for (;;) {
        CD_TRY(cd_json_member(&line, &key, &v, &more, err));
        if (!more) return CDMPP_OK;
        CD_TRY(keep(s, key, v, err));
    }
}

/* The id is read even from a line that is broken later, so that the error carries it; only the
 * first error is reported. */
cdmpp_status cd_request_read(cd_arena *a, const cd_task_registry *tasks, cd_str line, bool costs,
                             cd_request *out, cdmpp_err *err) {
    members s = {.a = a};
    *out = (cd_request){.kind = CD_REQUEST_SCORE};
    while (line.n && (*line.p == ' ' || *line.p == '\t')) line.p++, line.n--;
    const cdmpp_status walked = read_members(&s, line, err);
    const cdmpp_status st =
        cd_err_key(walked ? NULL : err, read_id(&s, &out->id, walked ? NULL : err), name[ID]);
    CD_TRY(walked ? walked : st);
    CD_TRY(check_company(&s, err));
    if (s.m[CMD].n) return read_command(&s, out, err);
    CD_TRY(read_aim(&s, tasks, &out->aim, err));
    const int what = s.m[I].n ? I : s.m[ROWS].n ? ROWS : STEPS;
    out->ask = (cd_candidate){.form = what == I      ? CD_CANDIDATE_PARTS
                                      : what == ROWS ? CD_CANDIDATE_ROWS_TEXT
                                                     : CD_CANDIDATE_STEPS,
                              .text = s.m[what],
                              .version = s.m[V]};
    if (costs) out->ask.costs = s.m[R];
    return CDMPP_OK;
}

/* serve_ndjson -- a JSON object a line; what it may ask is in request_internal.h. */

static void put_name(cd_buf *b, const cd_request *r) {
    cd_buf_puts(b, "{");
    if (!r->id.n) return;
    cd_buf_puts(b, "\"id\":");
    cd_buf_put(b, r->id.p, r->id.n);
    cd_buf_puts(b, ",");
}

static void put_hello(const cd_serve_state *s, cd_buf *b) {
    cd_buf_putf(b,
                "\"cdmpp\":\"%s\",\"protocol\":%d,\"model\":\"sha256:%s\",\"feature_len\":%zu,"
                "\"takes_rows\":%s,\"units\":\"s\",\"profile\":\"%s\",\"devices\":[",
                cdmpp_version(), CD_PROTOCOL, cd_model_digest(s->m->impl), cdmpp_model_n_col(s->m),
                cd_serve_check_rows(s, NULL) ? "false" : "true",
                s->o.profile ? s->o.profile : "full");
    for (size_t i = 0; i < cdmpp_model_n_device(s->m); i++) {
        if (i) cd_buf_puts(b, ",");
        cd_buf_put_json_str(b, cdmpp_model_device(s->m, i), strlen(cdmpp_model_device(s->m, i)));
    }
    cd_buf_putf(b, "],\"batch\":%zu,\"max_delay_ms\":%d,\"max_line_bytes\":%zu}\n", s->o.batch,
                s->o.max_delay_ms, s->o.max_bytes);
}

static void put_stats(const cd_serve_state *s, cd_buf *b) {
    uint64_t asked = 0, found = 0;
    cdmpp_context_cache(s->c, &asked, &found);
    cd_buf_putf(b,
                "\"requests\":%zu,\"scored\":%zu,\"bad\":%zu,\"batches\":%zu,\"cache\":{\"asked\":%"
                "llu,\"found\":%llu}}\n",
                s->stats->asked, s->stats->scored, s->stats->bad, s->stats->batches,
                (unsigned long long)asked, (unsigned long long)found);
}

/* "hello" and "stats" are answered outside of batches, after all earlier requests; the request
 * still points into its line. */
static cdmpp_status command(cd_serve_state *s, const cd_request *r, cdmpp_err *err) {
    cd_buf *b = &s->chunk[0].out;
    CD_TRY(cd_serve_flush(s, err));
    put_name(b, r);
    if (r->kind == CD_REQUEST_HELLO) put_hello(s, b);
    else put_stats(s, b);
    if (b->oom) return CD_FAIL(err, ENOMEM, "answer");
    const cdmpp_status st = cd_line_reader_send(s->o.out, b->p, b->n, err);
    cd_buf_clear(b);
    return st;
}

/* Request n of the batch, from a line. */
static cdmpp_status add(cd_serve_state *s, cd_str line, bool *is_command, cdmpp_err *err) {
    const size_t i = s->n;
    cd_request r = {0};
    cdmpp_err why = {0};
    cdmpp_status st;
    if (line.p) st = cd_request_read(&s->text, s->tasks, line, s->o.costs, &r, &why);
    else st = CD_FAIL(&why, ERANGE, "the line is longer than %zu bytes", s->o.max_bytes);
    if (st == CDMPP_ENOMEM) {
        cd_err_from(err, &why);
        return st;
    }
    *is_command = !st && r.kind != CD_REQUEST_SCORE;
    if (*is_command) return command(s, &r, err);
    if (!st && r.ask.form == CD_CANDIDATE_ROWS_TEXT)
        st = cd_err_key(&why, cd_serve_check_rows(s, &why), "rows");
    s->id[i] = r.id;
    s->line[i] = cd_line_reader_number(s->in);
    s->aim[i] = r.aim;
    s->ask[i] = r.ask;
    s->ask[i].aim = &s->aim[i];
    if (st) cd_serve_refuse(s, i, &why);
    return CDMPP_OK;
}

static bool blank(cd_str s) {
    size_t i = 0;
    while (i < s.n && (s.p[i] == ' ' || s.p[i] == '\t')) i++;
    return i == s.n;
}

cdmpp_status cd_serve_ndjson(cd_serve_state *s, cdmpp_err *err) {
    cd_str line;
    bool more = true, is_command = false;
    for (;;) {
        CD_TRY(cd_serve_line(s, false, &line, &more, err));
        if (!more) return CDMPP_OK;
        if (line.p && blank(line)) {
            CD_TRY(cd_serve_flush(s, err));
            continue;
        }
        CD_TRY(add(s, line, &is_command, err));
        if (!is_command) CD_TRY(cd_serve_take(s, err));
    }
}
