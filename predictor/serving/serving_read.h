/* What the readers of config.json share: fields, their defaults, and what is told. Inside predictor/serving. */
#ifndef CD_SERVING_READ_H
#define CD_SERVING_READ_H
#include "base/io/io.h"
#include "predictor/serving/serving_family.h"

#define CD_SERVING_MOST 1e9

/* A whole number from 1 that has to be there. Errors: ESCHEMA, ERANGE, with the key. */
cdmpp_status cd_serving_need(const cd_json *o, const char *key, double *out, cdmpp_err *err);
/* A whole number from 0; absent and null leave *out as it is. */
cdmpp_status cd_serving_maybe(const cd_json *o, const char *key, double *out, cdmpp_err *err);
/* The field, or the default of Hugging Face, which is told. as: what the default is, NULL: a number. */
cdmpp_status cd_serving_or_default(const cd_json *o, const char *key, double usual, const char *as, cd_serving_model *m, double *out, cdmpp_err *err);
/* It is there, and not null. */
bool cd_serving_there(const cd_json *o, const char *key);
bool cd_serving_is_true(const cd_json *o, const char *key);
bool cd_serving_is_word(const cd_json *o, const char *key, const char *word);
/* With text_config some fields stand in it and some beside it; null is no answer. */
const cd_json *cd_serving_with(const cd_json *o, const cd_json *root, const char *key);
/* What the reader shall know of an answer, once. */
void cd_serving_note(cd_serving_model *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Which layers have attention, a window, a state: serving_layers.c. Before experts. */
cdmpp_status cd_serving_read_layers(const cd_json *o, const cd_serving_family *f, cd_serving_model *m, cdmpp_err *err);
/* Experts, and which layers have them: serving_experts.c. */
cdmpp_status cd_serving_read_experts(const cd_json *o, const cd_serving_family *f, cd_serving_model *m, cdmpp_err *err);
/* Types of weights: serving_types.c. Errors: also EUNSUPPORTED, a kind of quantisation that is not known. */
cdmpp_status cd_serving_read_types(const cd_json *o, const cd_json *root, cd_serving_model *m, cdmpp_err *err);
#endif
