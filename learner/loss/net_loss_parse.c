/* "1000mse+1mape" to weights. A word that is unknown is answered with the nearest one, for the
 * names come from papers and are easily mixed up. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learner/loss/loss.h"

static const char *const names[] = {
#define CD_NET_LOSS_X(name, what) #name,
    CD_NET_LOSS_MAP(CD_NET_LOSS_X)
#undef CD_NET_LOSS_X
};

size_t cd_net_loss_quantile_at(const cd_net_loss *p) {
    return p->weight[CD_NET_LOSS_nll] > 0 ? 2 : 1;
}
size_t cd_net_loss_width(const cd_net_loss *p) {
    return cd_net_loss_quantile_at(p) + p->n_quantile;
}
bool cd_net_loss_domains(const cd_net_loss *p) {
    return p->weight[CD_NET_LOSS_cmd] > 0 || p->weight[CD_NET_LOSS_mmd] > 0;
}
bool cd_net_loss_ranks(const cd_net_loss *p) {
    return p->weight[CD_NET_LOSS_rank] > 0 || p->weight[CD_NET_LOSS_lambdarank] > 0 ||
           p->weight[CD_NET_LOSS_listnet] > 0;
}

/* Terms on samples stand before those that compare samples. */
bool cd_net_loss_knows_level(const cd_net_loss *p) {
    for (int t = 0; t < CD_NET_LOSS_rank; t++)
        if (p->weight[t] > 0) return true;
    return false;
}

enum { WORD = 40 };

static cdmpp_status unknown(const char *word, cdmpp_err *err) {
    int best = 0;
    for (int t = 1; t < CD_NET_LOSS_TERMS; t++)
        if (cd_did_you_mean_distance(word, names[t]) < cd_did_you_mean_distance(word, names[best]))
            best = t;
    return CD_FAIL(err, ESCHEMA, "unknown loss term '%s', the nearest is '%s'", word, names[best]);
}

static const char *skip(const char *s) {
    while (isspace((unsigned char)*s)) s++;
    return s;
}

/* One "1000mse" at *text, which moves behind it. */
static cdmpp_status term(const char **text, cd_net_loss *out, cdmpp_err *err) {
    const char *s = skip(*text);
    const bool has_weight = isdigit((unsigned char)*s) || *s == '.' || *s == '-' || *s == '+';
    char *end = (char *)(uintptr_t)s, word[WORD];
    const double w = has_weight ? strtod(s, &end) : 0;
    const char *beg = skip(end);
    const size_t n = strspn(beg, "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    snprintf(word, sizeof word, "%.*s", (int)(n < WORD ? n : WORD - 1), beg);
    if (!n) return CD_FAIL(err, ESCHEMA, "expected a loss term such as '1mse', found '%.40s'", s);
    if (!has_weight || end == s)
        return CD_FAIL(err, ESCHEMA, "loss term '%s' has no weight, expected for example '1%s'",
                       word, word);
    if (!(w > 0 && w <= 1e9))
        return CD_FAIL(err, ERANGE,
                       "loss term '%s': expected a weight > 0 and at most 1e9, found %g", word, w);
    int t = 0;
    while (t < CD_NET_LOSS_TERMS && strcmp(names[t], word) != 0) t++;
    if (t == CD_NET_LOSS_TERMS) return unknown(word, err);
    if (out->weight[t] > 0) return CD_FAIL(err, ESCHEMA, "loss term '%s' appears twice", word);
    out->weight[t] = w;
    *text = skip(beg + n);
    return CDMPP_OK;
}

static cdmpp_status quantiles(const double *q, size_t n, cd_net_loss *out, cdmpp_err *err) {
    if (!n) return CD_FAIL(err, ESCHEMA, "loss term 'pinball' needs quantiles, found none");
    if (n > CD_NET_LOSS_QUANTILES)
        return CD_FAIL(err, ERANGE, "expected at most %d quantiles, found %zu",
                       CD_NET_LOSS_QUANTILES, n);
    for (size_t k = 0; k < n; k++)
        if (!(q[k] > 0 && q[k] < 1 && (!k || q[k] > q[k - 1])))
            return CD_FAIL(err, ERANGE,
                           "quantile %zu: expected rising numbers between 0 and 1, found %g", k,
                           q[k]);
    memcpy(out->quantile, q, n * sizeof *q);
    out->n_quantile = n;
    return CDMPP_OK;
}

static bool trains_prediction(const cd_net_loss *p) {
    for (int t = 0; t < CD_NET_LOSS_cmd; t++)
        if (p->weight[t] > 0) return true;
    return false;
}

cdmpp_status cd_net_loss_parse(const char *text, const double *quantile, size_t n_quantile,
                               cd_net_loss *out, cdmpp_err *err) {
    const char *at = text;
    *out = (cd_net_loss){0};
    do CD_TRY(term(&at, out, err));
    while (*at == '+' && at++);
    if (*at) return CD_FAIL(err, ESCHEMA, "expected '+' or the end of the loss, found '%.40s'", at);
    if (!trains_prediction(out))
        return CD_FAIL(err, ESCHEMA,
                       "expected a loss term on labels beside cmd and mmd, found '%.80s'", text);
    return out->weight[CD_NET_LOSS_pinball] > 0 ? quantiles(quantile, n_quantile, out, err)
                                                : CDMPP_OK;
}
