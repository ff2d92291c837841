/* How far a further measurement of a row of a table would be: from rows that were measured several times. */
#include <math.h>

#include "learner/inputs/inputs.h"
#include "learner/llm_op/llm_op_internal.h"

enum { OWN = 5, LEAST = 20 }; /* times of a row that tell its own spread; repeated rows that tell a kind's */

cdmpp_status cd_llm_op_repeats_index(cd_llm_op_table *t, cdmpp_err *err) {
    for (size_t k = 0; k < CD_LLM_OP_N_KIND; k++) {
        size_t n = 0;
        for (size_t i = 0; i < t->n; i++) n += t->r[i].kind == k && t->count[i] > 1;
        cd_mem_free(t->noise[k]);
        t->n_noise[k] = 0;
        t->noise[k] = n ? cd_mem_zalloc(n, sizeof *t->noise[k]) : NULL;
        if (n && !t->noise[k]) return CD_FAIL(err, ENOMEM, "%zu repeated rows", n);
        for (size_t i = 0; i < t->n; i++)
            if (t->r[i].kind == k && t->count[i] > 1) t->noise[k][t->n_noise[k]++] = fabs(t->spread[i].pair);
        if (n) cd_sort_doubles(t->noise[k], n);
    }
    return CDMPP_OK;
}

/* The row's time is a mean of `count`: a further time differs from it by less than two single times differ. */
double cd_llm_op_table_half(const cd_llm_op_table *t, size_t row, double level) {
    const double count = t->count[row], one = 1 + 1 / count;
    const size_t n = t->n_noise[t->r[row].kind], at = (size_t)ceil(level * (double)(n + 1));
    if (t->count[row] >= OWN && t->spread[row].square > 0) return cd_normal_student(0.5 + level / 2, count - 1) * sqrt(t->spread[row].square / (count - 1) * one);
    return n < LEAST ? (double)NAN : t->noise[t->r[row].kind][at > n ? n - 1 : at - 1] * sqrt(one / 2);
}
