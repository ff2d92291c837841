/* cdmpp-replay --llm: TTFT, TPOT and memory of a language model from its config.json. Options in,
 * predictor/serving computes and prints. */
#include "predictor/cmd/replay/main_replay_llm.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "predictor/estimate/estimate.h"
#include "predictor/serve/serve.h"
#include "profiler/describe/describe.h"

/* Tables of answers as aligned columns, out of the Markdown that predictor/serving writes.
 *
 *   | GPU | tp |        GPU   tp
 *   | --- | --: |  ->   h100   1
 *   | h100 | 1 |
 *
 * A column is as wide as its widest cell; "--:" sets it to the right. The last cell of a row that
 * is shorter than the table is a message, which may run over the columns behind it. Other lines
 * stay as they are. */

enum { COLUMNS = 32, GAP = 2 };

typedef struct {
    size_t width[COLUMNS];
    bool right[COLUMNS];
} layout;

/* The cells of a line "| a | b |", without blanks around them; those that are empty at its end do
 *   not count. */
static size_t cells_of(cd_str line, cd_str cell[COLUMNS]) {
    size_t n = 0, used = 0;
    const char *p = line.p + 1, *end = line.p + line.n;
    while (p < end && n < COLUMNS) {
        const char *bar = memchr(p, '|', (size_t)(end - p)), *q = bar ? bar : end;
        const char *next = q + 1;
        while (p < q && *p == ' ') p++;
        while (q > p && q[-1] == ' ') q--;
        cell[n++] = (cd_str){p, (size_t)(q - p)};
        if (q > p) used = n;
        p = next;
    }
    return used;
}

static size_t letters(cd_str s) {
    size_t n = 0;
    for (size_t k = 0; k < s.n; k++) n += ((unsigned char)s.p[k] & 0xc0) != 0x80;
    return n;
}

static bool is_rule(cd_str line) { return line.n > 5 && !memcmp(line.p, "| --", 4); }

static cd_str line_at(const char *p) { return (cd_str){p, strcspn(p, "\n")}; }

static const char *behind(cd_str line) { return line.p + line.n + (line.p[line.n] == '\n'); }

/* The lines that begin with a bar. */
static layout measure(const char *table) {
    layout l = {{0}, {false}};
    cd_str cell[COLUMNS];
    size_t all = 0;
    for (cd_str line = line_at(table); *line.p == '|'; line = line_at(behind(line))) {
        const size_t n = cells_of(line, cell);
        if (n > all) all = n;
        for (size_t k = 0; k < n; k++) {
            if (is_rule(line)) l.right[k] = cell[k].p[cell[k].n - 1] == ':';
            else if ((k + 1 < n || n == all) && letters(cell[k]) > l.width[k])
                l.width[k] = letters(cell[k]);
        }
    }
    return l;
}

static void put_row(cd_buf *b, cd_str line, const layout *l) {
    cd_str cell[COLUMNS];
    const size_t n = cells_of(line, cell);
    for (size_t k = 0; k < n; k++) {
        const size_t wide = letters(cell[k]), room = wide < l->width[k] ? l->width[k] - wide : 0;
        const bool last = k + 1 == n;
        if (l->right[k]) cd_buf_putf(b, "%*s", (int)room, "");
        cd_buf_put(b, cell[k].p, cell[k].n);
        if (!last) cd_buf_putf(b, "%*s", (int)(l->right[k] ? GAP : room + GAP), "");
    }
    cd_buf_puts(b, "\n");
}

/* The text with its Markdown tables as aligned columns. */
static void replay_llm_columns(cd_buf *b, const char *markdown) {
    for (const char *p = markdown; *p;) {
        cd_str line = line_at(p);
        if (*p != '|') {
            cd_buf_putf(b, "%.*s\n", (int)line.n, line.p);
            p = behind(line);
            continue;
        }
        const layout l = measure(p);
        for (; *line.p == '|'; line = line_at(behind(line)))
            if (!is_rule(line)) put_row(b, line, &l);
        p = line.p;
    }
}

/* The steps (n) of one more configuration.
 *
 * cdmpp-replay --llm: what of an answer no training row has. */
static void replay_llm_novel_add(cd_replay_llm_novel *x, const cd_serving_rows *step, size_t n) {
    bool unknown = false;
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < CD_LLM_OP_N_NEWS; k++)
            if (step[i].new_s[k] > 0)
                x->most[k] =
                    fmax(x->most[k], step[i].new_s[k] / (step[i].total_s - step[i].host_s));
        unknown |= step[i].unknown_s > 0;
    }
    x->unknown += unknown;
}

/* Warnings of n configurations; nothing where nothing is new.
 *
 * New GPUs and sizes have words of their own. */
static void replay_llm_novel_say(const cd_replay_llm *o, const cd_replay_llm_novel *x, size_t n,
                                 cd_log *log) {
    cd_buf b = {0};
    for (int k = 0; k < CD_LLM_OP_N_NEWS; k++) {
        const cd_str w = cd_enum_names_at(CD_LLM_OP_NEWS, k);
        if (!(x->most[k] > 0) ||
            1u << k & (CD_LLM_OP_NEW_DEVICE | CD_LLM_OP_NEW_VENDOR | CD_LLM_OP_NEW_SIZE))
            continue;
        cd_buf_putf(&b, "%s%.3g %% %s a new %.*s", b.n ? ", " : "", 100 * x->most[k],
                    b.n ? "with" : "is of operators with", (int)w.n, w.p);
    }
    if (b.n && !b.oom)
        cd_log_put(log, CD_LOG_WARNING, "%s: of a step's time up to %s (not in the training rows)",
                   o->cost_model, b.p);
    if (x->unknown)
        cd_log_put(log, CD_LOG_WARNING,
                   "%zu of %zu configurations have no interval: no experiment tells how far off "
                   "such operators are",
                   x->unknown, n);
    cd_buf_free(&b);
}

/* What has to live as long as the answers. */
typedef struct {
    cd_serving_model m;
    cd_llm_op_model *ops;
    cd_device_table *devices;
    cd_serving_tables *tables;
    cd_serving_stacks stacks;
    cd_serving_session s;
    cd_serving_runs runs;
    cd_serving_requests given;
    cd_arena arena;
    cd_serving_config *c;
    size_t n;
    cd_serving_rows rows[4]; /* of the two steps of the first answer; what the others write over */
} work;

/* ---- files ---- */
static cdmpp_status load_ops(const char *path, cd_llm_op_model **out, cdmpp_err *err) {
    char *data;
    size_t n;
    CD_TRY(cd_file_read(path, 0, &data, &n, err));
    const bool is = cd_llm_op_model_is(data, n); /* false of a damaged one, too */
    const cdmpp_status st = cd_llm_op_model_from_bytes(data, n, out, err);
    if (st == CDMPP_EMODEL && !is)
        (void)CD_FAIL(
            err, EMODEL,
            "expected a model of operators of language models (data.kind: llm_operators)");
    cd_mem_free(data);
    return cd_err_at(err, st, path, 0);
}

static cdmpp_status load_devices(const char *path, cd_log *log, cd_device_table **out,
                                 cdmpp_err *err) {
    cd_arena a = {0};
    cd_diag diag = {0};
    cdmpp_status st = cd_device_table_open(&a, path, NULL, &diag, NULL, out, err);
    if (diag.n) cd_log_lines(log, CD_LOG_ERROR, diag.text.p);
    if (!st) cd_device_table_say(*out, log);
    if (st && diag.n) cd_command_reported(st, err);
    cd_diag_free(&diag);
    cd_arena_free(&a);
    return st;
}

/* What was taken for what config.json does not say; lengths that it does not allow. */
static void say_model(const cd_replay_llm *o, const work *w, cd_log *log) {
    double most = 0;
    size_t beyond = 0;
    for (size_t i = 0; i < w->m.n_note; i++)
        cd_log_put(log, w->m.doubt[i] ? CD_LOG_WARNING : CD_LOG_INFO, "%s: %s", o->model,
                   w->m.note[i]);
    for (size_t i = 0; i < w->n && w->m.longest > 0; i++) {
        const double length = cd_serving_longest(&w->c[i]);
        most = fmax(most, length);
        beyond += length > w->m.longest;
    }
    if (beyond)
        cd_log_put(log, CD_LOG_WARNING,
                   "%s: max_position_embeddings is %g; %zu of %zu configurations have longer "
                   "sequences, of up to %g tokens",
                   o->model, w->m.longest, beyond, w->n, most);
}

static bool alike(const cd_serving_config *a, const cd_serving_config *b, bool types) {
    return !strcmp(a->gpu, b->gpu) && (!types || a->linear == b->linear);
}

/* Each GPU is told of once, with each type where `types`. Those of a list follow each other; in
 * rows of --runs, which may take turns, the first ones name most GPUs. */
static bool said(const work *w, size_t i, bool types) {
    if (i && alike(&w->c[i], &w->c[i - 1], types)) return true;
    for (size_t k = 0; k < i; k++)
        if (alike(&w->c[i], &w->c[k], types)) return true;
    return false;
}

/* An unknown GPU is told later. */
static void say_half(const work *w, cd_log *log) {
    for (size_t i = 0; i < w->n; i++) {
        const cd_device *d;
        if (said(w, i, true)) continue;
        if (!cd_device_table_find(w->devices, w->c[i].gpu, &d, NULL) &&
            cd_serving_half(&w->m, &w->c[i], d))
            cd_log_put(log, CD_LOG_WARNING,
                       "%s has no units for bfloat16: float16 is taken in its place", d->name);
    }
}

/* As say_half. A GPU with measured rows is known by them. */
static void say_new(const cd_replay_llm *o, const work *w, cd_log *log) {
    for (size_t i = 0; i < w->n; i++) {
        const cd_device *d;
        const cd_device *twin;
        if (said(w, i, false)) continue;
        /* refused later */
        if (cd_device_table_find(w->devices, w->c[i].gpu, &d, NULL) || d->kind == CD_DEVICE_CPU)
            continue;
        if (!cd_llm_op_model_about(w->ops, d, &twin) || cd_serving_tables_have(w->tables, d))
            continue;
        if (twin)
            cd_log_put(log, CD_LOG_WARNING,
                       "%s: %s was not trained on: its times are those of %s, which has the same "
                       "chip, by what their descriptions differ%s",
                       o->cost_model, d->name, twin->name,
                       cd_serving_tables_have(w->tables, twin) ? ", measured ones among them" : "");
        else
            cd_log_put(log, CD_LOG_WARNING, "%s: %s was not trained on%s", o->cost_model, d->name,
                       cd_llm_op_model_vendor(w->ops, d)
                           ? ": its times come from its description"
                           : ", nor any GPU of its vendor: its times come from its description, "
                             "and nobody knows how far off they are");
    }
}

/* Tables of other GPUs are read, and change nothing. */
static void say_unused(const cd_replay_llm *o, const work *w, cd_log *log) {
    for (size_t i = 0; o->measured && i < w->n; i++) {
        const cd_device *d;
        /* refused later */
        if (said(w, i, false) || cd_device_table_find(w->devices, w->c[i].gpu, &d, NULL) ||
            d->kind == CD_DEVICE_CPU)
            continue;
        bool any = cd_serving_tables_have(w->tables, d);
        for (int f = 0; !any && f < CD_LLM_OP_N_FAMILY; f++) {
            const cd_device *twin = cd_llm_op_twin_of(w->ops, d, (cd_llm_op_family)f);
            any = twin && cd_serving_tables_have(w->tables, twin);
        }
        if (!any)
            cd_log_put(
                log, CD_LOG_WARNING,
                "%s has no rows of %s, nor of a GPU of its chip: its times are all predicted",
                o->measured, d->name);
    }
}

static void say_wide(const work *w, cd_log *log) {
    double most = 0;
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        n += cd_serving_wide(&w->c[i]) > 0, most = fmax(most, cd_serving_wide(&w->c[i]));
    if (n)
        cd_log_put(log, CD_LOG_WARNING,
                   "%zu of %zu configurations have up to %g GPUs on links of one machine; "
                   "--node-gpus and --node-gbs say what a machine has and what joins them",
                   n, w->n, most);
}

static void say_stand_in(void *ctx, const char *gpu, const char *asked, const char *taken) {
    cd_log_put(ctx, CD_LOG_WARNING, "--measured has no rows of %s on %s: those of %s stand for it",
               asked, gpu, taken);
}

static void on_bad(void *ctx, const cdmpp_err *err) { cd_log_err(ctx, CD_LOG_WARNING, err); }

/* Bad lines are told and count for the exit status. */
static cdmpp_status open_tables(const cd_replay_llm *o, cd_command_run *r, work *w,
                                cdmpp_err *err) {
    CD_TRY(cd_serving_tables_open(o->measured, w->devices, on_bad, &r->log, &w->tables, err));
    const size_t bad = cd_serving_tables_bad(w->tables);
    if (bad)
        cd_log_put(&r->log, CD_LOG_WARNING, "%zu lines or files of %s are left out", bad,
                   o->measured);
    if (bad) r->exit_code = 3;
    cd_serving_tables_say(w->tables, &r->log);
    return CDMPP_OK;
}

/* The GPU of this machine, by the name that its driver has. */
static cdmpp_status gpu_here(work *w, cd_log *log, const char **out, cdmpp_err *err) {
    cd_describe_entry e;
    cd_describe_name is;
    cdmpp_err why = {0};
    const cdmpp_status st = cd_describe_gpu_apart("cuda", "", &e, &why);
    if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "a device");
    if (st)
        return CD_FAIL(err, EUSAGE, "no GPU of this machine answers (%.120s): name one, --gpu h100",
                       why.msg);
    cd_describe_name_entry(&e, w->devices, &is);
    if (!is.described)
        return CD_FAIL(
            err, EUSAGE,
            "nobody describes this machine's GPU (%.80s): name one that is like it, --gpu h100",
            e.name);
    if (!(*out = cd_arena_text(&w->arena, is.name))) return CD_FAIL(err, ENOMEM, "names");
    cd_log_put(log, CD_LOG_INFO, "--gpu: here is %s (%s)", *out, e.name);
    return CDMPP_OK;
}

/* A name that is typed wrong is an error before any model is loaded. Those of a table are errors of
 * their lines. */
static cdmpp_status check_gpus(work *w, cd_log *log, cdmpp_err *err) {
    const char *here = NULL;
    const cd_device *d;
    for (size_t i = 0; i < w->n; i++) {
        if (!strcmp(w->c[i].gpu, CD_MODEL_SET_HERE) &&
            cd_device_table_find(w->devices, w->c[i].gpu, &d, NULL)) {
            if (!here) CD_TRY(cd_err_key(err, gpu_here(w, log, &here, err), "--gpu"));
            w->c[i].gpu = here;
        }
        CD_TRY(cd_err_key(err, cd_device_table_find(w->devices, w->c[i].gpu, &d, err), "--gpu"));
    }
    return CDMPP_OK;
}

static cdmpp_status open_files(const cd_replay_llm *o, cd_command_run *r, work *w, cdmpp_err *err) {
    cd_diag diag = {0};
    CD_TRY(load_devices(o->devices, &r->log, &w->devices, err));
    if (!o->runs) CD_TRY(check_gpus(w, &r->log, err));
    CD_TRY(cd_serving_model_load(o->model, &w->m, err));
    for (size_t i = 0; i < w->n; i++) CD_TRY(cd_serving_model_typed(&w->m, w->c[i].linear, err));
    say_model(o, w, &r->log);
    cdmpp_status st = cd_serving_stacks_load(o->serving, &diag, &w->stacks, err);
    if (diag.n) cd_log_lines(&r->log, CD_LOG_ERROR, diag.text.p);
    if (st && diag.n) cd_command_reported(st, err);
    cd_diag_free(&diag);
    CD_TRY(st);
    say_half(w, &r->log);
    say_wide(w, &r->log);
    if (!o->stream) cd_replay_llm_say_asked(w->c, w->n, &w->stacks, &r->log);
    CD_TRY(load_ops(o->cost_model, &w->ops, err));
    CD_TRY(open_tables(o, r, w, err));
    say_new(o, w, &r->log);
    say_unused(o, w, &r->log);
    w->s = (cd_serving_session){.stop = r->stop,
                                .m = &w->m,
                                .ops = w->ops,
                                .devices = w->devices,
                                .tables = w->tables,
                                .stacks = &w->stacks,
                                .level = o->level,
                                .shared = o->shared};
    return CDMPP_OK;
}

static void close_files(work *w) {
    for (size_t i = 0; i < sizeof w->rows / sizeof *w->rows; i++) cd_serving_rows_free(&w->rows[i]);
    cd_serving_session_end(&w->s);
    cd_serving_runs_free(&w->runs);
    cd_serving_requests_free(&w->given);
    cd_serving_tables_free(w->tables);
    cd_llm_op_model_free(w->ops);
    cd_device_table_free(w->devices);
    cd_serving_stacks_free(&w->stacks);
    cd_arena_free(&w->arena);
}

/* ---- answers ---- */
/* Of one configuration, not of all. A row of a table names its own GPU and stack. */
static bool of_one(const cd_replay_llm *o, cdmpp_status st) {
    return st == CDMPP_ERANGE || st == CDMPP_EMODEL || st == CDMPP_EUNSUPPORTED ||
           (o->runs && st == CDMPP_ESCHEMA);
}

/* Tables as --markdown says. */
static cdmpp_status result(const cd_replay_llm *o, cd_command_run *r, const char *schema, cd_buf *b,
                           cdmpp_err *err) {
    cd_buf columns = {0};
    if (r->said.json || o->markdown || b->oom || !b->p)
        return cd_command_result(r->said.json, schema, "cdmpp-replay", &r->log, b, err);
    replay_llm_columns(&columns, b->p);
    cd_buf_free(b);
    return cd_command_result(false, schema, "cdmpp-replay", &r->log, &columns, err);
}

static cdmpp_status print(const cd_replay_llm *o, cd_command_run *r, const cd_serving_said *v,
                          size_t n, cdmpp_err *err) {
    cd_buf b = {0};
    if (r->said.json) cd_serving_json(v, n, !o->runs, &b);
    else cd_serving_text(v, n, &b);
    if (!r->said.json && o->runs) {
        const cdmpp_status st = cd_serving_errors(v, n, &b, err);
        if (st) cd_buf_free(&b);
        CD_TRY(st);
    }
    return result(o, r, "cdmpp.serving", &b, err);
}

/* The tables of steps, which say it too, are of the first configuration alone. */
static void say_waits(size_t waits, size_t n, cd_log *log) {
    if (waits && n > 1)
        cd_log_put(log, CD_LOG_WARNING,
                   "in %zu of %zu configurations the prompt's step waits for the host, which hands "
                   "out its kernels no faster: "
                   "a faster GPU or more of them do not shorten TTFT there (host_bound in --json)",
                   waits, n);
}

/* All of them; the tables of steps are of the first alone. A single one that is refused is an
 * error. */
static cdmpp_status answer_all(const cd_replay_llm *o, cd_command_run *r, work *w, cdmpp_err *err) {
    cd_serving_said *v = CD_NEWN(&w->arena, cd_serving_said, w->n);
    cd_serving_answer *a = CD_NEWN(&w->arena, cd_serving_answer, w->n);
    cdmpp_err *why = CD_NEWN(&w->arena, cdmpp_err, w->n);
    if (!v || !a || !why) return CD_FAIL(err, ENOMEM, "%zu answers", w->n);
    bool first = true;
    size_t waits = 0;
    cd_serving_bad bad = {0};
    cd_replay_llm_novel of = {{0}, 0};
    for (size_t i = 0; i < w->n; i++) {
        cd_serving_rows *p = w->rows + (first ? 0 : 2);
        if (*r->stop) return CD_FAIL(err, EINTERRUPTED, "after %zu of %zu configurations", i, w->n);
        const cdmpp_status st = cd_serving_answer_of(&w->s, &w->c[i], &a[i], p, p + 1, &why[i]);
        if (o->runs && st == CDMPP_ESCHEMA && w->n > 1) {
            (void)cd_err_at(&why[i], st, o->runs, w->runs.line[i]);
            cd_serving_bad_add(&bad, &why[i]);
        }
        if (st && (w->n == 1 || !of_one(o, st)))
            return cd_serving_bad_tell(&bad, o->runs, on_bad, &r->log), *err = why[i], st;
        v[i] = (cd_serving_said){&w->m,
                                 &w->c[i],
                                 cd_serving_session_about(&w->s, w->c[i].gpu),
                                 st ? NULL : &a[i],
                                 !st && first ? p : NULL,
                                 !st && first ? p + 1 : NULL,
                                 &why[i]};
        if (st) r->exit_code = 3;
        else replay_llm_novel_add(&of, p, 2), first = false, waits += p->waits;
    }
    cd_serving_bad_tell(&bad, o->runs, on_bad, &r->log);
    cd_replay_llm_say_done(v, w->n, &r->log);
    say_waits(waits, w->n, &r->log);
    replay_llm_novel_say(o, &of, w->n, &r->log);
    cd_serving_session_stand_ins(&w->s, say_stand_in, &r->log);
    return print(o, r, v, w->n, err);
}

/* --prices, and whose names they are. */
typedef struct {
    cd_csv_table t;
    const cd_device_table *devices;
} price_list;

/* The price of an hour by any name of the GPU; NaN: it has none. */
static double price_of(void *ctx, const char *gpu) {
    const price_list *p = ctx;
    const cd_csv_table *t = &p->t;
    double v;
    for (size_t i = 0; i < t->n_row; i++)
        if (cd_device_table_same(p->devices, t->cell[i][cd_csv_table_find(t, "device")], gpu) &&
            !cd_csv_table_number(t, i, cd_csv_table_find(t, "price_per_hour"), &v, NULL))
            return v;
    return (double)NAN;
}

/* A GPU has one price, under whatever name. */
static cdmpp_status read_prices(const char *path, price_list *p, cdmpp_err *err) {
    cd_csv_table *t = &p->t;
    size_t col, device;
    double v;
    CD_TRY(cd_csv_table_read(t, path, err));
    CD_TRY(cd_csv_table_need(t, "device", &device, err));
    CD_TRY(cd_csv_table_need(t, "price_per_hour", &col, err));
    for (size_t i = 0; i < t->n_row; i++)
        for (size_t k = 0; k < i; k++)
            if (cd_device_table_same(p->devices, t->cell[i][device], t->cell[k][device]))
                return cd_err_at(
                    err, CD_FAIL(err, EINVALID, "a second price of %.60s", t->cell[i][device]),
                    path, t->line[i]);
    for (size_t i = 0; i < t->n_row; i++) {
        CD_TRY(cd_csv_table_number(t, i, col, &v, err));
        if (!(v >= 0))
            return cd_err_at(err,
                             cd_err_key(err,
                                        CD_FAIL(err, ERANGE, "expected 0 or more, found %g", v),
                                        "price_per_hour"),
                             path, t->line[i]);
    }
    return CDMPP_OK;
}

/* Configurations of one GPU follow each other and have one text. */
static void warn_no_price(const char *path, price_list *t, const work *w, cd_log *log) {
    for (size_t i = 0; i < w->n; i++)
        if ((!i || w->c[i].gpu != w->c[i - 1].gpu) && isnan(price_of(t, w->c[i].gpu)))
            cd_log_put(log, CD_LOG_WARNING, "%s has no price of %s", path, w->c[i].gpu);
}

static cdmpp_status print_sweep(const cd_replay_llm *o, cd_command_run *r,
                                const cd_serving_sweep *s, cdmpp_err *err) {
    cd_buf b = {0};
    if (r->said.json) cd_serving_sweep_json(s, true, &b);
    else cd_serving_sweep_text(s, &b);
    return result(o, r, "cdmpp.serving_sweep", &b, err);
}

static void on_step(void *ctx, size_t taken) { cd_progress_step(ctx, taken); }

/* One that was stopped prints what it has, and is still an error. A picture does not say that it is
 * of a part. */
static cdmpp_status run_sweep(const cd_replay_llm *o, cd_command_run *r, work *w,
                              const cd_serving_sweep_options *ask, cdmpp_err *err) {
    cd_serving_sweep s = {0};
    cdmpp_status st = cd_serving_sweep_run(&w->s, w->c, w->n, ask, &s, err);
    if (ask->step) cd_progress_end(ask->step_ctx);
    cd_serving_session_stand_ins(&w->s, say_stand_in, &r->log);
    if (st == CDMPP_EINTERRUPTED && s.n) {
        cdmpp_err why = {0};
        const cdmpp_status printed = print_sweep(o, r, &s, &why);
        if (printed) st = printed, *err = why;
    }
    if (!st && o->picture) st = cd_serving_sweep_picture(&s, o->picture, err);
    if (!st) st = print_sweep(o, r, &s, err);
    cd_serving_sweep_free(&s);
    return st;
}

static cdmpp_status sweep(const cd_replay_llm *o, cd_command_run *r, work *w, cdmpp_err *err) {
    double ttft = 0, tpot = 0;
    price_list prices = {.devices = w->devices};
    cd_threads *threads = NULL;
    CD_TRY(cd_option_number("ttft", o->ttft, 1e-3, 1e9, &ttft, err));
    CD_TRY(cd_option_number("tpot", o->tpot, 1e-3, 1e9, &tpot, err));
    cdmpp_status st = o->prices ? read_prices(o->prices, &prices, err) : CDMPP_OK;
    if (!st && o->prices) warn_no_price(o->prices, &prices, w, &r->log);
    if (!st) st = cd_threads_new(o->jobs, &threads, err);
    cd_progress shown;
    const bool watched = isatty(STDERR_FILENO);
    const cd_serving_sweep_options ask = {ttft * 1e-3,
                                          tpot * 1e-3,
                                          o->prices ? price_of : NULL,
                                          &prices,
                                          watched ? on_step : NULL,
                                          &shown,
                                          threads,
                                          r->stop};
    if (watched) cd_progress_begin(&shown, &r->log, "sweep", "configurations", w->n);
    if (!st) st = run_sweep(o, r, w, &ask, err);
    cd_threads_free(threads);
    cd_csv_table_free(&prices.t);
    return st;
}

/* In a sweep a list that is not given is of what is usual. */
static cd_serving_lists lists_of(const cd_replay_llm *o, const work *w) {
    cd_serving_lists l = o->list;
    if (!o->sweep) return l;
    if (!l.tp) l.tp = "1,2,4,8";
    if (!l.concurrency && !o->rate && !w->given.arrive)
        l.concurrency = "1,2,4,8,16,32,64,128,256,512,1024";
    return l;
}

/* Lists of one value are what rows leave empty; a longer one would have no place. */
static cdmpp_status read_runs(const cd_replay_llm *o, cd_command_run *r,
                              const cd_serving_config *usual, work *w, cdmpp_err *err) {
    cd_serving_lists l = o->list;
    cd_serving_config one;
    if (!l.gpu) l.gpu = "none"; /* rows have it */
    CD_TRY(cd_serving_combine(&w->arena, usual, &l, &w->c, &w->n, err));
    if (w->n != 1)
        return CD_FAIL(err, EUSAGE,
                       "--runs: expected one value of each of --gpu, --tp, --pp, --dp, --ep and "
                       "--concurrency, found %zu combinations",
                       w->n);
    one = w->c[0];
    if (!o->list.gpu) one.gpu = "";
    CD_TRY(cd_serving_runs_read(o->runs, &one, on_bad, &r->log, &w->runs, err));
    w->c = w->runs.v, w->n = w->runs.n;
    if (w->runs.n_bad) r->exit_code = 3;
    return CDMPP_OK;
}

/* The load is what the file says. */
static cdmpp_status read_load(const cd_replay_llm *o, cd_command_run *r, cd_serving_config *usual,
                              work *w, cdmpp_err *err) {
    cd_serving_requests *g = &w->given;
    CD_TRY(cd_serving_requests_read(o->load, on_bad, &r->log, g, err));
    if (g->n_bad) r->exit_code = 3;
    if (g->arrive && (o->rate || o->list.concurrency))
        return CD_FAIL(
            err, EUSAGE,
            "%s says when requests come (at_s): --rate and --concurrency are other loads", o->load);
    if (g->arrive && usual->requests > (double)g->n)
        return CD_FAIL(err, EUSAGE, "--requests: %s has %zu requests", o->load, g->n);
    usual->given = g, usual->isl = g->isl, usual->osl = g->osl;
    if (!(usual->requests > 0)) usual->requests = (double)g->n;
    if (g->arrive) usual->concurrency = 0;
    return CDMPP_OK;
}

/* Steps of one configuration. */
static cdmpp_status stream(const cd_replay_llm *o, cd_command_run *r, work *w, cdmpp_err *err) {
    cd_serving_layout l;
    size_t asked, bad;
    cd_step_requests s = {.m = &w->m,
                          .l = &l,
                          .gpu = w->c->gpu,
                          .stack = w->c->stack,
                          .kernels = w->c->kernels,
                          .about = cd_serving_session_about(&w->s, w->c->gpu),
                          .shared = o->shared,
                          .in = STDIN_FILENO,
                          .out = STDOUT_FILENO,
                          .stop = r->stop};
    if (w->n != 1)
        return CD_FAIL(err, EUSAGE,
                       "--stream: expected one value of each of --gpu, --tp, --pp, --dp and --ep, "
                       "found %zu combinations",
                       w->n);
    CD_TRY(cd_serving_engine_of(&w->s, w->c, &s.e, &l, err));
    cd_serving_session_stand_ins(&w->s, say_stand_in, &r->log);
    const cdmpp_status st = cd_step_requests_run(&s, &asked, &bad, err);
    cd_log_put(&r->log, CD_LOG_DEBUG, "%zu requests, %zu of them with an error", asked, bad);
    if (bad) r->exit_code = 3;
    return st;
}

static cdmpp_status run(const cd_replay_llm *o, cd_command_run *r, work *w, cdmpp_err *err) {
    cd_serving_config usual;
    size_t asked, fresh;
    CD_TRY(cd_replay_llm_config(o, &usual, err));
    if (o->load) CD_TRY(read_load(o, r, &usual, w, err));
    const cd_serving_lists l = lists_of(o, w);
    CD_TRY(cd_serving_stack_name(&w->arena, usual.stack, &usual.stack, err));
    if (o->runs) CD_TRY(read_runs(o, r, &usual, w, err));
    else CD_TRY(cd_serving_combine(&w->arena, &usual, &l, &w->c, &w->n, err));
    CD_TRY(open_files(o, r, w, err));
    CD_TRY(o->stream  ? stream(o, r, w, err)
           : o->sweep ? sweep(o, r, w, err)
                      : answer_all(o, r, w, err));
    cd_serving_session_counts(&w->s, &asked, &fresh);
    cd_log_put(&r->log, CD_LOG_DEBUG, "%zu questions about operators, %zu of them new", asked,
               fresh);
    return CDMPP_OK;
}

cdmpp_status cd_replay_llm_run(const cd_replay_llm *o, cd_command_run *r, cdmpp_err *err) {
    work w = {0};
    const cdmpp_status st = run(o, r, &w, err);
    close_files(&w);
    return st;
}
