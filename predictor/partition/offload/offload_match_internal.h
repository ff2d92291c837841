/* live_rules_int -- names and attributes of operators, for the list of them. Private to live_rules*.c. */
#ifndef CD_LIVE_RULES_INT_H
#define CD_LIVE_RULES_INT_H
#include "predictor/partition/offload/offload_match.h"

enum { CD_LIVE_ATTRS = 48 };

typedef struct cd_live_attrs {
    cd_arena *arena;
    uint32_t n;
    bool oom;
    cd_offload_attr v[CD_LIVE_ATTRS];
} cd_live_attrs;

/* The first value of a key stays; what has no room is left out. */
void cd_live_put_attr(cd_live_attrs *a, const char *key, const char *value);
void cd_live_put_number(cd_live_attrs *a, const char *key, double v);
void cd_live_put_tensor(cd_live_attrs *a, const cd_gtensor *t);
void cd_live_put_node(cd_live_attrs *a, const cd_graph *g, const cd_gnode *n);
void cd_live_type_of(const cd_graph *g, const cd_gnode *n, char *to, size_t room);
bool cd_live_is_mac(const cd_gnode *n);
#endif
