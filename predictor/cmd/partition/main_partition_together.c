/* Verb "together" of cdmpp-partition: how many threads each of several operators has, when they share the processors.
 *
 *   operator,threads,seconds,bytes      seconds alone with so many threads; bytes (optional): what it moves, for --contention
 *   a,1,8e-3,4e6
 *   a,2,4.2e-3,4e6
 *   b,1,9e-3,1e6
 *
 * With a number of threads that was not measured an operator takes the least time of those below: it can leave threads idle. */
#include <math.h>
#include <string.h>

#include "predictor/cmd/partition/main_partition_tools.h"
#include "predictor/partition/stages/stages.h"

enum { MAX_OP = 64, MAX_THREADS = 4096 };

typedef struct {
    int threads;
    const char *machine;
    bool json;
} ask;

typedef struct {
    cd_arena arena;
    uint32_t n_op, threads;     /* threads: of all */
    const char *name[MAX_OP];
    double *seconds[MAX_OP];    /* (threads + 1), of 0: infinity */
    double bytes[MAX_OP];
    cd_contention contention;
} state;

static const cd_option table[] = {
    {"threads", 0, "N", CD_OPTION_INT, offsetof(ask, threads), "1..4096", 0, "Threads in all (default: the most in the table)"},
    {"contention", 0, "MACHINE", CD_OPTION_FILE, offsetof(ask, machine), "*.json", 0, "What running beside each other costs, by this file (link measure --contention); the table needs a column bytes"},
};
static const char *const group[] = {"How"};
static const char *const use[] = {"[--threads N] [--contention MACHINE.json] TIMES.csv", NULL};
static const char *const example[] = {"Eight threads for three operators", "cdmpp-partition together --threads 8 times.csv", NULL};

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    (void)to;
    return said->operand.n == 1 ? CDMPP_OK : CD_FAIL(err, EUSAGE, "expected one table, found %zu", said->operand.n);
}

const cd_command cd_partition_together_command = {
    "cdmpp-partition together", "threads for each of several operators at a time, or one after the other", use,
    "The table has the columns operator, threads, seconds, and bytes with --contention: what each takes alone. Every way of sharing is tried, or, where these are too many, "
    "hill climbing is done from equal shares. Running together is refused where it is not faster than one after the other with the best number of threads each.",
    table, sizeof table / sizeof *table, group, "*.csv", example, NULL, NULL, NULL, check};

/* ---- reading ---- */
static cdmpp_status threads_of(const cd_partition_table *t, size_t row, size_t col, uint32_t *out, cdmpp_err *err) {
    double v;
    CD_TRY(cd_partition_table_number(t, row, col, &v, err));
    if (v < 1 || v > MAX_THREADS || v != floor(v))
        return cd_err_at(err, CD_FAIL(err, ERANGE, "threads: expected a whole number in 1..%d, found %g", MAX_THREADS, v), t->path, t->line[row]);
    *out = (uint32_t)v;
    return CDMPP_OK;
}

static cdmpp_status op_of(state *s, const char *name, uint32_t *out, cdmpp_err *err) {
    for (*out = 0; *out < s->n_op; ++*out)
        if (!strcmp(s->name[*out], name)) return CDMPP_OK;
    if (s->n_op == MAX_OP) return CD_FAIL(err, ERANGE, "more than %d operators", MAX_OP);
    s->name[*out] = cd_str_dup(&s->arena, (cd_str){name, strlen(name)});
    s->seconds[*out] = cd_arena_alloc(&s->arena, s->threads + 1, sizeof(double));
    if (!s->name[*out] || !s->seconds[*out]) return CD_FAIL(err, ENOMEM, "operator");
    for (uint32_t t = 0; t <= s->threads; t++) s->seconds[*out][t] = HUGE_VAL;
    s->bytes[*out] = -1;
    s->n_op++;
    return CDMPP_OK;
}

static cdmpp_status add_row(state *s, const cd_partition_table *t, size_t row, const size_t *col, cdmpp_err *err) {
    uint32_t n, k;
    double v, bytes = 0;
    CD_TRY(threads_of(t, row, col[1], &n, err));
    CD_TRY(cd_partition_table_number(t, row, col[2], &v, err));
    if (!(v > 0)) return cd_err_at(err, CD_FAIL(err, ERANGE, "expected seconds above 0, found %g", v), t->path, t->line[row]);
    if (col[3] != SIZE_MAX) CD_TRY(cd_partition_table_number(t, row, col[3], &bytes, err));
    if (bytes < 0) return cd_err_at(err, CD_FAIL(err, ERANGE, "expected bytes of at least 0, found %g", bytes), t->path, t->line[row]);
    CD_TRY(cd_err_at(err, op_of(s, t->cell[row][col[0]], &k, err), t->path, t->line[row]));
    s->bytes[k] = fmax(s->bytes[k], bytes);
    for (; n <= s->threads; n++) s->seconds[k][n] = fmin(s->seconds[k][n], v); /* more can be left idle */
    return CDMPP_OK;
}

static cdmpp_status of_table(state *s, const ask *o, const cd_partition_table *t, cdmpp_err *err) {
    static const char *const name[] = {"operator", "threads", "seconds"};
    size_t col[4];
    for (int c = 0; c < 3; c++) CD_TRY(cd_partition_table_need(t, name[c], &col[c], err));
    col[3] = cd_partition_table_find(t, "bytes");
    if (o->machine) CD_TRY(cd_partition_table_need(t, "bytes", &col[3], err));
    s->threads = (uint32_t)o->threads;
    for (size_t i = 0; !o->threads && i < t->n_row; i++) {
        uint32_t n;
        CD_TRY(threads_of(t, i, col[1], &n, err));
        if (n > s->threads) s->threads = n;
    }
    for (size_t i = 0; i < t->n_row; i++) CD_TRY(add_row(s, t, i, col, err));
    for (uint32_t k = 0; k < s->n_op; k++)
        if (!isfinite(s->seconds[k][1])) return cd_err_at(err, CD_FAIL(err, ESCHEMA, "operator %.60s: no time with 1 thread", s->name[k]), t->path, 0);
    return CDMPP_OK;
}

static cdmpp_status contention_of(state *s, const ask *o, cdmpp_err *err) {
    cd_machine m;
    if (!o->machine) return CDMPP_OK;
    cd_machine_init(&m);
    cdmpp_status st = cd_machine_read(&m, o->machine, err);
    if (!st && !(m.contention.beside > 0)) st = cd_err_at(err, CD_FAIL(err, ENODATA, "nothing about contention"), o->machine, 0);
    s->contention = m.contention;
    cd_machine_free(&m);
    return st;
}

/* ---- time of one beside others: a cd_stage_cotune_time ---- */
static double share(const state *s, uint32_t k, uint32_t threads) {
    const double peak = s->contention.peak_bytes_per_s;
    return threads && peak > 0 ? fmin(1, s->bytes[k] / (s->seconds[k][threads] * peak)) : 0;
}

static double time_of(uint32_t op, const uint32_t *threads, uint32_t n_op, void *ctx) {
    const state *s = ctx;
    double sum = 0;
    uint32_t others = 0;
    for (uint32_t k = 0; k < n_op; k++) {
        sum += share(s, k, threads[k]);
        others += k != op && threads[k];
    }
    return s->seconds[op][threads[op]] * cd_contention_slow(&s->contention, share(s, op, threads[op]), sum, others, false);
}

/* ---- telling ---- */
static double beside(state *s, const cd_stage_cotune *c, uint32_t op) { return time_of(op, c->threads, s->n_op, s); }

static uint32_t best_alone(const state *s, uint32_t op) {
    uint32_t at = 1;
    for (uint32_t t = 2; t <= s->threads; t++)
        if (s->seconds[op][t] < s->seconds[op][at]) at = t;
    return at;
}

static void put_text(cd_buf *b, state *s, const cd_stage_cotune *c) {
    const bool fits = s->n_op <= s->threads; /* else together_s says nothing */
    cd_buf_puts(b, "operator                 alone: threads     seconds  together: threads    seconds\n");
    for (uint32_t k = 0; k < s->n_op; k++) {
        const uint32_t t = best_alone(s, k);
        cd_buf_putf(b, "%-24s %14u   ", s->name[k], t);
        cd_partition_seconds(b, s->seconds[k][t]);
        if (fits) {
            cd_buf_putf(b, "  %17u  ", c->threads[k]);
            cd_partition_seconds(b, beside(s, c, k));
        }
        cd_buf_puts(b, "\n");
    }
    cd_buf_puts(b, "\none after the other: ");
    cd_partition_seconds_short(b, c->sequential_s);
    if (fits) {
        cd_buf_puts(b, "; together with equal shares: ");
        cd_partition_seconds_short(b, c->equal_s);
        cd_buf_puts(b, "; tuned: ");
        cd_partition_seconds_short(b, c->together_s);
    }
    if (c->accepted) cd_buf_putf(b, "\nrun together: %.3f times as fast as one after the other (%s)\n", c->sequential_s / c->together_s, c->exact ? "every way tried" : "hill climbing");
    else if (fits) cd_buf_putf(b, "\nrun one after the other: together would take %.3f times as long (%s)\n", c->together_s / c->sequential_s, c->exact ? "every way tried" : "hill climbing");
    else cd_buf_putf(b, "\nrun one after the other: %u threads are fewer than %u operators\n", s->threads, s->n_op);
}

static void put_json(cd_buf *b, state *s, const cd_stage_cotune *c) {
    const bool fits = s->n_op <= s->threads;
    cd_buf_putf(b, "{\"threads\":%u,\"operators\":[", s->threads);
    for (uint32_t k = 0; k < s->n_op; k++) {
        cd_buf_puts(b, k ? ",{" : "{");
        cd_partition_put_text(b, "name", s->name[k]);
        cd_buf_putf(b, ",\"threads_alone\":%u", best_alone(s, k));
        cd_partition_put(b, "alone_s", s->seconds[k][best_alone(s, k)]);
        if (fits) cd_buf_putf(b, ",\"threads\":%u", c->threads[k]);
        else cd_buf_puts(b, ",\"threads\":null");
        cd_partition_put(b, "together_s", fits ? beside(s, c, k) : (double)NAN);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]");
    cd_partition_put(b, "together_s", c->together_s);
    cd_partition_put(b, "sequential_s", c->sequential_s);
    cd_partition_put(b, "equal_s", c->equal_s);
    cd_buf_putf(b, ",\"accepted\":%s,\"exact\":%s}", c->accepted ? "true" : "false", c->exact ? "true" : "false");
}

static cdmpp_status run(const ask *o, state *s, cdmpp_err *err) {
    cd_stage_cotune c = {0};
    cd_buf b = {0};
    cdmpp_status st = contention_of(s, o, err);
    if (!st) st = cd_stage_cotune_search(s->n_op, s->threads, time_of, s, &c, err);
    if (!st) {
        if (o->json) put_json(&b, s, &c);
        else put_text(&b, s, &c);
        st = cd_partition_print_result(o->json, "cdmpp.partition_together", &b, err);
    }
    cd_stage_cotune_free(&c);
    return st;
}

int cd_partition_together(int argc, char **argv) {
    ask o = {0};
    state *s = NULL;
    cd_partition_table t;
    cdmpp_err err = {0};
    cd_command_run f;
    int code;
    if (!cd_command_begin(&f, &cd_partition_together_command, argc, argv, &o, &code)) return code;
    o.json = f.said.json;
    cdmpp_status st = cd_partition_table_read(&t, f.said.operand.v[0], &err);
    if (!st && !(s = cd_mem_zalloc(1, sizeof *s))) st = CD_FAIL(&err, ENOMEM, "operators");
    if (!st) st = of_table(s, &o, &t, &err);
    if (!st) st = run(&o, s, &err);
    cd_partition_table_free(&t);
    if (s) cd_arena_free(&s->arena);
    cd_mem_free(s);
    return cd_partition_finish(&f, st, &err, false);
}
