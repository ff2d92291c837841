/* A configuration as text: YAML that reads back to the same struct, JSON, and the table of keys as
 * Markdown or JSON for the manual. */
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"

/* Code point at s (valid UTF-8: libyaml has checked it), its bytes in *n. */
static uint32_t code_point(const char *s, size_t *n) {
    const unsigned char *u = (const unsigned char *)s;
    *n = u[0] < 0x80 ? 1 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
    uint32_t c = *n == 1 ? u[0] : u[0] & (0x7fu >> *n);
    for (size_t i = 1; i < *n && u[i]; i++) c = c << 6 | (u[i] & 0x3fu);
    return c;
}

static void print_text(cd_buf *out, const char *s) { cd_escape_yaml(out, (cd_str){s, strlen(s)}); }

static void print_list(cd_buf *out, const cd_texts *l) {
    cd_buf_puts(out, "[");
    for (size_t i = 0; i < l->n; i++) {
        if (i) cd_buf_puts(out, ", ");
        print_text(out, l->v[i]);
    }
    cd_buf_puts(out, "]");
}

/* The shortest text that reads back to the same double. */
static void print_real(cd_buf *out, double x) {
    char buf[40];
    for (int digits = 6; digits <= 17; digits++) {
        double back;
        snprintf(buf, sizeof buf, "%.*g", digits, x);
        if (sscanf(buf, "%lf", &back) == 1 && back == x) break;
    }
    cd_buf_puts(out, buf);
}

/* A text is quoted and escaped so that YAML and JSON read the same from it. */
void cd_conf_print_value(cd_buf *out, const cd_conf *c, const cd_conf_key *k) {
    const void *at = (const char *)c->to + k->offset;
    switch (k->type) {
    case CD_CONF_INT: cd_buf_putf(out, "%lld", (long long)*(const int64_t *)at); break;
    case CD_CONF_REAL: print_real(out, *(const double *)at); break;
    case CD_CONF_BOOL: cd_buf_puts(out, *(const bool *)at ? "true" : "false"); break;
    case CD_CONF_TEXT: print_text(out, *(const char *const *)at); break;
    case CD_CONF_LIST: print_list(out, at); break;
    case CD_CONF_ENUM: {
        const cd_str w = cd_enum_names_at(k->range, *(const int *)at);
        cd_buf_put(out, w.p, w.n);
        break;
    }
    }
}

/* Lines that a block ("|") can hold as they are: it keeps one line end at its end, and
 * finds its own indentation by the first line. */
static bool fits_block(const char *s) {
    const size_t n = strlen(s);
    if (n < 2 || s[n - 1] != '\n' || s[n - 2] == '\n' || s[0] == ' ' || s[0] == '\n') return false;
    for (size_t k; *s; s += strnlen(s, k)) {
        const uint32_t u = code_point(s, &k);
        if (u != '\n' && cd_escape_yaml_must(u)) return false;
    }
    return true;
}

static void print_block(cd_buf *out, const char *s, const char *indent) {
    cd_buf_puts(out, "|");
    for (; *s; s += strcspn(s, "\n") + 1) {
        const size_t n = strcspn(s, "\n");
        cd_buf_putf(out, "\n%s", n ? indent : "");
        cd_buf_put(out, s, n);
    }
}

/* Keys of one section stand together in the table; its name is printed where it changes. Texts of
 * several lines become a block. */
void cd_conf_print(cd_buf *out, const cd_conf *c) {
    const char *section = "";
    size_t len = 0;
    for (size_t i = 0; i < c->n_key; i++) {
        const cd_conf_key *k = &c->key[i];
        const char *dot = strchr(k->name, '.');
        const size_t n = dot ? (size_t)(dot - k->name) : 0;
        if (n && (n != len || memcmp(k->name, section, n)))
            cd_buf_putf(out, "%.*s:\n", (int)n, k->name);
        section = k->name;
        len = n;
        cd_buf_putf(out, "%s%s: ", n ? "  " : "", n ? dot + 1 : k->name);
        const char *text =
            k->type == CD_CONF_TEXT ? *(const char *const *)((const char *)c->to + k->offset) : "";
        if (fits_block(text)) print_block(out, text, n ? "    " : "  ");
        else cd_conf_print_value(out, c, k);
        cd_buf_puts(out, "\n");
    }
}

/* "|" ends a cell of a Markdown table. */
static void cell(cd_buf *out, const char *s) {
    for (; *s; s++) cd_buf_putf(out, *s == '|' ? "\\%c" : "%c", *s);
}

void cd_conf_json(cd_buf *out, const cd_conf *c) {
    for (size_t i = 0; i < c->n_key; i++) {
        const char *quote = c->key[i].type == CD_CONF_ENUM ? "\"" : "";
        cd_buf_putf(out, "%s\"%s\":%s", i ? "," : "{", c->key[i].name, quote);
        cd_conf_print_value(out, c, &c->key[i]);
        cd_buf_puts(out, quote);
    }
    cd_buf_puts(out, c->n_key ? "}" : "{}");
}

static const char *const type_name[] = {"integer", "number", "true or false",
                                        "word",    "text",   "list of texts"};

void cd_conf_doc_json(cd_buf *out, const cd_conf_key *key, size_t n_key) {
    cd_buf_puts(out, "[");
    for (size_t i = 0; i < n_key; i++) {
        cd_buf_putf(out, "%s{\"key\":\"%s\",\"type\":\"%s\",\"default\":", i ? "," : "",
                    key[i].name, type_name[key[i].type]);
        cd_buf_put_json_str(out, key[i].def, strlen(key[i].def));
        cd_buf_puts(out, ",\"range\":");
        cd_buf_put_json_str(out, key[i].range, strlen(key[i].range));
        cd_buf_puts(out, ",\"meaning\":");
        cd_buf_put_json_str(out, key[i].help, strlen(key[i].help));
        cd_buf_puts(out, "}");
    }
    cd_buf_puts(out, "]");
}

void cd_conf_doc(cd_buf *out, const cd_conf_key *key, size_t n_key) {
    cd_buf_puts(out,
                "| key | type | default | range | meaning |\n| --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < n_key; i++) {
        cd_buf_putf(out, "| `%s` | %s | `%s` | ", key[i].name, type_name[key[i].type],
                    key[i].def[0] ? key[i].def : "\"\"");
        cell(out, key[i].range);
        cd_buf_puts(out, " | ");
        cell(out, key[i].help);
        cd_buf_puts(out, " |\n");
    }
}
