/* A hash table with open addressing from digests of programs to a number. Keys are digests already,
 * so their low bits are the place. */
#include "predictor/tune/core/core.h"

#include <string.h>

struct cd_tune_slot {
    uint64_t key;
    double value;
    bool used;
};

void cd_tune_key_set_free(cd_tune_key_set *k) {
    cd_mem_free(k->slot);
    *k = (cd_tune_key_set){0};
}

void cd_tune_key_set_clear(cd_tune_key_set *k) {
    if (k->cap) memset(k->slot, 0, k->cap * sizeof *k->slot);
    k->n = 0;
}

/* Where the key is, or would go; there is always an empty slot. */
static struct cd_tune_slot *slot_of(const cd_tune_key_set *k, uint64_t key) {
    size_t i = (size_t)key & (k->cap - 1);
    while (k->slot[i].used && k->slot[i].key != key) i = (i + 1) & (k->cap - 1);
    return &k->slot[i];
}

bool cd_tune_key_set_find(const cd_tune_key_set *k, uint64_t key, double *value) {
    const struct cd_tune_slot *s = k->cap ? slot_of(k, key) : NULL;
    if (!s || !s->used) return false;
    if (value) *value = s->value;
    return true;
}

static cdmpp_status grow(cd_tune_key_set *k, cdmpp_err *err) {
    cd_tune_key_set more = {.n = k->n, .cap = k->cap ? 2 * k->cap : 256};
    more.slot = cd_mem_zalloc(more.cap, sizeof *more.slot);
    if (!more.slot) return CD_FAIL(err, ENOMEM, "%zu programs", more.cap);
    for (size_t i = 0; i < k->cap; i++)
        if (k->slot[i].used) *slot_of(&more, k->slot[i].key) = k->slot[i];
    cd_mem_free(k->slot);
    *k = more;
    return CDMPP_OK;
}

cdmpp_status cd_tune_key_set_put(cd_tune_key_set *k, uint64_t key, double value, cdmpp_err *err) {
    if (2 * (k->n + 1) > k->cap) CD_TRY(grow(k, err));
    struct cd_tune_slot *s = slot_of(k, key);
    k->n += !s->used;
    *s = (struct cd_tune_slot){key, value, true};
    return CDMPP_OK;
}
