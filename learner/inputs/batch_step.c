/* The token of a step: its kind as one of CD_RECORD_STEP_COUNT, then its values in the order of the
 * record, cut or filled with zeros. */
#include <math.h>
#include <string.h>

#include "features/task/task.h"
#include "learner/inputs/batch_internal.h"

size_t cd_batch_step_width(const cd_batch_spec *s) {
    return (size_t)CD_RECORD_STEP_COUNT + s->values;
}

/* Numbers of iterators and extents of millions stand in the same column. */
static float number(const cd_batch_spec *s, int32_t v) {
    return s->log_values ? (float)copysign(log2(1 + fabs((double)v)), (double)v) : (float)v;
}

void cd_batch_step_fill(const cd_batch_spec *s, const cd_program_view *v, size_t program,
                        float *x) {
    const size_t w = cd_batch_step_width(s);
    const int32_t *code = v->step + v->step_ptr[program];
    size_t n = (size_t)(v->step_ptr[program + 1] - v->step_ptr[program]);
    cd_step_code step;
    memset(x, 0, s->steps * w * sizeof *x);
    for (size_t k = 0; k < s->steps && cd_step_codes_next(&code, &n, &step); k++, x += w) {
        x[step.kind] = 1;
        for (size_t j = 0; j < step.n && j < s->values; j++)
            x[CD_RECORD_STEP_COUNT + j] = number(s, step.value[j]);
    }
}
