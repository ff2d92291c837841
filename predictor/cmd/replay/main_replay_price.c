/* Prices of cdmpp-replay: "device,price_per_hour[,currency]", and who is the cheapest. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/cmd/replay/main_replay.h"

enum { FIELDS = 3, MAX_CURRENCY = 8 };

/* Fields of a line, without blanks and quotes; how many, at most FIELDS. */
static size_t fields(char *line, char **out) {
    size_t n = 0;
    for (char *s = line; n < FIELDS;) {
        char *end = s + strcspn(s, ","), *last = end;
        const bool more = *end;
        while (*s == ' ' || *s == '"' || *s == '\t') s++;
        while (last > s && (last[-1] == ' ' || last[-1] == '"' || last[-1] == '\t')) last--;
        *end = 0;
        *last = 0;
        out[n++] = s;
        if (!more) break;
        s = end + 1;
    }
    return n;
}

/* Devices are called as anywhere: by name or alias. */
static bool is_device(const cd_main_replay_plan *p, const cd_main_replay_device *d, const char *name) {
    const cd_device *a = cd_model_set_device(&p->models, name);
    return !strcmp(d->name, name) || (a && a == d->about);
}

static cdmpp_status take(cd_main_replay_plan *p, char *line, bool *first, cdmpp_err *err) {
    char *f[FIELDS], *end;
    const size_t n = fields(line, f);
    const bool header = *first && n >= 2 && !strcmp(f[1], "price_per_hour");
    *first = false;
    if (header) return CDMPP_OK;
    if (n < 2) return CD_FAIL(err, EPARSE, "expected device,price_per_hour[,currency], found '%.80s'", f[0]);
    const double price = strtod(f[1], &end);
    if (end == f[1] || *end || !(price >= 0 && price < 1e12)) return CD_FAIL(err, ERANGE, "price_per_hour: expected a number, 0 or more, found '%.40s'", f[1]);
    for (size_t k = 0; k < p->n_device; k++) {
        cd_main_replay_device *d = &p->device[k];
        if (!is_device(p, d, f[0])) continue;
        if (!isnan(d->price)) return CD_FAIL(err, EINVALID, "a second price of %s", d->name);
        d->price = price;
        if (n > 2 && strlen(f[2]) > MAX_CURRENCY) return CD_FAIL(err, EINVALID, "currency: expected at most %d bytes, found '%.40s'", MAX_CURRENCY, f[2]);
        if (n > 2 && !(d->currency = cd_str_dup(&p->arena, (cd_str){f[2], strlen(f[2])}))) return CD_FAIL(err, ENOMEM, "prices");
    }
    return CDMPP_OK;
}

/* What is cheapest is asked of one currency. */
static cdmpp_status one_currency(const cd_main_replay_plan *p, cdmpp_err *err) {
    const cd_main_replay_device *first = NULL;
    for (size_t k = 0; k < p->n_device; k++) {
        const cd_main_replay_device *d = &p->device[k];
        if (isnan(d->price)) cd_log_put(p->o->log, CD_LOG_WARNING, "%s: no price of %s", p->o->prices, d->name);
        else if (!first) first = d;
        else if (strcmp(first->currency, d->currency) != 0)
            return CD_FAIL(err, EINVALID, "price of %s in '%s', of %s in '%s': expected one currency", first->name, first->currency, d->name, d->currency);
    }
    return CDMPP_OK;
}

cdmpp_status cd_main_replay_prices(cd_main_replay_plan *p, cdmpp_err *err) {
    const char *path = p->o->prices;
    cd_file_lines *in = NULL;
    char *line;
    size_t len;
    bool first = true;
    CD_TRY(cd_file_lines_open(path, 0, &in, err));
    cdmpp_status st = CDMPP_OK;
    while (!st) {
        st = cd_file_lines_next(in, &line, &len, err);
        if (st || !line) break;
        if (!len || line[0] == '#') continue;
        st = cd_err_at(err, take(p, line, &first, err), path, cd_file_lines_number(in));
    }
    cd_file_lines_close(in);
    return st ? st : cd_err_at(err, one_currency(p, err), path, 0);
}

const cd_main_replay_case *cd_main_replay_cheapest(const cd_main_replay_plan *p, const char *network) {
    const cd_main_replay_case *best = NULL;
    for (size_t k = 0; k < p->n_item; k++) {
        const cd_main_replay_case *c = &p->item[k];
        if (c->st || strcmp(c->source->name, network) != 0 || isnan(cd_main_replay_price(c)) || cd_main_replay_fits(c) == CD_MAIN_REPLAY_NO) continue;
        if (!isnan(p->o->deadline_s) && c->replay.makespan_s > p->o->deadline_s) continue;
        if (!best || cd_main_replay_price(c) < cd_main_replay_price(best)) best = c;
    }
    return best;
}
