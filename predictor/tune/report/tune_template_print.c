/* The templates of tasks: for people a line a candidate, for programs JSON, and records that other
 * commands read. */
#include "base/io/io.h"
#include "predictor/tune/report/report.h"

static const char *const copy_name[CD_TEMPLATE_COPIES] = {"root", "outer", "inner"};

typedef struct {
    const cd_template_nest *n;
    const cd_template_block *b; /* (count) */
    const cd_tune_cand *c;      /* (count) */
    size_t count, all;
    const cd_template_machine *m;
} shown;

static bool copies(const cd_template_nest *n) { return n->in[0].guarded || n->in[1].guarded; }

/* ---- text ---- */
/* "1x8x16" */
static void lengths(cd_buf *b, const int32_t *len, uint32_t from, uint32_t to, int width) {
    const size_t at = b->n;
    for (uint32_t a = from; a < to; a++) cd_buf_putf(b, "%s%d", a > from ? "x" : "", len[a]);
    for (size_t n = b->n - at; n < (size_t)width; n++) cd_buf_puts(b, " ");
}

enum { WIDTH = 14 };

static void text_of(cd_buf *b, const cd_tune_unit *u, const shown *s) {
    const cd_template_nest *n = s->n;
    cd_buf_putf(b, "%s: ", u->name);
    for (uint32_t a = 0; a < n->n_axis; a++)
        cd_buf_putf(b, "%s%lld",
                    !a                ? ""
                    : a == n->n_space ? " sum "
                                      : "x",
                    (long long)n->extent[a]);
    cd_buf_putf(
        b, "; %lld registers of %lld bytes, L1 %lld, L2 %lld bytes, threads %lld; %zu of %zu\n",
        (long long)s->m->registers, (long long)s->m->vector_bytes, (long long)s->m->l1_bytes,
        (long long)s->m->l2_bytes, (long long)s->m->threads, s->count, s->all);
    cd_buf_putf(b, "  %-*s%-*s%-*s%-*s%9s %8s %8s %6s %6s\n", WIDTH, "S1", WIDTH, "S2", WIDTH, "R1",
                WIDTH, "S3", "registers", "L1", "L2", "unroll", copies(n) ? "copy" : "");
    for (size_t k = 0; k < s->count; k++) {
        const cd_template_block *c = &s->b[k];
        cd_buf_puts(b, "  ");
        lengths(b, c->s1, 0, n->n_space, WIDTH);
        lengths(b, c->s2, 0, n->n_space, WIDTH);
        lengths(b, c->r1, n->n_space, n->n_axis, WIDTH);
        lengths(b, c->s3, 0, n->n_space, WIDTH);
        cd_buf_putf(b, "%9lld %8lld %8lld %6u%s%s\n",
                    (long long)cd_template_registers(n, s->m, c->s3),
                    (long long)cd_template_l1_bytes(n, s->m, c),
                    (long long)cd_template_l2_bytes(n, s->m, c), c->unroll, copies(n) ? "  " : "",
                    copies(n) ? copy_name[c->copy] : "");
    }
}

/* ---- JSON ---- */
static void json_lengths(cd_json_writer *w, const char *key, const int32_t *len, uint32_t from,
                         uint32_t to) {
    cd_json_write_key(w, key);
    cd_json_write_open(w, '[');
    for (uint32_t a = from; a < to; a++) cd_json_write_int(w, len[a]);
    cd_json_write_close(w, ']');
}

static void json_block(cd_json_writer *w, const shown *s, const cd_template_block *c) {
    const cd_template_nest *n = s->n;
    cd_json_write_open(w, '{');
    json_lengths(w, "s1", c->s1, 0, n->n_space);
    json_lengths(w, "s2", c->s2, 0, n->n_space);
    json_lengths(w, "s3", c->s3, 0, n->n_space);
    json_lengths(w, "r1", c->r1, n->n_space, n->n_axis);
    cd_json_write_member_int(w, "registers", cd_template_registers(n, s->m, c->s3));
    cd_json_write_member_int(w, "l1_bytes", cd_template_l1_bytes(n, s->m, c));
    cd_json_write_member_int(w, "l2_bytes", cd_template_l2_bytes(n, s->m, c));
    cd_json_write_member_int(w, "unroll", c->unroll);
    if (copies(n)) cd_json_write_member_str(w, "copy", copy_name[c->copy]);
    cd_json_write_member_real(w, "cost", c->cost);
    cd_json_write_close(w, '}');
}

static void json_of(cd_json_writer *w, const cd_tune_unit *u, const shown *s, const char *why) {
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "workload_key", u->of.task->workload_key);
    cd_json_write_member_str(w, "target", u->of.target);
    if (why) cd_json_write_member_str(w, "without", why);
    else {
        cd_json_write_key(w, "machine");
        cd_json_write_open(w, '{');
        cd_json_write_member_int(w, "vector_bytes", s->m->vector_bytes);
        cd_json_write_member_int(w, "registers", s->m->registers);
        cd_json_write_member_int(w, "l1_bytes", s->m->l1_bytes);
        cd_json_write_member_int(w, "l2_bytes", s->m->l2_bytes);
        cd_json_write_member_int(w, "threads", s->m->threads);
        cd_json_write_close(w, '}');
        cd_json_write_key(w, "templates");
        cd_json_write_open(w, '[');
        for (size_t k = 0; k < s->count; k++) json_block(w, s, &s->b[k]);
        cd_json_write_close(w, ']');
    }
    cd_json_write_close(w, '}');
}

/* ---- all ---- */
static cdmpp_status records_of(cd_buf *lines, const cd_tune_unit *u, const shown *s,
                               cdmpp_err *err) {
    for (size_t k = 0; k < s->count; k++) {
        cd_record r;
        cd_tune_record(&u->of, &s->c[k], &r);
        CD_TRY(cd_record_write(lines, &r, err));
    }
    return CDMPP_OK;
}

static cdmpp_status one(cd_buf *b, cd_json_writer *w, cd_tune_template_shown *t,
                        const cd_tune_unit *u, cd_buf *records, cdmpp_err *err) {
    cd_template_machine m;
    cd_tune_space *space = NULL;
    cdmpp_err why = {0};
    shown s = {.m = &m};
    cdmpp_status st = cd_tune_template_space(&u->of, &t->o, 0, &space, &m, &why);
    if (st && st != CDMPP_EUNSUPPORTED) {
        if (err) *err = why;
        return st;
    }
    if (st) {
        t->without++;
        if (t->json) json_of(w, u, NULL, why.msg);
        else cd_buf_putf(b, "%s: no template: %s\n", u->name, why.msg);
        return CDMPP_OK;
    }
    st = space->kind->list(space, &s.c, &s.all, err);
    s.count = s.all < t->most ? s.all : t->most;
    s.b = cd_tune_space_template_blocks(space, &s.n);
    if (!st && t->json) json_of(w, u, &s, NULL);
    else if (!st) text_of(b, u, &s);
    if (!st && t->out) st = records_of(records, u, &s, err);
    cd_tune_space_free(space);
    return st;
}

cdmpp_status cd_tune_template_print(cd_buf *b, cd_tune_template_shown *t, cdmpp_err *err) {
    cd_json_writer w = {.out = b};
    cd_buf records = {0};
    cdmpp_status st = CDMPP_OK;
    if (t->json) cd_json_write_open(&w, '[');
    for (uint32_t i = 0; !st && i < t->tasks->n; i++)
        st = one(b, &w, t, &t->tasks->unit[i], &records, err);
    if (t->json) cd_json_write_close(&w, ']');
    if (!st && records.oom) st = CD_FAIL(err, ENOMEM, "records");
    if (!st && t->out) st = cd_file_write(t->out, records.p ? records.p : "", records.n, err);
    cd_buf_free(&records);
    return st;
}
