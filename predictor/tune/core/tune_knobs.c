/* What a tuner may change in steps: the numbers. The rest of the steps, by which programs can be
 * compared number by number, is their class. */
#include "predictor/tune/core/core.h"

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
