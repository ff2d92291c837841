/* serving_print -- answers as text and JSON. Included by serving.h. */
#ifndef CD_SERVING_PRINT_H
#define CD_SERVING_PRINT_H

/* What answers were given with: `stack` of the tables that spoke. */
typedef struct cd_serving_said {
    const cd_serving_model *m;
    const cd_serving_config *c;
    cd_serving_about about;     /* of its GPU */
    const cd_serving_answer *a; /* NULL: it was refused, by why */
    const cd_serving_rows *prompt, *decode;
    const cdmpp_err *why;
} cd_serving_said;

/* Of one model and several loads: stack and lengths where all have the same, a line each, then
 * memory, then the operators of the two steps of the first that was answered. */
void cd_serving_text(const cd_serving_said *v, size_t n, cd_buf *b);
/* {"model_type":..,"parameters":..,"notes":[what was taken for what config.json does not
 * say],"answers":[{..}]}; rows: also the operators of the two steps, of those that have them. */
void cd_serving_json(const cd_serving_said *v, size_t n, bool rows, cd_buf *b);
/* The types of a layout as members: dtype, experts_dtype, attention_dtype, shared_dtype, kv_dtype,
 * other_dtype. */
void cd_serving_layout_json(cd_json_writer *w, const cd_serving_layout *l);
/* A GPU in a table: "h200 (twin of h100)", "b200 (not trained on)", the name alone of one that the
 * model was trained on. */
void cd_serving_gpu_text(const char *gpu, const cd_serving_about *a, cd_buf *b);
/* The same as members behind the GPU: new (null: it was trained on), twin where there is one,
 * own_rows of a GPU that is new. */
void cd_serving_about_json(cd_json_writer *w, const cd_serving_about *a);
/* The members of a step: total_s, host_s, sigma, operators. */
void cd_serving_rows_json(cd_json_writer *w, const cd_serving_rows *r);
/* Errors of those that were measured: mean, median, 90 % of them, in interval; a line for TTFT, one
 * for TPOT. Errors: ENOMEM. */
cdmpp_status cd_serving_errors(const cd_serving_said *v, size_t n, cd_buf *b, cdmpp_err *err);
#endif
