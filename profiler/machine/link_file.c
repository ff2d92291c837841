/* The table of links as JSON, in both directions; link.h has the form. */
#include <string.h>

#include "base/io/io.h"
#include "profiler/machine/link_internal.h"

enum { MAX_FILE = 64 << 20 };

/* One link a line, so that a file can be read and compared by people. */
void cd_link_table_print_array(const cd_link_table *l, cd_buf *b) {
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
    cd_link_table_print_array(l, b);
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

cdmpp_status cd_link_table_read_array(cd_link_table *l, cd_arena *a, const cd_json *links,
                                      cdmpp_err *err) {
    const cd_json *v;
    CD_TRY(cd_err_key(err, cd_json_arr(links, 0, &v, err), "links"));
    for (size_t i = 0; v; i++, v = v->next)
        CD_TRY(cd_err_key(err, cd_err_index(err, read_link(l, a, v, err), i), "links"));
    return CDMPP_OK;
}

static cdmpp_status parse(cd_link_table *l, cd_arena *a, const char *text, size_t n,
                          cdmpp_err *err) {
    const cd_json *root, *links;
    double version;
    CD_TRY(cd_json_parse(a, text, n, &root, err));
    CD_TRY(cd_json_need_real(root, "cdmpp_links", 1, 1, &version, err));
    CD_TRY(cd_json_need(root, "links", &links, err));
    return cd_link_table_read_array(l, a, links, err);
}

cdmpp_status cd_link_table_parse(cd_link_table *l, const char *text, size_t n, cdmpp_err *err) {
    cd_arena a = {0};
    const cdmpp_status st = parse(l, &a, text, n, err);
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
