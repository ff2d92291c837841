/* fusion_rules -- which operators a back end runs as one program: rules that a detection found, or
 * that a user wrote.
 *
 *   {"schema": "cdmpp.fusion_rules/1", "rules": [
 *     {"first": "Conv", "second": "Relu", "fused": true},                                  Relu
 *     joins the Conv that it reads
 *     {"before": "Conv", "first": "BatchNormalization", "second": "Relu", "fused": true},  and so
 *     it does behind a Conv
 *     {"first": "Conv", "second": "*", "fused": false},                                    a Conv
 *     with several readers joins none
 *     {"first": "Relu", "second": "Relu", "fused": null}]}                                 not
 *     known
 *
 *   (1) names are those of ONNX's operators; DepthwiseConv is a Conv with one channel a group;
 *   (2) rules only take away: what TVM's rules (fuse.c) do not join stays apart;
 *   (3) a rule with `before` stands above the one without, where `before` and `first` are in one
 *       group already;
 *   (4) "*" is asked where several operators read `first`, beside the rule of each reader;
 *   (5) of two rules for the same the last one counts. No rule, or null: not known.
 * Immutable after reading: any thread. */
#ifndef CD_FUSION_RULES_H
#define CD_FUSION_RULES_H
#include "base/core/core.h"

typedef enum cd_fusion_answer {
    CD_FUSION_UNKNOWN,
    CD_FUSION_APART,
    CD_FUSION_FUSED
} cd_fusion_answer;

typedef struct cd_fusion_rule {
    const char *before, *first, *second; /* before NULL: whatever stands there */
    cd_fusion_answer answer;
} cd_fusion_rule;

typedef struct cd_fusion_rules {
    cd_arena arena;
    uint32_t n, cap;
    cd_fusion_rule *rule; /* (n) */
} cd_fusion_rules;

#define CD_FUSION_RULES_SCHEMA "cdmpp.fusion_rules/1"
#define CD_FUSION_RULES_MANY   "*"

/* Append a rule; texts are copied. Errors: ENOMEM. */
cdmpp_status cd_fusion_rules_add(cd_fusion_rules *r, const char *before, const char *first,
                                 const char *second, cd_fusion_answer answer, cdmpp_err *err);
/* Other members of the object and of each rule are ignored: a detection keeps its figures there.
 * Errors: EIO, EPARSE, ESCHEMA (which rule), ENOMEM, with the path. Free *r, after an error too. */
cdmpp_status cd_fusion_rules_read(const char *path, cd_fusion_rules *r, cdmpp_err *err);
void cd_fusion_rules_free(cd_fusion_rules *r); /* zeroed is fine */
/* before NULL: nothing stands there. */
cd_fusion_answer cd_fusion_rules_find(const cd_fusion_rules *r, const char *before,
                                      const char *first, const char *second);
#endif
