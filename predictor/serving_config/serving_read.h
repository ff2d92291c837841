/* What the readers of config.json share: fields, their defaults, and what is told. Inside
 * predictor/serving. */
#ifndef CD_SERVING_READ_H
#define CD_SERVING_READ_H
#include "base/io/io.h"
#include "predictor/serving_config/serving_family.h"

#define CD_SERVING_MOST 1e9

/* An object of a config.json, and which of its members the reader has asked for: those that look
 * like sizes and that nobody asked for are reported. One fact has several names in files of several
 * programs (num_experts, n_routed_experts): the one that is asked for stands for all
 * (serving_read.c). */
typedef struct cd_serving_fields {
    const cd_json *o;
    cd_arena *a;
    bool *asked;         /* (o->n) in order of the members */
    cd_serving_model *m; /* gets the notes */
    /* the first field that another name of it contradicts; code 0: there is none */
    cdmpp_err unlike;
} cd_serving_fields;
/* o: an object, NULL: one without members. Errors: ENOMEM. */
cdmpp_status cd_serving_fields_of(cd_arena *a, const cd_json *o, cd_serving_model *m,
                                  cd_serving_fields *out, cdmpp_err *err);
/* The value under the name, else under another name of the same fact (told once); NULL: there is
 * none. */
const cd_json *cd_serving_get(cd_serving_fields *f, const char *key);
/* These say nothing of this model, whatever they are: no window is used, no layer has experts. */
#define cd_serving_pass(f, ...)                                                                    \
    cd_serving_pass_all(f, (const char *const[]){__VA_ARGS__},                                     \
                        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))
void cd_serving_pass_all(cd_serving_fields *f, const char *const *key, size_t n);
/* A whole number from 1 that has to be there. Errors: ESCHEMA, ERANGE, with the key. */
cdmpp_status cd_serving_need(cd_serving_fields *f, const char *key, double *out, cdmpp_err *err);
/* A whole number from 0; absent and null leave *out as it is. */
cdmpp_status cd_serving_maybe(cd_serving_fields *f, const char *key, double *out, cdmpp_err *err);
/* The field, or the default of Hugging Face, which is told. as: what the default is, NULL: a
 * number. */
cdmpp_status cd_serving_or_default(cd_serving_fields *f, const char *key, double usual,
                                   const char *as, double *out, cdmpp_err *err);
/* It is there, and not null. */
bool cd_serving_there(cd_serving_fields *f, const char *key);
bool cd_serving_is_true(cd_serving_fields *f, const char *key);
/* null, false, an empty list, 0 and 1: says that there is no such part. */
bool cd_serving_is_plain(const cd_json *v);
/* What the reader shall know of an answer, once. doubt: what changes answers and nobody can be sure
 * of. */
void cd_serving_note(cd_serving_model *m, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void cd_serving_doubt(cd_serving_model *m, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- other names of a fact: serving_read.c ---- */
/* The i-th other name of the fact `key`; NULL: there are no more. */
const char *cd_serving_spelled(const char *key, size_t i);

/* ---- ModelOpt's words: serving_weights.c ---- */
#define CD_SERVING_ALGOS                                                                           \
    "FP8, FP8_PER_CHANNEL_PER_TOKEN, FP8_PB_WO, NVFP4, NVFP4_AWQ, W8A8_SQ_PER_CHANNEL, W8A16, "    \
    "W4A16, W4A16_AWQ, INT4_AWQ or MXFP4"
/* The type of the word, and bytes of scales of a weight where each `size` of them have one. false:
 * no word of a type. */
bool cd_serving_algo(const cd_json *v, double size, cd_llm_op_type *type, double *scales);
/* The same of the cache; a word that says none leaves *type as it is. */
bool cd_serving_algo_cache(const cd_json *v, int *type);

/* ---- what nobody asked for: serving_weights.c ---- */
/* One doubt with the names of all members that look like sizes and were not asked for. where:
 * "quantization_config.", or empty. */
void cd_serving_unread(const cd_serving_fields *f, const char *where);

/* What stands beside config.json in a checkpoint's folder: serving_model.c. */
typedef struct cd_serving_beside {
    /* of the file that says the types: "hf_quant_config.json", and where it is; NULL: there is
     * none */
    const char *name, *path;
    const cd_json *types; /* what it says, as quantization_config would */
    /* of all weights, as model.safetensors.index.json says; 0: nobody says */
    double bytes;
} cd_serving_beside;

/* Which layers have attention, a window, a state: serving_read.c. Before experts. */
cdmpp_status cd_serving_read_layers(cd_serving_fields *o, const cd_serving_family *f,
                                    cd_serving_model *m, cdmpp_err *err);
/* Experts, and which layers have them: serving_read.c. */
cdmpp_status cd_serving_read_experts(cd_serving_fields *o, const cd_serving_family *f,
                                     cd_serving_model *m, cdmpp_err *err);
/* Types of weights: serving_types.c. root: of the whole model, o: of its language model (the same
 * where it is nothing else). Errors: also EUNSUPPORTED, a kind of quantisation that is not known;
 * ENOMEM. */
typedef struct cd_serving_typed {
    cd_arena *a;
    cd_serving_fields *o, *root;
    const cd_serving_beside *beside;
    const char *where; /* of o in root, "text_config"; empty where it is the whole */
} cd_serving_typed;
cdmpp_status cd_serving_read_types(const cd_serving_typed *t, cd_serving_model *m, cdmpp_err *err);
#endif
