/* TVM's notation of expressions to ours (te.h): 0f to 0:float32, (bool)1 to true, tir.exp(x) to
 * exp(x), names of operators to numbers. */
#include <string.h>

#include "features/dagtext/dagtext_internal.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_first(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t word_length(cd_str s) {
    size_t n = 0;
    while (n < s.n && (is_first(s.p[n]) || is_digit(s.p[n]) || s.p[n] == '.')) n++;
    return n;
}

/* Digits, point and exponent of a number. */
static size_t digits(cd_str s) {
    size_t n = 0;
    while (n < s.n && (is_digit(s.p[n]) || s.p[n] == '.')) n++;
    if (n + 1 < s.n && s.p[n] == 'e' &&
        (is_digit(s.p[n + 1]) || s.p[n + 1] == '+' || s.p[n + 1] == '-'))
        for (n += 2; n < s.n && is_digit(s.p[n]);) n++;
    return n;
}

/* "(bool)1", "(int64)-5": its length; 0: something else. */
static size_t typed_integer(cd_str s) {
    cd_str in = {s.p + 1, s.n - 1};
    cd_dtype type;
    size_t n = word_length(in);
    if (!n || n + 1 >= in.n || in.p[n] != ')' || !cd_expr_dtype_parse(in.p, n, &type)) return 0;
    n += 2;
    if (n < s.n && s.p[n] == '-') n++;
    const size_t d = digits((cd_str){s.p + n, s.n - n});
    return d ? n + d : 0;
}

cd_dagtext_token cd_dagtext_next(cd_str *rest, cd_str *word) {
    while (rest->n && rest->p[0] == ' ') rest->p++, rest->n--;
    if (!rest->n) return CD_TOKEN_END;
    cd_dagtext_token k = CD_TOKEN_SIGN;
    size_t n = 1;
    if (is_digit(rest->p[0])) {
        k = CD_TOKEN_NUMBER;
        n = digits(*rest);
        n += word_length((cd_str){rest->p + n, rest->n - n});
    } else if (is_first(rest->p[0])) {
        n = word_length(*rest);
        k = n == rest->n || !strchr("[(", rest->p[n]) ? CD_TOKEN_AXIS
            : rest->p[n] == '['                       ? CD_TOKEN_LOAD
                                                      : CD_TOKEN_CALL;
    } else if (rest->p[0] == '(' && typed_integer(*rest)) {
        k = CD_TOKEN_NUMBER;
        n = typed_integer(*rest);
    }
    *word = (cd_str){rest->p, n};
    rest->p += n, rest->n -= n;
    return k;
}

static void put_number(cd_buf *out, cd_str w) {
    if (w.p[0] == '(') {
        const size_t n = word_length((cd_str){w.p + 1, w.n - 1}), at = n + 2;
        if (cd_str_is((cd_str){w.p + 1, n}, "bool"))
            cd_buf_puts(out, cd_str_is((cd_str){w.p + at, w.n - at}, "0") ? "false" : "true");
        else cd_buf_putf(out, "%.*s:%.*s", (int)(w.n - at), w.p + at, (int)n, w.p + 1);
        return;
    }
    const size_t n = digits(w);
    /* TVM prints six digits; of the greatest float32, with which maxima begin, these */
    if (cd_str_is(w, "3.40282e+38f")) cd_buf_puts(out, "3.4028234663852886e+38");
    else cd_buf_put(out, w.p, n);
    if (n == w.n) return;
    cd_buf_puts(out, ":");
    if (cd_str_is((cd_str){w.p + n, w.n - n}, "f")) cd_buf_puts(out, "float32");
    else cd_buf_put(out, w.p + n, w.n - n);
}

cdmpp_status cd_dagtext_notation(const cd_dagtext *t, uint32_t i, uint32_t *site, cd_buf *out) {
    cd_str rest = t->line[i].body, w;
    for (cd_dagtext_token k; (k = cd_dagtext_next(&rest, &w)) != CD_TOKEN_END;) {
        if (k == CD_TOKEN_NUMBER) {
            put_number(out, w);
        } else if (k == CD_TOKEN_LOAD) {
            uint32_t from = cd_dagtext_above(t, i, w);
            if (cd_dagtext_above(t, from, w) != from) from = t->site[(*site)++].chosen;
            cd_buf_putf(out, "t%u", from);
        } else if (k == CD_TOKEN_CALL && w.n > 4 && !memcmp(w.p, "tir.", 4)) {
            cd_buf_put(out, w.p + 4, w.n - 4);
        } else {
            cd_buf_put(out, w.p, w.n);
        }
    }
    return out->oom ? CD_FAIL(t->err, ENOMEM, "an expression") : CDMPP_OK;
}
