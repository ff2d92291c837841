/* offload_rules_internal -- rules as they are after reading, for matching and printing. Private to
 * the room.
 *
 *   line -> rule: kind, device, operators of the pattern (types, may be missing), conditions; of a
 *           format line key=value words as conditions */
#ifndef CD_OFFLOAD_RULES_INTERNAL_H
#define CD_OFFLOAD_RULES_INTERNAL_H
#include "predictor/partition/offload/offload_rules.h"

enum { CD_OFFLOAD_LINKS = 16, CD_OFFLOAD_MAX_DEVICE = 8 };

typedef enum cd_offload_kind {
    CD_OFFLOAD_HOST,
    CD_OFFLOAD_PATTERN,
    CD_OFFLOAD_SUPPORT,
    CD_OFFLOAD_REFUSE,
    CD_OFFLOAD_PLACE,
    CD_OFFLOAD_FORMAT
} cd_offload_kind;
#define CD_OFFLOAD_KINDS "host|pattern|support|refuse|place|format"

typedef enum cd_offload_cmp {
    CD_RULE_CMP_EQ,
    CD_RULE_CMP_NE,
    CD_RULE_CMP_LE,
    CD_RULE_CMP_GE,
    CD_RULE_CMP_LT,
    CD_RULE_CMP_GT,
    CD_CMP_DIV
} cd_offload_cmp;

typedef struct cd_offload_cond {
    uint32_t link;           /* of the chain, 1 the first; 0: all */
    const char *key, *value; /* value: "a|b" */
    cd_offload_cmp cmp;
} cd_offload_cond;

typedef struct cd_offload_link {
    const char *type; /* "a|b" */
    bool maybe;
} cd_offload_link;

typedef struct cd_offload_rule {
    cd_offload_kind kind;
    uint32_t device;
    long line;
    const char *name; /* pattern; glob of a place line */
    uint32_t n_link, n_cond;
    cd_offload_link *link; /* types of support and refuse lines; the chain of a pattern */
    cd_offload_cond *cond;
    const char *where; /* conditions as written, NULL: none */
} cd_offload_rule;

struct cd_offload_rules {
    cd_arena arena;
    const char *path;
    uint32_t n_device, n_rule, cap;
    const char **device;
    cd_offload_rule *rule;
};

#endif
