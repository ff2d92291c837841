/* A network as bytes: safetensors with its description as metadata. One table of fields serves
 * writing and reading. */
#include <stddef.h>
#include <string.h>

#include "learner/nn/nn_internal.h"

typedef enum { INT, REAL, FLAG, WORD } field_type;
typedef struct {
    const char *name;
    field_type type;
    size_t offset;
    const char *words; /* WORD: "a|b|c", stored as the word */
} field;

#define F(name, type, words)                                                                       \
    { #name, type, offsetof(cd_net_config, name), words }
static const field fields[] = {F(kind, WORD, CD_NET_KINDS),
                               F(tokens, WORD, CD_NET_TOKENS),
                               F(layers, INT, 0),
                               F(width, INT, 0),
                               F(heads, INT, 0),
                               F(ff, INT, 0),
                               F(pre_norm, FLAG, 0),
                               F(skip, FLAG, 0),
                               F(head, WORD, CD_NET_HEADS),
                               F(slots, INT, 0),
                               F(values, INT, 0),
                               F(log_values, FLAG, 0),
                               F(temperature, REAL, 0),
                               F(trips, FLAG, 0),
                               F(head_first, INT, 0),
                               F(head_width, INT, 0),
                               F(head_depth, INT, 0),
                               F(embed, INT, 0),
                               F(decoder_width, INT, 0),
                               F(decoder_depth, INT, 0),
                               F(side_width, INT, 0),
                               F(side_depth, INT, 0),
                               F(norm, WORD, CD_NET_NORMS),
                               F(act, WORD, CD_NET_ACTS),
                               F(dropout, REAL, 0),
                               F(dropout_mlp, REAL, 0),
                               F(position, WORD, CD_NET_POSITIONS),
                               F(context, FLAG, 0),
                               F(derived, FLAG, 0),
                               F(device, FLAG, 0),
                               F(program, FLAG, 0),
                               F(facts, FLAG, 0),
                               F(n_out, INT, 0),
                               F(w_dev, INT, 0)};
enum { N_FIELD = sizeof fields / sizeof *fields };

/* Files of the other kinds are as they were before there was this one. */
static bool only_tlp(const field *f) {
    return f->offset == offsetof(cd_net_config, values) ||
           f->offset == offsetof(cd_net_config, log_values);
}

/* Likewise of networks without facts. */
static bool is_facts(const field *f) { return f->offset == offsetof(cd_net_config, facts); }

/* ---- writing ---- */
static void put_field(cd_buf *b, const field *f, const void *at) {
    cd_str w;
    cd_buf_putf(b, "\"%s\":", f->name);
    switch (f->type) {
    case INT: cd_buf_put_int(b, *(const int64_t *)at); break;
    case REAL: cd_buf_putf(b, "%.17g", *(const double *)at); break;
    case FLAG: cd_buf_puts(b, *(const bool *)at ? "true" : "false"); break;
    case WORD: w = cd_enum_names_at(f->words, *(const int *)at); cd_buf_put_json_str(b, w.p, w.n);
    }
}

void cd_net_config_json(cd_buf *b, const cd_net_config *s) {
    for (size_t i = 0; i < N_FIELD; i++) {
        if ((only_tlp(&fields[i]) && s->kind != CD_NET_TLP) || (is_facts(&fields[i]) && !s->facts))
            continue;
        cd_buf_puts(b, i ? "," : "{");
        put_field(b, &fields[i], (const char *)s + fields[i].offset);
    }
    cd_buf_puts(b, "}");
}

static void put_spec(cd_buf *b, const cd_net_config *s) {
    cd_buf text = {0};
    cd_net_config_json(&text, s);
    cd_buf_puts(b, "{\"cdmpp.net\":"); /* metadata are texts: JSON within JSON */
    cd_buf_put_json_str(b, text.p ? text.p : "", text.n);
    cd_buf_puts(b, "}");
    b->oom = b->oom || text.oom;
    cd_buf_free(&text);
}

cdmpp_status cd_net_save(const cd_net *net, const cd_scalers *s, cd_buf *out, cdmpp_err *err) {
    cd_tensor *t = cd_mem_zalloc(net->params.n + CD_SCALERS_TENSORS, sizeof *t);
    cd_buf meta = {0};
    if (!t) return CD_FAIL(err, ENOMEM, "list of tensors");
    cd_params_tensors(&net->params, t);
    const size_t n = net->params.n + cd_scalers_tensors(s, t + net->params.n);
    put_spec(&meta, &net->spec);
    if (!meta.oom) cd_safetensors_write(out, t, n, meta.p);
    const bool oom = meta.oom || out->oom;
    cd_buf_free(&meta);
    cd_mem_free(t);
    return oom ? CD_FAIL(err, ENOMEM, "file of %zu tensors", n) : CDMPP_OK;
}

/* ---- reading ---- */
static cdmpp_status get_word(const cd_json *v, const char *words, int *out, cdmpp_err *err) {
    cd_str s;
    CD_TRY(cd_json_str(v, &s, err));
    *out = cd_enum_names_find(words, s);
    return *out >= 0 ? CDMPP_OK : CD_FAIL(err, ESCHEMA, "expected one of %s", words);
}

static cdmpp_status get_field(const field *f, const cd_json *v, void *at, cdmpp_err *err) {
    /* older files, when leaves were the only tokens */
    if (!v && f->offset == offsetof(cd_net_config, tokens)) {
        *(int *)at = CD_TOKENS_LEAVES;
        return CDMPP_OK;
    }
    /* 0, which the check refuses of a tlp, and false */
    if (!v && (only_tlp(f) || is_facts(f))) return CDMPP_OK;
    if (!v) return CD_FAIL(err, ESCHEMA, "missing");
    switch (f->type) {
    case INT: return cd_json_int(v, INT64_MIN, INT64_MAX, at, err);
    case REAL: return cd_json_real(v, at, err);
    case FLAG:
        if (v->kind != CD_JSON_BOOL) return CD_FAIL(err, ESCHEMA, "expected true or false");
        *(bool *)at = v->u.i != 0;
        return CDMPP_OK;
    default: return get_word(v, f->words, at, err);
    }
}

static cdmpp_status get_spec(cd_arena *a, const cd_safetensors *f, cd_net_config *s,
                             cdmpp_err *err) {
    const cd_json *text = cd_safetensors_meta(f, "cdmpp.net"), *v;
    if (!text) return CD_FAIL(err, EMODEL, "no description of a network (metadata cdmpp.net)");
    CD_TRY(cd_json_parse(a, text->u.s.p, text->u.s.n, &v, err));
    for (size_t i = 0; i < N_FIELD; i++)
        CD_TRY(cd_err_key(err,
                          get_field(&fields[i], cd_json_get(v, fields[i].name),
                                    (char *)s + fields[i].offset, err),
                          fields[i].name));
    return CDMPP_OK;
}

static cdmpp_status load(cd_arena *a, const void *bytes, size_t n, cd_net **out, cd_scalers *s,
                         cdmpp_err *err) {
    cd_safetensors f;
    cd_net_config spec = {0};
    CD_TRY(cd_safetensors_open(a, bytes, n, &f, err));
    CD_TRY(get_spec(a, &f, &spec, err));
    /* no more than the file holds */
    CD_TRY(cd_net_new_within(&spec, 0, f.n_data / sizeof(float), out, err));
    const cd_batch_spec b = cd_net_batch_spec(&spec, NULL, 0);
    const size_t want = (*out)->params.n + CD_SCALERS_TENSORS;
    if (cd_safetensors_count(&f) != want)
        return CD_FAIL(err, EMODEL, "expected %zu tensors, found %zu", want,
                       cd_safetensors_count(&f));
    CD_TRY(cd_params_read(&(*out)->params, &f, err));
    CD_TRY(cd_scalers_init(s, &b, err));
    return cd_scalers_read(s, &f, err);
}

cdmpp_status cd_net_load(const void *bytes, size_t n, cd_net **out, cd_scalers *s, cdmpp_err *err) {
    cd_arena a = {0};
    *out = NULL;
    memset(s, 0, sizeof *s);
    const cdmpp_status st = load(&a, bytes, n, out, s, err);
    cd_arena_free(&a);
    if (!st) return CDMPP_OK;
    cd_net_free(*out);
    cd_scalers_free(s);
    *out = NULL;
    return st;
}
