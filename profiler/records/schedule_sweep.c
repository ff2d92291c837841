#include "profiler/records/schedule_sweep.h"

#include <math.h>
#include <string.h>

enum { BATCH = 32 };

const char *cd_schedule_sweep_factor(int factor) {
    static const char *const name[CD_VARY_COUNT] = {"tile", "reorder", "compute_at", "fuse", "unroll", "vectorize", "parallel", "threads", "cache"};
    return factor == CD_VARY_BASE ? "base" : name[factor];
}

/* ---- measuring ---- */

typedef struct {
    cd_recmaker *maker;
    int threads;
    cd_record_program job[BATCH];
    cd_measure_item item[BATCH];
    cd_buf line;
} batch;

static cdmpp_status make(batch *b, size_t k, const cd_variant *v, cdmpp_err *err) {
    cd_record r = v->record;
    if (v->threads && r.has_hardware) r.hardware.num_cores = v->threads; /* another program: its loops are cut up otherwise */
    cd_buf_clear(&b->line);
    CD_TRY(cd_record_write(&b->line, &r, err));
    const cd_recline l = {.path = cd_schedule_sweep_factor(v->factor), .text = b->line.p, .len = b->line.n - 1};
    CD_TRY(cd_record_program_make(b->maker, &l, &b->job[k], err));
    CD_TRY(cd_record_program_code(b->maker, &b->job[k], err));
    b->item[k] = (cd_measure_item){.code = &b->job[k].code, .target = b->job[k].target, .threads = v->threads ? v->threads : b->threads};
    if (b->job[k].why.code) cd_measure_result_fail(&b->item[k].out, 1, &b->job[k].why);
    return CDMPP_OK;
}

/* Those of rows [0, n) that are cold or those that are not. */
static cdmpp_status some(batch *b, cd_measure *m, bool cold, cd_schedule_sweep_row *row, size_t n, const volatile sig_atomic_t *stop, cdmpp_err *err) {
    size_t at[BATCH], made = 0;
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; i < n && !st; i++) {
        if (row[i].v->cold != cold) continue;
        at[made] = i;
        st = make(b, made++, row[i].v, err);
    }
    if (!st && made) st = cd_measure_build(m, b->item, made, err);
    for (size_t i = 0; i < made && !st; i++) {
        if (stop && *stop) st = CD_FAIL(err, EINTERRUPTED, "while variants were measured");
        if (!st && !b->item[i].out.error_no) st = cd_measure_run(m, &b->item[i], err);
        row[at[i]].out = b->item[i].out;
    }
    for (size_t i = 0; i < made; i++) cd_record_program_free(&b->job[i]);
    return st;
}

static void ratios(cd_schedule_sweep_row *row, size_t n) {
    const double base = n && !row[0].out.error_no ? row[0].out.time.median_s : 0;
    for (size_t i = 0; i < n; i++) row[i].ratio = base > 0 && !row[i].out.error_no ? row[i].out.time.median_s / base : 0;
}

cdmpp_status cd_schedule_sweep_run(cd_recmaker *maker, const cd_variant *v, size_t n, int threads, cd_measure *warm, cd_measure *cold,
                          const volatile sig_atomic_t *stop, cd_schedule_sweep_row *row, cdmpp_err *err) {
    batch *b = cd_mem_zalloc(1, sizeof *b);
    if (!b) return CD_FAIL(err, ENOMEM, "variants");
    b->maker = maker;
    b->threads = threads;
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; i < n; i++) row[i] = (cd_schedule_sweep_row){.v = &v[i]};
    for (size_t i = 0; i < n && !st; i += BATCH) {
        const size_t m = n - i < BATCH ? n - i : BATCH;
        st = some(b, warm, false, row + i, m, stop, err);
        if (!st && cold) st = some(b, cold, true, row + i, m, stop, err);
    }
    ratios(row, n);
    cd_buf_free(&b->line);
    cd_mem_free(b);
    return st;
}

/* ---- telling ---- */

static cdmpp_status done(const cd_buf *b, cdmpp_err *err) { return b->oom ? CD_FAIL(err, ENOMEM, "report") : CDMPP_OK; }

cdmpp_status cd_schedule_sweep_csv(cd_buf *b, const cd_schedule_sweep_row *row, size_t n, cdmpp_err *err) {
    cd_buf_puts(b, "factor,value,median_s,ci,ratio,error_no\n");
    for (size_t i = 0; i < n; i++) {
        const cd_schedule_sweep_row *r = &row[i];
        cd_buf_putf(b, "%s,%s,", cd_schedule_sweep_factor(r->v->factor), r->v->value);
        if (r->out.error_no) cd_buf_putf(b, ",,,%d\n", r->out.error_no);
        else cd_buf_putf(b, "%.9g,%.4g,%.6g,0\n", r->out.time.median_s, r->out.time.ci, r->ratio);
    }
    return done(b, err);
}

cdmpp_status cd_schedule_sweep_json(cd_buf *b, const char *key, const cd_schedule_sweep_row *row, size_t n, cdmpp_err *err) {
    cd_buf_puts(b, "{\"workload_key\":");
    cd_buf_put_json_str(b, key, strlen(key));
    cd_buf_puts(b, ",\"variants\":[");
    for (size_t i = 0; i < n; i++) {
        const cd_schedule_sweep_row *r = &row[i];
        cd_buf_putf(b, "%s{\"factor\":\"%s\",\"value\":\"%s\",\"error_no\":%d", i ? "," : "", cd_schedule_sweep_factor(r->v->factor), r->v->value, r->out.error_no);
        if (!r->out.error_no) cd_buf_putf(b, ",\"median_s\":%.9g,\"ci\":%.4g,\"ratio\":%.6g", r->out.time.median_s, r->out.time.ci, r->ratio);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]}");
    return done(b, err);
}

cdmpp_status cd_schedule_sweep_text(cd_buf *b, const cd_schedule_sweep_row *row, size_t n, cdmpp_err *err) {
    if (n && !row[0].out.error_no) cd_buf_putf(b, "base %.4f ms\n", row[0].out.time.median_s * 1e3);
    cd_buf_puts(b, "factor      variants  failed  best           worst\n");
    for (int f = 0; f < CD_VARY_COUNT; f++) {
        const cd_schedule_sweep_row *best = NULL, *worst = NULL;
        size_t all = 0, failed = 0;
        for (size_t i = 0; i < n; i++) {
            if (row[i].v->factor != f) continue;
            all++;
            failed += row[i].out.error_no != 0;
            if (row[i].ratio > 0 && (!best || row[i].ratio < best->ratio)) best = &row[i];
            if (row[i].ratio > 0 && (!worst || row[i].ratio > worst->ratio)) worst = &row[i];
        }
        if (!all) continue;
        cd_buf_putf(b, "%-10s  %8zu  %6zu", cd_schedule_sweep_factor(f), all, failed);
        if (best) cd_buf_putf(b, "  %.3f %s   %.3f %s", best->ratio, best->v->value, worst->ratio, worst->v->value);
        cd_buf_puts(b, "\n");
    }
    return done(b, err);
}

/* ---- the plot ---- */

enum { ROW = 16, LEFT = 220, WIDE = 420, TOP = 40, DECADES = 2 };

/* Ratio 1 in the middle, DECADES powers of ten from edge to edge. */
static double place(double ratio) {
    const double x = LEFT + WIDE / 2.0 + log10(ratio) * WIDE / DECADES;
    return x < LEFT ? LEFT : x > LEFT + WIDE ? LEFT + WIDE : x;
}

/* Values hold '<' and '>'. */
static void put_text(cd_buf *b, const char *s) {
    for (; *s; s++) {
        if (*s == '<') cd_buf_puts(b, "&lt;");
        else if (*s == '>') cd_buf_puts(b, "&gt;");
        else if (*s == '&') cd_buf_puts(b, "&amp;");
        else cd_buf_put(b, s, 1);
    }
}

static void put_bar(cd_buf *b, const cd_schedule_sweep_row *r, int y) {
    const double x = r->ratio > 0 ? place(r->ratio) : place(1), one = place(1);
    cd_buf_putf(b, "<text x='%d' y='%d' text-anchor='end'>%s ", LEFT - 6, y + 11, cd_schedule_sweep_factor(r->v->factor));
    put_text(b, r->v->value);
    cd_buf_puts(b, "</text>");
    if (r->ratio > 0)
        cd_buf_putf(b, "<rect x='%.1f' y='%d' width='%.1f' height='%d' fill='%s'/><text x='%d' y='%d'>%.2f</text>\n", x < one ? x : one, y + 2,
                    fabs(x - one) + 1, ROW - 4, r->ratio < 1 ? "#2a7" : "#c63", LEFT + WIDE + 6, y + 11, r->ratio);
    else cd_buf_putf(b, "<text x='%d' y='%d'>error %d</text>\n", LEFT + WIDE + 6, y + 11, r->out.error_no);
}

cdmpp_status cd_schedule_sweep_svg(cd_buf *b, const cd_schedule_sweep_row *row, size_t n, cdmpp_err *err) {
    const int height = TOP + (int)n * ROW + 10;
    cd_buf_putf(b, "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' font-family='sans-serif' font-size='11'>\n", LEFT + WIDE + 80, height);
    cd_buf_puts(b, "<rect width='100%' height='100%' fill='white'/>");
    cd_buf_putf(b, "<text x='%d' y='16' text-anchor='middle'>time over the base's, log scale</text>\n", LEFT + WIDE / 2);
    static const double tick[] = {0.1, 0.2, 0.5, 1, 2, 5, 10};
    for (size_t k = 0; k < sizeof tick / sizeof *tick; k++)
        cd_buf_putf(b, "<line x1='%.1f' x2='%.1f' y1='%d' y2='%d' stroke='#ccc'/><text x='%.1f' y='%d' text-anchor='middle'>%g</text>\n", place(tick[k]),
                    place(tick[k]), TOP, height - 8, place(tick[k]), TOP - 4, tick[k]);
    for (size_t i = 1; i < n; i++) put_bar(b, &row[i], TOP + (int)(i - 1) * ROW);
    cd_buf_puts(b, "</svg>\n");
    return done(b, err);
}
