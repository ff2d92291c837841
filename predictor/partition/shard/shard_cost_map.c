/* A hash table from 128-bit hashes to numbers, with open addressing. Keys are not compared beyond their hash: at 128 bits no collision is expected. */
#include <string.h>

#include "predictor/partition/shard/shard_cost_internal.h"

/* Slot of the key, or the free one where it belongs. n_slot > n. */
static uint32_t slot_of(const cd_shard_cost_map *m, cd_hash key) {
    uint32_t i = (uint32_t)key.a & (m->n_slot - 1);
    while (m->value[i] && (m->key[i].a != key.a || m->key[i].b != key.b)) i = (i + 1) & (m->n_slot - 1);
    return i;
}

uint32_t cd_shard_cost_map_find(const cd_shard_cost_map *m, cd_hash key) {
    const uint32_t v = m->n_slot ? m->value[slot_of(m, key)] : 0;
    return v ? v - 1 : UINT32_MAX;
}

/* At most half of the slots are used, so probing is short and always ends at a free slot. */
static cdmpp_status grow(cd_shard_cost_map *m, cdmpp_err *err) {
    cd_shard_cost_map big = {.n_slot = m->n_slot ? 2 * m->n_slot : 256, .n = m->n};
    big.key = cd_mem_alloc(big.n_slot * sizeof *big.key);
    big.value = cd_mem_zalloc(big.n_slot, sizeof *big.value);
    if (!big.key || !big.value) {
        cd_shard_cost_map_free(&big);
        return CD_FAIL(err, ENOMEM, "table of %u", big.n_slot);
    }
    for (uint32_t i = 0; i < m->n_slot; i++) {
        if (!m->value[i]) continue;
        const uint32_t at = slot_of(&big, m->key[i]);
        big.key[at] = m->key[i];
        big.value[at] = m->value[i];
    }
    cd_shard_cost_map_free(m);
    *m = big;
    return CDMPP_OK;
}

cdmpp_status cd_shard_cost_map_put(cd_shard_cost_map *m, cd_hash key, uint32_t value, cdmpp_err *err) {
    if (2 * (m->n + 1) > m->n_slot) CD_TRY(grow(m, err));
    const uint32_t at = slot_of(m, key);
    m->key[at] = key;
    m->value[at] = value + 1;
    m->n++;
    return CDMPP_OK;
}

void cd_shard_cost_map_free(cd_shard_cost_map *m) {
    cd_mem_free(m->key);
    cd_mem_free(m->value);
    *m = (cd_shard_cost_map){0};
}
