/* Texts to numbers: a hash table with open addressing over an array of texts. The table is at most
 * half full. */
#include "base/text/text.h"

#include <string.h>

static uint64_t hash(cd_str s) {
    uint64_t h = 1469598103934665603u; /* FNV-1a */
    for (size_t i = 0; i < s.n; i++) h = (h ^ (unsigned char)s.p[i]) * 1099511628211u;
    return h ^ h >> 29;
}

/* The slot that holds `text`, or the empty one where it belongs. */
static size_t place(const cd_dict *d, cd_str text) {
    size_t i = hash(text) & (d->n_slot - 1);
    while (d->slot[i]) {
        const char *have = d->text[d->slot[i] - 1];
        if (strlen(have) == text.n && memcmp(have, text.p, text.n) == 0) break;
        i = (i + 1) & (d->n_slot - 1);
    }
    return i;
}

/* Both arrays are grown before the table is replaced, so that a failure leaves the dictionary as it
 * was. */
static bool grow(cd_dict *d) {
    const size_t n_slot = d->n_slot ? d->n_slot * 2 : 64, cap = n_slot / 2;
    uint32_t *slot = cd_mem_zalloc(n_slot, sizeof *slot);
    char **text = slot ? cd_mem_realloc(d->text, d->cap * sizeof *text, cap * sizeof *text) : NULL;
    if (text) d->text = text, d->cap = cap;
    if (!slot || !text) {
        cd_mem_free(slot);
        return false;
    }
    cd_mem_free(d->slot);
    d->slot = slot;
    d->n_slot = n_slot;
    for (size_t i = 0; i < d->n; i++)
        slot[place(d, (cd_str){d->text[i], strlen(d->text[i])})] = (uint32_t)i + 1;
    return true;
}

cdmpp_status cd_dict_add(cd_dict *d, cd_str text, uint32_t *out, cdmpp_err *err) {
    if (d->n == d->cap && !grow(d)) return CD_FAIL(err, ENOMEM, "dictionary of %zu texts", d->n);
    const size_t i = place(d, text);
    if (!d->slot[i]) {
        char *copy = cd_str_dup(&d->arena, text);
        if (!copy) return CD_FAIL(err, ENOMEM, "dictionary of %zu texts", d->n);
        d->text[d->n] = copy;
        d->slot[i] = (uint32_t)++d->n;
    }
    *out = d->slot[i] - 1;
    return CDMPP_OK;
}

bool cd_dict_find(const cd_dict *d, cd_str text, uint32_t *out) {
    if (d->n_slot == 0) return false;
    const size_t i = place(d, text);
    if (d->slot[i]) *out = d->slot[i] - 1;
    return d->slot[i] != 0;
}

void cd_dict_free(cd_dict *d) {
    cd_arena_free(&d->arena);
    cd_mem_free(d->text);
    cd_mem_free(d->slot);
    *d = (cd_dict){0};
}
