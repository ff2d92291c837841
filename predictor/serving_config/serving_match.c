/* Names, patterns and expressions of modules. */
#include "predictor/serving_config/serving_match.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 512 };
typedef enum { NOTHING, WORDS, STARS, EXPRESSION } kind;

struct cd_serving_pattern {
    kind kind;
    char *text; /* from "layers." on, where that is named */
    long layer; /* that words are of; -1: of any */
    regex_t re;
};

/* Python's expression as one of POSIX. */
static bool translated(const char *p, char *out, size_t room) {
    size_t n = (size_t)snprintf(out, room, "^(");
    for (; *p; p++) {
        if (n + 8 > room || *p == '{') return false; /* counts of counts take much memory */
        if (p[0] == '\\' && p[1] == 'd') n += (size_t)snprintf(out + n, room - n, "[0-9]"), p++;
        else if (p[0] == '\\' && (!p[1] || isalnum((unsigned char)p[1]))) return false;
        else if (p[0] == '\\') out[n++] = *p++, out[n++] = *p;
        else if (!strncmp(p, "(?:", 3)) out[n++] = '(', p += 2;
        else if (!strncmp(p, "(?", 2)) return false;
        else out[n++] = *p;
    }
    out[n++] = ')', out[n] = 0;
    return true;
}

static const char *from_layers(const char *p) {
    const char *at = strstr(p, "layers.");
    return at ? at : p;
}

static void understand(struct cd_serving_pattern *p, bool *bad) {
    char text[2 * TEXT];
    if (!strncmp(p->text, "re:", 3)) {
        if (translated(p->text + 3, text, sizeof text) &&
            !regcomp(&p->re, text, REG_EXTENDED | REG_NOSUB))
            p->kind = EXPRESSION;
        else *bad = true;
        return;
    }
    p->kind = strchr(p->text, '*') ? STARS : *p->text ? WORDS : NOTHING;
    const char *at = strstr(p->text, "layers.");
    if (p->kind == WORDS && at && isdigit((unsigned char)at[7]))
        p->layer = strtol(at + 7, NULL, 10);
}

cdmpp_status cd_serving_match_new(const cd_json *list, cd_serving_match *out, cdmpp_err *err) {
    const cd_json *first = !list                       ? NULL
                           : list->kind == CD_JSON_ARR ? list->u.child
                           : list->kind == CD_JSON_STR ? list
                                                       : NULL;
    const size_t n = !first ? 0 : first == list ? 1 : list->n;
    *out = (cd_serving_match){.v = cd_mem_zalloc(n + 1, sizeof *out->v)};
    if (!out->v) return CD_FAIL(err, ENOMEM, "%zu patterns", n);
    for (const cd_json *v = first; v && out->n < n; v = first == list ? NULL : v->next) {
        struct cd_serving_pattern *p = &out->v[out->n];
        if (v->kind != CD_JSON_STR || v->u.s.n >= TEXT) continue;
        if (!(p->text = cd_mem_zalloc(v->u.s.n + 1, 1))) {
            cd_serving_match_free(out);
            return CD_FAIL(err, ENOMEM, "%zu patterns", n);
        }
        memcpy(p->text, v->u.s.p, v->u.s.n);
        p->layer = -1;
        out->n++;
        understand(p, &out->bad);
    }
    return CDMPP_OK;
}

void cd_serving_match_free(cd_serving_match *m) {
    for (size_t i = 0; i < m->n; i++) {
        if (m->v[i].kind == EXPRESSION) regfree(&m->v[i].re);
        cd_mem_free(m->v[i].text);
    }
    cd_mem_free(m->v);
    *m = (cd_serving_match){0};
}

/* All of its words stand one behind the other in the name. */
static bool holds(const char *name, const char *words) {
    const size_t n = strlen(words);
    for (const char *at = name; n && (at = strstr(at, words)); at++)
        if ((at == name || at[-1] == '.') && (!at[n] || at[n] == '.')) return true;
    return false;
}

bool cd_serving_match_any(const cd_serving_match *m, size_t layer, const char *module) {
    char name[TEXT];
    snprintf(name, sizeof name, "model.layers.%zu.%s", layer, module);
    for (size_t i = 0; i < m->n; i++) {
        const struct cd_serving_pattern *p = &m->v[i];
        if (p->kind == EXPRESSION && !regexec(&p->re, name, 0, NULL, 0)) return true;
        if (p->kind == WORDS && (p->layer < 0 || p->layer == (long)layer) &&
            holds(name, from_layers(p->text)))
            return true;
        if (p->kind == STARS &&
            (cd_str_fits(p->text, name) || cd_str_fits(from_layers(p->text), from_layers(name))))
            return true;
    }
    return false;
}
