/* Pieces, words and names of a sample's text. */
#include <stdio.h>
#include <string.h>

#include "features/task/task.h"
#include "dataset/split/split_internal.h"

bool cd_sample_scan_cut(cd_sample_scan *s, char stop, cd_sample_scan *piece) {
    const char *p = memchr(s->text + s->at, stop, s->end - s->at);
    *piece = *s;
    piece->end = p ? (size_t)(p - s->text) : s->end;
    s->at = p ? piece->end + 1 : s->end;
    return p != NULL;
}

bool cd_sample_scan_word(cd_sample_scan *s, const char *word) {
    const size_t n = strlen(word);
    if (s->end - s->at < n || memcmp(s->text + s->at, word, n) != 0) return false;
    s->at += n;
    return true;
}

cdmpp_status cd_sample_scan_expected(const cd_sample_scan *s, const char *what, cdmpp_err *err) {
    if (s->at == s->end)
        return CD_FAIL(err, EPARSE, "character %zu: expected %s, found the end of it", s->at + 1,
                       what);
    return CD_FAIL(err, EPARSE, "character %zu: expected %s, found '%.*s'", s->at + 1, what,
                   (int)(s->end - s->at < 60 ? s->end - s->at : 60), s->text + s->at);
}

/* Name i of the data set, a network's without its shape; NULL behind the last. */
static const char *known(const cd_dataset *d, cd_sample_scan_kind kind, size_t i,
                         char buf[CD_SAMPLE_NAME]) {
    if (kind == CD_SAMPLE_SCAN_DEVICE) return i < d->n_device ? d->device_name[i] : NULL;
    if (i >= d->n_network) return NULL;
    const cd_str base = cd_network_alias_base(d->network_name[i]);
    snprintf(buf, CD_SAMPLE_NAME, "%.*s",
             (int)(base.n < CD_SAMPLE_NAME ? base.n : CD_SAMPLE_NAME - 1), base.p);
    return buf;
}

static bool exists(const cd_dataset *d, cd_sample_scan_kind kind, const char *name) {
    const size_t n = kind == CD_SAMPLE_SCAN_DEVICE ? d->n_device : d->n_network;
    for (size_t i = 0; i < n; i++)
        if (kind == CD_SAMPLE_SCAN_DEVICE ? !strcmp(d->device_name[i], name)
                                          : cd_network_alias_answers(d->network_name[i], name))
            return true;
    return false;
}

/* What is left up to place `end`. */
static const char *token(const cd_sample_scan *s, size_t end, char name[CD_SAMPLE_NAME]) {
    const size_t n = end - s->at < CD_SAMPLE_NAME ? end - s->at : CD_SAMPLE_NAME - 1;
    memcpy(name, s->text + s->at, n);
    name[n] = '\0';
    return name;
}

cdmpp_status cd_sample_scan_unknown(const cd_sample_scan *s, cd_sample_scan_kind kind,
                                    cdmpp_err *err) {
    char name[CD_SAMPLE_NAME], buf[CD_SAMPLE_NAME], found[CD_SAMPLE_NAME],
        best[CD_SAMPLE_NAME] = "";
    size_t least = CD_DID_YOU_MEAN_MAX, dash = s->at;
    while (dash < s->end && s->text[dash] != '-') dash++;
    token(s, dash, found); /* unless a longer piece is nearer to some name */
    for (size_t end = s->at + 1; end <= s->end && end - s->at < CD_DID_YOU_MEAN_MAX; end++) {
        if (end < s->end && s->text[end] != '-') continue;
        token(s, end, name);
        const char *k;
        for (size_t i = 0; (k = known(s->d, kind, i, buf)) != NULL; i++) {
            const size_t d = cd_did_you_mean_distance(name, k);
            if (d >= least || d > strlen(name) / 3 + 1) continue;
            least = d;
            snprintf(found, sizeof found, "%s", name);
            snprintf(best, sizeof best, "%s", k);
        }
    }
    return CD_FAIL(err, ESCHEMA,
                   "character %zu: expected a %s of the data set, found '%.60s'%s%.60s%s",
                   s->at + 1, kind == CD_SAMPLE_SCAN_DEVICE ? "device" : "network", found,
                   best[0] ? ", did you mean '" : "", best, best[0] ? "'?" : "");
}

cdmpp_status cd_sample_scan_name(cd_sample_scan *s, cd_sample_scan_kind kind,
                                 char name[CD_SAMPLE_NAME], cdmpp_err *err) {
    const char *what = kind == CD_SAMPLE_SCAN_DEVICE ? "'-' and a device" : "'-' and a network";
    if (!cd_sample_scan_word(s, "-")) return cd_sample_scan_expected(s, what, err);
    if (s->at == s->end)
        return cd_sample_scan_expected(s, kind == CD_SAMPLE_SCAN_DEVICE ? "a device" : "a network",
                                       err);
    for (size_t end = s->end; end > s->at; end--) { /* the longest first */
        if (end < s->end && s->text[end] != '-') continue;
        if (end - s->at >= CD_SAMPLE_NAME || !exists(s->d, kind, token(s, end, name))) continue;
        s->at = end;
        return CDMPP_OK;
    }
    return cd_sample_scan_unknown(s, kind, err);
}
