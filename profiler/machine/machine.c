/* The description of a machine in memory: adding devices, finding them, choosing some of them. */
#include "profiler/machine/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/draw/draw.h"
#include "base/text/text.h"
#include "profiler/curves/curves.h"
#include "profiler/machine/link.h"
#include "profiler/machine/machine_report.h"

/* The table of links and their costs. A link's measured pairs are fitted by the laws of
 * profiler/curves, restricted to lines, and kept as pieces: a piece is all that evaluating
 * needs. */

#define MAX_BYTES 1e15

void cd_link_table_init(cd_link_table *l) { *l = (cd_link_table){0}; }

void cd_link_table_free(cd_link_table *l) {
    cd_arena_free(&l->arena);
    cd_mem_free(l->link);
    *l = (cd_link_table){0};
}

/* ---- looking up ---- */
static cd_link *find_link(const cd_link_table *l, const char *from, const char *to) {
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->link[i].from, from) && !strcmp(l->link[i].to, to)) return &l->link[i];
    return NULL;
}

const cd_link *cd_link_table_find(const cd_link_table *l, const char *from, const char *to) {
    return find_link(l, from, to);
}

double cd_link_cost(const cd_link *l, int64_t bytes) {
    const double b = (double)bytes;
    uint32_t low = 0, high = l->n_piece;
    if (bytes <= 0) return 0;
    while (high - low > 1) {
        const uint32_t m = low + (high - low) / 2;
        if (l->piece[m].bytes <= b) low = m;
        else high = m;
    }
    const cd_link_piece *p = &l->piece[low];
    return p->seconds + p->s_per_byte * (b - p->bytes);
}

double cd_link_latency(const cd_link *l) { return l->piece[0].seconds; }

double cd_link_bandwidth(const cd_link *l) { return 1 / l->piece[l->n_piece - 1].s_per_byte; }

/* ---- adding ---- */
static bool number(double v, double most) { return isfinite(v) && v >= 0 && v <= most; }

/* Pieces must start at 0, ascend and meet, within rounding. */
static cdmpp_status check_link(const cd_link *k, cdmpp_err *err) {
    if (!k->from || !k->to || !k->from[0] || !k->to[0])
        return CD_FAIL(err, EINVALID, "a link needs two devices");
    if (!k->n_piece || k->piece[0].bytes != 0)
        return CD_FAIL(err, EINVALID, "from %s to %s: expected pieces from 0 bytes on", k->from,
                       k->to);
    for (uint32_t i = 0; i < k->n_piece; i++) {
        const cd_link_piece *p = &k->piece[i];
        if (!number(p->bytes, MAX_BYTES) || !number(p->seconds, 1e9) || !number(p->s_per_byte, 1e3))
            return CD_FAIL(err, EINVALID, "from %s to %s, piece %u: expected numbers of at least 0",
                           k->from, k->to, i);
        if (!i) continue;
        const double end = p[-1].seconds + p[-1].s_per_byte * (p->bytes - p[-1].bytes);
        if (p->bytes <= p[-1].bytes)
            return CD_FAIL(err, EINVALID,
                           "from %s to %s, piece %u: expected more bytes than before", k->from,
                           k->to, i);
        if (fabs(p->seconds - end) > 1e-6 * fmax(end, p->seconds) + 1e-15)
            return CD_FAIL(err, EINVALID,
                           "from %s to %s, piece %u: begins at %g s, the one before ends at %g s",
                           k->from, k->to, i, p->seconds, end);
    }
    return CDMPP_OK;
}

static char *keep_text(cd_link_table *l, const char *s) {
    return cd_str_dup(&l->arena, (cd_str){s, strlen(s)});
}

/* The texts of a link that is replaced stay in the arena until the table is freed. */
cdmpp_status cd_link_table_add(cd_link_table *l, const cd_link *one, cdmpp_err *err) {
    CD_TRY(check_link(one, err));
    if (CD_GROW(l->link, l->n, l->cap)) return CD_FAIL(err, ENOMEM, "%zu links", l->n);
    cd_link k = *one;
    cd_link_piece *p = cd_arena_alloc(&l->arena, k.n_piece, sizeof *p);
    k.from = keep_text(l, one->from);
    k.to = keep_text(l, one->to);
    k.how = keep_text(l, one->how ? one->how : "copy");
    if (!p || !k.from || !k.to || !k.how)
        return CD_FAIL(err, ENOMEM, "link from %s to %s", one->from, one->to);
    memcpy(p, one->piece, k.n_piece * sizeof *p);
    k.piece = p;
    cd_link *old = find_link(l, k.from, k.to);
    if (old) *old = k;
    else l->link[l->n++] = k;
    return CDMPP_OK;
}

/* ---- fitting ---- */
typedef struct {
    double x, t;
} pair;

static int by_bytes(const void *a, const void *b) {
    const pair *p = a, *q = b;
    return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->t > q->t) - (p->t < q->t);
}

/* Sorted, the median of each size; how many sizes. */
static size_t medians(pair *p, size_t n, double *x, double *t) {
    size_t m = 0;
    qsort(p, n, sizeof *p, by_bytes);
    for (size_t i = 0, j; i < n; i = j, m++) {
        for (j = i; j < n && p[j].x == p[i].x;) j++;
        const size_t k = j - i;
        x[m] = p[i].x;
        t[m] = k % 2 ? p[i + k / 2].t : 0.5 * (p[i + k / 2 - 1].t + p[i + k / 2].t);
    }
    return m;
}

/* Where the pieces of a law, or of a table, begin; 0 is the first. */
static uint32_t piece_starts(const cd_perf_curve *p, double *at) {
    uint32_t n = 1;
    at[0] = 0;
    if (p->n_param)
        for (uint32_t k = p->n_param - p->n_break; k < p->n_param; k++) at[n++] = p->param[k];
    else
        for (uint32_t k = 0; k < p->n_knot; k++)
            if (p->knot_x[k] > at[n - 1]) at[n++] = p->knot_x[k];
    return n;
}

static uint32_t pieces_of(const cd_perf_curve *p, double *at, cd_link_piece *out) {
    const uint32_t n = piece_starts(p, at);
    for (uint32_t i = 0; i < n; i++) {
        const double to = i + 1 < n ? at[i + 1] : 2 * fmax(at[i], p->x_max);
        out[i] = (cd_link_piece){at[i], cd_perf_curve_eval_law(p, at[i]), 0};
        out[i].s_per_byte =
            fmax((cd_perf_curve_eval_law(p, to) - out[i].seconds) / (to - at[i]), 0);
    }
    return n;
}

/* One block holds pairs, medians, breaks and pieces: room (9 n + 32) doubles. */
static cdmpp_status fit_pairs(cd_link_table *l, cd_link *k, double *room, size_t n,
                              cdmpp_err *err) {
    pair *p = (pair *)(void *)room;
    double *x = room + 2 * n, *t = x + n, *at = t + n;
    cd_link_piece *piece = (cd_link_piece *)(void *)(at + n + 4);
    cd_perf_curve law;
    const cd_perf_curve_options o = {.forms =
                                         1U << CD_PERF_CURVE_CONSTANT | 1U << CD_PERF_CURVE_AFFINE |
                                         1U << CD_PERF_CURVE_HINGE | 1U << CD_PERF_CURVE_SLOPES};
    const size_t m = medians(p, n, x, t);
    CD_TRY(cd_perf_curve_fit(x, t, m, &o, &law, err));
    k->n = (uint32_t)n;
    k->noise = law.noise;
    k->n_piece = pieces_of(&law, at, piece);
    k->piece = piece;
    cd_perf_curve_free(&law);
    return cd_link_table_add(l, k, err);
}

/* Sizes measured more than once count once, by their median. */
cdmpp_status cd_link_table_fit(cd_link_table *l, const char *from, const char *to, const char *how,
                               const double *bytes, const double *seconds, size_t n,
                               cdmpp_err *err) {
    cd_link k = {.from = from, .to = to, .how = how};
    if (n < 3 || n > 1000000)
        return CD_FAIL(err, EINVALID,
                       "from %s to %s: expected at least 3 measured pairs, found %zu", from, to, n);
    for (size_t i = 0; i < n; i++)
        if (!number(bytes[i], MAX_BYTES) || bytes[i] < 1 || !number(seconds[i], 1e9) ||
            seconds[i] <= 0)
            return CD_FAIL(
                err, EINVALID,
                "from %s to %s, pair %zu: expected bytes and seconds above 0, found %g, %g", from,
                to, i, bytes[i], seconds[i]);
    double *room = cd_mem_zalloc(9 * n + 32, sizeof *room);
    if (!room) return CD_FAIL(err, ENOMEM, "%zu pairs", n);
    pair *p = (pair *)(void *)room;
    for (size_t i = 0; i < n; i++) p[i] = (pair){bytes[i], seconds[i]};
    const cdmpp_status st = fit_pairs(l, &k, room, n, err);
    cd_mem_free(room);
    return st;
}

/* A chart of links: seconds against bytes, from 64 B to 256 MiB, both axes logarithmic, because
 * latency and bandwidth lie decades apart. */

/* powers of 2; points of each */
enum { FIRST = 6, LAST = 28, EACH = 4, POINTS = (LAST - FIRST) * EACH + 1 };

static void name_bytes(double v, char *buf, size_t n) {
    cd_buf b = {0};
    cd_units_put_bytes(&b, v);
    snprintf(buf, n, "%s", b.p ? b.p : "");
    cd_buf_free(&b);
}

static void name_us(double v, char *buf, size_t n) { snprintf(buf, n, "%g", v + 0.0); }

cdmpp_status cd_link_draw(const cd_link_table *l, const char *path, cdmpp_err *err) {
    double x[POINTS], y[POINTS], lo = HUGE_VAL, hi = 0;
    for (int i = 0; i < POINTS; i++) x[i] = exp2(FIRST + (double)i / EACH);
    for (size_t k = 0; k < l->n; k++) {
        lo = fmin(lo, 1e6 * cd_link_cost(&l->link[k], (int64_t)x[0]));
        hi = fmax(hi, 1e6 * cd_link_cost(&l->link[k], (int64_t)x[POINTS - 1]));
    }
    if (!(lo > 0 && hi > lo)) return CD_FAIL(err, ENODATA, "--svg: no link to draw");
    cd_chart c = {.p = {.x = {x[0], x[POINTS - 1], true}, .y = {lo, hi, true}}};
    cd_chart_begin(&c, "Links", "bytes", "microseconds", name_bytes, name_us);
    for (size_t k = 0; k < l->n; k++) {
        char text[200];
        for (int i = 0; i < POINTS; i++) y[i] = 1e6 * cd_link_cost(&l->link[k], (int64_t)x[i]);
        cd_plot_line(&c.p, x, y, POINTS, cd_chart_colour(k));
        snprintf(text, sizeof text, "%s > %s, %s", l->link[k].from, l->link[k].to, l->link[k].how);
        cd_chart_legend(&c, k, text);
    }
    return cd_chart_write(&c, path, err);
}

/* A machine as a table and as JSON. A machine without devices is a file of links alone: its table
 * has only the second part. */

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

void cd_machine_init(cd_machine *m) {
    *m = (cd_machine){0};
    cd_link_table_init(&m->links);
}

void cd_machine_free(cd_machine *m) {
    cd_link_table_free(&m->links);
    cd_arena_free(&m->arena);
    *m = (cd_machine){0};
}

static uint32_t find(const cd_machine *m, const char *name, size_t n) {
    for (uint32_t i = 0; i < m->n; i++)
        if (strlen(m->device[i].name) == n && !memcmp(m->device[i].name, name, n)) return i;
    return UINT32_MAX;
}

uint32_t cd_machine_find(const cd_machine *m, const char *name) {
    return find(m, name, strlen(name));
}

/* ---- adding ---- */
static bool is_cost(double v) { return isfinite(v) && v >= 0; }

/* A name is in lists with commas, in "from>to", and unchanged in generated C, DOT, HTML and
 * makefiles: so it has no letter that ends a comment, a text or a tag there. */
static bool good_name(const char *s) {
    if (!s || !s[0] || strlen(s) > 64) return false;
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || (unsigned char)*s > '~' ||
            strchr(",<>\"'\\/*&%$`;{}|#?!", *s))
            return false;
    return true;
}

static cdmpp_status check(const cd_machine_device *d, cdmpp_err *err) {
    if (!good_name(d->name))
        return CD_FAIL(err, EINVALID,
                       "expected a device's name of letters, digits and any of . : _ + - @ ( ) [ ] "
                       "= ~ ^, found '%.70s'",
                       d->name ? d->name : "");
    if (!d->kind || cd_enum_names_find(CD_MACHINE_KINDS, (cd_str){d->kind, strlen(d->kind)}) < 0)
        return CD_FAIL(err, EINVALID,
                       "device %s: expected a kind of " CD_MACHINE_KINDS ", found '%.60s'", d->name,
                       d->kind ? d->kind : "");
    const bool opencl = !strcmp(d->kind, "native") || !strcmp(d->kind, "opencl");
    if (opencl != (d->opencl != NULL))
        return CD_FAIL(err, EINVALID, "device %s of kind %s %s the name of an OpenCL device",
                       d->name, d->kind, opencl ? "needs" : "cannot have");
    if (d->core < -1 || d->core > 65535)
        return CD_FAIL(err, EINVALID, "device %s: expected a core of -1..65535, found %d", d->name,
                       d->core);
    if (!isfinite(d->scale) || d->scale <= 0)
        return CD_FAIL(err, EINVALID, "device %s: expected a scale above 0, found %g", d->name,
                       d->scale);
    if (!is_cost(d->launch_s) || !is_cost(d->sync_s) || !is_cost(d->wake_s))
        return CD_FAIL(
            err, EINVALID,
            "device %s: expected launch_s, sync_s and wake_s of at least 0, found %g, %g, %g",
            d->name, d->launch_s, d->sync_s, d->wake_s);
    return CDMPP_OK;
}

/* A copy of s in the arena; NULL stays. */
static cdmpp_status keep(cd_machine *m, const char **s, cdmpp_err *err) {
    if (!*s) return CDMPP_OK;
    *s = cd_str_dup(&m->arena, (cd_str){*s, strlen(*s)});
    return *s ? CDMPP_OK : CD_FAIL(err, ENOMEM, "device");
}

cdmpp_status cd_machine_add(cd_machine *m, const cd_machine_device *d, cdmpp_err *err) {
    cd_machine_device one = *d;
    CD_TRY(check(d, err));
    if (m->n == CD_MACHINE_DEVICES)
        return CD_FAIL(err, ERANGE, "device %s: a machine has at most %d devices", d->name,
                       CD_MACHINE_DEVICES);
    if (cd_machine_find(m, d->name) != UINT32_MAX)
        return CD_FAIL(err, EINVALID, "two devices are called %s", d->name);
    CD_TRY(keep(m, &one.name, err));
    CD_TRY(keep(m, &one.kind, err));
    CD_TRY(keep(m, &one.opencl, err));
    CD_TRY(keep(m, &one.target, err));
    CD_TRY(keep(m, &one.as, err));
    if (!one.times) one.times = 1;
    m->device[m->n++] = one;
    return CDMPP_OK;
}

/* ---- choosing ---- */
/* "cpu0, ocl0", as many as there is room for. */
static void list_names(const cd_machine *m, char *text, size_t room) {
    size_t at = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const char *const part[] = {i ? ", " : "", m->device[i].name};
        for (int k = 0; k < 2; k++)
            for (const char *c = part[k]; *c && at + 1 < room; c++) text[at++] = *c;
        text[at] = 0;
    }
}

static cdmpp_status choose_one(const cd_machine *m, const char *name, size_t n, cd_machine *out,
                               cdmpp_err *err) {
    const uint32_t i = find(m, name, n);
    char known[160];
    if (i != UINT32_MAX) return cd_machine_add(out, &m->device[i], err);
    list_names(m, known, sizeof known);
    return CD_FAIL(err, ESCHEMA, "no device '%.*s'; there %s %s", (int)(n < 60 ? n : 60), name,
                   m->n == 1 ? "is" : "are", m->n ? known : "none");
}

/* Links of devices that were not chosen are left out. */
cdmpp_status cd_machine_choose(const cd_machine *m, const char *list, cd_machine *out,
                               cdmpp_err *err) {
    cd_machine_init(out);
    for (const char *at = list, *end; at; at = end) {
        const size_t n = strcspn(at, ",");
        end = at[n] ? at + n + 1 : NULL;
        CD_TRY(choose_one(m, at, n, out, err));
    }
    for (size_t i = 0; i < m->links.n; i++) {
        const cd_link *k = &m->links.link[i];
        if (cd_machine_find(out, k->from) != UINT32_MAX &&
            cd_machine_find(out, k->to) != UINT32_MAX)
            CD_TRY(cd_link_table_add(&out->links, k, err));
    }
    out->contention = m->contention;
    out->measured = m->measured;
    out->kept = m->kept;
    out->noise = m->noise;
    return CDMPP_OK;
}
