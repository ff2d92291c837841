/* A machine as a table and as JSON. A machine without devices is a file of links alone: its table
 * has only the second part. */
#include "profiler/machine/machine_report.h"

#include <stdio.h>

#include "base/text/text.h"

enum { SHOWN = 6 }; /* pieces of a link that the table shows; JSON has all */

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
    cd_buf_putf(b, "%-8s %-7s %-22s %-7s ", d->name, d->kind, where_of(d, where, sizeof where),
                d->memory ? memory : "host");
    cd_units_put_seconds_wide(b, d->launch_s);
    cd_buf_puts(b, "  ");
    cd_units_put_seconds_wide(b, d->sync_s);
    cd_buf_puts(b, "  ");
    cd_units_put_seconds_wide(b, d->wake_s);
    cd_buf_putf(b, "  %-20s %5.3g", d->as ? d->as : "-", d->scale);
    if (d->times > 1) cd_buf_putf(b, "  each run %u times", d->times);
    cd_buf_puts(b, "\n");
}

static void put_piece(cd_buf *b, const cd_link_piece *p) {
    cd_buf_puts(b, "    from ");
    cd_units_put_bytes(b, p->bytes);
    cd_buf_puts(b, " on: ");
    cd_units_put_seconds(b, p->seconds);
    if (p->s_per_byte > 0) cd_buf_putf(b, ", then %.3g GB/s\n", 1e-9 / p->s_per_byte);
    else cd_buf_puts(b, ", whatever the size\n");
}

/* Four sizes tell most of a link; its pieces follow where they are few. */
static void put_link(cd_buf *b, const cd_link *k) {
    static const double at[] = {1024, 65536, 1 << 20, 16 << 20};
    char name[160];
    snprintf(name, sizeof name, "%s > %s", k->from, k->to);
    cd_buf_putf(b, "%-18s %-6s ", name, k->how);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        cd_units_put_seconds_wide(b, cd_link_cost(k, (int64_t)at[i]));
        cd_buf_puts(b, "  ");
    }
    cd_buf_putf(b, "%5u  %5.1f %%\n", k->n, 100 * k->noise);
    if (k->n_piece > SHOWN)
        cd_buf_putf(b, "    %u pieces: %.3g GB/s in the last\n", k->n_piece,
                    1e-9 * cd_link_bandwidth(k));
    for (uint32_t i = 0; i < k->n_piece && k->n_piece <= SHOWN; i++) put_piece(b, &k->piece[i]);
}

static void put_contention(cd_buf *b, const cd_contention *c) {
    cd_buf_puts(b, "\nBeside each other: ");
    if (c->peak_bytes_per_s > 0)
        cd_buf_putf(b, "memory gives %.3g GB/s in all, ", c->peak_bytes_per_s * 1e-9);
    cd_buf_putf(b,
                "%.3g times as long on cores of their own, %.3g times on the same (%u pairs, error "
                "%.1f %%)\n",
                c->beside, c->turn, c->n_pair, 100 * c->error);
}

static void put_noise(cd_buf *b, const cd_machine *m) {
    cd_buf_puts(b, m->kept ? "\nNOISY, kept all the same: " : "\nMeasured: ");
    cd_noise_put(b, &m->noise);
    cd_buf_puts(b, "\n");
}

static void put_error(cd_buf *b, const cd_link_error *e) {
    cd_buf_putf(b,
                "\nThe pieces are off the pairs by %.1f %% in the mean, by %.1f %% at worst, at ",
                100 * e->mean, 100 * e->worst);
    cd_units_put_bytes(b, e->worst_bytes);
    cd_buf_puts(b, ".\n");
}

void cd_machine_report_text(const cd_machine *m, const cd_link_error *error, cd_buf *b) {
    if (m->n)
        cd_buf_puts(b, "device   kind    where                  memory   launch    waiting    "
                       "waking  as                   scale\n");
    for (uint32_t i = 0; i < m->n; i++) put_device(b, &m->device[i]);
    if (m->n && m->links.n) cd_buf_puts(b, "\n");
    if (m->links.n)
        cd_buf_puts(b, "link               how        1 KiB     64 KiB      1 MiB     16 MiB  "
                       "pairs    noise\n");
    for (size_t i = 0; i < m->links.n; i++) put_link(b, &m->links.link[i]);
    if (m->measured) put_noise(b, m);
    if (m->contention.beside > 0) put_contention(b, &m->contention);
    if (error) put_error(b, error);
}

/* ---- JSON ---- */

static void json_device(cd_json_writer *w, const cd_machine_device *d) {
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "name", d->name);
    cd_json_write_member_str(w, "kind", d->kind);
    cd_json_write_member_str(w, "opencl", d->opencl);
    cd_json_write_member_str(w, "as", d->as);
    cd_json_write_member_str(w, "target", d->target);
    cd_json_write_member_int(w, "core", d->core);
    cd_json_write_member_int(w, "memory", d->memory);
    cd_json_write_member_int(w, "times", d->times);
    cd_json_write_member_real(w, "scale", d->scale);
    cd_json_write_member_real(w, "launch_s", d->launch_s);
    cd_json_write_member_real(w, "sync_s", d->sync_s);
    cd_json_write_member_real(w, "wake_s", d->wake_s);
    cd_json_write_close(w, '}');
}

static void json_link(cd_json_writer *w, const cd_link *k) {
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "from", k->from);
    cd_json_write_member_str(w, "to", k->to);
    cd_json_write_member_str(w, "how", k->how);
    cd_json_write_member_real(w, "latency_s", cd_link_latency(k));
    cd_json_write_member_real(w, "bytes_per_s", cd_link_bandwidth(k));
    cd_json_write_member_int(w, "n", k->n);
    cd_json_write_member_real(w, "noise", k->noise);
    cd_json_write_key(w, "pieces"), cd_json_write_open(w, '[');
    for (uint32_t i = 0; i < k->n_piece; i++) {
        cd_json_write_open(w, '{');
        cd_json_write_member_real(w, "bytes", k->piece[i].bytes);
        cd_json_write_member_real(w, "seconds", k->piece[i].seconds);
        cd_json_write_member_real(w, "s_per_byte", k->piece[i].s_per_byte);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
    cd_json_write_close(w, '}');
}

static void json_contention(cd_json_writer *w, const cd_contention *c) {
    cd_json_write_key(w, "contention");
    if (!(c->beside > 0)) {
        cd_json_write_null(w);
        return;
    }
    cd_json_write_open(w, '{');
    cd_json_write_member_real(w, "peak_bytes_per_s", c->peak_bytes_per_s);
    cd_json_write_member_real(w, "beside", c->beside);
    cd_json_write_member_real(w, "turn", c->turn);
    cd_json_write_member_int(w, "pairs", c->n_pair);
    cd_json_write_member_real(w, "error", c->error);
    cd_json_write_close(w, '}');
}

void cd_machine_report_json(const cd_machine *m, const cd_link_error *error, cd_buf *out) {
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_json_write_key(&w, "devices"), cd_json_write_open(&w, '[');
    for (uint32_t i = 0; i < m->n; i++) json_device(&w, &m->device[i]);
    cd_json_write_close(&w, ']');
    cd_json_write_key(&w, "links"), cd_json_write_open(&w, '[');
    for (size_t i = 0; i < m->links.n; i++) json_link(&w, &m->links.link[i]);
    cd_json_write_close(&w, ']');
    json_contention(&w, &m->contention);
    if (m->measured) {
        cd_json_write_member_real(&w, "spread", m->noise.spread);
        cd_json_write_member_real(&w, "others", m->noise.others);
        cd_json_write_member_bool(&w, "kept", m->kept);
    }
    if (error) {
        cd_json_write_member_real(&w, "mean_error", error->mean);
        cd_json_write_member_real(&w, "worst_error", error->worst);
        cd_json_write_member_real(&w, "worst_bytes", error->worst_bytes);
    }
    cd_json_write_close(&w, '}');
}
