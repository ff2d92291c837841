/* Copies of candidates, which outlive the space. */
#include <string.h>

#include "predictor/tune/core/core.h"

/* A hash table with open addressing from digests of programs to a number. Keys are digests already,
 * so their low bits are the place. */

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

/* What a tuner may change in steps: the numbers. The rest of the steps, by which programs can be
 * compared number by number, is their class. */

/* Bytes before the number at the end of a pragma's text; all where there is none. */
static size_t stem(cd_str s) {
    size_t n = s.n;
    while (n && s.p[n - 1] >= '0' && s.p[n - 1] <= '9') n--;
    return n && s.p[n - 1] == '$' && s.n - n < 10 ? n : s.n;
}

static int32_t tail(cd_str s) {
    int32_t v = 0;
    for (size_t k = stem(s); k < s.n; k++) v = v * 10 + (s.p[k] - '0');
    return v;
}

uint64_t cd_tune_class(const cd_record_step *step, uint32_t n_step) {
    cd_hash h = cd_hash_start();
    for (uint32_t k = 0; k < n_step; k++) {
        const uint64_t head[2] = {(uint64_t)step[k].kind << 32 | (uint32_t)step[k].stage,
                                  step[k].n_list};
        cd_hash_add(&h, head, sizeof head);
        cd_hash_add(&h, step[k].s.p, stem(step[k].s));
    }
    return h.a;
}

uint32_t cd_tune_knobs_count(const cd_record_step *step, uint32_t n_step) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < n_step; k++) n += 4 + step[k].n_list;
    return n;
}

void cd_tune_numbers(const cd_record_step *step, uint32_t n_step, int32_t *number, uint16_t *at) {
    for (uint32_t k = 0, j = 0; k < n_step; k++) {
        const uint32_t first = j;
        for (int m = 0; m < 3; m++) number[j++] = step[k].i[m];
        number[j++] = tail(step[k].s);
        for (uint32_t m = 0; m < step[k].n_list; m++) number[j++] = step[k].list[m];
        for (uint32_t m = first; at && m < j; m++) at[m] = (uint16_t)k;
    }
}

static void *copied(cd_arena *a, const void *from, size_t n, size_t size, bool *ok) {
    if (!n) return NULL;
    void *to = cd_arena_zalloc(a, n, size);
    if (to) memcpy(to, from, n * size);
    else *ok = false;
    return to;
}

cdmpp_status cd_tune_cand_copy(cd_arena *a, const cd_tune_cand *from, cd_tune_cand *out,
                               cdmpp_err *err) {
    bool ok = true;
    cd_record_step *step = copied(a, from->step, from->n_step, sizeof *step, &ok);
    for (uint32_t k = 0; ok && k < from->n_step; k++) {
        step[k].list = copied(a, step[k].list, step[k].n_list, sizeof *step[k].list, &ok);
        step[k].s.p = copied(a, step[k].s.p, step[k].s.n, 1, &ok);
    }
    *out = *from;
    out->step = step;
    out->choice = copied(a, from->choice, from->n_choice, sizeof *from->choice, &ok);
    return ok ? CDMPP_OK : CD_FAIL(err, ENOMEM, "candidate");
}

void cd_tune_space_free(cd_tune_space *s) {
    if (s) s->kind->free(s);
}
