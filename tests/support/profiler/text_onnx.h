/* text_onnx.h -- an ONNX file from a few words.
 *
 *   in x fB,4; init w f4,3; MatMul p(x, w)->y; out y
 *
 * Statements end with ";". TYPE: a letter (f float32, l int64, b bool, i int32, s int8, t string)
 * and the dimensions: numbers, names, "?" (no value), or "*" for no shape at all; "seq": a
 * sequence.
 *   in NAME TYPE; out NAME [TYPE]; info NAME TYPE; init NAME TYPE[=NUMBER ...]; sparse NAME TYPE;
 *   sparse - TYPE (without values)
 *   OPERATOR NAME(OPERAND, ...)->RESULT, ... [ATTRIBUTE=NUMBER|"text"|<TYPE=NUMBER
 *   ...>|{STATEMENTS}] ...;   OPERATOR: DOMAIN.NAME; NAME "-": none */
#ifndef TEXT_ONNX_H
#define TEXT_ONNX_H
#include <ctype.h>

#include "made_onnx.h"

static inline void to_graph(cd_buf *g, const char **s, unsigned depth);

static inline void to_blank(const char **s) { *s += strspn(*s, " \n"); }
static inline bool to_is(const char **s, char c) {
    to_blank(s);
    if (**s != c) return false;
    ++*s;
    return true;
}
static inline size_t to_word(const char **s, char word[64]) {
    to_blank(s);
    const size_t n = strcspn(*s, " \n;,()=<>{}\"");
    if (n > 63) abort();
    memcpy(word, *s, n);
    word[n] = 0;
    *s += n;
    return n;
}

static inline uint64_t to_type(char c) {
    static const char types[] = "\1f\2u\3s\6i\7l\10t\11b";
    const char *t = strchr(types, c);
    return t ? (uint64_t)t[-1] : 99; /* none that exists */
}

/* "f2,B,?" -> TypeProto */
static inline void to_type_of(cd_buf *type, const char **s) {
    cd_buf tensor = {0}, shape = {0};
    to_blank(s);
    if (!strncmp(*s, "seq", 3)) {
        *s += 3;
        mo_bytes(type, 4, "", 0);
        return;
    }
    mo_int(&tensor, 1, to_type(*(*s)++));
    if (**s == '*') ++*s;
    else {
        for (char word[64]; to_word(s, word);) {
            cd_buf d = {0};
            if (isdigit((unsigned char)*word) || *word == '-')
                mo_int(&d, 1, (uint64_t)strtoll(word, NULL, 10));
            else if (*word != '?') mo_text(&d, 2, word);
            mo_message(&shape, 1, &d);
            if (**s != ',') break;
            ++*s;
        }
        mo_message(&tensor, 2, &shape);
    }
    mo_message(type, 1, &tensor);
}

static inline void to_value(cd_buf *g, uint32_t field, const char **s) {
    cd_buf v = {0}, type = {0};
    char name[64];
    to_word(s, name);
    mo_text(&v, 1, name);
    to_blank(s);
    if (**s && !strchr(";}", **s)) {
        to_type_of(&type, s);
        mo_message(&v, 2, &type);
    }
    mo_message(g, field, &v);
}

/* "l2=1 5" -> TensorProto without its name; numbers in the list of their type. */
static inline void to_tensor(cd_buf *t, const char **s) {
    char word[64];
    to_blank(s);
    const char letter = *(*s)++;
    while (isdigit((unsigned char)**s) || **s == ',' || **s == '-') {
        char *end;
        mo_int(t, 1, (uint64_t)strtoll(*s, &end, 10));
        *s = end + (*end == ',');
    }
    mo_int(t, 2, to_type(letter));
    if (!to_is(s, '=')) return;
    while (to_word(s, word)) {
        const float f = strtof(word, NULL);
        if (letter == 'f') mo_varint(t, 4 << 3 | 5), cd_buf_put(t, (const char *)&f, sizeof f);
        else mo_int(t, letter == 'l' ? 7 : 5, (uint64_t)strtoll(word, NULL, 10));
    }
}

static inline void to_init(cd_buf *g, const char **s, bool sparse) {
    cd_buf t = {0}, of = {0};
    char name[64];
    to_word(s, name);
    if (!sparse) {
        to_tensor(&t, s);
        mo_text(&t, 8, name);
        mo_message(g, 5, &t);
        return;
    }
    to_blank(s);
    mo_int(&t, 2, to_type(*(*s)++));
    mo_text(&t, 8, name);
    if (strcmp(name, "-") != 0) mo_message(&of, 1, &t);
    else cd_buf_free(&t);
    for (char word[64]; to_word(s, word); to_is(s, ','))
        mo_int(&of, 3, (uint64_t)strtoll(word, NULL, 10));
    mo_message(g, 15, &of);
}

static inline void to_attribute(cd_buf *node, const char *name, const char **s, unsigned depth) {
    cd_buf a = {0}, in = {0};
    char word[64];
    mo_text(&a, 1, name);
    if (!to_is(s, '=')) abort();
    if (to_is(s, '{')) {
        to_graph(&in, s, depth + 1);
        mo_message(&a, 6, &in);
        mo_int(&a, 20, 5);
    } else if (to_is(s, '<')) {
        to_tensor(&in, s);
        if (!to_is(s, '>')) abort();
        mo_message(&a, 5, &in);
        mo_int(&a, 20, 4);
    } else if (to_is(s, '"')) {
        const size_t n = strcspn(*s, "\"");
        mo_bytes(&a, 4, *s, n);
        mo_int(&a, 20, 3);
        *s += n + 1;
    } else {
        to_word(s, word);
        mo_int(&a, 3, (uint64_t)strtoll(word, NULL, 10));
        mo_int(&a, 20, 2);
    }
    mo_message(node, 5, &a);
}

static inline void to_node(cd_buf *g, const char *op, const char **s, unsigned depth) {
    cd_buf n = {0};
    char word[64];
    const char *dot = strrchr(op, '.');
    to_word(s, word);
    if (strcmp(word, "-") != 0) mo_text(&n, 3, word);
    mo_text(&n, 4, dot ? dot + 1 : op);
    if (dot) mo_bytes(&n, 7, op, (size_t)(dot - op));
    if (!to_is(s, '(')) abort();
    while (!to_is(s, ')')) {
        to_word(s, word);
        mo_text(&n, 1, word);
        to_is(s, ',');
    }
    if (!to_is(s, '-') || !to_is(s, '>')) abort();
    do {
        to_word(s, word);
        mo_text(&n, 2, word);
    } while (to_is(s, ','));
    while (to_word(s, word)) to_attribute(&n, word, s, depth);
    mo_message(g, 1, &n);
}

static inline void to_graph(cd_buf *g, const char **s, unsigned depth) {
    static const struct {
        const char *word;
        uint32_t field;
    } values[] = {{"in", 11}, {"out", 12}, {"info", 13}};
    char word[64];
    while (to_blank(s), **s && **s != '}') {
        size_t k = 0;
        to_word(s, word);
        while (k < 3 && strcmp(values[k].word, word) != 0) k++;
        if (k < 3) to_value(g, values[k].field, s);
        else if (!strcmp(word, "init") || !strcmp(word, "sparse")) to_init(g, s, *word == 's');
        else to_node(g, word, s, depth);
        if (!to_is(s, ';')) break;
    }
    if (depth && !to_is(s, '}')) abort();
}

static inline cd_buf text_onnx(const char *text) {
    cd_buf model = {0}, g = {0}, opset = {0};
    const char *s = text;
    to_graph(&g, &s, 0);
    if (*s) fprintf(stderr, "not understood: %s, at %s\n", text, s), abort();
    mo_text(&g, 2, "g");
    mo_int(&model, 1, 8);
    mo_int(&opset, 2, 17);
    mo_message(&model, 7, &g);
    mo_message(&model, 8, &opset);
    return model;
}
#endif
