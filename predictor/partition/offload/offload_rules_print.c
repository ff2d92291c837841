/* Prints rules as they were parsed. */

#include "base/text/text.h"
#include "predictor/partition/offload/offload_rules_internal.h"

static void put_links(const cd_offload_rule *q, cd_buf *out) {
    for (uint32_t i = 0; i < q->n_link; i++)
        cd_buf_putf(out, "%s%s%s",
                    i == 0                          ? ""
                    : q->kind == CD_OFFLOAD_PATTERN ? " -> "
                                                    : " ",
                    q->link[i].type, q->link[i].maybe ? "?" : "");
}

static void put_conds(const cd_offload_rule *q, cd_buf *out) {
    static const char *const sign[] = {
        [CD_RULE_CMP_EQ] = "=",  [CD_RULE_CMP_NE] = "!=", [CD_RULE_CMP_LE] = "<=",
        [CD_RULE_CMP_GE] = ">=", [CD_RULE_CMP_LT] = "<",  [CD_RULE_CMP_GT] = ">",
        [CD_CMP_DIV] = "%"};
    for (uint32_t i = 0; i < q->n_cond; i++) {
        const cd_offload_cond *c = &q->cond[i];
        cd_buf_puts(out, q->kind == CD_OFFLOAD_FORMAT ? " " : i ? ", " : " where ");
        if (c->link) cd_buf_putf(out, "%u.", c->link);
        cd_buf_putf(out, "%s%s%s", c->key, sign[c->cmp], c->value);
    }
}

/* Printed from the parsed rules, not from the text, so that a user sees how a line was
 * understood. */
void cd_offload_print(const cd_offload_rules *r, uint32_t only, bool patterns, cd_buf *out) {
    static const char *const kind[] = {"host", "pattern", "support", "refuse", "place", "format"};
    for (uint32_t i = 0; i < r->n_rule; i++) {
        const cd_offload_rule *q = &r->rule[i];
        if ((only != UINT32_MAX && q->device != only) ||
            (patterns && q->kind != CD_OFFLOAD_PATTERN))
            continue;
        cd_buf_putf(out, "%5ld  %-8s", q->line, kind[q->kind]);
        if (q->kind == CD_OFFLOAD_PLACE) cd_buf_putf(out, "%s ", q->name);
        cd_buf_puts(out, r->device[q->device]);
        if (q->kind == CD_OFFLOAD_PATTERN) cd_buf_putf(out, " %s:", q->name);
        if (q->n_link) cd_buf_puts(out, " ");
        put_links(q, out);
        put_conds(q, out);
        cd_buf_puts(out, "\n");
    }
}
