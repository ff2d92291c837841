/* What "link" tells of a machine: table, JSON, drawing. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predictor/cmd/partition/main_partition_tools.h"

enum { SHOWN = 6 };             /* pieces of a link; more are a table: --json has them */

/* ---- table ---- */
static const char *where_of(const cd_machine_device *d, char *buf, size_t n) {
    if (d->opencl && d->core >= 0) snprintf(buf, n, "%s, core %d", d->opencl, d->core);
    else if (d->opencl) snprintf(buf, n, "%s", d->opencl);
    else if (d->core >= 0) snprintf(buf, n, "core %d", d->core);
    else snprintf(buf, n, "-");
    return buf;
}

static void put_device(cd_buf *b, const cd_machine_device *d) {
    char where[160], memory[16];
    snprintf(memory, sizeof memory, "own %u", d->memory);
    cd_buf_putf(b, "%-8s %-7s %-22s %-7s ", d->name, d->kind, where_of(d, where, sizeof where), d->memory ? memory : "host");
    cd_partition_seconds(b, d->launch_s);
    cd_buf_puts(b, "  ");
    cd_partition_seconds(b, d->sync_s);
    cd_buf_puts(b, "  ");
    cd_partition_seconds(b, d->wake_s);
    cd_buf_putf(b, "  %-20s %5.3g", d->as ? d->as : "-", d->scale);
    if (d->times > 1) cd_buf_putf(b, "  each run %u times", d->times);
    cd_buf_puts(b, "\n");
}

static void put_piece(cd_buf *b, const cd_link_piece *p) {
    cd_buf_puts(b, "    from ");
    cd_partition_bytes(b, p->bytes);
    cd_buf_puts(b, " on: ");
    cd_partition_seconds_short(b, p->seconds);
    if (p->s_per_byte > 0) cd_buf_putf(b, ", then %.3g GB/s\n", 1e-9 / p->s_per_byte);
    else cd_buf_puts(b, ", whatever the size\n");
}

static void put_link(cd_buf *b, const cd_link *k) {
    static const double at[] = {1024, 65536, 1 << 20, 16 << 20};
    char name[160];
    snprintf(name, sizeof name, "%s > %s", k->from, k->to);
    cd_buf_putf(b, "%-18s %-6s ", name, k->how);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        cd_partition_seconds(b, cd_link_cost(k, (int64_t)at[i]));
        cd_buf_puts(b, "  ");
    }
    cd_buf_putf(b, "%5u  %5.1f %%\n", k->n, 100 * k->noise);
    if (k->n_piece > SHOWN) cd_buf_putf(b, "    %u pieces: %.3g GB/s in the last\n", k->n_piece, 1e-9 * cd_link_bandwidth(k));
    for (uint32_t i = 0; i < k->n_piece && k->n_piece <= SHOWN; i++) put_piece(b, &k->piece[i]);
}

static void put_contention(cd_buf *b, const cd_contention *c) {
    cd_buf_puts(b, "\nBeside each other: ");
    if (c->peak_bytes_per_s > 0) cd_buf_putf(b, "memory gives %.3g GB/s in all, ", c->peak_bytes_per_s * 1e-9);
    cd_buf_putf(b, "%.3g times as long on cores of their own, %.3g times on the same (%u pairs, error %.1f %%)\n", c->beside, c->turn, c->n_pair, 100 * c->error);
}

static void put_error(cd_buf *b, const cd_partition_link_error *e) {
    cd_buf_putf(b, "\nThe pieces are off the pairs by %.1f %% in the mean, by %.1f %% at worst, at ", 100 * e->mean, 100 * e->worst);
    cd_partition_bytes(b, e->worst_bytes);
    cd_buf_puts(b, ".\n");
}

static void put_table(cd_buf *b, const cd_partition_link_options *o, const cd_machine *m) {
    if (m->n) cd_buf_puts(b, "device   kind    where                  memory   launch    waiting    waking  as                   scale\n");
    for (uint32_t i = 0; i < m->n; i++) put_device(b, &m->device[i]);
    if (m->n && m->links.n) cd_buf_puts(b, "\n");
    if (m->links.n) cd_buf_puts(b, "link               how        1 KiB     64 KiB      1 MiB     16 MiB  pairs    noise\n");
    for (size_t i = 0; i < m->links.n; i++) put_link(b, &m->links.link[i]);
    if (m->contention.beside > 0) put_contention(b, &m->contention);
    if (o->error) put_error(b, o->error);
}

/* ---- JSON ---- */
static void json_device(cd_buf *b, const cd_machine_device *d) {
    cd_buf_puts(b, "{");
    cd_partition_put_text(b, "name", d->name);
    cd_partition_put_text(b, "kind", d->kind);
    cd_partition_put_text(b, "opencl", d->opencl);
    cd_partition_put_text(b, "as", d->as);
    cd_partition_put_text(b, "target", d->target);
    cd_buf_putf(b, ",\"core\":%d,\"memory\":%u,\"times\":%u", d->core, d->memory, d->times);
    cd_partition_put(b, "scale", d->scale);
    cd_partition_put(b, "launch_s", d->launch_s);
    cd_partition_put(b, "sync_s", d->sync_s);
    cd_partition_put(b, "wake_s", d->wake_s);
    cd_buf_puts(b, "}");
}

static void json_link(cd_buf *b, const cd_link *k) {
    cd_buf_puts(b, "{");
    cd_partition_put_text(b, "from", k->from);
    cd_partition_put_text(b, "to", k->to);
    cd_partition_put_text(b, "how", k->how);
    cd_partition_put(b, "latency_s", cd_link_latency(k));
    cd_partition_put(b, "bytes_per_s", cd_link_bandwidth(k));
    cd_buf_putf(b, ",\"n\":%u", k->n);
    cd_partition_put(b, "noise", k->noise);
    cd_buf_puts(b, ",\"pieces\":[");
    for (uint32_t i = 0; i < k->n_piece; i++) {
        cd_buf_puts(b, i ? ",{" : "{");
        cd_partition_put(b, "bytes", k->piece[i].bytes);
        cd_partition_put(b, "seconds", k->piece[i].seconds);
        cd_partition_put(b, "s_per_byte", k->piece[i].s_per_byte);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]}");
}

static void json_contention(cd_buf *b, const cd_contention *c) {
    cd_buf_puts(b, ",\"contention\":{");
    cd_partition_put(b, "peak_bytes_per_s", c->peak_bytes_per_s);
    cd_partition_put(b, "beside", c->beside);
    cd_partition_put(b, "turn", c->turn);
    cd_buf_putf(b, ",\"pairs\":%u", c->n_pair);
    cd_partition_put(b, "error", c->error);
    cd_buf_puts(b, "}");
}

static void put_json(cd_buf *b, const cd_partition_link_options *o, const cd_machine *m) {
    cd_buf_puts(b, "{\"devices\":[");
    for (uint32_t i = 0; i < m->n; i++) {
        if (i) cd_buf_puts(b, ",");
        json_device(b, &m->device[i]);
    }
    cd_buf_puts(b, "],\"links\":[");
    for (size_t i = 0; i < m->links.n; i++) {
        if (i) cd_buf_puts(b, ",");
        json_link(b, &m->links.link[i]);
    }
    cd_buf_puts(b, "]");
    if (m->contention.beside > 0) json_contention(b, &m->contention);
    else cd_buf_puts(b, ",\"contention\":null");
    if (o->error) {
        cd_partition_put(b, "mean_error", o->error->mean);
        cd_partition_put(b, "worst_error", o->error->worst);
        cd_partition_put(b, "worst_bytes", o->error->worst_bytes);
    }
    cd_buf_puts(b, "}");
}

/* ---- drawing ---- */
enum { FIRST = 6, LAST = 28, EACH = 4, POINTS = (LAST - FIRST) * EACH + 1 };

static void name_bytes(double v, char *buf, size_t n) {
    cd_buf b = {0};
    cd_partition_bytes(&b, v);
    snprintf(buf, n, "%s", b.p ? b.p : "");
    cd_buf_free(&b);
}

static void name_us(double v, char *buf, size_t n) { snprintf(buf, n, "%g", v + 0.0); }

cdmpp_status cd_partition_link_draw(const cd_partition_link_options *o, const cd_link_table *l, cdmpp_err *err) {
    double x[POINTS], y[POINTS], lo = HUGE_VAL, hi = 0;
    for (int i = 0; i < POINTS; i++) x[i] = exp2(FIRST + (double)i / EACH);
    for (size_t k = 0; k < l->n; k++) {
        lo = fmin(lo, 1e6 * cd_link_cost(&l->link[k], (int64_t)x[0]));
        hi = fmax(hi, 1e6 * cd_link_cost(&l->link[k], (int64_t)x[POINTS - 1]));
    }
    if (!(lo > 0 && hi > lo)) return CD_FAIL(err, ENODATA, "--svg: no link to draw");
    cd_partition_chart c = {.p = {.x = {x[0], x[POINTS - 1], true}, .y = {lo, hi, true}}};
    cd_partition_chart_begin(&c, "Links", "bytes", "microseconds", name_bytes, name_us);
    for (size_t k = 0; k < l->n; k++) {
        char text[200];
        for (int i = 0; i < POINTS; i++) y[i] = 1e6 * cd_link_cost(&l->link[k], (int64_t)x[i]);
        cd_plot_line(&c.p, x, y, POINTS, cd_partition_colour(k));
        snprintf(text, sizeof text, "%s > %s, %s", l->link[k].from, l->link[k].to, l->link[k].how);
        cd_partition_chart_legend(&c, k, text);
    }
    return cd_partition_chart_write(&c, o->svg, err);
}

cdmpp_status cd_partition_link_print(const cd_partition_link_options *o, const cd_machine *m, cdmpp_err *err) {
    cd_buf b = {0};
    if (o->svg) CD_TRY(cd_partition_link_draw(o, &m->links, err));
    if (o->json) put_json(&b, o, m);
    else put_table(&b, o, m);
    return cd_partition_print_result(o->json, "cdmpp.partition_link", &b, err);
}
