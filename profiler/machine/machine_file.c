/* The description of a machine as JSON, in both directions; machine_description.h has the form. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "profiler/machine/link.h"
#include "profiler/machine/link_pairs.h"
#include "profiler/machine/machine.h"

/* The table of links as JSON, in both directions; link.h has the form. */

enum { MAX_FILE = 64 << 20 };

/* Append the array.
 *
 * One link a line, so that a file can be read and compared by people. */
static void link_table_print_array(const cd_link_table *l, cd_buf *b) {
    cd_buf_puts(b, "[");
    for (size_t i = 0; i < l->n; i++) {
        const cd_link *k = &l->link[i];
        cd_json_writer w = {.out = b, .colon = ": ", .sep = ", "};
        cd_buf_puts(b, i ? ",\n " : "\n ");
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "from", k->from);
        cd_json_write_member_str(&w, "to", k->to);
        cd_json_write_member_str(&w, "how", k->how);
        cd_json_write_member_int(&w, "n", k->n);
        cd_json_write_member_real(&w, "noise", k->noise);
        cd_json_write_key(&w, "pieces"), cd_json_write_open(&w, '[');
        for (uint32_t p = 0; p < k->n_piece; p++) {
            const double piece[] = {k->piece[p].bytes, k->piece[p].seconds, k->piece[p].s_per_byte};
            cd_json_write_reals(&w, piece, 3);
        }
        cd_json_write_close(&w, ']');
        cd_json_write_close(&w, '}');
    }
    cd_buf_puts(b, l->n ? "\n]" : "]");
}

void cd_link_table_print(const cd_link_table *l, cd_buf *b) {
    cd_buf_puts(b, "{\"cdmpp_links\": 1, \"links\": ");
    link_table_print_array(l, b);
    cd_buf_puts(b, "}\n");
}

cdmpp_status cd_link_table_write(const cd_link_table *l, const char *path, cdmpp_err *err) {
    cd_buf b = {0};
    cd_link_table_print(l, &b);
    cdmpp_status st = CDMPP_OK;
    if (b.oom) st = CD_FAIL(err, ENOMEM, "links");
    else st = cd_file_write(path, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

/* ---- reading ---- */
static cdmpp_status read_piece(const cd_json *v, cd_link_piece *out, cdmpp_err *err) {
    const cd_json *x;
    CD_TRY(cd_json_arr(v, 3, &x, err));
    CD_TRY(cd_json_real(x, &out->bytes, err));
    CD_TRY(cd_json_real(x->next, &out->seconds, err));
    return cd_json_real(x->next->next, &out->s_per_byte, err);
}

static cdmpp_status need_text(cd_arena *a, const cd_json *v, const char *key, const char **out,
                              cdmpp_err *err) {
    cd_str s;
    CD_TRY(cd_json_need_str(v, key, &s, err));
    *out = cd_str_dup(a, s);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%s", key);
}

/* The values are checked where a link is added. */
static cdmpp_status read_link(cd_link_table *l, cd_arena *a, const cd_json *v, cdmpp_err *err) {
    cd_link k = {0};
    const cd_json *pieces, *p;
    double n;
    CD_TRY(need_text(a, v, "from", &k.from, err));
    CD_TRY(need_text(a, v, "to", &k.to, err));
    CD_TRY(need_text(a, v, "how", &k.how, err));
    CD_TRY(cd_json_need_real(v, "n", 0, 4e9, &n, err));
    CD_TRY(cd_json_need_real(v, "noise", 0, 1e9, &k.noise, err));
    CD_TRY(cd_json_need(v, "pieces", &pieces, err));
    CD_TRY(cd_err_key(err, cd_json_arr(pieces, 1, &p, err), "pieces"));
    cd_link_piece *piece = CD_NEWN(a, cd_link_piece, pieces->n);
    if (!piece) return CD_FAIL(err, ENOMEM, "%u pieces", pieces->n);
    for (uint32_t i = 0; i < pieces->n; i++, p = p->next)
        CD_TRY(cd_err_key(err, cd_err_index(err, read_piece(p, &piece[i], err), i), "pieces"));
    k.n = (uint32_t)n;
    k.n_piece = pieces->n;
    k.piece = piece;
    return cd_link_table_add(l, &k, err);
}

/* Add the links of a JSON array. `a` is scratch. Errors: those of cd_link_table_parse, with the
 * key. */
static cdmpp_status link_table_read_array(cd_link_table *l, cd_arena *a, const cd_json *links,
                                          cdmpp_err *err) {
    const cd_json *v;
    CD_TRY(cd_err_key(err, cd_json_arr(links, 0, &v, err), "links"));
    for (size_t i = 0; v; i++, v = v->next)
        CD_TRY(cd_err_key(err, cd_err_index(err, read_link(l, a, v, err), i), "links"));
    return CDMPP_OK;
}

static cdmpp_status parse_link(cd_link_table *l, cd_arena *a, const char *text, size_t n,
                               cdmpp_err *err) {
    const cd_json *root, *links;
    double version;
    CD_TRY(cd_json_parse(a, text, n, &root, err));
    CD_TRY(cd_json_need_real(root, "cdmpp_links", 1, 1, &version, err));
    CD_TRY(cd_json_need(root, "links", &links, err));
    return link_table_read_array(l, a, links, err);
}

cdmpp_status cd_link_table_parse(cd_link_table *l, const char *text, size_t n, cdmpp_err *err) {
    cd_arena a = {0};
    const cdmpp_status st = parse_link(l, &a, text, n, err);
    cd_arena_free(&a);
    return st;
}

cdmpp_status cd_link_table_read(cd_link_table *l, const char *path, cdmpp_err *err) {
    char *text;
    size_t n;
    CD_TRY(cd_file_read(path, MAX_FILE, &text, &n, err));
    const cdmpp_status st = cd_err_at(err, cd_link_table_parse(l, text, n, err), path, 0);
    cd_mem_free(text);
    return st;
}

/* Measured pairs from a file become a link. The error of the fit is reported with it, so that a
 * user sees whether pieces suit these pairs. */

/* One block for both: *seconds lies in it, behind *bytes. */
static cdmpp_status pairs_of(const cd_csv_table *t, double **bytes, double **seconds,
                             cdmpp_err *err) {
    size_t b, s;
    CD_TRY(cd_csv_table_need(t, "bytes", &b, err));
    CD_TRY(cd_csv_table_need(t, "seconds", &s, err));
    *bytes = cd_mem_zalloc(2 * t->n_row, sizeof **bytes);
    if (!*bytes) return CD_FAIL(err, ENOMEM, "%zu pairs", t->n_row);
    *seconds = *bytes + t->n_row;
    for (size_t i = 0; i < t->n_row; i++) {
        CD_TRY(cd_csv_table_number(t, i, b, &(*bytes)[i], err));
        CD_TRY(cd_csv_table_number(t, i, s, &(*seconds)[i], err));
    }
    return CDMPP_OK;
}

static cd_link_error errors_of(const cd_link *k, const double *bytes, const double *seconds,
                               size_t n) {
    cd_link_error e = {0};
    for (size_t i = 0; i < n; i++) {
        const double off = fabs(cd_link_cost(k, (int64_t)bytes[i]) / seconds[i] - 1);
        e.mean += off / (double)n;
        if (off >= e.worst) e.worst = off, e.worst_bytes = bytes[i];
    }
    return e;
}

cdmpp_status cd_link_pairs_fit(const char *path, const char *from, const char *to, const char *how,
                               cd_link_table *l, cd_link_error *error, cdmpp_err *err) {
    cd_csv_table t;
    double *bytes = NULL, *seconds = NULL;
    cdmpp_status st = cd_csv_table_read(&t, path, err);
    if (!st) st = pairs_of(&t, &bytes, &seconds, err);
    if (!st)
        st = cd_err_at(err, cd_link_table_fit(l, from, to, how, bytes, seconds, t.n_row, err), path,
                       0);
    if (!st) *error = errors_of(cd_link_table_find(l, from, to), bytes, seconds, t.n_row);
    cd_mem_free(bytes);
    cd_csv_table_free(&t);
    return st;
}

/* ---- writing ---- */
static void put_text(cd_json_writer *w, const char *key, const char *s) {
    if (s) cd_json_write_member_str(w, key, s);
}

/* Members that have their default are left out. */
static void put_device(cd_json_writer *w, const cd_machine_device *d) {
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "name", d->name);
    put_text(w, "kind", d->kind);
    put_text(w, "opencl", d->opencl);
    if (d->core >= 0) cd_json_write_member_int(w, "core", d->core);
    put_text(w, "target", d->target);
    put_text(w, "as", d->as);
    cd_json_write_member_real(w, "scale", d->scale);
    if (d->times != 1) cd_json_write_member_int(w, "times", d->times);
    cd_json_write_member_int(w, "memory", d->memory);
    cd_json_write_member_real(w, "launch_s", d->launch_s);
    cd_json_write_member_real(w, "sync_s", d->sync_s);
    cd_json_write_member_real(w, "wake_s", d->wake_s);
    if (d->mem_gb > 0) cd_json_write_member_real(w, "mem_gb", d->mem_gb);
    cd_json_write_close(w, '}');
}

static void put_contention(cd_json_writer *w, const cd_contention *c) {
    cd_json_write_open(w, '{');
    cd_json_write_member_real(w, "peak_bytes_per_s", c->peak_bytes_per_s);
    cd_json_write_member_real(w, "beside", c->beside);
    cd_json_write_member_real(w, "turn", c->turn);
    cd_json_write_member_int(w, "pairs", c->n_pair);
    cd_json_write_member_real(w, "error", c->error);
    cd_json_write_close(w, '}');
}

static void put_noise(cd_json_writer *w, const cd_machine *m) {
    cd_json_write_open(w, '{');
    cd_json_write_member_real(w, "spread", m->noise.spread);
    if (m->noise.others >= 0) cd_json_write_member_real(w, "others", m->noise.others);
    if (m->noise.worst[0]) cd_json_write_member_str(w, "figure", m->noise.worst);
    if (m->kept) cd_json_write_member_bool(w, "kept", true);
    cd_json_write_close(w, '}');
}

/* False: it was not measured, so nothing is written. */
static bool has_contention(const cd_contention *c) {
    return c->peak_bytes_per_s > 0 || c->beside > 0 || c->turn > 0;
}

void cd_machine_print(const cd_machine *m, cd_buf *b) {
    cd_buf_puts(b, "{\"cdmpp_machine\": 1,\n \"devices\": [");
    for (uint32_t i = 0; i < m->n; i++) {
        cd_buf_puts(b, i ? ",\n  " : "\n  ");
        put_device(&(cd_json_writer){.out = b, .colon = ": ", .sep = ", "}, &m->device[i]);
    }
    cd_buf_puts(b, "],\n \"links\": ");
    link_table_print_array(&m->links, b);
    if (has_contention(&m->contention)) {
        cd_buf_puts(b, ",\n \"contention\": ");
        put_contention(&(cd_json_writer){.out = b, .colon = ": ", .sep = ", "}, &m->contention);
    }
    if (m->measured) {
        cd_buf_puts(b, ",\n \"noise\": ");
        put_noise(&(cd_json_writer){.out = b, .colon = ": ", .sep = ", "}, m);
    }
    cd_buf_puts(b, "}\n");
}

cdmpp_status cd_machine_write(const cd_machine *m, const char *path, cdmpp_err *err) {
    cd_buf b = {0};
    cd_machine_print(m, &b);
    cdmpp_status st = CDMPP_OK;
    if (b.oom) st = CD_FAIL(err, ENOMEM, "machine");
    else st = cd_file_write(path, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

/* ---- reading ---- */
/* A text that may be missing: *out stays. */
static cdmpp_status text(cd_arena *a, const cd_json *v, const char *key, const char **out,
                         cdmpp_err *err) {
    const cd_json *x = cd_json_get(v, key);
    cd_str s;
    if (!x || x->kind == CD_JSON_NULL) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_json_str(x, &s, err), key));
    *out = cd_str_dup(a, s);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%s", key);
}

static cdmpp_status whole(const cd_json *v, const char *key, int64_t lo, int64_t hi, int64_t *out,
                          cdmpp_err *err) {
    const cd_json *x = cd_json_get(v, key);
    return x ? cd_err_key(err, cd_json_int(x, lo, hi, out, err), key) : CDMPP_OK;
}

/* cd_machine_add checks the values; here only their types and ranges are. */
static cdmpp_status read_device(cd_machine *m, cd_arena *a, const cd_json *v, cdmpp_err *err) {
    cd_machine_device d = {.scale = 1};
    int64_t core = -1, memory = 0, times = 1;
    cd_str name;
    CD_TRY(cd_json_need_str(v, "name", &name, err));
    CD_TRY(text(a, v, "name", &d.name, err));
    CD_TRY(cd_json_need_str(v, "kind", &name, err));
    CD_TRY(text(a, v, "kind", &d.kind, err));
    CD_TRY(text(a, v, "opencl", &d.opencl, err));
    CD_TRY(text(a, v, "target", &d.target, err));
    CD_TRY(text(a, v, "as", &d.as, err));
    CD_TRY(whole(v, "core", -1, 65535, &core, err));
    CD_TRY(whole(v, "memory", 0, UINT32_MAX, &memory, err));
    CD_TRY(whole(v, "times", 1, 1000000, &times, err));
    if (cd_json_get(v, "scale")) CD_TRY(cd_json_need_real(v, "scale", 0, 1e12, &d.scale, err));
    CD_TRY(cd_json_need_real(v, "launch_s", 0, 1e6, &d.launch_s, err));
    CD_TRY(cd_json_need_real(v, "sync_s", 0, 1e6, &d.sync_s, err));
    if (cd_json_get(v, "wake_s")) CD_TRY(cd_json_need_real(v, "wake_s", 0, 1e6, &d.wake_s, err));
    if (cd_json_get(v, "mem_gb")) CD_TRY(cd_json_need_real(v, "mem_gb", 0, 1e9, &d.mem_gb, err));
    d.core = (int)core;
    d.memory = (uint32_t)memory;
    d.times = (unsigned)times;
    return cd_machine_add(m, &d, err);
}

static cdmpp_status read_contention(const cd_json *v, cd_contention *out, cdmpp_err *err) {
    double pairs = 0;
    CD_TRY(cd_json_need_real(v, "peak_bytes_per_s", 0, 1e18, &out->peak_bytes_per_s, err));
    CD_TRY(cd_json_need_real(v, "beside", 1, 1e6, &out->beside, err));
    CD_TRY(cd_json_need_real(v, "turn", 1, 1e6, &out->turn, err));
    if (cd_json_get(v, "pairs")) CD_TRY(cd_json_need_real(v, "pairs", 0, 4e9, &pairs, err));
    if (cd_json_get(v, "error")) CD_TRY(cd_json_need_real(v, "error", 0, 1e9, &out->error, err));
    out->n_pair = (uint32_t)pairs;
    return CDMPP_OK;
}

static cdmpp_status read_noise(cd_machine *m, const cd_json *v, cdmpp_err *err) {
    const cd_json *kept = cd_json_get(v, "kept"), *figure = cd_json_get(v, "figure");
    cd_str name = {"", 0};
    m->noise = (cd_noise){.others = (double)NAN};
    m->measured = true;
    CD_TRY(cd_json_need_real(v, "spread", 0, 1e9, &m->noise.spread, err));
    if (cd_json_get(v, "others"))
        CD_TRY(cd_json_need_real(v, "others", 0, 1, &m->noise.others, err));
    if (figure) CD_TRY(cd_err_key(err, cd_json_str(figure, &name, err), "figure"));
    (void)snprintf(m->noise.worst, sizeof m->noise.worst, "%.*s",
                   (int)(name.n < sizeof m->noise.worst ? name.n : sizeof m->noise.worst - 1),
                   name.p);
    if (kept && kept->kind != CD_JSON_BOOL)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected true or false"), "kept");
    m->kept = kept && kept->u.i;
    return CDMPP_OK;
}

/* A link of an unknown device is a typing error in its name. */
static cdmpp_status check_links(const cd_machine *m, cdmpp_err *err) {
    for (size_t i = 0; i < m->links.n; i++) {
        const char *const end[] = {m->links.link[i].from, m->links.link[i].to};
        for (int k = 0; k < 2; k++)
            if (cd_machine_find(m, end[k]) == UINT32_MAX)
                return CD_FAIL(err, ESCHEMA, "links[%zu]: no device '%.64s'", i, end[k]);
    }
    return CDMPP_OK;
}

static cdmpp_status parse(cd_machine *m, cd_arena *a, const char *t, size_t n, cdmpp_err *err) {
    const cd_json *root, *list, *v;
    double version;
    CD_TRY(cd_json_parse(a, t, n, &root, err));
    CD_TRY(cd_json_need_real(root, "cdmpp_machine", 1, 1, &version, err));
    CD_TRY(cd_json_need(root, "devices", &list, err));
    CD_TRY(cd_err_key(err, cd_json_arr(list, 1, &v, err), "devices"));
    for (size_t i = 0; v; i++, v = v->next)
        CD_TRY(cd_err_key(err, cd_err_index(err, read_device(m, a, v, err), i), "devices"));
    if (cd_json_get(root, "links"))
        CD_TRY(link_table_read_array(&m->links, a, cd_json_get(root, "links"), err));
    const cd_json *c = cd_json_get(root, "contention");
    if (c) CD_TRY(cd_err_key(err, read_contention(c, &m->contention, err), "contention"));
    const cd_json *noise = cd_json_get(root, "noise");
    if (noise) CD_TRY(cd_err_key(err, read_noise(m, noise, err), "noise"));
    return check_links(m, err);
}

cdmpp_status cd_machine_parse(cd_machine *m, const char *t, size_t n, cdmpp_err *err) {
    cd_arena a = {0};
    const cdmpp_status st = parse(m, &a, t, n, err);
    cd_arena_free(&a);
    return st;
}

cdmpp_status cd_machine_read(cd_machine *m, const char *path, cdmpp_err *err) {
    char *t;
    size_t n;
    CD_TRY(cd_file_read(path, MAX_FILE, &t, &n, err));
    const cdmpp_status st = cd_err_at(err, cd_machine_parse(m, t, n, err), path, 0);
    cd_mem_free(t);
    return st;
}

/* The schema key of the error says which kind of file it is not. A bad file of links gets the error
 * about links. */
cdmpp_status cd_machine_read_or_links(cd_machine *m, const char *path, cdmpp_err *err) {
    const cdmpp_status st = cd_machine_read(m, path, err);
    if (st != CDMPP_ESCHEMA || !err || strcmp(err->key, "cdmpp_machine") != 0) return st;
    cdmpp_err other = {0};
    const cdmpp_status as_links = cd_link_table_read(&m->links, path, &other);
    if (!as_links) *err = (cdmpp_err){0};
    else if (strcmp(other.key, "cdmpp_links") != 0) *err = other;
    return as_links ? err->code : CDMPP_OK;
}

cdmpp_status cd_machine_contention(const char *path, cd_contention *out, cdmpp_err *err) {
    cd_machine m;
    cd_machine_init(&m);
    cdmpp_status st = cd_machine_read(&m, path, err);
    if (!st && !(m.contention.beside > 0))
        st = cd_err_at(err, CD_FAIL(err, ENODATA, "nothing about contention"), path, 0);
    *out = m.contention;
    cd_machine_free(&m);
    return st;
}
