/* A scheduler of one engine, step by step; steps of decoding in which nothing changes are taken at
 * once.
 *
 *   request ─> front end, one at a time ─> queue ─> prompt in one or more steps ─> first token ─> a
 *     token a step ─> end ─> next request
 *
 * (1) `turn` counts steps in which sequences decode; a sequence that joined at d with n tokens to
 *     go ends at d + n;
 * (2) the running sequences are a heap by their last turn;
 * (3) `held` is the sum of the lengths of the running sequences' caches, of which all grow by one
 *     in a turn;
 * (4) prompts that are computed in parts are the first ones of the queue: each copy has one of them
 *     at most. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/serving/serving.h"

enum { MAX_REQUESTS = 2000000, STEADY = 8, LEAST = 64, MOST = 16384 };

typedef struct {
    double sent, ready, first, end; /* seconds; of the queue, of its tokens */
    uint32_t isl, osl, made;        /* made: tokens before it was put back */
    uint32_t copy;                  /* that computes it, where a part is computed */
    bool ends;                      /* its prompt, in this step */
    /* tokens of its prompt: computed in steps before, in this step */
    double part, taken;
    uint64_t joined, last, seen; /* turns; steps before it was ready */
} request;

/* What a step takes of the queue for one copy. */
typedef struct {
    double room;            /* tokens that it could take beside */
    double prompts, tokens; /* prompts that are whole in this step; tokens of these */
    double part, past;      /* of one more prompt, behind `past` computed tokens */
} copy;

/* A running sequence, in the heap. */
typedef struct {
    uint64_t last;
    uint32_t id;
} running;

typedef struct {
    cd_serving_engine *e;
    const cd_serving_load *load;
    cd_serving_limits limit; /* of all copies together */
    double copies;
    /* (copies) of these the first n_copy; a step has given nothing to the last of them, nor to
     * those behind it, which are like it */
    copy *copy;
    size_t n_copy;
    request *r;
    uint32_t *wait; /* (n) requests in the queue, a ring */
    running *heap;  /* (n) */
    /* the first ones of the queue: n_seen are ready, of n_part a part is computed */
    size_t n, sent, done, head, n_wait, n_seen, n_part, n_run;
    uint64_t turn;
    double now, front, held; /* front: when the front end is free */
    double promised;         /* tokens that running sequences have at their end */
    double run_time, busy_time, wait_time, crowded_time, put_back, request_s;
    /* sequences that decode leave the first prompt no room in a step */
    bool crowded;
    uint64_t steps;
} sim;

/* What a step takes of the queue. */
typedef struct {
    /* requests, the first ones of the queue; of these, whose prompts end in it */
    size_t n, whole;
    double tokens; /* of all copies */
} taken;

/* ---- running sequences ---- */
static bool before(running a, running b) {
    return a.last < b.last || (a.last == b.last && a.id < b.id);
}

static void up(sim *s, size_t i, running v) {
    for (; i && before(v, s->heap[(i - 1) / 2]); i = (i - 1) / 2) s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = v;
}

/* The last one, which has lost its place, takes the free place i or one below it; of put_back also
 * one above it. */
static void fill(sim *s, size_t i) {
    const running v = s->heap[s->n_run];
    for (size_t k; (k = 2 * i + 1) < s->n_run; i = k) {
        if (k + 1 < s->n_run && before(s->heap[k + 1], s->heap[k])) k++;
        if (!before(s->heap[k], v)) break;
        s->heap[i] = s->heap[k];
    }
    up(s, i, v);
}

static double whole_of(const sim *s, uint32_t id) {
    return s->load->given ? (double)s->r[id].isl + s->r[id].osl : 0;
}

static void join(sim *s, uint32_t id) {
    s->promised += whole_of(s, id);
    up(s, s->n_run++, (running){s->r[id].last, id});
}

static uint32_t take_out(sim *s, size_t i) {
    const uint32_t id = s->heap[i].id;
    s->promised -= whole_of(s, id);
    if (i < --s->n_run) fill(s, i);
    return id;
}

static double length_of(const sim *s, uint32_t id) {
    return s->r[id].isl + s->r[id].made + 1.0 + (double)(s->turn - s->r[id].joined);
}

/* ---- requests ---- */
static uint32_t length(const sim *s, double mean, uint64_t i) {
    const double v = mean * (1 + s->load->spread * (2 * cd_rng_unit(s->load->seed, i) - 1));
    return v < 1 ? 1 : (uint32_t)lround(v);
}

static const cd_serving_request *given(const sim *s, size_t id) {
    const cd_serving_requests *g = s->load->given;
    return g ? &g->v[id * (s->load->each ? s->load->each : 1) % g->n] : NULL;
}

static void send(sim *s, double at) {
    if (s->sent == s->n) return;
    const uint32_t id = (uint32_t)s->sent++;
    const cd_serving_request *g = given(s, id);
    s->front = fmax(s->front, at) + s->request_s;
    s->r[id] = (request){.sent = at,
                         .ready = s->front,
                         .isl = g ? g->isl : length(s, s->load->isl, 2 * (uint64_t)id),
                         .osl = g ? g->osl : length(s, s->load->osl, 2 * (uint64_t)id + 1)};
    s->wait[(s->head + s->n_wait++) % s->n] = id;
}

static void send_first(sim *s) {
    double at = 0;
    for (size_t i = 0; s->load->concurrency > 0 && i < (size_t)s->load->concurrency; i++)
        send(s, 0);
    for (size_t i = 0; !(s->load->concurrency > 0) && i < s->n; i++) {
        if (!(s->load->rate > 0)) at = given(s, i)->at_s;
        else at -= log(1 - cd_rng_unit(s->load->seed + 1, i)) / s->load->rate;
        send(s, at);
    }
}

static void end(sim *s, uint32_t id) {
    s->r[id].end = s->now;
    s->done++;
    if (s->load->concurrency > 0) send(s, s->now + s->load->think_s);
}

/* ---- a step ---- */
static double need(const sim *s, size_t k) {
    return (double)s->r[s->wait[(s->head + k) % s->n]].isl +
           s->r[s->wait[(s->head + k) % s->n]].made;
}

static request *waiting(const sim *s, size_t k) { return &s->r[s->wait[(s->head + k) % s->n]]; }

static void see(sim *s) {
    for (; s->n_seen < s->n_wait && waiting(s, s->n_seen)->ready <= s->now; s->n_seen++)
        waiting(s, s->n_seen)->seen = s->steps;
}

/* Steps are put together ahead of their time, so a request is in none of the next ones; an engine
 * that has nothing to do waits for nothing. */
static bool is_ready(const sim *s, size_t k) {
    return k < s->n_seen &&
           (!s->n_run || s->steps >= waiting(s, k)->seen + (uint64_t)s->limit.ahead);
}

/* Is there room in the cache for `more` beside what is held, and for a turn of all; of a sequence
 * alone always, as the layout was checked. */
static bool fits(const sim *s, double held, double more, double to_come, size_t others) {
    return !others || held + more + (s->limit.reserved ? to_come : (double)others + 1) <=
                          s->limit.cache_tokens;
}

/* Nobody knows the lengths of drawn requests before: their means are reserved. */
static double reserved(const sim *s) {
    return s->limit.reserved && s->load->given ? s->promised
           : s->limit.reserved                 ? (double)s->n_run * (s->load->isl + s->load->osl)
                                               : s->held;
}

/* All copies have as many sequences that decode, or one more. */
static void clear(sim *s, bool apart) {
    s->copy[0] = (copy){.room = s->limit.tokens / s->copies -
                                (apart ? 0 : ceil((double)s->n_run / s->copies))};
    s->n_copy = 1;
}

/* Copy k is given something, so one that was given nothing stands behind it. */
static copy *copy_of(sim *s, size_t k) {
    for (; s->n_copy < k + 2 && s->n_copy < (size_t)s->copies; s->n_copy++)
        s->copy[s->n_copy] = s->copy[s->n_copy - 1];
    return &s->copy[k];
}

static bool roomier(const copy *a, const copy *b) {
    return a->room > b->room || (!(a->room < b->room) && a->prompts < b->prompts);
}

/* Of a prompt with `left` tokens to go, of which no copy has a part: the copy with the most room;
 * where no copy has room for all of them, the one with the most that can compute a part. Prompts
 * that are there already take no room: each copy gets as many. */
static uint32_t copy_for(const sim *s, double left) {
    size_t most = 0, part = 0;
    for (size_t i = 1; i < s->n_copy; i++) {
        if (roomier(&s->copy[i], &s->copy[most])) most = i;
        if (!(s->copy[i].part > 0) &&
            (s->copy[part].part > 0 || roomier(&s->copy[i], &s->copy[part])))
            part = i;
    }
    return (uint32_t)(left > s->copy[most].room ? part : most);
}

/* Tokens of a prompt in this step: all that are left, a part, or none. A copy computes a part of
 * one prompt alone. */
static void take_one(sim *s, request *r, double left) {
    copy *c = copy_of(s, r->copy);
    r->ends = !(left > c->room);
    r->taken = r->ends ? left : c->part > 0 || c->room < 1 ? 0 : c->room;
    c->room -= r->taken;
    if (r->ends && !(r->part > 0)) c->prompts++, c->tokens += left;
    else if (r->taken > 0) c->part = r->taken, c->past = r->part;
}

static taken take(sim *s) {
    taken t = {0};
    double held = reserved(s);
    clear(s, s->limit.prompts == CD_SERVING_APART);
    s->crowded = false;
    for (size_t k = 0; is_ready(s, k) && s->n_run + k < (size_t)s->limit.sequences; k++) {
        request *r = waiting(s, k);
        const double all = need(s, k), to_come = s->load->given ? r->osl : s->load->osl,
                     left = s->load->tokens_alone ? 0 : all - r->part;
        if (!fits(s, held, all, to_come, s->n_run + k)) break;
        if (k >= s->n_part) r->copy = copy_for(s, left);
        if (left > copy_of(s, r->copy)->room && s->limit.prompts == CD_SERVING_WHOLE) {
            s->crowded = !k;
            break;
        }
        take_one(s, r, left);
        if (k >= s->n_part && !r->ends && !(r->taken > 0)) break;
        t.n++, t.whole += r->ends, t.tokens += r->taken;
        held += all + (s->limit.reserved ? to_come : 0);
    }
    return t;
}

/* Prompts that end in the step go before those that do not: these stay in the queue. */
static void whole_first(sim *s, size_t n) {
    for (size_t k = 0; k < n; k++)
        for (size_t i = k; i && waiting(s, i)->ends && !waiting(s, i - 1)->ends; i--) {
            uint32_t *a = &s->wait[(s->head + i - 1) % s->n], *b = &s->wait[(s->head + i) % s->n];
            const uint32_t v = *a;
            *a = *b, *b = v;
        }
}

/* The prompts of the step are computed: whole ones have their first token. */
static void prompts_done(sim *s, const taken *t) {
    whole_first(s, t->n);
    for (size_t k = t->whole; k < t->n; k++) waiting(s, k)->part += waiting(s, k)->taken;
    for (size_t k = 0; k < t->whole; k++) {
        const uint32_t id = s->wait[s->head];
        request *r = &s->r[id];
        s->head = (s->head + 1) % s->n;
        s->n_wait--, s->n_seen--;
        if (!r->made) r->first = s->now;
        const uint32_t left = s->load->prompts_alone ? 0 : r->osl - 1 - r->made;
        r->joined = s->turn, r->last = s->turn + left, r->part = 0;
        if (!left) end(s, id);
        else join(s, id), s->held += r->isl + r->made + 1.0;
    }
    /* those that were not taken have their parts still */
    s->n_part = (t->n > s->n_part ? t->n : s->n_part) - t->whole;
}

static void turns_done(sim *s, uint64_t turns) {
    s->turn += turns;
    s->held += (double)turns * (double)s->n_run;
    while (s->n_run && s->heap[0].last <= s->turn) {
        const uint32_t id = take_out(s, 0);
        s->held -= length_of(s, id);
        end(s, id);
    }
}

/* The newest sequence gives its cache back and waits in front of all. */
static void put_back(sim *s) {
    size_t newest = 0;
    /* so do prompts that are computed in part */
    for (; s->n_part; s->n_part--) waiting(s, s->n_part - 1)->part = 0;
    for (size_t i = 1; i < s->n_run; i++) {
        const uint32_t a = s->heap[i].id, b = s->heap[newest].id;
        if (s->r[a].joined > s->r[b].joined || (s->r[a].joined == s->r[b].joined && a > b))
            newest = i;
    }
    const uint32_t id = take_out(s, newest);
    s->held -= length_of(s, id);
    s->r[id].made += (uint32_t)(s->turn - s->r[id].joined);
    s->head = (s->head + s->n - 1) % s->n;
    s->wait[s->head] = id;
    s->r[id].seen = 0;
    s->n_wait++, s->n_seen++;
    s->put_back++;
}

/* Requests wait from when they are ready on; those that come later are in the ring, too. `taken_s`:
 * of the step that has just ended. */
static void count_waiting(sim *s, double taken_s) {
    s->wait_time += taken_s * (double)s->n_seen;
    for (size_t k = s->n_seen; k < s->n_wait && waiting(s, k)->ready < s->now; k++)
        s->wait_time += s->now - waiting(s, k)->ready;
}

/* How many steps of decoding in a row: until a sequence ends, the cache is full, or a request
 * comes. */
static uint64_t turns_of(const sim *s, double each) {
    double n = (double)(s->heap[0].last - s->turn);
    if (!s->limit.reserved)
        n = fmin(n, fmax(1, floor((s->limit.cache_tokens - s->held) / (double)s->n_run)));
    if (s->n_seen && !is_ready(s, 0))
        n = fmin(n, (double)(waiting(s, 0)->seen + (uint64_t)s->limit.ahead - s->steps));
    if (s->n_seen < s->n_wait)
        n = fmin(n, fmax(1, ceil((waiting(s, s->n_seen)->ready - s->now) / each)));
    return (uint64_t)fmax(1, n);
}

static double tokens_of(const copy *c) { return c->tokens + c->part; }

static bool heavier(const copy *a, const copy *b) {
    const double x[] = {tokens_of(a), a->past, a->prompts};
    const double y[] = {tokens_of(b), b->past, b->prompts};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        if (x[i] < y[i] || x[i] > y[i]) return x[i] > y[i];
    return false;
}

/* Of the copies the one with the most tokens: the others wait for it; of those with as many the one
 * whose part is behind the most. It has one of the sequences that are one more than the others
 * have. Of prompts of several lengths the mean counts. */
static cd_serving_step slowest(const sim *s, const taken *t, double decodes, double context) {
    const copy *c = s->copy;
    for (size_t i = 1; i < s->n_copy; i++)
        if (heavier(&s->copy[i], c)) c = &s->copy[i];
    cd_serving_step one = {.prompts = c->prompts,
                           .part = c->part,
                           .part_past = c->past,
                           .decodes = ceil(decodes / s->copies),
                           .context = context};
    if (c->prompts > 0) one.isl = round(c->tokens / c->prompts);
    if (s->copies > 1) one.others = fmax(0, t->tokens + decodes - (tokens_of(c) + one.decodes));
    return one;
}

static cdmpp_status step_s(const sim *s, const taken *t, double decodes, double context,
                           double *out, cdmpp_err *err) {
    const cd_serving_step one = slowest(s, t, decodes, context);
    return cd_serving_step_s(s->e, &one, out, err);
}

static cdmpp_status step(sim *s, cdmpp_err *err) {
    /* a step that puts a sequence back takes no prompt: it would take the same one at once, and
     * where prompts are apart nothing would ever decode */
    bool full = false;
    for (; !s->limit.reserved && s->n_run > 1 && s->held + (double)s->n_run > s->limit.cache_tokens;
         full = true)
        put_back(s);
    see(s);
    taken t = {0};
    if (full) clear(s, s->crowded = false);
    else t = take(s);
    const bool prompts = t.whole || t.tokens > 0,
               apart = s->limit.prompts == CD_SERVING_APART && prompts;
    double each;
    uint64_t turns = 1;
    if (!prompts && !s->n_run) {
        if (is_ready(s, 0))
            return cd_err_key(
                err,
                CD_FAIL(err, ERANGE,
                        "a step takes at most %g tokens and no part of a prompt; the prompt has %g",
                        s->limit.tokens / s->copies, need(s, 0)),
                "isl");
        s->now = waiting(s, 0)->ready;
        return CDMPP_OK;
    }
    const double decodes = apart ? 0 : (double)s->n_run,
                 context = s->n_run ? s->held / (double)s->n_run : 0;
    CD_TRY(step_s(s, &t, decodes, context, &each, err));
    if (!prompts && (turns = turns_of(s, each)) > 1)
        CD_TRY(step_s(s, &t, decodes, context + ((double)turns - 1) / 2, &each, err));
    const double taken_s = each * (double)turns;
    s->now += taken_s, s->busy_time += taken_s;
    s->run_time += taken_s * (double)s->n_run;
    if (!prompts && s->crowded) s->crowded_time += taken_s;
    count_waiting(s, taken_s);
    s->steps += turns;
    if (s->n_run && !apart) turns_done(s, turns);
    if (prompts) prompts_done(s, &t);
    return CDMPP_OK;
}

/* ---- figures ---- */
static cdmpp_status figures(const sim *s, cd_serving_result *out, cdmpp_err *err) {
    double *a = cd_mem_zalloc(s->n, sizeof *a), *b = cd_mem_zalloc(s->n, sizeof *b), tokens = 0;
    size_t n = 0;
    *out = (cd_serving_result){.steps = (size_t)s->steps,
                               .put_back = s->put_back,
                               .requests = (double)s->n,
                               .total_s = s->now};
    for (size_t i = 0; a && b && i < s->n; i++) {
        const request *r = &s->r[i];
        a[i] = r->first - r->sent;
        out->ttft_s += a[i] / (double)s->n;
        out->request_s += (r->end - r->sent) / (double)s->n;
        tokens += s->load->prompts_alone ? 1 : r->osl;
        if (r->osl > 1 && !s->load->prompts_alone) b[n++] = (r->end - r->first) / (r->osl - 1);
    }
    if (a && b) {
        cd_sort_doubles(a, s->n), cd_sort_doubles(b, n);
        for (size_t i = 0; i < n; i++) out->tpot_s += b[i] / (double)n;
        if (!n) out->tpot_s = (double)NAN;
        out->ttft_median_s = cd_sort_median(a, s->n);
        out->ttft_p99_s = a[(s->n * 99) / 100];
        out->tpot_p99_s = n ? b[(n * 99) / 100] : (double)NAN;
        /* a worker that decodes, and nothing to decode */
        out->tokens_s = s->now > 0 ? tokens / s->now : (double)INFINITY;
        if (s->now > 0)
            out->running = s->run_time / s->now, out->busy = s->busy_time / s->now,
            out->waiting = s->wait_time / s->now, out->crowded = s->crowded_time / s->now;
    }
    const cdmpp_status st = a && b ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu requests", s->n);
    cd_mem_free(a), cd_mem_free(b);
    return st;
}

static cdmpp_status simulate(cd_serving_engine *e, const cd_serving_load *load,
                             const cd_serving_limits *limit, double request_s, double requests,
                             cd_serving_result *out, cdmpp_err *err) {
    sim s = {.e = e,
             .load = load,
             .limit = *limit,
             .copies = fmax(1, limit->copies),
             .n = (size_t)requests,
             .request_s = request_s};
    s.limit.tokens *= s.copies, s.limit.sequences *= s.copies, s.limit.cache_tokens *= s.copies;
    if (s.n > MAX_REQUESTS)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE, "expected at most %d, found %zu", MAX_REQUESTS, s.n),
                          "requests");
    s.r = cd_mem_zalloc(s.n, sizeof *s.r), s.wait = cd_mem_zalloc(s.n, sizeof *s.wait);
    s.heap = cd_mem_zalloc(s.n, sizeof *s.heap),
    s.copy = cd_mem_zalloc((size_t)s.copies, sizeof *s.copy);
    cdmpp_status st =
        s.r && s.wait && s.heap && s.copy ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu requests", s.n);
    if (!st) send_first(&s);
    while (!st && s.done < s.n) {
        if (load->stop && *load->stop)
            st = CD_FAIL(err, EINTERRUPTED, "after %zu of %zu requests", s.done, s.n);
        else st = step(&s, err);
    }
    if (!st) st = figures(&s, out, err);
    cd_mem_free(s.r), cd_mem_free(s.wait), cd_mem_free(s.heap), cd_mem_free(s.copy);
    return st;
}

/* Of requests that come by themselves nobody knows before how many are in flight: the simulation
 * grows until those are a small part (by Little's law). */
cdmpp_status cd_serving_simulate(cd_serving_engine *e, const cd_serving_load *load,
                                 const cd_serving_limits *limit, double request_s,
                                 cd_serving_result *out, cdmpp_err *err) {
    double n = load->requests > 0 ? load->requests : fmax(LEAST, STEADY * load->concurrency),
           want = n;
    do {
        n = want;
        CD_TRY(simulate(e, load, limit, request_s, n, out, err));
        out->cut = !(load->requests > 0) && !(load->concurrency > 0) &&
                   STEADY * load->rate * out->request_s > n;
        if (out->cut) want = fmin(MOST, fmax(2 * n, ceil(STEADY * load->rate * out->request_s)));
    } while (want > n);
    return CDMPP_OK;
}
