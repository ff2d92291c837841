/* Replays as text, JSON and CSV. OpBench's layouts are kept so that its own scripts draw our
 * figures. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "learner/report/report.h"
#include "predictor/tune/report/report.h"

/* Draws a replay: the ratio of best known to best found over trials, and beside it over simulated
 * seconds. */

enum { POINTS = 200, WIDE = 560, HIGH = 400, N_COLOUR = 8 };

/* Colours after Okabe and Ito. */
static const char STYLE[] =
    "<style>text{font:12px "
    "sans-serif;fill:#56616c}.lab{fill:#1a1f24}path{fill:none}.axis{stroke:#56616c}.grid{stroke:#"
    "dde2e7}"
    ".m{stroke-width:2}.q{stroke-width:1;stroke-dasharray:2 3}"
    ".c0{stroke:#0067ab}.c1{stroke:#c2570c}.c2{stroke:#00815d}.c3{stroke:#a9518a}.c4{stroke:#"
    "9a6a00}.c5{stroke:#3c8dbc}.c6{stroke:#1a1f24}.c7{stroke:#7b8794}"
    "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";

/* Where the axis of ratios begins: below most of the lower quartiles, at a multiple of 10 %. */
static double floor_of(const cd_tune_replay_curve *c, size_t n) {
    double low = 1;
    for (size_t t = 0; t < n; t++)
        for (size_t k = c[t].n / 10; k < c[t].n; k++) low = fmin(low, c[t].low[k]);
    return fmin(90, 10 * floor(10 * low));
}

static void percent(double v, char *buf, size_t n) { snprintf(buf, n, "%g", v + 0.0); } /* no -0 */

static void legend(const cd_plot *p, const cd_tune_replay_shown *s) {
    char cls[16];
    for (size_t t = 0; t < s->r->n_tuner; t++) {
        const double y = p->h - p->bottom - 14 * (double)(s->r->n_tuner - t),
                     x = p->w - p->right - 110;
        snprintf(cls, sizeof cls, "m c%zu", t % N_COLOUR);
        cd_buf_putf(
            p->out,
            "<path class=\"%s\" d=\"M%.1f %.1fh18\"/><text class=\"lab\" x=\"%.1f\" y=\"%.1f\">",
            cls, x, y - 4, x + 24, y);
        cd_escape_xml(p->out, cd_str_of(s->spec->tuner[t]->name));
        cd_buf_puts(p->out, "</text>\n");
    }
}

/* One panel. Curves come as ratios and are scaled to percent in place. A range of x of one point is
 * widened, so that the axis has a length. */
static void draw(cd_buf *b, const cd_tune_replay_shown *s, const cd_tune_replay_curve *c,
                 const char *id, const char *x_title) {
    const size_t n = s->r->n_tuner;
    double lo = HUGE_VAL, hi = 0;
    for (size_t t = 0; t < n; t++) {
        lo = fmin(lo, c[t].x[0]);
        hi = fmax(hi, c[t].x[c[t].n - 1]);
    }
    cd_plot p = {.out = b, .w = WIDE, .h = HIGH, .left = 52, .right = 14, .top = 14, .bottom = 42};
    p.x = (cd_axis){lo, hi > lo ? hi : 2 * lo, true};
    p.y = (cd_axis){floor_of(c, n), 100, false};
    cd_plot_begin(&p, id, x_title,
                  "Best known over best found seconds, median and quartiles over tasks and seeds");
    cd_plot_frame(&p, x_title, "best known / best found, %");
    cd_plot_ticks_x(&p, percent);
    cd_plot_ticks_y(&p, percent);
    for (size_t t = 0; t < n; t++) {
        char cls[16];
        double *const part[] = {c[t].low, c[t].median, c[t].high};
        for (int q = 0; q < 3; q++) {
            for (size_t k = 0; k < c[t].n; k++) part[q][k] *= 100;
            snprintf(cls, sizeof cls, "%c c%zu", q == 1 ? 'm' : 'q', t % N_COLOUR);
            cd_plot_line(&p, c[t].x, part[q], c[t].n, cls);
        }
    }
    legend(&p, s);
    cd_plot_end(&p);
}

/* k = 0: over trials; 1: over simulated seconds. */
static cdmpp_status panel(cd_buf *b, const cd_tune_replay_shown *s, int k, cdmpp_err *err) {
    const size_t n = s->r->n_tuner;
    cd_tune_replay_curve *c = cd_mem_zalloc(n + 1, sizeof *c);
    cdmpp_status st = c ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu curves", n);
    for (size_t t = 0; !st && t < n; t++) {
        if (k) st = cd_tune_replay_by_seconds(s->l, s->r, t, POINTS, &c[t], err);
        else st = cd_tune_replay_by_trials(s->l, s->r, t, s->spec->trials, &c[t], err);
    }
    if (!st) {
        cd_buf_putf(b, "<svg x=\"%d\" y=\"0\" width=\"%d\" height=\"%d\">\n", k * WIDE, WIDE, HIGH);
        draw(b, s, c, k ? "seconds" : "trials",
             k ? "simulated seconds, measuring and searching" : "trials");
        cd_buf_puts(b, "</svg>\n");
    }
    for (size_t t = 0; c && t < n; t++) cd_tune_replay_curve_free(&c[t]);
    cd_mem_free(c);
    return st;
}

cdmpp_status cd_tune_replay_svg(cd_buf *b, const cd_tune_replay_shown *s, cdmpp_err *err) {
    cd_buf_putf(b,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 "
                "0 %d %d\">\n",
                2 * WIDE, HIGH, 2 * WIDE, HIGH);
    cd_buf_puts(b, STYLE);
    CD_TRY(panel(b, s, 0, err));
    CD_TRY(panel(b, s, 1, err));
    cd_buf_puts(b, "</svg>\n");
    return CDMPP_OK;
}

enum { PATH = 512 };

static const char *name_of(const cd_tune_replay_shown *s, size_t tuner) {
    return s->spec->tuner[tuner]->name;
}

void cd_tune_replay_text(cd_buf *b, const cd_tune_replay_shown *s, const cd_tune_replay_row *row) {
    cd_buf_putf(b, "best known / best found over %zu tasks, mean of %zu seed%s each, in %%\n",
                row->n_task, row->n_seed, row->n_seed == 1 ? "" : "s");
    cd_buf_putf(b, "%-12s %7s %8s %8s %8s %8s %6s %11s %9s\n", "tuner", "trials", "lower", "median",
                "upper", "mean", "wins", "measuring s", "search s");
    for (size_t k = 0; k < s->r->n_tuner * s->n_at; k++) {
        const cd_tune_replay_row *w = &row[k];
        cd_buf_putf(b, "%-12s %7zu %8.2f %8.2f %8.2f %8.2f %6zu %11.1f %9.3f\n",
                    name_of(s, w->tuner), w->trials, 100 * w->low, 100 * w->median, 100 * w->high,
                    100 * w->mean, w->wins, w->measure_s, w->search_s);
    }
}

void cd_tune_replay_json(cd_buf *b, const cd_tune_replay_shown *s, const cd_tune_replay_row *row) {
    cd_buf_puts(b, "[");
    for (size_t k = 0; k < s->r->n_tuner * s->n_at; k++) {
        const cd_tune_replay_row *w = &row[k];
        cd_buf_putf(b,
                    "%s{\"tuner\":\"%s\",\"trials\":%zu,\"lower\":%.6f,\"median\":%.6f,\"upper\":%."
                    "6f,\"mean\":%.6f,\"wins\":%zu,",
                    k ? "," : "", name_of(s, w->tuner), w->trials, w->low, w->median, w->high,
                    w->mean, w->wins);
        cd_buf_putf(b, "\"tasks\":%zu,\"seeds\":%zu,\"measure_s\":%.6g,\"search_s\":%.6g}",
                    w->n_task, w->n_seed, w->measure_s, w->search_s);
    }
    cd_buf_puts(b, "]");
}

static void field(cd_buf *b, const char *text) { cd_csv_fields_put(b, text, strlen(text)); }

static void seconds(cd_buf *b, double s) {
    if (s < CD_TUNE_FAILED_S) cd_buf_putf(b, ",%.9g", s);
    else cd_buf_puts(b, ",");
}

static void csv_run(cd_buf *b, const cd_tune_replay_shown *s, size_t log, size_t tuner,
                    size_t seed) {
    const cd_tune_replay_log *l = &s->l->log[log];
    const cd_tune_replay_run *r = cd_tune_replay_at(s->r, log, tuner, seed);
    double best = CD_TUNE_FAILED_S, spent = 0;
    for (size_t k = 0; k < r->n; k++) {
        best = fmin(best, l->seconds[r->row[k]]);
        spent += l->cost_s[r->row[k]];
        field(b, l->key);
        cd_buf_putf(b, ",%s,%s,%llu,%zu", l->device, name_of(s, tuner),
                    (unsigned long long)(s->spec->seed + seed), k + 1);
        seconds(b, l->seconds[r->row[k]]);
        seconds(b, best);
        cd_buf_putf(b, ",%.6f,%.6g,%.6g\n", best < CD_TUNE_FAILED_S ? l->best_s / best : 0, spent,
                    r->search_s[k]);
    }
}

void cd_tune_replay_csv(cd_buf *b, const cd_tune_replay_shown *s) {
    cd_buf_puts(b, "task,device,tuner,seed,trial,seconds,best_s,ratio,measure_s,search_s\n");
    for (size_t i = 0; i < s->l->n; i++)
        for (size_t t = 0; t < s->r->n_tuner; t++)
            for (size_t k = 0; k < s->r->n_seed; k++) csv_run(b, s, i, t, k);
}

/* The best that any tuner had after so many trials. */
static double best_of_all(const cd_tune_replay_shown *s, size_t log, size_t trials) {
    double best = CD_TUNE_FAILED_S;
    for (size_t t = 0; t < s->r->n_tuner; t++)
        best = fmin(
            best, cd_tune_replay_best(&s->l->log[log], cd_tune_replay_at(s->r, log, t, 0), trials));
    return best;
}

/* best_all_cost is the cost of the trial that found the best program, not the smallest cost:
 * OpBench's own definition. */
void cd_tune_replay_op_costs(cd_buf *b, const cd_tune_replay_shown *s, size_t log, size_t tuner) {
    const cd_tune_replay_log *l = &s->l->log[log];
    const cd_tune_replay_run *r = cd_tune_replay_at(s->r, log, tuner, 0);
    double best = CD_TUNE_FAILED_S, best_all = CD_TUNE_FAILED_S;
    cd_buf_puts(
        b, "task_name,trial,costs (s),\"all_cost (s, incl. build)\",best_cost,best_all_cost,cmp\n");
    for (size_t k = 0; k < r->n; k++) {
        const double cost = l->seconds[r->row[k]], all = l->cost_s[r->row[k]];
        if (cost < best) best_all = all;
        best = fmin(best, cost);
        field(b, l->key);
        cd_buf_putf(b, ",%zu", k + 1);
        seconds(b, cost);
        seconds(b, all);
        seconds(b, best);
        seconds(b, best_all);
        if (best < CD_TUNE_FAILED_S) cd_buf_putf(b, ",%.6f\n", best_of_all(s, log, k + 1) / best);
        else cd_buf_puts(b, ",\n");
    }
}

/* Sum over the tasks of a device; CD_TUNE_FAILED_S: one has nothing yet. */
static double whole(const cd_tune_replay_shown *s, const char *device, size_t tuner,
                    size_t trials) {
    double sum = 0;
    for (size_t i = 0; i < s->l->n; i++) {
        if (strcmp(s->l->log[i].device, device) != 0) continue;
        for (size_t k = 0; k < s->r->n_seed; k++) {
            const double best =
                cd_tune_replay_best(&s->l->log[i], cd_tune_replay_at(s->r, i, tuner, k), trials);
            if (best >= CD_TUNE_FAILED_S) return CD_TUNE_FAILED_S;
            sum += best / (double)s->r->n_seed;
        }
    }
    return sum;
}

static bool first_of_device(const cd_tune_replay_logs *l, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (!strcmp(l->log[k].device, l->log[i].device)) return false;
    return true;
}

void cd_tune_replay_partial(cd_buf *b, const cd_tune_replay_shown *s) {
    cd_buf_puts(b, "modelname,tuner,0");
    for (size_t k = 0; k < s->n_at; k++) cd_buf_putf(b, ",%zu", s->at[k]);
    cd_buf_puts(b, "\n");
    for (size_t i = 0; i < s->l->n; i++)
        for (size_t t = 0; first_of_device(s->l, i) && t < s->r->n_tuner; t++) {
            cd_buf_putf(b, "%s,%s,", s->l->log[i].device, name_of(s, t));
            for (size_t k = 0; k < s->n_at; k++) {
                const double sum = whole(s, s->l->log[i].device, t, s->at[k]);
                seconds(b, sum < CD_TUNE_FAILED_S ? 1e3 * sum : sum);
            }
            cd_buf_puts(b, "\n");
        }
}

/* ---- a whole replay ---- */
void cd_tune_replay_print_json(cd_buf *b, const cd_tune_replay_set *s,
                               const cd_tune_replay_row *row) {
    const cd_tune_replay_shown shown = cd_tune_replay_show(s);
    cd_buf_putf(
        b, "{\"tasks\":%zu,\"left_out\":{\"seen\":%zu,\"few\":%zu,\"undefined\":%zu},\"split\":",
        s->logs.n, s->n_seen, s->n_small, s->n_undefined);
    if (s->held)
        cd_buf_put_json_str(b, cd_heldout_split(s->held), strlen(cd_heldout_split(s->held)));
    else cd_buf_puts(b, "null");
    cd_buf_putf(b, ",\"seeds\":%zu,\"batch\":%zu,\"trials\":%zu,\"rows\":", s->spec.n_seed,
                s->spec.batch, s->spec.trials);
    cd_tune_replay_json(b, &shown, row);
    cd_buf_puts(b, "}");
}

void cd_tune_replay_print_text(cd_buf *b, const cd_tune_replay_set *s,
                               const cd_tune_replay_row *row) {
    const cd_tune_replay_shown shown = cd_tune_replay_show(s);
    cd_buf_putf(b, "%zu of %zu tasks", s->logs.n, s->n_all);
    if (s->held)
        cd_buf_putf(b, "; left out: %zu that the model has seen (split %s)", s->n_seen,
                    cd_heldout_split(s->held));
    cd_buf_putf(b, "%s %zu with fewer programs than %zu\n",
                s->held ? "," : "; left out:", s->n_small, s->min);
    cd_tune_replay_text(b, &shown, row);
}

/* ---- files ---- */
static cdmpp_status put_file(const char *path, cd_buf *b, cdmpp_err *err) {
    cdmpp_status st;
    if (b->oom) st = CD_FAIL(err, ENOMEM, "text of %zu bytes", b->n);
    else st = cd_file_write(path, b->p, b->n, err);
    cd_buf_free(b);
    return st;
}

cdmpp_status cd_tune_replay_write_csv(const cd_tune_replay_set *s, const char *path,
                                      cdmpp_err *err) {
    const cd_tune_replay_shown shown = cd_tune_replay_show(s);
    cd_buf b = {0};
    cd_tune_replay_csv(&b, &shown);
    return put_file(path, &b, err);
}

cdmpp_status cd_tune_replay_write_svg(const cd_tune_replay_set *s, const char *path,
                                      cdmpp_err *err) {
    const cd_tune_replay_shown shown = cd_tune_replay_show(s);
    cd_buf b = {0};
    const cdmpp_status st = cd_tune_replay_svg(&b, &shown, err);
    if (!st) return put_file(path, &b, err);
    cd_buf_free(&b);
    return st;
}

/* The folder names are those that OpBench reads. Logs are numbered, because keys are no file
 * names. */
cdmpp_status cd_tune_replay_write_opbench(const cd_tune_replay_set *s, const char *folder,
                                          cdmpp_err *err) {
    const cd_tune_replay_shown w = cd_tune_replay_show(s);
    char path[PATH];
    cd_buf b = {0};
    CD_TRY(cd_file_make_folder(folder, err));
    snprintf(path, sizeof path, "%s/partial_res.csv", folder);
    cd_tune_replay_partial(&b, &w);
    CD_TRY(put_file(path, &b, err));
    snprintf(path, sizeof path, "%s/op_costs", folder);
    CD_TRY(cd_file_make_folder(path, err));
    for (size_t i = 0; i < w.l->n; i++)
        for (size_t t = 0; t < w.spec->n_tuner; t++) {
            const int n = snprintf(path, sizeof path, "%s/op_costs/replay_%s_%s", folder,
                                   w.spec->tuner[t]->name, w.l->log[i].device);
            if (n < 0 || (size_t)n + 24 > sizeof path)
                return CD_FAIL(err, ERANGE, "path of %d bytes", n);
            CD_TRY(cd_file_make_folder(path, err));
            snprintf(path + n, sizeof path - (size_t)n, "/%zu.csv", i);
            cd_tune_replay_op_costs(&b, &w, i, t);
            CD_TRY(put_file(path, &b, err));
        }
    return CDMPP_OK;
}
