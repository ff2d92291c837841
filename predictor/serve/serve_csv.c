/* serve_csv -- a line of names, then feature rows or schedules, as docs/reference/stream.md says.
 *
 *   id,<164 names>       a row a line; lines of one id, one after another, are one program
 *   id,task,steps        a schedule a line
 *
 * A program of rows is complete when another id, an empty line or the end comes; until then it is
 * not part of the batch. */
#include <math.h>
#include <string.h>

#include "predictor/serve/serve_internal.h"

enum {
    ID,
    DEVICE,
    TASK,
    TARGET,
    FLOP,
    STEPS,
    N_WORD,
    MOST = N_WORD + CD_N_COL,
    ROOM = CD_SCORER_ROWS + CD_MAX_ROWS
};
static const char *const word[N_WORD] = {"id", "device", "task", "target", "flop", "steps"};

typedef struct {
    cd_serve_state *s;
    int at[MOST]; /* of each field: a word, or N_WORD + feature column */
    size_t n_field;
    bool rows, has_id;
    cd_buf line;           /* the line, taken apart in place */
    float *row;            /* (ROOM, CD_N_COL): programs of the batch, then the open one */
    size_t n_row, first;   /* rows in use; where the open program's begin */
    bool open;             /* a program has begun; nothing of the batch knows it yet */
    cd_buf words;          /* its words, one after another */
    size_t n_word[N_WORD]; /* their lengths */
    long number;           /* of its first line */
    bool bad;              /* and why */
    cdmpp_err why;
} sheet;

/* ---- the first line ---- */
static int find(cd_str name) {
    for (int k = 0; k < N_WORD; k++)
        if (cd_str_is(name, word[k])) return k;
    for (int k = 0; k < CD_N_COL; k++)
        if (cd_str_is(name, cd_cols()[k].name)) return N_WORD + k;
    return -1;
}

static cdmpp_status split(sheet *t, cd_str line, cd_str *field, size_t *n, cdmpp_err *err) {
    cd_buf_clear(&t->line);
    cd_buf_put(&t->line, line.p, line.n);
    if (t->line.oom) return CD_FAIL(err, ENOMEM, "line of %zu bytes", line.n);
    return cd_csv_fields_split(t->line.p, t->line.n, field, MOST + 1, n, err);
}

/* The header decides what a line is: rows of features (all columns) or a schedule (steps and
 * task). */
static cdmpp_status read_head(sheet *t, cd_str line, cdmpp_err *err) {
    cd_str field[MOST + 1];
    bool have[MOST] = {false};
    size_t n_col = 0;
    CD_TRY(split(t, line, field, &t->n_field, err));
    if (t->n_field > MOST)
        return CD_FAIL(err, ERANGE, "expected at most %d columns, found more", MOST);
    for (size_t i = 0; i < t->n_field; i++) {
        const int k = t->at[i] = find(field[i]);
        const int shown = field[i].n < 40 ? (int)field[i].n : 40;
        if (k < 0)
            return CD_FAIL(err, ESCHEMA,
                           "column %zu: expected id, device, task, target, flop, steps or a "
                           "feature (docs/reference/columns.md), found '%.*s'",
                           i + 1, shown, field[i].p);
        if (have[k])
            return CD_FAIL(err, ESCHEMA, "column %zu: '%.*s' comes twice", i + 1, shown,
                           field[i].p);
        have[k] = true;
        n_col += k >= N_WORD;
    }
    t->rows = n_col > 0;
    t->has_id = have[ID];
    if (n_col && n_col != CD_N_COL)
        return CD_FAIL(err, ESCHEMA, "expected all %d features, found %zu", CD_N_COL, n_col);
    if (t->rows == have[STEPS])
        return CD_FAIL(err, ESCHEMA, "expected either the %d features or steps", CD_N_COL);
    if (have[STEPS] && !have[TASK]) return CD_FAIL(err, ESCHEMA, "steps need the column task");
    return t->rows ? cd_serve_check_rows(t->s, err) : CDMPP_OK;
}

/* ---- the open program ---- */
static cd_str said(const sheet *t, int k) {
    size_t at = 0;
    for (int i = 0; i < k; i++) at += t->n_word[i];
    return (cd_str){t->words.p + at, t->n_word[k]};
}

static void refuse(sheet *t, const cdmpp_err *why) {
    if (!t->bad) t->why = *why; /* the first reason counts */
    t->bad = true;
    t->n_row = t->first;
}

static cdmpp_status open_program(sheet *t, const cd_str *now, cdmpp_err *err) {
    cd_buf_clear(&t->words);
    for (int k = 0; k < N_WORD; k++) {
        t->n_word[k] = now[k].n;
        cd_buf_put(&t->words, now[k].p, now[k].n);
    }
    if (t->words.oom) return CD_FAIL(err, ENOMEM, "program");
    t->open = true;
    t->bad = false;
    t->first = t->n_row;
    t->number = cd_line_reader_number(t->s->in);
    return CDMPP_OK;
}

static cdmpp_status read_aim(sheet *t, const cd_str *w, cd_aim *aim, cdmpp_err *err) {
    const cd_str f = w[FLOP];
    double flop = 0;
    CD_TRY(cd_request_aim(&t->s->text, t->s->tasks, w[TASK], w[TARGET], aim, err));
    aim->device = w[DEVICE];
    if (!f.n) return CDMPP_OK;
    if (cd_json_number(f.p, f.p + f.n, &flop) != f.p + f.n || !(flop > 0 && flop <= 1e300))
        return CD_FAIL(err, ERANGE, "flop: expected a number above 0, found '%.*s'",
                       f.n < 20 ? (int)f.n : 20, f.p);
    aim->flop = flop;
    return CDMPP_OK;
}

/* It is complete and becomes part of the batch; its words move to the batch's memory. */
static cdmpp_status close_program(sheet *t, cdmpp_err *err) {
    cd_serve_state *s = t->s;
    const size_t i = s->n;
    cd_str w[N_WORD];
    cdmpp_err why = {0};
    if (!t->open) return CDMPP_OK;
    t->open = false;
    for (int k = 0; k < N_WORD; k++) {
        w[k] = said(t, k);
        if (w[k].n && !(w[k].p = cd_str_dup(&s->text, w[k])))
            return CD_FAIL(err, ENOMEM, "program");
    }
    s->id[i] = w[ID];
    s->line[i] = t->number;
    s->ask[i] = (cd_candidate){.form = t->rows ? CD_CANDIDATE_ROWS_F32 : CD_CANDIDATE_STEPS,
                               .aim = &s->aim[i],
                               .text = w[STEPS],
                               .row = t->row ? t->row + t->first * CD_N_COL : NULL,
                               .n_row = t->n_row - t->first};
    const cdmpp_status st = t->bad ? CDMPP_OK : read_aim(t, w, &s->aim[i], &why);
    if (st == CDMPP_ENOMEM) cd_err_from(err, &why);
    if (st == CDMPP_ENOMEM) return st;
    if (t->bad || st) cd_serve_refuse(s, i, t->bad ? &t->why : &why);
    t->first = t->n_row;
    CD_TRY(cd_serve_take(s, err));
    return t->n_row >= CD_SCORER_ROWS ? cd_serve_flush(s, err) : CDMPP_OK;
}

/* Rows of batches that are answered make room; nothing points at the others then. */
static void tidy(sheet *t) {
    if (t->s->n || !t->first) return;
    memmove(t->row, t->row + t->first * CD_N_COL,
            (t->n_row - t->first) * CD_N_COL * sizeof *t->row);
    t->n_row -= t->first;
    t->first = 0;
}

/* ---- lines ---- */
/* The numbers of a line as the next row. */
static cdmpp_status read_row(sheet *t, const cd_str *field, cdmpp_err *err) {
    float *x = t->row + t->n_row * CD_N_COL;
    for (size_t i = 0; i < t->n_field; i++) {
        double v;
        if (t->at[i] < N_WORD) continue;
        const char *name = cd_cols()[t->at[i] - N_WORD].name, *end = field[i].p + field[i].n;
        if (cd_json_number(field[i].p, end, &v) != end)
            return CD_FAIL(err, EPARSE, "%s: expected a number, found '%.*s'", name,
                           field[i].n < 20 ? (int)field[i].n : 20, field[i].p);
        if (fabs(v) > 3.4e38) return CD_FAIL(err, ENUMERIC, "%s is beyond float", name);
        x[t->at[i] - N_WORD] = (float)v;
    }
    t->n_row++;
    return CDMPP_OK;
}

/* Words that a program's later lines must repeat. */
static cdmpp_status check_words(const sheet *t, const cd_str *now, cdmpp_err *err) {
    for (int k = DEVICE; k < N_WORD; k++)
        if (!cd_str_eq(now[k], said(t, k)))
            return CD_FAIL(err, ESCHEMA, "%s differs within a program", word[k]);
    return CDMPP_OK;
}

static void add_row(sheet *t, const cd_str *field, const cd_str *now) {
    cdmpp_err why = {0};
    if (t->bad) return;
    tidy(t);
    cdmpp_status st = check_words(t, now, &why);
    if (!st && t->n_row - t->first >= CD_MAX_ROWS)
        st = CD_FAIL(&why, ERANGE, "expected at most %d rows, found more", CD_MAX_ROWS);
    if (!st) st = read_row(t, field, &why);
    if (st) refuse(t, &why);
}

/* A line that cannot be taken apart belongs to the open program, if there is one. */
static cdmpp_status bad_line(sheet *t, const cdmpp_err *why, cdmpp_err *err) {
    static const cd_str none[N_WORD];
    if (!t->open || !t->rows || !t->has_id) {
        CD_TRY(close_program(t, err));
        CD_TRY(open_program(t, none, err));
    }
    refuse(t, why);
    return CDMPP_OK;
}

/* A bad line refuses its own program only. */
static cdmpp_status add_line(sheet *t, cd_str line, cdmpp_err *err) {
    cd_str field[MOST + 1], now[N_WORD];
    size_t n = 0;
    cdmpp_err why = {0};
    cdmpp_status st = CDMPP_OK;
    if (line.p) st = split(t, line, field, &n, &why);
    else st = CD_FAIL(&why, ERANGE, "the line is longer than %zu bytes", t->s->o.max_bytes);
    if (st == CDMPP_ENOMEM) cd_err_from(err, &why);
    if (st == CDMPP_ENOMEM) return st;
    if (!st && n != t->n_field)
        st = CD_FAIL(&why, ESCHEMA, "expected %zu fields, found %zu", t->n_field, n);
    if (st) return bad_line(t, &why, err);
    for (int k = 0; k < N_WORD; k++) now[k] = (cd_str){"", 0};
    for (size_t i = 0; i < n; i++)
        if (t->at[i] < N_WORD) now[t->at[i]] = field[i];
    if (!t->open || !t->rows || !t->has_id || !cd_str_eq(now[ID], said(t, ID))) {
        CD_TRY(close_program(t, err));
        CD_TRY(open_program(t, now, err));
    }
    if (t->rows) add_row(t, field, now);
    return CDMPP_OK;
}

/* An error in the line of names ends the run, because no field would have a meaning; later errors
 * refuse one program. An empty line, like the end of the input, completes a program and a batch. */
static cdmpp_status sheet_run(sheet *t, cdmpp_err *err) {
    cd_str line;
    bool more = true;
    CD_TRY(cd_serve_line(t->s, true, &line, &more, err));
    if (!more) return CDMPP_OK;
    if (!line.p)
        return CD_FAIL(err, ERANGE, "the line is longer than %zu bytes", t->s->o.max_bytes);
    CD_TRY(cd_err_at(err, read_head(t, line, err), "-", 1));
    if (t->rows && !(t->row = cd_mem_zalloc((size_t)ROOM, CD_N_COL * sizeof *t->row)))
        return CD_FAIL(err, ENOMEM, "%d feature rows", ROOM);
    CD_TRY(
        cd_line_reader_send(t->s->o.out, CD_ANSWER_CSV_HEAD, sizeof CD_ANSWER_CSV_HEAD - 1, err));
    while (more) {
        CD_TRY(cd_serve_line(t->s, true, &line, &more, err));
        if (more && (!line.p || line.n)) {
            CD_TRY(add_line(t, line, err));
            continue;
        }
        CD_TRY(close_program(t, err));
        CD_TRY(cd_serve_flush(t->s, err));
    }
    return CDMPP_OK;
}

cdmpp_status cd_serve_csv(cd_serve_state *s, cdmpp_err *err) {
    sheet t = {.s = s};
    const cdmpp_status st = sheet_run(&t, err);
    cd_buf_free(&t.line);
    cd_buf_free(&t.words);
    cd_mem_free(t.row);
    return st;
}
