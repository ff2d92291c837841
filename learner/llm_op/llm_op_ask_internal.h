/* The steps of an answer, for one record and for many: llm_op_ask.c tells in which order. */
#ifndef CD_LLM_OP_ASK_INTERNAL_H
#define CD_LLM_OP_ASK_INTERNAL_H
#include "learner/llm_op/llm_op_internal.h"

/* A record on its way. */
typedef struct cd_llm_op_asking {
    const cd_llm_op_record *r;
    const cd_device *d;
    long device; /* in the table; CD_LLM_OP_NONE */
    cd_llm_op_family f;
    cd_llm_op_codes c;
    unsigned has; /* CD_LLM_OP_HAS_* of its device; 0: it was not trained on */
    float x[CD_LLM_OP_N_FEATURE];
    cd_llm_op_estimate e;
    /* own: ln of what the trees of set seen expect, NaN: nobody needs it; said: by neighbours */
    double own, said;
    cd_llm_op_beside beside;
    cd_llm_op_sides near;
    /* where its row and its curves are in the table: cd_llm_op_table_hash, cd_llm_op_table_curve */
    uint64_t hash, curve[CD_LLM_OP_MAX_SIZE + 1];
    cd_llm_op_set s;
    /* of set s; NULL: it is answered, or cannot be, or the twin is asked */
    const cd_llm_op_part *p;
    const cd_device *twin; /* who is asked; NULL: nobody */
    float score, spread;
} cd_llm_op_asking;

/* The number of the device in the table. */
long cd_llm_op_ask_device(const cd_llm_op_asker *a, const cd_device *d);
/* Its curves, where its device has measured rows. False: it is none of them. */
bool cd_llm_op_ask_curves(const cd_llm_op_asker *a, const cd_llm_op_record *r, long device,
                          cd_llm_op_asking *q);
/* Features. All but curves and what the next steps find is set. Errors: those of
 * cd_llm_op_estimate_by. */
cdmpp_status cd_llm_op_ask_begin(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                                 const cd_device *d, long device, cd_llm_op_known *known,
                                 cd_llm_op_asking *q, cdmpp_err *err);
/* The measured rows beside it, where its device has some; memory is asked for them. */
void cd_llm_op_ask_beside(const cd_llm_op_asker *a, cd_llm_op_asking *q);
/* What neighbours say, and so whose answer it is. Errors: EMODEL: no trees. */
cdmpp_status cd_llm_op_ask_choose(const cd_llm_op_asker *a, cd_llm_op_asking *q, cdmpp_err *err);
/* The trees of set seen have said it before. */
bool cd_llm_op_ask_is_own(const cd_llm_op_asking *q);
void cd_llm_op_ask_tell(const cd_llm_op_asker *a, const cd_llm_op_asking *q, double level,
                        cd_llm_op_answer *out);
void cd_llm_op_ask_tell_twin(const cd_llm_op_asker *a, const cd_llm_op_asking *q,
                             const cd_llm_op_answer *of, cd_llm_op_answer *out);
/* The answer that a row of the table is. */
cdmpp_status cd_llm_op_ask_measured(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                                    const cd_device *d, size_t row, double level,
                                    cd_llm_op_answer *out, cdmpp_err *err);
/* Rows of the twin do not tell how far another board is: the interval is that of an answer without
 * them. */
void cd_llm_op_ask_widen(const cd_llm_op_answer *without, cd_llm_op_answer *v);

/* ---- what the trees of set seen expect ---- */
/* ln of it for a record; without such trees of the estimate. Errors: those of cd_xgb_predict. */
cdmpp_status cd_llm_op_expect_of(const cd_llm_op_asker *a, cd_llm_op_family f, const float *x,
                                 const cd_llm_op_estimate *e, double *out, cdmpp_err *err);
/* The same of a measured row, computed when first asked; NaN: it cannot be. ctx: the asker. */
double cd_llm_op_expect_row(const void *ctx, size_t row);
/* Rows of a family whose expectation somebody will ask: computed together, which is faster than one
 * by one. Starts from {0}. */
enum { CD_LLM_OP_AWAITED = 256, CD_LLM_OP_AWAITED_SEEN = 1024 };
typedef struct cd_llm_op_awaited {
    uint32_t row[CD_LLM_OP_AWAITED];
    /* row + 1, by its last bits: most that come again are told */
    uint32_t seen[CD_LLM_OP_AWAITED_SEEN];
    size_t n;
} cd_llm_op_awaited;
/* A row that is not known yet is added; of many, those before it are computed. x (CD_LLM_OP_AWAITED
 * x CD_LLM_OP_N_FEATURE): scratch. */
void cd_llm_op_expect_await(const cd_llm_op_asker *a, cd_llm_op_family f, size_t row,
                            cd_llm_op_known *known, float *x, cd_llm_op_awaited *w);
/* All that were added are computed. */
void cd_llm_op_expect_flush(const cd_llm_op_asker *a, cd_llm_op_family f, cd_llm_op_known *known,
                            float *x, cd_llm_op_awaited *w);
#endif
