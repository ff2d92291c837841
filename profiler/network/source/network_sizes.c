/* Sizes that a range stands for, and a network at one of them. Sizes are spread evenly by their
 * logarithm, both ends among them: small sizes are where laws turn. */
#include "profiler/network/source/source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cd_network_sizes_parse(const char *text, cd_size_range *r) {
    char *end;
    r->low = strtol(text, &end, 10);
    if (end == text || strncmp(end, "..", 2) != 0) return false;
    text = end + 2;
    r->high = strtol(text, &end, 10);
    r->n = CD_SIZE_RANGE_SIZES;
    if (end == text) return false;
    if (*end == ':') {
        text = end + 1;
        r->n = strtol(text, &end, 10);
        if (end == text) return false;
    }
    return !*end;
}

/* *size (*n) in `a`, ascending, both ends among them. Errors: EUSAGE, with the option (fewer than
 * three sizes, too large), ENOMEM. */
static cdmpp_status network_sizes_spread(cd_arena *a, const char *option, const cd_size_range *r,
                                         int64_t **size, size_t *n, cdmpp_err *err) {
    if (r->low < 1 || r->high > CD_SIZE_RANGE_MAX || r->high - r->low < 2)
        return CD_FAIL(err, EUSAGE, "%s: expected a range of three sizes or more in 1..%d", option,
                       CD_SIZE_RANGE_MAX);
    if (r->n < 3 || r->n > CD_SIZE_RANGE_MOST)
        return CD_FAIL(err, EUSAGE, "%s: expected 3 to %d sizes behind the colon", option,
                       CD_SIZE_RANGE_MOST);
    if (!(*size = CD_NEWN(a, int64_t, (size_t)r->n + 1))) return CD_FAIL(err, ENOMEM, "sizes");
    *n = 0;
    for (int64_t k = 0; k < r->n; k++) {
        const int64_t v = llround(
            (double)r->low * pow((double)r->high / (double)r->low, (double)k / (double)(r->n - 1)));
        if (!*n || v > (*size)[*n - 1]) (*size)[(*n)++] = v;
    }
    return CDMPP_OK;
}

cdmpp_status cd_network_sizes_read(cd_arena *a, const char *batch, const cd_texts *dim,
                                   cd_network_sizes *out, cdmpp_err *err) {
    cd_size_range r;
    *out = (cd_network_sizes){.place = SIZE_MAX};
    if (batch && cd_network_sizes_parse(batch, &r)) {
        out->over = "batch";
        CD_TRY(network_sizes_spread(a, "--batch", &r, &out->size, &out->n, err));
    }
    for (size_t k = 0; k < dim->n; k++) {
        const char *text = dim->v[k], *is = strrchr(text, '=');
        if (!is || !cd_network_sizes_parse(is + 1, &r)) continue;
        if (out->over)
            return CD_FAIL(err, EUSAGE, "--dim: a range of %s and one of %.60s: one at a time",
                           out->over, text);
        if (!(out->over = cd_str_dup(a, (cd_str){text, (size_t)(is - text)})))
            return CD_FAIL(err, ENOMEM, "sizes");
        out->place = k;
        CD_TRY(network_sizes_spread(a, "--dim", &r, &out->size, &out->n, err));
    }
    return CDMPP_OK;
}

cdmpp_status cd_network_sizes_at(const cd_network_sizes *z, cd_arena *a, int64_t size,
                                 cd_network_source *s, cdmpp_err *err) {
    const bool zoo = s->kind == CD_NETWORK_SOURCE_ZOO;
    if (zoo && (s->n_dim > 1 || strcmp(z->over, "batch") != 0))
        return CD_FAIL(err, EUSAGE,
                       "--dim: a network of the zoo has a range of batch alone, found '%.60s'",
                       s->n_dim ? s->dim[0] : z->over);
    if (zoo) s->n_dim = 0;
    if (zoo || z->place == SIZE_MAX) return s->batch = size, CDMPP_OK;
    const size_t cap = strlen(z->over) + 24;
    const char **dim = CD_NEWN(a, const char *, s->n_dim + 1);
    char *text = cd_arena_alloc(a, cap, 1);
    if (!dim || !text) return CD_FAIL(err, ENOMEM, "dimensions");
    memcpy(dim, s->dim, s->n_dim * sizeof *dim);
    snprintf(text, cap, "%s=%lld", z->over, (long long)size);
    dim[z->place] = text;
    s->dim = dim;
    return CDMPP_OK;
}
