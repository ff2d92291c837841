/* The matrix of one part of a member's programs: a rank has the rows of its own run of them, and
 * bins that are cut at the rows of all. */
#include "learner/train/train_internal.h"

#include <string.h>

/* Of a view on disk: bytes of a page of the matrix, and rows that its bins are cut at: XGBoost
 * needs 0.3 MB a column to cut 16,384 rows into 256 bins, ten times as much for a million, and an
 * error of a bin's border is then below 0.4 % of the rows. */
/* CUT_COLUMNS: of all rows that are cut together */
enum { PAGE = 16 << 20, CUT_ROWS = 16384, CUT_COLUMNS = 8 };

void cd_boost_side_free(cd_boost_side *s) {
    cd_xgb_data_free(s->data);
    cd_objective_end(&s->part);
    cd_arena_free(&s->arena);
}

static size_t width_of(const cd_booster *b) { return cd_member_width(b->out->kind, b->out->facts); }
static size_t n_row_of(const cd_program_view *v, size_t i) {
    return (size_t)(v->row_ptr[i + 1] - v->row_ptr[i]);
}
static bool by_pages(const cd_boost_side *s) {
    return cd_spool_on_disk(s->b->v->spool) && s == &s->b->train;
}

static cdmpp_status side_memory(cd_boost_side *s, cdmpp_err *err) {
    const cd_booster *b = s->b;
    const size_t n = s->set->n;
    for (size_t i = 0; i < n; i++)
        s->height += cd_tree_input_height(b->form, n_row_of(b->v, s->set->program[i]));
    const size_t h = s->height;
    s->start = CD_NEWN(&s->arena, size_t, n + 1);
    s->offset = CD_NEWN(&s->arena, double, h);
    s->level = CD_NEWN(&s->arena, double, n);
    s->score = CD_NEWN(&s->arena, float, h);
    s->grad = CD_NEWN(&s->arena, float, h);
    s->hess = CD_NEWN(&s->arena, float, h);
    return s->arena.oom ? CD_FAIL(err, ENOMEM, "%zu matrix rows", h) : CDMPP_OK;
}

/* ---- rows ---- */
/* Matrix rows of programs beg .. end of a part. */
static void fill_rows(const cd_boost_side *s, size_t beg, size_t end, float *x) {
    const size_t width = width_of(s->b);
    for (size_t i = beg; i < end; i++) {
        const size_t p = s->set->program[i];
        /* around a program of a draw the kernel maps up to some MB */
        if ((i - beg) % 16 == 0) cd_spool_rest(s->b->v->spool);
        cd_member_fill(s->b->out, s->b->v, p, x + (s->start[i] - s->start[beg]) * width);
    }
}

static size_t most_rows(const cd_boost_side *s) {
    size_t most = 1;
    for (size_t i = 0; i < s->set->n; i++)
        if (s->start[i + 1] - s->start[i] > most) most = s->start[i + 1] - s->start[i];
    return most;
}

/* cd_xgb_pages.next: as many whole programs of its own as a page holds. */
static size_t next_page(void *ctx, const float **x) {
    cd_boost_side *s = ctx;
    const size_t beg = x ? s->page_at : s->first;
    size_t end = beg;
    if (x) {
        while (end < s->last && s->start[end + 1] - s->start[beg] <= s->page_rows) end++;
        fill_rows(s, beg, end, s->page);
        *x = s->page;
    }
    s->page_at = end;
    return s->start[end] - s->start[beg];
}

/* ---- bins ---- */
/* Bins of some rows: of every k-th program of all. */
static cdmpp_status cut_some_rows(const cd_boost_side *s, cd_xgb_data **bins, cdmpp_err *err) {
    const cd_booster *b = s->b;
    const size_t width = width_of(b), step = s->height / CUT_ROWS + 1;
    size_t n = 0;
    for (size_t i = 0; i < s->set->n; i += step) n += s->start[i + 1] - s->start[i];
    float *x = cd_mem_zalloc(n, width * sizeof *x), *to = x;
    if (!x) return CD_FAIL(err, ENOMEM, "matrix of %zu x %zu values", n, width);
    for (size_t i = 0; i < s->set->n; i += step) {
        fill_rows(s, i, i + 1, to);
        to += (s->start[i + 1] - s->start[i]) * width;
    }
    const cdmpp_status st =
        cd_xgb_data_binned(x, n, width, b->run->nthread, b->c->train_max_bin, NULL, bins, err);
    cd_mem_free(x);
    return st;
}

static size_t piece_end(size_t beg, size_t end) {
    return end - beg < CUT_COLUMNS ? end : beg + CUT_COLUMNS;
}

/* Columns beg .. end of all rows, as one matrix for each CUT_COLUMNS of them. */
static void fill_columns(const cd_boost_side *s, size_t beg, size_t end, float *row, float *x) {
    const size_t width = width_of(s->b);
    for (size_t i = 0; i < s->set->n; i++) {
        const size_t n = s->start[i + 1] - s->start[i];
        fill_rows(s, i, i + 1, row);
        for (size_t j = beg; j < end; j = piece_end(j, end)) {
            const size_t w = piece_end(j, end) - j;
            float *to = x + s->height * (j - beg) + s->start[i] * w;
            for (size_t r = 0; r < n; r++) memcpy(to + r * w, row + r * width + j, w * sizeof *to);
        }
    }
}

/* This rank's run of columns, cut at all rows. XGBoost needs MBs a column for that, so few at a
 * time. */
static cdmpp_status cut_own_columns(const cd_boost_side *s, size_t beg, size_t end, float *cuts,
                                    cdmpp_err *err) {
    const cd_booster *b = s->b;
    float *x = cd_mem_zalloc(s->height, (end - beg) * sizeof *x),
          *row = cd_mem_zalloc(most_rows(s), width_of(b) * sizeof *row);
    cdmpp_status st =
        x && row ? CDMPP_OK
                 : CD_FAIL(err, ENOMEM, "matrix of %zu x %zu values", s->height, end - beg);
    if (!st) fill_columns(s, beg, end, row, x);
    cd_mem_free(row);
    for (size_t j = beg; !st && j < end; j = piece_end(j, end))
        st = cd_xgb_cuts(x + s->height * (j - beg), s->height, piece_end(j, end) - j,
                         b->run->nthread, b->c->train_max_bin,
                         cuts + (j - beg) * ((size_t)b->c->train_max_bin + 1), err);
    cd_mem_free(x);
    return st;
}

/* Bins of all rows, a run of columns by each rank, so that none has all values. */
static cdmpp_status cut_columns(const cd_boost_side *s, cd_xgb_data **bins, cdmpp_err *err) {
    const cd_booster *b = s->b;
    const size_t width = width_of(b), rows = (size_t)b->c->train_max_bin + 1;
    size_t beg, end;
    cd_distributed_trees_own(b->run->ranks, width, &beg, &end);
    float *cuts = cd_mem_zalloc(width, rows * sizeof *cuts);
    cdmpp_status st = cuts ? CDMPP_OK : CD_FAIL(err, ENOMEM, "cuts of %zu columns", width);
    if (!st && beg < end) st = cut_own_columns(s, beg, end, cuts + beg * rows, err);
    if (!st)
        st = cd_distributed_trees_share_bits(b->run->ranks, cuts, width * rows, beg * rows,
                                             end * rows, err);
    if (!st) st = cd_xgb_data_of_cuts(cuts, width, b->run->nthread, b->c->train_max_bin, bins, err);
    cd_mem_free(cuts);
    return st;
}

/* ---- XGBoost's matrix ---- */
/* A page has room for the program with the most rows. */
static cdmpp_status page_by_page(cd_boost_side *s, const cd_xgb_data *bins, cdmpp_err *err) {
    const cd_booster *b = s->b;
    const size_t width = width_of(b), most = most_rows(s);
    s->page_rows = PAGE / (width * sizeof *s->page);
    if (most > s->page_rows) s->page_rows = most;
    s->page = CD_NEWN(&s->arena, float, s->page_rows *width);
    if (!s->page) return CD_FAIL(err, ENOMEM, "page of %zu x %zu values", s->page_rows, width);
    const cd_xgb_pages pages = {next_page, s, s->end - s->beg, width};
    return cd_xgb_data_paged(&pages, b->run->nthread, b->c->train_max_bin, bins, &s->data, err);
}

/* The float matrix dies as soon as XGBoost has it. */
static cdmpp_status at_once(cd_boost_side *s, const cd_xgb_data *bins, cdmpp_err *err) {
    const cd_booster *b = s->b;
    const size_t width = width_of(b), n = s->end - s->beg;
    cdmpp_status st;
    float *x = cd_mem_zalloc(n, width * sizeof *x);
    if (!x) return CD_FAIL(err, ENOMEM, "matrix of %zu x %zu values", n, width);
    fill_rows(s, s->first, s->last, x);
    if (b->c->train_together && s == &b->train)
        st = cd_xgb_data_binned(x, n, width, b->run->nthread, b->c->train_max_bin, bins, &s->data,
                                err);
    else st = cd_xgb_data_new(x, n, width, b->run->nthread, &s->data, err);
    cd_mem_free(x);
    return st;
}

cdmpp_status cd_boost_side_new(cd_boost_side *s, const cd_boost_set *set, const cd_booster *b,
                               cdmpp_err *err) {
    const cd_process_group *ranks = b->run->ranks;
    cd_xgb_data *bins = NULL;
    s->set = set;
    s->b = b;
    if (ranks && set->n < ranks->n_rank)
        return CD_FAIL(err, ERANGE, "%zu ranks for %zu programs of a part", ranks->n_rank, set->n);
    CD_TRY(side_memory(s, err));
    for (size_t i = 0; i < set->n; i++)
        s->start[i + 1] =
            s->start[i] + cd_tree_input_height(b->form, n_row_of(b->v, set->program[i]));
    cd_distributed_trees_own(ranks, set->n, &s->first, &s->last);
    s->beg = s->start[s->first];
    s->end = s->start[s->last];
    if (by_pages(s)) CD_TRY(cut_some_rows(s, &bins, err));
    else if (ranks && ranks->n_rank > 1 && s == &b->train) CD_TRY(cut_columns(s, &bins, err));
    const cdmpp_status st = by_pages(s) ? page_by_page(s, bins, err) : at_once(s, bins, err);
    cd_xgb_data_free(bins);
    return st;
}
