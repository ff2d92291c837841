/* member -- one trained estimator of an ensemble: programs -> ln of seconds.
 *
 *   kind         reads                          made of
 *   rows         feature rows, or facts too     trees; seconds of the rows add up
 *   program      a summary of it, or facts too  trees
 *   sums         sums and maxima of its rows    trees, to compare with
 *   mlp          the summary                    network
 *   transformer  feature rows, or leaves        network
 *   lstm         leaves and tree                network
 *   tlp          steps of the schedule          network
 *
 * (1) A member is immutable after training: any number of threads, one scratch each.
 * (2) Its answer for a program depends on that program only.
 * The table of kinds is in member.c. */
#ifndef CD_MEMBER_H
#define CD_MEMBER_H
#include "learner/trees/trees.h"
#include "learner/nn/nn.h"
#include "learner/loss/loss.h"

#define CD_MEMBER_KINDS "rows|program|sums|mlp|transformer|lstm|tlp"
typedef enum {
    CD_MEMBER_ROWS,
    CD_MEMBER_PROGRAM,
    CD_MEMBER_SUMS,
    CD_MEMBER_MLP,
    CD_MEMBER_TSF,
    CD_MEMBER_LSTM,
    CD_MEMBER_TLP,
    CD_N_MEMBER_KIND
} cd_member_kind;

typedef struct cd_member {
    cd_member_kind kind;
    int fold;                    /* the fold it was not trained on; -1: it knows them all */
    double slope, bias;          /* trees: score + bias + slope * ln trips, or + ln of the prior */
    cd_objective_kind objective; /* trees: what their scores are (learner/loss/loss.h) */
    double scale, shift;         /* trees: their map to ln seconds; not of log_latency */
    cd_facts_use facts;          /* trees: what they read of facts */
    /* trees with a prior: which analytic time it is, 0 .. CD_N_PRIOR - 1 */
    int prior;
    cd_xgb *gbt;         /* trees, owned */
    cd_net *net;         /* network, owned */
    cd_scalers scalers;  /* network: of its inputs */
    cd_transform *label; /* network: ln seconds from its output; 8 KB, owned */
} cd_member;

/* The name in configurations and model files. */
const char *cd_member_name(cd_member_kind k);
/* The kind of that name; CD_N_MEMBER_KIND where there is none. */
cd_member_kind cd_member_find(cd_str name);
bool cd_member_is_net(cd_member_kind k);
/* Does a network of these tokens read leaves (cd_program_view.leaf_ptr must then not be NULL)? */
bool cd_member_needs_leaves(cd_member_kind k, cd_net_tokens tokens);
/* Does it read steps (cd_program_view.step_ptr must then not be NULL)? */
bool cd_member_needs_steps(cd_member_kind k);
/* Are they trees that read facts of loop nests (train.facts)? Networks read them where net.facts
 * says so. */
bool cd_member_reads_facts(cd_member_kind k);
/* What a network makes of them. */
cd_facts_use cd_member_net_facts(const cd_net *net);
/* What the trees of a kind see, beside facts. */
cd_tree_input_form cd_member_form(cd_member_kind k);
/* Columns of the trees of a kind that uses facts so. */
size_t cd_member_width(cd_member_kind k, cd_facts_use facts);
/* Matrix rows of program p for m, a member of trees: x (height, width). Of a member with facts the
 * program has some. */
void cd_member_fill(const cd_member *m, const cd_program_view *v, size_t p, float *x);
/* Trees: do trip counts give a program's level (rows; any form where the objective knows
 * no seconds)? */
bool cd_member_has_level(const cd_member *m);
/* Trees: offsets (height) of the matrix rows of program p, and its level, the ln of the sum of
 * their exp. Without a level both are the bias; with a prior the level is the bias and ln of the
 * prior, which trips divide between the rows. */
double cd_member_offsets(const cd_member *m, const cd_program_view *v, size_t p, double slope,
                         double bias, double *offset);
void cd_member_free(cd_member *m);

typedef struct cd_member_scratch cd_member_scratch;
/* Working memory of one thread. Errors: ENOMEM. */
cdmpp_status cd_member_scratch_new(CD_GIVE cd_member_scratch **out, cdmpp_err *err);
void cd_member_scratch_free(CD_TAKE cd_member_scratch *s); /* NULL is fine */

/* log_s (n) of programs index[0 .. n) of the view (index NULL: 0 .. n). `device`
 * (n_device, the width of its network): vectors of the model's devices, for networks.
 * Errors: EMODEL, EBACKEND, ENOMEM, ENUMERIC. */
cdmpp_status cd_member_predict(const cd_member *m, cd_member_scratch *s, const cd_program_view *v,
                               const uint32_t *index, size_t n, const float *device,
                               size_t n_device, double *log_s, cdmpp_err *err);

/* Its numbers as members of a JSON object, and its weights behind `blob`. */
cdmpp_status cd_member_save(const cd_member *m, cd_buf *json, cd_buf *blob, cdmpp_err *err);
/* The reverse; `m` is empty before, to be freed after an error too. Errors: ESCHEMA,
 * ERANGE, EMODEL, ENOMEM, EBACKEND. */
cdmpp_status cd_member_load(cd_member *m, const cd_json *v, const void *blob, size_t n,
                            cdmpp_err *err);
#endif
