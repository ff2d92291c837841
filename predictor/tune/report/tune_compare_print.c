/* The table of a comparison: a row for each task and tuner, a column for each number of trials, in
 * OpBench's layout. */
#include <string.h>

#include "predictor/tune/report/report.h"

static const char *name_of(const cd_tune_tasks *t, uint32_t i, const char *sum) {
    return i < t->n ? t->unit[i].of.task->workload_key : sum;
}
/* With one task the sum says nothing new. */
static uint32_t rows(const cd_tune_compare *c) { return c->n_task == 1 ? 1 : c->n_task + 1; }

/* Keys hold commas and quotes, so the first field is always quoted. */
void cd_tune_compare_print_csv(cd_buf *b, const cd_tune_compare *c, const cd_tune_tasks *t,
                               const char *name) {
    const cd_tune_compare_plan *p = c->plan;
    cd_buf_puts(b, "modelname,tuner,0");
    for (size_t k = 0; k < p->n_at; k++) cd_buf_putf(b, ",%zu", p->at[k]);
    cd_buf_puts(b, "\n");
    for (uint32_t i = 0; i < rows(c); i++)
        for (size_t j = 0; j < p->n_tuner; j++) {
            const char *of = name_of(t, i, name);
            cd_csv_fields_put(b, of, strlen(of));
            cd_buf_putf(b, ",%s", p->tuner[j]->name);
            for (size_t k = 0; k <= p->n_at; k++) {
                const double s = cd_tune_compare_at(c, i, j)[k];
                cd_buf_puts(b, ",");
                if (s < CD_TUNE_FAILED_S) cd_buf_put_json_real(b, s * 1e3);
            }
            cd_buf_puts(b, "\n");
        }
}

/* The same rows as the CSV; null in place of an empty field. */
void cd_tune_compare_print_json(cd_buf *b, const cd_tune_compare *c, const cd_tune_tasks *t,
                                const char *name) {
    const cd_tune_compare_plan *p = c->plan;
    cd_json_writer w = {.out = b};
    cd_json_write_open(&w, '{');
    cd_json_write_key(&w, "at");
    cd_json_write_open(&w, '[');
    cd_json_write_int(&w, 0);
    for (size_t k = 0; k < p->n_at; k++) cd_json_write_int(&w, (int64_t)p->at[k]);
    cd_json_write_close(&w, ']');
    cd_json_write_key(&w, "rows");
    cd_json_write_open(&w, '[');
    for (uint32_t i = 0; i < rows(c); i++)
        for (size_t j = 0; j < p->n_tuner; j++) {
            cd_json_write_open(&w, '{');
            cd_json_write_member_str(&w, "modelname", name_of(t, i, name));
            cd_json_write_member_str(&w, "tuner", p->tuner[j]->name);
            cd_json_write_key(&w, "ms");
            cd_json_write_open(&w, '[');
            for (size_t k = 0; k <= p->n_at; k++) {
                const double s = cd_tune_compare_at(c, i, j)[k];
                if (s < CD_TUNE_FAILED_S) cd_json_write_real(&w, s * 1e3);
                else cd_json_write_null(&w);
            }
            cd_json_write_close(&w, ']');
            cd_json_write_close(&w, '}');
        }
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}
