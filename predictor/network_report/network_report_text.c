/* Estimates as a table for people: a row a case, then summaries, then the operators of each case.
 *
 * A column is as wide as its widest cell, so each cell is made twice. Names come from files: what
 * would steer a terminal is replaced, and letters are counted as UTF-8. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/network_report/network_report_internal.h"

/* "7.421 ms" */
void cd_network_report_put_time(char out[CD_NETWORK_REPORT_CELL], double s) {
    if (isnan(s)) snprintf(out, CD_NETWORK_REPORT_CELL, "-");
    else if (s >= 1) snprintf(out, CD_NETWORK_REPORT_CELL, "%.4g s", s);
    else if (s >= 1e-3) snprintf(out, CD_NETWORK_REPORT_CELL, "%.4g ms", s * 1e3);
    else snprintf(out, CD_NETWORK_REPORT_CELL, "%.4g us", s * 1e6);
}

static void put_bytes(char out[CD_NETWORK_REPORT_CELL], int64_t n) {
    if (n < 0) snprintf(out, CD_NETWORK_REPORT_CELL, "-");
    else if (n >= (int64_t)1 << 30)
        snprintf(out, CD_NETWORK_REPORT_CELL, "%.3g GiB", (double)n / 1073741824.0);
    else if (n >= 1 << 20) snprintf(out, CD_NETWORK_REPORT_CELL, "%.3g MiB", (double)n / 1048576.0);
    else snprintf(out, CD_NETWORK_REPORT_CELL, "%.3g KiB", (double)n / 1024.0);
}

static void put_real(char out[CD_NETWORK_REPORT_CELL], double v, const char *form) {
    if (isnan(v)) snprintf(out, CD_NETWORK_REPORT_CELL, "-");
    else snprintf(out, CD_NETWORK_REPORT_CELL, form, v);
}

void cd_network_report_put_name(cd_buf *b, const char *s, size_t least, size_t most) {
    size_t n = 0;
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if ((c & 0xc0) != 0x80 && n++ == most) break; /* n counts letters: UTF-8 */
        cd_buf_put(b, c < 0x20 || c == 0x7f ? "?" : s, 1);
    }
    if (n > most) n = most;
    for (; n < least; n++) cd_buf_puts(b, " ");
}

static size_t letters(const char *s) {
    size_t n = 0;
    for (; *s; s++) n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* ---- columns ---- */
enum { ALWAYS, CORES_DIFFER, WHAT_IF, MEASURED, PRICES, RUN, GIVEN, PARALLEL, UNLIKE, ENERGIES };
typedef enum column_name {
    CORES,
    BATCH,
    BEFORE,
    LATENCY,
    SPEED_UP,
    TRAINING,
    FROM,
    TO,
    MEASURED_S,
    MEASURED_ERROR,
    RUN_S,
    RUN_ERROR,
    CHAIN,
    SUM,
    ITEMS,
    MEMORY,
    GIVEN_SHARE,
    UNLIKE_SHARE,
    MISSING,
    PRICE,
    ENERGY
} column_name;
static const struct {
    const char *title;
    int when;
} column[] = {
    [CORES] = {"cores", CORES_DIFFER},
    [BATCH] = {"batch", ALWAYS},
    [BEFORE] = {"before", WHAT_IF},
    [LATENCY] = {"latency", ALWAYS},
    [SPEED_UP] = {"speed-up", WHAT_IF},
    [TRAINING] = {"parallel", PARALLEL},
    [FROM] = {"from", ALWAYS},
    [TO] = {"to", ALWAYS},
    [MEASURED_S] = {"measured", MEASURED},
    [MEASURED_ERROR] = {"error", MEASURED},
    [RUN_S] = {"run here", RUN},
    [RUN_ERROR] = {"error", RUN},
    [CHAIN] = {"chain", ALWAYS},
    [SUM] = {"sum", ALWAYS},
    [ITEMS] = {"items/s", ALWAYS},
    [MEMORY] = {"memory", ALWAYS},
    [GIVEN_SHARE] = {"given", GIVEN},
    [UNLIKE_SHARE] = {"unlike", UNLIKE},
    [MISSING] = {"missing", ALWAYS},
    [PRICE] = {"a million", PRICES},
    [ENERGY] = {"energy", ENERGIES},
};
enum { N_COLUMN = sizeof column / sizeof *column };

static void put_memory(const cd_network_estimate_case *c, char out[CD_NETWORK_REPORT_CELL]) {
    char text[CD_NETWORK_REPORT_CELL];
    put_bytes(text, c->use[c->fullest].peak);
    snprintf(out, CD_NETWORK_REPORT_CELL, "%.18s%s", text,
             cd_network_estimate_fits(c) == CD_NETWORK_FITS_NO ? " (!)" : "");
}

static void put_price(const cd_network_report *p, const cd_network_estimate_case *c,
                      char out[CD_NETWORK_REPORT_CELL]) {
    const cd_network_estimate_case *best = cd_network_report_cheapest(p, c->source->name);
    if (isnan(cd_network_report_price(p, c))) snprintf(out, CD_NETWORK_REPORT_CELL, "-");
    else
        snprintf(out, CD_NETWORK_REPORT_CELL, "%.3f %.8s%s", cd_network_report_price(p, c),
                 cd_network_report_hour(p, c).currency, c == best ? " *" : "");
}

static void put_energy(const cd_network_report *p, const cd_network_estimate_case *c,
                       char out[CD_NETWORK_REPORT_CELL]) {
    const double joule = cd_network_report_energy(p, c);
    if (isnan(joule)) snprintf(out, CD_NETWORK_REPORT_CELL, "-");
    else
        snprintf(out, CD_NETWORK_REPORT_CELL, "%.3g J%s", joule,
                 c == cd_network_report_thriftiest(p, c->source->name) ? " *" : "");
}

static double percent_of(const cd_network_estimate_case *c, double seconds) {
    return c->ops_s > 0 ? 100 * seconds / c->ops_s : 0;
}

static void put_cell(const cd_network_report *p, const cd_network_estimate_case *c,
                     column_name which, char out[CD_NETWORK_REPORT_CELL]) {
    const double measured_s = c->measured_s;
    const double cores = cd_network_estimate_cores(p->e, c->device);
    switch (which) {
    case CORES: put_real(out, cores > 0 ? cores : (double)NAN, "%.0f"); break;
    case BATCH:
        put_real(out, c->source->batch > 0 ? (double)c->source->batch : (double)NAN, "%.0f");
        break;
    case BEFORE: cd_network_report_put_time(out, c->before_s); break;
    case LATENCY: cd_network_report_put_time(out, c->replay.makespan_s); break;
    case SPEED_UP: put_real(out, c->before_s / c->replay.makespan_s, "%.3fx"); break;
    case TRAINING: cd_network_report_put_time(out, c->cluster.replay_s); break;
    case FROM: cd_network_report_put_time(out, c->interval.low_s); break;
    case TO: cd_network_report_put_time(out, c->interval.high_s); break;
    case MEASURED_S: cd_network_report_put_time(out, measured_s); break;
    case MEASURED_ERROR:
        put_real(out, 100 * cd_network_estimate_error(c, measured_s), "%+.1f %%");
        break;
    case RUN_S: cd_network_report_put_time(out, c->run_s); break;
    case RUN_ERROR: put_real(out, 100 * cd_network_estimate_error(c, c->run_s), "%+.1f %%"); break;
    case CHAIN: cd_network_report_put_time(out, c->replay.chain_s); break;
    case SUM: cd_network_report_put_time(out, c->replay.sum_s); break;
    case ITEMS: put_real(out, cd_network_estimate_throughput(c), "%.4g"); break;
    case MEMORY: put_memory(c, out); break;
    case GIVEN_SHARE: put_real(out, percent_of(c, c->given_s), "%.1f %%"); break;
    case UNLIKE_SHARE:
        put_real(out, percent_of(c, cd_network_estimate_unlike_s(c)), "%.0f %%");
        break;
    case MISSING: put_real(out, 100 * c->missing_share, "%.1f %%"); break;
    case PRICE: put_price(p, c, out); break;
    case ENERGY: put_energy(p, c, out); break;
    }
}

static bool any_unlike(const cd_network_report *p) {
    for (size_t k = 0; k < p->e->n_item; k++)
        if (!p->e->item[k].st && cd_network_estimate_unlike_s(&p->e->item[k]) > 0) return true;
    return false;
}

/* Times of 16 cores and of one beside each other. */
static bool cores_differ(const cd_network_report *p) {
    double one = 0;
    for (size_t k = 0; k < p->e->n_device; k++) {
        const double cores = cd_network_estimate_cores(p->e, &p->e->device[k]);
        if (cores > 0 && one > 0 && fabs(cores - one) > 0.5) return true;
        if (cores > 0) one = cores;
    }
    return false;
}

static bool is_shown(const cd_network_report *p, int when) {
    const cd_network_estimate_options *o = p->e->o;
    return when == ALWAYS || (when == CORES_DIFFER && cores_differ(p)) ||
           (when == WHAT_IF && o->what_if.n) || (when == MEASURED && p->measured) ||
           (when == PRICES && p->prices) || (when == ENERGIES && p->energy) ||
           (when == RUN && o->run) || (when == PARALLEL && o->parallel) ||
           (when == GIVEN && o->graph.n) || (when == UNLIKE && any_unlike(p));
}

/* ---- the table ---- */
static size_t widest(const cd_network_report *p, bool device) {
    size_t w = 7;
    for (size_t k = 0; k < p->e->n_item; k++) {
        char label[CD_NETWORK_REPORT_DEVICE];
        const size_t n = letters(device ? cd_network_report_device(p->e->item[k].device, label)
                                        : p->e->item[k].source->name);
        if (n > w) w = n;
    }
    return w > 48 ? 48 : w;
}

static void put_row(const cd_network_report *p, const cd_network_estimate_case *c,
                    const size_t *width, cd_buf *b) {
    char cell[CD_NETWORK_REPORT_CELL];
    for (int k = 0; k < N_COLUMN; k++) {
        if (!is_shown(p, column[k].when)) continue;
        put_cell(p, c, (column_name)k, cell);
        cd_buf_putf(b, "  %*s", (int)width[k], cell);
    }
}

static void widths(const cd_network_report *p, size_t *width) {
    char cell[CD_NETWORK_REPORT_CELL];
    for (int k = 0; k < N_COLUMN; k++) {
        width[k] = strlen(column[k].title);
        for (size_t i = 0; i < p->e->n_item && is_shown(p, column[k].when); i++) {
            if (p->e->item[i].st) continue;
            put_cell(p, &p->e->item[i], (column_name)k, cell);
            if (strlen(cell) > width[k]) width[k] = strlen(cell);
        }
    }
}

/* A failed case has its message in place of the columns. */
static void put_table(const cd_network_report *p, cd_buf *b) {
    const int name = (int)widest(p, false), device = (int)widest(p, true);
    size_t width[N_COLUMN];
    widths(p, width);
    cd_buf_putf(b, "%-*s  %-*s", name, "network", device, "device");
    for (int k = 0; k < N_COLUMN; k++)
        if (is_shown(p, column[k].when)) cd_buf_putf(b, "  %*s", (int)width[k], column[k].title);
    cd_buf_puts(b, "\n");
    for (size_t k = 0; k < p->e->n_item; k++) {
        const cd_network_estimate_case *c = &p->e->item[k];
        char label[CD_NETWORK_REPORT_DEVICE];
        cd_network_report_put_name(b, c->source->name, (size_t)name, (size_t)name);
        cd_buf_puts(b, "  ");
        cd_network_report_put_name(b, cd_network_report_device(c->device, label), (size_t)device,
                                   (size_t)device);
        if (c->st) {
            cd_buf_puts(b, "  no total: ");
            cd_network_report_put_name(b, c->err.msg, 0, SIZE_MAX);
        } else put_row(p, c, width, b);
        cd_buf_puts(b, "\n");
    }
}

/* ---- below it ---- */
/* Mean and largest error against the measured times, or against the run here. `given`: only cases
 * that took at most this share of their time from the file; below 1 nothing is printed where that
 * leaves out no case or all. */
static void put_summary(const cd_network_report *p, cd_buf *b, const char *what, bool ran,
                        double given) {
    double sum = 0, most = 0;
    size_t n = 0, all = 0;
    for (size_t k = 0; k < p->e->n_item; k++) {
        const cd_network_estimate_case *c = &p->e->item[k];
        const double e = c->st ? (double)NAN
                               : fabs(cd_network_estimate_error(c, ran ? c->run_s : c->measured_s));
        if (isnan(e)) continue;
        all++;
        if (c->given_s > given * c->ops_s) continue;
        n++;
        sum += e;
        if (e > most) most = e;
    }
    if (given < 1 && (n == all || !n)) return;
    if (n)
        cd_buf_putf(b, "%s: mean error %.1f %%, most %.1f %% (n=%zu)\n", what,
                    100 * sum / (double)n, 100 * most, n);
    else cd_buf_putf(b, "%s: nothing to compare with\n", what);
}

/* ---- ranges ---- */
static void put_one_schedule(const cd_network_estimate_curve *c, cd_buf *b) {
    size_t worst = 0;
    double sum = 0, apart = 0;
    if (!c->has_one) {
        cd_buf_putf(b, "    one schedule for all: not known, %s\n", c->why_not);
        return;
    }
    for (size_t k = 0; k < c->n; k++) {
        sum += c->loss[k];
        if (c->loss[k] > c->loss[worst]) worst = k;
        if (c->apart[k] > apart) apart = c->apart[k];
    }
    cd_buf_putf(b,
                "    one schedule of each operator for all: predicted %.1f %% slower than the best "
                "of each size in the mean of these %zu, %.1f %% at %lld",
                100 * sum / (double)c->n, c->n, 100 * c->loss[worst], (long long)c->size[worst]);
    if (apart > 0)
        cd_buf_putf(b, " (without up to %.0f %% of the time, which no one schedule fits)",
                    100 * apart);
    cd_buf_puts(b, "\n");
}

/* Sizes that were estimated have a *. */
static void put_curve(const cd_network_report *p, const cd_network_estimate_curve *c, cd_buf *b) {
    const cd_network_estimate *e = p->e;
    char s[CD_NETWORK_REPORT_CELL], from[CD_NETWORK_REPORT_CELL], to[CD_NETWORK_REPORT_CELL];
    cd_network_report_put_name(b, c->first->source->given, 0, 48);
    cd_buf_putf(b, ", %s, %s %lld..%lld: ", c->first->device->label, e->over, (long long)e->size[0],
                (long long)e->size[e->n_size - 1]);
    if (c->st) {
        cd_network_report_put_name(b, c->err.msg, 0, SIZE_MAX);
        cd_buf_puts(b, "\n");
        return;
    }
    cd_buf_putf(b, "%s", cd_perf_curve_form_name(c->law.form));
    if (cd_perf_curve_turns(&c->law)) {
        cd_buf_puts(b, ", turns ");
        cd_perf_curve_turn_put(b, &c->law.turn);
    }
    cd_buf_putf(b, "\n  %10s  %10s  %10s  %10s   *: estimated, the others by the law\n", e->over,
                "latency", "from", "to");
    for (int64_t size = 0; (size = cd_network_estimate_curve_next(e, size));) {
        double v, low, high;
        bool estimated;
        cd_network_estimate_curve_at(c, size, &v, &low, &high, &estimated);
        cd_network_report_put_time(s, v);
        cd_network_report_put_time(from, low);
        cd_network_report_put_time(to, high);
        cd_buf_putf(b, "  %10lld  %10s  %10s  %10s %s\n", (long long)size, s, from, to,
                    estimated ? "*" : "");
    }
    put_one_schedule(c, b);
}

/* ---- operators ---- */
typedef struct {
    uint32_t op;
    double s;
} ranked;
static int longest(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->s != y->s) return x->s > y->s ? -1 : 1;
    return (x->op > y->op) - (x->op < y->op);
}

/* Times are of all runs of the operator, so that they add up to the sum of the table. */
static void put_op(const cd_network_estimate_case *c, uint32_t op, bool critical, cd_buf *b) {
    char seconds[CD_NETWORK_REPORT_CELL], low[CD_NETWORK_REPORT_CELL], high[CD_NETWORK_REPORT_CELL],
        here[CD_NETWORK_REPORT_CELL] = "";
    const uint32_t node = c->net->of[op];
    const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, node);
    const cd_network_node *v = &c->source->graph->node[node];
    const cd_str source = cd_enum_names_at(CD_COST_SOURCES, (int)n->source);
    const double all = n->seconds * (double)v->repeat;
    cd_network_report_put_time(seconds, all);
    cd_network_report_put_time(low, n->low_s * (double)v->repeat);
    cd_network_report_put_time(high, n->high_s * (double)v->repeat);
    if (c->ran) cd_network_report_put_time(here, c->ran->node[node].place_s);
    cd_buf_putf(b, "%10s %6.2f %%  %10s %10s%*s  %s %-8.*s ", seconds,
                c->ops_s > 0 ? 100 * all / c->ops_s : 0, low, high, c->ran ? 11 : 0, here,
                critical ? "*" : " ", (int)source.n, source.p);
    cd_network_report_put_name(b, v->op, 24, 24);
    cd_buf_puts(b, " ");
    cd_network_report_put_name(b, v->name, 0, SIZE_MAX);
    if (v->repeat > 1) cd_buf_putf(b, " (%lld times)", (long long)v->repeat);
    if (n->flags & CD_MODEL_OUT_OF_RANGE)
        cd_buf_putf(b, " (out of range%s%s)", n->unlike ? ": " : "", n->unlike ? n->unlike : "");
    if (n->schedule) {
        cd_buf_puts(b, " [");
        cd_network_report_put_name(b, n->schedule, 0, SIZE_MAX);
        cd_buf_puts(b, "]");
    }
    cd_buf_puts(b, "\n");
}

static void put_unestimated(const cd_network_estimate_case *c, cd_buf *b) {
    for (uint32_t k = 0; k < c->source->graph->n_node; k++) {
        const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, k);
        if (n->source != CD_COST_MISSING || !c->source->graph->node[k].repeat) continue;
        const char *const text[] = {"   missing             ",
                                    c->source->graph->node[k].op,
                                    " ",
                                    c->source->graph->node[k].name,
                                    ": ",
                                    n->why ? n->why : ""};
        for (size_t i = 0; i < sizeof text / sizeof *text; i++)
            cd_network_report_put_name(b, text[i], 0, SIZE_MAX);
        cd_buf_puts(b, "\n");
    }
}

/* Operators by time, longest first, then those that are missing. */
static void put_ops(const cd_network_report *p, const cd_network_estimate_case *c, cd_buf *b) {
    const uint32_t n = c->net->net.n_op;
    ranked *r = cd_mem_alloc((n + 1) * sizeof *r);
    bool *critical = cd_network_estimate_critical(c);
    if (!r || !critical) b->oom = true;
    for (uint32_t k = 0; r && k < n; k++) r[k] = (ranked){k, c->net->net.op[k].seconds};
    if (r && critical) {
        qsort(r, n, sizeof *r, longest);
        cd_buf name = {0};
        cd_network_estimate_case_name(p->e, c, &name);
        b->oom |= name.oom;
        cd_buf_puts(b, "\n");
        if (!name.oom) cd_network_report_put_name(b, name.p, 0, SIZE_MAX);
        cd_buf_free(&name);
        cd_buf_putf(b,
                    "\n      time    share        from         to%*s    source   operator          "
                    "       name [schedule]; *: on the critical path\n",
                    c->ran ? 11 : 0, c->ran ? "run here" : "");
        for (uint32_t k = 0; k < n; k++) put_op(c, r[k].op, critical[r[k].op], b);
        put_unestimated(c, b);
    }
    cd_mem_free(r);
    cd_mem_free(critical);
}

/* What was guessed as a network was read changes the answer: without warnings it stands with the
 * answer. */
static void put_notes(const cd_network_report *p, cd_buf *b) {
    const cd_log *log = p->e->o->log;
    for (size_t k = 0; k < p->e->n_source && log && log->level < CD_LOG_WARNING; k++) {
        const cd_graph *g = cd_network_estimate_notes(p->e, p->e->source[k]);
        for (uint32_t i = 0; g && i < g->n_note; i++) {
            cd_buf_puts(b, i ? "" : "\n");
            cd_network_report_put_name(b, g->name, 0, SIZE_MAX);
            cd_buf_puts(b, ": ");
            cd_network_report_put_name(b, g->note[i], 0, SIZE_MAX);
            cd_buf_puts(b, "\n");
        }
    }
}

/* ---- all ---- */
void cd_network_report_text(const cd_network_report *p, cd_buf *b) {
    const size_t before = b->n;
    cd_network_report_whose(p->e, b);
    if (b->n > before) cd_buf_puts(b, "\n");
    put_table(p, b);
    for (size_t k = 0; k < p->e->n_curve; k++) put_curve(p, &p->e->curve[k], b);
    if (p->measured) put_summary(p, b, "against the measured", false, 1);
    if (p->measured)
        put_summary(p, b, "those of which at most 15 % of the time is given", false, 0.15);
    if (p->e->o->run) put_summary(p, b, "against the run here", true, 1);
    if (p->prices) cd_network_report_put_cheapest(p, b);
    if (p->energy) cd_network_report_put_thriftiest(p, b);
    for (size_t k = 0; k < p->e->n_item && p->ops; k++)
        if (!p->e->item[k].st) put_ops(p, &p->e->item[k], b);
    put_notes(p, b);
}
